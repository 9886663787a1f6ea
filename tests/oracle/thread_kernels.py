"""Random kernels with barriers, run thread by thread in random orders by a walker of their own, against what the tool
says of their races, what the function with parallel loops computes, and what the generated C and OpenCL do.

    python -m tests.oracle.thread_kernels --kernels 1000 --seed 0 --workers 2
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context

import numpy as np

import layoutproof as lp
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.threads.sequential import NoSequence, Sequential, sequential
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.verdict.verdict import Status
from tests.oracle.thread_walker import Walker

ORDERS = 10
MORE = 20  # runs with other contents, where a race was not seen
CHUNK = 50
_CELLS = 16


class KernelMaker:
    """One random kernel as text: a block axis, one or two thread axes (virtual ones too), shared memory, a
    thread's own, barriers.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.blocks = rng.choice((1, 2, 2))
        self.x = rng.choice((1, 2, 3, 4))
        self.y = rng.choice((1, 1, 2))
        self.virtual = rng.choice((1, 1, 2)) if self.y == 1 else 1
        self.scope = rng.choice(("shared", "shared", "shared.dyn"))
        self.lines: list[str] = []
        self.loops: list[str] = []

    @property
    def threads(self) -> int:
        """How many threads a block has."""
        return self.x * self.y * self.virtual

    def text(self) -> str:
        self._line(0, "@T.prim_func")
        self._line(0, f"def kernel(A: T.Buffer(({_CELLS},), 'int32'), B: T.Buffer((2, {_CELLS}), 'int32')):")
        self._line(1, "T.func_attr({'tirx.noalias': True})")
        self._line(1, f"bx = T.launch_thread('blockIdx.x', {self.blocks})")
        self._line(1, f"S = T.decl_buffer(({_CELLS},), 'int32', scope='{self.scope}')")
        if self.virtual > 1:
            self._line(1, f"vt = T.launch_thread('vthread', {self.virtual})")
        if self.y > 1:
            self._line(1, f"ty = T.launch_thread('threadIdx.y', {self.y})")
        self._line(1, f"tx = T.launch_thread('threadIdx.x', {self.x})")
        self._line(1, "L = T.decl_buffer((2,), 'int32', scope='local')")
        self._line(1, "L[0] = tx")
        self._line(1, "L[1] = A[tx]")
        # Where it starts everything is written, so that races are what remains to be found.
        self._line(1, f"for j in range({_CELLS}):")
        self._line(2, f"if j % {self.threads} == {self._thread()}:")
        self._line(3, "S[j] = A[j]")
        self._line(1, "T.tvm_storage_sync('shared')")
        self._body(1, self.rng.randint(2, 5))
        return "\n".join(["from tvm.script import tir as T", "", *self.lines]) + "\n"

    def _thread(self) -> str:
        outer = "" if self.virtual == 1 else f"vt * {self.x * self.y} + "
        return f"{outer}tx" if self.y == 1 else f"{outer}ty * {self.x} + tx"

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _body(self, depth: int, number: int, *, branch: bool = False) -> None:
        for _ in range(number):
            kind = self.rng.choice(("shared", "shared", "sync", "sync", "global", "local", "loop", "if", "again"))
            if kind == "sync" and self.loops and self.rng.random() < 0.5:
                # A barrier in some iterations: what stands between two may be of several.
                self._line(depth, f"if {self.loops[-1]} {self.rng.choice(('% 2 == 1', '% 3 == 2', '< 1', '== 2'))}:")
                self._line(depth + 1, "T.tvm_storage_sync('shared')")
                continue
            if kind == "again" and depth == 1:
                # One index, whatever it is called; fewer iterations than the axis has threads are a guard.
                length = self.rng.randint(0, self.x)
                self._line(depth, f"for t2 in T.thread_binding({length}, thread='threadIdx.x'):")
                self._line(depth + 1, f"S[{self._index().replace('tx', 't2')}] = {self._value()}")
            elif kind == "sync":
                self._line(depth, "T.tvm_storage_sync('shared')")
            elif kind == "loop" and len(self.loops) < 2 and not branch:
                self.loops.append(f"k{len(self.loops)}")
                self._line(depth, f"for {self.loops[-1]} in range({self.rng.choice((1, 2, 3, 4))}):")
                self._body(depth + 1, self.rng.randint(1, 3))
                self.loops.pop()
            elif kind == "if":
                conditions = [f"tx < {self.x - 1}", "bx == 0", "tx == 0", "A[0] < 3"]
                conditions += [f"{k} {how}" for k in self.loops for how in ("% 2 == 1", "% 3 == 2", "< 1", "== 2")]
                self._line(depth, f"if {self.rng.choice(conditions)}:")
                self._body(depth + 1, 1, branch=True)
                if self.rng.random() < 0.3:
                    self._line(depth, "else:")
                    self._body(depth + 1, 1, branch=True)
            elif kind == "local":
                self._line(depth, f"L[{self.rng.choice((0, 1))}] = {self._value()}")
            elif kind == "global":
                self._line(depth, f"B[bx, {self._index()}] = {self._value()}")
            else:
                self._line(depth, f"S[{self._index()}] = {self._value()}")

    def _index(self) -> str:
        t, n = self._thread(), self.threads
        own = [t, t, t, f"{n - 1} - ({t})", f"({t}) * 2 % {_CELLS}", f"({t}) + {n}"]
        others = [f"({t} + 1) % {n}", "tx", "0", f"({t}) // 2", "3 - tx", f"{_CELLS - 1} - ({t})"]
        if self.loops:
            k = self.loops[-1]
            own += [f"({t} + {k}) % {n}", f"{k} % 2 * {n} + ({t})", f"{k} % 2 * {n} + ({t} + {k} // 2) % {n}"]
        return self.rng.choice(own if self.rng.random() < 0.75 else others)

    def _value(self) -> str:
        parts = ["tx", "A[tx]", "L[0]", "L[1]", f"S[{self._index()}]", f"S[{self._index()}]", "1", "bx"]
        parts += self.loops
        return f"{self.rng.choice(parts)} {self.rng.choice('+-')} {self.rng.choice(parts)}"


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one kernel: its text, the kernel, it as parallel loops, its input, and what `B` holds after a run:
    after any, if it is accepted.
    """

    seed: int
    outcome: str
    text: str
    func: PrimFunc
    loops: PrimFunc | None
    a: np.ndarray
    b: np.ndarray

    @property
    def accepted(self) -> bool:
        """Whether it has no race, as far as the tool says."""
        return self.outcome == "accepted"


def judge(seed: int) -> Judged:
    """What became of one kernel. Raises AssertionError where the tool is wrong."""
    rng = random.Random(seed)
    return judge_text(KernelMaker(rng).text(), rng, seed)


def judge_text(text: str, rng: random.Random, seed: int = 0) -> Judged:
    """What became of a kernel whose parameters are those of the random ones. Raises as `judge`."""
    func = lp.loads(text)
    form = sequential(func, marked=True)
    walker = Walker(func, (2, _CELLS))
    a = np.array([rng.randint(0, 9) for _ in range(_CELLS)])
    runs = [walker.run(a, rng) for _ in range(ORDERS)]
    first, raced, met = runs[0].b, any(r.raced for r in runs), any(r.met for r in runs)

    def judged(outcome: str) -> Judged:
        loops = form.func if isinstance(form, Sequential) else None
        return Judged(seed, outcome, text, func, loops, a, first)

    if isinstance(form, NoSequence):
        return judged(f"refused: {form.reason}")
    statuses = {v.status for v in prove_race_free(Facts.of(form.func))}
    if form.apart is not None:
        statuses |= {v.status for v in prove_race_free(Facts.of(form.apart))}
    if statuses <= {Status.PROVED}:
        ours = run(form.func, [a.astype(np.int32), np.zeros((2, _CELLS), np.int32)])["B"]
        assert not raced, f"a race in what was accepted\n{text}"
        assert all((r.b == first).all() for r in runs), f"results differ\n{text}"
        assert (ours == first).all(), f"another result than in threads\n{text}\n{ours}\n{first}"
        return judged("accepted")
    if Status.REFUTED not in statuses:
        return judged("unknown")
    for _ in range(0 if raced else MORE):
        # Whether it is seen may hang on the contents: a branch may depend on them.
        again = walker.run(np.array([rng.randint(0, 9) for _ in range(_CELLS)]), rng)
        raced, met = raced or again.raced, met or again.met
    return judged("race, seen" if raced else "race, seen in stores of one value" if met else "race, not seen")


def judge_some(seeds: Sequence[int], opencl: int) -> Counter[str]:
    """What became of some kernels; those that are accepted are run in C, and every `opencl`-th in OpenCL (0: none)."""
    from tests.oracle.thread_targets import in_c, in_opencl

    judged = [judge(seed) for seed in seeds]
    accepted = [each for each in judged if each.accepted]
    for each in judged:
        if each.outcome in ("race, not seen", "unknown"):
            print(f"seed {each.seed}: {each.outcome}", file=sys.stderr, flush=True)
    counts = Counter(each.outcome for each in judged)
    counts["  run in C"] += in_c(accepted)
    if opencl:
        counts["  run in OpenCL"] += in_opencl([each for each in accepted if each.seed % opencl == 0])
    return counts


def main() -> int:
    """Judge kernels, in several processes, and say how far it is."""
    parser = argparse.ArgumentParser(description="Judge random kernels.")
    parser.add_argument("--kernels", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--opencl", type=int, default=20, metavar="N", help="run every N-th kernel in OpenCL; 0: none")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.kernels)
    chunks = [seeds[first : first + CHUNK] for first in range(0, len(seeds), CHUNK)]
    counts: Counter[str] = Counter()
    began, done = time.monotonic(), 0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for chunk, found in zip(chunks, pool.map(judge_some, chunks, repeat(options.opencl)), strict=True):
            counts += found
            done += len(chunk)
            print(f"{done} of {len(seeds)} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    for what, number in counts.most_common():
        print(f"{number:6} {what}")
    races = sum(number for what, number in counts.items() if what.startswith("race"))
    if races:
        share = 100 * (races - counts["race, not seen"]) / races
        print(f"{share:.1f} % of the races that are refuted were seen in a run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
