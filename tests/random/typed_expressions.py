"""Random expressions as texts, each of a type that is asked for: every operator, conversion and function that both
sides know.

What has no result is avoided by construction where that is cheap: divisors are not zero, shifts are below the width, a
float is brought into an integer's range before it is converted. The rest is left to the interpreter, which tells of
faults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.oracle.numbers import FLOATS, INTEGERS, SIGNED, TYPES, UNSIGNED, bits_of, limits_of, literal

ROUNDING = ("floor", "ceil", "trunc", "round")
MATH = (
    "exp", "exp2", "log", "log2", "log10", "tanh", "sigmoid", "erf", "rsqrt", "sin", "cos", "tan", "sinh", "cosh",
    "atan",
)  # fmt: skip

FEATURES = ("bare", "mixed", "round", "math", "init", "lazy", "overflow", "bfloat16", "shifted", "folded")
"""What a program may contain that is told apart: numbers without a type beside other types than their own, operands of
two types, `T.round`, functions that round by more than one operation, reductions whose init may run late or not at all,
a division on the right of `and`/`or` that can trap, integers of 32 and 64 bits whose operations may wrap, arithmetic in
bfloat16, a remainder or a quotient of an index that is shifted or reversed, and floats that TVM folds as it folds
integers.
"""

WIDE = ("int32", "int64", "uint32", "uint64")
_SHIFTS = re.compile(r" - |\+ \(*\d|\d\)* \+ ")


@dataclass
class Cell:
    """A buffer that can be loaded from."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Scope:
    """What an expression may name: buffers, integers with their ranges, values of a let with their types."""

    cells: list[Cell] = field(default_factory=list)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    lets: dict[str, str] = field(default_factory=dict)


class Expressions:
    """Texts of expressions over a scope; `used` collects the features that they have, none of those in `without`. No
    value inside has a type that is `barred`.
    """

    def __init__(self, rng: Random, without: frozenset[str] = frozenset()) -> None:
        self.rng = rng
        self.scope = Scope()
        self.without = without
        self.used: set[str] = set()
        self.barred: frozenset[str] = frozenset()
        self.turned: set[str] = set()
        self.guarded = False  # to the right of `and` or `or`, which TVM computes whatever stands on the left

    def may(self, feature: str, chance: float) -> bool:
        """Whether to use a feature now."""
        if feature in self.without or self.rng.random() >= chance:
            return False
        self.used.add(feature)
        return True

    # ---- indices

    def index(self, extent: int) -> str:
        """An index of an axis, inside it."""
        text, low, high = self.whole(2)
        if low <= high and self.shifted(text):
            return f"T.max(T.min({text}, {extent - 1}), 0)"
        if low > high or (low >= 0 and high < extent):
            return text
        if self.rng.random() < 0.2:
            return f"T.max(T.min({text}, {extent - 1}), 0)"
        cells = [c for c in self.scope.cells if c.dtype == "int32"]
        if cells and self.rng.random() < 0.15:
            return f"{self.load(self.rng.choice(cells))} % {extent}"
        return f"({text}) % {extent}"

    def whole(self, depth: int) -> tuple[str, int, int]:
        """Index arithmetic over the integers in scope, with its range; an empty range where no iteration gets here."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.4:
            if self.scope.ranges and rng.random() < 0.85:
                name = rng.choice(sorted(self.scope.ranges))
                return name, *self.scope.ranges[name]
            value = rng.randint(0, 5)
            return str(value), value, value
        text, low, high = self.whole(depth - 1)
        k = rng.randint(1, 4)
        match rng.choice([0, 1, 4, 5, 6, 8]) if self.shifted(text) else rng.randrange(9):
            case 0:
                return f"({text} + {k})", low + k, high + k
            case 1:
                return f"({text} * {k})", low * k, high * k
            case 2:
                return f"({text} // {k})", low // k, high // k
            case 3:
                return f"({text} % {k})", 0, k - 1
            case 4:
                other, low2, high2 = self.whole(depth - 1)
                return f"({text} + {other})", low + low2, high + high2
            case 5:
                return f"({k} - {text})", k - high, k - low
            case 6:
                other, low2, high2 = self.whole(depth - 1)
                return f"T.min({text}, {other})", min(low, low2), min(high, high2)
            case 7 if low >= 0:
                return f"T.truncmod({text}, {k})", 0, k - 1
            case _:
                return f"({text} - {k})", low - k, high - k

    def shifted(self, text: str) -> bool:
        """Whether an index has an offset, so that its remainders are to be left out."""
        return "shifted" in self.without and (
            _SHIFTS.search(text) is not None or any(re.search(rf"\b{name}\b", text) for name in self.turned)
        )

    def load(self, cell: Cell) -> str:
        """A load of a cell inside a buffer."""
        return f"{cell.name}[{', '.join(self.index(extent) for extent in cell.shape)}]"

    def comparison(self) -> str:
        """A comparison of integers in scope."""
        relation = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"{self.whole(2)[0]} {relation} {self.whole(1)[0]}"

    def condition(self) -> str:
        """A truth value over the integers in scope."""
        text = self.comparison()
        if self.rng.random() < 0.3:
            return f"{text} {self.rng.choice(['and', 'or'])} {self.comparison()}"
        return f"not ({text})" if self.rng.random() < 0.1 else text

    # ---- values

    def value(self, dtype: str, depth: int) -> str:
        """A value of a type, which may be a constant."""
        return self.leaf(dtype) if depth <= 0 or self.rng.random() < 0.15 else self.made(dtype, depth)

    def solid(self, dtype: str, depth: int) -> str:
        """A value of a type that is no constant."""
        return self.named(dtype) if depth <= 0 or self.rng.random() < 0.15 else self.made(dtype, depth)

    def made(self, dtype: str, depth: int) -> str:
        """A value of a type by some operation."""
        if dtype == "bfloat16" and not self.may("bfloat16", 1.0):
            return self.named(dtype)
        if self.rng.random() < 0.15:
            return self.chosen(dtype, depth - 1)
        if self.rng.random() < 0.15:
            return self.converted(dtype, depth - 1)
        if dtype == "bool":
            return self.truth(depth - 1)
        return self.float_operation(dtype, depth - 1) if dtype in FLOATS else self.integer_operation(dtype, depth - 1)

    def leaf(self, dtype: str) -> str:
        """A load, a let, a loop variable; seldom a number, since TVM folds what is made of numbers alone before it
        generates code.
        """
        if self.rng.random() < 0.2:
            limit = dtype != "bool" and self.rng.random() < 0.2 and (dtype != "bfloat16" or self.may("bfloat16", 1.0))
            return f'T.{self.rng.choice(["min_value", "max_value"])}("{dtype}")' if limit else literal(dtype, self.rng)
        return self.named(dtype)

    def named(self, dtype: str) -> str:
        """A value of a type that is no constant."""
        rng, scope = self.rng, self.scope
        cells = [c for c in scope.cells if c.dtype == dtype]
        lets = sorted(name for name, kind in scope.lets.items() if kind == dtype)
        if lets and rng.random() < 0.5:
            return rng.choice(lets)
        if dtype == "int32" and scope.ranges and rng.random() < 0.2:
            return rng.choice(sorted(scope.ranges))
        if dtype == "bool" and scope.ranges and rng.random() < 0.3:
            return f"({self.comparison()})"
        if cells:
            return self.load(rng.choice(cells))
        if dtype == "bfloat16" and "bfloat16" in self.without:
            return literal(dtype, rng)
        others = [c for c in scope.cells if c.dtype not in self.barred]
        if not others:
            return literal(dtype, rng)
        other = rng.choice(others)
        text = self.load(other)
        if other.dtype in FLOATS and dtype in INTEGERS:
            text = self.clamped(text, other.dtype, dtype)
        return f'T.Cast("{dtype}", {text})'

    def has_values(self, dtype: str) -> bool:
        """Whether there is a value of a type that is no constant; TVM folds conversions of constants by rules of their
        own.
        """
        return dtype != "bfloat16" or "bfloat16" not in self.without or any(c.dtype == dtype for c in self.scope.cells)

    def chosen(self, dtype: str, depth: int) -> str:
        """One of two values."""
        a, b, condition = self.solid(dtype, depth), self.value(dtype, depth), self.solid("bool", min(depth, 1))
        match self.rng.randrange(4):
            case 0:
                return f"T.Select({condition}, {a}, {b})"
            case 1:
                return f"T.if_then_else({condition}, {a}, {b})"
            case 2:
                return f"({a} if {condition} else {b})"
            case _ if dtype != "bool":
                return f"T.{self.rng.choice(['min', 'max'])}({a}, {b})"
            case _:
                return f"T.Select({condition}, {a}, {b})"

    def converted(self, dtype: str, depth: int) -> str:
        """A value of another type, converted."""
        source = self.rng.choice([t for t in TYPES if t != dtype and t not in self.barred and self.has_values(t)])
        text = self.solid(source, depth)
        if source in FLOATS and dtype in INTEGERS:
            text = self.clamped(text, source, dtype)
        if dtype in ("float32", "float64") and self.rng.random() < 0.15:
            bits = f"{self.rng.choice(('int', 'uint'))}{dtype[-2:]}"
            if bits not in self.barred:
                return f'T.reinterpret("{dtype}", {self.solid(bits, depth)})'
        match self.rng.randrange(3):
            case 0:
                return f'T.Cast("{dtype}", {text})'
            case 1:
                return f'T.cast({text}, "{dtype}")'
            case _:
                return (
                    f"T.{dtype}({text})"
                    if not text.startswith(("T.", "-")) and text[0].isupper()
                    else f'T.Cast("{dtype}", {text})'
                )

    def clamped(self, text: str, source: str, target: str) -> str:
        """A float in the range of an integer type; a NaN becomes the upper end."""
        low, high = limits_of(target)
        digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[source]
        inside = high if high.bit_length() <= digits else high - (1 << (high.bit_length() - digits)) + 1
        inside = min(inside, 65504) if source == "float16" else inside
        low = max(low, -65504) if source == "float16" else low
        return f"T.max(T.min({text}, T.{source}({float(inside)!r})), T.{source}({float(low)!r}))"

    def truth(self, depth: int) -> str:
        """A truth value made by an operator."""
        rng = self.rng
        if rng.random() < 0.3:
            a, outside = self.solid("bool", depth), self.guarded
            self.guarded = outside or not self.may("lazy", 1.0)
            b = self.value("bool", depth)
            self.guarded = outside
            found = rng.choice([f"({a} and {b})", f"({a} or {b})", f"T.And({a}, {b})", f"T.Or({a}, {b})", f"(not {a})"])
            # TVM turns a comparison around, also one that a name stands for.
            turned = (
                found.startswith("(not ") and "folded" in self.without and re.fullmatch(r"\w+\[[^][]*\]", a) is None
            )
            return f"({a} or {b})" if turned else found
        dtype = rng.choice([t for t in (*INTEGERS, *FLOATS) if t not in self.barred])
        a = self.solid(dtype, depth)
        b = self.apart_from(a, dtype) if dtype in FLOATS and "folded" in self.without else self.value(dtype, depth)
        relation = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        if relation == "!=" and dtype in FLOATS and "folded" in self.without:
            relation = "=="
        if self.may("bare", 0.1):
            b = self.bare(dtype)
        elif self.may("mixed", 0.05):
            b = self.value(rng.choice([t for t in (*INTEGERS, *FLOATS) if t not in self.barred]), depth)
        return f"({a} {relation} {b})"

    def bare(self, dtype: str) -> str:
        """A number as Python writes it, to stand beside a value."""
        rng = self.rng
        if dtype in INTEGERS or rng.random() < 0.3:
            zero, large = (
                ([] if dtype in FLOATS and "folded" in self.without else [0]),
                ([] if "overflow" in self.without else [2**31 - 1]),
            )
            return str(rng.choice([*zero, 1, 2, 3, 7, 100, 127, 128, 255, 300, 1000, 40000, *large]))
        return repr(rng.choice([0.5, 1.5, 2.3, 0.1, 3.0, 1e-3, 1000.7]))

    def integer_operation(self, dtype: str, depth: int) -> str:
        """An operator over integers of one type."""
        kinds: list[Callable[[str, int], str]] = [
            self.arithmetic,
            self.arithmetic,
            self.bits,
            self.division,
            self.shift,
            self.unary,
        ]
        return self.rng.choice(kinds)(dtype, depth)

    def calm(self, text: str, dtype: str) -> str:
        """An operand that cannot make int32 or int64 overflow, where that is to be left out: TVM takes it not to
        happen.
        """
        if "overflow" not in self.without or dtype not in WIDE:
            return text
        return f"T.truncmod({text}, T.{dtype}({self.rng.choice([97, 1000])}))"

    def arithmetic(self, dtype: str, depth: int) -> str:
        """Sums, differences and products."""
        rng = self.rng
        a, b, operator = (
            self.calm(self.solid(dtype, depth), dtype),
            self.calm(self.value(dtype, depth), dtype),
            rng.choice("+-*"),
        )
        if dtype in WIDE and "overflow" not in self.without:
            self.used.add("overflow")
        elif dtype in ("uint32", "uint64") and operator == "-":
            operator = "+"
        if self.may("bare", 0.15):
            return f'T.Cast("{dtype}", {a} {operator} {self.bare(dtype)})'
        if self.may("mixed", 0.08):
            return self.of_two_types(a, dtype, operator, depth)
        if rng.random() < 0.1:
            return f"T.{ {'+': 'Add', '-': 'Sub', '*': 'Mul'}[operator] }({a}, {b})"
        return f"({a} {operator} {b})"

    def of_two_types(self, a: str, dtype: str, operator: str, depth: int) -> str:
        """An operator over integers of two types."""
        other = self.rng.choice(INTEGERS)
        b = self.calm(self.value(other, depth), other)
        if "overflow" in self.without and {dtype, other} & {"uint32", "uint64"}:
            operator = "+" if {dtype, other} <= set(UNSIGNED) else self.rng.choice("&|^")
        return f'T.Cast("{dtype}", {a} {operator} {b})'

    def bits(self, dtype: str, depth: int) -> str:
        """Bitwise operators."""
        a, b, operator = self.solid(dtype, depth), self.value(dtype, depth), self.rng.choice("&|^")
        return f"({a} {operator} {b})" if self.rng.random() < 0.85 else f"(~{a})"

    def division(self, dtype: str, depth: int) -> str:
        """The four divisions, by something that is not zero and mostly not -1."""
        rng = self.rng
        a, b = self.solid(dtype, depth), self.solid(dtype, depth)
        match 0 if self.guarded else rng.randrange(4):
            case 0:
                divisor = f"T.max({b}, T.{dtype}({rng.choice([1, 2, 5])}))"
            case 1 if dtype in SIGNED:
                divisor = f"T.min({b}, T.{dtype}({rng.choice([-1, -2, -5])}))"
            case 2:
                divisor = f"({b} | T.{dtype}({rng.choice([1, 2, 3])}))"
            case _:
                values = [1, 2, 3, 4, 7, 8, 16, 100] + ([-1, -2, -3, -4, -7] if dtype in SIGNED else [])
                divisor = f"T.{dtype}({rng.choice(values)})"
        if self.may("bare", 0.15):
            return f'T.Cast("{dtype}", {a} {rng.choice(["//", "%"])} {rng.choice([1, 2, 3, 7, 100])})'
        operator = rng.choice(["//", "%", "floordiv", "floormod", "truncdiv", "truncmod"])
        return f"({a} {operator} {divisor})" if operator in ("//", "%") else f"T.{operator}({a}, {divisor})"

    def shift(self, dtype: str, depth: int) -> str:
        """Shifts by less than the width."""
        rng, bits = self.rng, bits_of(dtype)
        a = self.solid(dtype, depth)
        by = (
            f"T.{dtype}({rng.randrange(bits)})"
            if rng.random() < 0.5
            else f"({self.solid(dtype, depth)} & T.{dtype}({bits - 1}))"
        )
        if self.may("bare", 0.1):
            return f'T.Cast("{dtype}", {a} {rng.choice(["<<", ">>"])} {rng.randrange(min(bits, 8))})'
        if rng.random() < 0.3:
            return f"T.{rng.choice(['shift_left', 'shift_right'])}({a}, {by})"
        return f"({a} {rng.choice(['<<', '>>'])} {by})"

    def unary(self, dtype: str, depth: int) -> str:
        """Operators of one operand."""
        if dtype == "int32" and self.rng.random() < 0.3:
            wide = self.rng.choice([t for t in WIDE if t not in self.barred])
            # TVM leaves open what it is of 0; we refuse one of another, which is large.
            return f"T.clz({self.named(wide)} | T.{wide}(1))"
        a = self.solid(dtype, depth)
        if dtype in UNSIGNED:
            return f"(~{a})"
        a = self.calm(a, dtype)
        return self.rng.choice([f"(-{a})", f"T.abs({a})", f"(~{a})"])

    def float_operation(self, dtype: str, depth: int) -> str:
        """An operator or a function over floats of one type."""
        rng = self.rng
        a = self.solid(dtype, depth)
        if self.may("math", 0.15):
            return f"T.{rng.choice(MATH)}({a})"
        if rng.random() < 0.15:
            names = [n for n in (*ROUNDING, "sqrt", "abs") if n != "round" or self.may("round", 1.0)]
            return f"T.{rng.choice(names)}({a})"
        if rng.random() < 0.1:
            return f"(-{a})"
        operator = rng.choice("+-*/")
        if self.may("bare", 0.15):
            return f'T.Cast("{dtype}", {a} {operator} {self.bare(dtype)})'
        if self.may("mixed", 0.08):
            other = rng.choice([t for t in (*INTEGERS, *FLOATS) if t not in self.barred])
            b = self.apart_from(a, other) if "folded" in self.without else self.solid(other, depth)
            return f'T.Cast("{dtype}", {a} {operator} {b})'
        if "folded" in self.without:
            return f"({a} {operator} {self.apart_from(a, dtype)})"
        if operator == "/":  # TVM refuses a constant divisor that is zero
            divisor = (
                self.solid(dtype, depth) if rng.random() < 0.7 else f"T.{dtype}({rng.choice([0.5, 3.0, -7.0, 0.1])})"
            )
            return f"({a} / {divisor})"
        return f"({a} {operator} {self.value(dtype, depth)})"

    def apart_from(self, text: str, dtype: str) -> str:
        """A load that shares nothing with a text, or a number: TVM cancels equal terms of floats, folds products with
        zero, and takes no float to be NaN.
        """
        cells = [c for c in self.scope.cells if c.dtype == dtype and c.name not in text]
        number = f"T.{dtype}({self.rng.choice([0.5, 3.0, -7.0, 0.25, 1.5] if dtype in FLOATS else [1, 2, 3, 7, 100])})"
        return self.load(self.rng.choice(cells)) if cells and self.rng.random() < 0.8 else number
