"""How long running takes: re-laying an array by its map, the reference interpreter, a schedule of conv2d from text to
kernel, the kernel.

Run `python -m benchmarks.bench_running`; figures are medians of the wall clock.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp import count_instances, run
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "operators"
BLOCKED = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
TILES = "lambda kh, kw, i, o: [o//4, i//4, kh, kw, i%4, o%4]"


def median(action: Callable[[], object], rounds: int) -> float:
    """The middle time of several runs, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def scheduled() -> Schedule:
    """conv2d with 70 channels, every buffer blocked by 4 and padded with zero."""
    schedule = Schedule(loads((DATA / "conv2d_nhwc.py").read_text(encoding="utf-8")))
    for block, buffer, text in (
        ("pad_temp", "A", BLOCKED),
        ("pad_temp", "pad_temp", BLOCKED),
        ("conv2d_nhwc", "W", TILES),
    ):
        schedule.transform_layout(block, buffer, text, pad_value=0.0)
    schedule.transform_layout("conv2d_nhwc", "conv2d_nhwc", BLOCKED, pad_value=0.0)
    return schedule


def rows() -> list[tuple[str, str]]:
    """What was measured, and the figure."""
    found = []
    index_map = IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    array = np.zeros((4, 16, 16, 36), dtype=np.float32)
    found.append(
        (f"map_array of {array.size:,} elements", f"{median(lambda: index_map.map_array(array), 21) * 1e3:.2f} ms")
    )
    function = loads((DATA / "matmul.py").read_text(encoding="utf-8"))
    arrays = {b.name: np.ones([int(str(e.value)) for e in b.shape], dtype=np.float32) for b in function.buffers}  # type: ignore[attr-defined]  # constant extents
    seconds = median(lambda: run(function, arrays), 5)
    found.append(("interpreter, matmul update", f"{seconds / count_instances(function, arrays) * 1e6:.2f} us"))
    found.append(("conv2d, four transforms checked", f"{median(scheduled, 5) * 1e3:.0f} ms"))
    schedule = scheduled()
    found.append(
        (
            "conv2d, lowering checked",
            f"{median(lambda: scheduled().lower(), 3) * 1e3 - median(scheduled, 3) * 1e3:.0f} ms",
        )
    )
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", {"LAYOUTPROOF_CACHE": folder}):
        start = time.perf_counter()
        kernel = schedule.build("c", check=False)
        found.append(("conv2d, C generated and compiled, cold", f"{(time.perf_counter() - start) * 1e3:.0f} ms"))
    physical = {name: np.zeros(kernel.physical_shape(name, {}), dtype=np.float32) for name in kernel.buffers}
    found.append(("conv2d, kernel on physical arrays", f"{median(lambda: kernel.raw(**physical), 7) * 1e3:.0f} ms"))
    return found


def table() -> str:
    """The figures as Markdown."""
    return "\n".join(["| what | median |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in rows())]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
