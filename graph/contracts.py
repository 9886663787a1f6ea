"""Padding contracts through an operator: what its result's padding holds when it computes padding like everything else.

The operator runs over whole blocks, padding included, and the stage that fills its result's padding goes where what is there already is
what the contract says. Where it cannot go, the contract does not flow: `exp` of a padding of zeros is a padding of ones. Source: the seed
`layout-transformation-padding-roadmap`, "element-wise through the padding".
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.graph.flow import Layouts, NoFlow
from layoutproof.graph.following import blocks_of, order_of
from layoutproof.graph.relaid import relaid
from layoutproof.graph.signature import signature_of
from layoutproof.ir.expr import TRUE
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule


def through_padding(func: PrimFunc, layouts: Layouts, pads: Mapping[str, PadText]) -> Schedule:
    """The function in these layouts, its results' padding computed instead of filled; `pads` has all contracts, by array.

    Raises NoFlow where the padding of a result would hold something else than its contract says, or that is not proved.
    """
    # Nobody else sees a temporary: its padding may hold what is computed there.
    inner: dict[str, PadText] = {name: "T.undef()" for name in layouts if name not in {buffer.name for buffer in func.buffers}}
    schedule = relaid(func, layouts, {**inner, **pads})
    names = [block.name for block in blocks_of(func)]
    try:
        for name in names:
            index_map = order_of(schedule.func, find_block(schedule.func, name))
            if index_map is not None:
                schedule.transform_block_layout(name, index_map)
            if find_block(schedule.func, name).where != TRUE:
                schedule.remove_branching_through_overcompute(name)
            if inner:
                # What fills a temporary's padding would hide what was computed there.
                schedule.remove_no_op()
        schedule.remove_no_op()
    except IllegalTransform as problem:
        raise NoFlow(func, f"its padding cannot be computed like everything else: {problem.diagnostics[0].message}") from problem
    filled = {f"buffer_{buffer.name}_padding": buffer.name for buffer in signature_of(func).results}
    for node in walk(schedule.func.body):
        if isinstance(node, Block) and node.name in filled:
            name = filled[node.name]
            given = ", ".join(f"{other} holds {value}" for other, value in pads.items() if other != name)
            raise NoFlow(func, f"where the padding of {given}, that of {name} does not come out as {pads[name]}")
    return schedule
