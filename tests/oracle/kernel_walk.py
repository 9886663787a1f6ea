"""Kernels of a schedule, with blocks, loops of several places on one axis, and barriers, run thread by thread in random
orders. Shares nothing with `ir/threads`.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Var
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, DeclBuffer, Evaluate, For, ForKind, IterKind, Stmt
from layoutproof.ir.visit import walk
from tests.oracle.stepping_threads import Thread, Walk
from tests.oracle.thread_walker import shape_of

UNWRITTEN = -999


class Broken(Exception):
    """A fault of the kernel: an access out of bounds, a barrier that not all threads reach."""


class NotWalked(Exception):
    """A kernel with an operation that the walk does not know."""


@dataclass(slots=True)
class Grid:
    """A launch: memory of the grid, who touched what in it, and whether two blocks or threads disturbed one another."""

    memory: dict[str, np.ndarray]
    shared: list[Buffer]
    private: list[Buffer]
    blocks: Walk = field(init=False)
    raced: bool = False

    def __post_init__(self) -> None:
        self.blocks = Walk(self.memory)


class KernelThread(Thread):
    """One thread: `places` says where it is on each axis, by tag."""

    def __init__(self, number: int, block: int, places: Mapping[str, int], walk_: Walk, grid: Grid) -> None:
        super().__init__(number, {}, walk_)
        self.block, self.places, self.grid = block, places, grid
        self.own = {buffer.name: np.full(shape_of(buffer), UNWRITTEN) for buffer in grid.private}

    def run(self, stmt: Stmt) -> Generator[bool, None, None]:
        """Yields True at a barrier, False after a store."""
        match stmt:
            case For(kind=ForKind.THREAD_BINDING, var=var, start=start, extent=IntImm(value=extent), body=body):
                place = self.places[str(stmt.thread)]
                if place < extent:
                    self.env[var.name] = place + self.value(start)
                    yield from self.run(body)
            case For(var=var, start=start, extent=extent, body=body):
                first = self.value(start)
                for value in range(first, first + self.value(extent)):
                    self.env[var.name] = value
                    yield from self.run(body)
            case Block():
                yield from self.in_block(stmt)
            case Allocate(body=body) | DeclBuffer(body=body):
                yield from self.run(body)
            case Evaluate(value=OpaqueCall(function="tvm_storage_sync")):
                yield True
            case Evaluate(value=Assume(condition=condition)):
                if not self.value(condition):
                    raise Broken("an assumption does not hold")
            case Evaluate():
                pass
            case _:
                yield from super().run(stmt)

    def in_block(self, block: Block) -> Generator[bool, None, None]:
        """An instance of a block; its init before its first update."""
        first = True
        for v in block.iter_vars:
            self.env[v.var.name] = self.value(v.binding)
            first &= v.kind is not IterKind.REDUCE or self.env[v.var.name] == self.value(v.domain.start)
        if self.value(block.where):
            if block.init is not None and first:
                yield from self.run(block.init)
            yield from self.run(block.body)

    def cells(self, name: str, place: tuple[int, ...], stored: int | None) -> np.ndarray:
        array = self.own.get(name, self.walk.memory.get(name))
        assert array is not None
        if any(not 0 <= index < extent for index, extent in zip(place, array.shape, strict=True)):
            raise Broken(f"{name}{list(place)} is out of bounds")
        if name in self.own:
            return array
        cell = int(np.ravel_multi_index(place, array.shape))
        self.walk.touch(name, cell, self.number, stored)
        if name in self.grid.memory:
            self.grid.blocks.touch(name, cell, self.block, stored)
        return array

    def value(self, e: Expr) -> int:
        match e:
            case Logical(op=op, lhs=lhs, rhs=rhs):
                left = self.value(lhs)
                return self.value(rhs) if bool(left) is (op is LogicalOp.AND) else left
            case Not(operand=operand):
                return int(not self.value(operand))
            case Cast(value=value, dtype=dtype):
                half = 1 << (dtype.bits - 1)
                return (self.value(value) + half) % (2 * half) - half
            case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case Compare(op=op, lhs=lhs, rhs=rhs):
                return int(_COMPARE[op](self.value(lhs), self.value(rhs)))
            case Binary(op=op, lhs=lhs, rhs=rhs) if op in _MORE:
                return _MORE[op](self.value(lhs), self.value(rhs))
            case BufferLoad(buffer=buffer, indices=indices):
                place = tuple(self.value(index) for index in indices)
                found = int(self.cells(buffer.name, place, None)[place])
                if found == UNWRITTEN:
                    raise Broken(f"{buffer.name}{list(place)} is read before it is written")
                return found
            case Binary() | IntImm() | Var():
                try:
                    return super().value(e)
                except KeyError as unknown:
                    raise NotWalked(str(unknown)) from unknown
            case _:
                raise NotWalked(type(e).__name__)


_COMPARE: Mapping[CompareOp, Callable[[int, int], bool]] = {
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
}
_MORE: Mapping[BinaryOp, Callable[[int, int], int]] = {BinaryOp.MIN: min, BinaryOp.MAX: max}


def run_kernel(func: PrimFunc, inputs: Mapping[str, np.ndarray], rng: random.Random) -> dict[str, np.ndarray]:
    """What the arrays hold after all blocks ran, threads in a random order. Raises Broken for faults and races."""
    arrays = {buffer.name: np.full(shape_of(buffer), UNWRITTEN) for buffer in func.buffers}
    arrays |= {name: array.astype(int) for name, array in inputs.items()}
    buffers = [n.buffer for n in walk(func.body) if isinstance(n, Allocate)]
    buffers += [b for n in walk(func.body) if isinstance(n, Block) for b in n.alloc_buffers]
    arrays |= {b.name: np.full(shape_of(b), UNWRITTEN) for b in buffers if b.scope == "global"}
    grid = Grid(arrays, [b for b in buffers if b.scope == "shared"], [b for b in buffers if b.scope == "local"])
    axes = _axes(func.body)
    over_blocks = {tag: extent for tag, extent in axes.items() if tag.startswith("blockIdx")}
    over_threads = {tag: extent for tag, extent in axes.items() if tag not in over_blocks}
    places = list(np.ndindex(*over_blocks.values()))
    rng.shuffle(places)
    for number, place in enumerate(places):
        where = dict(zip(over_blocks, map(int, place), strict=True))
        _run_block(func.body, grid, where, over_threads, number, rng)
    if grid.raced or grid.blocks.raced:
        raise Broken("a race")
    return arrays


def _run_block(
    body: Stmt, grid: Grid, where: Mapping[str, int], axes: Mapping[str, int], number: int, rng: random.Random
) -> None:
    memory = {**grid.memory, **{b.name: np.full(shape_of(b), UNWRITTEN) for b in grid.shared}}
    block = Walk(memory)
    going = []
    for thread, place in enumerate(np.ndindex(*axes.values())):
        places = {**where, **dict(zip(axes, map(int, place), strict=True))}
        going.append(KernelThread(thread, number, places, block, grid).run(body))
    waiting: list[Generator[bool, None, None]] = []
    ended = 0
    while going or waiting:
        if not going:
            if ended:
                raise Broken("not all threads reach a barrier")
            going, waiting = waiting, []
            block.touched.clear()
        thread_ = rng.choice(going)
        at_barrier = next(thread_, None)
        if at_barrier is not False:
            going.remove(thread_)
        if at_barrier:
            waiting.append(thread_)
        ended += at_barrier is None
    grid.raced |= block.raced


def _axes(stmt: Stmt) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in walk(stmt):
        if isinstance(node, For) and node.thread is not None and isinstance(node.extent, IntImm):
            found[node.thread] = max(found.get(node.thread, 1), node.extent.value)
    return found
