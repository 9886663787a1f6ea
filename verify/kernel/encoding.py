"""Index arithmetic as polynomials over integer-valued names: what a question to `integers` says.

Every name that is introduced stands for an integer of one execution. What no polynomial says (a load, XOR, a wrapping
conversion) becomes a name without facts: then a question has more solutions than the program has executions, and
fewer are refuted. Equal operations on equal operands have one name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Expr, Loop, integer_bounds, walk
from layoutproof.verify.kernel.rejected import Rejected

Env = Mapping[str, Poly]
Cases = tuple[Case, ...]
TRUE: Cases = (Case(),)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_WIDENING = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_MOST_CASES = 64


def is_integer(dtype: str) -> bool:
    """Whether values of a type are integers of fixed width."""
    return dtype.lstrip("u") in _WIDENING


def loads_of(e: Expr) -> list[Expr]:
    """The loads in an expression."""
    return [part for part in walk(e) if part[0] == "load"]


def is_affine_condition(e: Expr) -> bool:
    """Whether a condition speaks of integers alone, without data: its operations are index arithmetic, which does not
    wrap. Beside data they wrap.
    """
    return all(part[0] not in ("load", "undef") and (is_integer(part[1]) or part[1] == "bool") for part in walk(e))


class Context:
    """The facts of one question, and the names in it."""

    def __init__(self, symbols: Sequence[tuple[str, str]], assumed: Sequence[Expr] = ()) -> None:
        self.facts: list[Poly] = []
        self.zeros: list[Poly] = []
        self.choices: list[Cases] = []
        self._names: dict[object, Poly] = {}
        # No name of a text is one of those that `bind` and others make.
        self.symbols: Env = {name: Poly.var(f"${name}") for name, dtype in symbols if is_integer(dtype)}
        for name, dtype in symbols:
            if is_integer(dtype):
                low, high = integer_bounds(dtype)
                self.facts += [self.symbols[name] - low, Poly.const(high) - self.symbols[name]]
        for condition in assumed:
            self.require(condition, self.symbols)

    def copy(self) -> Context:
        """Another one that knows the same, by the same names."""
        other = Context(())
        other.symbols, other._names = self.symbols, dict(self._names)
        other.facts, other.zeros, other.choices = list(self.facts), list(self.zeros), list(self.choices)
        return other

    def question(self, *cases: Case) -> Question:
        """The question with further conditions."""
        facts = (*self.facts, *(fact for case in cases for fact in case.facts))
        zeros = (*self.zeros, *(zero for case in cases for zero in case.zeros))
        return Question(facts, zeros, tuple(self.choices))

    def bind(self, loops: Sequence[Loop], tag: str) -> dict[str, Poly]:
        """Names for the variables of loops, `tag` and a number, with their ranges."""
        env = dict(self.symbols)
        for number, loop in enumerate(loops):
            value = Poly.var(f"{tag}{number}")
            self.between(value, self.number(loop.start, env), self.number(loop.extent, env))
            env[loop.var] = value
        return env

    def between(self, value: Poly, start: Poly, extent: Poly) -> None:
        """The fact `start <= value < start + extent`."""
        self.facts += [value - start, start + extent - value - 1]

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
        if operator == "cast" and _WIDENING.get(e[2][1], 99) <= _WIDENING.get(dtype, 0):
            return self.number(e[2], env)
        if operator in ("+", "-", "*", "//", "%", "min", "max"):
            return self._operation(operator, self.number(e[2], env), self.number(e[3], env))
        if operator in ("truncdiv", "truncmod", "&", ">>") and e[3][0] == "const":
            value = self._by_constant(operator, self.number(e[2], env), int(e[3][2]))
            if value is not None:
                return value
        return self._named(self._key(e, env), dtype)

    def _operation(self, operator: str, a: Poly, b: Poly) -> Poly:
        if operator in ("//", "%"):
            quotient = self._quotient(a, b)
            return quotient if operator == "//" else a - b * quotient
        if operator in ("min", "max"):
            return self._least(a, b) if operator == "min" else -self._least(-a, -b)
        return a + b if operator == "+" else a - b if operator == "-" else a * b

    def _by_constant(self, operator: str, a: Poly, b: int) -> Poly | None:
        if operator in ("truncdiv", "truncmod"):
            return self._truncated(operator, a, b) if b > 0 else None
        if operator == ">>":
            return self._quotient(a, Poly.const(1 << b)) if 0 <= b < 63 else None
        # A mask of low bits.
        return a - self._quotient(a, Poly.const(b + 1)) * (b + 1) if b > 0 and b & b + 1 == 0 else None

    def _key(self, e: Expr, env: Env) -> object:
        """What two expressions have in common that have one value: operation and the values of the operands.

        Loads never do, since what they find may change, nor undefined values.
        """
        if e[0] in ("load", "undef"):
            return object()
        return (e[0], e[1], *(self._part(part, env) for part in e[2:]))

    def _part(self, part: object, env: Env) -> object:
        if not isinstance(part, tuple):
            return part
        if is_integer(part[1]):
            return self.number(part, env)
        return self._key(part, env)

    def _named(self, key: object, dtype: str) -> Poly:
        """The name of an integer of which only its type is known."""
        if not is_integer(dtype):
            raise Rejected(f"a value of type {dtype} is no integer")
        if key not in self._names:
            value = self._names[key] = Poly.var(f"?{len(self._names)}")
            low, high = integer_bounds(dtype)
            self.facts += [value - low, Poly.const(high) - value]
        return self._names[key]

    def _fresh(self, key: object) -> tuple[Poly, bool]:
        """The name of a key, and whether it is new."""
        new = key not in self._names
        if new:
            self._names[key] = Poly.var(f"?{len(self._names)}")
        return self._names[key], new

    def _quotient(self, a: Poly, b: Poly) -> Poly:
        """`a // b`; nothing is known of it where `b` may be less than 1."""
        if b.is_constant and b.constant == 1:
            return a
        if a.is_constant and b.is_constant and b.constant > 0:
            return Poly.const(a.constant // b.constant)
        quotient, new = self._fresh(("//", a, b))
        if new:
            inside = (a - b * quotient, b * quotient + b - 1 - a)
            if b.is_constant and b.constant > 0:
                self.facts += inside
            else:
                self.choices.append((Case((b - 1, *inside)), Case((-b,))))
        return quotient

    def _truncated(self, operator: str, a: Poly, b: int) -> Poly:
        quotient, new = self._fresh(("truncdiv", a, b))
        if new:
            up = Case((a, a - b * quotient, b * quotient + (b - 1) - a))
            down = Case((-a - 1, b * quotient - a, a - b * quotient + (b - 1)))
            self.choices.append((up, down))
        return quotient if operator == "truncdiv" else a - b * quotient

    def _least(self, a: Poly, b: Poly) -> Poly:
        value, new = self._fresh(("min", a, b))
        if new:
            self.choices.append((Case((b - a,), (value - a,)), Case((a - b - 1,), (value - b,))))
        return value

    def _chosen(self, e: Expr, env: Env) -> Poly:
        first, second = self.number(e[3], env), self.number(e[4], env)
        value, _ = self._fresh(object())
        yes = [Case(c.facts, (*c.zeros, value - first)) for c in self.cases(e[2], env, True)]
        no = [Case(c.facts, (*c.zeros, value - second)) for c in self.cases(e[2], env, False)]
        self.add((*yes, *no))
        return value

    # ---- conditions

    def cases(self, e: Expr, env: Env, truth: bool) -> Cases:
        """The cases of which one holds where a condition has this truth value; of what is not known, one without
        facts.
        """
        operator = e[0]
        if operator == "const":
            return TRUE if bool(e[2]) is truth else ()
        if operator == "not":
            return self.cases(e[2], env, not truth)
        if operator in ("and", "or"):
            a, b = self.cases(e[2], env, truth), self.cases(e[3], env, truth)
            if (operator == "or") is truth:
                return (*a, *b)
            joined = tuple(Case((*x.facts, *y.facts), (*x.zeros, *y.zeros)) for x in a for y in b)
            return joined if len(joined) <= _MOST_CASES else TRUE
        if operator in COMPARISONS and is_integer(e[2][1]) and is_affine_condition(e):
            return _compared(operator, self.number(e[3], env) - self.number(e[2], env), truth)
        return TRUE


def _compared(operator: str, d: Poly, truth: bool) -> Cases:
    """The cases of a comparison whose right side is `d` more than its left side."""
    negated = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!=", "!=": "=="}
    match operator if truth else negated[operator]:
        case "<":
            return (Case((d - 1,)),)
        case "<=":
            return (Case((d,)),)
        case ">":
            return (Case((-d - 1,)),)
        case ">=":
            return (Case((-d,)),)
        case "==":
            return (Case((), (d,)),)
        case _:
            return (Case((d - 1,)), Case((-d - 1,)))


def differ(a: Poly, b: Poly) -> Cases:
    """The cases in which two integers are different."""
    return _compared("!=", b - a, True)
