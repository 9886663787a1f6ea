"""The reference schedules for GPUs, lowered, with small inputs and what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.lowering.kernels.gpu import (
    conv2d_on_threads,
    lowered,
    matmul_on_threads,
    softmax_on_threads,
    transpose_on_threads,
)
from layoutproof.lowering.layout.transform_layout import ROOT
from layoutproof.lowering.schedule.schedule import Schedule

Array = npt.NDArray[Any]

made = cache(lambda make: make())
"""A schedule, made once; who goes on with it takes a fork."""


@dataclass(frozen=True)
class Run:
    """A schedule before it is lowered, where each of its memories lives, and how it is called."""

    make: Callable[[], Schedule]
    homes: Mapping[str, tuple[str, ...]]
    arguments: Mapping[str, Any]
    expected: Array
    tolerance: float = 0.0
    swizzles: Mapping[str, str] = field(default_factory=dict[str, str])

    def schedule(self) -> Schedule:
        """The kernel with its barriers, and with memory as large as a block of threads needs."""
        schedule = lowered(made(self.make).fork(), self.homes)
        for buffer, swizzle in self.swizzles.items():
            schedule.transform_layout(ROOT, buffer, swizzle)
        return schedule

    def is_right(self, found: object) -> bool:
        """Whether a result is what numpy makes, to a relative tolerance."""
        return bool(np.allclose(np.asarray(found), self.expected, rtol=self.tolerance, atol=0.0))


def _whole(*shape: int) -> Array:
    """Small whole numbers: every order of a sum has the same result."""
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def _matmul() -> Run:
    a, b = _whole(64, 16), _whole(16, 64)
    homes = {"k_0": ("A_shared", "B_shared"), "j_1": ("C_local",)}
    return Run(matmul_on_threads, homes, {"A": a, "B": b, "n": 1, "l": 2, "m": 1}, a @ b)


def _transpose() -> Run:
    a = _whole(64, 32)
    return Run(transpose_on_threads, {"j_0": ("A_shared",)}, {"A": a, "n": 2, "m": 1}, a.T)


def _swizzled() -> Run:
    return replace(_transpose(), swizzles={"A_shared": "lambda i, j: [i, j ^ i]"})


def _conv2d() -> Run:
    a, b = _whole(2, 10, 10, 4), _whole(1, 2, 3, 3, 4, 4)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(1, 2))
    expected = np.einsum("iyxkpq,oipqkr->oyxr", windows, b)
    homes = {"i": ("A_shared", "B_shared"), "x_1": ("C_local",)}
    return Run(conv2d_on_threads, homes, {"A": a, "B": b, "ci": 2, "co": 1, "h": 1, "w": 1}, expected)


def _softmax() -> Run:
    a = _whole(3, 64)
    power = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    expected = power / power.sum(axis=1, keepdims=True)
    homes = {"i": ("largest", "power", "total")}
    return Run(softmax_on_threads, homes, {"A": a, "n": 3, "m": 2}, expected, tolerance=1e-5)


RUNS: Mapping[str, Callable[[], Run]] = {
    "matmul": _matmul,
    "softmax": _softmax,
    "transpose": _transpose,
    "transpose swizzled": _swizzled,
    "conv2d": _conv2d,
}
