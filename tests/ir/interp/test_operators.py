"""The reference interpreter on real operators, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import count_instances, run, run_slice
from layoutproof.ir.script.reader import load

OPERATORS = ROOT / "tests" / "data" / "operators"
Array = Any


def windows(a: Array, kh: int, kw: int, stride: int = 1) -> Array:
    """Every window over the last two axes."""
    return np.lib.stride_tricks.sliding_window_view(a, (kh, kw), axis=(-2, -1))[..., ::stride, ::stride, :, :]


def conv2d_nchw(a: Array, w: Array) -> Array:
    """Same padding, stride 1."""
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.einsum("nchwyx,fcyx->nfhw", windows(padded, 3, 3), w)


def softmax(a: Array) -> Array:
    """Over the last axis."""
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def max_pool2d(a: Array) -> Array:
    """3 by 3, stride 2, padded by 1."""
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    return windows(padded, 3, 3, 2).max(axis=(-1, -2))


REFERENCES: dict[str, Callable[..., Array]] = {
    "bias_add": lambda a, b: a + b,
    "conv2d_nchw": conv2d_nchw,
    "dense": lambda a, b: a @ b.T,
    "double_int": lambda a: a * 2,
    "exp1d": np.exp,
    "global_sum": lambda a: a.sum(axis=(1, 2)),
    "matmul": lambda a, b: a @ b,
    "max_axis1": lambda a: a.max(axis=1),
    "max_pool2d": max_pool2d,
    "min_axis1": lambda a: a.min(axis=1),
    "pad": lambda a: np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1))),
    "reshape": lambda a: a.reshape(240),
    "row_sum": lambda a: a.sum(axis=1),
    "softmax": softmax,
    "sym_relu": lambda a: np.maximum(a, 0),
    "sym_row_sum": lambda a: a.sum(axis=1),
    "transpose": lambda a: a.transpose(0, 2, 1),
}
SLICED = {"conv2d_nhwc", "relu_nhwc"}
SIZES = {"n": 11, "m": 5}


def inputs(name: str) -> tuple[Any, dict[str, Array]]:
    """The function, and made-up arrays for all its parameters but the last."""
    func = load(OPERATORS / f"{name}.py")
    random = np.random.default_rng(1)
    arrays = {}
    for buffer in func.buffers[:-1]:
        shape = tuple(int(evaluate(e, SIZES)) for e in buffer.shape)
        values = random.standard_normal(shape) if buffer.dtype.is_float else random.integers(-100, 100, shape)
        arrays[buffer.name] = values.astype(str(buffer.dtype))
    return func, arrays


def test_every_operator_is_tried() -> None:
    """Every file of the operators has a reference here."""
    assert {path.stem for path in OPERATORS.glob("*.py")} == set(REFERENCES) | SLICED


@one_in(4)
@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_operator_equals_numpy(name: str) -> None:
    """A full run agrees with numpy in float64 within float32's rounding; integers agree exactly."""
    func, arrays = inputs(name)
    output = func.buffers[-1].name
    sizes = {} if "sym" not in name else SIZES if "row" in name else {"n": SIZES["n"]}
    found = run(func, {**arrays, **sizes})[output]
    wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays.values()]
    expected = REFERENCES[name](*wide)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@one_in(4)
@pytest.mark.parametrize("name", ["conv2d_nchw", "max_pool2d", "dense", "pad", "transpose", "global_sum", "softmax"])
def test_slice_equals_full_run(name: str) -> None:
    """Chosen cells of a slice have, bit for bit, the values that a full run gives them, in far fewer iterations."""
    func, arrays = inputs(name)
    output = func.buffers[-1].name
    full = run(func, arrays)
    shape = full[output].shape
    random = np.random.default_rng(2)
    cells = [tuple(int(random.integers(e)) for e in shape) for _ in range(12)] + [
        (0,) * len(shape),
        tuple(e - 1 for e in shape),
    ]
    part = run_slice(func, arrays, {output: cells})
    assert [full[output][c].tobytes() for c in cells] == [v.tobytes() for v in part[output]]
    if name != "softmax":  # its cells need whole rows
        assert part.iterations < full.iterations


@one_in(9)
def test_slice_of_a_large_convolution() -> None:
    """A thousand cells of a convolution of 276 million instances agree with numpy; a full run is never made."""
    func, arrays = inputs("conv2d_nhwc")
    assert count_instances(func) == 58 * 58 * 70 + 56 * 56 * 70 * 9 * 70 + 56 * 56 * 70
    random = np.random.default_rng(3)
    cells = [(0, *(int(random.integers(e)) for e in (56, 56, 70))) for _ in range(1000)]
    cells += [(0, y, x, f) for y in (0, 55) for x in (0, 55) for f in (0, 69)]
    found = run_slice(func, arrays, {"conv2d_nhwc": cells})["conv2d_nhwc"]
    padded = np.pad(arrays["A"].astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))[0]
    w = arrays["W"].astype(np.float64)
    expected = [(padded[y : y + 3, x : x + 3] * w[..., f]).sum() for _, y, x, f in cells]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_slice_of_an_elementwise_operator() -> None:
    """Cells of a three-million-element relu cost about as many instances as there are cells."""
    func, arrays = inputs("relu_nhwc")
    cells = [(31, 55, 55, 29), (0, 0, 0, 0), (5, 17, 3, 8)]
    part = run_slice(func, arrays, {"compute": cells})
    assert part["compute"].tolist() == [max(float(arrays["A"][c]), 0.0) for c in cells]
    assert part.iterations < 100


def test_slice_refuses_a_cell_that_is_not_there() -> None:
    """A cell outside the buffer, and a buffer that is none, are input errors."""
    func, arrays = inputs("row_sum")
    with pytest.raises(LayoutproofError, match="no cell"):
        run_slice(func, arrays, {"A_red": [(16,)]})
    with pytest.raises(LayoutproofError, match="no parameter B"):
        run_slice(func, arrays, {"B": [(0,)]})
