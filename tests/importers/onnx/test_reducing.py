"""Operators that take axes away, against ONNX's reference: axes as an attribute and as an operand, none, all, some."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.nets import filled
from tests.importers.onnx.nodes import Held, agree, calls, graph_from, ints, one
from tests.shares import one_in

from layoutproof.graph.model.graph_run import run_graph
from layoutproof.ir.diagnostic import LayoutproofError

KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


@one_in(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_reductions(kind: str, seed: int) -> None:
    """Axes counted from either end, that stay with extent 1 or go."""
    random = np.random.default_rng(seed)
    x = np.abs(filled(2, 3, 4, seed=seed)) + 0.5 if kind == "LogSum" else filled(2, 3, 4, seed=seed)
    axes = [int(axis) - 3 * int(random.integers(2)) for axis in random.permutation(3)[: random.integers(1, 4)]]
    keep = int(random.integers(2))
    agree(one(f"Reduce{kind}", [x, ints(*axes)], keepdims=keep, opset=18), x)
    agree(one(f"Reduce{kind}", [x], keepdims=keep, axes=axes, opset=11), x)
    agree(one(f"Reduce{kind}", [x], keepdims=keep, opset=18), x)


@pytest.mark.parametrize("kind", KINDS)
def test_no_axes(kind: str) -> None:
    """An empty list of axes is all of them, or none where the node says so."""
    x = np.abs(filled(2, 3))
    agree(one(f"Reduce{kind}", [x, ints()], opset=18), x)
    graph = graph_from(one(f"Reduce{kind}", [x, ints()], opset=18, noop_with_empty_axes=1))
    assert graph.by_name()[graph.outputs[0]].shape == x.shape


@pytest.mark.parametrize("kind", ["Max", "Min", "Sum", "Prod", "SumSquare", "L1"])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_reductions_of_other_types(kind: str, dtype: str) -> None:
    """Integers and doubles."""
    x = (filled(3, 4) * 3).astype(dtype)
    agree(one(f"Reduce{kind}", [x, ints(1)], opset=18), x)


@pytest.mark.parametrize(
    ("kind", "values"), [("Max", [-np.inf, -np.inf]), ("Min", [np.inf, np.inf]), ("Max", [-np.inf, 1])]
)
def test_extremes_of_infinities(kind: str, values: list[float]) -> None:
    """The largest of nothing but minus infinity is minus infinity."""
    x = np.array([values], dtype=np.float32)
    agree(one(f"Reduce{kind}", [x, ints(1)], opset=18), x)


def test_reductions_of_truth_values() -> None:
    """The largest truth value says whether any is true, the smallest whether all are."""
    x = filled(4, 2) > 0
    for kind, name in (("Max", "any"), ("Min", "all")):
        assert calls(agree(one(f"Reduce{kind}", [x, ints(1)], opset=20), x)) == [name]


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("backwards", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_sums_up_to_each_element(exclusive: int, backwards: int, axis: int) -> None:
    """With the element and without it, from either end."""
    x = filled(3, 4)
    agree(one("CumSum", [x, Held(np.array(axis))], exclusive=exclusive, reverse=backwards), x)


def test_norms() -> None:
    """Elements divided by the norm of those on their axis; nothing but zeros stays as it is. The reference forgets
    signs in the norm 1.
    """
    x = filled(3, 4)
    x[1] = 0
    with np.errstate(invalid="ignore"):
        agree(one("LpNormalization", [x], axis=-1, p=2), x)
        agree(one("LpNormalization", [np.abs(x)], axis=0, p=1), np.abs(x))
    made = run_graph(graph_from(one("LpNormalization", [x], axis=0, p=1)), {"x0": x})[0]
    np.testing.assert_allclose(made, x / np.abs(x).sum(axis=0), rtol=1e-6)


def test_axes_that_are_none() -> None:
    """Axes that are not there, that come twice, or that only the run knows, are an error that names the node."""
    x = filled(2, 3)
    for axes, message in (
        (ints(2), "no axis 2"),
        (ints(0, -2), "not different axes"),
        (np.array([0]), "not known before"),
    ):
        with pytest.raises(LayoutproofError, match=f"ReduceSum that makes y0: .*{message}"):
            graph_from(one("ReduceSum", [x, axes]))
    with pytest.raises(LayoutproofError, match="ReduceMean that makes y0: mean: it is not for elements of type int32"):
        graph_from(one("ReduceMean", [x.astype(np.int32), ints(0)]))
