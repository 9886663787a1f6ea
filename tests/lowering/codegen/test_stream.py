"""Tiles in C: which nests are written past the cache, what is written for them, and that any nest computes the same
with the mark.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.shares import one_in, some

from layoutproof.ir.script.reader import loads
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule

BIG = 1 << 20


def built(text: str, loop: str, *, marked: bool = True, build: bool = True) -> tuple[str, Kernel | None]:
    """The C of a program's function whose loop is marked, and its kernel."""
    schedule = Schedule(loads(text))
    if marked:
        schedule.stream("copy", loop)
    kernel = schedule.build("c", check=False)
    return kernel.source.text[kernel.source.text.index("int main") :], kernel if build else None


def transposing(n: int, m: int, dtype: str = "float32") -> str:
    """A transpose of n by m elements, tiled by 32."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "{dtype}"), B: T.Buffer(({n}, {m}), "{dtype}")):
    T.func_attr({{"tirx.noalias": True}})
    for io in T.parallel({n // 32}):
        for jo in range({m // 32}):
            for i, j in T.grid(32, 32):
                with T.block("copy"):
                    vi = T.axis.spatial({n}, io * 32 + i)
                    vj = T.axis.spatial({m}, jo * 32 + j)
                    B[vi, vj] = A[vj, vi]
"""


@one_in(4)
@pytest.mark.parametrize(("dtype", "bits"), [("int8", 8), ("float16", 16), ("float32", 32), ("float64", 64)])
def test_a_transpose_is_a_tile(dtype: str, bits: int) -> None:
    """A tile is turned in blocks, what comes next is brought near, runs leave past the cache, and each thread ends its
    stores.
    """
    n, m = 2048, (4 << 20) // 2048 * 8 // bits
    text, kernel = built(transposing(n, m, dtype), "i")
    for word in (f"lp_transpose_{bits}(", "lp_prefetch(", "lp_stream(", "LP_PARALLEL\n", "lp_stream_end();"):
        assert word in text
    a = np.random.default_rng(0).integers(0, 100, (m, n)).astype(dtype)
    b = np.zeros((n, m), dtype=dtype)
    assert kernel is not None
    kernel.raw(A=a, B=b)
    assert np.array_equal(b, a.T)


def test_what_is_small_stays_in_the_cache() -> None:
    """A buffer below the size from which the cache is left is written as usual, from the same tile."""
    text, _ = built(transposing(64, 96), "i", build=False)
    assert "lp_copy(" in text and "lp_stream" not in text


PLAIN = """
@T.prim_func
def main(A: T.Buffer((4096, 512), "float32"), B: T.Buffer((4096, 512), "float32")):
    {noalias}
    for i in range(4096):
        for j in range(512):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                {store}
"""
NOALIAS = 'T.func_attr({"tirx.noalias": True})'
NO_TILES = {
    "the parameters may overlap": ("pass", "B[vi, vj] = A[vi, vj]"),
    "what is written is read": (NOALIAS, "B[vi, vj] = B[vi, vj] + A[vi, vj]"),
    "a quotient of the loop in the index": (NOALIAS, "B[vi, vj // 2 * 2 + vj % 2 ^ 1] = A[vi, vj]"),
    "no loop steps by one": (NOALIAS, "B[vi, 511 - vj] = A[vi, vj]"),
}


@one_in(4)
@pytest.mark.parametrize("case", NO_TILES)
def test_nests_that_are_no_tiles(case: str) -> None:
    """A mark on another nest changes nothing in what is written."""
    noalias, store = NO_TILES[case]
    text = PLAIN.format(noalias=noalias, store=store) if noalias != "pass" else PLAIN.format(noalias="", store=store)
    assert built(text, "j", build=False)[0] == built(text, "j", marked=False, build=False)[0]


def test_a_run_that_stays_is_copied_straight() -> None:
    """What lies in one piece on both sides needs no tile of its own."""
    text, kernel = built(PLAIN.format(noalias=NOALIAS, store="B[vi, vj] = A[vi, vj]"), "j")
    assert "lp_stream(" in text and "tile[" not in text
    a, b = np.random.default_rng(0).random((4096, 512), dtype=np.float32), np.zeros((4096, 512), dtype=np.float32)
    assert kernel is not None
    kernel.raw(A=a, B=b)
    assert np.array_equal(a, b)


def random_nest(rng: Random) -> str:
    """A nest of up to four loops that writes by random steps, often of two iterations one cell, and reads by others."""
    count = rng.randint(1, 4)
    sizes = [rng.choice([1, 2, 3, 4, 8, 16, 17]) for _ in range(count)]
    write, read = (_steps(rng, sizes) for _ in range(2))
    index, origin = (" + ".join(f"i{k}*{step}" for k, step in enumerate(steps)) for steps in (write, read))
    value = f"A[{origin}]"
    if rng.random() < 0.4:
        value = f"T.if_then_else(i{rng.randrange(count)} < {rng.choice([1, 2, 5])}, {value}, T.float32(-1))"
    elif rng.random() < 0.2:
        value = f"{value} + T.float32(1)"
    loops = "".join(f"{'    ' * (k + 1)}for i{k} in range({size}):\n" for k, size in enumerate(sizes))
    inner = "    " * (count + 1)
    return f"""
@T.prim_func
def main(A: T.Buffer(({BIG},), "float32"), B: T.Buffer(({BIG},), "float32")):
    T.func_attr({{"tirx.noalias": True}})
{loops}{inner}B[{index}] = {value}
"""


def _steps(rng: Random, sizes: list[int]) -> list[int]:
    """Dense in a random order, or with gaps, or random."""
    order, step = list(range(len(sizes))), 1
    rng.shuffle(order)
    steps = [0] * len(sizes)
    for k in order:
        steps[k] = step
        step *= sizes[k] + rng.choice([0, 0, 0, 1, 5])
    if rng.random() < 0.2:
        steps[rng.randrange(len(steps))] = rng.choice([0, 1, 2, 3])
    return steps


@pytest.mark.parametrize("count", some((8, 24), 1))
def test_random_nests_with_the_mark(count: int) -> None:
    """Whatever is written for a marked nest, memory is the same after it, cells that are written twice and cells that
    are not included.
    """
    tiles = 0
    for seed in range(count):
        text = random_nest(Random(seed))
        found, body = list[Any](), ""
        for marked in (False, True):
            schedule = Schedule(loads(text))
            if marked:
                schedule.stream("root", 0)
            kernel = schedule.build("c", check=False)
            a, b = np.random.default_rng(seed).random(BIG, dtype=np.float32), np.full(BIG, 7, dtype=np.float32)
            kernel.raw(A=a, B=b)
            found.append(b)
            body = kernel.source.text[kernel.source.text.index("int main") :]
        tiles += "lp_stream(" in body
        assert np.array_equal(found[0], found[1]), text
    assert tiles >= count // 4


INDIRECT = f"""
@T.prim_func
def main(A: T.Buffer(({BIG},), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer(({BIG},), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i in range(64):
        for j, k in T.grid(16, 16):
            B[i*256 + j*16 + k] = A[I[i] % 1000 + k*16 + j]
"""


@one_in(4)
def test_nothing_is_read_ahead_through_memory() -> None:
    """An index that is read from memory is not read for an iteration that may not be; nor is anything divided by what
    may be zero.
    """
    for origin, ahead in (
        ("I[i] % 1000 + k*16 + j", False),
        ("i*256 + k*16 + j", True),
        ("1024 // (64 - i) + k*16 + j", False),
    ):
        schedule = Schedule(loads(INDIRECT.replace("I[i] % 1000 + k*16 + j", origin)))
        schedule.stream("root", "j")
        text = schedule.build("c", check=False).source.text
        body = text[text.index("int main") :]
        assert "lp_transpose_32(" in body and ("lp_prefetch(" in body) is ahead


def test_a_condition_is_asked_for_a_whole_piece() -> None:
    """Four lanes of which the last ones may be padding are moved at once where none is, and one by one elsewhere."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((4096, 131), "float32"), B: T.Buffer(({33 * 4096 * 4},), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for p in range(64):
        for c, q, k in T.grid(33, 64, 4):
            B[c*16384 + p*256 + q*4 + k] = T.if_then_else(c*4 + k < 131, A[p*64 + q, c*4 + k], T.float32(0))
"""
    schedule = Schedule(loads(text))
    schedule.stream("root", "c")
    kernel = schedule.build("c", check=False)
    assert "memcpy(&tile[" in kernel.source.text and "} else {" in kernel.source.text
    a, b = np.random.default_rng(0).random((4096, 131), dtype=np.float32), np.full(33 * 4096 * 4, 7, dtype=np.float32)
    kernel.raw(A=a, B=b)
    wanted = np.pad(a, ((0, 0), (0, 1))).reshape(4096, 33, 4).transpose(1, 0, 2)
    assert np.array_equal(b.reshape(33, 4096, 4), wanted)
