"""Building the body of a program while the operations of a block are walked."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import TypeVar

from layoutproof.importers.mlir.model import Block, Op, Scalar, Shaped, Value
from layoutproof.importers.mlir.placement import is_movable
from layoutproof.importers.mlir.values import ONE, ZERO, Indices, Meaning, Vector, View, number, value_of
from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import Span
from layoutproof.ir.dtype import INT64, DType
from layoutproof.ir.expr import Compare, Expr, IfThenElseExpr, IntImm, Not, Var, equal
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, loads_in, walk

Wrapper = Callable[[Stmt], Stmt]
M = TypeVar("M", Expr, View, Vector)
MOST = 1 << 31  # of an extent or an index that callers pass
_LONG = 48  # nodes of an expression that is used more than once


class Overflow(Enum):
    """What a result with `nsw` or `nuw` that does not fit is: it wraps, it is a fault if it is stored, or a fault."""

    WRAPS = auto()
    OF_STORED = auto()
    FAULT = auto()


class Builder:
    """The statements so far, and what the values mean. `table` translates an operation by its name."""

    def __init__(
        self,
        table: dict[str, Callable[[Builder, Op], None]],
        expressions: Iterable[str],
        may_alias: bool,
        fill: bool = False,
    ) -> None:
        self.table = table
        self.expressions = frozenset(expressions)
        self.may_alias = may_alias
        self.fill_new = fill
        self.meanings: dict[Value, Meaning] = {}
        self.items: list[Stmt | Wrapper] = []
        self.names: set[str] = set()
        self.ranges: dict[Var, Interval] = {}
        self.own: set[Buffer] = set()
        self.cells: set[Buffer] = set()
        self.top: set[Buffer] = set()
        self.freed: set[Value] = set()
        self.depth = 0
        self.results: list[Buffer] = []
        self.symbols: set[Var] = set()
        self.dims: list[list[Expr]] = []
        self.dead: frozenset[Op] = frozenset()
        self.no_overflow = Overflow.WRAPS
        self.deviations: dict[tuple[str, DType], Var] = {}
        self.only_flagged = False

    # ---- operations

    def block(self, block: Block) -> Op:
        """Translate the operations of a block but its terminator, which is returned."""
        for op in block.ops[:-1]:
            self.op(op)
        return block.ops[-1]

    def op(self, op: Op) -> None:
        """Translate one operation. Raises LayoutproofError for one without translation."""
        translate = self.table.get(op.name)
        if op in self.dead:
            return
        if translate is None:
            raise op.fail("this operation has no translation", help="docs/reference/mlir.md lists those that have one")
        try:
            translate(self, op)
        except (TypeError, ValueError) as problem:
            # Nodes refuse to be built wrong: types that do not fit, constants that overflow.
            raise op.fail(str(problem)) from problem

    # ---- meanings

    def bind(self, value: Value, meaning: Meaning) -> None:
        """Give a value its meaning."""
        self.meanings[value] = meaning

    def expr(self, op: Op, value: Value) -> Expr:
        """A number."""
        return self._of(op, value, Expr, "a number")

    def fixed(self, op: Op, value: Value) -> Expr:
        """A number that stays as it is here: what it reads from memory is read now."""
        found = self.expr(op, value)
        return self.named(value, found, op.span) if any(True for _ in loads_in(found)) else found

    def view(self, op: Op, value: Value) -> View:
        """A memref or tensor."""
        return self._of(op, value, View, "a memref or a tensor")

    def vector(self, op: Op, value: Value) -> Vector:
        """A vector."""
        return self._of(op, value, Vector, "a vector")

    def _of(self, op: Op, value: Value, kind: type[M], text: str) -> M:
        found = self.meanings.get(value)
        if not isinstance(found, kind):
            raise op.fail(f"an operand is not {text}, or has no translation")
        return found

    def bind_expression(self, op: Op, result: Value, expr: Expr) -> None:
        """Bind an expression; a long one that is used often is evaluated once."""
        often = len(result.uses) > 1 and sum(1 for _ in walk(expr)) > _LONG
        self.bind(result, self.named(result, expr, op.span) if often else expr)

    def bind_read(self, op: Op, expr: Expr) -> None:
        """Bind what is read here, or may have no result: evaluated where it is used only if that is the same."""
        movable = is_movable(op, self.expressions, self.may_alias)
        self.bind(op.results[0], expr if movable else self.named(op.results[0], expr, op.span))

    def named(self, value: Value | None, expr: Expr, span: Span) -> Expr:
        """A variable with the value of an expression here; memory for integers that wrap, which variables do not."""
        index = value is not None and isinstance(value.type, Scalar) and value.type.index
        if expr.dtype.is_integer and not index:
            return self.data_at(expr, span)
        var = Var(self.name(value.name if value is not None else None, "v"), expr.dtype)
        self.items.append(lambda body: Let(var, expr, body, span=span))
        return var

    def data(self, op: Op, expr: Expr) -> Expr:
        """A number from memory where an expression is stored."""
        return self.data_at(expr, op.span)

    def data_at(self, expr: Expr, span: Span) -> Expr:
        """The same at a place."""
        cell = self.allocate(None, (number(1),), expr.dtype, span)
        self.cells.add(cell)
        self.store(cell, (ZERO,), expr, span)
        return load_cell(cell, span)

    # ---- statements

    def emit(self, statement: Stmt) -> None:
        """Append a statement."""
        self.items.append(statement)

    def assume(self, condition: Expr, span: Span) -> None:
        """What an operation presupposes of sizes, where callers know them; else nothing is assumed."""
        symbols = set(free_variables(condition))
        if self.depth == 0 and symbols and symbols <= self.symbols:
            self.emit(Evaluate(Assume(condition, span=span), span=span))

    def require_same(self, one: Sequence[Expr], other: Sequence[Expr], span: Span) -> None:
        """That extents are the same: assumed of those that callers know; of others it is a fault where they are not."""
        for a, b in zip(one, other, strict=True):
            if a == b:
                continue
            condition = equal(a, b)
            symbols = set(free_variables(condition))
            if self.depth == 0 and symbols and symbols <= self.symbols:
                self.assume(condition, span)
            else:
                self.data_at(ONE // IfThenElseExpr(condition, ONE, ZERO), span)

    def store(self, buffer: Buffer, indices: Indices, value: Expr, span: Span) -> None:
        """Append a store."""
        self.emit(BufferStore(buffer, tuple(indices), value, span=span))

    def inside(self, build: Callable[[], None]) -> Stmt:
        """The statements that `build` appends, as one."""
        outside, self.items = self.items, []
        self.depth += 1
        try:
            build()
            return fold(self.items)
        finally:
            self.items = outside
            self.depth -= 1

    def emit_loop(self, loop: For) -> None:
        """Append a loop, but for one that does nothing a constant number of times."""
        if not (_is_empty(loop.body) and isinstance(loop.start, IntImm) and isinstance(loop.extent, IntImm)):
            self.emit(loop)

    def loop(
        self, hint: str | None, extent: Expr, build: Callable[[Var], None], span: Span, kind: ForKind = ForKind.SERIAL
    ) -> None:
        """A loop from 0."""
        var = Var(self.name(hint, "i"), INT64)
        known = value_of(extent)
        if known is not None:
            extent = number(max(known, 0))
        self.ranges[var] = Interval(0, max(interval_of(extent, self.ranges).high - 1, 0))
        self.emit_loop(For(var, ZERO, extent, kind, self.inside(lambda: build(var)), span=span))

    def loop_from(
        self, hint: str | None, start: Expr, extent: Expr, build: Callable[[Var], None], span: Span, kind: ForKind
    ) -> None:
        """A loop from `start`, over `extent` numbers."""
        var = Var(self.name(hint, "i"), INT64)
        known = value_of(extent)
        if known is not None:
            extent = number(max(known, 0))
        low, high = interval_of(start, self.ranges), interval_of(start + extent, self.ranges)
        self.ranges[var] = Interval(low.low, max(high.high - 1, low.low))
        self.emit_loop(For(var, start, extent, kind, self.inside(lambda: build(var)), span=span))

    def nest(
        self,
        extents: Sequence[Expr],
        build: Callable[[list[Expr]], None],
        span: Span,
        parallel: Sequence[bool] = (),
    ) -> None:
        """Loops from 0, the first outermost."""

        def level(axis: int, done: list[Expr]) -> None:
            if axis == len(extents):
                build(done)
                return
            kind = ForKind.PARALLEL if axis < len(parallel) and parallel[axis] else ForKind.SERIAL
            self.loop(None, extents[axis], lambda var: level(axis + 1, [*done, var]), span, kind)

        level(0, [])

    def branch(
        self, condition: Expr, then: Callable[[], None], otherwise: Callable[[], None] | None, span: Span
    ) -> None:
        """`if condition`, with what the two build."""
        first = self.inside(then)
        second = self.inside(otherwise) if otherwise is not None else None
        # A condition that computes something may be undefined.
        is_plain = all(isinstance(node, Var | IntImm | Not | Compare) for node in walk(condition))
        if not (is_plain and _is_empty(first) and (second is None or _is_empty(second))):
            self.emit(IfThenElse(condition, first, second, span=span))

    def allocate(self, hint: str | None, shape: Sequence[Expr], dtype: DType, span: Span) -> Buffer:
        """Memory until the end of the block, not initialised."""
        buffer = make_buffer(self.name(hint, "buffer"), tuple(shape), dtype)
        self.own.add(buffer)
        if self.depth == 0:
            self.top.add(buffer)

        def wrap(body: Stmt) -> Stmt:
            return body if buffer in self.results else Allocate(buffer, body, span=span)

        self.items.append(wrap)
        return buffer

    def cell(self, hint: str | None, kind: Scalar, span: Span) -> Buffer:
        """Memory for one number."""
        return self.allocate(hint, (number(1),), kind.dtype, span)

    def steady(self, vector: Vector, buffer: Buffer, cell: Callable[[Indices], Sequence[Expr]], span: Span) -> Vector:
        """A vector that does not change while it is stored to a buffer lane by lane, each lane to its cell: itself
        if a lane reads no other cell of what may be the same memory, else in memory of its own.
        """
        lanes = self.lanes(vector)
        target = tuple(cell(lanes))
        loads = list(loads_in(vector.at(lanes)))
        if all(self.is_apart(load.buffer, buffer) or (load.buffer, load.indices) == (buffer, target) for load in loads):
            return vector
        return self.kept(vector, span)

    def settled(self, numbers: Indices, memories: Sequence[Buffer], span: Span) -> list[Expr]:
        """Numbers that do not change while memories are stored to element by element."""
        return [each if self._unwritten(each, memories) else self.named(None, each, span) for each in numbers]

    def unwritten(self, vector: Vector, memory: Buffer, span: Span) -> Vector:
        """A vector that does not change while a memory is stored to."""
        return vector if self._unwritten(vector.at(self.lanes(vector)), [memory]) else self.kept(vector, span)

    def _unwritten(self, expr: Expr, memories: Sequence[Buffer]) -> bool:
        return all(self.is_apart(load.buffer, memory) for load in loads_in(expr) for memory in memories)

    def whole(self, vector: Vector, span: Span) -> Vector:
        """A vector of which not every lane may be used: what it reads is read, since that may be a fault."""
        for load in loads_in(vector.at(self.lanes(vector))):
            pairs = zip(load.indices, load.buffer.shape, strict=True)
            if not all(self.is_inside(i, n) for i, n in pairs):
                return self.kept(vector, span)
        return vector

    def kept(self, vector: Vector, span: Span) -> Vector:
        """A vector in memory of its own."""
        dtype = vector.at(self.lanes(vector)).dtype
        kept = View.of(self.allocate("vector", [number(n) for n in vector.shape], dtype, span))
        self.cells.add(kept.buffer)
        self.fill(kept, vector.at, span)
        return Vector(vector.shape, lambda at: kept.load(at, self.is_inside, span))

    def stored(self, op: Op, vector: Vector) -> Vector:
        """The same; in memory for one number where all lanes are one expression."""
        lanes = self.lanes(vector)
        found = vector.at(lanes)
        if not set(lanes).isdisjoint(free_variables(found)):
            return self.kept(vector, op.span)
        cell = self.data(op, found)
        return Vector(vector.shape, lambda _: cell)

    def lanes(self, vector: Vector) -> list[Var]:
        """Indices of any lane: what is read of the first one need not be all that is read."""
        lanes = [Var(self.name("lane", "lane"), INT64) for _ in vector.shape]
        self.ranges |= {lane: Interval(0, extent - 1) for lane, extent in zip(lanes, vector.shape, strict=True)}
        return lanes

    def is_apart(self, one: Buffer, other: Buffer) -> bool:
        """Whether two buffers are certainly not one memory."""
        return one is not other and (one in self.own or other in self.own or not self.may_alias)

    def fill(self, view: View, value: Callable[[list[Expr]], Expr], span: Span) -> None:
        """Store a value to every element of a view."""
        lanes = view.buffer.shape[view.buffer.rank - view.inner :]

        def element(indices: list[Expr]) -> None:
            outer = indices[: len(view.shape)]
            cell = view.cell(outer, self.is_inside, indices[len(view.shape) :])
            self.store(view.buffer, cell, value(indices), span)

        self.nest([*view.shape, *lanes], element, span)

    def copy(self, source: View, target: View, span: Span) -> None:
        """Store every element of one view to another of its shape."""

        def element(indices: list[Expr]) -> Expr:
            rank = len(target.shape)
            return source.load(indices[:rank], self.is_inside, span, indices[rank:])

        self.fill(target, element, span)

    def at_top(self, buffer: Buffer) -> bool:
        """Whether memory is allocated outside of all loops and branches."""
        return buffer in self.top

    # ---- names and ranges

    def name(self, hint: str | None, otherwise: str) -> str:
        """A name that no other variable or buffer has."""
        base = re.sub(r"\W", "_", hint) if hint else otherwise
        if not base.isidentifier() or keyword.iskeyword(base) or base in ("T", "R"):
            base = f"{otherwise}_{base}"
        found, count = base, 0
        while found in self.names or f"{found}_data" in self.names:
            count += 1
            found = f"{base}_{count}"
        self.names |= {found, f"{found}_data"}
        return found

    def is_inside(self, index: Expr, extent: Expr) -> bool:
        """Whether `0 <= index < extent` follows from the constant bounds of loops."""
        known, limit = interval_of(index, self.ranges), interval_of(extent, self.ranges)
        return known.low >= 0 and known.high < limit.low


def _is_empty(body: Stmt) -> bool:
    return isinstance(body, Seq) and not body.body


def fold(items: Sequence[Stmt | Wrapper]) -> Stmt:
    """Statements in order, each wrapper around what follows it."""
    after: list[Stmt] = []
    for item in reversed(items):
        if isinstance(item, Stmt):
            after.insert(0, item)
        else:
            after = [item(seq(*after))]
    return seq(*after)


def shape_of(op: Op, kind: Shaped, dynamic: Sequence[Expr]) -> tuple[Expr, ...]:
    """The extents of a type, dynamic ones in order, and those of its elements where they are vectors."""
    rest = list(dynamic)
    if kind.shape.count(None) != len(rest):
        raise op.fail(f"{kind.shape.count(None)} dynamic extents, and {len(rest)} values for them")
    found = tuple(number(extent) if extent is not None else rest.pop(0) for extent in kind.shape)
    return (*found, *(number(extent) for extent in kind.inner))


def load_cell(buffer: Buffer, span: Span) -> Expr:
    """The number in a memory for one."""
    return BufferLoad(buffer, (ZERO,), span=span)
