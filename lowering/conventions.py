"""From a function's layout records to what a kernel needs to take and return arrays in logical layout."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, const
from layoutproof.ir.layout_record import UNDEF_CONTRACT, Extent, LayoutRecord, layout_records
from layoutproof.ir.map_text import parse_index_map, parse_integer
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.pad_value import read_pad_value
from layoutproof.lowering.runtime.layouts import Layout
from layoutproof.lowering.runtime.layouts import Step as LayoutStep
from layoutproof.lowering.scopes import assumed_of_constants, constants_of
from layoutproof.verify.maps import check_map
from layoutproof.verify.verdict import Status


def runtime_layouts(func: PrimFunc) -> dict[str, Layout]:
    """How the parameters' arrays are re-laid, by buffer name. Raises LayoutproofError for a malformed layout record."""
    records = layout_records(func)
    return {b.name: _layout(func, b, records[b.data.name]) for b in func.buffers if b.data.name in records}


def check_records(func: PrimFunc) -> None:
    """Raise LayoutproofError where a layout record states a map that is not proved injective on its shape and inside its box."""
    for name, record in layout_records(func).items():
        shape = tuple(_extent(func, extent) for extent in record.logical_shape)
        for step in record.steps:
            box = tuple(_extent(func, extent) for extent in step.shape)
            index_map = parse_index_map(step.index_map, symbols=constants_of(func))
            verdict = check_map(index_map, shape, assumed_of_constants(func), physical_shape=box).injective
            if verdict.status is not Status.PROVED:
                raise error(codes.RECORD_MAP, f"the layout record of {name}: `{step.index_map}` is not proved to be injective", func.span)
            shape = box


def _layout(func: PrimFunc, buffer: Buffer, record: LayoutRecord) -> Layout:
    symbols = constants_of(func)
    steps: list[LayoutStep] = []
    for step in record.steps:
        box = tuple(_extent(func, extent) for extent in step.shape)
        physical = replace(buffer, shape=box, axis_separators=())
        text = "T.undef()" if step.contract == UNDEF_CONTRACT else step.contract
        pad = read_pad_value(text, physical, (), symbols)
        inputs = tuple(v.name for v in pad.inputs) if pad is not None else ()
        steps.append(LayoutStep(parse_index_map(step.index_map, symbols=symbols), box, pad.value if pad is not None else None, inputs))
    return Layout(tuple(_extent(func, extent) for extent in record.logical_shape), tuple(steps))


def _extent(func: PrimFunc, extent: Extent) -> Expr:
    return const(extent) if isinstance(extent, int) else parse_integer(extent, constants_of(func))
