"""Layouts: reading and deciding, conflicts, and a swizzle of a million points: `python -m benchmarks.bench_layouts`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from statistics import median
from time import process_time

from layoutproof.ir.notations.map_text import parse_index_map, parse_shape
from layoutproof.verify.layouts.comparison import prove_same
from layoutproof.verify.layouts.conflict_free import Pattern, find_conflict_free
from layoutproof.verify.layouts.conflicts import Memory, count_conflicts
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.layout_text import read_layout

PAIRS = [
    ("cute, strides", "(8,8):(8,1)", "shape=(8,8), strides=(8,1)", None),
    ("oneDNN, MLIR", "aBcd8b", "inner_dims_pos = [1] inner_tiles = [8]", "8,64,56,56"),
    ("einops, XLA", "a b c d -> a c d b", "{1,3,2,0}", "8,64,56,56"),
    ("swizzles", "Sw<3,3,3> o 0 o (8,64):(64,1)", "lambda i, j: [i*64 + (j ^ i*8)]", "8,64"),
]


def measure(what: Callable[[], object], times: int = 30) -> float:
    """The median of the processor times that a call takes, in ms, after one that is not counted."""
    what()
    taken = []
    for _ in range(times):
        start = process_time()
        what()
        taken.append(process_time() - start)
    return median(taken) * 1e3


def read_and_decide(first: str, second: str, shape: str | None) -> None:
    """Both texts, to a proof that they are the same function."""
    given = None if shape is None else parse_shape(shape)
    one = read_layout(first, given)
    verdict, _ = prove_same(one, read_layout(second, one.shape))
    assert verdict.status == "proved", (first, second)


def main() -> int:
    """Print one line for each measurement."""
    for name, first, second, shape in PAIRS:
        print(f"{name:28} {measure(partial(read_and_decide, first, second, shape)):8.2f} ms")
    million = read_layout("Sw<3,4,3> o 0 o (1024,1024):(1024,1)")
    print(f"{'check a swizzle of 2^20':28} {measure(lambda: check_map(million.index_map, million.extents())):8.2f} ms")
    offset = parse_index_map("lambda k, t: [t%8*64 + k*8]")
    memory = Memory(element=2, vector=8)
    print(f"{'conflicts over bits':28} {measure(lambda: count_conflicts(offset, (8, 8), memory)):8.2f} ms")
    padded = parse_index_map("lambda k, t: [t*33 + k]")
    print(f"{'conflicts of 32x32 accesses':28} {measure(lambda: count_conflicts(padded, (32, 32), Memory())):8.2f} ms")
    pattern = Pattern(offset, (8, 8))
    print(f"{'smallest swizzle':28} {measure(lambda: find_conflict_free([pattern], memory, 64)):8.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
