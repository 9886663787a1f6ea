"""Accesses that are whole vectors, as such or through a view of the memory with vector elements.

The permitted vectors depend on the target. The view is in the program (`T.decl_buffer` with lanes), so that code
generators add no cast of their own. An access is rewritten if it is a ramp of stride 1 that starts at a multiple of its
length, the memory is aligned, and the target has vectors of that length.

Source: TVM's RFC `vectorized-tir-buffers`.
Source: TVM's RFC `vectorized-tir-buffers` (pointer casting: only where the target supports it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Ramp, binary, const
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Stmt
from layoutproof.ir.visit import descend, fresh, names_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.witness_maps import rewrite_of

# What generated code allocates starts at a cache line, on every target.
ALLOCATED = 64


@dataclass(frozen=True, slots=True)
class VectorTarget:
    """`lanes` are the lengths of vectors that it loads at once, `parameters` the alignment of parameters in bytes that
    needs no promise (0: that of their elements).
    """

    name: str
    pointer_casts: bool
    lanes: frozenset[int]
    parameters: int


TARGETS: Mapping[str, VectorTarget] = {
    target.name: target
    for target in (
        # Arrays of callers are aligned to their elements.
        VectorTarget("c", True, frozenset((2, 4, 8, 16)), 0),
        # A buffer of OpenCL starts at a multiple of its largest type; three lanes take the place of four there.
        VectorTarget("opencl", True, frozenset((2, 4, 8, 16)), 128),
        # Arrays of SPIR-V are typed, and pointers to them cannot be cast.
        VectorTarget("vulkan", False, frozenset((2, 4)), 16),
    )
}


def find_target(name: str) -> VectorTarget:
    """The target of a name. Raises LayoutproofError if there is none."""
    target = TARGETS.get(name)
    if target is None:
        raise error(codes.VECTOR_TARGET, f"there is no target {name!r}", help=f"available: {', '.join(TARGETS)}")
    return target


def alignments(func: PrimFunc, target: VectorTarget) -> dict[str, int]:
    """The alignment in bytes of each memory's start, by its data variable's name."""
    found = {b.data.name: max(b.align, target.parameters, b.dtype.element.bytes) for b in func.buffers}
    for node in walk(func.body):
        if isinstance(node, Allocate):
            found[node.buffer.data.name] = max(node.buffer.align, ALLOCATED)
    return found


def is_aligned(buffer: Buffer, lanes: int, alignment: Mapping[str, int]) -> bool:
    """Whether vectors of `lanes` elements lie at multiples of their size; `alignment` is that of the memories."""
    promised = max(alignment.get(buffer.data.name, 0), buffer.align)
    return promised % (buffer.dtype.element.bytes * lanes) == 0 and promised > 0


Access = BufferLoad | BufferStore


@dataclass(frozen=True, slots=True)
class WholeVector:
    """An access of a whole vector: its length, and the indices that count vectors on the last axis."""

    lanes: int
    indices: tuple[Expr, ...]


def accesses_in(func: PrimFunc) -> Iterator[Access]:
    """Every load and store of a function."""
    return (n for n in walk(func.body) if isinstance(n, BufferLoad | BufferStore))


def whole_vector(access: Access) -> WholeVector | None:
    """The whole vector that an access is; None for any other access."""
    last = access.indices[-1] if access.indices else None
    if not isinstance(last, Ramp) or access.buffer.dtype.lanes > 1:
        return None
    if not (isinstance(last.stride, IntImm) and last.stride.value == 1):
        return None
    position = divided(last.base, last.lanes)
    return None if position is None else WholeVector(last.lanes, (*access.indices[:-1], position))


def divided(expr: Expr, number: int) -> Expr | None:
    """`expr / number` if it is known to be exact, else None. Index arithmetic does not wrap."""
    quotient, rest = _unwidened(affine_of(expr)).split(number)
    return expression_of(quotient, expr.dtype) if rest.is_constant and rest.constant == 0 else None


def _unwidened(affine: Affine) -> Affine:
    """The same integers with casts that widen moved inwards: a sum of widened terms, with a constant factor in
    front.
    """
    result = Affine({}, affine.constant)
    for term, coefficient in affine.terms.items():
        inner = Affine({term: 1})
        match term:
            case Cast(dtype=dtype, value=value) if value.dtype.is_integer and value.dtype.bits <= dtype.bits:
                inner = _unwidened(affine_of(value))
            case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=rhs):
                (left, one), (right, other) = _with_factor(lhs), _with_factor(rhs)
                inner = Affine({Binary(BinaryOp.MUL, left, right): one * other})
            case _:
                pass
        result = result + inner.scaled(coefficient)
    return result


def _with_factor(expr: Expr) -> tuple[Expr, int]:
    """An integer expression without its constant factor, and that factor, which may be 1."""
    affine = _unwidened(affine_of(expr))
    factor = gcd(affine.constant, *affine.terms.values())
    return (expression_of(affine.split(factor)[0], expr.dtype), factor) if factor > 1 else (expr, 1)


def vector_view(buffer: Buffer, lanes: int, name: str) -> Buffer | None:
    """The buffer as one of vectors: its last axis is shorter by their length. None if rows are no whole number of
    vectors, and if the buffer has strides, an offset, or lanes already.

    The one axis of a flat buffer may have a rest behind its last vector, which the view does not see.
    """
    plain = not buffer.strides and buffer.elem_offset == const(0, buffer.elem_offset.dtype)
    if not plain or not buffer.shape or buffer.dtype.lanes > 1 or "texture" in buffer.scope:
        return None
    extent = divided(buffer.shape[-1], lanes)
    if extent is None:
        if buffer.rank > 1:
            return None
        extent = _quotient(buffer.shape[-1], lanes)
    return replace(buffer, name=name, dtype=buffer.dtype.with_lanes(lanes), shape=(*buffer.shape[:-1], extent))


def _quotient(extent: Expr, lanes: int) -> Expr:
    number = const(lanes, extent.dtype)
    return (
        const(extent.value // lanes, extent.dtype)
        if isinstance(extent, IntImm)
        else binary(BinaryOp.FLOORDIV, extent, number)
    )


def check_no_blocks(func: PrimFunc, primitive: str) -> None:
    """Raise LayoutproofError for a function with blocks."""
    block = next((n for n in walk(func.body) if isinstance(n, Block)), None)
    if block is not None:
        message = (
            f"{primitive} takes a program without blocks, and there is block {block.name}: lower_blocks goes first"
        )
        raise error(codes.BLOCKS_FIRST, message, block.span)


Views = dict[Buffer, dict[int, Buffer]]


@dataclass(frozen=True)
class RewriteRampAsPointerCast(Pass):
    """Access whole vectors through views with vector elements, if memory is aligned and the target casts pointers."""

    primitive: ClassVar[str] = "rewrite_ramp_as_pointer_cast"
    target: str = field(default="c", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with views. Raises LayoutproofError for blocks, and for a target that is unknown or cannot cast
        pointers.
        """
        target = find_target(self.target)
        check_no_blocks(func, self.primitive)
        if not target.pointer_casts:
            message = f"{target.name} cannot see memory under another number of lanes"
            raise error(
                codes.POINTER_CASTS, message, func.span, help="vector_type_rewrite gives buffers vectors as elements"
            )
        views = _views(func, target)
        body = _with_views(func.body, views)
        for buffer in reversed(func.buffers):
            body = _declared(views.get(buffer, {}), body)
        return rewrite_of(func, func.with_body(body))


def _views(func: PrimFunc, target: VectorTarget) -> Views:
    """The necessary views, by accessed buffer and number of lanes."""
    alignment = alignments(func, target)
    names = names_in(func.body) | {b.name for b in func.buffers}
    found: Views = {}
    for access in accesses_in(func):
        vector, buffer = whole_vector(access), access.buffer
        if vector is None or vector.lanes not in target.lanes or not is_aligned(buffer, vector.lanes, alignment):
            continue
        known = found.setdefault(buffer, {})
        if vector.lanes not in known:
            name = fresh(f"{buffer.name}_x{vector.lanes}", names)
            view = vector_view(buffer, vector.lanes, name)
            if view is not None:
                names.add(name)
                known[vector.lanes] = view
    return found


def _with_views(body: Stmt, views: Views) -> Stmt:
    """The body with accesses through the views, each declared at its buffer's declaration."""

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return node if isinstance(node, Buffer) else descend(node, visit, viewed)

    def viewed(rebuilt: Node) -> Node:
        if isinstance(rebuilt, BufferLoad | BufferStore):
            vector = whole_vector(rebuilt)
            view = views.get(rebuilt.buffer, {}).get(vector.lanes) if vector is not None else None
            return (
                replace(rebuilt, buffer=view, indices=vector.indices)
                if vector is not None and view is not None
                else rebuilt
            )
        if isinstance(rebuilt, Allocate | DeclBuffer):
            inner = _declared(views.get(rebuilt.buffer, {}), rebuilt.body)
            needed = isinstance(rebuilt, Allocate) or rebuilt.buffer not in views or rebuilt.buffer in set(walk(inner))
            return replace(rebuilt, body=inner) if needed else inner
        return rebuilt

    result = trampoline(visit, body)
    assert isinstance(result, Stmt)
    return result


def _declared(views: dict[int, Buffer], body: Stmt) -> Stmt:
    for view in reversed(views.values()):
        body = DeclBuffer(view, body)
    return body
