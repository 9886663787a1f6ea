"""The operators and the layouts that they are given, from the text to what a kernel returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.tree import ROOT

from layoutproof.cli.kernel_trial import compare_kernel
from layoutproof.cli.random_inputs import logical_shapes, random_arrays
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import IntImm
from layoutproof.ir.intrinsics import Undef, undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import load
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import loads_in, stores_in, walk
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule

DATA = ROOT / "tests" / "data"
NAMES = tuple(sorted(path.stem for path in (DATA / "operators").glob("*.py")))
CONCRETE = tuple(name for name in NAMES if not name.startswith("sym_"))
Array = NDArray[Any]
Reference = Callable[..., Array]


@cache
def operator(name: str) -> PrimFunc:
    """The function of an operator's file."""
    return load(DATA / "operators" / f"{name}.py")


def _windows(a: Array, stride: int = 1) -> Array:
    """Every 3 by 3 window over the last two axes."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(-2, -1))[..., ::stride, ::stride, :, :])


def _conv2d_nchw(a: Array, w: Array) -> Array:
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.asarray(np.einsum("nchwyx,fcyx->nfhw", _windows(padded), w, optimize=True))


def _max_pool2d(a: Array) -> Array:
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    return np.asarray(_windows(padded, 2).max(axis=(-1, -2)))


def _softmax(a: Array) -> Array:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


REFERENCES: Mapping[str, Reference] = {
    "bias_add": lambda a, b: a + b,
    "conv2d_nchw": _conv2d_nchw,
    "conv2d_nhwc": lambda a, w: _conv2d_nchw(a.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)).transpose(0, 2, 3, 1),
    "dense": lambda a, b: a @ b.T,
    "double_int": lambda a: a * 2,
    "exp1d": np.exp,
    "global_sum": lambda a: a.sum(axis=(1, 2)),
    "matmul": lambda a, b: a @ b,
    "max_axis1": lambda a: a.max(axis=1),
    "max_pool2d": _max_pool2d,
    "min_axis1": lambda a: a.min(axis=1),
    "pad": lambda a: np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1))),
    "relu_nhwc": lambda a: np.maximum(a, 0),
    "reshape": lambda a: a.reshape(240),
    "row_sum": lambda a: a.sum(axis=1),
    "softmax": _softmax,
    "sym_relu": lambda a: np.maximum(a, 0),
    "sym_row_sum": lambda a: a.sum(axis=1),
    "transpose": lambda a: a.transpose(0, 2, 1),
}


@dataclass(frozen=True)
class Variant:
    """A layout for one buffer of an operator: the map as text, and the pad value as the schedule takes it."""

    buffer: str
    index_map: str
    pad_value: Any

    def __str__(self) -> str:
        pad = "undef" if isinstance(self.pad_value, Undef) else self.pad_value
        return f"{self.buffer}-{'shifted' if '+' in self.index_map else 'blocked'}-{pad}"


def variants(func: PrimFunc) -> Iterator[Variant]:
    """Every parameter in two layouts: blocked, its padding at the end holding a value, and with padding that holds
    none.

    The second is a shift, with padding in front; of a symbolic extent, which may be the largest integer, it is another
    blocking.
    """
    for buffer in func.buffers:
        names = [f"i{axis}" for axis in range(len(buffer.shape))]
        last, rest = names[-1], names[:-1]
        tile = next(
            t for t in (4, 5, 7) if not (isinstance(buffer.shape[-1], IntImm) and buffer.shape[-1].value % t == 0)
        )
        arguments = ", ".join(names)
        blocked = [f"{last}//{tile}", *rest, f"{last}%{tile}"]
        yield Variant(buffer.name, f"lambda {arguments}: [{', '.join(blocked)}]", 7 if buffer.dtype.is_integer else 0.5)
        concrete = all(isinstance(extent, IntImm) for extent in buffer.shape)
        shifted = [f"{last} + 3", *rest] if concrete else [f"{last}%3", *rest, f"{last}//3"]
        is_output = buffer is func.buffers[-1]
        yield Variant(
            buffer.name, f"lambda {arguments}: [{', '.join(shifted)}]", None if is_output else undef(buffer.dtype)
        )


def block_of(func: PrimFunc, buffer: Buffer) -> str:
    """The name of a block that touches a buffer."""
    for node in walk(func.body):
        if isinstance(node, Block) and node.iter_vars:
            touched = {load.buffer.data for load in loads_in(node)} | {store.buffer.data for store in stores_in(node)}
            if buffer.data in touched:
                return node.name
    raise AssertionError(f"no block touches {buffer.name}")


def scheduled(func: PrimFunc, variant: Variant | None) -> Schedule:
    """The schedule with the variant applied, if any."""
    schedule = Schedule(func)
    if variant is not None:
        buffer = next(b for b in func.buffers if b.name == variant.buffer)
        schedule.transform_layout(block_of(func, buffer), variant.buffer, variant.index_map, variant.pad_value)
    return schedule


def assert_equals_interpreter(schedule: Schedule, kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """The kernel agrees with the interpreter on the original program, and padding meets its contract."""
    trial = compare_kernel(schedule.original, schedule.func, kernel, sizes)
    assert trial.outputs
    for output in trial.outputs:
        assert output.differing == 0, output
        assert output.compared > 0 or output.cells == 0
    for padding in trial.padding:
        assert padding.wrong == 0, padding


def assert_equals_numpy(func: PrimFunc, kernel: Kernel, reference: Reference, sizes: Mapping[str, int]) -> None:
    """The kernel, called as a person calls it, agrees with numpy in double precision within float32's rounding;
    integers exactly.
    """
    arrays = random_arrays(func, logical_shapes(func, {}, sizes), seed=3)
    *inputs, _ = (arrays[buffer.name] for buffer in func.buffers)
    found = kernel(*inputs)
    assert isinstance(found, np.ndarray)
    expected = reference(*(a.astype(np.float64) if a.dtype.kind == "f" else a for a in inputs))
    assert found.shape == expected.shape
    if found.dtype.kind == "f":
        np.testing.assert_allclose(
            found, expected, rtol=2e-5, atol=1e-4 * max(1.0, float(np.abs(expected).max(initial=0)) / 100)
        )
    else:
        np.testing.assert_array_equal(found, expected)
