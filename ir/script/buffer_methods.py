"""What a text asks of a buffer by a method, vector accesses under a predicate, and allocations with constant contents.

A store under a predicate is a vectorized loop whose body is a branch, which is the same program; so a load under one
stands in the value of such a store only.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad, access_type
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
    widen,
)
from layoutproof.ir.intrinsics import Call, OpaqueCall, Reinterpret, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.script.declarations import BufferArguments, CallReader, Scoped, read_allocation
from layoutproof.ir.script.expressions import ExpressionReader, Handler
from layoutproof.ir.script.operands import Value
from layoutproof.ir.script.parsing import bind, read_dtype, read_integer, read_list, read_string
from layoutproof.ir.stmt import NOTHING, Allocate, BufferStore, DeclBuffer, For, ForKind, IfThenElse, Stmt, seq
from layoutproof.ir.visit import fresh, map_children, walk

UNDER_PREDICATE = "vload"
"""The function of the call that a load under a predicate is until its store is read."""

_MASKS = {"r": 1, "w": 2}


def _access_ptr(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`A.access_ptr("rw")`: the pointer to the elements, with their number and how they are used."""
    parameters = ("access_mask", "ptr_type", "content_lanes", "offset", "extent")
    bound = bind(reader.text, node, name, parameters, 1)
    for other in ("ptr_type", "content_lanes"):
        if other in bound:
            raise reader.text.fail(codes.UNSUPPORTED, f"{name} with `{other}` is not supported", bound[other])
    buffer = _buffer_of(reader, node)
    mask = bound["access_mask"]
    if isinstance(mask, ast.Constant) and isinstance(mask.value, int):
        flags = read_integer(reader.text, mask, "an access mask")
    else:
        word = read_string(reader.text, mask, "an access mask")
        if not word or set(word) - set(_MASKS):
            raise reader.text.fail(codes.WRONG_ARGUMENTS, f'"r", "w" or "rw" is expected, not "{word}"', mask)
        flags = sum(_MASKS[letter] for letter in set(word))
    first = reader.integer(bound["offset"], "an offset") if "offset" in bound else IntImm(0)
    if "extent" in bound:
        extent = reader.integer(bound["extent"], "an extent")
    else:
        sizes = [buffer.strides[0], buffer.shape[0]] if buffer.strides else list(buffer.shape)
        extent = _product(sizes)
        extent = extent if first == IntImm(0) else extent - first
    offset = first if buffer.elem_offset == IntImm(0) else buffer.elem_offset + first
    kind = OpaqueCall("type_annotation", (), buffer.dtype)
    return reader.make(node, OpaqueCall, "tvm_access_ptr", (kind, buffer.data, offset, extent, IntImm(flags)), HANDLE)


def _product(sizes: list[Expr]) -> Expr:
    if all(isinstance(size, IntImm) for size in sizes):
        return IntImm(prod(size.value for size in sizes if isinstance(size, IntImm)))
    result = sizes[0]
    for size in sizes[1:]:
        result = result * size
    return result


def _buffer_of(reader: ExpressionReader, node: ast.Call) -> Buffer:
    assert isinstance(node.func, ast.Attribute)
    return reader.buffer(node.func.value)


def _vload(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`A.vload([index], predicate=p)`."""
    bound = bind(reader.text, node, name, ("begin", "dtype", "predicate"), 1)
    buffer = _buffer_of(reader, node)
    indices = _indices(reader, bound["begin"])
    load = reader.make(node, BufferLoad, buffer, indices, code=codes.BUFFER_USE)
    if "dtype" in bound and read_dtype(reader.text, bound["dtype"]) != load.dtype:
        raise reader.text.fail(codes.WRONG_TYPE, f"{name} loads {load.dtype} here", bound["dtype"])
    predicate = _predicate(reader, bound, load.dtype.lanes)
    return load if predicate is None else reader.make(node, OpaqueCall, UNDER_PREDICATE, (load, predicate), load.dtype)


def _indices(reader: ExpressionReader, node: ast.expr) -> tuple[Expr, ...]:
    entries = (
        read_list(reader.text, node, "the indices of an access") if isinstance(node, ast.List | ast.Tuple) else [node]
    )
    return tuple(reader.expr(entry) for entry in entries)


def _predicate(reader: ExpressionReader, bound: Mapping[str, ast.expr], lanes: int) -> Expr | None:
    node = bound.get("predicate")
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    predicate = reader.expr(node)
    if not predicate.dtype.is_bool or predicate.dtype.lanes != lanes:
        message = f"a predicate of {lanes} truth values is expected, this has type {predicate.dtype}"
        raise reader.text.fail(codes.WRONG_TYPE, message, node)
    return predicate


def _active_lanes(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`T.get_active_lane_mask("uint1x4", base, limit)`: whether `base + lane < limit`."""
    bound = bind(reader.text, node, name, ("dtype", "base", "limit"), 3)
    word = read_string(reader.text, bound["dtype"], "a data type")
    lanes = int(word.removeprefix("uint1x")) if word.removeprefix("uint1x").isdecimal() else 0
    if lanes < 2:
        raise reader.text.fail(codes.WRONG_TYPE, f'"uint1x4" or the like is expected, not "{word}"', bound["dtype"])
    base, limit = reader.matched(node, reader.read(bound["base"]), reader.read(bound["limit"]))
    places = reader.make(node, Ramp, base, const(1, base.dtype), lanes)
    return reader.make(node, Compare, CompareOp.LT, places, Broadcast(limit, lanes))


METHODS: Mapping[str, Handler] = {".access_ptr": _access_ptr, ".vload": _vload, "get_active_lane_mask": _active_lanes}
"""Calls that an expression may have besides functions: methods of buffers begin with a point."""


def is_vector_store(node: ast.expr) -> bool:
    """Whether a call is `B.vstore(...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "vstore"


def read_vector_store(statements: CallReader, node: ast.stmt, call: ast.Call) -> Stmt:
    """`B.vstore([index], value, predicate=p)`."""
    reader, env = statements.exprs, statements.env
    bound = bind(reader.text, call, "vstore", ("begin", "value", "predicate"), 2)
    buffer, indices = _buffer_of(reader, call), _indices(reader, bound["begin"])
    element = reader.make(call, BufferLoad, buffer, indices, code=codes.BUFFER_USE)
    value = reader.stored(reader.read(bound["value"]), access_type(buffer, indices))
    lanes = element.dtype.lanes
    predicate = _predicate(reader, bound, lanes)
    if predicate is None or buffer.dtype.lanes != 1:
        return reader.make(node, BufferStore, buffer, indices, value, code=codes.BUFFER_USE)
    for part in walk(value):
        if isinstance(part, BufferLoad) and part.buffer.data == buffer.data and part.indices != indices:
            message = f"a store under a predicate whose value loads other elements of {buffer.name} is not supported"
            raise reader.text.fail(codes.UNSUPPORTED, message, bound["value"])
    lane = Var(fresh("lane", env.names()))
    parts = _Lane(reader, call, lane)
    where, stored = parts.scalar(predicate), parts.scalar(value)
    store = BufferStore(buffer, (*indices[:-1], parts.scalar(indices[-1])), stored, span=reader.text.span(node))
    branch = IfThenElse(where, store)
    return reader.make(node, For, lane, IntImm(0), IntImm(lanes), ForKind.VECTORIZED, branch)


@dataclass(frozen=True, slots=True)
class _Lane:
    """One lane of expressions."""

    reader: ExpressionReader
    place: ast.expr
    lane: Var

    def scalar(self, expr: Expr) -> Expr:
        """The value of an expression in the lane. Raises LayoutproofError for what has no lanes of its own."""
        found = self.visit(expr)
        assert isinstance(found, Expr)
        return found

    def visit(self, node: Node) -> Node:
        if not isinstance(node, Expr) or node.dtype.lanes == 1:
            return node
        match node:
            case Ramp():
                return node.base + node.stride * widen(self.lane, node.base.dtype)
            case Broadcast():
                return node.value
            case OpaqueCall(function=function, arguments=(load, predicate)) if function == UNDER_PREDICATE:
                loaded = self.scalar(load)
                return IfThenElseExpr(self.scalar(predicate), loaded, Undef(loaded.dtype))
            case Cast() | Reinterpret():
                return replace(node, dtype=node.dtype.element, value=self.scalar(node.value))
            case BufferLoad() if node.buffer.dtype.lanes == 1:
                return replace(node, indices=(*node.indices[:-1], self.scalar(node.indices[-1])))
            case Binary() | Compare() | Logical() | Not() | Select() | Call():
                return map_children(node, self.visit)
            case _:
                message = "this value of several lanes cannot stand in a store under a predicate"
                raise self.reader.text.fail(codes.UNSUPPORTED, message, self.place)


def read_view(statements: CallReader, node: ast.Assign, target: ast.Name) -> Scoped | None:
    """`B = A.view(18)`: another shape of the same memory, row by row; None for anything else.

    One extent may be -1: it is what the others leave.
    """
    call, reader = node.value, statements.exprs
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "view"):
        return None
    buffer = _buffer_of(reader, call)
    plain = not call.keywords and not any(isinstance(a, ast.Constant) and isinstance(a.value, str) for a in call.args)
    if not call.args or not plain or buffer.strides:
        message = f"{buffer.name}.view with other arguments than extents, or of a buffer with strides, is not supported"
        raise reader.text.fail(codes.UNSUPPORTED, message, call)
    given = [None if ast.unparse(entry) == "-1" else entry for entry in call.args]
    if given.count(None) > 1:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "at most one extent of a view is -1", call)
    arguments = BufferArguments(reader, statements.env)
    known = [arguments.extent(entry, "an extent") for entry in given if entry is not None]
    shape = list(known)
    if None in given:
        shape.insert(given.index(None), _left(reader, call, buffer, known))
    same = (buffer.elem_offset, buffer.scope, (), buffer.align, buffer.offset_factor)
    view = reader.make(node, Buffer, target.id, buffer.dtype, tuple(shape), buffer.data, (), *same)
    return Scoped(lambda env: env.bind(target.id, view, target), lambda body: reader.make(node, DeclBuffer, view, body))


def _left(reader: ExpressionReader, call: ast.Call, buffer: Buffer, known: list[Expr]) -> Expr:
    """The extent that a view leaves to be found."""
    whole, others = _product(list(buffer.shape)), _product(known) if known else IntImm(1)
    if not isinstance(whole, IntImm) or not isinstance(others, IntImm):
        return whole // others
    if others.value == 0 or whole.value % others.value:
        message = f"{buffer.name} has {whole.value} elements, which no extent makes of {others.value}"
        raise reader.text.fail(codes.BUFFER_USE, message, call)
    return IntImm(whole.value // others.value)


def read_allocating(
    statements: CallReader, node: ast.stmt, target: ast.Name, call: ast.Call, name: str, following: ast.stmt | None
) -> Scoped:
    """A call that allocates, with contents or without."""
    if name == "allocate_const":
        return read_constants(statements, node, target, call, following)
    return read_allocation(statements, node, target, call, name, following)


def read_constants(
    statements: CallReader, node: ast.stmt, target: ast.Name, call: ast.Call, following: ast.stmt | None
) -> Scoped:
    """`B = T.allocate_const([0.0, 0.1], "float32", [2])`: an allocation, and a store for each element."""
    reader = statements.exprs
    bound = bind(reader.text, call, "T.allocate_const", ("data", "dtype", "extents", "annotations"), 3)
    entries = read_list(reader.text, bound["data"], "constant contents")
    plain = ast.copy_location(ast.Call(call.func, [bound["extents"], bound["dtype"]], []), call)
    scoped = read_allocation(statements, node, target, plain, "allocate", following)
    allocation = scoped.close(NOTHING)
    assert isinstance(allocation, Allocate)
    buffer = allocation.buffer
    extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    if len(extents) != buffer.rank or prod(extents) != len(entries) or len(entries) > _MOST:
        message = f"{prod(extents)} elements, at most {_MOST}, and as many numbers are expected, not {len(entries)}"
        raise reader.text.fail(codes.WRONG_ARGUMENTS, message, bound["data"])
    stores: list[Stmt] = []
    for place, entry in zip(product(*map(range, extents)), entries, strict=True):
        indices = tuple(IntImm(index) for index in place)
        value = reader.stored(reader.read(entry), buffer.dtype)
        stores.append(reader.make(node, BufferStore, buffer, indices, value, code=codes.BUFFER_USE))
    return replace(scoped, close=lambda body: scoped.close(seq(*stores, body)))


_MOST = 256  # elements
