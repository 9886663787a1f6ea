"""Where a block's init goes when the block becomes loops: before the reduction, or at the block under a guard.

One run of the outermost loop that takes part in a reduction binding is one reduction; in it, init runs once for every value of the
spatial bindings. Loops below it that no spatial binding uses are *repeating*: init must not run again for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var, equal, logical_and
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Allocate, Block, BufferStore, For, IfThenElse, IterKind, Let, Seq, Stmt
from layoutproof.ir.visit import free_variables, walk
from layoutproof.lowering.apart import obstacle_to_apartness


class Placement(StrEnum):
    """Where an init stands after lowering."""

    HERE = "before the update, at every visit"
    HOISTED = "before the reduction's outermost loop"
    GUARDED = "at the block, in the first iteration of the repeating loops"
    NOWHERE = "no place is known to be right"


@dataclass(frozen=True, slots=True)
class InitPlan:
    """A placement; `loop` is the reduction's outermost loop, `spatial` the loops below it that the init keeps, `first` a guard.

    `left_out` names the variables that mean nothing where a hoisted init stands: repeating loops, and lets that depend on them or on
    data. A branch whose condition needs one guards updates only. `needs_apart` says that the place is right only where parameters
    do not overlap, which the function does not promise.
    """

    placement: Placement
    loop: For | None = None
    spatial: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    first: Expr = TRUE
    reason: str = ""
    needs_apart: bool = False


@dataclass(slots=True)
class _Roots:
    """The loops that a variable depends on, through lets and enclosing blocks."""

    loops: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, *expressions: Expr) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for expression in expressions:
            for variable in free_variables(expression):
                found |= self.loops.get(variable.name, frozenset())
        return found

    def enter(self, stmt: Stmt) -> None:
        if isinstance(stmt, For):
            self.loops[stmt.var.name] = frozenset((stmt.var.name,))
        elif isinstance(stmt, Let):
            self.loops[stmt.var.name] = self.of(stmt.value)
        elif isinstance(stmt, Block):
            for iter_var in stmt.iter_vars:
                self.loops[iter_var.var.name] = self.of(iter_var.binding)


def plan_init(
    path: Sequence[Stmt],
    block: Block,
    values: Mapping[Var, Expr],
    holds: Callable[[Expr, Mapping[Var, Expr]], bool],
    overlapping: frozenset[Var],
) -> InitPlan:
    """The place of `block`'s init; `path` leads from the function's body to the block, the block left out.

    `values` gives iteration variables over loops. `holds` says whether a condition is certain wherever the block's spatial variables lie
    in their domains and loops have the values given. `overlapping` are data variables that may share memory with one another.
    """
    assert block.init is not None
    roots = _Roots()
    for stmt in (*path, block):
        roots.enter(stmt)
    reductions = roots.of(*(v.binding for v in block.iter_vars if v.kind is IterKind.REDUCE))
    used = roots.of(*(v.binding for v in block.iter_vars if v.kind is not IterKind.REDUCE))
    start = next((n for n, s in enumerate(path) if isinstance(s, For) and s.var.name in reductions), None)
    if start is None:
        return InitPlan(Placement.HERE)
    below = path[start:]
    outermost = below[0]
    assert isinstance(outermost, For)
    loops = [s for s in below if isinstance(s, For)]
    spatial = frozenset(loop.var.name for loop in loops) & used
    repeating = [loop for loop in loops if loop.var.name not in spatial]
    left_out = _left_out(below, repeating)
    for loop in loops:
        if loop.var.name in spatial and not is_available(left_out, loop.start, loop.extent):
            return InitPlan(Placement.NOWHERE, reason=f"the range of loop {loop.var.name} changes in the course of the reduction")
    obstacle = _obstacle(below, block, values, frozenset())
    if obstacle is None:
        needs_apart = bool(overlapping) and _obstacle(below, block, values, overlapping) is not None
        return InitPlan(Placement.HOISTED, outermost, spatial, left_out, needs_apart=needs_apart)
    second = _obstacle_to_guarding(below, block, spatial, repeating, left_out)
    if second is None and not holds(block.where, {loop.var: loop.start for loop in repeating}):
        second = "the block's own guard may skip a result's first update"
    if second is not None:
        return InitPlan(Placement.NOWHERE, reason=f"{obstacle}, and {second}")
    return InitPlan(Placement.GUARDED, outermost, spatial, first=logical_and(*(equal(k.var, k.start) for k in repeating)))


def _left_out(below: Sequence[Stmt], repeating: Sequence[For]) -> frozenset[str]:
    names = {loop.var.name for loop in repeating}
    for stmt in below:
        if isinstance(stmt, Let) and not is_available(names, stmt.value):
            names.add(stmt.var.name)
        elif isinstance(stmt, Block):
            names |= {v.var.name for v in stmt.iter_vars if not is_available(names, v.binding)}
    return frozenset(names)


def is_available(left_out: Set[str], *expressions: Expr) -> bool:
    """Whether expressions can be evaluated without the variables left out, and read no memory."""
    return is_pure(*expressions) and not any(v.name in left_out for e in expressions for v in free_variables(e))


def conditions_of(stmt: Stmt) -> tuple[Expr, ...]:
    """The conditions under which the statement runs what is in it."""
    if isinstance(stmt, IfThenElse):
        return (stmt.condition,)
    return (stmt.where,) if isinstance(stmt, Block) and stmt.where != TRUE else ()


def _obstacle(below: Sequence[Stmt], block: Block, values: Mapping[Var, Expr], overlapping: frozenset[Var]) -> str | None:
    found = _obstacle_to_hoisting(below, block, overlapping)
    return found if found is not None else obstacle_to_apartness(below, block, values, _at_stake(block), overlapping)


def _spread(data: frozenset[Var], overlapping: frozenset[Var]) -> frozenset[Var]:
    """The data variables, and those that may share memory with one of them."""
    return data | overlapping if data & overlapping else data


def _obstacle_to_hoisting(below: Sequence[Stmt], block: Block, overlapping: frozenset[Var]) -> str | None:
    assert block.init is not None
    written = _spread(data_written(block.init), overlapping)
    touched = _spread(data_read(block.init), overlapping) | written
    for stmt in (*below, block):
        for buffer in _allocated_by(stmt):
            if buffer.data in touched:
                return f"the init uses {buffer.name}, which is allocated inside the reduction"
    if data_read(block.init) & written:
        return "the init reads what it writes"
    if _steering(below, block) & written:
        return "a loop, a branch, a let or a binding of the reduction reads what the init writes"
    bound = {v.binding.name for v in block.iter_vars if v.kind is not IterKind.REDUCE and isinstance(v.binding, Var)}
    direct = _named_within(below) & {v.name for v in free_variables(block.init)} - bound
    if direct:
        return f"the init uses {min(direct)}, of which a result may see several values"
    for sibling in _siblings(below, block):
        if data_written(sibling) & touched or data_read(sibling) & written:
            return "another statement in the reduction touches what the init touches"
    return None


def _at_stake(block: Block) -> frozenset[Var]:
    """The data of which no two results may share a cell, if the order of their inits is to make no difference."""
    assert block.init is not None
    return data_written(block.init) | (data_read(block.init) & data_written(block.body))


def _steering(below: Sequence[Stmt], block: Block) -> frozenset[Var]:
    """The data that decides in the course of the reduction what is run: ranges, conditions, lets and bindings."""
    found: set[Var] = set()
    for stmt in (*below, block):
        own: tuple[Expr, ...] = conditions_of(stmt)
        if isinstance(stmt, For):
            own = (stmt.start, stmt.extent)
        elif isinstance(stmt, Let):
            own = (stmt.value,)
        elif isinstance(stmt, Block):
            own = (*own, *(v.binding for v in stmt.iter_vars))
        found |= {data for expr in own for data in data_read(expr)}
    return frozenset(found)


def _named_within(below: Sequence[Stmt]) -> set[str]:
    """The names that loops, lets and enclosing blocks of the reduction bind."""
    found = {s.var.name for s in below if isinstance(s, For | Let)}
    return found | {v.var.name for s in below if isinstance(s, Block) for v in s.iter_vars}


def _allocated_by(stmt: Stmt) -> tuple[Buffer, ...]:
    if isinstance(stmt, Allocate):
        return (stmt.buffer,)
    return stmt.alloc_buffers if isinstance(stmt, Block) else ()


def _siblings(below: Sequence[Stmt], block: Block) -> Iterable[Stmt]:
    """Statements that run in the same reduction beside the block."""
    steps = (*below, block)
    for parent, child in pairwise(steps):
        if isinstance(parent, Seq):
            yield from (s for s in parent.body if s is not child)
        elif isinstance(parent, IfThenElse):
            yield from (s for s in (parent.then, parent.otherwise) if s is not None and s is not child)
        elif isinstance(parent, Block):
            yield from (s for s in (parent.body, parent.init) if s is not None and s is not child)


def _obstacle_to_guarding(
    below: Sequence[Stmt], block: Block, spatial: frozenset[str], repeating: Sequence[For], left_out: frozenset[str]
) -> str | None:
    if not all(is_available(left_out, c) for stmt in below for c in conditions_of(stmt)):
        return "a branch around the block depends on data or on the reduction"
    for loop in repeating:
        if not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
            return f"loop {loop.var.name} may run no iteration, or its number of iterations is not a constant"
    bound = {v.binding.name for v in block.iter_vars if v.kind is not IterKind.REDUCE and isinstance(v.binding, Var)}
    missing = sorted(spatial - bound)
    if missing:
        return f"no iteration variable is bound to loop {missing[0]} alone"
    if any(isinstance(s, Seq) and sum(child is inner for child in s.body) > 1 for s, inner in zip(below, (*below[1:], block), strict=True)):
        return "the block stands twice in the reduction"
    return None


def is_pure(*expressions: Expr) -> bool:
    """Whether expressions read no memory and call nothing opaque."""
    return not any(isinstance(node, BufferLoad | OpaqueCall) for e in expressions for node in walk(e))


def data_read(node: Node) -> frozenset[Var]:
    """The data variables that are loaded from below a node, or handed to an opaque call."""
    found = {n.buffer.data for n in walk(node) if isinstance(n, BufferLoad)}
    return frozenset(found | _handed_over(node))


def data_written(node: Node) -> frozenset[Var]:
    """The data variables that are stored to below a node, or handed to an opaque call."""
    found = {n.buffer.data for n in walk(node) if isinstance(n, BufferStore)}
    return frozenset(found | _handed_over(node))


def _handed_over(node: Node) -> set[Var]:
    calls = (n for n in walk(node) if isinstance(n, OpaqueCall))
    found: set[Var] = set()
    for call in calls:
        for below in walk(call):
            if isinstance(below, Var) and below.dtype.kind.value == "handle":
                found.add(below)
            elif isinstance(below, BufferLoad):
                found.add(below.buffer.data)
    return found


def uses_buffer(node: Node, buffer: Buffer) -> bool:
    """Whether a load or store below goes through this very view."""
    return any(isinstance(n, BufferLoad | BufferStore) and n.buffer == buffer for n in walk(node))
