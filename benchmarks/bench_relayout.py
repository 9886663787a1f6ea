"""How fast layout changes are: proved kernels beside a parallel memcpy of the same bytes, torch and numpy.

Run `python -m benchmarks.bench_relayout`. Everything is measured in one process, with two threads, in turns; figures
are medians of the wall clock. `torch` is `permute().contiguous()` and `numpy` is `ascontiguousarray(transpose())`, as
people write them; in the columns called `into` the result has its memory already, as our kernel's has. torch is
optional: where it is not installed its columns are dashes.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.lowering.kernels.relayout import relayout
from layoutproof.lowering.runtime.compiler import compile_library, find_compiler

THREADS = 2
ROUNDS = 21
COPY = """#include <string.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
void copy(char *to, const char *from, long bytes) {
#if defined(_OPENMP)
#pragma omp parallel
    {
        long k = omp_get_thread_num(), threads = omp_get_num_threads();
        long first = bytes / threads * k, last = k == threads - 1 ? bytes : bytes / threads * (k + 1);
        memcpy(to + first, from + first, (size_t)(last - first));
    }
#else
    memcpy(to, from, (size_t)bytes);
#endif
}
"""

Array = npt.NDArray[np.float32]
Action = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """A map and a shape; and the same by hand: zeros behind each axis, a reshape, and an order of its axes."""

    index_map: str
    shape: tuple[int, ...]
    parts: tuple[int, ...]
    order: tuple[int, ...]
    pads: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The map and the shape."""
        return f"{self.index_map} {list(self.shape)}"


def channels_in_fours(n: int, h: int, w: int, c: int) -> Case:
    """NHWC to NCHW4c."""
    fours = -(-c // 4)
    pads = (0, 0, 0, 4 * fours - c) if c % 4 else None
    return Case("NHWC->NCHW4c", (n, h, w, c), (n, h, w, fours, 4), (0, 3, 1, 2, 4), pads)


def channels_split(n: int, c: int, h: int, w: int) -> Case:
    """NCHW to NCHW4c."""
    fours = -(-c // 4)
    pads = (0, 4 * fours - c, 0, 0) if c % 4 else None
    return Case("NCHW->NCHW4c", (n, c, h, w), (n, fours, 4, h, w), (0, 1, 3, 4, 2), pads)


def channels_last(n: int, c: int, h: int, w: int) -> Case:
    """NCHW to NHWC."""
    return Case("NCHW->NHWC", (n, c, h, w), (n, c, h, w), (0, 2, 3, 1))


def weights(o: int, i: int, h: int, w: int) -> Case:
    """OIHW to OIHW4i16o."""
    return Case("OIHW->OIHW4i16o", (o, i, h, w), (o // 16, 16, i // 4, 4, h, w), (0, 2, 4, 5, 3, 1))


def tiles(n: int, m: int) -> Case:
    """Rows to tiles of 16 by 16."""
    text = "lambda i, j: [i//16, j//16, i%16, j%16]"
    return Case(text, (n, m), (n // 16, 16, m // 16, 16), (0, 2, 1, 3))


CASES: Mapping[str, Sequence[Case]] = {
    "64 MB": (
        channels_in_fours(21, 56, 56, 256),
        channels_in_fours(64, 64, 64, 64),
        channels_last(21, 256, 56, 56),
        channels_last(84, 64, 56, 56),
        weights(1024, 1824, 3, 3),
        weights(4096, 4096, 1, 1),
        tiles(4096, 4096),
    ),
    "256 MB": (
        channels_in_fours(84, 56, 56, 256),
        channels_last(84, 256, 56, 56),
        weights(2048, 3648, 3, 3),
        tiles(8192, 8192),
    ),
    "prime extents": (
        channels_in_fours(7, 61, 67, 131),
        channels_last(7, 61, 67, 131),
        channels_in_fours(37, 61, 67, 131),
        channels_last(37, 61, 67, 131),
    ),
    "padded": (channels_split(1, 70, 56, 56), channels_split(80, 70, 56, 56)),
}


def copier(folder: Path) -> Callable[[Array, Array], object]:
    """A parallel memcpy, from C."""
    source, library = folder / "copy.c", folder / "copy.so"
    source.write_text(COPY, encoding="ascii")
    compiler = find_compiler()
    compile_library(compiler, source, library, compiler.flags(openmp=True))
    function = ctypes.CDLL(str(library)).copy
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    return lambda to, given: function(to.ctypes.data, given.ctypes.data, to.nbytes)


def entries(case: Case, copy: Callable[[Array, Array], object]) -> dict[str, Action]:
    """The ways to make one layout change, each checked against numpy's."""
    given = np.random.default_rng(0).random(case.shape, dtype=np.float32)
    padded = given if case.pads is None else np.pad(given, [(0, pad) for pad in case.pads])
    wanted = np.ascontiguousarray(padded.reshape(case.parts).transpose(case.order))
    kernel = relayout(case.index_map, case.shape, check=False)
    found, other, plain = np.zeros_like(wanted), np.zeros_like(wanted), np.ones_like(wanted)
    kernel.raw(A=given, B=found)
    if not np.array_equal(found, wanted):
        raise RuntimeError(f"the kernel of {case.name} is wrong")
    result: dict[str, Action] = {
        "proved": lambda: kernel.raw(A=given, B=found),
        "memcpy": lambda: copy(plain, wanted),
        "numpy": lambda: np.ascontiguousarray(_padded(case, given).reshape(case.parts).transpose(case.order)),
        "numpy, into": lambda: np.copyto(other, padded.reshape(case.parts).transpose(case.order)),
    }
    if importlib.util.find_spec("torch") is not None:
        result |= torch_entries(case, given, padded, other)
    return result


def _padded(case: Case, given: Array) -> Array:
    return given if case.pads is None else np.pad(given, [(0, pad) for pad in case.pads])


def torch_entries(case: Case, given: Array, padded: Array, other: Array) -> dict[str, Action]:
    """The same with torch."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(THREADS)
    tensor, whole, into = torch.from_numpy(given), torch.from_numpy(padded), torch.from_numpy(other)
    pads = [] if case.pads is None else [n for pad in reversed(case.pads) for n in (0, pad)]

    def grown() -> Any:
        return torch.nn.functional.pad(tensor, pads) if pads else tensor

    return {
        "torch": lambda: grown().view(case.parts).permute(case.order).contiguous(),
        "torch, into": lambda: into.copy_(whole.view(case.parts).permute(case.order)),
    }


def medians(actions: Mapping[str, Action]) -> dict[str, float]:
    """The middle time of each in seconds, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(ROUNDS + 1):
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            if number > 0:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


OTHERS = ("memcpy", "torch", "torch, into", "numpy", "numpy, into")


def row(case: Case, copy: Callable[[Array, Array], object]) -> str:
    """A line of the table: megabytes, our time, and how many times longer each other way takes."""
    found = medians(entries(case, copy))
    size = 4 * int(np.prod(case.parts)) / (1 << 20)
    cells = [f"{found[name] / found['proved']:.2f}" if name in found else "-" for name in OTHERS]
    return f"| `{case.name}` | {size:.0f} | {1e3 * found['proved']:.2f} | {' | '.join(cells)} |"


def report(kinds: Sequence[str] = ()) -> str:
    """All tables, measured in this process."""
    parts = [
        "Two threads. The last columns say how many times longer the others take than our kernel: memcpy is the "
        "limit, at 1 we are as fast. `into` is into memory that is there already."
    ]
    heads = ["|".join(["", f" {name} ", *(f" {h} " for h in ("MB", "ms", *OTHERS)), ""]) for name in CASES]
    with tempfile.TemporaryDirectory() as folder:
        copy = copier(Path(folder))
        for head, (kind, cases) in zip(heads, CASES.items(), strict=True):
            if not kinds or kind in kinds:
                parts.append("\n".join([head, "|" + "---|" * (len(OTHERS) + 3), *(row(case, copy) for case in cases)]))
    return "\n\n".join(parts) + "\n"


def table(kinds: Sequence[str] = ()) -> str:
    """The tables, measured in a process of their own: thread pools read how large they may be when they are loaded."""
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **{name: str(THREADS) for name in pools}}
    command = [sys.executable, "-m", "benchmarks.bench_relayout", "--here", *kinds]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    wanted = [argument for argument in sys.argv[1:] if argument != "--here"]
    print(report(wanted) if "--here" in sys.argv else table(wanted), end="")
