"""From a function's layout records to what a kernel needs to take and return arrays in logical layout."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import retype
from layoutproof.ir.layout_record import LayoutRecord, boxed, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.pad_value import checked
from layoutproof.lowering.runtime.layouts import Layout
from layoutproof.lowering.runtime.layouts import Step as LayoutStep
from layoutproof.lowering.scopes import assumed_of_constants, constants_of
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.verdict.verdict import Status


def runtime_layouts(func: PrimFunc) -> dict[str, Layout]:
    """How the parameters' arrays are re-laid, by buffer name. Raises LayoutproofError for a malformed layout record."""
    records = layout_records(func)
    return {b.name: _layout(func, b, records[b.data.name]) for b in func.buffers if b.data.name in records}


def check_records(func: PrimFunc) -> None:
    """Raise LayoutproofError where a layout record states a map that is not proved injective on its shape and inside its box."""
    for name, record in layout_records(func).items():
        record.check_names(v.name for v in constants_of(func))
        shape = _shape(func, record.logical_shape)
        for step in record.steps:
            box = _shape(func, step.shape)
            index_map = step.index_map.with_symbols(constants_of(func))
            verdict = check_map(index_map, shape, assumed_of_constants(func), physical_shape=box).injective
            if verdict.status is not Status.PROVED:
                raise error(codes.RECORD_MAP, f"the layout record of {name}: `{step.map_text}` is not proved to be injective", func.span)
            shape = box


def _layout(func: PrimFunc, buffer: Buffer, record: LayoutRecord) -> Layout:
    symbols = constants_of(func)
    record.check_names(v.name for v in symbols)
    steps: list[LayoutStep] = []
    for step in record.steps:
        pad = step.contract
        if pad is not None and not pad.is_undef:
            checked(pad, boxed(buffer, step.shape, symbols))
        value, inputs = (pad.value, tuple(v.name for v in pad.inputs)) if pad is not None else (None, ())
        steps.append(LayoutStep(step.index_map.with_symbols(symbols), _shape(func, step.shape), value, inputs))
    return Layout(_shape(func, record.logical_shape), tuple(steps))


def _shape(func: PrimFunc, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    types = {v.name: v.dtype for v in constants_of(func)}
    return tuple(retype(extent, types) for extent in shape)
