"""Which cells of a re-laid buffer a copy may touch: where padding has no contract, only the elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import FALSE, Expr, Not, Var
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import substitute
from layoutproof.lowering.layout import padding_predicate
from layoutproof.lowering.scopes import assumed_of_constants, constants_of
from layoutproof.verify.maps.check_map import check_map


def elements_of(func: PrimFunc, buffer: Buffer, *, only_elements: bool = False) -> Callable[[Sequence[Expr]], Expr] | None:
    """The condition on a cell of a buffer under which it is copied; None where every cell is.

    Padding is left out where a transform left it without a contract, and all of it with `only_elements`. Raises LayoutproofError where
    no formula for the padding is known.
    """
    record = layout_records(func).get(buffer.data.name)
    if record is None:
        return None
    if not only_elements and all(step.padding is not Cell.PAD_FORBIDDEN for step in record.steps):
        return None
    symbols = constants_of(func)
    maps = [step.index_map.with_symbols(symbols) for step in record.steps]
    inputs = maps[0].inputs
    outputs: tuple[Expr, ...] = inputs
    for each in maps:
        outputs = each.map_indices(outputs)
    shape = tuple(retype(extent, {v.name: v.dtype for v in symbols}) for extent in record.logical_shape)
    report = check_map(IndexMap(inputs, outputs), shape, assumed_of_constants(func))
    predicate = padding_predicate(buffer, report)
    if predicate == FALSE:
        return None

    def condition(cell: Sequence[Expr]) -> Expr:
        types = {f"p{axis}": v.dtype for axis, v in enumerate(cell)} | {v.name: v.dtype for v in symbols}
        values = {Var(f"p{axis}", v.dtype): v for axis, v in enumerate(cell)}
        return Not(substitute(retype(predicate, types), values))

    return condition
