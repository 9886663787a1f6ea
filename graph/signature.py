"""What a function is to a graph: the arrays that it only reads, and those that it makes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.graph import codes
from layoutproof.graph.model import FROZEN, Shape
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import DeclBuffer, MatchBuffer
from layoutproof.ir.visit import walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.passes.effects import data_written


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function that are only read (`operands`) and those that are written (`results`), each in their order."""

    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]


_SIGNATURES: Kept[Signature] = Kept(4096)


def signature_of(func: PrimFunc) -> Signature:
    """The function's arrays, in their roles. Raises LayoutproofError where a graph cannot call the function."""
    return _SIGNATURES.get(func, (), lambda: _read(func))


def shape_of(buffer: Buffer) -> Shape:
    """The extents as numbers. Raises ValueError for a symbolic one."""
    extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(extents) != buffer.rank:
        raise ValueError(f"{buffer.name} has an extent that is not a number")
    return tuple(extents)


def is_whole(buffer: Buffer) -> bool:
    """Whether a buffer is an array like those of a graph: all of its memory, element by element."""
    return not buffer.strides and buffer.elem_offset == IntImm(0, buffer.elem_offset.dtype) and buffer.dtype.lanes == 1


def is_frozen(func: PrimFunc) -> bool:
    """Whether the layouts of the function's arrays must stay as they are."""
    return func.attrs.get(FROZEN) in (True, 1)


def frozen(func: PrimFunc) -> PrimFunc:
    """The function, marked as one whose layouts must stay."""
    return replace(func, attrs=func.attrs.with_value(FROZEN, True))


def _read(func: PrimFunc) -> Signature:
    found = list(check_wellformed(func)) or list(_unfit(func))
    if found:
        raise LayoutproofError(found)
    written = data_written(func.body)
    operands = tuple(buffer for buffer in func.buffers if buffer.data not in written)
    results = tuple(buffer for buffer in func.buffers if buffer.data in written)
    if not results:
        raise LayoutproofError(_form(func, "writes none of its parameters, so a call of it makes nothing"))
    return Signature(operands, results)


def _unfit(func: PrimFunc) -> list[Diagnostic]:
    found = list[Diagnostic]()
    mapped = dict(func.buffer_map)
    for param in func.params:
        buffer = mapped.get(param)
        if buffer is None:
            found.append(_form(func, f"has the parameter {param.name}, which is no array"))
        elif not all(isinstance(extent, IntImm) for extent in buffer.shape):
            found.append(_form(func, f"has the parameter {buffer.name}, whose extents are not all numbers", buffer))
        elif not is_whole(buffer):
            found.append(_form(func, f"has the parameter {buffer.name}, which has strides, an offset or lanes", buffer))
    # What goes through a view is not seen by those who ask who reads and writes a parameter.
    arrays = {buffer.data: buffer for buffer in func.buffers}
    for node in walk(func.body):
        source = node.buffer if isinstance(node, DeclBuffer) else node.source.buffer if isinstance(node, MatchBuffer) else None
        if source is not None and source.data in arrays:
            found.append(_form(func, f"has a view of the parameter {arrays[source.data].name}", source))
    return found


def _form(func: PrimFunc, what: str, buffer: Buffer | None = None) -> Diagnostic:
    place = buffer.span if buffer is not None and buffer.span is not None else func.span
    return Diagnostic(codes.FUNCTION_FORM, f"the function {func.name} {what}", place, help="a graph calls functions over whole arrays")
