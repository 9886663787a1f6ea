"""Threads of a kernel as generators that stop after each step, to be walked in any order, without `ir/threads`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

import numpy as np

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt
from tests.oracle.thread_walker import shape_of


@dataclass(slots=True)
class Walk:
    """A run of one block: its memory, what each thread touched since the last barrier, and what was seen of races."""

    memory: dict[str, np.ndarray]
    touched: dict[tuple[str, int], set[tuple[int, int | None]]] = field(default_factory=dict)
    raced: bool = False

    def touch(self, name: str, cell: int, thread: int, stored: int | None) -> None:
        """A load, or a store of a value; two threads that store one value do not disturb one another."""
        seen = self.touched.setdefault((name, cell), set())
        self.raced |= any(other != thread and value != stored for other, value in seen)
        seen.add((thread, stored))


class Thread:
    """One thread of a kernel: a generator that stops after each store and at each barrier."""

    def __init__(self, number: int, indices: dict[str, int], walk: Walk) -> None:
        self.number = number
        self.env = indices
        self.own: dict[str, np.ndarray] = {}
        self.walk = walk

    def run(self, stmt: Stmt) -> Generator[bool, None, None]:
        """Yields True at a barrier, False after another step."""
        match stmt:
            case Seq(body=body):
                for each in body:
                    yield from self.run(each)
            case Allocate(buffer=buffer, body=body):
                if buffer.scope == "local":
                    self.own[buffer.name] = np.full(shape_of(buffer), -999)
                yield from self.run(body)
            case For(kind=ForKind.THREAD_BINDING, body=body):
                yield from self.run(body)
            case For(var=var, extent=IntImm(value=extent), body=body):
                for value in range(extent):
                    self.env[var.name] = value
                    yield from self.run(body)
            case IfThenElse(condition=condition, then=then):
                if self.value(condition):
                    yield from self.run(then)
            case BufferStore(buffer=buffer, indices=indices, value=value):
                result = self.value(value)
                place = tuple(self.value(index) for index in indices)
                self.cells(buffer.name, place, result)[place] = result
                yield False
            case Evaluate():
                yield True
            case _:
                raise AssertionError(type(stmt))

    def cells(self, name: str, place: tuple[int, ...], stored: int | None) -> np.ndarray:
        if name in self.own:
            return self.own[name]
        array = self.walk.memory[name]
        self.walk.touch(name, int(np.ravel_multi_index(place, array.shape)), self.number, stored)
        return array

    def value(self, e: Expr) -> int:
        match e:
            case IntImm(value=value):
                return value
            case Var(name=name):
                return self.env[name]
            case BufferLoad(buffer=buffer, indices=indices):
                place = tuple(self.value(index) for index in indices)
                return int(self.cells(buffer.name, place, None)[place])
            case Binary(op=op, lhs=lhs, rhs=rhs):
                return _BINARY[op](self.value(lhs), self.value(rhs))
            case Compare(op=op, lhs=lhs, rhs=rhs):
                return int(_COMPARE[op](self.value(lhs), self.value(rhs)))
            case _:
                raise AssertionError(type(e))


_BINARY: Mapping[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a // b,
    BinaryOp.FLOORMOD: lambda a, b: a % b,
}
_COMPARE: Mapping[CompareOp, Callable[[int, int], int]] = {
    CompareOp.LT: lambda a, b: a < b,
    CompareOp.EQ: lambda a, b: a == b,
}


def threads_of(stmt: Stmt) -> list[tuple[str, str, int]]:
    """Variable, tag and extent of the thread loops, which stand one inside the other."""
    found = []
    while isinstance(stmt, For | Allocate):
        if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING:
            assert isinstance(stmt.extent, IntImm)
            found.append((stmt.var.name, str(stmt.thread), stmt.extent.value))
        stmt = stmt.body
    return found
