"""Random pipelines of asynchronous copies, run by threads in random orders. Their copies take effect at some time
between where they stand and the wait that covers them. What the tool says of them is held against that.

    python -m tests.oracle.async_kernels --kernels 1000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial

import numpy as np

import layoutproof as lp
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp.memory import Fault
from layoutproof.ir.interp.run import run
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, AttrStmt, BufferStore, Evaluate, Stmt
from layoutproof.ir.threads.sequential import Barriers, NoSequence, sequential
from layoutproof.ir.visit import walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status
from tests.oracle.stepping_threads import Thread, Walk, threads_of
from tests.oracle.thread_walker import shape_of

_ORDERS = 12
_ROUNDS = 5


class PipelineMaker:
    """A random pipeline as text: copies some rounds ahead into some versions of a buffer, waits, barriers, reads."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.threads = rng.choice((2, 3))
        self.ahead = rng.choice((1, 1, 2))
        self.versions = self.ahead + rng.choice((0, 1, 1, 1, 2))
        self.lines: list[str] = []

    def text(self) -> str:
        rng, n = self.rng, self.threads
        self._line(0, "@T.prim_func")
        self._line(0, f"def kernel(A: T.Buffer((8, {n}), 'int32'), B: T.Buffer((8, {n}), 'int32')):")
        self._line(1, "T.func_attr({'tirx.noalias': True})")
        scope = rng.choice(("shared", "shared", "local"))
        self._line(1, f"tx = T.launch_thread('threadIdx.x', {n})")
        self._line(1, f"S = T.decl_buffer(({self.versions}, {n}), 'int32', scope={scope!r})")
        self._line(1, f"Q = T.decl_buffer(({self.versions}, {n}), 'int32', scope={scope!r})")
        other = "tx" if scope == "local" else rng.choice(("tx", f"{n - 1} - tx"))
        chained = rng.random() < 0.3
        for r in range(self.ahead):
            self._copy(1, str(r))
        self._line(1, f"for i in range({_ROUNDS - self.ahead}):")
        body: list[Callable[[], None]] = [
            partial(self._copy, 2, f"(i + {self.ahead})"),
            partial(self._wait, 2, self.ahead - (rng.random() < 0.1) + (rng.random() < 0.1)),
            partial(self._second, chained),
            partial(self._line, 2, f"B[i, tx] = {'Q' if chained else 'S'}[{self._version('i')}, {other}]"),
            partial(self._sync, 2, 0.85),
        ]
        if rng.random() < 0.15:
            first = rng.randrange(4)
            body[first], body[first + 1] = body[first + 1], body[first]
        for part in body:
            part()
        for r in range(self.ahead):
            self._wait(1, max(0, self.ahead - 1 - r + (rng.random() < 0.1)))
            at = _ROUNDS - self.ahead + r
            self._line(1, f"B[{at}, tx] = S[{self._version(str(at))}, {other}]")
        return "\n".join(["from tvm.script import tir as T", "", *self.lines]) + "\n"

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _version(self, at: str) -> str:
        return f"{at} % {max(1, self.versions - (self.rng.random() < 0.05))}"

    def _copy(self, depth: int, at: str) -> None:
        self._line(depth, "with T.attr(0, 'async_scope', 1):")
        self._line(depth + 1, f"S[{self._version(at)}, tx] = A[{at}, tx] * 2")
        if self.rng.random() < 0.95:
            self._line(depth, "T.ptx_commit_group()")

    def _second(self, chained: bool) -> None:
        """A copy of what was copied, which may be under way when its source is written again."""
        if not chained:
            return
        self._line(2, "with T.attr(0, 'async_scope', 1):")
        self._line(3, f"Q[{self._version('i')}, tx] = S[{self._version('i')}, tx] + 1")
        self._line(2, "T.ptx_commit_group()")
        self._wait(2, self.rng.choice((0, 0, 1)))

    def _wait(self, depth: int, leaves: int) -> None:
        if self.rng.random() < 0.95:
            self._line(depth, f"T.ptx_wait_group({leaves})")
        self._sync(depth, 0.9)

    def _sync(self, depth: int, often: float) -> None:
        if self.rng.random() < often:
            self._line(depth, "T.tvm_storage_sync('shared')")


class Copying(Thread):
    """A thread with copies under way, in groups."""

    def __init__(self, number: int, indices: dict[str, int], walk: Walk, rng: random.Random) -> None:
        super().__init__(number, indices, walk)
        self.rng = rng
        self.groups: list[list[Callable[[], None]]] = [[]]

    def run(self, stmt: Stmt) -> Generator[bool, None, None]:
        """As any thread; a copy is done at some later step, or at the wait that covers it."""
        self._some()
        match stmt:
            case AttrStmt(key="async_scope", body=BufferStore() as store):
                env = dict(self.env)
                self.groups[-1].append(lambda: self._do(store, env))
                yield False
            case Evaluate(value=OpaqueCall(function="ptx_commit_group")):
                self.groups.append([])
            case Evaluate(value=OpaqueCall(function="ptx_wait_group", arguments=(IntImm(value=leaves),))):
                for group in self.groups[: max(0, len(self.groups) - 1 - leaves)]:
                    while group:
                        group.pop(self.rng.randrange(len(group)))()
            case _:
                yield from super().run(stmt)

    def _some(self) -> None:
        for group in self.groups:
            if group and self.rng.random() < 0.2:
                group.pop(self.rng.randrange(len(group)))()

    def _do(self, store: BufferStore, env: dict[str, int]) -> None:
        now, self.env = self.env, env
        result = self.value(store.value)
        place = tuple(self.value(index) for index in store.indices)
        self.cells(store.buffer.name, place, result)[place] = result
        self.env = now


def run_with_delays(func: PrimFunc, a: np.ndarray, rng: random.Random) -> np.ndarray:
    """What `B` holds after threads have run in some order, their copies done at some time."""
    memories = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    threads = threads_of(func.body)[0][2]
    result = np.full((8, threads), -7)
    memory = {"A": a, "B": result}
    memory |= {m.name: np.full(shape_of(m), -999) for m in memories if m.scope == "shared"}
    block = Walk(memory)
    going = [Copying(t, {"bx": 0, "tx": t}, block, rng).run(func.body) for t in range(threads)]
    waiting: list[Generator[bool, None, None]] = []
    while going or waiting:
        if not going:
            going, waiting = waiting, []
        thread = rng.choice(going)
        at_barrier = next(thread, None)
        if at_barrier is not False:
            going.remove(thread)
        if at_barrier:
            waiting.append(thread)
    return result


def judge(seed: int) -> str:
    """What became of one pipeline. Raises AssertionError where the tool is wrong."""
    rng = random.Random(seed)
    maker = PipelineMaker(rng)
    text = maker.text()
    func = lp.loads(text)
    form = sequential(func, Barriers.AS_WRITTEN)
    a = np.array([[rng.randint(1, 99) for _ in range(maker.threads)] for _ in range(8)])
    runs = [run_with_delays(func, a, rng) for _ in range(_ORDERS)]
    differ = any((r != runs[0]).any() for r in runs)
    if isinstance(form, NoSequence):
        return f"refused: {form.reason}"
    asked = [form.func, *(part for part in (form.apart, form.under_way) if part is not None)]
    statuses = {v.status for part in asked for v in prove_race_free(Facts.of(part))}
    if statuses <= {Status.PROVED}:
        try:
            ours = run(func, [a.astype(np.int32), np.full((8, maker.threads), -7, np.int32)])["B"]
        except Fault:
            return "faults by itself"
        assert not differ, f"results differ\n{text}"
        assert (ours == runs[0]).all(), f"another result than in threads\n{text}\n{ours}\n{runs[0]}"
        return "accepted"
    return "not accepted, results differ" if differ else "not accepted, one result"


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge random pipelines.")
    parser.add_argument("--kernels", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    counts = Counter(judge(seed) for seed in range(options.seed, options.seed + options.kernels))
    for what, number in counts.most_common():
        print(f"{number:6} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
