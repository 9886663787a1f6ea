"""Index arithmetic as polynomials over integer-valued names: what a question to `integers` says, and what is asked.

Every name that is introduced stands for an integer of one execution. What no polynomial says (a load, XOR, a wrapping
conversion) becomes a name without facts: then a question has more solutions than the program has executions, and
fewer are refuted. Equal operations on equal operands have one name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Access, Buffer, Expr, Loop, Map, Statement, integer_bounds, is_index
from layoutproof.verify.kernel.rejected import Rejected

Env = Mapping[str, Poly]
Cases = tuple[Case, ...]
ALWAYS: Cases = (Case(),)
_MOST_CASES = 64
_ARITHMETIC = ("+", "-", "*", "//", "%", "min", "max", "truncdiv", "truncmod", ">>", "&")
_NEGATED = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}


class Instance(NamedTuple):
    """An execution of a statement, by the values of the loops around it and of the symbols."""

    statement: Statement
    env: Env

    @property
    def values(self) -> list[Poly]:
        """Those of the loops."""
        return [self.env[loop.var] for loop in self.statement.loops]

    @property
    def cell(self) -> tuple[Access, Env]:
        """What a store writes."""
        return self.statement.access, self.env


def both(xs: Cases, ys: Cases) -> Cases:
    """The cases in which one of each holds."""
    return tuple(x & y for x in xs for y in ys)


def differ(a: Poly, b: Poly) -> Cases:
    """The cases in which two integers are different."""
    return _compared("!=", b - a)


def outside(value: Poly, start: Poly, extent: Poly) -> Cases:
    """The cases in which `start <= value < start + extent` is false."""
    return Case((start - value - 1,)), Case((value - start - extent,))


def out_of_type(value: Poly, dtype: str) -> Cases:
    """The cases in which a value is none of an integer type."""
    low, high = integer_bounds(dtype)
    return Case((Poly.const(low - 1) - value,)), Case((value - high - 1,))


def _compared(operator: str, d: Poly) -> Cases:
    """The cases of a comparison whose right side is `d` more than its left side."""
    match operator:
        case "<":
            return (Case((d - 1,)),)
        case "<=":
            return (Case((d,)),)
        case ">" | ">=":
            return _compared(operator.replace(">", "<"), -d)
        case "==":
            return (Case((), (d,)),)
        case _:
            return Case((d - 1,)), Case((-d - 1,))


class Context:
    """The facts of one question, and the names in it. `refute` returns only if a question has no solution."""

    def __init__(
        self,
        symbols: Sequence[tuple[str, str]],
        assumed: Sequence[Expr] = (),
        refute: Callable[[Question], None] | None = None,
    ) -> None:
        self.facts: list[Poly] = []
        self.zeros: list[Poly] = []
        self.choices: list[Cases] = []
        self._refute, self._names = refute, dict[object, Poly]()
        # No name of a text is one of those that `bind` and others make.
        self.symbols: Env = {name: Poly.var(f"${name}") for name, dtype in symbols if is_index(dtype)}
        for name, dtype in symbols:
            if is_index(dtype):
                self.has_type(self.symbols[name], dtype)
        for condition in assumed:
            self.require(condition, self.symbols)

    def copy(self) -> Context:
        """Another one that knows the same, by the same names."""
        other = Context((), (), self._refute)
        other.symbols, other._names = self.symbols, dict(self._names)
        other.facts, other.zeros, other.choices = list(self.facts), list(self.zeros), list(self.choices)
        return other

    # ---- what is asked

    def refuse(self, cases: Iterable[Case]) -> None:
        """None of the cases can hold where all that is known does. Raises Rejected where that is not proved."""
        for case in cases:
            if not any(f.is_constant and f.constant < 0 for f in case.facts) and not any(
                z.is_constant and z.constant for z in case.zeros
            ):
                known = Case(tuple(self.facts), tuple(self.zeros)) & case
                if self._refute is None:
                    raise Rejected("no refutation is given")
                self._refute(Question(known.facts, known.zeros, tuple(self.choices)))

    def is_impossible(self) -> bool:
        """Whether a proof is given that what is known never holds."""
        try:
            self.refuse(ALWAYS)
        except Rejected:
            return False
        return True

    def prove(self, condition: Expr, env: Env) -> None:
        """A condition is true."""
        self.refuse(self.cases(condition, env, False))

    def prove_inside(self, values: Iterable[Poly], shape: Iterable[Expr]) -> None:
        """An index is one of a box."""
        for value, extent in zip(values, shape, strict=True):
            self.refuse(outside(value, Poly(), self.number(extent, self.symbols)))

    def prove_equal(self, first: Iterable[Poly], second: Iterable[Poly]) -> None:
        """Integers are equal, one by one."""
        for a, b in zip(first, second, strict=True):
            self.refuse(differ(a, b))

    # ---- what is known

    def between(self, value: Poly, start: Poly, extent: Poly) -> None:
        """The fact `start <= value < start + extent`."""
        self.facts += [value - start, start + extent - value - 1]

    def has_type(self, value: Poly, dtype: str) -> None:
        """The fact that a value is one of an integer type."""
        low, high = integer_bounds(dtype)
        self.facts += [value - low, Poly.const(high) - value]

    def require(self, condition: Expr, env: Env, truth: bool = True) -> None:
        """The fact that a condition is true, or false."""
        self.add(self.cases(condition, env, truth))

    def add(self, cases: Cases) -> None:
        """The fact that one of some cases holds."""
        if len(cases) == 1:
            self.facts += cases[0].facts
            self.zeros += cases[0].zeros
        else:
            self.choices.append(cases)

    def bind(self, loops: Sequence[Loop], tag: str) -> dict[str, Poly]:
        """Names for the variables of loops, `tag` and a number, with their ranges."""
        env = dict(self.symbols)
        for number, loop in enumerate(loops):
            value = Poly.var(f"{tag}{number}")
            self.between(value, self.number(loop.start, env), self.number(loop.extent, env))
            env[loop.var] = value
        return env

    def instance(self, statement: Statement, tag: str) -> Instance:
        """An executed instance: names of its loops with their ranges, and its guards."""
        env = self.bind(statement.loops, tag)
        for guard in statement.guards:
            self.require(guard, env)
        return Instance(statement, env)

    def some_cell(self, buffer: Buffer | Sequence[Expr], tag: str) -> list[Poly]:
        """Some index of a buffer, or of a box."""
        shape = buffer.shape if isinstance(buffer, Buffer) else buffer
        cell = [Poly.var(f"{tag}{axis}") for axis in range(len(shape))]
        for value, extent in zip(cell, shape, strict=True):
            self.between(value, Poly(), self.number(extent, self.symbols))
        return cell

    # ---- maps

    def inputs(self, given: Map, values: Sequence[Poly]) -> Env:
        """The names of a map with these values."""
        if len(values) != len(given.names):
            raise Rejected(f"a map takes {len(given.names)} indices, and {len(values)} are there")
        return {**self.symbols, **dict(zip(given.names, values, strict=True))}

    def outputs(self, given: Map, values: Sequence[Poly]) -> Iterable[Poly]:
        """The outputs of a map, one after another."""
        inputs = self.inputs(given, values)
        return (self.number(output, inputs) for output in given.outputs)

    def image(self, given: Map, values: Sequence[Poly], target: Statement) -> Instance:
        """The instance of a statement that a map of instances says."""
        outputs = list(self.outputs(given, values))
        if len(outputs) != len(target.loops):
            raise Rejected(f"a map of instances has {len(outputs)} outputs for {len(target.loops)} loops")
        return Instance(target, {**self.symbols, **{x.var: v for x, v in zip(target.loops, outputs, strict=True)}})

    # ---- numbers

    def number(self, e: Expr, env: Env) -> Poly:
        """The value of an integer expression as an integer, where nothing in it wraps."""
        operator, dtype = e[0], e[1]
        if operator == "const":
            return Poly.const(int(e[2]))
        if operator == "var":
            if e[2] not in env:
                raise Rejected(f"{e[2]} has no value there")
            return env[e[2]]
        if operator in ("select", "if"):
            return self._chosen(e, env)
        if operator == "cast" and _widens(e[2][1], dtype):
            return self.number(e[2], env)
        if not is_index(dtype):
            raise Rejected(f"a value of type {dtype} is no integer")
        if operator in _ARITHMETIC:
            value = self._operation(operator, self.number(e[2], env), self.number(e[3], env))
            if value is not None:
                return value
        if operator == "^":
            return self._exclusive_or(e, self.number(e[2], env), self.number(e[3], env))
        low, high = integer_bounds(dtype)
        return self._named(self._key(e, env), lambda value: (Case((value - low, Poly.const(high) - value)),))

    def _operation(self, operator: str, a: Poly, b: Poly) -> Poly | None:
        """The result where polynomials say something of it."""
        constant = b.constant if b.is_constant else 0
        match operator:
            case "+" | "-" | "*":
                return cast("Poly", core.computed(operator, a, b))
            case "//" | "%":
                quotient = self._quotient(a, b)
                return quotient if operator == "//" else a - b * quotient
            case "min" | "max":
                return self._least(a, b) if operator == "min" else -self._least(-a, -b)
            case "truncdiv" | "truncmod" if constant > 0:
                return self._truncated(operator, a, constant)
            case ">>" if b.is_constant and 0 <= constant < 63:
                return self._quotient(a, Poly.const(1 << constant))
            case "&" if constant > 0 and constant & constant + 1 == 0:  # a mask of low bits
                return a - self._quotient(a, Poly.const(constant + 1)) * (constant + 1)
            case _:
                return None

    def _key(self, e: Expr, env: Env) -> object:
        """What two expressions have in common that have one value: operation and values of operands. Loads never do,
        since what they find may change, nor undefined values.
        """
        if e[0] in ("load", "undef"):
            return object()
        values = [self.number(x, env) if is_index(x[1]) else self._key(x, env) for x in core.parts(e)]
        return (e[0], e[1], *(x for x in e[2:] if not isinstance(x, tuple)), *values)

    def _named(self, key: object, meaning: Callable[[Poly], Cases]) -> Poly:
        """The name of a key, of which `meaning` says what is known."""
        if key not in self._names:
            self._names[key] = Poly.var(f"?{len(self._names)}")
            self.add(meaning(self._names[key]))
        return self._names[key]

    def _quotient(self, a: Poly, b: Poly) -> Poly:
        """`a // b`; nothing is known of it where `b` may be less than 1."""
        if b == Poly.const(1):
            return a
        is_known = b.is_constant and b.constant > 0
        if a.is_constant and is_known:
            return Poly.const(a.constant // b.constant)

        def meaning(quotient: Poly) -> Cases:
            inside = (a - b * quotient, b * quotient + b - 1 - a)
            return (Case(inside),) if is_known else (Case((b - 1, *inside)), Case((-b,)))

        return self._named(("//", a, b), meaning)

    def _truncated(self, operator: str, a: Poly, b: int) -> Poly:
        def meaning(quotient: Poly) -> Cases:
            up = Case((a, a - b * quotient, b * quotient + (b - 1) - a))
            return up, Case((-a - 1, b * quotient - a, a - b * quotient + (b - 1)))

        quotient = self._named(("truncdiv", a, b), meaning)
        return quotient if operator == "truncdiv" else a - b * quotient

    def _exclusive_or(self, e: Expr, a: Poly, b: Poly) -> Poly:
        """`a ^ b`: below a power of two where both operands are; and two of the three numbers determine the third."""
        (low, high), key = integer_bounds(e[1]), ("^", e[1], a, b)
        if key in self._names:
            return self._names[key]
        others = [
            (name[2], name[3], v) for name, v in self._names.items() if type(name) is tuple and name[:2] == key[:2]
        ]
        value = self._named(key, lambda value: (Case((value - low, Poly.const(high) - value)),))
        constants = [part[2] for part in core.walk(e) if part[0] == "const" and is_index(part[1])]
        for bound in sorted({1 << k.bit_length() for k in constants} | {k for k in constants if k > 0 == k & k - 1}):
            above = (*outside(a, Poly(), Poly.const(bound)), *outside(b, Poly(), Poly.const(bound)))
            self.add((Case((value, bound - 1 - value)), *above))
        for other in others:
            equal = [x - y for x, y in zip((a, b, value), other, strict=True)]
            for k in range(3):
                different = (*differ(equal[k - 1], Poly()), *differ(equal[k - 2], Poly()))
                self.add((Case((), (equal[k],)), *different))
        return value

    def _least(self, a: Poly, b: Poly) -> Poly:
        if a.is_constant and b.is_constant:
            return min(a, b, key=lambda value: value.constant)
        return self._named(("min", a, b), lambda v: (Case((b - a,), (v - a,)), Case((a - b - 1,), (v - b,))))

    def _chosen(self, e: Expr, env: Env) -> Poly:
        first, second = self.number(e[3], env), self.number(e[4], env)

        def meaning(value: Poly) -> Cases:
            yes = both(self.cases(e[2], env, True), (Case((), (value - first,)),))
            return (*yes, *both(self.cases(e[2], env, False), (Case((), (value - second,)),)))

        return self._named(object(), meaning)

    # ---- conditions

    def cases(self, e: Expr, env: Env, truth: bool) -> Cases:
        """The cases of which one holds where a condition has this truth value; of what is not known, one without
        facts.
        """
        operator = e[0]
        if operator == "const":
            return ALWAYS if bool(e[2]) is truth else ()
        if operator == "not":
            return self.cases(e[2], env, not truth)
        if operator in ("and", "or"):
            a, b = self.cases(e[2], env, truth), self.cases(e[3], env, truth)
            if (operator == "or") is truth:
                return (*a, *b)
            return both(a, b) if len(a) * len(b) <= _MOST_CASES else ALWAYS
        if operator in core.COMPARISONS and is_index(e[2][1]) and core.is_affine_condition(e):
            difference = self.number(e[3], env) - self.number(e[2], env)
            return _compared(operator if truth else _NEGATED[operator], difference)
        return ALWAYS


def _widens(source: str, dtype: str) -> bool:
    """Whether a conversion is one of a signed integer to another that has all its values."""
    signed = source.startswith("int") and dtype.startswith("int")
    return signed and integer_bounds(source)[1] <= integer_bounds(dtype)[1]
