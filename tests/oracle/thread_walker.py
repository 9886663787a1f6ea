"""Kernels of integers run thread by thread, each step a random thread's: the text of a thread as a generator that stops
after each store and at each barrier, and a record of who touched what since the last barrier.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt
from layoutproof.ir.visit import walk

NOTHING = -999
"""What memory holds before anything is stored: no right kernel computes it."""


@dataclass(slots=True)
class Block:
    """A run of one block: its memory, what each thread touched since the last barrier, and what was seen: `met` if two
    threads touched one cell, one of them storing, `raced` if not all of them stored one value.
    """

    memory: dict[str, list[int]]
    touched: dict[tuple[str, int], set[tuple[int, int | None]]] = field(default_factory=dict)
    raced: bool = False
    met: bool = False

    def load(self, name: str, cell: int, thread: int) -> int:
        """An element."""
        self._touch(name, cell, thread, None)
        return self.memory[name][cell]

    def store(self, name: str, cell: int, thread: int, value: int) -> None:
        """Another value for an element."""
        self._touch(name, cell, thread, value)
        self.memory[name][cell] = value

    def _touch(self, name: str, cell: int, thread: int, stored: int | None) -> None:
        seen = self.touched.setdefault((name, cell), set())
        for other, value in seen:
            if other != thread and (value is not None or stored is not None):
                self.met = True
                self.raced |= value != stored
        seen.add((thread, stored))


Run = Callable[[int, Mapping[str, int], Block], Generator[bool, None, None]]

_BINARY = {BinaryOp.ADD: "+", BinaryOp.SUB: "-", BinaryOp.MUL: "*", BinaryOp.FLOORDIV: "//", BinaryOp.FLOORMOD: "%"}
_COMPARE = {CompareOp.LT: "<", CompareOp.EQ: "=="}


def inside(index: int, extent: int) -> int:
    """An index. Raises IndexError for one outside of an axis."""
    if not 0 <= index < extent:
        raise IndexError(index)
    return index


class _Writer:
    """Writes a thread's text as Python."""

    def __init__(self) -> None:
        self.lines = ["def run(thread, places, block):"]
        self.own: set[str] = set()

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def write(self, stmt: Stmt, depth: int) -> None:
        match stmt:
            case Seq(body=body):
                for each in body:
                    self.write(each, depth)
            case Allocate(buffer=buffer, body=body):
                if buffer.scope == "local":
                    self.own.add(buffer.name)
                    self.line(depth, f"{buffer.name} = [{NOTHING}] * {int(np.prod(shape_of(buffer)))}")
                self.write(body, depth)
            case For(var=var, kind=ForKind.THREAD_BINDING, extent=IntImm(value=extent), body=body):
                self.line(depth, f"if places[{stmt.thread!r}] < {extent}:")
                self.line(depth + 1, f"{var.name} = places[{stmt.thread!r}]")
                self.write(body, depth + 1)
            case For(var=var, extent=IntImm(value=extent), body=body):
                self.line(depth, f"for {var.name} in range({extent}):")
                self.write(body, depth + 1)
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                self.line(depth, f"if {self.value(condition)}:")
                self.write(then, depth + 1)
                if otherwise is not None:
                    self.line(depth, "else:")
                    self.write(otherwise, depth + 1)
            case BufferStore(buffer=buffer, indices=indices, value=value):
                self._store(depth, buffer, self.place(buffer, indices), self.value(value))
            case Evaluate():
                self.line(depth, "yield True")
            case _:
                raise AssertionError(type(stmt))

    def _store(self, depth: int, buffer: Buffer, place: str, value: str) -> None:
        if buffer.name in self.own:
            self.line(depth, f"{buffer.name}[{place}] = {value}")
        else:
            self.line(depth, f"block.store({buffer.name!r}, {place}, thread, {value})")
        self.line(depth, "yield False")

    def place(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        text = "0"
        for index, extent in zip(indices, shape_of(buffer), strict=True):
            text = f"({text}) * {extent} + inside({self.value(index)}, {extent})"
        return text

    def value(self, e: Expr) -> str:
        match e:
            case IntImm(value=value):
                return str(value)
            case Var(name=name):
                return name
            case BufferLoad(buffer=buffer, indices=indices):
                place = self.place(buffer, indices)
                if buffer.name in self.own:
                    return f"{buffer.name}[{place}]"
                return f"block.load({buffer.name!r}, {place}, thread)"
            case Binary(op=op, lhs=lhs, rhs=rhs):
                return f"({self.value(lhs)} {_BINARY[op]} {self.value(rhs)})"
            case Compare(op=op, lhs=lhs, rhs=rhs):
                return f"({self.value(lhs)} {_COMPARE[op]} {self.value(rhs)})"
            case _:
                raise AssertionError(type(e))


def thread_of(func: PrimFunc) -> Run:
    """What one thread does: a generator that yields True at a barrier, False after a store."""
    writer = _Writer()
    writer.write(func.body, 1)
    names: dict[str, Any] = {"inside": inside}
    exec("\n".join([*writer.lines, "    return", "    yield"]), names)
    found: Run = names["run"]
    return found


def axes_of(stmt: Stmt) -> dict[str, int]:
    """The thread axes, outer ones first, with the most iterations that a loop along them has."""
    found: dict[str, int] = {}
    for node in walk(stmt):
        if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING:
            assert isinstance(node.extent, IntImm)
            tag = str(node.thread)
            found[tag] = max(found.get(tag, 0), node.extent.value)
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """What `B` holds after a run, and what was seen of races, as in `Block`."""

    b: np.ndarray
    raced: bool
    met: bool


class Walker:
    """Runs one kernel of an input `A` and an output `B` of a shape."""

    def __init__(self, func: PrimFunc, shape: Sequence[int]) -> None:
        self.thread, self.axes, self.shape = thread_of(func), axes_of(func.body), tuple(shape)
        self.shared = {
            node.buffer.name: int(np.prod(shape_of(node.buffer)))
            for node in walk(func.body)
            if isinstance(node, Allocate) and node.buffer.scope.startswith("shared")
        }

    def run(self, a: np.ndarray, rng: random.Random) -> Seen:
        """One run, in some order."""
        inputs, result = [int(value) for value in a], [0] * int(np.prod(self.shape))
        raced = met = False
        for number in range(self.axes.get("blockIdx.x", 1)):
            shared = {name: [NOTHING] * size for name, size in self.shared.items()}
            block = Block({"A": inputs, "B": result, **shared})
            self._block(block, number, rng)
            raced, met = raced or block.raced, met or block.met
        return Seen(np.array(result).reshape(self.shape), raced, met)

    def _block(self, block: Block, number: int, rng: random.Random) -> None:
        waiting: list[Generator[bool, None, None]] = []
        going = list(self._threads(block, number))
        while going or waiting:
            if not going:
                going, waiting = waiting, []
                block.touched.clear()
            thread = rng.choice(going)
            at_barrier = next(thread, None)
            if at_barrier is None:
                going.remove(thread)
            elif at_barrier:
                going.remove(thread)
                waiting.append(thread)

    def _threads(self, block: Block, number: int) -> Iterator[Generator[bool, None, None]]:
        tags = [tag for tag in self.axes if not tag.startswith("blockIdx")]
        for thread, place in enumerate(np.ndindex(*(self.axes[tag] for tag in tags))):
            places = {"blockIdx.x": number, **dict(zip(tags, map(int, place), strict=True))}
            yield self.thread(thread, places, block)


def shape_of(buffer: Buffer) -> list[int]:
    """Its extents, which are constants."""
    return [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
