"""The enclosure of a program: a program that computes bounds of a kernel's result for every float cell.

Each call of an inexact function is widened by that function's error bound, and later operations are carried out on both
ends. A cell that no such call reaches has equal ends. Control flow and indices must be known: where they depend on a
float that is only bounded, there is no enclosure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    Logical,
    Not,
    Select,
    Var,
    const,
)
from layoutproof.ir.interp.run import run
from layoutproof.ir.interp.slicing import run_slice
from layoutproof.ir.intrinsics import Assume, Call, Limit
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import names_in, take_fresh, walk
from layoutproof.lowering.runtime.arrays import Array
from layoutproof.lowering.runtime.inexact import Inexact
from layoutproof.lowering.runtime.interval_arithmetic import Arithmetic, Ends, open_end, unit

Cells = Mapping[str, Sequence[tuple[int, ...]]]
_PARTS = ("low", "high", "size", "count", "reach")


class NoEnclosureError(Exception):
    """A program without an enclosure, and why."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """The bounds of each cell of an output; of integers, both arrays are the same."""

    low: Array
    high: Array


class _Writer:
    """Rewrites one function."""

    def __init__(self, func: PrimFunc, inexact: Inexact) -> None:
        self.func = func
        self.arithmetic = Arithmetic(inexact, self._bind)
        self._names = names_in(func.body) | {p.name for p in func.params} | {b.name for b in func.buffers}
        self._bindings: list[tuple[Var, Expr]] = []
        self._guards: list[Expr] = []
        self._known: dict[str, Ends] = {}
        self._views: dict[Buffer, tuple[Buffer, ...]] = {}
        self._data: dict[Var, tuple[Var, ...]] = {}
        self._elements: dict[Var, DType] = {}

    # --- names

    def _bind(self, value: Expr) -> Expr:
        """A name for a value, which is computed under the current guards."""
        if isinstance(value, Var | FloatImm) or (isinstance(value, Broadcast) and isinstance(value.value, FloatImm)):
            return value
        for guard in reversed(self._guards):
            value = IfThenElseExpr(guard, value, const(False if value.dtype.is_bool else 0.0, value.dtype))
        name = take_fresh("end", self._names)
        var = Var(name, value.dtype)
        self._bindings.append((var, value))
        return var

    @contextmanager
    def _under(self, guard: Expr) -> Iterator[None]:
        self._guards.append(guard)
        yield
        self._guards.pop()

    def _bound(self, body: Stmt) -> Stmt:
        """A statement inside the bindings of the names that its values use."""
        for var, value in reversed(self._bindings):
            body = Let(var, value, body)
        self._bindings = []
        return body

    # --- memory

    def parts_of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """The buffers of the parts of a buffer's values; the buffer itself if it holds no floats."""
        element = self._elements.setdefault(buffer.data, buffer.dtype.element)
        if element != buffer.dtype.element and (element.is_float or buffer.dtype.is_float):
            raise NoEnclosureError(f"{buffer.name} is a view of {element} as {buffer.dtype.element}")
        if not buffer.dtype.is_float:
            return (buffer,)
        found = self._views.get(buffer)
        if found is None:
            names = _PARTS if self.arithmetic.loose else _PARTS[:2]
            data = self._data.setdefault(
                buffer.data, tuple(replace(buffer.data, name=self._fresh(buffer.data.name, p)) for p in names)
            )
            dtype = self.arithmetic.stored_type(buffer.dtype)
            made = [
                replace(buffer, name=self._fresh(buffer.name, p), data=d, dtype=dtype)
                for p, d in zip(names, data, strict=True)
            ]
            found = self._views[buffer] = tuple(made)
        return found

    def _fresh(self, name: str, part: str) -> str:
        return take_fresh(f"{name}_{part}", self._names)

    # --- values

    def value(self, e: Expr) -> Ends:
        """A float expression between its ends."""
        match e:
            case Var() if e.name in self._known:
                return self._known[e.name]
            case Var() | FloatImm() | Limit():
                return self.arithmetic.taken(self.arithmetic.point(e))
            case BufferLoad():
                self._require_known(*e.indices)
                loads = tuple(BufferLoad(part, e.indices) for part in self.parts_of(e.buffer))
                return self.arithmetic.taken(self.arithmetic.made(e.dtype, loads))
            case Binary():
                return self._binary(e)
            case Call():
                return self.arithmetic.call(e, [self.value(a) for a in e.arguments])
            case Cast():
                return self._cast(e)
            case Broadcast():
                found = self.value(e.value)
                return self.arithmetic.made(e.dtype, tuple(Broadcast(part, e.lanes) for part in found.parts))
            case Select():
                return self._select(e)
            case IfThenElseExpr():
                return self._lazy(e)
            case _:
                raise NoEnclosureError(f"it computes with {type(e).__name__}")

    def _binary(self, e: Binary) -> Ends:
        left = self.value(e.lhs)
        return self.arithmetic.binary(e.op, left, left if e.rhs == e.lhs else self.value(e.rhs))

    def _cast(self, e: Cast) -> Ends:
        if e.value.dtype.is_float:
            return self.arithmetic.cast(e.dtype, self.value(e.value))
        self._require_known(e.value)
        return self.arithmetic.point(e)

    def _select(self, e: Select) -> Ends:
        then, otherwise = self.value(e.then), self.value(e.otherwise)
        if not self._reads_floats(e.condition):
            return self.arithmetic.choose(e.condition, then, otherwise)
        return self.arithmetic.either(*self._truth(e.condition), then, otherwise)

    def _lazy(self, e: IfThenElseExpr) -> Ends:
        self._require_known(e.condition)
        condition = self._bind(e.condition)
        with self._under(condition):
            then = self.value(e.then)
        with self._under(Not(condition)):
            otherwise = self.value(e.otherwise)
        return self.arithmetic.choose(condition, then, otherwise)

    def _truth(self, e: Expr) -> tuple[Expr, Expr]:
        """When a condition certainly holds, and when it may."""
        match e:
            case Compare(op=op, lhs=lhs, rhs=rhs) if lhs.dtype.is_float:
                a, b = (self.arithmetic.settled(self.value(side)) for side in (lhs, rhs))
                return self._compared(op, a, b)
            case Not(operand=operand):
                certain, possible = self._truth(operand)
                return Not(possible), Not(certain)
            case Logical(op=op, lhs=lhs, rhs=rhs):
                pairs = zip(self._truth(lhs), self._truth(rhs), strict=True)
                certain, possible = (Logical(op, x, y) for x, y in pairs)
                return certain, possible
            case _:
                self._require_known(e)
                return e, e

    def _compared(self, op: CompareOp, a: Ends, b: Ends) -> tuple[Expr, Expr]:
        def both(x: Expr, y: Expr) -> Expr:
            return Logical(LogicalOp.AND, x, y)

        if a.is_known and b.is_known:
            known = Compare(op, a.low, b.low)
            return known, known
        unknown = self._bind(open_end(a, b))
        match op:
            case CompareOp.LT | CompareOp.LE:
                return Compare(op, a.high, b.low), Logical(LogicalOp.OR, unknown, Compare(op, a.low, b.high))
            case CompareOp.GT | CompareOp.GE:
                return Compare(op, a.low, b.high), Logical(LogicalOp.OR, unknown, Compare(op, a.high, b.low))
            case _:
                points = both(Compare(CompareOp.EQ, a.low, a.high), Compare(CompareOp.EQ, b.low, b.high))
                certain = both(points, Compare(CompareOp.EQ, a.low, b.low))
                meet = both(Compare(CompareOp.LE, a.low, b.high), Compare(CompareOp.GE, a.high, b.low))
                possible = Logical(LogicalOp.OR, unknown, meet)
                return (certain, possible) if op is CompareOp.EQ else (Not(possible), Not(certain))

    def _require_known(self, *exprs: Expr) -> None:
        for e in exprs:
            if self._reads_floats(e):
                raise NoEnclosureError("a condition, an index or an integer hangs on a float")

    def _reads_floats(self, e: Expr) -> bool:
        """Whether an expression has a float that may only be bounded: from memory, named, or of an inexact function."""
        return any(
            (isinstance(n, BufferLoad) and n.dtype.is_float)
            or (isinstance(n, Var) and n.name in self._known)
            or (isinstance(n, Call) and self.arithmetic.is_inexact(n))
            for n in walk(e)
        )

    # --- statements

    def statement(self, s: Stmt) -> Stmt:
        """A statement on the parts of values."""
        match s:
            case BufferStore():
                return self._store(s)
            case Let():
                return self._let(s)
            case Allocate() | DeclBuffer():
                found = self.statement(s.body)
                for buffer in reversed(self.parts_of(s.buffer)):
                    found = replace(s, buffer=buffer, body=found)
                return found
            case Seq():
                return seq(*(self.statement(each) for each in s.body))
            case For():
                self._require_known(s.start, s.extent)
                return replace(s, body=self.statement(s.body))
            case IfThenElse():
                self._require_known(s.condition)
                otherwise = self.statement(s.otherwise) if s.otherwise is not None else None
                return replace(s, then=self.statement(s.then), otherwise=otherwise)
            case AttrStmt():
                return self.statement(s.body)
            case Evaluate(value=Assume()):
                return Seq(())
            case _:
                raise NoEnclosureError(f"it has a statement of kind {type(s).__name__}")

    def _store(self, s: BufferStore) -> Stmt:
        self._require_known(*s.indices)
        if not s.buffer.dtype.is_float:
            self._require_known(s.value)
            return s
        found, buffers = self.value(s.value), self.parts_of(s.buffer)
        stores = [
            BufferStore(buffer, s.indices, self._bind(part)) for buffer, part in zip(buffers, found.parts, strict=True)
        ]
        return self._bound(seq(*stores))

    def _let(self, s: Let) -> Stmt:
        if not s.var.dtype.is_float:
            self._require_known(s.value)
            return replace(s, body=self.statement(s.body))
        found = self.value(s.value)
        bindings, self._bindings = self._bindings, []
        self._known[s.var.name] = found
        body = self.statement(s.body)
        self._bindings = bindings
        return self._bound(body)

    def function(self) -> PrimFunc:
        """The whole function; its parameters are the parts of the parameters."""
        params: list[Var] = []
        mapped: list[tuple[Var, Buffer]] = []
        buffers = dict(self.func.buffer_map)
        for param in self.func.params:
            buffer = buffers.get(param)
            if buffer is None:
                params.append(param)
                continue
            for part in self.parts_of(buffer):
                handle = Var(self._fresh(param.name, "part"), param.dtype)
                params.append(handle)
                mapped.append((handle, part))
        attrs = Attributes({APART: True}) if self.func.noalias else Attributes()
        return PrimFunc(self.func.name, tuple(params), tuple(mapped), self.statement(self.func.body), attrs)


def enclose(
    func: PrimFunc, arguments: Mapping[str, Any], inexact: Inexact, *, limit: int, cells: Cells | None = None
) -> dict[str, Enclosed]:
    """The enclosure of each parameter after a run of a lowered function on physical arrays and scalars, by name.

    With `cells`, that of these elements of some parameters alone, in order; only what they depend on is run. Raises
    NoEnclosureError where the function has none, LayoutproofError and Fault as the interpreter does.
    """
    writer = _Writer(func, inexact)
    enclosure = writer.function()
    given: dict[str, Any] = {p.name: arguments[p.name] for p in enclosure.params if p.name in arguments}
    given |= {name: value for name, value in arguments.items() if not isinstance(value, np.ndarray)}
    for buffer in func.buffers:
        if buffer.name in arguments:
            given |= _parts(writer, buffer, np.asarray(arguments[buffer.name]))
    if cells is None:
        after: Mapping[str, Array] = run(enclosure, given, limit=limit).arrays
        return {buffer.name: _enclosed(writer, buffer, after) for buffer in func.buffers}
    wanted = [buffer for buffer in func.buffers if buffer.name in cells]
    sliced = run_slice(
        enclosure, given, {part.name: cells[b.name] for b in wanted for part in writer.parts_of(b)}, limit=limit
    )
    found = {part.name: np.asarray(sliced[part.name]) for b in wanted for part in writer.parts_of(b)}
    return {buffer.name: _enclosed(writer, buffer, found) for buffer in wanted}


def _parts(writer: _Writer, buffer: Buffer, array: Array) -> dict[str, Array]:
    """The parts of a known argument."""
    parts = writer.parts_of(buffer)
    if len(parts) < len(_PARTS):
        return {part.name: array.copy() for part in parts}
    wide = array.astype(np.float64)
    made = (wide, wide.copy(), np.abs(wide), np.zeros_like(wide), np.zeros_like(wide))
    return dict(zip((part.name for part in parts), made, strict=True))


def _enclosed(writer: _Writer, buffer: Buffer, arrays: Mapping[str, Array]) -> Enclosed:
    parts = [arrays[part.name] for part in writer.parts_of(buffer)]
    if len(parts) < len(_PARTS):
        return Enclosed(parts[0], parts[-1])
    low, high, size, count, _ = parts
    slack, kind = count * size * unit(buffer.dtype), numpy_dtype(buffer.dtype)
    with np.errstate(all="ignore"):
        return Enclosed((low - slack).astype(kind), (high + slack).astype(kind))


def outside(found: Array, enclosed: Enclosed) -> Array:
    """Which cells of a result lie outside of their enclosure. A NaN is inside only where an end is one."""
    low, high = (np.asarray(end, dtype=np.float64) for end in (enclosed.low, enclosed.high))
    value = np.asarray(found, dtype=np.float64)
    open_end = np.isnan(low) | np.isnan(high)
    return np.asarray(~(open_end | ((low <= value) & (value <= high))), dtype=np.bool_)
