"""Operators of studies from ONNX models."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.studies.judge import judge
from layoutproof.studies.study_file import Study, parse_study

GRID = """
[[grid]]
operators = {operators}
policies = ["undef-once", "producer-writes"]
values = ["0", "1"]
"""
MEAN = """[[operator]]
name = "my-mean"
file = "model.onnx"
call = "mean"
buffers = { X = "rn", Y = "r" }
blocks = { total = "rn", mean = "r" }
outputs = ["Y"]
"""
RELU = """[[operator]]
name = "my-relu"
file = "model.onnx"
call = "relu"
buffers = { X = "rn", Y = "rn" }
blocks = { relu = "rn" }
outputs = ["Y"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model that takes the mean of each row and has a ReLU."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["y"], axes=[1], keepdims=0),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    shapes = {"x": (2, 14), "y": (2,), "z": (2, 14)}
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = helper.make_graph(nodes, "two", [infos["x"]], [infos["y"], infos["z"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path


def study(folder: Path, operators: str, *names: str) -> Study:
    """A study of operators of the model and of the library."""
    listed = "[" + ", ".join(f'"{name}"' for name in names) + "]"
    return parse_study("schema = 1\n" + operators + GRID.format(operators=listed), "study.toml", folder)


@one_in(7)
def test_calls_of_a_model_are_operators(folder: Path) -> None:
    """They have the verdicts of the library's operators that compute the same."""
    chosen = study(folder, MEAN + RELU, "my-mean", "mean", "my-relu", "relu")
    found: dict[str, list[tuple[str, str, str]]] = {}
    for cell in chosen.cells():
        judged = judge(chosen.operators[cell.operator], cell)
        found.setdefault(cell.operator, []).append((cell.policy, cell.value, judged.status))
    assert found["my-mean"] == found["mean"] and found["my-relu"] == found["relu"]
    assert {status for _, _, status in found["my-mean"]} == {"proved", "refuted"}


def test_what_is_wrong_is_named(folder: Path) -> None:
    """A call that is not there, none where there are several, and one of a file that is a program are refused."""
    with pytest.raises(LayoutproofError, match=r"model.onnx has no call max\n.*`call` is one of mean, relu"):
        study(folder, MEAN.replace('"mean"\n', '"max"\n', 1), "my-mean")
    with pytest.raises(LayoutproofError, match=r"model.onnx has 2 calls\n.*`call` is one of mean, relu"):
        study(folder, MEAN.replace('call = "mean"\n', ""), "my-mean")
    with pytest.raises(LayoutproofError, match=r"operator\[0\].call: a program has no calls"):
        study(folder, MEAN.replace("model.onnx", "model.py"), "my-mean")
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(LayoutproofError, match=r"model\.onnx"):
        study(folder, MEAN, "my-mean")
