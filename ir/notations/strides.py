"""Layouts as shape and strides, `shape=(3,4), strides=(4,1), offset=0`, as numpy, torch and DLPack have them: the sum
of index times stride, which may overlap. `order=F`, `memory_format=channels_last`, and strides in bytes with
`itemsize=4`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source, error
from layoutproof.ir.expr import Expr, ExprLike, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import (
    Context,
    Notation,
    Scanner,
    WrittenLayout,
    check_agrees,
    index_variables,
    scaled,
    summed,
    whole,
)

_WHAT = "strides"
_KEYS = {
    "shape": "shape",
    "size": "shape",
    "strides": "strides",
    "stride": "strides",
    "offset": "offset",
    "storage_offset": "offset",
    "itemsize": "itemsize",
    "order": "order",
    "memory_format": "order",
}
# torch's names, of which all count elements.
_OF_TORCH = frozenset({"size", "stride", "storage_offset", "memory_format"})
# How the axes lie, from the slowest to the fastest.
_ORDERS: Mapping[str, Mapping[int, Sequence[int]]] = {
    "channels_last": {4: (0, 2, 3, 1)},
    "channels_last_3d": {5: (0, 2, 3, 4, 1)},
}
_PLAIN_ORDERS = ("C", "F", "contiguous_format")


def strided_map(extents: Sequence[Expr | int], strides: Sequence[ExprLike], offset: ExprLike = 0) -> IndexMap:
    """The map of every index to `offset + sum(index * stride)`."""
    inputs = index_variables([f"i{axis}" for axis in range(len(strides))], extents)
    pairs = zip(inputs, strides, strict=True)
    terms = [scaled(v, stride) for v, stride in pairs if isinstance(stride, Expr) or stride != 0]
    return IndexMap(inputs, (summed(terms, offset),))


def strides_text(shape: Sequence[int | str], strides: Sequence[int | str], offset: int | str = 0) -> str:
    """`shape=(3,4), strides=(4,1), offset=0`."""
    return f"shape={_tuple_text(shape)}, strides={_tuple_text(strides)}, offset={offset}"


def _tuple_text(values: Sequence[int | str]) -> str:
    return f"({','.join(map(str, values))}{',' if len(values) == 1 else ''})"


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose last axis is contiguous."""
    return tuple(reversed([1, *accumulate(reversed(shape[1:]), mul)])) if shape else ()


def read_strides(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of shape and strides; the context may give the shape. Raises LayoutproofError."""
    scanner = Scanner(text, _WHAT, name)
    found = _entries(scanner)
    shape = _shape(scanner, found.get("shape"), context)
    strides = _strides(scanner.source, found, shape)
    offset = found.get("offset", 0)
    assert isinstance(offset, int)
    itemsize = found.get("itemsize", 1)
    assert isinstance(itemsize, int)
    uneven = next((n for n in (*strides, offset) if itemsize < 1 or n % itemsize), None)
    if uneven is not None:
        message = f"{uneven} bytes are no whole number of items of {itemsize} bytes"
        raise error(codes.NOTATION, message, whole(scanner.source))
    index_map = strided_map(shape, [stride // itemsize for stride in strides], offset // itemsize)
    return WrittenLayout(
        Notation.STRIDES, text, index_map, tuple(e if isinstance(e, Expr) else const(e) for e in shape)
    )


_Value = int | tuple[int, ...] | str


def _entries(scanner: Scanner) -> dict[str, _Value]:
    found: dict[str, _Value] = {}
    keys: set[str] = set()
    while True:
        start = scanner.position
        key = scanner.name("'shape=', 'strides=' or 'offset='")
        kind = _KEYS.get(key)
        if kind is None:
            raise scanner.fail(f"unknown entry {key!r}: one of {', '.join(_KEYS)}", start, start + len(key))
        if kind in found:
            raise scanner.fail(f"{kind} is given twice", start, start + len(key))
        keys.add(key)
        if "itemsize" in keys and keys & _OF_TORCH:
            torch = min(keys & _OF_TORCH)
            raise scanner.fail(f"itemsize is for strides in bytes; {torch} counts elements", start, start + len(key))
        scanner.expect("=")
        found[kind] = _value(scanner, kind)
        if scanner.position == len(scanner.text):
            return found
        scanner.optional(",")


def _value(scanner: Scanner, kind: str) -> _Value:
    if kind == "order":
        scanner.optional("torch.")
        start = scanner.position
        order = scanner.name("C, F or channels_last").strip("'")
        if order not in _ORDERS and order not in _PLAIN_ORDERS:
            choices = ", ".join([*_PLAIN_ORDERS, *_ORDERS])
            raise scanner.fail(f"unknown order {order!r}: one of {choices}", start, start + len(order))
        return order
    if kind in ("offset", "itemsize"):
        return scanner.integer(f"the {kind}")
    wrapped = scanner.optional("torch.Size(")
    start = scanner.position
    opening, closing = ("(", ")") if scanner.sees("(") else ("[", "]")
    values = scanner.listed(opening, closing, "an extent" if kind == "shape" else "a stride")
    if wrapped:
        scanner.expect(")")
    if kind == "shape" and any(value < 1 for value in values):
        raise scanner.fail("every extent is at least 1", start, scanner.position)
    return tuple(values)


def _shape(scanner: Scanner, own: _Value | None, context: Context) -> tuple[Expr | int, ...]:
    if own is None:
        return context.needed(scanner.source, "the strides do not say their shape")
    assert isinstance(own, tuple)
    check_agrees(own, context, scanner.source)
    return own


def _strides(source: Source, found: Mapping[str, _Value], shape: Sequence[Expr | int]) -> tuple[int, ...]:
    own, order = found.get("strides"), found.get("order", "C")
    if own is not None:
        assert isinstance(own, tuple)
        if "order" in found:
            raise error(codes.NOTATION, "strides and an order are given: one of them is enough", whole(source))
        if len(own) != len(shape):
            message = f"the shape has {len(shape)} axes, the strides {len(own)}"
            raise error(codes.NOTATION, message, whole(source))
        return own
    extents = [extent for extent in shape if isinstance(extent, int)]
    if len(extents) != len(shape):
        raise error(codes.NOTATION_INCOMPLETE, "strides are needed for a shape with symbols", whole(source))
    assert isinstance(order, str)
    axes: Sequence[int] = range(len(extents))
    if order == "F":
        axes = list(reversed(axes))
    elif order in _ORDERS:
        if len(extents) not in _ORDERS[order]:
            ranks = " or ".join(map(str, _ORDERS[order]))
            raise error(codes.NOTATION, f"{order} is an order of {ranks} axes, not {len(extents)}", whole(source))
        axes = _ORDERS[order][len(extents)]
    itemsize = found.get("itemsize", 1)
    assert isinstance(itemsize, int)
    steps = dict(zip(axes, row_major([extents[axis] for axis in axes]), strict=True))
    return tuple(steps[axis] * itemsize for axis in range(len(extents)))
