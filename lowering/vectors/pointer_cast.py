"""Loads and stores of whole vectors go through a view of the memory with vectors as elements, by an index of one lane.

The view is written out in the program (`T.decl_buffer` with lanes), so that code generators add no cast of their own. An access is
rewritten where it is a ramp of stride 1 that starts at a multiple of its length, where the memory is aligned, and where the target has
vectors of that length; any other access stays. Source: the seed `vectorized-tir-buffers`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import error
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, BufferStore, DeclBuffer, Stmt
from layoutproof.ir.visit import fresh, map_children, names_in, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arguments import ArgumentKind
from layoutproof.lowering.passes import Pass, option
from layoutproof.lowering.vectors.ramps import accesses_in, check_no_blocks, vector_view, whole_vector
from layoutproof.lowering.vectors.targets import VectorTarget, alignments, find_target, is_aligned
from layoutproof.lowering.witness import rewrite_of

Views = dict[Buffer, dict[int, Buffer]]


@dataclass(frozen=True)
class RewriteRampAsPointerCast(Pass):
    """See memory as vectors where whole vectors are accessed (seed `vectorized-tir-buffers`). A second time it changes nothing."""

    primitive: ClassVar[str] = "rewrite_ramp_as_pointer_cast"
    target: str = field(default="c", metadata=option(ArgumentKind.NAME))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with views.

        Raises LayoutproofError for blocks, for an unknown target, and for one that cannot cast pointers.
        """
        target = find_target(self.target)
        check_no_blocks(func, self.primitive)
        if not target.pointer_casts:
            message = f"{target.name} cannot see memory under another number of lanes"
            raise error(codes.POINTER_CASTS, message, func.span, help="vector_type_rewrite gives buffers vectors as elements")
        views = _views(func, target)
        body = _with_views(func.body, views)
        for buffer in reversed(func.buffers):
            body = _declared(views.get(buffer, {}), body)
        return rewrite_of(func, func.with_body(body))


def _views(func: PrimFunc, target: VectorTarget) -> Views:
    """The views that are needed, by the buffer that is accessed and the number of lanes."""
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
    """The body with accesses through the views, each declared where its buffer is."""

    def visit(node: Node) -> Node:
        if isinstance(node, Buffer):
            return node
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, BufferLoad | BufferStore):
            vector = whole_vector(rebuilt)
            view = views.get(rebuilt.buffer, {}).get(vector.lanes) if vector is not None else None
            return replace(rebuilt, buffer=view, indices=vector.indices) if vector is not None and view is not None else rebuilt
        if isinstance(rebuilt, Allocate | DeclBuffer):
            inner = _declared(views.get(rebuilt.buffer, {}), rebuilt.body)
            needed = isinstance(rebuilt, Allocate) or rebuilt.buffer not in views or rebuilt.buffer in set(walk(inner))
            return replace(rebuilt, body=inner) if needed else inner
        return rebuilt

    result = visit(body)
    assert isinstance(result, Stmt)
    return result


def _declared(views: dict[int, Buffer], body: Stmt) -> Stmt:
    for view in reversed(views.values()):
        body = DeclBuffer(view, body)
    return body
