"""Shrinking loops to the iterations that a guard lets through, with bounds from the guard's integer set.

Comparisons of sums, joined by `and` and `or`, are bounds themselves, symbols included; other conditions over constant
ranges are evaluated at every point. Nothing here is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import ClassVar

from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Logical, Not, Var, binary, const, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Block, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.visit import free_variables, map_children, substitute
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.arith.known_facts import Scope, conjuncts, symbol_scope
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.nest import depends, loops_of_block, parts_of, under
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.lowering.passes.witness_maps import rewrite_of

MAX_POINTS = 4096
"""Points that are looked at one by one, at most, for one condition."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Ends of a variable: it is at least each of `lows` and less than each of `ends`."""

    lows: tuple[Affine, ...] = ()
    ends: tuple[Affine, ...] = ()

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.lows + other.lows, self.ends + other.ends)


@dataclass(frozen=True, slots=True)
class GuardReader:
    """Reads guards for the bounds of `loop`. `inner` are the loops between it and the guard, outermost first; `scope`
    is outside of it, `whole` is its range.
    """

    loop: For
    inner: Sequence[For]
    scope: Scope
    whole: Bounds

    def bounds(self, condition: Expr, holds: bool = True) -> Bounds:
        """Bounds of the loop's variable if `condition` has the truth value `holds`; none if nothing is known."""
        match condition:
            case Not():
                return self.bounds(condition.operand, not holds)
            case Logical() if (condition.op is LogicalOp.AND) == holds:
                return self.bounds(condition.lhs, holds) + self.bounds(condition.rhs, holds)
            case Logical():
                return self.hull(self.bounds(condition.lhs, holds), self.bounds(condition.rhs, holds))
            case Compare() if _splits(condition, holds):
                below, above = (Compare(op, condition.lhs, condition.rhs) for op in (CompareOp.LT, CompareOp.GT))
                return self.hull(self.bounds(below), self.bounds(above))
            case _:
                if not is_pure(condition):
                    return Bounds()
                found = sum((self.of_form(form) for form in conjuncts(condition, holds)), Bounds())
                return found if found.lows or found.ends else self.of_points(condition, holds)

    def says_all(self, condition: Expr) -> bool:
        """Whether the bounds that a condition gives are equivalent to it, whatever inner loops do."""
        if isinstance(condition, Not):
            positive = condition.operand
            return isinstance(positive, Compare) and self.says_all(
                Compare(positive.op.negated, positive.lhs, positive.rhs)
            )
        if not isinstance(condition, Compare) or not is_pure(condition):
            return False
        forms = conjuncts(condition)
        spoken_of = {v for form in forms for term in form.terms for v in free_variables(term)}
        if not forms or spoken_of & {loop.var for loop in self.inner}:
            return False
        return all(len(found.lows) + len(found.ends) == 1 for found in map(self.of_outer_form, forms))

    def hull(self, one: Bounds, other: Bounds) -> Bounds:
        """What holds where either does."""
        one, other = one + self.whole, other + self.whole
        if self.is_empty(one) or self.is_empty(other):
            return other if self.is_empty(one) else one
        low = self.extreme([self.extreme(b.lows, BinaryOp.MAX) for b in (one, other)], BinaryOp.MIN)
        end = self.extreme([self.extreme(b.ends, BinaryOp.MIN) for b in (one, other)], BinaryOp.MAX)
        return Bounds((low,), (end,))

    def is_empty(self, bounds: Bounds) -> bool:
        """Whether some end is known to be past another."""
        return any(self.scope.is_nonnegative(low - end) for low in bounds.lows for end in bounds.ends)

    def extreme(self, ends: Sequence[Affine], op: BinaryOp) -> Affine:
        """The least or the largest of some ends, as one; those that are known not to be it are left out."""
        return reduce(lambda a, b: self._one_of(a, b, op), ends)

    def _one_of(self, a: Affine, b: Affine, op: BinaryOp) -> Affine:
        least, largest = (a, b) if op is BinaryOp.MIN else (b, a)
        if self.scope.is_nonnegative(largest - least):
            return a
        if self.scope.is_nonnegative(least - largest):
            return b
        dtype = self.loop.var.dtype
        return Affine({binary(op, written(a, dtype), written(b, dtype)): 1})

    def of_form(self, form: Affine) -> Bounds:
        """The bounds of `form >= 0`: inner loops are at their most permissive values."""
        for loop in reversed(self.inner):
            coefficient = form.terms.get(loop.var, 0)
            rest = Affine({t: c for t, c in form.terms.items() if t != loop.var}, form.constant)
            if any(loop.var in free_variables(term) for term in rest.terms):
                return Bounds()
            first = affine_of(loop.start)
            end = first + affine_of(loop.extent) + Affine({}, -1) if coefficient > 0 else first
            form = rest + end.scaled(coefficient)
        return self.of_outer_form(form)

    def of_outer_form(self, form: Affine) -> Bounds:
        """`form >= 0` without inner loops: the variable by itself, or in one quotient by a constant."""
        variable = self.loop.var
        using = [term for term in form.terms if variable in free_variables(term)]
        if len(using) != 1:
            return Bounds()
        term, coefficient = using[0], form.terms[using[0]]
        rest = Affine({t: c for t, c in form.terms.items() if t != term}, form.constant)
        # Rounded up below, rounded down above.
        low = _floor(rest.scaled(-1) + Affine({}, coefficient - 1), coefficient, variable) if coefficient > 0 else None
        high = _floor(rest, -coefficient, variable) if coefficient < 0 else None
        if term == variable:
            return Bounds(() if low is None else (low,), () if high is None else (high + Affine({}, 1),))
        if (
            isinstance(term, Binary)
            and term.op is BinaryOp.FLOORDIV
            and isinstance(term.rhs, IntImm)
            and term.rhs.value > 0
        ):
            divisor, dividend = term.rhs.value, affine_of(term.lhs)
            if low is not None:
                return self.of_outer_form(dividend - low.scaled(divisor))
            if high is not None:
                return self.of_outer_form(high.scaled(divisor) + Affine({}, divisor - 1) - dividend)
        return Bounds()

    def of_points(self, condition: Expr, holds: bool) -> Bounds:
        """The ends of the points at which a condition has a truth value, evaluated one by one if all ranges are
        constant.
        """
        points = self.points(condition)
        if points is None:
            return Bounds()
        found = [point[self.loop.var.name] for point in points if _value(condition, point) is not (not holds)]
        if not found:
            # Nothing passes: an empty range.
            return Bounds((Affine({}, 0),), (Affine({}, 0),))
        return Bounds((Affine({}, min(found)),), (Affine({}, max(found) + 1),))

    def points(self, condition: Expr) -> list[dict[str, int]] | None:
        """Every point of the loop and the inner loops in a condition; None if they are too many or not known."""
        loops = [
            loop for loop in (self.loop, *self.inner) if loop is self.loop or loop.var in free_variables(condition)
        ]
        if set(free_variables(condition)) - {loop.var for loop in loops}:
            return None
        ranges = []
        count = 1
        for loop in loops:
            if not isinstance(loop.start, IntImm) or not isinstance(loop.extent, IntImm):
                return None
            ranges.append(range(loop.start.value, loop.start.value + loop.extent.value))
            count *= len(ranges[-1])
        if count > MAX_POINTS:
            return None
        return [dict(zip((loop.var.name for loop in loops), values, strict=True)) for values in product(*ranges)]


def written(form: Affine, dtype: DType) -> Expr:
    """The form as an expression; where all terms are subtracted, from the constant."""
    if form.terms and form.constant > 0 and all(c < 0 for c in form.terms.values()):
        return const(form.constant, dtype) - expression_of(Affine(form.scaled(-1).terms), dtype)
    return expression_of(form, dtype)


def _splits(condition: Compare, holds: bool) -> bool:
    """Whether a comparison has the truth value on either side of a point: `!=`, or `==` that does not hold."""
    return condition.lhs.dtype.is_integer and (condition.op if holds else condition.op.negated) is CompareOp.NE


def _value(condition: Expr, point: Mapping[str, int]) -> bool | None:
    """The condition's truth value at a point; None if it has none, so that the point stays."""
    try:
        return bool(evaluate(condition, point))
    except Trap:
        return None


def _floor(dividend: Affine, divisor: int, like: Var) -> Affine:
    whole, rest = dividend.split(divisor)
    if rest.is_constant:
        return whole
    return whole + Affine({binary(BinaryOp.FLOORDIV, written(rest, like.dtype), IntImm(divisor, like.dtype)): 1})


_KINDS = (ForKind.SERIAL, ForKind.PARALLEL)


@dataclass(frozen=True)
class ReduceLoopExtents(Pass):
    """Shrink the loops around a block, or all of them, to the iterations that the guard in them lets through.

    A serial or parallel loop shrinks if its body is one guard without `else`, or loops over such a guard; a block's own
    guard is one if it has no init. The new range is from the least to the largest iteration that may pass, over all
    inner loops; for a union it is its hull. Conjuncts that the new range implies go. `block` names the loops around one
    block, `root` all loops of the function.
    """

    primitive: ClassVar[str] = "reduce_loop_extents"
    block: str = field(default=ROOT, metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with smaller loops; unchanged if no loop shrinks. Raises LayoutproofError for an unknown
        block.
        """
        loops = loops_of_block(func, self.block)
        shrinking = _Shrinking(frozenset(id(loop) for loop in loops))
        return rewrite_of(func, func.with_body(shrinking.statement(func.body, symbol_scope(func))))


@dataclass(slots=True)
class _Shrinking:
    """Rebuilds a body with smaller loops. `wanted` are the loops that may shrink, by identity; `shrunk` the variables
    of enclosing loops that did. `said` are conjuncts of guards, by statement and number, that some loop's new range
    implies.
    """

    wanted: frozenset[int]
    shrunk: list[Var] = field(default_factory=list)
    said: set[tuple[int, int]] = field(default_factory=set)

    def statement(self, stmt: Stmt, scope: Scope) -> Stmt:
        """`stmt` where `scope` is what is known around it."""
        match stmt:
            case For():
                return self.loop(stmt, scope)
            case IfThenElse(condition=condition, then=then, otherwise=None):
                inside = self.statement(then, scope.with_condition(condition))
                left = self.left(stmt, condition, scope)
                if left is None:
                    return stmt if inside is then else replace(stmt, then=inside)
                return under(left, inside)
            case Block():
                return self.block(stmt, scope)
            case _:
                return map_children(stmt, lambda node: self.below(node, scope))

    def below(self, node: Node, scope: Scope) -> Node:
        return self.statement(node, scope) if isinstance(node, Stmt) else node

    def block(self, block: Block, scope: Scope) -> Block:
        inner = scope
        for iter_var in block.iter_vars:
            inner = inner.with_value(iter_var.var, iter_var.binding)
        left = self.left(block, block.where, inner)
        where = block.where if left is None else logical_and(*left)
        inner = inner.with_condition(where)
        result = map_children(block, lambda node: self.below(node, inner))
        return result if where == block.where else replace(result, where=where)

    def left(self, stmt: Stmt, condition: Expr, scope: Scope) -> list[Expr] | None:
        """The conjuncts of a statement's guard that smaller loops do not say already; None if all stay."""
        parts = parts_of(condition)
        left = [part for n, part in enumerate(parts) if not self.is_said(stmt, n, part, scope)]
        return None if len(left) == len(parts) else left

    def is_said(self, stmt: Stmt, number: int, part: Expr, scope: Scope) -> bool:
        return (id(stmt), number) in self.said or (depends(part, self.shrunk) and is_pure(part) and _holds(part, scope))

    def loop(self, loop: For, scope: Scope) -> Stmt:
        smaller = self.smaller(loop, scope)
        if smaller is loop:
            inside = self.statement(loop.body, scope.with_range(loop.var, loop.start, loop.extent))
            return loop if inside is loop.body else replace(loop, body=inside)
        self.shrunk.append(loop.var)
        result = replace(
            smaller, body=self.statement(loop.body, scope.with_range(loop.var, smaller.start, smaller.extent))
        )
        self.shrunk.pop()
        return result

    def smaller(self, loop: For, scope: Scope) -> For:
        """The loop with a smaller range; the same object where none is found."""
        if id(loop) not in self.wanted or loop.kind not in _KINDS or not is_pure(loop.start, loop.extent):
            return loop
        start = affine_of(loop.start)
        end = start + affine_of(loop.extent)
        whole = Bounds((start,), (end,))
        found, exact = Bounds(), set[tuple[int, int]]()
        for guard in _guards_below(loop.body, ()):
            reader = GuardReader(loop, guard.inner, scope, whole)
            for number, part in enumerate(guard.parts):
                found += reader.bounds(part)
                if reader.says_all(part):
                    exact.add((id(guard.stmt), number))
        reader = GuardReader(loop, (), scope, whole)
        low = reader.extreme((start, *found.lows), BinaryOp.MAX)
        past = reader.extreme((end, *found.ends), BinaryOp.MIN)
        if (low, past) == (start, end):
            return loop
        self.said |= exact
        return _ranging(loop, scope, low, past)


def _ranging(loop: For, scope: Scope, low: Affine, past: Affine) -> For:
    """The loop from `low` to before `past`; empty if `low` is past it."""
    dtype = loop.var.dtype
    extent = past - low
    if extent.is_constant and extent.constant <= 0:
        return replace(loop, extent=const(0, dtype))
    size = written(extent, dtype)
    if not scope.is_nonnegative(extent):
        size = binary(BinaryOp.MAX, size, const(0, dtype))
    return replace(loop, start=written(low, dtype), extent=size)


@dataclass(frozen=True, slots=True)
class _Guard:
    """The conjuncts of the guard of a branch or a block, over loops; `inner` are the loops between it and the start of
    the search.
    """

    stmt: Stmt
    parts: tuple[Expr, ...]
    inner: tuple[For, ...]


def _guards_below(stmt: Stmt, inner: tuple[For, ...]) -> Iterator[_Guard]:
    """The guards of everything that a statement does."""
    match stmt:
        case For(start=start, extent=extent) if is_pure(start, extent):
            yield from _guards_below(stmt.body, (*inner, stmt))
        case IfThenElse(condition=condition, then=then, otherwise=None):
            yield _Guard(stmt, parts_of(condition), inner)
            yield from _guards_below(then, inner)
        case Block(init=None):
            values = {i.var: i.binding for i in stmt.iter_vars}
            if is_pure(*values.values()):
                yield _Guard(stmt, tuple(substitute(part, values) for part in parts_of(stmt.where)), inner)
        case _:
            return


def _holds(condition: Expr, scope: Scope, holds: bool = True) -> bool:
    """Whether a condition is known to have a truth value."""
    match condition:
        case Not():
            return _holds(condition.operand, scope, not holds)
        case Logical():
            both = (condition.op is LogicalOp.AND) == holds
            sides = (_holds(side, scope, holds) for side in (condition.lhs, condition.rhs))
            return all(sides) if both else any(sides)
        case Compare():
            forms = conjuncts(condition, holds)
            return (bool(forms) and all(scope.is_nonnegative(form) for form in forms)) or (
                holds and scope.proves(condition)
            )
        case _:
            return False
