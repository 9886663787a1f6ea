"""Steps of GPU schedules with one wrong thing in the kernel that they make: none may be proved that threads, run one by
one in random orders, do not confirm.

    python -m tests.attack.kernel_steps --mutants 2000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import layoutproof as lp
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm, Var, const
from layoutproof.ir.interp.run import run
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.stmt import Allocate, Block, BufferStore, Evaluate, For, Stmt
from layoutproof.ir.threads.axes import thread_loops
from layoutproof.ir.threads.kernel_text import is_sync
from layoutproof.ir.visit import children, free_variables, replace_buffers, stores_in, substitute, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.kernels.gpu import lowered, tiled_product
from layoutproof.lowering.lower.barriers import ThreadSync
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import ProofOptions, Step, check_step
from layoutproof.lowering.schedule.schedule import Schedule
from tests.attack.mutants import at_one_place, mutant
from tests.oracle.kernel_walk import Broken, NotWalked, run_kernel

ORDERS = 5

HEAD = """from tvm.script import tir as T

@T.prim_func
def kernel({}):
    T.func_attr({{"tirx.noalias": True}})
"""
MATMUL = HEAD.format('A: T.Buffer((8, 4), "int32"), B: T.Buffer((4, 8), "int32"), C: T.Buffer((8, 8), "int32")') + (
    """    for i, j, k in T.grid(8, 8, 4):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
)
TURN = HEAD.format('A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")') + (
    """    for i, j in T.grid(8, 8):
        with T.block("turn"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vj, vi] * 3
"""
)
WINDOW = HEAD.format('A: T.Buffer((10,), "int32"), C: T.Buffer((8,), "int32")') + (
    """    B = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("twice"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 2
    for i in range(8):
        with T.block("three"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2]
"""
)


def product() -> Schedule:
    """Tiles of 4 x 4 for 2 x 2 threads, two buffers in turns."""
    s = tiled_product(Schedule(lp.loads(MATMUL)), threads=2, each=2, depth=2)
    s.inject_double_buffer("A_shared", "A_shared", "k_0")
    s.split("product", "k_1", (None, 2))
    return lowered(s, {"j_0": ("A_shared",), "k_0": ("B_shared",), "j_1": ("C_local",)})


def turned() -> Schedule:
    """Tiles of 4 x 4 for 2 x 4 threads, with longer rows."""
    s = Schedule(lp.loads(TURN))
    s.cache_read("turn", "A", "shared")
    s.split("turn", "i", (None, 2, 2))
    s.split("turn", "j", (None, 4))
    s.reorder("turn", ("i_0", "j_0", "i_1", "i_2", "j_1"))
    s.bind("turn", "i_0", "blockIdx.y")
    s.bind("turn", "j_0", "blockIdx.x")
    s.compute_at("A_shared", "turn", "j_0")
    s.split("A_shared", "ax0", (2, 2))
    s.bind("turn", "i_2", "threadIdx.y", ("ax0_1",))
    s.bind("turn", "j_1", "threadIdx.x", ("ax1",))
    s = lowered(s, {"j_0": ("A_shared",)})
    s.storage_align("A_shared", 0, 4, 1)
    return s


def window() -> Schedule:
    """A tile with a border that two of four threads fetch in a second round."""
    s = Schedule(lp.loads(WINDOW))
    s.set_scope("B", "shared")
    s.split("three", "i", (None, 4))
    s.compute_at("twice", "three", "i_0")
    s.split("twice", "ax0", (None, 4))
    s.bind("three", "i_0", "blockIdx.x")
    s.bind("three", "i_1", "threadIdx.x", ("ax0_1",))
    return lowered(s, {"i_0": ("B",)})


@cache
def steps() -> tuple[Step, ...]:
    """The steps whose kernel does all the work."""
    every = [step for make in (product, turned, window) for step in make().steps]
    return tuple(step for step in every if _is_kernel(step.rewrite.new))


def _is_kernel(func: PrimFunc) -> bool:
    roots = list(_roots(func.body))
    inside = sum(1 for root in roots for _ in stores_in(root))
    return len(roots) == 1 and inside == sum(1 for _ in stores_in(func.body))


def _roots(stmt: Stmt) -> Iterator[Stmt]:
    if isinstance(stmt, For) and stmt.thread is not None:
        yield stmt
        return
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _roots(child)


class _First(random.Random):
    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0


FIRST = _First()


# ---- what is done to a kernel

Change = Callable[[Rewrite, random.Random], Rewrite | None]


def _at(fits: Callable[[Any], bool], change: Callable[[Any, random.Random, PrimFunc], Node | None]) -> Change:
    def changed(rewrite: Rewrite, rng: random.Random) -> Rewrite | None:
        func = rewrite.new
        body = at_one_place(func.body, fits, lambda node: change(node, rng, func), rng)
        return None if body is None else replace(rewrite, new=func.with_body(body))

    return changed


def _buffers(func: PrimFunc) -> list[Any]:
    found = [n.buffer for n in walk(func.body) if isinstance(n, Allocate)]
    return found + [b for n in walk(func.body) if isinstance(n, Block) for b in n.alloc_buffers]


def _another_buffer(change: Callable[[Any, random.Random], Any]) -> Change:
    def changed(rewrite: Rewrite, rng: random.Random) -> Rewrite | None:
        buffers = _buffers(rewrite.new)
        if not buffers:
            return None
        old = rng.choice(buffers)
        body = replace_buffers(rewrite.new.body, {old: change(old, rng)})
        return replace(rewrite, new=rewrite.new.with_body(_allocating(body, old, change(old, rng))))

    return changed


def _allocating(body: Stmt, old: Any, new: Any) -> Stmt:
    def allocated(node: Allocate | Block) -> Node:
        if isinstance(node, Allocate):
            return replace(node, buffer=new)
        return replace(node, alloc_buffers=tuple(new if b == old else b for b in node.alloc_buffers))

    def fits(node: Any) -> bool:
        return (isinstance(node, Allocate) and node.buffer == old) or (
            isinstance(node, Block) and old in node.alloc_buffers
        )

    found = at_one_place(body, fits, allocated, FIRST)
    return body if found is None else found


def _other_scope(buffer: Any, rng: random.Random) -> Any:
    return replace(buffer, scope=next(s for s in ("shared", "local") if s != buffer.scope))


def _smaller(buffer: Any, rng: random.Random) -> Any:
    axis = max(range(buffer.rank), key=lambda k: buffer.shape[k].value)
    shape = list(buffer.shape)
    shape[axis] = const(max(1, shape[axis].value - 1), shape[axis].dtype)
    return replace(buffer, shape=tuple(shape))


def _another_axis(loop: For, rng: random.Random, func: PrimFunc) -> Node | None:
    others = sorted({str(n.thread) for n in thread_loops(func.body)} - {str(loop.thread)})
    return replace(loop, thread=rng.choice(others)) if others else None


def _another_extent(loop: For, rng: random.Random, func: PrimFunc) -> Node | None:
    if not isinstance(loop.extent, IntImm):
        return None
    return replace(loop, extent=const(max(1, loop.extent.value + rng.choice((-1, 1))), loop.extent.dtype))


def _another_thread(store: BufferLoad | BufferStore, rng: random.Random, func: PrimFunc) -> Node | None:
    threads = {n.var for n in thread_loops(func.body)}
    used = [k for k, index in enumerate(store.indices) if set(free_variables(index)) & threads]
    if not used:
        return None
    axis = rng.choice(used)
    here = rng.choice(sorted(set(free_variables(store.indices[axis])) & threads, key=lambda v: v.name))
    index = _shifted(store.indices[axis], here)
    return replace(store, indices=(*store.indices[:axis], index, *store.indices[axis + 1 :]))


def _shifted(index: Any, thread: Var) -> Any:
    return substitute(index, {thread: thread + 1})


def _anything(rewrite: Rewrite, rng: random.Random) -> Rewrite | None:
    found = mutant(rewrite, rng)
    return None if found is None else found[1]


CHANGES: Mapping[str, Change] = {
    "barrier dropped": _at(is_sync, lambda node, rng, func: Evaluate(const(0))),
    "scope": _another_buffer(_other_scope),
    "tile too small": _another_buffer(_smaller),
    "another axis": _at(lambda n: isinstance(n, For) and n.thread is not None, _another_axis),
    "another extent": _at(lambda n: isinstance(n, For), _another_extent),
    "another thread": _at(lambda n: isinstance(n, BufferLoad | BufferStore), _another_thread),
    "anything": _anything,
}


def mutants(seed: int) -> Iterator[tuple[str, Step, Rewrite]]:
    """Well-formed changed rewrites without end, with what was changed."""
    rng = random.Random(seed)
    while True:
        step = rng.choice(steps())
        what = rng.choice(tuple(CHANGES))
        try:
            changed = CHANGES[what](step.rewrite, rng)
        except (TypeError, ValueError, LayoutproofError):
            continue
        if changed is not None and changed.new != step.rewrite.new and not check_wellformed(changed.new):
            yield what, step, changed


def is_right(old: PrimFunc, new: PrimFunc, seed: int) -> bool:
    """Whether threads, in random orders, compute what the old kernel's meaning is, without a race or another fault."""
    rng = random.Random(seed)
    has_blocks = any(isinstance(node, Block) and not node.is_root for node in walk(new.body))
    with_barriers = ThreadSync().propose(new).new if has_blocks else new
    for _ in range(ORDERS):
        inputs = {
            b.name: np.array(
                [rng.choice((rng.randint(-9, 9), rng.randint(-9999, 9999))) for _ in range(_size(b))], np.int32
            ).reshape(_shape(b))
            for b in old.buffers
            if b.name != "C"
        }
        expected = run(old, dict(inputs))["C"]
        try:
            found = run_kernel(with_barriers, inputs, rng)["C"]
        except (Broken, ZeroDivisionError):
            return False
        if not (found == expected).all():
            return False
    return True


def _shape(buffer: Any) -> Sequence[int]:
    return [extent.value for extent in buffer.shape]


def _size(buffer: Any) -> int:
    return int(np.prod(_shape(buffer)))


def judge(step: Step, rewrite: Rewrite, seed: int) -> str:
    """What became of one mutant. Raises AssertionError where a wrong one is proved.

    Two threads that store one value by different iterations are a race to the tool, and none to the walk.
    """
    try:
        right = is_right(rewrite.old, rewrite.new, seed)
    except NotWalked:
        return "not run"
    word = "right" if right else "wrong"
    try:
        check_step(step.transform, rewrite, ProofOptions(search=False))
    except IllegalTransform as refused:
        return f"{word}, {refused.status.value if refused.status is not None else 'not well-formed'}"
    assert right, f"proved, and wrong:\n{text(rewrite)}"
    return "right, proved"


def text(rewrite: Rewrite) -> str:
    """Both programs."""
    return f"{print_func(rewrite.old)}\n{print_func(rewrite.new)}"


def campaign(number: int, seed: int) -> Counter[str]:
    """The verdicts on so many mutants, and what the wrong ones were."""
    counts: Counter[str] = Counter()
    for k, (what, step, rewrite) in zip(range(number), mutants(seed), strict=False):
        verdict = judge(step, rewrite, seed * 1_000_003 + k)
        counts[verdict] += 1
        if verdict.startswith("wrong"):
            counts[f"wrong: {what}"] += 1
    return counts


def main() -> int:
    """Judge random mutants."""
    parser = argparse.ArgumentParser(description="Judge random mutants of the steps of GPU schedules.")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for verdict, number in campaign(options.mutants, options.seed).most_common():
        print(f"{number:6} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
