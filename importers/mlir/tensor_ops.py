"""`tensor` and `bufferization`: a tensor is a buffer that nothing writes once its operation is done.

A tensor that is used last by the operation that makes a new one of it gives its buffer: the two are one memory then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from layoutproof.importers.mlir.builder import Builder, shape_of
from layoutproof.importers.mlir.memref_ops import (
    collapse,
    dim,
    element_of_slice,
    expand,
    kept_axes,
    live,
    mixed,
    offsets_sizes_strides,
    same_memory,
    slice_of,
)
from layoutproof.importers.mlir.model import Op, Shaped, Value, add, floordiv, floormod, mul, sub
from layoutproof.importers.mlir.placement import is_empty, last_use, root, used_after_write
from layoutproof.importers.mlir.values import ZERO, Indices, View
from layoutproof.ir.expr import TRUE, Expr, IfThenElseExpr, logical_and


def shaped(op: Op, value: Value) -> Shaped:
    """A type with a shape."""
    if not isinstance(value.type, Shaped):
        raise op.fail("a tensor or memref is expected")
    return value.type


def new_tensor(b: Builder, op: Op, result: Value, shape: Sequence[Expr]) -> View:
    """Memory for a tensor of this shape."""
    return View.of(b.allocate(result.name, shape, shaped(op, result).element.dtype, op.span))


def destination(b: Builder, op: Op, value: Value, *, contents: bool = True) -> View:
    """Memory that has a tensor's elements and may be written: its own where this is its last use."""
    view = b.view(op, value)
    if view.whole and view.buffer in b.own and last_use(value, op):
        return view
    target = new_tensor(b, op, value, view.shape)
    if contents and not is_empty(value):
        b.copy(view, target, op.span)
    return target


def _empty(b: Builder, op: Op) -> None:
    result = op.results[0]
    groups = op.segments() if "operandSegmentSizes" in op.attributes else [op.operands]
    if any(groups[1:]):
        if groups[0] or any(groups[2:]):
            raise op.fail("a size hint is not translated")
        source = b.view(op, groups[1][0])
        b.bind(result, new_tensor(b, op, result, source.shape))
        b.copy(source, b.view(op, result), op.span)
        return
    shape = shape_of(op, shaped(op, result), [b.fixed(op, value) for value in groups[0]])
    b.bind(result, new_tensor(b, op, result, shape))


def _extract_slice(b: Builder, op: Op) -> None:
    b.bind(op.results[0], slice_of(b, op, b.view(op, op.operands[0]), 1, shaped(op, op.results[0])))


def insert(b: Builder, op: Op, target: View) -> None:
    """Store a tensor into a slice of memory."""
    source = b.view(op, op.operands[0])
    offsets, sizes, strides = offsets_sizes_strides(b, op, 2)
    kept = kept_axes(op, sizes, shaped(op, op.operands[0]))
    b.require_same([sizes[axis] for axis in kept], source.shape, op.span)
    part = replace(target.part(source.shape, element_of_slice(kept, offsets, strides)), whole=True)
    if source.buffer is target.buffer:
        raise op.fail("of a part of the tensor itself is not translated")
    b.copy(source, part, op.span)


def _insert_slice(b: Builder, op: Op) -> None:
    target = destination(b, op, op.operands[1])
    insert(b, op, target)
    b.bind(op.results[0], target)


def _extract(b: Builder, op: Op) -> None:
    view = b.view(op, op.operands[0])
    indices = [b.expr(op, value) for value in op.operands[1:]]
    b.bind(op.results[0], b.named(op.results[0], view.load(indices, b.is_inside, op.span), op.span))


def _insert(b: Builder, op: Op) -> None:
    target = destination(b, op, op.operands[1])
    indices = [b.expr(op, value) for value in op.operands[2:]]
    b.store(target.buffer, target.cell(indices, b.is_inside), b.expr(op, op.operands[0]), op.span)
    b.bind(op.results[0], target)


def _element_by_region(b: Builder, op: Op) -> Callable[[list[Expr]], Expr]:
    """The value that a region yields, as a function of its indices; its operations may only be expressions."""
    block = op.block()

    def at(indices: Sequence[Expr]) -> Expr:
        for argument, index in zip(block.arguments, indices, strict=True):
            b.bind(argument, index)
        end = b.block(block)
        return b.expr(end, end.operands[0])

    return at


def _pad(b: Builder, op: Op) -> None:
    source = b.view(op, op.operands[0])
    _, low_values, high_values = op.segments()
    low = mixed(b, op, op.attribute("static_low"), low_values)
    high = mixed(b, op, op.attribute("static_high"), high_values)
    shape = [add(add(before, n), after) for before, n, after in zip(low, source.shape, high, strict=True)]
    for width in (*low, *high):
        b.assume(width >= ZERO, op.span)
    pad = _element_by_region(b, op)

    def at(indices: list[Expr]) -> Expr:
        inside = [sub(index, before) for index, before in zip(indices, low, strict=True)]
        conditions = []
        for index, extent, n in zip(inside, source.shape, shape, strict=True):
            if extent != n:
                conditions += [index >= 0, index < extent]
        value = pad(indices)
        load = source.load(inside, b.is_inside, op.span)
        condition = logical_and(*conditions)
        return load if condition == TRUE else IfThenElseExpr(condition, load, value)

    target = new_tensor(b, op, op.results[0], shape)
    b.fill(target, at, op.span)
    b.bind(op.results[0], target)


def _generate(b: Builder, op: Op) -> None:
    result = op.results[0]
    target = new_tensor(b, op, result, shape_of(op, shaped(op, result), [b.fixed(op, v) for v in op.operands]))
    b.fill(target, _element_by_region(b, op), op.span)
    b.bind(result, target)


def _splat(b: Builder, op: Op) -> None:
    value = b.expr(op, op.operands[0])
    result = op.results[0]
    target = new_tensor(b, op, result, shape_of(op, shaped(op, result), [b.fixed(op, v) for v in op.operands[1:]]))
    b.fill(target, lambda _: value, op.span)
    b.bind(result, target)


# ---- pack and unpack


class _Packing:
    """How `tensor.pack` stores a tensor: tiles of some axes become inner axes, and the outer ones may be permuted."""

    def __init__(self, b: Builder, op: Op, plain: Sequence[Expr]) -> None:
        groups = op.segments()
        self.axes = [int(axis) for axis in op.attribute("inner_dims_pos")]
        self.tiles = mixed(b, op, op.attribute("static_inner_tiles"), groups[3] if len(groups) > 3 else groups[2])
        order = op.attributes.get("outer_dims_perm")
        self.order = [int(axis) for axis in order] if order else list(range(len(plain)))
        known = set(range(len(plain)))
        if len(set(self.axes)) < len(self.axes) or not known.issuperset(self.axes) or known != set(self.order):
            raise op.fail(f"inner_dims_pos and outer_dims_perm do not name axes of a tensor of rank {len(plain)}")
        if len(self.tiles) != len(self.axes):
            raise op.fail(f"{len(self.tiles)} inner_tiles for {len(self.axes)} inner_dims_pos")

    def plain_index(self, packed: Indices) -> list[Expr]:
        """The index of the element that is stored at a packed index; it may be outside."""
        rank = len(packed) - len(self.axes)
        found: list[Expr] = [ZERO] * rank
        for position, axis in enumerate(self.order):
            found[axis] = packed[position]
        for k, axis in enumerate(self.axes):
            found[axis] = add(mul(found[axis], self.tiles[k]), packed[rank + k])
        return found

    def packed_index(self, plain: Indices) -> list[Expr]:
        """Where an element is stored."""
        outer, inner = list(plain), []
        for k, axis in enumerate(self.axes):
            outer[axis] = floordiv(plain[axis], self.tiles[k])
            inner.append(floormod(plain[axis], self.tiles[k]))
        return [*(outer[axis] for axis in self.order), *inner]


def _pack(b: Builder, op: Op) -> None:
    groups = op.segments()
    source, target = b.view(op, groups[0][0]), destination(b, op, groups[1][0], contents=False)
    packing = _Packing(b, op, source.shape)
    pad = b.fixed(op, groups[2][0]) if groups[2] else None

    def at(indices: list[Expr]) -> Expr:
        plain = packing.plain_index(indices)
        load = source.load(plain, b.is_inside, op.span)
        outside = [i < n for i, n in zip(plain, source.shape, strict=True) if not b.is_inside(i, n)]
        return IfThenElseExpr(logical_and(*outside), load, pad) if pad is not None and outside else load

    b.fill(target, at, op.span)
    b.bind(op.results[0], target)


def _unpack(b: Builder, op: Op) -> None:
    source, target = b.view(op, op.operands[0]), destination(b, op, op.operands[1], contents=False)
    packing = _Packing(b, op, target.shape)
    b.fill(target, lambda i: source.load(packing.packed_index(i), b.is_inside, op.span), op.span)
    b.bind(op.results[0], target)


# ---- tensors and memrefs


def _to_tensor(b: Builder, op: Op) -> None:
    """A copy, as the memref may be written later: but not while the tensor is used, which is undefined then."""
    source = live(b, op, op.operands[0])
    if used_after_write(op, b.may_alias):
        raise op.fail("memory that is written, or freed, while its tensor is used is not translated")
    target = new_tensor(b, op, op.results[0], source.shape)
    b.copy(source, target, op.span)
    b.bind(op.results[0], target)


def _to_memref(b: Builder, op: Op) -> None:
    """The memory of a tensor, which nothing may write then."""
    if any(use.name not in _READERS for use in op.results[0].uses) or root(op.operands[0]).owner is not None:
        raise op.fail("a memory that is written is not translated")
    b.bind(op.results[0], b.view(op, op.operands[0]))


def _materialize(b: Builder, op: Op) -> None:
    """A tensor's elements in a memref, or as the tensor that results."""
    source = b.view(op, op.operands[0])
    if shaped(op, op.operands[1]).kind == "memref":
        memory = live(b, op, op.operands[1])
        b.require_same(source.shape, memory.shape, op.span)
        b.copy(source, memory, op.span)
        return
    target = destination(b, op, op.operands[1], contents=False)
    b.copy(source, target, op.span)
    b.bind(op.results[0], target)


_READERS = ("memref.load", "affine.load", "memref.dim", "vector.transfer_read", "memref.copy")

TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "tensor.empty": _empty,
    "bufferization.alloc_tensor": _empty,
    "tensor.dim": dim,
    "tensor.cast": same_memory,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "tensor.pad": _pad,
    "tensor.generate": _generate,
    "tensor.splat": _splat,
    "tensor.expand_shape": expand,
    "tensor.collapse_shape": collapse,
    "tensor.pack": _pack,
    "tensor.unpack": _unpack,
    "linalg.pack": _pack,
    "linalg.unpack": _unpack,
    "bufferization.to_tensor": _to_tensor,
    "bufferization.materialize_in_destination": _materialize,
    "bufferization.to_memref": _to_memref,
    "bufferization.to_buffer": _to_memref,
}
