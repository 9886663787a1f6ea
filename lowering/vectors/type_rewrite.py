"""Buffers of which only whole vectors of one length are accessed become buffers of vectors.

This is for targets whose memory is typed and whose pointers cannot be cast; if a target has no such vectors, accesses
become loops over lanes. A parameter keeps its entry in `buffer_map`, which is the calling convention. A memory with one
other access (a scalar, another length, its address) stays as it is.

Source: TVM's RFC `vectorized-tir-buffers` (the explicit loop over lanes that is left where nothing else serves).
Sources: TVM's RFCs `vectorized-tir-buffers` and `clarifying-buffer-declaration-and-access` (VectorBufferRewrite).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Broadcast, Cast, Expr, IntImm, Ramp, Var, binary, const, widen
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Reinterpret, Undef
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, For, ForKind, Stmt
from layoutproof.ir.visit import (
    children,
    descend,
    fresh,
    loops_of_stores,
    map_children,
    mapped,
    names_in,
    stores_in,
    walk,
)
from layoutproof.lowering.arith.affine import fold_constants
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.lowering.vectors.lanes import NoLanes
from layoutproof.lowering.vectors.ramps import (
    Access,
    VectorTarget,
    accesses_in,
    alignments,
    check_no_blocks,
    divided,
    find_target,
    is_aligned,
    vector_view,
    whole_vector,
)


def vector_accesses(stmt: BufferStore) -> Iterator[Access]:
    """The accesses of a store that reach several elements at once, by an index or by elements that have lanes."""
    for node in walk(stmt):
        if isinstance(node, BufferLoad | BufferStore) and (node.buffer.dtype.lanes > 1 or _has_lanes(node)):
            yield node


def has_vector_index(stmt: BufferStore) -> bool:
    """Whether an access of a store has an index with lanes."""
    return any(_has_lanes(access) for access in vector_accesses(stmt))


def _has_lanes(access: Access) -> bool:
    return bool(access.indices) and access.indices[-1].dtype.lanes > 1


@dataclass(frozen=True, slots=True)
class OneLane:
    """Says what one lane of a vector is; `lane` counts them."""

    lane: Var

    def store(self, stmt: BufferStore) -> Stmt:
        """A loop over the lanes of a store. Raises NoLanes if a lane cannot be written by itself."""
        lanes = stmt.value.dtype.lanes
        scalar = replace(stmt, indices=self.indices(stmt), value=self.of(stmt.value))
        return For(self.lane, const(0), const(lanes), ForKind.SERIAL, scalar, span=stmt.span)

    def indices(self, access: Access) -> tuple[Expr, ...]:
        """The indices of one lane of an access."""
        if access.buffer.dtype.lanes > 1:
            raise NoLanes(f"the elements of {access.buffer.name} have lanes", access)
        return tuple(self.of(index) for index in access.indices)

    def of(self, expr: Expr) -> Expr:
        """One lane of an expression; an expression of one lane only has its vectors replaced."""
        match expr:
            case Ramp(base=base, stride=stride):
                step = widen(self.lane, base.dtype)
                if not (isinstance(stride, IntImm) and stride.value == 1):
                    step = fold_constants(binary(BinaryOp.MUL, step, stride))
                return step if isinstance(base, IntImm) and base.value == 0 else binary(BinaryOp.ADD, base, step)
            case Broadcast(value=value):
                return self.of(value)
            case Cast(dtype=dtype, value=value) | Reinterpret(dtype=dtype, value=value):
                return replace(expr, dtype=dtype.element, value=self.of(value))
            case Undef(dtype=dtype):
                return replace(expr, dtype=dtype.element)
            case BufferLoad():
                return replace(expr, indices=self.indices(expr))
            case Var() if expr.dtype.lanes > 1:
                raise NoLanes(f"{expr.name} stands for a vector", expr)
            case _:
                return map_children(expr, self.node)

    def node(self, node: Node) -> Node:
        """The same for any node of an expression."""
        return self.of(node) if isinstance(node, Expr) and not isinstance(node, Buffer) else node


def lane_variable(name: str) -> Var:
    """The variable that counts lanes."""
    return Var(name, INT32)


@dataclass(frozen=True)
class VectorTypeRewrite(Pass):
    """Give buffers of which only whole vectors are accessed vectors as elements; with `scalarize` other vector accesses
    become loops over lanes.

    With `scalarize` no index with lanes is left, except in a let.
    """

    primitive: ClassVar[str] = "vector_type_rewrite"
    target: str = field(default="vulkan", metadata=option(ArgumentKind.NAME))
    scalarize: bool = field(default=False, metadata=option(ArgumentKind.FLAG))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with buffers of vectors. Raises LayoutproofError for blocks and for an unknown target."""
        target = find_target(self.target)
        check_no_blocks(func, self.primitive)
        blocked = frozenset[Var]()
        while True:
            retyped = _retyped(func, target, blocked)
            mixed = _in_mixed_stores(func, retyped) if self.scalarize else blocked
            if mixed <= blocked:
                break
            blocked |= mixed
        body = _with_vectors(func.body, retyped)
        looped = list[bool]()
        if self.scalarize:
            body = _lane_after_lane(body, fresh("lane", names_in(func.body)), looped)
        for buffer in reversed(func.buffers):
            if buffer in retyped:
                body = DeclBuffer(retyped[buffer], body)
        new = func.with_body(body)
        return Rewrite(func, new, Witness(tuple(_pairs(func, new, looped)))) if any(looped) else rewrite_of(func, new)


def _pairs(old: PrimFunc, new: PrimFunc, looped: Sequence[bool]) -> Iterator[InstanceMap]:
    """Store n computes the old store n; that of a loop over lanes computes one lane."""
    loops = zip(loops_of_stores(old.body), loops_of_stores(new.body), strict=True)
    for number, ((before, after), lanes) in enumerate(zip(loops, looped, strict=True)):
        inputs = tuple(loop.var for loop in after)
        yield InstanceMap(number, number, IndexMap(inputs, inputs if lanes else tuple(loop.var for loop in before)))


def _in_mixed_stores(func: PrimFunc, retyped: Mapping[Buffer, Buffer]) -> frozenset[Var]:
    """Memories that would become vectors, but occur in a store beside an index with lanes that would stay."""
    found = set[Var]()
    for store in stores_in(func.body):
        reached = list(vector_accesses(store))
        if any(access.buffer not in retyped for access in reached):
            found |= {access.buffer.data for access in reached if access.buffer in retyped}
    return frozenset(found)


def _lane_after_lane(body: Stmt, name: str, looped: list[bool]) -> Stmt:
    """The body with loops over lanes for stores that have an index with lanes; `looped` says which stores these are."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        if not isinstance(node, BufferStore):
            return mapped(node) if isinstance(node, Stmt) else node
        try:
            result: Stmt = OneLane(lane_variable(name)).store(node) if has_vector_index(node) else node
        except NoLanes:
            result = node
        looped.append(result is not node)
        return result

    result = trampoline(visit, body)
    assert isinstance(result, Stmt)
    return result


def _retyped(func: PrimFunc, target: VectorTarget, blocked: frozenset[Var]) -> dict[Buffer, Buffer]:
    """The buffers that become buffers of vectors, and their new form; `blocked` memories stay."""
    lengths = {data: lanes for data, lanes in _lengths(func).items() if data not in blocked}
    alignment, names = alignments(func, target), names_in(func.body) | {b.name for b in func.buffers}
    used = {access.buffer for access in accesses_in(func)}
    found: dict[Buffer, Buffer] = {}
    for data, lanes in lengths.items():
        views = [b for b in all_buffers(func) if b.data == data and (b in used or b not in func.buffers)]
        fine = lanes in target.lanes and all(is_aligned(b, lanes, alignment) and _divides(b, lanes) for b in views)
        vectors: list[tuple[Buffer, Buffer]] = []
        for buffer in views:
            name = fresh(f"{buffer.name}_x{lanes}", names) if buffer in func.buffers else buffer.name
            view = vector_view(buffer, lanes, name)
            if view is not None:
                vectors.append((buffer, view))
        if fine and len(vectors) == len(views):
            names.update(view.name for _, view in vectors)
            found.update(vectors)
    return found


def _divides(buffer: Buffer, lanes: int) -> bool:
    """Whether the buffer is a whole number of vectors: allocations keep their size."""
    return bool(buffer.shape) and divided(buffer.shape[-1], lanes) is not None


def _lengths(func: PrimFunc) -> Mapping[Var, int]:
    """The memories all of whose accesses are whole vectors of one length, with that length."""
    found: dict[Var, int] = {}
    others = set(_pointers(func.body))
    for access in accesses_in(func):
        vector, data = whole_vector(access), access.buffer.data
        if vector is None or found.setdefault(data, vector.lanes) != vector.lanes:
            others.add(data)
    return {data: lanes for data, lanes in found.items() if data not in others}


def _pointers(node: Node) -> Iterator[Var]:
    """Data variables that occur outside of buffers."""
    stack = [node]
    while stack:
        below = children(stack.pop())
        yield from (child for child in below if isinstance(child, Var))
        stack += [child for child in reversed(below) if not isinstance(child, Buffer | Var)]


def _with_vectors(body: Stmt, retyped: Mapping[Buffer, Buffer]) -> Stmt:
    def visit(node: Node) -> Node | Steps[Node, Node]:
        return node if isinstance(node, Buffer) else descend(node, visit, retyping)

    def retyping(rebuilt: Node) -> Node:
        if isinstance(rebuilt, BufferLoad | BufferStore) and rebuilt.buffer in retyped:
            vector = whole_vector(rebuilt)
            assert vector is not None
            indices: tuple[Expr, ...] = vector.indices
            return replace(rebuilt, buffer=retyped[rebuilt.buffer], indices=indices)
        if isinstance(rebuilt, Allocate | DeclBuffer):
            return replace(rebuilt, buffer=retyped.get(rebuilt.buffer, rebuilt.buffer))
        return rebuilt

    result = trampoline(visit, body)
    assert isinstance(result, Stmt)
    return result
