"""Random kernels with barriers, run thread by thread in random orders by a walker of their own, against what the tool
says of their races and what the function with parallel loops computes.

    python -m tests.oracle.kernels --kernels 1000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import layoutproof as lp
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var
from layoutproof.ir.interp.run import run
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt
from layoutproof.ir.threads.sequential import NoSequence, sequential
from layoutproof.ir.visit import walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status

ORDERS = 10
_CELLS = 16


class KernelMaker:
    """One random kernel as text: a block axis, one or two thread axes, shared memory, a thread's own, barriers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.x = rng.choice((2, 3, 4))
        self.y = rng.choice((1, 1, 2))
        self.lines: list[str] = []

    def text(self) -> str:
        self._line(0, "@T.prim_func")
        self._line(0, f"def kernel(A: T.Buffer(({_CELLS},), 'int32'), B: T.Buffer((2, {_CELLS}), 'int32')):")
        self._line(1, "T.func_attr({'tirx.noalias': True})")
        self._line(1, "bx = T.launch_thread('blockIdx.x', 2)")
        self._line(1, f"S = T.decl_buffer(({_CELLS},), 'int32', scope='shared')")
        if self.y > 1:
            self._line(1, f"ty = T.launch_thread('threadIdx.y', {self.y})")
        self._line(1, f"tx = T.launch_thread('threadIdx.x', {self.x})")
        self._line(1, "L = T.decl_buffer((2,), 'int32', scope='local')")
        self._line(1, "L[0] = tx")
        self._line(1, "L[1] = A[tx]")
        # Where it starts everything is written, so that races are what remains to be found.
        self._line(1, f"for j in range({_CELLS}):")
        self._line(2, f"if j % {self.x * self.y} == {self._thread()}:")
        self._line(3, "S[j] = A[j]")
        self._line(1, "T.tvm_storage_sync('shared')")
        self._body(1, self.rng.randint(2, 5), loops=1)
        return "\n".join(["from tvm.script import tir as T", "", *self.lines]) + "\n"

    def _thread(self) -> str:
        return "tx" if self.y == 1 else f"ty * {self.x} + tx"

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _body(self, depth: int, number: int, loops: int) -> None:
        for _ in range(number):
            kind = self.rng.choice(("shared", "shared", "sync", "sync", "global", "local", "loop", "if"))
            if kind == "sync":
                self._line(depth, "T.tvm_storage_sync('shared')")
            elif kind == "loop" and loops:
                self._line(depth, f"for k in range({self.rng.choice((1, 2, 3))}):")
                self._body(depth + 1, self.rng.randint(1, 3), loops - 1)
            elif kind == "if":
                condition = self.rng.choice((f"tx < {self.x - 1}", "bx == 0", "tx == 0", "A[0] < 3"))
                self._line(depth, f"if {condition}:")
                self._body(depth + 1, 1, 0)
            elif kind == "local":
                self._line(depth, f"L[{self.rng.choice((0, 1))}] = {self._value()}")
            elif kind == "global":
                self._line(depth, f"B[bx, {self._index()}] = {self._value()}")
            else:
                self._line(depth, f"S[{self._index()}] = {self._value()}")

    def _index(self) -> str:
        t, n = self._thread(), self.x * self.y
        own = [t, t, t, f"{n - 1} - ({t})", f"({t}) * 2 % {_CELLS}", f"({t}) + {n}"]
        others = [f"({t} + 1) % {n}", "tx", "0", f"({t}) // 2", "3 - tx", f"{_CELLS - 1} - ({t})"]
        return self.rng.choice(own if self.rng.random() < 0.75 else others)

    def _value(self) -> str:
        parts = ["tx", "A[tx]", "L[0]", "L[1]", f"S[{self._index()}]", f"S[{self._index()}]", "1", "bx"]
        return f"{self.rng.choice(parts)} {self.rng.choice('+-')} {self.rng.choice(parts)}"


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


def run_in_some_order(
    func: PrimFunc, a: np.ndarray, rng: random.Random, shape: Sequence[int] = (2, _CELLS)
) -> tuple[np.ndarray, bool]:
    """What `B`, of a shape, holds, and whether two threads disturbed one another: each step is a random thread's."""
    result = np.zeros(shape, int)
    raced = False
    grid = [axis for axis in threads_of(func.body) if axis[1].startswith("threadIdx")]
    for block in range(_blocks(func)):
        block_walk = Walk({"A": a, "B": result, **_shared(func.body)})
        waiting: list[Generator[bool, None, None]] = []
        going = [thread.run(func.body) for thread in _threads(grid, block, block_walk)]
        while going or waiting:
            if not going:
                going, waiting = waiting, []
                block_walk.touched.clear()
            thread = rng.choice(going)
            at_barrier = next(thread, None)
            if at_barrier is None:
                going.remove(thread)
            elif at_barrier:
                going.remove(thread)
                waiting.append(thread)
        raced |= block_walk.raced
    return result, raced


def _blocks(func: PrimFunc) -> int:
    return next((extent for _, tag, extent in threads_of(func.body) if tag == "blockIdx.x"), 1)


def _shared(stmt: Stmt) -> dict[str, np.ndarray]:
    """Shared memory, which holds what no right kernel computes."""
    return {
        node.buffer.name: np.full(shape_of(node.buffer), -999)
        for node in walk(stmt)
        if isinstance(node, Allocate) and node.buffer.scope == "shared"
    }


def shape_of(buffer: Buffer) -> list[int]:
    """Its extents, which are constants."""
    return [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]


def _threads(grid: list[tuple[str, str, int]], block: int, walk: Walk) -> Iterator[Thread]:
    places = np.ndindex(*(extent for _, _, extent in grid))
    for number, place in enumerate(places):
        indices = {name: int(index) for (name, _, _), index in zip(grid, place, strict=True)}
        yield Thread(number, {"bx": block, **indices}, walk)


def judge(seed: int) -> str:
    """What became of one kernel. Raises AssertionError where the tool is wrong."""
    rng = random.Random(seed)
    text = KernelMaker(rng).text()
    func = lp.loads(text)
    form = sequential(func)
    a = np.array([rng.randint(0, 9) for _ in range(_CELLS)])
    runs = [run_in_some_order(func, a, rng) for _ in range(ORDERS)]
    first, raced = runs[0][0], any(r[1] for r in runs)
    if isinstance(form, NoSequence):
        return f"refused: {form.reason}"
    statuses = {v.status for v in prove_race_free(Facts.of(form.func))}
    if form.apart is not None:
        statuses |= {v.status for v in prove_race_free(Facts.of(form.apart))}
    if statuses <= {Status.PROVED}:
        ours = run(func, [a.astype(np.int32), np.zeros((2, _CELLS), np.int32)])["B"]
        assert not raced, f"a race in what was accepted\n{text}"
        assert all((r[0] == first).all() for r in runs), f"results differ\n{text}"
        assert (ours == first).all(), f"another result than in threads\n{text}\n{ours}\n{first}"
        return "accepted"
    if Status.REFUTED in statuses:
        return "race, seen" if raced else "race, not seen"
    return "unknown"


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge random kernels.")
    parser.add_argument("--kernels", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    counts = Counter(judge(seed) for seed in range(options.seed, options.seed + options.kernels))
    for what, number in counts.most_common():
        print(f"{number:6} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
