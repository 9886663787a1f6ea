"""What correctly rounded math functions cost: a loop over each, beside fast arithmetic, the C library's float
functions, numpy and TVM.

Run `python -m benchmarks.bench_functions`; figures are the least time of several runs, in nanoseconds for each element,
one thread. The column of the C library is the same kernel with calls of its float functions (`expf`), compiled with the
same flags but for that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench_kernels import tvm_of
from layoutproof.ir.functions.definitions import DEFINITIONS
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule

COUNT = 1 << 16
ROWS, COLUMNS = 256, 512
Array = NDArray[np.float32]

_LOOP = """from tvm.script import tir as T

@T.prim_func
def apply(A: T.Buffer(({count},), "float32"), B: T.Buffer(({count},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i in range({count}):
        B[i] = T.{name}(A[i])
"""

_SOFTMAX = """from tvm.script import tir as T

@T.prim_func
def softmax(A: T.Buffer(({rows}, {columns}), "float32"), O: T.Buffer(({rows}, {columns}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i in range({rows}):
        most = T.decl_buffer((1,), "float32")
        total = T.decl_buffer((1,), "float32")
        most[0] = A[i, 0]
        for j in range({columns}):
            most[0] = T.max(most[0], A[i, j])
        total[0] = T.float32(0)
        for j in range({columns}):
            O[i, j] = T.exp(A[i, j] - most[0])
        for j in range({columns}):
            total[0] = total[0] + O[i, j]
        for j in range({columns}):
            O[i, j] = O[i, j] / total[0]
"""

_NUMPY: Mapping[str, Callable[[Array], Array]] = {
    **{
        name: getattr(np, name)
        for name in ("exp", "exp2", "log", "log2", "log10", "tanh", "sinh", "cosh", "sin", "cos", "tan")
    },
    "atan": np.arctan,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "sigmoid": lambda x: np.reciprocal(np.float32(1) + np.exp(-x)),
}


def least(action: Callable[[], object], elements: int) -> float:
    """Nanoseconds for each element, of the fastest of 15 runs."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) / elements * 1e9


def kernels(text: str) -> tuple[Kernel, Kernel, Kernel]:
    """The kernel, the fast one, and the one with the C library's float functions."""
    schedule = Schedule(loads(text))
    exact, fast = schedule.build("c", check=False), schedule.build("c", check=False, fast=True)
    with mock.patch.dict("os.environ", {"CC": f"{os.environ.get('CC', 'cc')} -DLP_FAST"}):
        return exact, fast, schedule.build("c", check=False)


def measured(text: str, x: Array, numpy: Callable[[Array], Array] | None) -> list[float | None]:
    """Each column for one program of one argument and one result."""
    out = np.empty_like(x)
    actions: list[Callable[[], object] | None] = [partial(kernel.raw, x, out) for kernel in kernels(text)]
    actions += [partial(numpy, x) if numpy is not None else None, tvm_of(Schedule(loads(text)), {"A": x})]
    return [least(action, x.size) if action is not None else None for action in actions]


def softmax(x: Array) -> Array:
    """In numpy."""
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def rows() -> list[tuple[str, list[float | None]]]:
    """What was measured, and the columns."""
    x = np.random.default_rng(1).uniform(0.1, 8, COUNT).astype(np.float32)
    found = [(name, measured(_LOOP.format(count=COUNT, name=name), x, _NUMPY.get(name))) for name in DEFINITIONS]
    table = np.random.default_rng(2).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    return [*found, ("softmax", measured(_SOFTMAX.format(rows=ROWS, columns=COLUMNS), table, softmax))]


def table() -> str:
    """The figures as Markdown."""
    columns = ("ns an element", "correctly rounded", "fast", "C library, float", "numpy", "TVM", "to the C library")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, figures in rows():
        exact, library = figures[0], figures[2]
        assert exact is not None and library is not None
        texts = ["" if figure is None else f"{figure:.2f}" for figure in figures]
        lines.append(f"| {name} | {' | '.join(texts)} | {exact / library:.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
