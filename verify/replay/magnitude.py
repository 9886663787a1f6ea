"""Whether a program too large to run computes finite numbers only, on one input: by ranges, one for each memory.

The fast-math assumptions `nnan` and `ninf` speak of everything that a program computes. Where only a part of it is run,
the rest has to be bounded: a cell holds what some plain store left there, and what at most so many updates `acc + e`
added to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, FloatImm, IfThenElseExpr, Select, Var
from layoutproof.ir.interp.analysis import Memories, find_memories, reads_memory
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap, float_format, max_finite
from layoutproof.ir.stmt import Block, BufferStore, For, Let, Stmt
from layoutproof.ir.visit import children, free_variables, loads_in
from layoutproof.verify.replay.counterexample import Number
from layoutproof.verify.replay.watching import own_expressions

Range = tuple[float, float]

_ROUNDS = 3  # beyond one for each memory
_MARGIN = 1.01  # for what a library's function may be off


class _Unbounded(Exception):
    """A number that may be no finite one, or of which that is not known."""


def stays_finite(func: PrimFunc, arrays: Mapping[str, Array], numbers: Mapping[str, Number]) -> bool:
    """Whether all floats that a program computes are surely finite, for these arrays and scalars by name."""
    try:
        _Bounds(func, arrays, numbers).settle()
    except (_Unbounded, OverflowError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Update:
    """`acc (+) e` (`sign` -1 for a difference), at most `times` times a cell."""

    contribution: Expr
    sign: int
    times: int


@dataclass(slots=True)
class _Sum:
    """What all updates may add to a cell, and the factor by which roundings up to then may enlarge it."""

    low: float = 0.0
    high: float = 0.0
    exponent: float = 0.0

    def add(self, one: Range, times: int, precision: int) -> None:
        self.low += times * min(one[0], 0.0)
        self.high += times * max(one[1], 0.0)
        self.exponent += times * 2.0**-precision

    def grown(self, start: Range) -> Range:
        """The range of a cell that starts in one. Raises OverflowError where that is out of all bounds."""
        factor = math.exp(self.exponent)
        return min(start[0] + self.low, 0.0) * factor, max(start[1] + self.high, 0.0) * factor


@dataclass(slots=True)
class _Bounds:
    func: PrimFunc
    arrays: Mapping[str, Array]
    numbers: Mapping[str, Number]
    memories: Memories = field(init=False)
    ranges: dict[str, Range] = field(default_factory=dict)
    names: dict[str, Range] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.memories = find_memories(self.func)
        for name, value in self.numbers.items():
            self.names[name] = (float(value), float(value))
        for buffer in self.func.buffers:
            array = self.arrays[buffer.name]
            if buffer.dtype.is_float and array.size:
                numbers = array.astype(np.float64) if array.dtype != np.float64 else array
                self.joined(self.memories.of(buffer), (float(numbers.min()), float(numbers.max())))
        if any(len(types) > 1 for types in self.memories.types.values()):
            raise _Unbounded  # memory that is seen as another type may hold anything
        if any(not _is_number(r) for r in self.ranges.values()):
            raise _Unbounded

    def settle(self) -> None:
        """Find the ranges of all memories, everything that is computed checked. Raises _Unbounded."""
        start = dict(self.ranges)
        for _ in range(len(self.memories.types) + _ROUNDS):
            before = dict(self.ranges), dict(self.names)
            plain = dict(start)
            added: dict[str, _Sum] = {}
            self.statement(self.func.body, (), {}, plain, added)
            for root, found in plain.items():
                total = added.get(root, _Sum())
                self.ranges[root] = _checked(total.grown(found), self.float_of(root)) if root in added else found
            if before == (self.ranges, self.names):
                return
        raise _Unbounded

    def float_of(self, root: str) -> DType:
        return next(iter(self.memories.types[root]))

    def joined(self, root: str, found: Range) -> None:
        self.ranges[root] = _join(self.ranges.get(root), found)

    def statement(
        self,
        stmt: Stmt,
        loops: tuple[For, ...],
        bound: Mapping[str, Expr],
        plain: dict[str, Range],
        added: dict[str, _Sum],
    ) -> None:
        for expr in own_expressions(stmt):
            self.look(expr)
        match stmt:
            case BufferStore() if stmt.buffer.dtype.is_float:
                self.store(stmt, loops, bound, plain, added)
            case For():
                loops = (*loops, stmt)
            case Let() if stmt.var.dtype.is_float:
                found = self.range(stmt.value)
                if found is not None:
                    self.names[stmt.var.name] = _join(self.names.get(stmt.var.name), found)
            case Let():
                bound = {**bound, stmt.var.name: stmt.value}
            case Block():
                self.look(stmt.where)
                bound = {**bound, **{v.var.name: v.binding for v in stmt.iter_vars}}
            case _:
                pass
        for child in children(stmt):
            if isinstance(child, Stmt):
                self.statement(child, loops, bound, plain, added)

    def store(
        self,
        stmt: BufferStore,
        loops: Sequence[For],
        bound: Mapping[str, Expr],
        plain: dict[str, Range],
        added: dict[str, _Sum],
    ) -> None:
        root = self.memories.of(stmt.buffer)
        update = self.update(stmt, loops, bound)
        if update is None:
            found = self.range(stmt.value)
            if found is not None:
                plain[root] = _join(plain.get(root), found)
            return
        one = self.range(update.contribution)
        if one is not None:
            low, high = sorted((update.sign * one[0], update.sign * one[1]))
            precision = float_format(stmt.buffer.dtype.element)[0]
            added.setdefault(root, _Sum()).add((low, high), update.times, precision)

    def update(self, stmt: BufferStore, loops: Sequence[For], bound: Mapping[str, Expr]) -> _Update | None:
        """The store as one of a running sum, where it is that."""
        value = stmt.value
        if not isinstance(value, Binary) or value.op not in (BinaryOp.ADD, BinaryOp.SUB):
            return None
        sides = (
            ((value.lhs, value.rhs),) if value.op is BinaryOp.SUB else ((value.lhs, value.rhs), (value.rhs, value.lhs))
        )
        for accumulator, other in sides:
            itself = isinstance(accumulator, BufferLoad) and (accumulator.buffer, accumulator.indices) == (
                stmt.buffer,
                stmt.indices,
            )
            if itself and all(
                self.memories.of(load.buffer) != self.memories.of(stmt.buffer) for load in loads_in(other)
            ):
                return _Update(other, -1 if value.op is BinaryOp.SUB else 1, self.times(stmt, loops, bound))
        return None

    def times(self, stmt: BufferStore, loops: Sequence[For], bound: Mapping[str, Expr]) -> int:
        """How often at most a store writes one cell: the loops that its indices do not name."""
        named: set[str] = set()
        for index in stmt.indices:
            while isinstance(index, Var) and index.name in bound:
                index = bound[index.name]
            if isinstance(index, Var):
                named.add(index.name)
        count = stmt.value.dtype.lanes
        for loop in loops:
            if loop.var.name not in named:
                count *= max(self.integer(loop.extent), 1)
        return count

    def integer(self, extent: Expr) -> int:
        if reads_memory(extent):
            raise _Unbounded
        try:
            return int(evaluate(extent, {v.name: int(self.numbers[v.name]) for v in free_variables(extent)}))
        except (Trap, Overflow, KeyError, TypeError) as problem:
            raise _Unbounded from problem

    def look(self, expr: Expr) -> None:
        """Check all floats that an expression computes, also those of conditions and indices."""
        if expr.dtype.is_float:
            self.range(expr)
            return
        for child in children(expr):
            if isinstance(child, Expr):
                self.look(child)

    def range(self, expr: Expr) -> Range | None:
        """The least and the largest value; None where nothing is known to be there yet. Raises _Unbounded."""
        match expr:
            case FloatImm(value=value):
                return value, value
            case Limit(kind=kind):
                bound = math.inf if kind is LimitKind.INFINITY else max_finite(expr.dtype.element)
                return (-bound, -bound) if kind is LimitKind.MIN else (bound, bound)
            case Var(name=name):
                return self.names.get(name)
            case BufferLoad(buffer=buffer, indices=indices):
                for index in indices:
                    self.look(index)
                return self.ranges.get(self.memories.of(buffer))
            case Broadcast(value=value):
                return self.range(value)
            case (
                IfThenElseExpr(condition=condition, then=one, otherwise=other)
                | Select(condition=condition, then=one, otherwise=other)
            ):
                self.look(condition)
                first, second = self.range(one), self.range(other)
                return first if second is None else _join(first, second)
            case Cast(value=inner):
                return self.cast(expr, inner)
            case Binary() | Call():
                return self.computed(expr)
            case _:
                raise _Unbounded

    def cast(self, expr: Cast, inner: Expr) -> Range | None:
        if inner.dtype.is_float:
            found = self.range(inner)
            return None if found is None else _checked(found, expr.dtype)
        self.look(inner)
        element = inner.dtype.element
        return _checked((0.0, 1.0) if element.is_bool else (float(element.min_int), float(element.max_int)), expr.dtype)

    def computed(self, expr: Binary | Call) -> Range | None:
        operands = [self.range(e) for e in ((expr.lhs, expr.rhs) if isinstance(expr, Binary) else expr.arguments)]
        known = [each for each in operands if each is not None]
        if len(known) < len(operands):
            return None
        if isinstance(expr, Binary):
            rule = _BINARY.get(expr.op)
            if rule is None:
                raise _Unbounded
            return _checked(rule(*known), expr.dtype, rounds=expr.op not in (BinaryOp.MIN, BinaryOp.MAX))
        function = _FUNCTIONS.get(expr.function)
        if function is None or len(known) != 1:
            raise _Unbounded
        return _checked(function(*known[0]), expr.dtype)


def _is_number(found: Range) -> bool:
    return math.isfinite(found[0]) and math.isfinite(found[1])


def _join(first: Range | None, second: Range) -> Range:
    return second if first is None else (min(first[0], second[0]), max(first[1], second[1]))


def _checked(found: Range, dtype: DType, *, rounds: bool = True) -> Range:
    """The range of a result; `rounds` unless it is an operand. Raises _Unbounded if it may not be finite."""
    off = 1.0 + 2.0 ** (1 - float_format(dtype.element)[0]) if rounds else 1.0
    low = found[0] * off if found[0] < 0.0 else found[0] / off
    high = found[1] / off if found[1] < 0.0 else found[1] * off
    if not (_is_number((low, high)) and max(abs(low), abs(high)) <= max_finite(dtype.element) / 2):
        raise _Unbounded
    return low, high


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    if any(math.isnan(c) for c in corners):
        raise _Unbounded
    return min(corners), max(corners)


def _quotient(a: Range, b: Range) -> Range:
    if b[0] <= 0.0 <= b[1]:
        raise _Unbounded
    return _product(a, (1.0 / b[1], 1.0 / b[0]))


def _root(low: float, high: float) -> Range:
    if low < 0.0:
        raise _Unbounded
    return math.sqrt(low), math.sqrt(high) * _MARGIN


def _exponential(base: float) -> Callable[[float, float], Range]:
    def rule(low: float, high: float) -> Range:
        return 0.0, float(np.power(base, min(high, 1e4), dtype=np.float64)) * _MARGIN if high < 700 else math.inf

    return rule


def _whole(low: float, high: float) -> Range:
    return low - 1.0, high + 1.0


def _magnitude(low: float, high: float) -> Range:
    return 0.0, max(abs(low), abs(high))


def _unit(low: float, high: float) -> Range:
    """A function whose values lie between -1 and 1, for numbers that are finite."""
    if not _is_number((low, high)):
        raise _Unbounded
    return -_MARGIN, _MARGIN


_BINARY: Mapping[BinaryOp, Callable[[Range, Range], Range]] = {
    BinaryOp.ADD: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    BinaryOp.SUB: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    BinaryOp.MUL: _product,
    BinaryOp.DIV: _quotient,
    BinaryOp.MIN: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    BinaryOp.MAX: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
_FUNCTIONS: Mapping[str, Callable[[float, float], Range]] = {
    "exp": _exponential(math.e),
    "exp2": _exponential(2.0),
    "sqrt": _root,
    "abs": _magnitude,
    "floor": _whole,
    "ceil": _whole,
    "round": _whole,
    "trunc": _whole,
    "tanh": _unit,
    "sigmoid": _unit,
    "erf": _unit,
    "sin": _unit,
    "cos": _unit,
}
