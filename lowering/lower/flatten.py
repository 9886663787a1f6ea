"""Flattening: each axis group of a buffer becomes one physical axis, row-major; blocks become loops, iteration
variables their bindings, guards and inits branches.

A parameter keeps its entry in `buffer_map`, which is the calling convention; its flat view is a `DeclBuffer` alias at
the function's start. Strides and `elem_offset` go into the index. Truth values are stored as int8. Where a flat index
may not fit 32 bits it is computed in 64. Sources: TVM's RFCs `buffer-physical-layout` (FlattenBuffer) and
`clarifying-buffer-declaration-and-access`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.dtype import INT8, INT32, INT64, DType
from layoutproof.ir.expr import TRUE, Binary, Cast, Expr, IntImm, Ramp, Var, binary, const, widen
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    Stmt,
    body_of,
)
from layoutproof.ir.visit import free_variables, fresh, map_children, mapped, names_in, substitute, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import Scope, symbol_scope
from layoutproof.lowering.layout.separators import groups_of, stated_separators, with_attribute
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.lowering.passes.witness_maps import rewrite_of

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class FlattenBuffer(Pass):
    """Give every buffer as many axes as it has axis groups."""

    primitive: ClassVar[str] = "flatten_buffer"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The flattened function.

        Raises LayoutproofError for blocks, which are lowered first, for separators that do not fit, for strides or an
        offset together with separators, and for aliases with other axis groups.
        """
        block = next((n for n in walk(func.body) if isinstance(n, Block)), None)
        if block is not None:
            raise error(
                codes.BLOCKS_FIRST,
                f"flatten_buffer takes a program without blocks, and there is block {block.name}: lower_blocks goes "
                "first",
                block.span,
            )
        _check_aliases(func)
        flattening = _Flattening(func, symbol_scope(func), names_in(func.body) | {b.name for b in func.buffers})
        body = flattening.statement(func.body)
        for buffer in reversed(func.buffers):
            view = flattening.views.get(buffer)
            if view is not None and view.flat != buffer:
                body = DeclBuffer(view.flat, body)
        _check_one_shape(flattening)
        ranks = {name: tuple(range(rank - 1)) for name, rank in flattening.ranks.items()}
        return rewrite_of(func, with_attribute(func.with_body(body), ranks))


def _check_aliases(func: PrimFunc) -> None:
    """Raise LayoutproofError if two views of one memory have different numbers of physical axes."""
    stated = stated_separators(func)
    views: dict[Var, list[Buffer]] = {}
    for buffer in all_buffers(func):
        views.setdefault(buffer.data, []).append(buffer)
    for first, *others in views.values():
        groups = len(stated.get(first.data.name, first.axis_separators)) + 1
        # A buffer with strides has no separators at all.
        plain = [b for b in others if not b.strides]
        odd = [b for b in plain if not _has_groups(stated.get(b.data.name, b.axis_separators), b.rank, groups)]
        if odd and (groups > 1 or any(b.axis_separators for b in odd)):
            raise _seen_otherwise(first, groups, odd)


def _has_groups(separators: tuple[int, ...], rank: int, groups: int) -> bool:
    return len(separators) + 1 == groups and (groups == 1 or separators[-1] < rank - 1)


def _check_one_shape(flattening: _Flattening) -> None:
    """Raise LayoutproofError if views of one memory of several physical axes have other extents."""
    seen: dict[Var, tuple[Buffer, Buffer]] = {}
    for buffer, view in flattening.views.items():
        first, flat = seen.setdefault(buffer.data, (buffer, view.flat))
        if len(view.groups) > 1 and flat.shape != view.flat.shape:
            raise _seen_otherwise(first, len(view.groups), [buffer])


def _seen_otherwise(first: Buffer, groups: int, odd: Sequence[Buffer]) -> LayoutproofError:
    axes = counted(groups, "physical axis", "physical axes")
    message = f"{first.name} is memory of {axes}, and has aliases that see others: {', '.join(b.name for b in odd)}"
    return error(codes.ALIASES, message, odd[0].span, help="views of one memory have the same axis groups")


@dataclass(frozen=True, slots=True)
class FlatView:
    """A buffer's flat form and the multiplier of each axis within its group."""

    flat: Buffer
    groups: Groups
    multipliers: tuple[Expr, ...]
    offset: Expr
    index_type: DType


@dataclass(slots=True)
class _Flattening:
    func: PrimFunc
    scope: Scope
    names: set[str]
    views: dict[Buffer, FlatView] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)

    def statement(self, stmt: Stmt) -> Stmt:
        result = trampoline(self.visit, stmt)
        assert isinstance(result, Stmt)
        return result

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        return self.inside(node) if isinstance(node, Stmt) else self.expression(node)

    def inside(self, stmt: Stmt) -> Steps[Node, Node]:
        if isinstance(stmt, Allocate | DeclBuffer):
            flat = self.view(stmt.buffer).flat
            body: Any = yield stmt.body
            return replace(stmt, buffer=flat, body=body)
        return self.flattened((yield from mapped(stmt)))

    def expression(self, node: Node) -> Node:
        return node if isinstance(node, Buffer) else self.flattened(map_children(node, self.expression))

    def flattened(self, rebuilt: Node) -> Node:
        if isinstance(rebuilt, BufferLoad):
            view = self.view(rebuilt.buffer)
            if view.flat == rebuilt.buffer:
                return rebuilt
            load = replace(rebuilt, buffer=view.flat, indices=flat_indices(view, rebuilt.indices))
            return Cast(rebuilt.dtype, load) if rebuilt.dtype.is_bool else load
        if isinstance(rebuilt, BufferStore):
            view = self.view(rebuilt.buffer)
            if view.flat == rebuilt.buffer:
                return rebuilt
            value = rebuilt.value
            stored = Cast(INT8.with_lanes(value.dtype.lanes), value) if value.dtype.is_bool else value
            return replace(rebuilt, buffer=view.flat, indices=flat_indices(view, rebuilt.indices), value=stored)
        return rebuilt

    def view(self, buffer: Buffer) -> FlatView:
        found = self.views.get(buffer)
        if found is None:
            found = self.views[buffer] = self.make_view(buffer)
            if len(found.groups) > 1 or buffer.data.name in stated_separators(self.func):
                self.ranks[buffer.data.name] = len(found.groups)
        return found

    def make_view(self, buffer: Buffer) -> FlatView:
        groups: Groups = groups_of(self.func, buffer) if buffer.rank else ((),)
        plain = not buffer.strides and buffer.elem_offset == const(0, buffer.elem_offset.dtype)
        if not plain and len(groups) > 1 and not self.is_row_major(buffer):
            raise error(
                codes.STRIDES_AND_SEPARATORS,
                f"{buffer.name} has strides or an offset and axis separators: flat memory has one axis",
                buffer.span,
            )
        offset = buffer.elem_offset if len(groups) == 1 else const(0)
        strides = buffer.strides if len(groups) == 1 and buffer.strides else row_major(buffer.shape, groups)
        extents = tuple(self.extent(buffer, strides, offset, group) for group in groups)
        computed = len(buffer.shape) > len(groups) or not plain
        dtype = INT64 if any(e.dtype == INT64 for e in extents) or (computed and not self.fits(extents)) else INT32
        if computed and dtype == INT64:
            wide = replace(buffer, shape=_wide(buffer.shape), strides=_wide(buffer.strides))
            extents = tuple(self.extent(wide, _wide(strides), with_type(offset, INT64), group) for group in groups)
        if computed:
            extents = tuple(with_type(e, dtype) for e in extents)
        element = INT8.with_lanes(buffer.dtype.lanes) if buffer.dtype.is_bool else buffer.dtype
        if plain and extents == buffer.shape and element == buffer.dtype:
            return FlatView(buffer, groups, strides, offset, dtype)
        is_parameter = buffer in self.func.buffers
        name = fresh(f"{buffer.name}_flat", self.names) if is_parameter else buffer.name
        self.names.add(name)
        flat = replace(
            buffer,
            name=name,
            dtype=element,
            shape=extents,
            strides=(),
            elem_offset=IntImm(0),
            axis_separators=tuple(range(len(groups) - 1)),
        )
        return FlatView(flat, groups, strides, offset, dtype)

    def fits(self, extents: Sequence[Expr]) -> bool:
        return all(self.scope.bounds(extent).fits(INT32) for extent in extents)

    def is_row_major(self, buffer: Buffer) -> bool:
        zero = buffer.elem_offset == const(0, buffer.elem_offset.dtype)
        return zero and buffer.strides in ((), row_major(buffer.shape, (tuple(range(buffer.rank)),)))

    def extent(self, buffer: Buffer, strides: Sequence[Expr], offset: Expr, group: Sequence[int]) -> Expr:
        """How many elements of the flat axis the group reaches."""
        if not buffer.strides and offset == const(0, offset.dtype):
            return product([buffer.shape[axis] for axis in group])
        last: Expr = offset
        for axis in group:
            last = total(last, product([total(buffer.shape[axis], const(-1, buffer.shape[axis].dtype)), strides[axis]]))
        return total(last, const(1, last.dtype))


def _wide(parts: Sequence[Expr]) -> tuple[Expr, ...]:
    """Extents and strides in 64 bits, and so the index computed from them."""
    return tuple(with_type(part, INT64) for part in parts)


def row_major(shape: Sequence[Expr], groups: Groups) -> tuple[Expr, ...]:
    """What one step along each axis is worth in the flat axis of its group."""
    strides: list[Expr] = [const(1) for _ in shape]
    for group in groups:
        for position, axis in enumerate(group):
            strides[axis] = product([shape[later] for later in group[position + 1 :]])
    return tuple(strides)


def product(factors: Sequence[Expr]) -> Expr:
    """The product, constants multiplied out and in front of nothing else; int64 where the constant part needs it."""
    number = 1
    result: Expr | None = None
    for factor in factors:
        if isinstance(factor, IntImm):
            number *= factor.value
        elif result is None:
            result = factor
        else:
            result = binary(BinaryOp.MUL, with_type(result, INT64), with_type(factor, INT64))
    if number > INT64.max_int:
        raise error(codes.INDEX_TYPE, f"a flat extent is {number}, which is more than an index of 64 bits reaches")
    if result is None or number == 0:
        wide = any(f.dtype == INT64 for f in factors) or number > INT32.max_int
        return const(number, INT64 if wide else INT32)
    return result if number == 1 else binary(BinaryOp.MUL, with_type(result, INT64), const(number, INT64))


def total(a: Expr, b: Expr) -> Expr:
    """The sum, zeros left out and constants added."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        number = a.value + b.value
        return const(number, INT64 if INT64 in (a.dtype, b.dtype) or abs(number) > INT32.max_int else INT32)
    if isinstance(a, IntImm) and a.value == 0:
        return b
    if isinstance(b, IntImm) and isinstance(a, Binary) and a.op is BinaryOp.ADD and isinstance(a.rhs, IntImm):
        return total(a.lhs, total(a.rhs, b))
    if isinstance(b, IntImm) and b.value <= 0:
        return a if b.value == 0 else binary(BinaryOp.SUB, a, const(-b.value, b.dtype))
    return binary(BinaryOp.ADD, a, b)


def with_type(expr: Expr, dtype: DType) -> Expr:
    """An integer expression with arithmetic in `dtype`'s element type, not cast afterwards; its lanes stay."""
    wanted = dtype.with_lanes(expr.dtype.lanes)
    if expr.dtype == wanted:
        return expr
    if isinstance(expr, Ramp):
        return Ramp(with_type(expr.base, dtype), with_type(expr.stride, dtype), expr.lanes)
    return widen(expr, wanted)


def flat_indices(view: FlatView, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The index of the flat view that reaches the same element."""
    dtype = INT64 if view.index_type == INT64 or any(i.dtype.element == INT64 for i in indices) else INT32
    result: list[Expr] = []
    for number, group in enumerate(view.groups):
        position: Expr = with_type(view.offset, dtype) if number == 0 else const(0, dtype)
        for axis in group:
            position = _stepped(position, with_type(indices[axis], dtype), with_type(view.multipliers[axis], dtype))
        result.append(position)
    return tuple(result)


def _stepped(position: Expr, index: Expr, multiplier: Expr) -> Expr:
    """`position + index * multiplier`; a ramp stays a ramp."""
    one = isinstance(multiplier, IntImm) and multiplier.value == 1
    if isinstance(index, Ramp):
        base = _stepped(position, index.base, multiplier)
        stride = index.stride if one else binary(BinaryOp.MUL, index.stride, multiplier)
        return Ramp(base, stride, index.lanes)
    return total(position, index if one else binary(BinaryOp.MUL, index, multiplier))


@dataclass(frozen=True)
class LowerBlocks(Pass):
    """Replace blocks by guards, allocations and inits among the loops.

    A reduction over threads stays a block: that its threads join their values together is said by nothing else.
    Generated code has a loop of one thread in its place.
    """

    primitive: ClassVar[str] = "lower_blocks"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without blocks. Raises LayoutproofError for a matched sub-region, and for a binding that its
        block changes.
        """
        lowering = _Lowering()
        body = trampoline(lowering.visit, func.body)
        assert isinstance(body, Stmt)
        return rewrite_of(func, func.with_body(body))


@dataclass(slots=True)
class _Lowering:
    """Blocks become what `desugar.body_of` says; `values` are iteration variables over loops."""

    values: dict[Var, Expr] = field(default_factory=dict)
    threads: set[Var] = field(default_factory=set[Var])

    def visit(self, node: Node) -> Node | Steps[Node, Node]:
        """A statement without blocks; other nodes over loops."""
        match node:
            case Block():
                return self.block(node)
            case Allocate() | DeclBuffer():
                return self.memory(node)
            case For(kind=ForKind.THREAD_BINDING, thread=thread) if not str(thread).startswith("blockIdx"):
                self.threads.add(node.var)
                return mapped(node)
            case Stmt() if not isinstance(node, BufferStore | Evaluate):
                return mapped(node)
            case _:
                return substitute(node, self.values)

    def joins_threads(self, block: Block) -> bool:
        """Whether threads reduce together what a block makes, which has no other block inside."""
        if block.init is None or any(isinstance(node, Block) for node in walk(block.body)):
            return False
        reduced = [i.binding for i in block.iter_vars if i.kind is IterKind.REDUCE]
        return any(v in self.threads for e in reduced for v in free_variables(substitute(e, self.values)))

    def memory(self, stmt: Allocate | DeclBuffer) -> Steps[Node, Node]:
        buffer, body = substitute(stmt.buffer, self.values), (yield stmt.body)
        assert isinstance(body, Stmt)
        return replace(stmt, buffer=buffer, body=body)

    def block(self, stmt: Block) -> Steps[Node, Node]:
        if stmt.match_buffers:
            name = stmt.match_buffers[0].buffer.name
            raise error(
                codes.MATCHED_REGION,
                f"block {stmt.name} matches {name} with a region of another buffer; such blocks cannot be lowered",
                stmt.span,
            )
        for iter_var in stmt.iter_vars:
            changed = data_read(iter_var.binding) & data_written(stmt)
            if changed:
                message = (
                    f"{iter_var.var.name} of block {stmt.name} is bound to a value of {min(v.name for v in changed)}, "
                    "which it writes"
                )
                raise error(codes.BINDING_CHANGES, message, stmt.span)
        if self.joins_threads(stmt):
            return substitute(stmt, self.values)
        outer = dict(self.values)
        for iter_var in stmt.iter_vars:
            self.values[iter_var.var] = substitute(iter_var.binding, outer)
        where = substitute(stmt.where, self.values)
        result = yield body_of(stmt)
        assert isinstance(result, Stmt)
        if where != TRUE:
            result = IfThenElse(where, result, span=stmt.span)
        for buffer in reversed(stmt.alloc_buffers):
            result = Allocate(substitute(buffer, self.values), result)
        self.values = outer
        return result
