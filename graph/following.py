"""Loops that follow what is stored: each block of a relaid function run in the order in which its result lies in memory.

Where a reduction runs over whole blocks of channels, these are lanes: a window's largest elements are then found in one register.
Reductions keep their order, so that the results stay the same bit for bit. What cannot be proved, or does not apply, is left as it is: the
function is then slower, and as right.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.graph.accesses import Statement, normal, update_of
from layoutproof.graph.together import attempted
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, For, IterKind
from layoutproof.ir.visit import free_variables, stores_in, walk
from layoutproof.lowering.arith.affine import expression_of
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.loops.block_layout import TransformBlockLayout
from layoutproof.lowering.loops.decompose_reduction import hoisted_inits
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule

LANES = (4, 8, 16)
"""How many elements a vector of C may have, of those that channels are blocked by."""


def follow(schedule: Schedule) -> Schedule:
    """The schedule with the loops of its blocks in the order of what they store, those of reductions in lanes, where that is proved."""
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
    if not moved or not any(each.kind is IterKind.REDUCE for block in blocks_of(schedule.func) for each in block.iter_vars):
        return schedule
    lanes = attempted(schedule, make_lanes)
    return lanes if lanes is not None else schedule


def make_lanes(schedule: Schedule) -> None:
    """Make lanes of the loops that are innermost and as long as a vector. Raises IllegalTransform where there is none."""
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
        node for node in walk(func.body) if isinstance(node, Block) and node.iter_vars and next(stores_in(node.body), None) is not None
    ]
    names = [block.name for block in found]
    return (block for block in found if names.count(block.name) == 1)


def order_of(func: PrimFunc, block: Block) -> IndexMap | None:
    """The map from a block's variables to those of loops in the order of what it stores; None where it is in that order, or has no such.

    Parts of spatial variables come in the order of the stored indices, the finest ones innermost; reductions before these, whole where no
    access takes them apart, else in parts that stay next to one another.
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
    missing = [v for v, each in variables.items() if each.kind is IterKind.SPATIAL and not any(v in over for _, over in spatial)]
    spatial = [*((v, frozenset({v})) for v in missing), *spatial]
    reduced = [part for v, each in variables.items() if each.kind is IterKind.REDUCE for part in _parts_of(v, statement)]
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
    """The part of variables that an index is, a number aside: `v`, `v // 8`, `v % 8`; a number as itself; None for anything else."""
    form = normal(index)
    if form.is_constant:
        return IntImm(form.constant)
    if len(form.terms) != 1 or next(iter(form.terms.values())) != 1:
        return None
    return expression_of(form, index.dtype) if form.constant == 0 else next(iter(form.terms))


def _parts_of(variable: Var, statement: Statement) -> list[Expr]:
    """A reduction's variable, or the parts into which a load takes it, coarsest first."""
    for load in statement.loads:
        parts = [part for index in load.indices if (part := _part(index)) is not None and set(free_variables(part)) == {variable}]
        if len(parts) > 1:
            return parts
    return [variable]
