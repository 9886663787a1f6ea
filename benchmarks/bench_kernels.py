"""How fast proved, scheduled kernels are: row sums with and without the branch, matmul and conv2d beside numpy, torch
and TVM.

Run `python -m benchmarks.bench_kernels`. Everything is measured in one process, with two threads, in turns; figures are
medians of the wall clock. TVM gets the text of the lowered program, so it compiles the very same schedule. torch and
tvm are optional: what is not installed is a column of dashes.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.script.printer import print_func
from layoutproof.lowering.kernels.reference import conv2d, matmul, row_sum, row_sum_program
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule

THREADS = 2
CYCLES = 7
CALLS = 5
ROWS = ((1 << 18, 6), (1 << 18, 14), (1 << 20, 14), (1 << 17, 126), (1 << 10, 16382))
PRODUCTS = ((1024, 1024, 1024), (1000, 1000, 1000), (250, 3000, 500))
IMAGES = (
    (1, 64, 58, 58, 64, 3, 3, 0),
    (1, 64, 56, 56, 64, 3, 3, 1),
    (1, 70, 58, 58, 70, 3, 3, 0),
    (1, 128, 30, 30, 128, 3, 3, 0),
    (1, 256, 28, 28, 512, 1, 1, 0),
)

Array = npt.NDArray[np.float32]
Action = Callable[[], object]


@dataclass
class Contest:
    """Several ways to compute one thing, and how often its elements are added or multiplied."""

    name: str
    operations: int
    entries: dict[str, Action] = field(default_factory=dict)

    def medians(self) -> Mapping[str, float]:
        """The middle time of each, in seconds: in turns, a few calls each, before which its threads are woken and its
        caches filled.
        """
        times: dict[str, list[float]] = {name: [] for name in self.entries}
        for _ in range(CYCLES):
            for name, action in self.entries.items():
                action()
                for _ in range(CALLS):
                    start = time.perf_counter()
                    action()
                    times[name].append(time.perf_counter() - start)
        return {name: statistics.median(found) for name, found in times.items()}


def physical(kernel: Kernel, logical: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays that a kernel takes raw: inputs re-laid, their padding zero, and the output."""
    found: dict[str, Array] = {}
    for name, info in kernel.buffers.items():
        if name not in logical:
            found[name] = np.zeros(kernel.physical_shape(name, {}), dtype=np.float32)
        else:
            found[name] = (
                logical[name]
                if info.index_map is None
                else np.ascontiguousarray(info.index_map.map_array(logical[name], fill=0.0))
            )
    return found


def ours(schedule: Schedule, logical: Mapping[str, Array]) -> Action:
    """Our kernel on physical arrays."""
    kernel = schedule.build("c", check=False)
    arrays = physical(kernel, logical)
    return lambda: kernel.raw(**arrays)


def tvm_of(schedule: Schedule, logical: Mapping[str, Array]) -> Action | None:
    """TVM's LLVM back end on the lowered program; None where TVM is not installed."""
    if importlib.util.find_spec("tvm") is None:
        return None
    tvm: Any = importlib.import_module("tvm")
    script: Any = importlib.import_module("tvm.script")
    namespace = {"T": importlib.import_module("tvm.script.tirx")}
    lowered = script.from_source(print_func(schedule.lower()), extra_vars=namespace).with_attr("global_symbol", "main")
    built = tvm.compile(tvm.IRModule({"main": lowered}), target=tvm.target.Target({"kind": "llvm", "mcpu": _cpu(tvm)}))
    kernel = schedule.build("c", check=False)
    arrays = physical(kernel, logical)
    tensors = {name: tvm.runtime.tensor(array) for name, array in arrays.items()}
    run = built["main"]
    run(*tensors.values())
    kernel.raw(**arrays)
    for name, array in arrays.items():
        np.testing.assert_allclose(tensors[name].numpy(), array, rtol=1e-3, atol=1e-3)
    return lambda: run(*tensors.values())


def _cpu(tvm: Any) -> str:
    """This processor, as LLVM calls it."""
    return str(tvm.get_global_func("target.llvm_get_system_cpu")())


def torch_of(make: Callable[[Any], Action]) -> Action | None:
    """torch, which calls oneDNN; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(THREADS)
    return make(torch)


def registers() -> int:
    """How many vector registers this processor has."""
    try:
        return 32 if "avx512vl" in Path("/proc/cpuinfo").read_text(encoding="utf-8") else 16
    except OSError:
        return 16


def row_contest(rows: int, columns: int) -> Contest:
    """Sums of rows: without the branch, with it, and with it in the layout that keeps rows together."""
    a = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    contest = Contest(f"{rows} rows of {columns}", rows * columns)
    contest.entries["proved"] = ours(row_sum(rows, columns), {"A": a})
    contest.entries["with its branch"] = ours(row_sum(rows, columns, branch=True), {"A": a})
    contest.entries["branch, rows together"] = ours(_rows_together(rows, columns), {"A": a})
    contest.entries["numpy"] = lambda: a.sum(axis=1)
    _add(contest, "torch", torch_of(lambda torch: _call(torch.sum, torch.from_numpy(a), 1)))
    return contest


def _rows_together(rows: int, columns: int) -> Schedule:
    """The row sum with rows stored in fours, padded with zero, and the guard against the padding kept."""
    schedule = Schedule(row_sum_program(rows, columns))
    schedule.transform_layout("row_sum", "A", lambda i, j: [i, j // 4, j % 4], pad_value=0.0)
    schedule.sequential_buffer_access("row_sum", "A")
    schedule.parallel("row_sum", "i")
    return schedule


def product_contest(m: int, n: int, k: int) -> Contest:
    """Products of matrices."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n)))
    contest = Contest(f"{m} x {k} x {n}", 2 * m * n * k)
    for name, fused in (("", False), (", fma", True)):
        schedule = matmul(m, n, k, registers=registers(), fused=fused)
        contest.entries[f"proved{name}"] = ours(schedule, {"A": a, "B": b})
        _add(contest, f"TVM{name}", tvm_of(schedule, {"A": a, "B": b}))
    contest.entries["numpy"] = lambda: a @ b
    _add(contest, "torch", torch_of(lambda torch: _call(torch.matmul, torch.from_numpy(a), torch.from_numpy(b))))
    return contest


def image_contest(extents: tuple[int, ...]) -> Contest:
    """Convolutions of images N, C, H, W by K filters of R by S, with a halo."""
    n, c, h, w, k, r, s, halo = extents
    rng = np.random.default_rng(0)
    x, f = (rng.standard_normal(shape, dtype=np.float32) for shape in ((n, c, h, w), (k, c, r, s)))
    around = f" with a halo of {halo}" if halo else ""
    operations = 2 * n * k * c * r * s * (h + 2 * halo - r + 1) * (w + 2 * halo - s + 1)
    contest = Contest(f"{n}x{c}x{h}x{w}, {k} of {r}x{s}{around}", operations)
    for name, fused in (("", False), (", fma", True)):
        schedule = conv2d(n, c, h, w, k, r, s, halo=halo, registers=registers(), fused=fused)
        contest.entries[f"proved{name}"] = ours(schedule, {"X": x, "F": f})
        _add(contest, f"TVM{name}", tvm_of(schedule, {"X": x, "F": f}))
    contest.entries["numpy"] = lambda: _numpy_conv2d(x, f, halo)
    _add(
        contest,
        "torch",
        torch_of(lambda torch: _call(torch.nn.functional.conv2d, *map(torch.from_numpy, (x, f)), None, 1, halo)),
    )
    return contest


def _numpy_conv2d(x: Array, f: Array, halo: int) -> object:
    around = np.pad(x, ((0, 0), (0, 0), (halo, halo), (halo, halo))) if halo else x
    windows = np.lib.stride_tricks.sliding_window_view(around, f.shape[2:], axis=(2, 3))
    return np.tensordot(f, windows, axes=((1, 2, 3), (1, 4, 5)))


def _call(function: Callable[..., object], *arguments: object) -> Action:
    return lambda: function(*arguments)


def _add(contest: Contest, name: str, action: Action | None) -> None:
    if action is not None:
        contest.entries[name] = action


def measured(contest: Contest, others: Mapping[str, str]) -> str:
    """A row of a table: our figure, and how many times longer each of `others` takes than the entry of ours that it
    names.
    """
    medians = contest.medians()
    cells = [f"{contest.operations / medians[name] / 1e9:.1f}" for name in dict.fromkeys(others.values())]
    for other, mine in others.items():
        cells.append(f"{medians[other] / medians[mine]:.2f}" if other in medians else "-")
    return f"| {contest.name} | {' | '.join(cells)} |"


def section(title: str, contests: list[Contest], others: Mapping[str, str]) -> str:
    """A heading and a table."""
    heads = [
        title,
        *(f"{name}, 1e9 operations/s" for name in dict.fromkeys(others.values())),
        *(f"{name}, times" for name in others),
    ]
    return "\n".join(
        [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *(measured(contest, others) for contest in contests)]
    )


def report() -> str:
    """All tables, measured in this process."""
    rows = dict.fromkeys(("with its branch", "branch, rows together", "numpy", "torch"), "proved")
    products = {"TVM": "proved", "TVM, fma": "proved, fma", "numpy": "proved", "torch": "proved"}
    parts = [
        "Two threads. A figure in a column of times is how many times longer that takes than ours; TVM compiles our "
        f"lowered program ({', '.join(_versions())}).",
        section("row sum", [row_contest(*extents) for extents in ROWS], rows),
        section("matmul", [product_contest(*extents) for extents in PRODUCTS], products),
        section("conv2d", [image_contest(extents) for extents in IMAGES], products),
    ]
    return "\n\n".join(parts) + "\n"


def _versions() -> list[str]:
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("numpy", "torch", "apache-tvm"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} not installed")
    return found


def table() -> str:
    """The tables, measured in a process of their own: thread pools read how large they may be when they are loaded."""
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")
    environment = {**os.environ, **{name: str(THREADS) for name in pools}}
    command = [sys.executable, "-m", "benchmarks.bench_kernels", "--here"]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    print(report() if "--here" in sys.argv else table(), end="")
