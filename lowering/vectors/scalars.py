"""Vector statements as loops over their lanes: for targets that have no such vectors in memory.

Source: the seed `vectorized-tir-buffers` (the explicit loop over lanes that is left where nothing else serves).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import BinaryOp, Broadcast, Cast, Expr, IntImm, Ramp, Var, binary, const, widen
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import BufferStore, For, ForKind, Stmt
from layoutproof.ir.visit import map_children, walk
from layoutproof.lowering.folding import fold_constants
from layoutproof.lowering.vectors.lanes import NoLanes
from layoutproof.lowering.vectors.ramps import Access


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
        """A loop over the lanes of a store. Raises NoLanes where a lane cannot be told by itself."""
        lanes = stmt.value.dtype.lanes
        scalar = replace(stmt, indices=self.indices(stmt), value=self.of(stmt.value))
        return For(self.lane, const(0), const(lanes), ForKind.SERIAL, scalar, span=stmt.span)

    def indices(self, access: Access) -> tuple[Expr, ...]:
        """The indices of one lane of an access."""
        if access.buffer.dtype.lanes > 1:
            raise NoLanes(f"the elements of {access.buffer.name} have lanes", access)
        return tuple(self.of(index) for index in access.indices)

    def of(self, expr: Expr) -> Expr:
        """One lane of an expression; an expression of one lane as it is, but for the vectors that stand in it."""
        match expr:
            case Ramp(base=base, stride=stride):
                step = widen(self.lane, base.dtype)
                if not (isinstance(stride, IntImm) and stride.value == 1):
                    step = fold_constants(binary(BinaryOp.MUL, step, stride))
                return step if isinstance(base, IntImm) and base.value == 0 else binary(BinaryOp.ADD, base, step)
            case Broadcast(value=value):
                return self.of(value)
            case Cast(dtype=dtype, value=value):
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
        """The same for whatever stands in an expression."""
        return self.of(node) if isinstance(node, Expr) and not isinstance(node, Buffer) else node


def lane_variable(name: str) -> Var:
    """The variable that counts lanes."""
    return Var(name, INT32)
