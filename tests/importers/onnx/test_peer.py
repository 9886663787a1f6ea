"""onnxruntime beside a graph: what is given to it, and what becomes of its failures. A stand-in takes its place, so it
is not needed.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layoutproof.importers.onnx.optional_packages import require_onnxruntime, run_with_onnxruntime
from layoutproof.ir.diagnostic import LayoutproofError


class Fail(Exception):
    """What onnxruntime raises for a model that it does not take."""


class Options:
    """Options of a session."""


class Named:
    """An input of a session."""

    def __init__(self, name: str) -> None:
        self.name = name


class Session:
    """A session of a model that doubles its inputs; one called `bad.onnx` is none."""

    runs = 0

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        if path == "bad.onnx":
            raise Fail("no such model")
        assert options.intra_op_num_threads == options.inter_op_num_threads == 1 and providers == [
            "CPUExecutionProvider"
        ]

    def get_inputs(self) -> list[Named]:
        """Two of them."""
        return [Named("a/0"), Named("b")]

    def run(self, outputs: None, given: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Twice what is given, by names."""
        type(self).runs += 1
        assert list(given) == ["a/0", "b"]
        return [array * 2 for array in given.values()]


@pytest.fixture
def onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package."""
    package, capi, state = (
        ModuleType(name) for name in ("onnxruntime", "onnxruntime.capi", "onnxruntime.capi.onnxruntime_pybind11_state")
    )
    found: dict[ModuleType, dict[str, object]] = {
        package: {"SessionOptions": Options, "InferenceSession": Session, "__version__": "1.2", "capi": capi},
        capi: {"onnxruntime_pybind11_state": state},
        state: {"Fail": Fail},
    }
    for module, attributes in found.items():
        for name, value in attributes.items():
            monkeypatch.setattr(module, name, value, raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("onnxruntime")
def test_a_model_is_run_on_arrays_in_order() -> None:
    """Arrays are given to the inputs in order; outputs come back with the shortest of some runs."""
    require_onnxruntime()
    Session.runs = 0
    found = run_with_onnxruntime("net.onnx", [np.ones(3), np.arange(2)], runs=4)
    assert [array.tolist() for array in found.outputs] == [[2.0, 2.0, 2.0], [0, 2]]
    assert (found.version, Session.runs) == ("1.2", 5) and 0 <= found.seconds < float("inf")


@pytest.mark.usefixtures("onnxruntime")
@pytest.mark.parametrize(
    ("path", "count", "told"),
    [("bad.onnx", 2, "does not run the model: no such model"), ("net.onnx", 1, "asks for 2 inputs, the graph has 1")],
)
def test_a_model_that_it_does_not_run(path: str, count: int, told: str) -> None:
    """What onnxruntime does not take is told in its words, with the file."""
    with pytest.raises(LayoutproofError, match=f"LP644.*{path}: onnxruntime {told}"):
        run_with_onnxruntime(path, [np.ones(1)] * count)


def test_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where onnxruntime is not installed, what to install is said."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for call in (require_onnxruntime, lambda: run_with_onnxruntime("net.onnx", [])):
        with pytest.raises(LayoutproofError, match="pip install onnxruntime"):
            call()
