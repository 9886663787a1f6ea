"""Loops of a function in other layouts, put in storage order; several passes composed into one step, which is proved
once. A step that is not proved is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar

from layoutproof.graph import codes
from layoutproof.graph.flow.array_accesses import Statement, normal, update_of
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, For, IterKind
from layoutproof.ir.visit import free_variables, stores_in, walk
from layoutproof.lowering.arith.affine import expression_of
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.decompose_reduction import hoisted_inits
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform, refusing
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.vectors.vectorize import VectorizeLoop


@dataclass(frozen=True)
class Together(Pass):
    """Passes in a row as one step. `drafted` are the proposals of the draft, so that they are not made again."""

    primitive: ClassVar[str] = "together"
    passes: tuple[Pass, ...]
    drafted: tuple[Rewrite, ...] = field(default=(), compare=False, repr=False)

    def propose(self, func: PrimFunc) -> Rewrite:
        """The last program, with a witness from the first one's. Raises LayoutproofError if passes do not compose."""
        rewrites = self.drafted if self.drafted and self.drafted[0].old == func else self._proposed(func)
        return reduce(_composed, rewrites)

    def _proposed(self, func: PrimFunc) -> tuple[Rewrite, ...]:
        found: list[Rewrite] = []
        for each in self.passes:
            found.append(each.propose(found[-1].new if found else func))
        return tuple(found)

    def stated(self) -> list[list[Any]]:
        """The passes one after the other: a trace of them replays."""
        return [stated for each in self.passes for stated in each.stated()]

    def arguments(self) -> dict[str, Any]:
        """The passes in their order, each with its options."""
        return {"passes": [[each.primitive, each.arguments()] for each in self.passes]}


def _composed(first: Rewrite, second: Rewrite) -> Rewrite:
    """Two rewrites as one. Raises LayoutproofError for a witness that says more than which instances are which."""
    if any(each.cells or each.changes_interface for each in (first.witness, second.witness)):
        raise error(codes.NO_FLOW, "steps that change layouts are not put together")
    earlier = {each.new_store: each for each in first.witness.instances}
    return Rewrite(first.old, second.new, Witness(tuple(_linked(each, earlier) for each in second.witness.instances)))


def _linked(later: InstanceMap, earlier: dict[int, InstanceMap]) -> InstanceMap:
    if later.old_store is None or later.instances is None:
        return later
    before = earlier.get(later.old_store)
    if before is None or later.where is not None or before.where is not None:
        raise error(codes.NO_FLOW, "steps whose witness has conditions are not put together")
    if before.instances is None:
        return InstanceMap(later.new_store, None, None)
    if len(before.instances.inputs) != later.instances.rank:
        raise error(codes.NO_FLOW, "steps that make lanes are not put together")
    return InstanceMap(later.new_store, before.old_store, before.instances.compose(later.instances))


class _Draft(Schedule):
    """A schedule that takes what is proposed, unproved, to see what passes its steps would be."""

    def _proved(self, transform: Pass, *, search: bool = True) -> Step:
        with refusing():
            return Step(transform, transform.propose(self.func), (), None, self.allowed)


Drafted = tuple[Pass, Rewrite]
"""A pass, and what it proposed."""


def drafted(func: PrimFunc, steps: Callable[[Schedule], object]) -> tuple[Drafted, ...]:
    """The passes of some steps on a function, unproved. Raises IllegalTransform where one does not apply."""
    draft = _Draft(func, allowed=frozenset())
    steps(draft)
    return tuple((step.transform, step.rewrite) for step in draft.steps)


def apply_together(schedule: Schedule, groups: Iterable[Sequence[Drafted]]) -> None:
    """Apply passes, those of a group as one step or, where that is not proved, one by one. Raises IllegalTransform."""
    for group in groups:
        passes, rewrites = tuple(each for each, _ in group), tuple(rewrite for _, rewrite in group)
        try:
            schedule.attempt(Together(passes, rewrites) if len(passes) > 1 else passes[0])
        except IllegalTransform:
            if len(passes) < 2:
                raise
            for each in passes:
                schedule.attempt(each)


def up_to_lanes(passes: Sequence[Drafted]) -> Iterator[tuple[Drafted, ...]]:
    """All passes up to the one that makes lanes, and each one from there on: witnesses over lanes are not composed."""
    first = next(
        (number for number, (each, _) in enumerate(passes) if each.primitive == VectorizeLoop.primitive), len(passes)
    )
    yield tuple(passes[:first])
    yield from ((each,) for each in passes[first:])


def attempted(schedule: Schedule, steps: Callable[[Schedule], object]) -> Schedule | None:
    """A schedule that is extended by some steps, as few as possible; None where one does not apply or is not proved."""
    found = schedule.fork()
    try:
        apply_together(found, up_to_lanes(drafted(found.func, steps)))
    except IllegalTransform:
        return None
    return found


LANES = (4, 8, 16)
"""How many elements a vector of C may have, of those that channels are blocked by."""


def follow(schedule: Schedule) -> Schedule:
    """The schedule with loops in the order of what their blocks store, reductions in lanes, where that is proved."""
    moved = False
    for block in blocks_of(schedule.func):
        index_map = order_of(schedule.func, block)
        if index_map is None:
            continue
        try:
            schedule.attempt(TransformBlockLayout(block.name, index_map_text(index_map)))
        except IllegalTransform:
            continue
        moved = True
    if not moved or not any(
        each.kind is IterKind.REDUCE for block in blocks_of(schedule.func) for each in block.iter_vars
    ):
        return schedule
    lanes = attempted(schedule, make_lanes)
    return lanes if lanes is not None else schedule


def make_lanes(schedule: Schedule) -> None:
    """Vectorise the innermost loops that are as long as a vector. Raises IllegalTransform where there is none."""
    for transform in hoisted_inits(schedule.func):
        try:
            schedule.attempt(transform)
        except IllegalTransform:
            continue  # the init stays where it is, under a branch
    schedule.lower_blocks()
    schedule.simplify()
    loops = [node for node in walk(schedule.func.body) if isinstance(node, For)]
    for place, loop in enumerate(loops):
        if loop.extent in map(const, LANES) and not any(isinstance(node, For) for node in walk(loop.body)):
            schedule.vectorize(ROOT, place)
    schedule.vectorize_loop()
    schedule.simplify()


def blocks_of(func: PrimFunc) -> Iterator[Block]:
    """The blocks that store, in order; those whose name another one has are left out, since steps go by names."""
    found = [
        node
        for node in walk(func.body)
        if isinstance(node, Block) and node.iter_vars and next(stores_in(node.body), None) is not None
    ]
    names = [block.name for block in found]
    return (block for block in found if names.count(block.name) == 1)


def order_of(func: PrimFunc, block: Block) -> IndexMap | None:
    """The map from a block's variables to those of loops in the order of what it stores; None where it is in that
    order, or has no such.

    Parts of spatial variables come in the order of the stored indices, the finest ones innermost; reductions before
    these, whole where no access takes them apart, else in parts that stay next to one another.
    """
    statement = update_of(func, block)
    if statement is None:
        return None
    variables = {each.var: each for each in block.iter_vars}
    spatial: list[tuple[Expr, frozenset[Var]]] = []
    for index in statement.store.indices:
        part = _part(index)
        if part is None:
            return None
        over = frozenset(free_variables(part)) & set(variables)
        if over:
            spatial.append((part, over))
    missing = [
        v
        for v, each in variables.items()
        if each.kind is IterKind.SPATIAL and not any(v in over for _, over in spatial)
    ]
    spatial = [*((v, frozenset({v})) for v in missing), *spatial]
    reduced = [
        part for v, each in variables.items() if each.kind is IterKind.REDUCE for part in _parts_of(v, statement)
    ]
    seen: set[Var] = set()
    coarse = len(spatial)
    for place, (_, over) in enumerate(spatial):
        if over & seen:
            coarse = place
            break
        seen |= over
    outputs = [*(part for part, _ in spatial[:coarse]), *reduced, *(part for part, _ in spatial[coarse:])]
    inputs = tuple(variables)
    return None if tuple(outputs) == inputs else IndexMap(inputs, tuple(outputs))


def _part(index: Expr) -> Expr | None:
    """The variable part of an index, `v`, `v // 8`, `v % 8`, without an added number; a number as itself; else None."""
    form = normal(index)
    if form.is_constant:
        return IntImm(form.constant)
    if len(form.terms) != 1 or next(iter(form.terms.values())) != 1:
        return None
    return expression_of(form, index.dtype) if form.constant == 0 else next(iter(form.terms))


def _parts_of(variable: Var, statement: Statement) -> list[Expr]:
    """A reduction's variable, or the parts into which a load takes it, coarsest first."""
    for load in statement.loads:
        parts = [
            part
            for index in load.indices
            if (part := _part(index)) is not None and set(free_variables(part)) == {variable}
        ]
        if len(parts) > 1:
            return parts
    return [variable]
