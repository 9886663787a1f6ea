"""Layout records written down as a program's text has them."""

from __future__ import annotations

from layoutproof.ir.buffer import make_buffer
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.expr import Var
from layoutproof.ir.layout_record import LayoutRecord, LayoutStep
from layoutproof.ir.script.index_maps import RecordReader
from layoutproof.ir.stmt import Attributes

Extent = int | str
Written = tuple[str, tuple[Extent, ...], str | None]


def read_record(
    logical: tuple[Extent, ...],
    *steps: Written,
    symbols: tuple[str, ...] = (),
    buffer: str = "A",
    dtype: DType = FLOAT32,
) -> LayoutRecord:
    """The record of `buffer` with a logical shape and steps: the map's text, the box, the contract's text."""
    names = {name: Var(name) for name in symbols}
    plain = [dict(zip(("index_map", "shape", "contract"), step, strict=True)) for step in steps]
    reader = RecordReader(names, names, (make_buffer(buffer, (), dtype),))
    return reader.record(f"{buffer}_data", Attributes({"logical_shape": logical, "steps": plain}))


def read_step(
    index_map: str,
    shape: tuple[Extent, ...],
    contract: str | None = None,
    *,
    symbols: tuple[str, ...] = (),
    buffer: str = "A",
    dtype: DType = FLOAT32,
) -> LayoutStep:
    """One step of such a record."""
    return read_record((), (index_map, shape, contract), symbols=symbols, buffer=buffer, dtype=dtype).steps[0]
