"""What the symbols of a new program's shapes are in terms of the old one's: by the places where they stand in shapes, then by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import HANDLE, Kind
from layoutproof.ir.expr import Cast, Expr, IntImm, Var
from layoutproof.ir.index_map import retype
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering import codes

Shape = tuple[Expr, ...]
Pairs = Sequence[tuple[Buffer, Buffer]]


def symbols_of(func: PrimFunc) -> tuple[Var, ...]:
    """The variables in the shapes, strides and offsets of the parameters that are no parameters themselves, in order of appearance."""
    sizes = (size for b in func.buffers for size in (*b.shape, *b.strides, b.elem_offset))
    found = dict.fromkeys(v for size in sizes for v in free_variables(size) if v not in func.params)
    return tuple(v for v in found if v.dtype != HANDLE)


def symbol_values(old: PrimFunc, new: PrimFunc, buffers: Pairs, boxes: Mapping[str, Shape], params: Mapping[Var, Var]) -> dict[Var, Expr]:
    """What each symbol of `new` is in `old`.

    `buffers` are the parameters, old and new; `boxes` the shapes that some of `old`, by name, have in `new`; `params` pairs parameters,
    new to old. A symbol is what stands in its place in a parameter of as many axes. Where two places tell two things, or one tells a
    number, a symbol of the old program that has its name is it. Raises LayoutproofError where nothing tells.
    """
    told: dict[Var, dict[Expr, str]] = {}
    for before, after in buffers:
        for place, theirs, mine in _places(old, new, before, after, boxes):
            if isinstance(mine, Var) and mine not in params:
                told.setdefault(mine, {}).setdefault(theirs, place)
    symbols = symbols_of(new)
    named = {v.name: v for v in (*symbols_of(old), *(p for p in old.params if p.dtype.is_integer))}
    clash = any(len(told.get(symbol, ())) > 1 for symbol in symbols)
    return {symbol: _value(symbol, told.get(symbol, {}), named, clash) for symbol in symbols}


def _value(symbol: Var, told: Mapping[Expr, str], named: Mapping[str, Var], clash: bool) -> Expr:
    same = named.get(symbol.name)
    by_place = next(iter(told)) if len(told) == 1 else None
    if by_place is not None and (same is None or not (clash or isinstance(by_place, IntImm))):
        return by_place
    if same is not None:
        return same
    if told:
        places = " and ".join(f"{expr_text(value, Style.PLAIN)} ({place})" for value, place in told.items())
        raise error(codes.COMPARED_SYMBOL, f"the symbol {symbol.name} of the program after would be {places}", symbol.span, help=_HELP)
    message = f"nothing tells what the symbol {symbol.name} of the program after is in the program before"
    raise error(codes.COMPARED_SYMBOL, message, symbol.span, help=_HELP)


_HELP = "a symbol is told by its place in a parameter of as many axes, by its name, or by the layout given for a parameter that has it"


def _places(old: PrimFunc, new: PrimFunc, before: Buffer, after: Buffer, boxes: Mapping[str, Shape]) -> Iterator[tuple[str, Expr, Expr]]:
    """The sizes of a parameter that correspond, each with its place in words: the old one, the new one."""
    record = layout_records(new).get(after.data.name)
    theirs: Sequence[Expr]
    if before.name in boxes:
        what, theirs, mine = f"{before.name} as it is stored", boxes[before.name], after.shape
    elif record is not None and record.steps:
        kept = layout_records(old).get(before.data.name)
        what = f"{before.name} as it was stored first"
        theirs, mine = before.shape if kept is None else logical_shape(old, kept), logical_shape(new, record)
    else:
        what, theirs, mine = before.name, before.shape, after.shape
    if len(theirs) == len(mine):
        yield from ((f"axis {axis} of {what}", a, b) for axis, (a, b) in enumerate(zip(theirs, mine, strict=True)))
    if len(before.strides) == len(after.strides):
        strides = zip(before.strides, after.strides, strict=True)
        yield from ((f"stride {axis} of {before.name}", a, b) for axis, (a, b) in enumerate(strides))
    yield f"the offset of {before.name}", before.elem_offset, after.elem_offset


def logical_shape(func: PrimFunc, record: LayoutRecord) -> tuple[Expr, ...]:
    """The shape that a record begins with, over the function's own symbols."""
    types = {v.name: v.dtype for v in (*symbols_of(func), *func.params)}
    return tuple(retype(extent, types) for extent in record.logical_shape)


def same_extents(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
    """Whether sizes are written alike, whatever integer types they are of."""
    return len(first) == len(second) and all(size_text(a) == size_text(b) for a, b in zip(first, second, strict=True))


def size_text(size: Expr) -> str:
    """A size as text, a cast around it that changes no value left out."""
    inner = size
    while isinstance(inner, Cast) and inner.dtype.kind is inner.value.dtype.kind is Kind.INT and inner.dtype.bits >= inner.value.dtype.bits:
        inner = inner.value
    return expr_text(inner, Style.PLAIN)


def shape_text(shape: Sequence[Expr]) -> str:
    """`[n, 4]`."""
    return f"[{', '.join(map(size_text, shape))}]"
