"""Tensor instructions on tiles of matrices: what TVM's own descriptions say that they do (`tvm.s_tir.tensor_intrin`).

A warp of 32 threads runs such an instruction together, and the fragments that it works on are memory of the warp. Known
are the instructions on square tiles that are views of regions (`T.match_buffer`), with the arguments that TVM writes:
`data` of the view, the number of its fragment, and for memory a pointer to its first element and the distance of rows.
Everything else stays a call that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Binary, Cast, Expr, FloatImm, IntImm, Var, binary, widen
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import BufferStore, Evaluate, For, ForKind, Let, MatchBuffer, Stmt
from layoutproof.ir.visit import buffers_in, children, free_variables, loads_in, map_children, take_fresh, walk

_ROW, _COLUMN = StringImm("row_major"), StringImm("col_major")
_SIMDGROUP = "metal.simdgroup"
MATRIX_A, MATRIX_B, ACCUMULATOR = "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"
# The types of factors and results, and the sizes of tiles, that TVM describes. (Of float32, wmma would keep 19 bits.)
_WMMA = frozenset({("float16", "float16"), ("float16", "float32"), ("int8", "int32")})
_SIMDGROUP_TYPES = frozenset({("float16", "float16"), ("float32", "float32"), ("bfloat16", "bfloat16")})
_TYPES = {ACCUMULATOR: _WMMA, _SIMDGROUP: _SIMDGROUP_TYPES}
_SIZES = {MATRIX_A: 16, MATRIX_B: 16, ACCUMULATOR: 16, _SIMDGROUP: 8}
FRAGMENTS = frozenset({MATRIX_A, MATRIX_B, ACCUMULATOR, _SIMDGROUP})


class NotATile(Exception):
    """A call with arguments that TVM does not write, or on memory that is not in tiles, and why."""


@dataclass(frozen=True, slots=True)
class View:
    """A region of a buffer under a name of its own."""

    buffer: Buffer
    source: BufferRegion

    @staticmethod
    def of(match: MatchBuffer) -> View:
        """Raises NotATile where the view has another type, or other extents than the region."""
        view, source = match.buffer, match.source
        before = len(source.ranges) - view.rank
        if before < 0 or view.dtype != source.buffer.dtype:
            raise NotATile(f"{view.name} is a view of another form")
        wanted = [*(IntImm(1) for _ in range(before)), *view.shape]
        for extent, found in zip(wanted, source.ranges, strict=True):
            if widen(extent, found.extent.dtype) != found.extent:
                raise NotATile(f"{view.name} has other extents than its region")
        for given, known in zip(view.strides, _distances(source.buffer)[before:], strict=False):
            if not isinstance(given, Var) and given != known:
                raise NotATile(f"{view.name} has other strides than its region")
        return View(view, source)

    def cell(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices in the source of a cell of the view."""
        before = len(self.source.ranges) - len(indices)
        starts = [each.start for each in self.source.ranges]
        return (*starts[:before], *(start + index for start, index in zip(starts[before:], indices, strict=True)))

    @property
    def names(self) -> tuple[Var, ...]:
        """What stands for its data, its strides and its place."""
        parts = (self.buffer.data, *self.buffer.strides, self.buffer.elem_offset)
        return tuple(part for part in parts if isinstance(part, Var))


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands, and the names that are taken there; these grow."""

    span: Span | None
    names: set[str]


@dataclass(slots=True)
class Tiles:
    """Reads the instructions of a block with views. `sizes` has the tiles of each fragment memory, and grows, as do the
    `names` that are taken.
    """

    views: Mapping[Var, View]
    sizes: dict[Var, int]
    names: set[str]

    def meaning(self, call: OpaqueCall, stmt: Stmt) -> Stmt:
        """What a call does. Raises NotATile."""
        known = _MEANINGS.get(call.function)
        if known is None:
            raise NotATile(f"{call.function} is opaque")
        return known(self, call, Place(stmt.span, self.names))

    # ---- arguments

    def fragment(self, data: Expr, number: Expr, size: int, scopes: Sequence[str]) -> View:
        """The tile of a warp that is given by its memory and the number of the tile there."""
        view = self._view(data, size)
        scope = view.buffer.scope
        if scope != view.source.buffer.scope or scope not in scopes or size != _SIZES[scope]:
            raise NotATile(f"{view.buffer.name} is in memory of scope {scope}, or not of its size")
        if number != _number(view.buffer, size):
            raise NotATile(f"the number of the fragment is not that of {view.buffer.name}")
        # Tiles of one size that begin at multiples of it: two that have one number are the same.
        shape, source = view.source.buffer.shape, view.source
        aligned = all(is_multiple(r.start, size) for r in source.ranges[-2:])
        aligned &= is_multiple(shape[-1], size) and (len(shape) == 2 or is_multiple(shape[-2], size))
        if not aligned or self.sizes.setdefault(source.buffer.data, size) != size:
            raise NotATile(f"{view.buffer.name} is not one of the tiles of {source.buffer.name}")
        if source.buffer.strides or source.buffer.elem_offset != IntImm(0):
            raise NotATile(f"{source.buffer.name} is laid out in another way")
        return view

    def memory(self, pointer: Expr, stride: Expr, size: int) -> View:
        """The tile whose first element a pointer points to, with that distance of rows."""
        if not isinstance(pointer, OpaqueCall) or pointer.function != "tvm_access_ptr" or len(pointer.arguments) != 5:
            raise NotATile("a tile in memory that is not given as TVM gives it")
        kind, data, offset = pointer.arguments[:3]
        view = self._view(data, size)
        rows = view.buffer.strides[0] if view.buffer.strides else None
        typed = isinstance(kind, OpaqueCall) and kind.function == "type_annotation" and _is_type(kind, view.buffer)
        inner = view.source.buffer.strides[-1:] in ((), (IntImm(1),))
        if offset != view.buffer.elem_offset or stride != rows or not typed or not inner:
            raise NotATile(f"a pointer that is not one to the rows of {view.buffer.name}")
        if view.source.buffer.scope in FRAGMENTS:
            raise NotATile(f"a pointer to {view.buffer.name}, which is a fragment")
        return view

    def _view(self, data: Expr, size: int) -> View:
        view = self.views.get(data) if isinstance(data, Var) else None
        if view is None:
            raise NotATile("an instruction on what is no view of a region")
        if list(view.buffer.shape) != [IntImm(size), IntImm(size)]:
            raise NotATile(f"{view.buffer.name} is not a tile of {size} by {size}")
        # What it says of its own about where it lies need not be so, and a name may stand for one thing only.
        layout = len(view.buffer.strides) + 2
        taken = [name for each in self.views.values() for name in each.names]
        if len(view.names) < layout or any(taken.count(name) > 1 for name in view.names):
            raise NotATile(f"{view.buffer.name} does not take its strides and its place from its region")
        return view


def _distances(buffer: Buffer) -> tuple[Expr | None, ...]:
    """How far the elements along each axis are apart, where that is known."""
    if buffer.strides:
        return buffer.strides
    found: list[Expr | None] = [IntImm(1)]
    for extent in reversed(buffer.shape[1:]):
        match found[0], extent:
            case IntImm(value=inner), IntImm(value=number):
                found.insert(0, IntImm(inner * number))
            case _:
                found.insert(0, None)
    return tuple(found)


def is_multiple(value: Expr, size: int) -> bool:
    """Whether a value is seen to be a multiple of a number."""
    match value:
        case _ if size == 1:
            return True
        case IntImm(value=number):
            return number % size == 0
        case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=rhs):
            return is_multiple(lhs, size) or is_multiple(rhs, size)
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB, lhs=lhs, rhs=rhs):
            return is_multiple(lhs, size) and is_multiple(rhs, size)
        case Cast(value=inner):
            return inner.dtype.is_integer and inner.dtype.bits <= value.dtype.bits and is_multiple(inner, size)
        case _:
            return False


def _number(view: Buffer, size: int) -> Expr:
    """The number of a fragment, as TVM computes it from where the tile begins and from the distance of its rows."""
    if not view.strides:
        raise NotATile(f"{view.name} has no strides")
    offset, stride, n = view.elem_offset, view.strides[0], IntImm(size)
    row = offset // stride // n * (stride // n)
    return row + offset % stride // n


def _is_type(kind: OpaqueCall, buffer: Buffer) -> bool:
    named = kind.arguments == (StringImm(str(buffer.dtype)),)
    return named or (not kind.arguments and kind.dtype == buffer.dtype)


def _sizes(arguments: Sequence[Expr], number: int) -> int:
    """The one size of a tile that is given in several directions."""
    sizes = {a.value for a in arguments if isinstance(a, IntImm)}
    if len(arguments) != number or len(sizes) != 1 or not all(isinstance(a, IntImm) for a in arguments):
        raise NotATile("tiles that are not square")
    return sizes.pop()


def _over(size: int, place: Place, *names: str) -> tuple[tuple[Var, ...], Callable[[Stmt], Stmt]]:
    """Indices of a tile, and the loops over them."""
    indices = tuple(Var(take_fresh(name, place.names), INT32) for name in names)

    def loops(body: Stmt) -> Stmt:
        for index in reversed(indices):
            body = For(index, IntImm(0), IntImm(size), ForKind.SERIAL, body, span=place.span)
        return body

    return indices, loops


def _store(view: View, indices: Sequence[Expr], value: Expr, place: Place) -> Stmt:
    return BufferStore(view.source.buffer, view.cell(indices), value, span=place.span)


def _load(view: View, *indices: Expr) -> Expr:
    return BufferLoad(view.source.buffer, view.cell(indices))


def _require(number: int, call: OpaqueCall) -> None:
    if len(call.arguments) != number:
        raise NotATile(f"{call.function} with {len(call.arguments)} arguments")


def _filled(tile: View, value: Expr, size: int, place: Place) -> Stmt:
    dtype = tile.buffer.dtype
    if not isinstance(value, FloatImm | IntImm) or value.value != 0:
        raise NotATile("a fragment that is filled with anything but zero")
    zero: Expr = IntImm(0, dtype) if dtype.is_integer else FloatImm(0.0, dtype)
    (i, j), loops = _over(size, place, "i", "j")
    return loops(_store(tile, (i, j), zero, place))


def _copied(source: View, target: View, transposed: bool, size: int, place: Place) -> Stmt:
    if source.buffer.dtype != target.buffer.dtype:
        raise NotATile("a tile that is copied to one of another type")
    (i, j), loops = _over(size, place, "i", "j")
    return loops(_store(target, (j, i) if transposed else (i, j), _load(source, i, j), place))


def _multiplied(tiles: tuple[View, View, View], size: int, place: Place) -> Stmt:
    """`C[i, j] += A[i, k] * B[k, j]`, in the order of `k`; an instruction may have another, see `Kernel.joins`."""
    result, left, right = tiles
    dtype = result.buffer.dtype
    types = (str(left.buffer.dtype), str(dtype))
    if left.buffer.dtype != right.buffer.dtype or types not in _TYPES[result.buffer.scope]:
        raise NotATile(f"a product of {left.buffer.dtype} and {right.buffer.dtype} in {dtype}")
    (i, j, k), loops = _over(size, place, "i", "j", "k")
    factors = [_load(left, i, k), _load(right, k, j)]
    a, b = (f if f.dtype == dtype else Cast(dtype, f) for f in factors)
    total = binary(BinaryOp.ADD, _load(result, i, j), binary(BinaryOp.MUL, a, b))
    return loops(_store(result, (i, j), total, place))


# ---- one function for each instruction

_LOADED = (MATRIX_A, MATRIX_B)


def _wmma_fill(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    _require(6, call)
    size = _sizes(call.arguments[1:4], 3)
    return _filled(
        tiles.fragment(call.arguments[0], call.arguments[4], size, (ACCUMULATOR,)), call.arguments[5], size, place
    )


def _wmma_load(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    _require(8, call)
    data, *sizes, number, pointer, stride, layout = call.arguments
    size = _sizes(sizes, 3)
    if layout not in (_ROW, _COLUMN):
        raise NotATile("a layout that is not known")
    target = tiles.fragment(data, number, size, _LOADED)
    return _copied(tiles.memory(pointer, stride, size), target, layout == _COLUMN, size, place)


def _wmma_store(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    _require(8, call)
    data, *sizes, number, pointer, stride, layout = call.arguments
    size = _sizes(sizes, 3)
    if layout not in (_ROW, _COLUMN):
        raise NotATile("a layout that is not known")
    source = tiles.fragment(data, number, size, (ACCUMULATOR,))
    return _copied(source, tiles.memory(pointer, stride, size), layout == _COLUMN, size, place)


def _wmma_multiply(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    return _product(tiles, call, (ACCUMULATOR, MATRIX_A, MATRIX_B), place)


def _simdgroup_multiply(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    return _product(tiles, call, (_SIMDGROUP,) * 3, place)


def _product(tiles: Tiles, call: OpaqueCall, scopes: tuple[str, str, str], place: Place) -> Stmt:
    _require(8, call)
    if call.arguments[:2] != call.arguments[6:]:
        raise NotATile("a product that is added to another fragment than it is put into")
    first = tiles.views.get(call.arguments[0]) if isinstance(call.arguments[0], Var) else None
    if first is None:
        raise NotATile("an instruction on what is no view of a region")
    size = _sizes(first.buffer.shape, 2)
    pairs = zip(call.arguments[0:6:2], call.arguments[1:6:2], scopes, strict=True)
    result, left, right = (tiles.fragment(data, number, size, (scope,)) for data, number, scope in pairs)
    if result.source.buffer.data in (left.source.buffer.data, right.source.buffer.data):
        raise NotATile("a product that is added to memory of its factors")
    return _multiplied((result, left, right), size, place)


def _simdgroup_fill(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    _require(5, call)
    data, number, value, *sizes = call.arguments
    size = _sizes(sizes, 2)
    return _filled(tiles.fragment(data, number, size, (_SIMDGROUP,)), value, size, place)


def _simdgroup_load(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    fragment, memory, transposed, size = _simdgroup_copy(tiles, call)
    return _copied(memory, fragment, transposed, size, place)


def _simdgroup_store(tiles: Tiles, call: OpaqueCall, place: Place) -> Stmt:
    fragment, memory, transposed, size = _simdgroup_copy(tiles, call)
    return _copied(fragment, memory, transposed, size, place)


def _simdgroup_copy(tiles: Tiles, call: OpaqueCall) -> tuple[View, View, bool, int]:
    _require(7, call)
    data, number, pointer, stride, *sizes, transposed = call.arguments
    size = _sizes(sizes, 2)
    if not isinstance(transposed, IntImm):
        raise NotATile("a transposition that depends on a value")
    fragment = tiles.fragment(data, number, size, (_SIMDGROUP,))
    return fragment, tiles.memory(pointer, stride, size), bool(transposed.value), size


_MEANINGS: Mapping[str, Callable[[Tiles, OpaqueCall, Place], Stmt]] = {
    "tvm_fill_fragment": _wmma_fill,
    "tvm_load_matrix_sync": _wmma_load,
    "tvm_store_matrix_sync": _wmma_store,
    "tvm_mma_sync": _wmma_multiply,
    "metal.make_filled_simdgroup_matrix": _simdgroup_fill,
    "metal.simdgroup_load": _simdgroup_load,
    "metal.simdgroup_store": _simdgroup_store,
    "metal.simdgroup_multiply_accumulate": _simdgroup_multiply,
}


def written_out(stmt: Stmt, tiles: Tiles, views: Mapping[Buffer, View]) -> Stmt:
    """A statement with the sources of views in their place, and with what instructions on them do. Raises NotATile."""

    def visit(node: Node) -> Node:
        if isinstance(node, Evaluate) and isinstance(node.value, OpaqueCall) and node.value.function in _MEANINGS:
            return tiles.meaning(node.value, node)
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, BufferLoad | BufferStore) and rebuilt.buffer in views:
            view = views[rebuilt.buffer]
            if view.buffer.scope in FRAGMENTS:
                raise NotATile(f"an element of {view.buffer.name}, which is a fragment")
            return replace(rebuilt, buffer=view.source.buffer, indices=view.cell(rebuilt.indices))
        return rebuilt

    result = visit(stmt)
    assert isinstance(result, Stmt)
    return result


def joined_in(stmt: Stmt) -> set[BinaryOp]:
    """How instructions join floats: not in the order of the description, which no device keeps."""
    products = {"tvm_mma_sync", "metal.simdgroup_multiply_accumulate"}
    calls = (node for node in walk(stmt) if isinstance(node, OpaqueCall))
    return {BinaryOp.ADD} if any(call.function in products for call in calls) else set()


def check_fragments(stmt: Stmt, memories: Collection[Var], own: Collection[Var], lanes: Var) -> str | None:
    """Why statements on fragments are not run by a warp together: they touch memory that each thread has for itself
    (`own`), or they, or whether they are reached, depend on which thread of the warp it is (`lanes`).
    """
    for node in walk(stmt):
        if isinstance(node, BufferStore):
            touched = {buffer.data for buffer in buffers_in(node)}
            if touched & set(memories) and touched & set(own):
                return "a tensor instruction on memory that each thread has for itself"
    apart = {lanes}
    for node in walk(stmt):
        if isinstance(node, Let) and (apart & set(free_variables(node.value)) or next(loads_in(node.value), None)):
            apart.add(node.var)
    return _apart(stmt, memories, apart)


def _apart(stmt: Stmt, memories: Collection[Var], apart: set[Var]) -> str | None:
    if not any(buffer.data in memories for buffer in buffers_in(stmt)):
        return None
    if isinstance(stmt, BufferStore):
        used: tuple[Node, ...] = (stmt,)
    else:
        used = tuple(child for child in children(stmt) if isinstance(child, Expr))
        if any(next(loads_in(part), None) is not None for part in used):
            return "whether a tensor instruction is reached depends on memory"
    if any(apart & set(free_variables(part)) for part in used):
        return "a tensor instruction depends on which thread of the warp it is"
    found = (_apart(child, memories, apart) for child in children(stmt) if isinstance(child, Stmt))
    return next((why for why in found if why is not None), None)
