"""What is known of index variables at a place in a program, and what follows for expressions.

Sources are shapes, assumptions at the start of the function, and the enclosing loops and guards. Bounds are constants,
or symbolic loop ends (`i <= n - 1`). Nothing found here is a verdict; a pass uses it to propose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    logical_and,
)
from layoutproof.ir.interval import OPERATIONS, Interval, of_type, point
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, DeclBuffer, Evaluate, Seq, Stmt
from layoutproof.ir.visit import free_variables, holds_any, walk
from layoutproof.lowering.arith.affine import Affine, affine_of

_ROUNDS = 6  # symbolic ends put in one after the other: as deep as loops depend on each other's variables


@dataclass(frozen=True, slots=True)
class Known:
    """Of one variable: its interval, and symbolic ends (inclusive) where loops give them."""

    interval: Interval
    low: Affine | None = None
    high: Affine | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known of the variables in scope."""

    known: Mapping[Var, Known] = field(default_factory=dict)

    def with_range(self, var: Var, start: Expr, extent: Expr) -> Scope:
        """The scope inside a loop: `start <= var < start + extent`."""
        first, last = affine_of(start), affine_of(start) + affine_of(extent) + Affine({}, -1)
        low = self.bounds_of(first).low
        # A loop that never runs has no values; any interval will do.
        interval = Interval(low, max(low, self.bounds_of(last).high))
        # A range loads once; the same load inside the loop may find another value.
        ends = (first, last) if is_index_like(start) and is_index_like(extent) else (None, None)
        return Scope({**self.known, var: Known(interval, *ends)})

    def with_value(self, var: Var, value: Expr) -> Scope:
        """The scope inside a let of index arithmetic."""
        exact = affine_of(value)
        return Scope({**self.known, var: Known(self.bounds(value), exact, exact)})

    def with_condition(self, condition: Expr, holds: bool = True) -> Scope:
        """The scope under a condition; only conjuncts that bound one variable by constants have an effect."""
        scope = self
        for conjunct in conjuncts(condition, holds):
            scope = scope._tightened(conjunct)
        return scope

    def _tightened(self, conjunct: Affine) -> Scope:
        known = dict(self.known)
        for term, coefficient in conjunct.terms.items():
            if not isinstance(term, Var):
                continue
            rest = self.bounds_of(Affine({t: c for t, c in conjunct.terms.items() if t is not term}, conjunct.constant))
            old = known.get(term, Known(self.bounds(term)))
            # coefficient * term >= -rest for some value of rest, so at least -rest.high
            if coefficient > 0:
                interval = _at_least(old.interval, -(rest.high // coefficient))
            else:
                interval = _at_most(old.interval, rest.high // -coefficient)
            known[term] = Known(interval, old.low, old.high)
        return Scope(known)

    def bounds(self, expr: Expr) -> Interval:
        """An interval that holds every value of an integer expression, in integers without width."""
        rule = _BOUNDS.get(type(expr))
        return rule(self, expr) if rule is not None else of_type(expr.dtype)

    def bounds_of(self, affine: Affine) -> Interval:
        """An interval that holds every value of a normal form."""
        total = point(affine.constant)
        for term, coefficient in affine.terms.items():
            part = OPERATIONS[BinaryOp.MUL](self.bounds(term), point(coefficient))
            total = OPERATIONS[BinaryOp.ADD](total, part)
        return total

    def is_nonnegative(self, affine: Affine) -> bool:
        """Whether the normal form is shown to be at least 0; False says nothing."""
        for _ in range(_ROUNDS):
            if self.bounds_of(affine).low >= 0:
                return True
            lowered = self._lowered(affine)
            if lowered is None:
                return False
            affine = lowered
        return False

    def _lowered(self, affine: Affine) -> Affine | None:
        """A normal form that is never larger, with one variable replaced by its symbolic end; None if there is none."""
        for term, coefficient in affine.terms.items():
            known = self.known.get(term) if isinstance(term, Var) else None
            end = None if known is None else known.low if coefficient > 0 else known.high
            if end is not None and term not in end.terms and not end.is_constant:
                rest = Affine({t: c for t, c in affine.terms.items() if t != term}, affine.constant)
                return rest + end.scaled(coefficient)
        return None

    def proves(self, condition: Expr) -> bool:
        """Whether a condition of comparisons over index arithmetic is shown to hold; False says nothing."""
        if condition == TRUE:
            return True
        if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
            return self.proves(condition.lhs) and self.proves(condition.rhs)
        if isinstance(condition, Logical):
            return self.proves(condition.lhs) or self.proves(condition.rhs)
        if isinstance(condition, Compare) and condition.lhs.dtype.is_integer:
            return self._proves_comparison(condition)
        return False

    def _proves_comparison(self, condition: Compare) -> bool:
        difference = _without_casts(affine_of(condition.rhs) - affine_of(condition.lhs))
        one = Affine({}, 1)
        match condition.op:
            case CompareOp.LE:
                return self.is_nonnegative(difference)
            case CompareOp.LT:
                return self.is_nonnegative(difference - one)
            case CompareOp.GE:
                return self.is_nonnegative(difference.scaled(-1))
            case CompareOp.GT:
                return self.is_nonnegative(difference.scaled(-1) - one)
            case CompareOp.EQ:
                return difference.is_constant and difference.constant == 0
            case CompareOp.NE:
                return self.is_nonnegative(difference - one) or self.is_nonnegative(difference.scaled(-1) - one)


def _without_casts(affine: Affine) -> Affine:
    """The normal form with widened terms unwidened: variables of loops are known under their own width."""
    result = Affine({}, affine.constant)
    for term, coefficient in affine.terms.items():
        widened = isinstance(term, Cast) and term.value.dtype.is_integer and term.value.dtype.bits <= term.dtype.bits
        inner = affine_of(term.value) if isinstance(term, Cast) and widened else Affine({term: 1})
        result = result + inner.scaled(coefficient)
    return result


_INDEX_NODES = (IntImm, Var, Binary, Compare, Logical, Not, Select, IfThenElseExpr, Cast)


def is_index_like(expr: Expr) -> bool:
    """Whether an expression is arithmetic over integer and boolean variables and constants, without loads."""
    return all(
        isinstance(n, _INDEX_NODES) and n.dtype.lanes == 1 and (n.dtype.is_integer or n.dtype.is_bool)
        for n in walk(expr)
    )


def conjuncts(condition: Expr, holds: bool = True) -> list[Affine]:
    """Normal forms that are at least 0 if the condition has the truth value `holds`; unknown parts are left out."""
    if isinstance(condition, Not):
        return conjuncts(condition.operand, not holds)
    if isinstance(condition, Logical) and (condition.op is LogicalOp.AND) == holds:
        return conjuncts(condition.lhs, holds) + conjuncts(condition.rhs, holds)
    if not isinstance(condition, Compare) or not (is_index_like(condition.lhs) and is_index_like(condition.rhs)):
        return []
    difference = affine_of(condition.rhs) - affine_of(condition.lhs)
    one = Affine({}, 1)
    at_least: dict[tuple[CompareOp, bool], list[Affine]] = {
        (CompareOp.LE, True): [difference],
        (CompareOp.LT, True): [difference - one],
        (CompareOp.GE, True): [difference.scaled(-1)],
        (CompareOp.GT, True): [difference.scaled(-1) - one],
        (CompareOp.EQ, True): [difference, difference.scaled(-1)],
        (CompareOp.LE, False): [difference.scaled(-1) - one],
        (CompareOp.LT, False): [difference.scaled(-1)],
        (CompareOp.GE, False): [difference - one],
        (CompareOp.GT, False): [difference],
        (CompareOp.NE, False): [difference, difference.scaled(-1)],
    }
    return at_least.get((condition.op, holds), [])


def _at_least(interval: Interval, low: int) -> Interval:
    """The values from `low` on; all of them if that is a contradiction, since such code never runs."""
    return Interval(max(interval.low, low), interval.high) if low <= interval.high else interval


def _at_most(interval: Interval, high: int) -> Interval:
    return Interval(interval.low, min(interval.high, high)) if interval.low <= high else interval


def _variable(scope: Scope, expr: Var) -> Interval:
    known = scope.known.get(expr)
    return known.interval.clamp(of_type(expr.dtype)) if known is not None else of_type(expr.dtype)


def _binary(scope: Scope, expr: Binary) -> Interval:
    if expr.op in (BinaryOp.ADD, BinaryOp.SUB):
        return scope.bounds_of(affine_of(expr))
    return OPERATIONS[expr.op](scope.bounds(expr.lhs), scope.bounds(expr.rhs))


def _choice(scope: Scope, expr: Select | IfThenElseExpr) -> Interval:
    then = scope.with_condition(expr.condition).bounds(expr.then)
    return then.hull(scope.with_condition(expr.condition, False).bounds(expr.otherwise))


def _cast(scope: Scope, expr: Cast) -> Interval:
    if not expr.value.dtype.is_integer:
        return of_type(expr.dtype)
    inner = scope.bounds(expr.value)
    return inner if inner.fits(expr.dtype) else of_type(expr.dtype)


# As `interval_of`, with what conditions say of the sides of a choice and with casts that wrap; sums go through their
# normal form.
_BOUNDS: Mapping[type[Expr], Callable[[Scope, Any], Interval]] = {
    IntImm: lambda scope, e: point(e.value),
    Var: _variable,
    Binary: _binary,
    Select: _choice,
    IfThenElseExpr: _choice,
    Cast: _cast,
}


def shape_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """The variables in the shapes of the parameters' buffers, in order of appearance."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for extent in buffer.shape:
            found.update(dict.fromkeys(free_variables(extent)))
    return tuple(found)


def constants_of(func: PrimFunc) -> tuple[Var, ...]:
    """The integers that are the same throughout a call: the symbols of shapes and the integer parameters."""
    scalars = (p for p in func.params if p.dtype.is_integer)
    return tuple(dict.fromkeys((*shape_symbols(func), *scalars)))


def assumed_of_constants(func: PrimFunc) -> Expr | None:
    """The function's unconditional assumptions about its constants, as one condition; None if there are none."""
    known = set(constants_of(func))
    found = [
        c
        for c in _assumptions(func.body)
        if set(free_variables(c)) <= known and not any(isinstance(n, BufferLoad) for n in walk(c))
    ]
    return logical_and(*found) if found else None


def _assumptions(body: Stmt) -> Iterator[Expr]:
    stack = [body]
    while stack:
        stmt = stack.pop()
        if not holds_any(stmt, Assume):
            continue
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Assume):
            yield stmt.value.condition
        elif isinstance(stmt, Seq):
            stack += reversed(stmt.body)
        elif isinstance(stmt, Allocate | DeclBuffer | AttrStmt) or (isinstance(stmt, Block) and stmt.is_root):
            stack.append(stmt.body)


def symbol_scope(func: PrimFunc) -> Scope:
    """The scope at a function's start."""
    scope = Scope({symbol: Known(Interval(0, symbol.dtype.max_int)) for symbol in shape_symbols(func)})
    condition = assumed_of_constants(func)
    return scope if condition is None else scope.with_condition(condition)
