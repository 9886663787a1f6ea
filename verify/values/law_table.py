"""The laws as data: equalities of expressions (`laws.json`), read once, matched against expressions and turned into
claims that can be proved; and the values of math functions at single points, each by name. Part of the trust base.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from layoutproof.ir.dtype import BOOL, DType, Kind
from layoutproof.ir.expr import Binary, Expr, FloatImm, IfThenElseExpr, IntImm, Not, Select, Var, equal, logical_and
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BINARY_OPERATORS, BinaryOp
from layoutproof.ir.visit import children, walk
from layoutproof.verify.smt.encode_values import INTERPRETED, ValueEncoder, same
from layoutproof.verify.values.knowledge import ANY, FINITE, NAN, NEG, NEG_INF, NEG_ZERO, POS, POS_ZERO, ZERO
from layoutproof.verify.values.question import (
    Given,
    Holds,
    Identical,
    NotInfinite,
    NotNan,
    NotNegativeZero,
    Property,
    placeholder,
)
from layoutproof.verify.values.terms import is_identical

_INF = math.inf
# function -> argument, value
POINTS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp": ((0.0, 1.0), (-0.0, 1.0), (-_INF, 0.0), (_INF, _INF)),
    "exp2": ((0.0, 1.0), (-0.0, 1.0), (-_INF, 0.0), (_INF, _INF)),
    "log": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "log2": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "log10": ((1.0, 0.0), (0.0, -_INF), (-0.0, -_INF), (_INF, _INF)),
    "sin": ((0.0, 0.0), (-0.0, -0.0)),
    "cos": ((0.0, 1.0), (-0.0, 1.0)),
    "tan": ((0.0, 0.0), (-0.0, -0.0)),
    "sinh": ((0.0, 0.0), (-0.0, -0.0), (_INF, _INF), (-_INF, -_INF)),
    "cosh": ((0.0, 1.0), (-0.0, 1.0), (_INF, _INF), (-_INF, _INF)),
    "tanh": ((0.0, 0.0), (-0.0, -0.0), (_INF, 1.0), (-_INF, -1.0)),
    "atan": ((0.0, 0.0), (-0.0, -0.0)),
    "erf": ((0.0, 0.0), (-0.0, -0.0), (_INF, 1.0), (-_INF, -1.0)),
    "rsqrt": ((1.0, 1.0), (4.0, 0.5), (0.0, _INF), (_INF, 0.0)),
    "sigmoid": ((0.0, 0.5), (-0.0, 0.5), (-_INF, 0.0), (_INF, 1.0)),
}


@dataclass(frozen=True, slots=True)
class Axiom:
    """One assumption about a math function of one type: its name in reports, and what is asserted."""

    name: str
    assertion: str


def axiom_name(function: str, argument: float, value: float) -> str:
    """`exp(-inf) = 0.0`."""
    return f"{function}({argument!r}) = {value!r}"


def known_value(function: str, argument: float) -> float | None:
    """The value of a math function at an exact point, or None."""
    if math.isnan(argument) and function in POINTS:
        return math.nan
    return next((value for point, value in POINTS.get(function, ()) if is_identical(point, argument)), None)


def axioms_of(exprs: Iterable[Expr], encoder: ValueEncoder) -> tuple[Axiom, ...]:
    """The axioms of every function that the expressions call, in a fixed order."""
    called = {
        (n.function, n.dtype): None
        for expr in exprs
        for n in walk(expr)
        if isinstance(n, Call) and n.function not in INTERPRETED
    }
    return tuple(axiom for function, dtype in called for axiom in _axioms(function, dtype, encoder))


def _axioms(function: str, dtype: DType, encoder: ValueEncoder) -> list[Axiom]:
    found = []
    points = POINTS.get(function, ())
    for argument, value in (*points, *(((math.nan, math.nan),) if points else ())):
        call = f"(m_{function}_{dtype} {encoder.real(argument, dtype)})"
        found.append(Axiom(axiom_name(function, argument, value), same(call, encoder.real(value, dtype))))
    return found


_FILE = "laws.json"
ONE = "one"
KINDS_OF: Mapping[str, int] = {
    "-0.0": NEG_ZERO,
    "+0.0": POS_ZERO,
    "zero": ZERO,
    "finite": FINITE,
    "not -0.0": ANY & ~NEG_ZERO,
    "not nan": ANY & ~NAN,
    "not negative": ANY & ~(NEG | NEG_ZERO | NEG_INF),
    "finite and negative": NEG | NEG_ZERO,
    "finite and positive": POS | POS_ZERO,
}


@dataclass(frozen=True, slots=True)
class Law:
    """One law. `where` maps a letter to the name of a side condition (`KINDS_OF`, or `one`); `not_above` is a pair `(a,
    b)`: where both are numbers, `a > b` is false; of `apart` not both are zero.
    """

    name: str
    of: str
    pattern: str
    result: str
    where: tuple[tuple[str, str], ...] = ()
    not_above: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    def holds_for(self, dtype: DType) -> bool:
        """Whether the law speaks of a type."""
        match self.of:
            case "float":
                return dtype.is_float
            case "integer":
                return dtype.is_integer
            case "number":
                return dtype.is_float or dtype.is_integer
            case _:
                return True

    def left(self, dtype: DType) -> Expr:
        """The pattern at a type."""
        return _parsed(self.pattern, dtype)

    def right(self, dtype: DType) -> Expr:
        """The result at a type."""
        return _parsed(self.result, dtype)

    def conditions(self, dtype: DType) -> tuple[tuple[Given, ...], tuple[Expr, ...]]:
        """The side conditions as hypotheses."""
        given = tuple(Given(Var(letter, dtype), p) for letter, name in self.where for p in _properties(name, dtype))
        conditions: list[Expr] = []
        if self.not_above:
            a, b = (Var(letter, dtype) for letter in self.not_above)
            conditions.append(Not(a > b))
        if self.apart:
            zero = FloatImm(0.0, dtype)
            a, b = (Var(letter, dtype) for letter in self.apart)
            conditions.append(Not(logical_and(equal(a, zero), equal(b, zero))))
        return given, tuple(conditions)


@cache
def laws() -> tuple[Law, ...]:
    """Every law, in the order in which they are tried."""
    found = []
    for entry in json.loads(resources.files(__package__).joinpath(_FILE).read_text(encoding="utf-8")):
        where = tuple(entry.get("where", {}).items())
        pairs = (tuple(entry.get("not_above", ())), tuple(entry.get("apart", ())))
        found.append(Law(entry["name"], entry["of"], entry["pattern"], entry["result"], where, *pairs))
    return tuple(found)


@cache
def laws_for(dtype: DType, root: str) -> tuple[tuple[Law, Expr], ...]:
    """The laws for expressions of a type whose root is an operation, with their patterns."""
    return tuple((law, left) for law in laws() if law.holds_for(dtype) if operation_of(left := law.left(dtype)) == root)


def operation_of(expr: Expr) -> str:
    """The operation at the root of an expression."""
    match expr:
        case Binary(op=op):
            return op.value
        case Call(function=function):
            return function
        case _:
            return type(expr).__name__


def match(pattern: Expr, expr: Expr) -> dict[str, Expr] | None:
    """What the letters of a pattern stand for in an expression, or None."""
    found: dict[str, Expr] = {}
    return found if _matches(pattern, expr, found) else None


def _matches(pattern: Node, expr: Node, found: dict[str, Expr]) -> bool:
    if isinstance(pattern, Var) and isinstance(expr, Expr):
        if pattern.dtype != expr.dtype:
            return False
        known = found.setdefault(pattern.name, expr)
        return known == expr
    if isinstance(pattern, IntImm):
        return pattern == expr
    if type(pattern) is not type(expr):
        return False
    if isinstance(pattern, Expr) and isinstance(expr, Expr) and operation_of(pattern) != operation_of(expr):
        return False
    below, above = children(pattern), children(expr)
    return len(below) == len(above) and all(_matches(p, e, found) for p, e in zip(below, above, strict=True))


@cache
def _parsed(text: str, dtype: DType) -> Expr:
    return _read(ast.parse(text, mode="eval").body, dtype)


def _read(node: ast.expr, dtype: DType) -> Expr:
    match node:
        case ast.Name(id="ones"):
            return IntImm(-1 if dtype.kind is Kind.INT else dtype.max_int, dtype)
        case ast.Name(id=name):
            return Var(name, BOOL if name == "c" else dtype)
        case ast.Constant(value=int(value)):
            return IntImm(value, dtype)
        case ast.BinOp(op=op, left=left, right=right):
            return Binary(BINARY_OPERATORS[type(op)], _read(left, dtype), _read(right, dtype))
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[a, b]):
            return Binary(BinaryOp(name), _read(a, dtype), _read(b, dtype))
        case ast.Call(func=ast.Name(id="select" | "if_then_else" as name), args=[c, a, b]):
            choice = Select if name == "select" else IfThenElseExpr
            return choice(_read(c, dtype), _read(a, dtype), _read(b, dtype))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return Call(name, tuple(_read(a, dtype) for a in arguments))
        case _:
            raise ValueError(f"a law contains {ast.unparse(node)}")


def _properties(name: str, dtype: DType) -> tuple[Property, ...]:
    """A side condition as properties of a variable."""
    value, zero, one = placeholder(dtype), FloatImm(0.0, dtype), FloatImm(1.0, dtype)
    conditions: dict[str, tuple[Property, ...]] = {
        "-0.0": (Identical(FloatImm(-0.0, dtype)),),
        "+0.0": (Identical(zero),),
        ONE: (Identical(one),),
        "zero": (Holds(equal(value, zero)),),
        "finite": (NotNan(), NotInfinite()),
        "not -0.0": (NotNegativeZero(),),
        "not nan": (NotNan(),),
        "not negative": (NotNegativeZero(), Holds(Not(value < zero))),
        "finite and negative": (NotNan(), NotInfinite(), Holds(one / value <= zero)),
        "finite and positive": (NotNan(), NotInfinite(), Holds(one / value >= zero)),
    }
    if name not in conditions:
        raise ValueError(f"a law has the side condition {name!r}")
    return conditions[name]
