"""What a program is called with, and data that satisfies its assumptions: a small program writes what the assumptions
ask for.

Most random inputs break an assumption about data, and a run on them says nothing. Each `assume(...)` over parameters
becomes a repair: `assume(not pad or A[p] == v)` becomes `if pad: A[p] = v`. Whether the inputs then satisfy everything
is for the run itself to say.

Sizes are small ones, those that the conditions mention, and what a solver thinks of; data is constant, repaired where
an assumption asks for something else, or mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import HANDLE, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Compare, Expr, FloatImm, IntImm, Logical, Not, Var, binary, const
from layoutproof.ir.interp import Fault, run
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.intrinsics import Assume, Undef, assumed_undef, is_identity
from layoutproof.ir.node import Steps, trampoline
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import free_variables, holds_any, loads_in, nodes_of, stores_in, walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import Access, IterationDomain

_ATTEMPTS = (0, 1, -1, 2)  # what is tried where a comparison does not say what would do
_STEPS = (0, 1, -1)
_SEED = 20_240_229
_SMALL = (1, 2, 3, 4, 5, 7, 8, 16, 0)
_MENTIONED = 12  # constants of conditions that are tried, each with its neighbours
_COMBINATIONS = 4_000
_MOST_CELLS = 1 << 22
_LARGEST = 1 << 30


def symbols_and_scalars(func: PrimFunc) -> tuple[Var, ...]:
    """The names in the shapes of parameters, and the scalar parameters, in order."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            found.update(dict.fromkeys(free_variables(expr)))
    mapped = {param for param, _ in func.buffer_map}
    found.update(dict.fromkeys(p for p in func.params if p not in mapped and p.dtype != HANDLE))
    return tuple(found)


def has_assumptions_of_data(func: PrimFunc) -> bool:
    """Whether some assumption loads."""
    return any(isinstance(node, Assume) and any(True for _ in loads_in(node)) for node in walk(func.body))


def repair_program(func: PrimFunc) -> PrimFunc | None:
    """The program that writes what `func`'s assumptions about its parameters ask for; None where there are none."""
    if not has_assumptions_of_data(func):
        return None
    body = trampoline(_Repair({buffer.data for buffer in func.buffers}).statement, func.body)
    return None if body == NOTHING else func.with_body(body)


def assumption_program(func: PrimFunc) -> PrimFunc | None:
    """The program of the assumptions of `func` alone; None if one depends on something that `func` writes."""
    conditions = [node.condition for node in nodes_of(func.body, Assume)]
    read = {load.buffer.data for condition in conditions for load in loads_in(condition)}
    if not read <= {buffer.data for buffer in func.buffers} or read & {
        store.buffer.data for store in stores_in(func.body)
    }:
        return None
    return func.with_body(trampoline(_Keep({buffer.data for buffer in func.buffers}).statement, func.body))


def repaired(program: PrimFunc, arguments: Mapping[str, object], limit: int) -> dict[str, Array] | None:
    """The arrays after the repairs, by buffer; None if they cannot be made within `limit` iterations."""
    try:
        return dict(run(program, arguments, limit=limit).arrays)
    except (Fault, LayoutproofError):
        return None


class _Repair:
    """Keeps only the loops, branches and lets around assumptions. `parameters` are data variables."""

    def __init__(self, parameters: set[Var]) -> None:
        self.parameters = parameters

    def readable(self, expr: Expr) -> bool:
        """Whether an expression loads nothing but parameters."""
        known = all(load.buffer.data in self.parameters for load in loads_in(expr))
        return known and not holds_any(expr, Undef)

    def statement(self, stmt: Stmt) -> Stmt | Steps[Stmt, Stmt]:
        match stmt:
            case Evaluate(value=Assume(condition=condition)):
                return self.repair(condition)
            case BufferStore() | Evaluate():
                return NOTHING
            case Seq():
                return self.sequence(stmt)
            case For(extent=extent, start=start) if self.readable(extent) and self.readable(start):
                return self.around(replace(stmt, kind=ForKind.SERIAL, thread=None))
            case IfThenElse(condition=condition) if self.readable(condition):
                return self.branch(stmt)
            case Let(value=value) if self.readable(value):
                return self.around(stmt)
            case Allocate() | DeclBuffer() | AttrStmt():
                return self.around(stmt)
            case Block(where=where) if self.readable(where):
                return self.around(replace(stmt, init=None, reads=None, writes=None))
            case _:
                return NOTHING

    def sequence(self, stmt: Seq) -> Steps[Stmt, Stmt]:
        parts = []
        for part in stmt.body:
            parts.append((yield part))
        return seq(*parts)

    def around(self, stmt: For | Let | Allocate | DeclBuffer | AttrStmt | Block) -> Steps[Stmt, Stmt]:
        inner = yield stmt.body
        return NOTHING if inner == NOTHING else replace(stmt, body=inner)

    def branch(self, stmt: IfThenElse) -> Steps[Stmt, Stmt]:
        then = yield stmt.then
        otherwise = (yield stmt.otherwise) if stmt.otherwise is not None else NOTHING
        if then == NOTHING and otherwise == NOTHING:
            return NOTHING
        return replace(stmt, then=then, otherwise=None if otherwise == NOTHING else otherwise)

    def repair(self, condition: Expr) -> Stmt:
        """Statements after which a condition holds, where that can be seen."""
        if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
            return seq(self.repair(condition.lhs), self.repair(condition.rhs))
        if isinstance(condition, Logical):
            inner = self.repair(condition.rhs)
            if inner != NOTHING and self.readable(condition.lhs):
                return IfThenElse(Not(condition.lhs), inner)
            inner = self.repair(condition.lhs)
            return (
                IfThenElse(Not(condition.rhs), inner) if inner != NOTHING and self.readable(condition.rhs) else NOTHING
            )
        if assumed_undef(condition) is not None or not self.readable(condition) or condition.dtype.lanes > 1:
            return NOTHING
        if is_identity(condition) and isinstance(condition, Compare):
            load, value = (
                (condition.lhs, condition.rhs)
                if isinstance(condition.lhs, BufferLoad)
                else (condition.rhs, condition.lhs)
            )
            assert isinstance(load, BufferLoad)
            return BufferStore(load.buffer, load.indices, value)
        return seq(*(IfThenElse(Not(condition), store) for store in _candidates(condition)))


class _Keep(_Repair):
    """Keeps the assumptions themselves."""

    def repair(self, condition: Expr) -> Stmt:
        return Evaluate(Assume(condition, span=condition.span), span=condition.span)


def _candidates(condition: Expr) -> Iterator[Stmt]:
    """Stores that may make a condition hold, likely ones first."""
    if isinstance(condition, Compare):
        for one, other in ((condition.lhs, condition.rhs), (condition.rhs, condition.lhs)):
            if isinstance(one, BufferLoad) and one.dtype.lanes == 1:
                yield from (_store(one, _plus(other, step)) for step in _near(one.buffer, condition.op))
    for load in dict.fromkeys(loads_in(condition)):
        if load.dtype.lanes == 1:
            low = 0 if load.dtype.is_float or load.dtype.is_bool else load.dtype.min_int
            values = (a for a in _ATTEMPTS if load.dtype.is_float or low <= a) if not load.dtype.is_bool else (0, 1)
            yield from (_store(load, const(bool(v) if load.dtype.is_bool else v, load.dtype)) for v in values)


def _near(buffer: Buffer, op: CompareOp) -> tuple[int, ...]:
    """How far from the other side of a comparison a value is tried."""
    if buffer.dtype.is_bool:
        return (0,) if op is CompareOp.EQ else ()
    return _STEPS


def _plus(expr: Expr, step: int) -> Expr:
    return expr if step == 0 else binary(BinaryOp.ADD if step > 0 else BinaryOp.SUB, expr, const(abs(step), expr.dtype))


def _store(load: BufferLoad, value: Expr) -> Stmt:
    return BufferStore(load.buffer, load.indices, value)


def sizes_to_try(facts: Facts, symbols: Sequence[Var], writes: Sequence[Access]) -> Iterator[tuple[int | float, ...]]:
    """Values of symbols and scalars, whether they satisfy the conditions or not: small ones first, those that
    conditions mention, and what a solver thinks of.
    """
    if not symbols:
        yield ()
        return
    floats = [s.dtype.is_float for s in symbols]

    def typed(values: Sequence[int | float]) -> tuple[int | float, ...]:
        return tuple(float(v) if f else v for v, f in zip(values, floats, strict=True))

    for size in (1, 2, 4):
        yield typed([size] * len(symbols))
    guards = (guard.condition for access in writes for guard in access.domain.guards)
    mentioned = _mentioned(facts.program.function, *facts.program.assumed, *guards)
    candidates = tuple(dict.fromkeys((*_SMALL, *mentioned, -1, -2)))
    yield from (typed([size] * len(symbols)) for size in candidates)
    # What engines think of: for stores, and for the conditions alone.
    for domain in (*(access.domain for access in writes[:4]), IterationDomain()):
        point = facts.search(domain).point
        if point is not None:
            yield typed([point.get(s.name, 1) for s in symbols])
    each = candidates if len(symbols) <= 3 else candidates[: max(2, int(_COMBINATIONS ** (1 / len(symbols))))]
    yield from (typed(values) for values in islice(product(each, repeat=len(symbols)), _COMBINATIONS))
    generator = np.random.default_rng(_SEED)
    for _ in range(_COMBINATIONS // 4 if len(symbols) > 2 else 0):
        yield typed([int(generator.choice(candidates)) for _ in symbols])


def _mentioned(func: PrimFunc, *more: Expr) -> tuple[int, ...]:
    """The constants of assumptions and of other conditions, each with its neighbours."""
    conditions = [*more, *(node.condition for node in nodes_of(func.body, Assume))]
    found = {
        int(n.value) for c in conditions for n in walk(c) if isinstance(n, IntImm | FloatImm) and 0 < n.value < _LARGEST
    }
    least = sorted(found)[:_MENTIONED]
    return tuple(dict.fromkeys(v for value in least for v in (value, value + 1, value - 1)))


def data_to_try(
    func: PrimFunc, numbers: Mapping[str, int | float], hints: Sequence[Mapping[str, float | int]], limit: int
) -> Iterator[dict[str, Array]]:
    """Arrays for all parameters, plain ones first, each as it is and with what assumptions ask for written into it."""
    repair = repair_program(func)
    try:
        shapes = {
            b.name: (*shape_at(b.shape, numbers), *((b.dtype.lanes,) if b.dtype.lanes > 1 else ()))
            for b in func.buffers
        }
    except (Trap, KeyError, TypeError):
        return
    if sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()) > _MOST_CELLS:
        return
    types = {b.name: numpy_dtype(b.dtype.element) for b in func.buffers}
    for plain in _plain(func, shapes, hints):
        arrays = {name: np.ascontiguousarray(array.astype(types[name])) for name, array in plain.items()}
        if repair is not None:
            changed = repaired(repair, {**numbers, **arrays}, limit)
            if changed is not None:
                yield {name: changed[name] for name in arrays}
        yield arrays


def _plain(
    func: PrimFunc, shapes: Mapping[str, tuple[int, ...]], hints: Sequence[Mapping[str, float | int]]
) -> Iterator[dict[str, Array]]:
    generator = np.random.default_rng(_SEED)
    yield {name: np.ones(shape) for name, shape in shapes.items()}
    for hint in hints:
        yield {name: np.full(shape, hint.get(name, 1)) for name, shape in shapes.items()}
    yield {name: np.zeros(shape) for name, shape in shapes.items()}
    yield {name: np.arange(int(np.prod(shape))).reshape(shape) for name, shape in shapes.items()}
    yield {name: np.full(shape, 2) for name, shape in shapes.items()}
    yield {name: -np.ones(shape) for name, shape in shapes.items()}
    for value in _mentioned(func):
        yield {name: np.full(shape, value) for name, shape in shapes.items()}
        yield {name: _one_cell(shape, value) for name, shape in shapes.items()}
    for number in range(len(shapes)):
        yield {
            name: np.full(shape, 1 + (k + number) % max(len(shapes), 1))
            for k, (name, shape) in enumerate(shapes.items())
        }
    while True:
        yield {name: generator.integers(-4 if _signed(func, name) else 0, 5, shape) for name, shape in shapes.items()}


def _one_cell(shape: tuple[int, ...], value: int) -> Array:
    """Zeros, and one value."""
    result = np.zeros(shape)
    result.reshape(-1)[:1] = value
    return result


def _signed(func: PrimFunc, name: str) -> bool:
    dtype = next(b.dtype for b in func.buffers if b.name == name)
    return dtype.is_float or (dtype.is_integer and dtype.min_int < 0)


def shape_at(shape: Sequence[Expr], numbers: Mapping[str, int | float]) -> tuple[int, ...]:
    """A shape with these sizes. Raises Trap, KeyError, TypeError."""
    return tuple(max(int(evaluate(extent, numbers)), 0) for extent in shape)
