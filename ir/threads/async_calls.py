"""Instructions of PTX for asynchronous copies, as TVM's attributes: copies, commits and waits."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Expr, IntImm, Var, widen
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.stmt import NOTHING, AttrStmt, BufferStore, Evaluate, For, ForKind, Stmt
from layoutproof.ir.threads.tiles import is_multiple

# TVM's attributes, and the queue of what PTX commits.
COPY = "async_scope"
COMMIT = "async_commit_queue_scope"
WAIT = "async_wait_queue_scope"
IN_FLIGHT = "async_wait_inflight_count"
ASYNC_KEYS = frozenset({COPY, COMMIT, WAIT, IN_FLIGHT})
PTX = "ptx"

_GROUPS = {
    "ptx_commit_group": COMMIT,
    "ptx_wait_group": WAIT,
    "ptx.cp.async_.commit_group": COMMIT,
    "ptx.cp.async_.wait_group": WAIT,
}
_COPIES = frozenset({"ptx_cp_async", "s_tir.cp_async_raw"})
ASYNC_CALLS = frozenset(_GROUPS) | _COPIES
_BYTES = (4, 8, 16)  # of one copy


class NotACopy(Exception):
    """A call that is not understood, and why."""


def as_attributes(stmt: Evaluate, call: OpaqueCall, buffers: Mapping[Var, Buffer]) -> Stmt:
    """What a call of `ASYNC_CALLS` does. `buffers` are those of parameters and of the kernel, by data variable.

    Raises NotACopy.
    """
    return _copy(stmt, call, buffers) if call.function in _COPIES else _group(stmt, call)


def _group(stmt: Evaluate, call: OpaqueCall) -> Stmt:
    key, count = _GROUPS[call.function], len(call.arguments)
    if count != (1 if key == WAIT else 0):
        raise NotACopy(f"{call.function} with {count} arguments")
    body = NOTHING if key == COMMIT else AttrStmt(IntImm(0), IN_FLIGHT, call.arguments[0], NOTHING, span=stmt.span)
    return AttrStmt(IntImm(0), key, StringImm(PTX), body, span=stmt.span)


def _copy(stmt: Evaluate, call: OpaqueCall, buffers: Mapping[Var, Buffer]) -> Stmt:
    """So many bytes from one place to another. Offsets count elements of the type that both buffers have."""
    named, arguments = str(call.dtype), call.arguments
    if call.function != "ptx_cp_async" and arguments and isinstance(arguments[0], StringImm):
        named, arguments = arguments[0].value, arguments[1:]
    if len(arguments) != 5 or not isinstance(arguments[4], IntImm) or arguments[4].value not in _BYTES:
        raise NotACopy(f"{call.function} that does not copy 4, 8 or 16 bytes")
    target, source = (buffers.get(a) if isinstance(a, Var) else None for a in (arguments[0], arguments[2]))
    if target is None or source is None or not target.scope.startswith("shared") or source.scope != "global":
        raise NotACopy(f"{call.function} that is not one from memory of the grid to shared memory")
    if {str(target.dtype), str(source.dtype)} != {named} or target.dtype.lanes > 1:
        raise NotACopy(f"{call.function} between buffers of other types")
    number = arguments[4].value * 8 // target.dtype.bits
    if number * target.dtype.bits != arguments[4].value * 8 or not all(
        is_multiple(arguments[at], number) for at in (1, 3)
    ):
        raise NotACopy(f"{call.function} at places that are not seen to be aligned")
    element = Var("element", INT32)
    store = BufferStore(
        target,
        _cell(target, arguments[1], element),
        BufferLoad(source, _cell(source, arguments[3], element)),
        span=stmt.span,
    )
    loop = For(element, IntImm(0), IntImm(number), ForKind.SERIAL, store, span=stmt.span)
    return AttrStmt(IntImm(0), COPY, IntImm(1), loop, span=stmt.span)


def _cell(buffer: Buffer, offset: Expr, element: Var) -> tuple[Expr, ...]:
    """The indices of what stands so many elements behind the first one."""
    if buffer.strides or buffer.elem_offset != IntImm(0) or buffer.axis_separators:
        raise NotACopy(f"a copy of {buffer.name}, which is laid out in another way")
    place = offset + widen(element, offset.dtype)
    indices: list[Expr] = []
    for axis, extent in reversed(list(enumerate(buffer.shape))):
        here = widen(extent, place.dtype)
        indices.insert(0, place if axis == 0 else place % here)
        place = place // here
    return tuple(indices)
