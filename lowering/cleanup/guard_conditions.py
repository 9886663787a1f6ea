"""Conditions of branches: negated, taken apart, and whether they can hold together at their place.

The integer sets that also prove answer this. The model over-approximates the instances, so `never` is sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Logical, Not, Var, const
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For, ForKind
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.lowering.arith.affine import affine_of
from layoutproof.lowering.arith.known_facts import is_index_like
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, Unknown

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def negated(condition: Expr) -> Expr:
    """The negation of a condition; integer comparisons are mirrored."""
    match condition:
        case IntImm(value=truth):
            return const(not truth)
        case Not(operand=operand):
            return operand
        case Compare(op=op, lhs=left, rhs=right) if left.dtype.is_integer:
            return Compare(op.negated, left, right)
        case Logical(op=op, lhs=left, rhs=right):
            return Logical(LogicalOp.OR if op is LogicalOp.AND else LogicalOp.AND, negated(left), negated(right))
        case _:
            return Not(condition)


def is_total(expr: Expr) -> bool:
    """Whether an expression is index arithmetic that always has a value: no load, no division that may trap."""
    return is_index_like(expr) and not any(isinstance(node, Binary) and _may_trap(node) for node in walk(expr))


def _may_trap(node: Binary) -> bool:
    if node.op in _SHIFTS:
        return True
    return node.op in _DIVISIONS and not (isinstance(node.rhs, IntImm) and node.rhs.value > 0)


def conjuncts_of(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction, from left to right."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*conjuncts_of(condition.lhs), *conjuncts_of(condition.rhs))
    return (condition,)


def truths_of(condition: Expr, holds: bool) -> dict[Expr, bool]:
    """The truth values that follow from one: of the condition, of its parts, and of what they are the contrary of."""
    found = {condition: holds, negated(condition): not holds}
    match condition:
        case Not(operand=operand):
            found |= truths_of(operand, not holds)
        case Logical(op=op, lhs=left, rhs=right) if (op is LogicalOp.AND) == holds:
            found |= truths_of(left, holds) | truths_of(right, holds)
        case _:
            pass
    return found


MAX_QUESTIONS = 4096
"""Questions that one pass puts to integer sets; what is asked after that is not known."""


@dataclass(frozen=True, slots=True)
class Here:
    """The loops, conditions and bindings around a statement. `values` gives block variables and lets over loops and
    symbols.

    `named` are the variables in scope: inside a block its own, not the loops around it.
    """

    dims: tuple[Dim, ...] = ()
    guards: tuple[Guard, ...] = ()
    values: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])
    hidden: frozenset[Var] = frozenset()

    def inside(self, loop: For) -> Here:
        """In the body of a loop."""
        start, extent = self.over_loops(loop.start), self.over_loops(loop.extent)
        if not (is_total(start) and is_total(extent)):
            return self
        return replace(self, dims=(*self.dims, Dim(loop.var, start, extent, ForKind.SERIAL)))

    def under(self, condition: Expr, holds: bool = True) -> Here:
        """Under a condition or its negation, as far as that is over loops and symbols."""
        said = self.over_loops(condition)
        return replace(self, guards=(*self.guards, Guard(said, holds))) if is_total(said) else self

    def bound(self, var: Var, value: Expr) -> Here:
        """With a let's value."""
        said = self.over_loops(value)
        return replace(self, values={**self.values, var: said}) if is_total(said) else self

    def in_block(self, block: Block) -> Here:
        """In a block: its variables are bound, its guard holds."""
        values = {i.var: self.over_loops(i.binding) for i in block.iter_vars}
        inner = replace(self, values={**self.values, **values}, hidden=self.hidden | {dim.var for dim in self.dims})
        return inner.under(block.where)

    def over_loops(self, expr: Expr) -> Expr:
        """An expression with block variables and lets replaced by their values."""
        return substitute(expr, self.values)


def _truth(condition: Expr) -> bool | None:
    """The truth of a comparison of index arithmetic whose two sides differ by a constant; None for others."""
    if isinstance(condition, Not):
        inner = _truth(condition.operand)
        return None if inner is None else not inner
    if not isinstance(condition, Compare) or not (is_total(condition.lhs) and is_total(condition.rhs)):
        return None
    difference = affine_of(condition.lhs) - affine_of(condition.rhs)
    return bool(COMPARISONS[condition.op](difference.constant, 0)) if difference.is_constant else None


@dataclass(slots=True)
class Deciding:
    """Answers about one function; nothing is set up before the first question."""

    func: PrimFunc
    _facts: Facts | None = None
    _asked: int = 0

    def never(self, here: Here, *conditions: Expr, also: tuple[Dim, ...] = ()) -> bool:
        """Whether the conditions, over loops, symbols and the dims `also`, never all hold there; False if unknown."""
        decided = [_truth(condition) for condition in conditions]
        if False in decided:
            return True
        if self._asked >= MAX_QUESTIONS or not all(map(is_total, conditions)):
            return False
        self._asked += 1
        if self._facts is None:
            self._facts = Facts.of(self.func)
        dims = (*here.dims, *also)
        return self._facts.model.search(
            IterationDomain(dims, here.guards, unknowns=tuple(self._unknowns(dims, here, conditions))), *conditions
        ).is_empty

    def _unknowns(self, dims: tuple[Dim, ...], here: Here, conditions: tuple[Expr, ...]) -> Iterator[Unknown]:
        """The integers of unknown value; conditions on floats and truth values are of no use to the search."""
        assert self._facts is not None
        known = {dim.var for dim in dims} | set(self._facts.program.symbols)
        said = (*conditions, *(g.condition for g in here.guards), *(e for d in dims for e in (d.start, d.extent)))
        for variable in dict.fromkeys(v for e in said for v in free_variables(e)):
            if variable.dtype.is_integer and variable not in known:
                yield Unknown(variable, variable)
