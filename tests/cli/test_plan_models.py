"""`layoutproof plan` on ONNX models: sizes of open extents, and outputs compared with onnxruntime's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.cli.calling import Caller
from tests.graph.nets import filled
from tests.shares import one_in

from layoutproof.cli.plan import plan_graph as planning
from layoutproof.cli.plan.plan_result import TOLERANCE, compared
from layoutproof.graph.graph_files import load_graph
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.optional_packages import PeerRun

CONV = ("--layout", "conv=NCHW4c")


def batched(path: str, extent: str | int = "batch") -> str:
    """A model of a relu whose first extent is open, as a file."""
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [extent, 8, 4, 4]) for name in ("x", "y"))
    filters = numpy_helper.from_array(filled(8, 8, 1, 1), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    proto = helper.make_model(
        helper.make_graph(nodes, "net", [given], [made], [filters]), opset_imports=[helper.make_opsetid("", 13)]
    )
    onnx.save(proto, path)
    return path


def test_sizes_of_open_extents(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--size` gives an extent that a model leaves open; without it, that one is named."""
    monkeypatch.chdir(tmp_path)
    model = batched("net.onnx")
    assert "error[LP643]" in call("plan", model).err
    found = call("plan", model, "--size", "batch=2", *CONV, "-o", "net.py")
    assert found.code == 0, found.err
    assert load_graph("net.py").inputs[0].shape == (2, 8, 4, 4)
    assert "error[LP643]" in call("plan", model, "--size", "batch=2", "--size", "n=3").err


@pytest.mark.parametrize(
    "texts", [["batch"], ["batch="], ["=3"], ["batch=-1"], ["batch=1.5"], ["batch=99999999999"], ["a=1", "a=2"]]
)
def test_what_is_no_size(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    """What is not NAME=NUMBER is refused, and so is a name given twice."""
    monkeypatch.chdir(tmp_path)
    found = call("plan", batched("net.onnx"), *(word for text in texts for word in ("--size", text)))
    assert (found.code, found.out) == (2, "") and "error[LP503]: --size " in found.err


def test_onnxruntime_has_to_be_installed(call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing onnxruntime is reported before planning; and the option is for `--run`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model = batched("net.onnx", 1)
    found = call("plan", model, *CONV, "--run", "--onnxruntime")
    assert (found.code, found.out) == (2, "") and "error[LP644]" in found.err and "pip install onnxruntime" in found.err
    assert "--onnxruntime needs --run" in call("plan", model, "--onnxruntime").err


@one_in(10)
@pytest.mark.parametrize(("wrong", "code"), [(0.0, 0), (TOLERANCE * 2, 1)])
def test_a_comparison_with_another_tool(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float, code: int
) -> None:
    """Outputs may be as far from another tool's as sums in another order are, and no farther: then results differ."""
    monkeypatch.chdir(tmp_path)
    model = batched("net.onnx", 1)

    def peer(path: Path, arrays: list[NDArray[np.float32]]) -> PeerRun:
        made = run_graph(planning.read_graph(path, {}), {"x": arrays[0]})[0].copy()
        place = np.unravel_index(np.argmax(np.abs(made)), made.shape)
        made[place] *= np.float32(1 - wrong)
        return PeerRun("0.0", (made,), 0.001)

    monkeypatch.setattr("layoutproof.cli.plan.plan_graph.require_onnxruntime", lambda: None)
    monkeypatch.setattr(planning, "run_with_onnxruntime", peer)
    found = call("plan", model, *CONV, "--run", "--onnxruntime", "--format", "json")
    told = found.json()["run"]["onnxruntime"]
    assert found.code == code and told["close"] is (code == 0) and told["version"] == "0.0"
    assert (float.fromhex(told["difference"]) > 0) is (wrong != 0.0)


@pytest.mark.parametrize(
    ("mine", "theirs", "wanted"),
    [
        ([1.0, 4.0], [1.0, 4.0], 0.0),
        ([1.0, 3.0], [1.0, 4.0], 0.25),
        ([np.nan, np.inf], [np.nan, np.inf], 0.0),
        ([np.nan], [1.0], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([0.0], [0.0], 0.0),
        ([1e-9], [0.0], np.inf),
        ([], [], 0.0),
        ([1.0, 2.0], [1.0], np.inf),
    ],
)
def test_how_far_outputs_are_apart(mine: list[float], theirs: list[float], wanted: float) -> None:
    """The largest difference counts, as a part of the largest element; what is no number is like its like, and nothing
    else.
    """
    found = compared([np.array(mine, np.float32)], PeerRun("0.0", (np.array(theirs, np.float32),), 0.0))
    assert found.difference == wanted and found.close is (wanted == 0.0)
