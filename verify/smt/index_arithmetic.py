"""Index arithmetic as z3 integers, with products and quotients of variables, and the search for an instance that
integer sets cannot state. z3's `div` has a remainder that is never negative; ours rounds down, so a divisor that may be
negative is negated. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.verify.program.questions import NotEncodable, Search, no_answer, nothing
from layoutproof.verify.smt.solver import Answer, Query

if TYPE_CHECKING:
    from layoutproof.verify.program.instances import IterationDomain


class NotInteger(NotEncodable):
    """An expression that is no integer index arithmetic."""


class IntEncoder:
    """Expressions in one query. `values` gives the z3 term of each name; names without one become integer constants.

    `width` is the number of bits, sign excluded, that operands of `& | ^` are known to fit in; None refuses them unless
    one operand is a constant.
    """

    def __init__(self, query: Query, values: Mapping[str, Any] | None = None, width: int | None = None) -> None:
        self.query = query
        self.z3 = query.z3
        self.width = width
        self.divisors: list[Any] = []
        self._values: dict[str, Any] = dict(values) if values is not None else {}

    def integer(self, expr: Expr) -> Any:
        """The z3 integer of an integer expression. Raises NotInteger."""
        encode = _INTEGERS.get(type(expr))
        if encode is None or not expr.dtype.is_integer or expr.dtype.lanes != 1:
            raise NotInteger(expr, f"{type(expr).__name__} of type {expr.dtype} is not integer index arithmetic")
        return encode(self, expr)

    def condition(self, expr: Expr) -> Any:
        """The z3 truth value of a condition. Raises NotInteger."""
        encode = _CONDITIONS.get(type(expr))
        if encode is None or not expr.dtype.is_bool or expr.dtype.lanes != 1:
            raise NotInteger(expr, f"{type(expr).__name__} of type {expr.dtype} is not a condition on indices")
        return encode(self, expr)

    def variable(self, name: str) -> Any:
        """The term a name stands for."""
        term = self._values.get(name)
        if term is None:
            term = self._values[name] = self.query.integer(name)
        return term

    def floor_divide(self, a: Any, b: Any) -> Any:
        """The quotient rounded down; the divisor is recorded in `divisors`."""
        if self.z3.is_int_value(b):
            size = b.as_long()
            if size != 0:
                return a / b if size > 0 else (-a) / self.query.number(-size)
        self.divisors.append(b)
        return self.z3.If(b > 0, a / b, (-a) / (-b))

    def truncate_divide(self, a: Any, b: Any) -> Any:
        """The quotient rounded to zero."""
        negative = a < 0
        quotient = self.floor_divide(self.z3.If(negative, -a, a), self.z3.If(b < 0, -b, b))
        return self.z3.If(negative == (b < 0), quotient, -quotient)

    def bits(self, a: Any, width: int) -> list[Any]:
        """The lowest `width` bits as integers 0 or 1."""
        return [(a / self.query.number(1 << k)) % 2 for k in range(width)]

    def bitwise(self, op: BinaryOp, a: Any, b: Any, width: int) -> Any:
        """`a op b` where both lie in `[-2**width, 2**width)`."""
        total = self.query.number(0)
        for k, (x, y) in enumerate(zip(self.bits(a, width + 1), self.bits(b, width + 1), strict=True)):
            both = (x + y) / 2
            bit = both if op is BinaryOp.BITAND else x + y - both if op is BinaryOp.BITOR else (x + y) % 2
            total = total + bit * self.query.number(-(1 << k) if k == width else 1 << k)
        return total


def _binary(enc: IntEncoder, expr: Binary) -> Any:
    encode = _BINARY.get(expr.op)
    if encode is None:
        raise NotInteger(expr, f"`{expr.op}` is not integer index arithmetic")
    return encode(enc, expr, enc.integer(expr.lhs), enc.integer(expr.rhs))


def _shift(enc: IntEncoder, expr: Binary, a: Any, _: Any) -> Any:
    amount = expr.rhs
    if not isinstance(amount, IntImm) or not 0 <= amount.value <= 62:
        raise NotInteger(expr, "a shift whose amount is not a constant from 0 to 62")
    power = enc.query.number(1 << amount.value)
    return a * power if expr.op is BinaryOp.SHL else a / power


def _bitwise(enc: IntEncoder, expr: Binary, a: Any, b: Any) -> Any:
    if enc.width is None:
        raise NotInteger(expr, f"an operand of `{expr.op}` has no known bound, so it has no fixed number of bits")
    return enc.bitwise(expr.op, a, b, enc.width)


_BINARY: dict[BinaryOp, Callable[[IntEncoder, Binary, Any, Any], Any]] = {
    BinaryOp.ADD: lambda enc, e, a, b: a + b,
    BinaryOp.SUB: lambda enc, e, a, b: a - b,
    BinaryOp.MUL: lambda enc, e, a, b: a * b,
    BinaryOp.FLOORDIV: lambda enc, e, a, b: enc.floor_divide(a, b),
    BinaryOp.FLOORMOD: lambda enc, e, a, b: a - b * enc.floor_divide(a, b),
    BinaryOp.TRUNCDIV: lambda enc, e, a, b: enc.truncate_divide(a, b),
    BinaryOp.TRUNCMOD: lambda enc, e, a, b: a - b * enc.truncate_divide(a, b),
    BinaryOp.MIN: lambda enc, e, a, b: enc.z3.If(a < b, a, b),
    BinaryOp.MAX: lambda enc, e, a, b: enc.z3.If(a > b, a, b),
    BinaryOp.BITAND: _bitwise,
    BinaryOp.BITOR: _bitwise,
    BinaryOp.BITXOR: _bitwise,
    BinaryOp.SHL: _shift,
    BinaryOp.SHR: _shift,
}


def _choice(enc: IntEncoder, expr: Select | IfThenElseExpr) -> Any:
    return enc.z3.If(enc.condition(expr.condition), enc.integer(expr.then), enc.integer(expr.otherwise))


def _cast(enc: IntEncoder, expr: Cast) -> Any:
    if expr.value.dtype.is_bool:
        return enc.z3.If(enc.condition(expr.value), enc.query.number(1), enc.query.number(0))
    return enc.integer(expr.value)


def _call(enc: IntEncoder, expr: Call) -> Any:
    if expr.function != "abs":
        raise NotInteger(expr, f"{expr.function} is not integer index arithmetic")
    value = enc.integer(expr.arguments[0])
    return enc.z3.If(value < 0, -value, value)


_INTEGERS: dict[type[Expr], Callable[[IntEncoder, Any], Any]] = {
    IntImm: lambda enc, e: enc.query.number(e.value),
    Var: lambda enc, e: enc.variable(e.name),
    Binary: _binary,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
    Call: _call,
}


def _compare(enc: IntEncoder, expr: Compare) -> Any:
    side = enc.condition if expr.lhs.dtype.is_bool else enc.integer
    return COMPARISONS[expr.op](side(expr.lhs), side(expr.rhs))


def _logical(enc: IntEncoder, expr: Logical) -> Any:
    join = enc.z3.And if expr.op is LogicalOp.AND else enc.z3.Or
    return join(enc.condition(expr.lhs), enc.condition(expr.rhs))


_CONDITIONS: dict[type[Expr], Callable[[IntEncoder, Any], Any]] = {
    IntImm: lambda enc, e: enc.z3.BoolVal(bool(e.value), enc.query.ctx),
    Compare: _compare,
    Logical: _logical,
    Not: lambda enc, e: enc.z3.Not(enc.condition(e.operand)),
    Select: lambda enc, e: enc.z3.If(enc.condition(e.condition), enc.condition(e.then), enc.condition(e.otherwise)),
    IfThenElseExpr: lambda enc, e: enc.z3.If(
        enc.condition(e.condition), enc.condition(e.then), enc.condition(e.otherwise)
    ),
    Cast: lambda enc, e: enc.condition(e.value) if e.value.dtype.is_bool else enc.integer(e.value) != 0,
}


RLIMIT = 600_000
ENGINE = "z3"


def search_instances(
    domain: IterationDomain,
    assumed: Sequence[Expr],
    ranges: Mapping[Var, tuple[int | None, int | None]],
    conditions: Sequence[Expr],
    rlimit: int = RLIMIT,
) -> Search:
    """An instance of the iteration domain where every condition holds.

    A quotient by 0 may be anything here: that none is evaluated is an obligation of its own.
    """
    query = Query()
    encoder = IntEncoder(query)
    for variable, (low, high) in ranges.items():
        add_bounds(query, encoder.variable(variable.name), low, high)
    missing = _add_domain(query, encoder, domain, assumed)
    for condition in conditions:
        try:
            query.add(encoder.condition(condition))
        except NotInteger as problem:
            # Without a condition that was asked, an instance would be no answer.
            return no_answer(ENGINE, problem.reason)
    outcome = query.solve(rlimit=rlimit)
    if outcome.answer is Answer.UNSAT:
        return nothing(ENGINE)
    if outcome.answer is Answer.UNKNOWN:
        return no_answer(ENGINE, outcome.reason or "z3 does not know", *outcome.because)
    names = {v.name for v in ranges} | {u.var.name for u in domain.unknowns} | {d.var.name for d in domain.dims}
    # A name without a value in the model may have any value.
    return Search({name: outcome.model.get(name, 0) for name in sorted(names)}, missing is None, missing, ENGINE)


def _add_domain(query: Query, encoder: IntEncoder, domain: IterationDomain, assumed: Sequence[Expr]) -> str | None:
    """Assert a domain and assumptions; the reason for a part of them that was left out."""
    missing: str | None = None
    for unknown in domain.unknowns:
        add_bounds(query, encoder.variable(unknown.var.name), unknown.var.dtype.min_int, unknown.var.dtype.max_int)
    for dim in domain.dims:
        variable = encoder.variable(dim.var.name)
        try:
            start = encoder.integer(dim.start)
            query.add(variable >= start)
            query.add(variable < start + encoder.integer(dim.extent))
        except NotInteger as problem:
            missing = problem.reason
    for condition in (*assumed, *(g.as_expr for g in domain.guards)):
        try:
            query.add(encoder.condition(condition))
        except NotInteger as problem:
            missing = problem.reason
    return missing


def add_bounds(query: Query, term: Any, low: int | None, high: int | None) -> None:
    """Assert the bounds of an integer term that there are."""
    if low is not None:
        query.add(term >= query.number(low))
    if high is not None:
        query.add(term <= query.number(high))
