"""F1: how fast branch-free kernels are beside branching, masked and peeled ones, by the share of padding.

Each variant is a proved program, compiled by the C back end with the flags that it always uses; where its masks become
vector predicates, the compiler made them. Two kernels are timed in turns, call by call, and the ratio of each pair is
kept: what slows the machine for a while slows both. The median is shown with the quartiles, and a ratio is worth no
more than its spread.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.build_c import CKernel
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.studies.cells import Cell
from layoutproof.studies.journal import kept_in
from layoutproof.studies.judge import judge
from layoutproof.studies.operators import Operator, library

BLOCK = 16
COUNTS: tuple[int, ...] = (17, 20, 24, 28, 30, 31)
"""Elements of a row that is stored in 32 cells: from almost half of padding to hardly any."""
PAIRS, WARM = 31, 3
VARIANTS = ("branching", "masked", "peeled")
FILE = "kernel_times.json"


@dataclass(frozen=True, slots=True)
class Timing:
    """The ratio of a variant's time to that of the branch-free kernel: above 1 the branch-free one is faster."""

    operator: str
    dtype: str
    elements: int
    cells: int
    variant: str
    microseconds: float
    median: float
    lower: float
    upper: float

    @property
    def padding(self) -> float:
        """The share of cells that are padding."""
        return 1 - self.elements / self.cells


def large(name: str) -> Operator:
    """An operator of the library with the extents at which it is timed, its rows aside."""
    places = {
        "matmul": {"columns": "32"},
        "convolution": {"filters": "16", "width": "56", "across": "58"},
    }
    operator = library()[name]
    return replace(operator, places={**operator.places, **places.get(name, {})})


ROWS: Mapping[str, int] = {"sum": 2048, "matmul": 128, "convolution": 1}


def measure(settings: Mapping[str, Any]) -> list[Timing]:
    """All timings that a study asks for."""
    found: list[Timing] = []
    for name in settings["operators"]:
        for dtype in settings["types"]:
            for elements in COUNTS:
                found += _timings(name, dtype, elements, int(settings.get("pairs", PAIRS)))
    return found


def _timings(name: str, dtype: str, elements: int, pairs: int) -> Iterator[Timing]:
    """The timings of one operator with rows of so many elements; none where a variant is not proved."""
    programs = variants_of(large(name), dtype, f"{ROWS[name]}x{elements}")
    free = programs.pop("branch-free", None)
    if free is None:
        return
    cells = -(-elements // BLOCK) * BLOCK
    base = caller(free)
    for variant, func in programs.items():
        ratios, seconds = paired(caller(func), base, pairs)
        lower, median, upper = statistics.quantiles(ratios, n=4)
        yield Timing(name, dtype, elements, cells, variant, round(seconds * 1e6, 2), *_rounded(median, lower, upper))


def _rounded(*values: float) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values)


def variants_of(operator: Operator, dtype: str, shape: str) -> dict[str, PrimFunc]:
    """The proved programs to compare, by name: those that are proved, the branch-free one among them."""
    found: dict[str, PrimFunc] = {}
    free = judge(operator, Cell(operator.name, dtype, shape, f"block{BLOCK}", "producer-writes", "0", "finite"))
    if free.status != "proved" or free.end is None or free.question is None:
        return found
    found["branch-free"], found["branching"] = free.end, free.question.guarded
    masked = judge(operator, Cell(operator.name, dtype, shape, f"block{BLOCK}", "masked", "0", "finite"))
    if masked.status == "proved" and masked.end is not None:
        found["masked"] = masked.end
    peeled = _peeled(free.question.guarded, int(shape.partition("x")[2]))
    if peeled is not None:
        found["peeled"] = peeled
    return found


def _peeled(guarded: PrimFunc, elements: int) -> PrimFunc | None:
    """The guarded program with its whole blocks apart, whose guard is always true and goes; None if none is whole."""
    whole = elements // BLOCK
    if whole == 0:
        return None
    schedule = Schedule(guarded)
    loops = schedule.get_loops("update")
    try:
        blocks = loops[-2 if len(loops) < 5 else -3]
        schedule.partition("update", blocks, whole)
        schedule.lower_blocks()
        schedule.simplify()
    except IllegalTransform:
        return None
    return schedule.func


def caller(func: PrimFunc) -> Callable[[], None]:
    """A call of a compiled program on arrays of its own, with random numbers, in padding too: they change no time."""
    kernel = Schedule(func).build("c", check=False)
    assert isinstance(kernel, CKernel)
    generator = np.random.default_rng(7)
    arrays: dict[str, Any] = {}
    for name, info in kernel.buffers.items():
        shape = kernel.physical_shape(name, {})
        arrays[name] = _random(generator, shape, str(info.dtype))
    return lambda: kernel.raw(**arrays)


def _random(generator: np.random.Generator, shape: Sequence[int], dtype: str) -> Any:
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(-4, 5, shape).astype(dtype)


def paired(first: Callable[[], None], second: Callable[[], None], pairs: int) -> tuple[list[float], float]:
    """Ratios of neighbouring calls of two kernels, first to second, and the second's median time in seconds.

    Who goes first changes from pair to pair. A call that takes too little to be timed is repeated.
    """
    for call in (first, second) * WARM:
        call()
    repeats = max(1, int(2e-4 / max(_seconds(second, 1), 1e-7)))
    ratios: list[float] = []
    times: list[float] = []
    for number in range(pairs):
        order = (first, second) if number % 2 == 0 else (second, first)
        taken = {call: _seconds(call, repeats) for call in order}
        ratios.append(taken[first] / taken[second])
        times.append(taken[second] / repeats)
    return ratios, statistics.median(times)


def _seconds(call: Callable[[], None], repeats: int) -> float:
    begun = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - begun


def timings_of(settings: Mapping[str, Any], path: Path) -> list[Timing]:
    """The timings kept in a file, measured if there is none. They are no part of the data: no two runs measure the
    same.
    """

    def made() -> dict[str, Any]:
        found = [asdict(timing) for timing in measure(settings)]
        return {"unit": "time of a variant over that of the branch-free kernel", "timings": found}

    return [Timing(**each) for each in kept_in(path, made)["timings"]]
