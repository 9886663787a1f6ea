"""`memref`: allocation, loads and stores, copies, and views, which are resolved to the cells of their memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from layoutproof.importers.mlir.builder import Builder, shape_of
from layoutproof.importers.mlir.model import (
    AffineExpr,
    AffineMap,
    Dim,
    Num,
    Op,
    Operation2,
    Shaped,
    Strided,
    Value,
    add,
    mul,
)
from layoutproof.importers.mlir.placement import root
from layoutproof.importers.mlir.values import ONE, ZERO, Indices, Vector, View, delinear, linear, number, value_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, equal
from layoutproof.ir.intrinsics import Undef
from layoutproof.verify.maps.check_map import prove_injective
from layoutproof.verify.verdict.verdict import Status

DYNAMIC = -(1 << 63)


def read(b: Builder, op: Op, memory: Value, indices: Indices) -> None:
    """Bind the element at these indices."""
    view = live(b, op, memory)
    _check_rank(op, view, indices)
    if view.inner:
        lanes = view.buffer.shape[view.buffer.rank - view.inner :]
        shape = tuple(value_of(extent) or 0 for extent in lanes)
        bind_vector_read(b, op, Vector(shape, lambda at: view.load(indices, b.is_inside, op.span, at)))
        return
    b.bind_read(op, view.load(indices, b.is_inside, op.span))


def bind_vector_read(b: Builder, op: Op, vector: Vector) -> None:
    """Bind a vector that is read from memory here."""
    from layoutproof.importers.mlir.arith_ops import of_buffer
    from layoutproof.importers.mlir.placement import is_movable

    result = op.results[0]
    memref = isinstance(op.operands[0].type, Shaped) and op.operands[0].type.kind == "memref"
    if memref and is_movable(op, b.expressions, b.may_alias):
        b.bind(result, vector)
        return
    assert isinstance(result.type, Shaped)
    shape = [number(extent) for extent in vector.shape]
    view = View.of(b.allocate(result.name, shape, result.type.element.dtype, op.span))
    b.fill(view, vector.at, op.span)
    b.bind(result, of_buffer(b, op, view))


def write(b: Builder, op: Op, memory: Value, indices: Indices, value: Value) -> None:
    """Store an element."""
    view = live(b, op, memory)
    _check_rank(op, view, indices)
    meaning = b.meanings.get(value)
    if isinstance(meaning, Vector) and view.inner == len(meaning.shape):
        indices = b.settled(indices, [view.buffer], op.span)
        vector = b.steady(meaning, view.buffer, lambda at: view.cell(indices, b.is_inside, at), op.span)
        b.nest(
            [number(extent) for extent in vector.shape],
            lambda at: b.store(view.buffer, view.cell(indices, b.is_inside, at), vector.at(at), op.span),
            op.span,
        )
        return
    b.store(view.buffer, view.cell(indices, b.is_inside), b.expr(op, value), op.span)


def _check_rank(op: Op, view: View, indices: Indices) -> None:
    if len(indices) != len(view.shape):
        raise op.fail(f"{len(indices)} indices into {len(view.shape)} axes")


def live(b: Builder, op: Op, memory: Value) -> View:
    """A memref that has not been freed."""
    if root(memory) in b.freed:
        raise op.fail("memory is used after it was freed")
    return b.view(op, memory)


def check_returned(b: Builder, op: Op, memory: Value) -> None:
    """Refuse memory that has ended when the function returns."""
    live(b, op, memory)
    owner = root(memory).owner
    if owner is not None and owner.name == "memref.alloca":
        raise op.fail("memory of memref.alloca ends with its function")


def _alloc(b: Builder, op: Op) -> None:
    kind = op.results[0].type
    assert isinstance(kind, Shaped)
    check_layout(op, kind)
    sizes, symbols = op.segments() if "operandSegmentSizes" in op.attributes else (op.operands, ())
    if symbols:
        raise op.fail("symbols of a layout are not translated")
    shape = shape_of(op, kind, [b.fixed(op, value) for value in sizes])
    buffer = b.allocate(op.results[0].name, shape, kind.element.dtype, op.span)
    view = View.of(buffer, len(kind.inner))
    if b.fill_new:
        b.fill(view, lambda _: Undef(kind.element.dtype), op.span)
    b.bind(op.results[0], view)


def check_layout(op: Op, kind: Shaped) -> None:
    """Refuse memory whose layout may store two elements in one cell: elements are told apart by their indices.

    Strides that are dynamic, or of dynamic extents, are taken to keep them apart.
    """
    shape = tuple(extent for extent in kind.shape if extent is not None)
    found = _map_of_strides(kind.layout) if isinstance(kind.layout, Strided) else kind.layout
    if found is None or (isinstance(kind.layout, Strided) and len(shape) < kind.rank):
        return
    if found.symbols or len(shape) < kind.rank:
        raise op.fail("a layout map with symbols, or of a dynamic shape, is not translated")
    if prove_injective(found.lambda_text(), shape).status is not Status.PROVED:
        raise op.fail("a layout that may store two elements in one cell is not translated")


def _map_of_strides(layout: Strided) -> AffineMap | None:
    """Strides as a map; None for dynamic ones."""
    total: AffineExpr = Num(0)
    for axis, stride in enumerate(layout.strides):
        if stride is None:
            return None
        total = Operation2("+", total, Operation2("*", Dim(axis), Num(stride)))
    return AffineMap(len(layout.strides), 0, (total,))


def view_of_argument(buffer: Buffer, kind: Shaped) -> View:
    """All of an argument's memory: what is stored where is not known of one with a layout, but its static strides."""
    whole = View.of(buffer, len(kind.inner))
    if kind.layout is None:
        return whole
    known = kind.layout if isinstance(kind.layout, Strided) and None not in kind.layout.strides else None
    given = None
    if known is not None and known.offset is not None:
        given = number(known.offset), tuple(number(stride) for stride in known.strides if stride is not None)
    return replace(whole, linear=False, given=given)


def _dealloc(b: Builder, op: Op) -> None:
    memory = op.operands[0]
    live(b, op, memory)
    if memory.owner is None or memory.owner.name != "memref.alloc" or memory.owner.parent is not op.parent:
        raise op.fail("memory is freed elsewhere than it was allocated")
    b.freed.add(memory)


def dim(b: Builder, op: Op) -> None:
    """The extent of an axis."""
    axis = value_of(b.expr(op, op.operands[1]))
    view = live(b, op, op.operands[0])
    if axis is None or not 0 <= axis < len(view.shape):
        raise op.fail("the axis is no constant of the rank")
    b.bind(op.results[0], view.shape[axis])


def _rank(b: Builder, op: Op) -> None:
    b.bind(op.results[0], number(len(b.view(op, op.operands[0]).shape)))


def _load(b: Builder, op: Op) -> None:
    read(b, op, op.operands[0], [b.expr(op, value) for value in op.operands[1:]])


def _store(b: Builder, op: Op) -> None:
    write(b, op, op.operands[1], [b.expr(op, value) for value in op.operands[2:]], op.operands[0])


def _copy(b: Builder, op: Op) -> None:
    if root(op.operands[0]) is root(op.operands[1]):
        raise op.fail("a copy inside one memory is not translated")
    source, target = (live(b, op, each) for each in op.operands)
    b.require_same(source.shape, target.shape, op.span)
    b.copy(source, target, op.span)


# ---- views


def offsets_sizes_strides(b: Builder, op: Op, first: int) -> tuple[list[Expr], list[Expr], list[Expr]]:
    """The mixed static and dynamic lists of a slice; their operands are the groups from `first` on."""
    groups = op.segments()[first:]
    found = []
    for name, values in zip(("offsets", "sizes", "strides"), groups, strict=True):
        found.append(mixed(b, op, op.attribute(f"static_{name}"), values))
    return found[0], found[1], found[2]


def mixed(b: Builder, op: Op, static: Sequence[int], values: Sequence[Value]) -> list[Expr]:
    """Numbers, and values for the dynamic ones."""
    rest = [b.fixed(op, value) for value in values]
    found = [rest.pop(0) if each == DYNAMIC else number(each) for each in static]
    if rest:
        raise op.fail("more values than dynamic numbers")
    return found


def slice_of(b: Builder, op: Op, source: View, first: int, kind: Shaped) -> View:
    """A slice, without the axes of extent 1 that its type drops."""
    offsets, sizes, strides = offsets_sizes_strides(b, op, first)
    kept = kept_axes(op, sizes, kind)
    shape = tuple(sizes[axis] for axis in kept)
    part = source.part(shape, element_of_slice(kept, offsets, strides))
    return replace(part, inner=source.inner, linear=source.linear)


def element_of_slice(
    kept: Sequence[int], offsets: Sequence[Expr], strides: Sequence[Expr]
) -> Callable[[Indices], Indices]:
    """Which element of a view an element of a slice is; the slice has the axes in `kept`."""

    def element(indices: Indices) -> Indices:
        inside = dict(zip(kept, indices, strict=True))
        return [
            add(offset, mul(inside.get(axis, ZERO), stride))
            for axis, (offset, stride) in enumerate(zip(offsets, strides, strict=True))
        ]

    return element


def kept_axes(op: Op, sizes: Sequence[Expr], kind: Shaped) -> list[int]:
    """The axes of a slice that are axes of its type: extents of 1 may be dropped."""
    drop = len(sizes) - kind.rank
    kept: list[int] = []
    wanted = list(kind.shape)
    for axis, size in enumerate(sizes):
        known = value_of(size)
        fits = len(kept) < len(wanted) and (
            wanted[len(kept)] == known or (known is None) == (wanted[len(kept)] is None)
        )
        if fits and not (known == 1 and drop and wanted[len(kept)] != 1):
            kept.append(axis)
        elif known == 1 and drop:
            drop -= 1
        else:
            raise op.fail("the result's shape does not fit the sizes")
    if len(kept) != len(wanted):
        raise op.fail("the result's shape does not fit the sizes")
    return kept


def _subview(b: Builder, op: Op) -> None:
    source = live(b, op, op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, Shaped)
    b.bind(op.results[0], slice_of(b, op, source, 1, kind))


def same_memory(b: Builder, op: Op) -> None:
    """A cast: the same elements, under another type."""
    view = live(b, op, op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, Shaped)
    for extent, known in zip(view.shape, kind.shape, strict=True):
        if known is not None and value_of(extent) is not None and value_of(extent) != known:
            raise op.fail("the extents differ")
        if known is not None and value_of(extent) is None:
            raise op.fail("a cast to a static extent is not translated")
    b.bind(op.results[0], view)


def groups_of(op: Op, rank: int) -> list[list[int]]:
    """The axes that are one on the other side of a reshape, of the side that has `rank` of them."""
    groups = [[int(axis) for axis in group] for group in op.attribute("reassociation")]
    if groups and [axis for group in groups for axis in group] != list(range(rank)):
        raise op.fail(f"reassociation does not name the {rank} axes in order")
    return groups


def collapse(b: Builder, op: Op) -> None:
    """Several axes as one."""
    source = live(b, op, op.operands[0])
    groups = groups_of(op, len(source.shape))

    def element(indices: Indices) -> Indices:
        parts: list[Expr] = []
        for index, group in zip(indices, groups, strict=True):
            parts += delinear(index, [source.shape[axis] for axis in group])
        if not groups:
            parts = [ZERO] * len(source.shape)
        return parts

    shape = []
    for group in groups:
        extent: Expr = number(1)
        for axis in group:
            extent = mul(extent, source.shape[axis])
        shape.append(extent)
    b.bind(op.results[0], source.part(shape, element))


def expand(b: Builder, op: Op) -> None:
    """One axis as several."""
    source = live(b, op, op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, Shaped)
    groups = groups_of(op, kind.rank)
    if "static_output_shape" in op.attributes:
        shape = mixed(b, op, op.attribute("static_output_shape"), op.operands[1:])
    else:
        shape = list(shape_of(op, kind, []))

    for group, extent in zip(groups, source.shape, strict=True):
        total: Expr = number(1)
        for axis in group:
            total = mul(total, shape[axis])
        if total != extent:
            b.assume(equal(total, extent), op.span)

    def element(indices: Indices) -> Indices:
        return [linear([indices[a] for a in group], [shape[a] for a in group]) for group in groups]

    b.bind(op.results[0], replace(source.part(shape, element), given=_expanded(source, groups, shape)))


def _expanded(
    source: View, groups: Sequence[Sequence[int]], shape: Sequence[Expr]
) -> tuple[Expr, tuple[Expr, ...]] | None:
    """The offset and strides of an expanded view: the last axis of a group has that of the axis before."""
    found = source.metadata()
    if found is None:
        return None
    strides: dict[int, Expr] = {}
    for stride, group in zip(found[1], groups, strict=True):
        for axis in reversed(group):
            strides[axis] = stride
            stride = mul(stride, shape[axis])
    # A memref without axes is expanded to axes of extent 1, in no group.
    return found[0], tuple(strides.get(axis, ONE) for axis in range(len(shape)))


def _metadata(b: Builder, op: Op) -> None:
    """The buffer, offset, sizes and strides of a memref."""
    source = live(b, op, op.operands[0])
    found = source.metadata()
    if found is None:
        raise op.fail("of this view is not translated")
    offset, strides = found
    values = [offset, *source.shape, *strides]
    known, rank = b.view(op, root(op.operands[0])).linear, source.buffer.rank

    def start(_: Indices) -> tuple[Expr, ...]:
        if not known:
            raise ValueError("an access to memory with a layout where it begins is not translated")
        return tuple([ZERO] * rank)

    b.bind(op.results[0], View(source.buffer, (), start, given=(ZERO, ())))
    for result, value in zip(op.results[1:], values, strict=True):
        b.bind(result, value)


def _reinterpret(b: Builder, op: Op) -> None:
    """Any strides over the whole memory that the operand is a view of."""
    base = root(op.operands[0])
    memory = live(b, op, base)
    if not memory.whole or memory.inner:
        raise op.fail("of a view is not translated")
    if not memory.linear:
        raise op.fail("of memory with a layout is not translated")
    if base is not op.operands[0] and not _starts_at_zero(op.operands[0]):
        raise op.fail("of a view that may begin elsewhere is not translated")
    offsets, sizes, strides = offsets_sizes_strides(b, op, 1)

    def place(indices: Indices) -> tuple[Expr, ...]:
        position = offsets[0]
        for index, stride in zip(indices, strides, strict=True):
            position = add(position, mul(index, stride))
        if len(memory.shape) == 1:
            return (position,)
        if not memory.shape and position != ZERO:
            raise ValueError("a number at another place than that of memory for one is not translated")
        return delinear(position, memory.shape)

    b.bind(op.results[0], View(memory.buffer, tuple(sizes), place, given=(offsets[0], tuple(strides))))


def _starts_at_zero(value: Value) -> bool:
    owner = value.owner
    return owner is not None and owner.name in ("memref.extract_strided_metadata", "memref.cast")


TABLE: Mapping[str, Callable[[Builder, Op], None]] = {
    "memref.alloc": _alloc,
    "memref.alloca": _alloc,
    "memref.dealloc": _dealloc,
    "memref.dim": dim,
    "memref.rank": _rank,
    "memref.load": _load,
    "memref.store": _store,
    "memref.copy": _copy,
    "memref.subview": _subview,
    "memref.cast": same_memory,
    "memref.memory_space_cast": same_memory,
    "memref.collapse_shape": collapse,
    "memref.expand_shape": expand,
    "memref.extract_strided_metadata": _metadata,
    "memref.reinterpret_cast": _reinterpret,
}
