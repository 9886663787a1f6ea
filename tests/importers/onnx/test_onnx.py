"""Models become graphs: one node for each operator against numpy, what is not translated by name, and networks of the
ONNX project.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tests.graph.nets import filled
from tests.shares import one_in

from layoutproof.graph import codes
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of, read_model
from layoutproof.importers.onnx.translate import identifier
from layoutproof.ir.diagnostic import LayoutproofError

Array = NDArray[Any]
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def model(
    operator: str, inputs: Sequence[Array], arrays: Sequence[Array] = (), opset: int = 13, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node: `inputs` are given when it runs, `arrays` stand in it."""
    names = [f"x{k}" for k in range(len(inputs))] + [f"w{k}" for k in range(len(arrays))]
    node = helper.make_node(operator, names, ["y"], **attributes)
    given = [helper.make_tensor_value_info(f"x{k}", TensorProto.FLOAT, a.shape) for k, a in enumerate(inputs)]
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(a, f"w{k}") for k, a in enumerate(arrays)]
    return helper.make_model(
        helper.make_graph([node], "one", given, [made], held), opset_imports=[helper.make_opsetid("", opset)]
    )


def made(proto: onnx.ModelProto, inputs: Sequence[Array]) -> Array:
    """What the graph of a model makes."""
    graph = graph_of(model_of(proto))
    return run_graph(graph, {value.name: a for value, a in zip(graph.inputs, inputs, strict=True)})[0]


X = filled(1, 4, 5, 5)
M = filled(2, 6)
ROUND: dict[str, tuple[str, list[Array], list[Array], dict[str, Any], Callable[[], Array]]] = {
    "Conv with bias": (
        "Conv",
        [X],
        [filled(3, 4, 1, 1), filled(3)],
        {"kernel_shape": [1, 1]},
        lambda: np.einsum("ncyx,kc->nkyx", X, filled(3, 4, 1, 1)[:, :, 0, 0]) + filled(3)[:, None, None],
    ),
    "GlobalAveragePool of volumes": (
        "GlobalAveragePool",
        [filled(1, 2, 2, 3, 2)],
        [],
        {},
        lambda: filled(1, 2, 2, 3, 2).mean(axis=(2, 3, 4), keepdims=True),
    ),
    "Dropout": ("Dropout", [M], [np.array(0.5, np.float32), np.array(False)], {}, lambda: M),
    "GlobalAveragePool": ("GlobalAveragePool", [X], [], {}, lambda: X.mean(axis=(2, 3), keepdims=True)),
    "MaxPool": ("MaxPool", [X], [], {"kernel_shape": [5, 5]}, lambda: X.max(axis=(2, 3), keepdims=True)),
    "AveragePool": ("AveragePool", [X], [], {"kernel_shape": [5, 5]}, lambda: X.mean(axis=(2, 3), keepdims=True)),
    "Gemm": ("Gemm", [M], [filled(3, 6), filled(3)], {"transB": 1}, lambda: M @ filled(3, 6).T + filled(3)),
    "MatMul": ("MatMul", [M], [filled(6, 3)], {}, lambda: M @ filled(6, 3)),
    "Concat": ("Concat", [M, filled(2, 3)], [], {"axis": 1}, lambda: np.concatenate([M, filled(2, 3)], axis=1)),
    "Sum of three": (
        "Sum",
        [M, filled(2, 6, seed=1), filled(1, 6)],
        [],
        {},
        lambda: M + filled(2, 6, seed=1) + filled(1, 6),
    ),
    "Reshape": ("Reshape", [M], [np.array([0, -1, 2])], {}, lambda: M.reshape(2, 3, 2)),
    "Flatten": ("Flatten", [X], [], {"axis": 2}, lambda: X.reshape(4, 25)),
    "Transpose": ("Transpose", [M], [], {}, lambda: M.T),
    "Unsqueeze": ("Unsqueeze", [M], [np.array([0, 2])], {}, lambda: M.reshape(1, 2, 1, 6)),
    "Identity": ("Identity", [M], [], {}, lambda: M),
    "Relu": ("Relu", [M], [], {}, lambda: np.maximum(M, 0)),
    "Softmax": ("Softmax", [M], [], {}, lambda: np.exp(M) / np.exp(M).sum(axis=1, keepdims=True)),
}


@pytest.mark.parametrize("name", list(ROUND))
def test_an_operator(name: str) -> None:
    """A node computes what ONNX says of its operator."""
    operator, inputs, arrays, attributes, wanted = ROUND[name]
    np.testing.assert_allclose(
        made(model(operator, inputs, arrays, **attributes), inputs), wanted(), rtol=1e-5, atol=1e-6
    )


def test_softmax_before_version_13() -> None:
    """Up to version 12 softmax takes all axes from its own on as one."""
    x = filled(2, 3, 2)
    wanted = np.exp(x) / np.exp(x).sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(made(model("Softmax", [x], opset=9, axis=1), [x]), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (model("Hardmax", [M]), "no operators of these names.*Hardmax"),
        (model("MaxPool", [X], kernel_shape=[2, 2], pads=[2, 0, 0, 0]), "some windows have nothing of axis 2"),
        (model("Conv", [X], [filled(3, 4, 1, 1)], auto_pad="SAME"), "no auto_pad .SAME."),
        (model("Reshape", [M, filled(2)]), "not known before the model runs"),
        (model("Reshape", [M], [np.array([-1, -1])]), "no shape for"),
        (model("Reshape", [M], [np.array([2, 6, 0])]), "no shape for"),
        (model("Reshape", [M], [np.array([[12]])]), "no list of integers"),
        (model("Reshape", [M], [np.array([5, 2])]), "other elements"),
        (model("Flatten", [M], axis=3), "no axis 3"),
        (model("Unsqueeze", [M], [np.array([0, -4])]), "not different axes"),
        (model("Unsqueeze", [M], [np.array([7])]), "no axis 7"),
        (model("Softmax", [M], axis=2), "no axis 2"),
        (model("Dropout", [M], [np.array(0.5, np.float32), np.array(True)]), "only inference"),
        (model("GlobalAveragePool", [M]), "no image"),
        (model("MaxPool", [X], kernel_shape=[2]), "kernel_shape are two positive numbers"),
        (model("Conv", [X], [filled(3, 4, 1, 1)], strides=[0, 1]), "strides are two positive numbers"),
        (model("Gemm", [M], [filled(6, 3), filled(4, 1, 3)]), "the last operand"),
    ],
)
def test_what_is_not_translated_is_named(proto: onnx.ModelProto, message: str) -> None:
    """A node that cannot be said in the operator library is an error that names it."""
    with pytest.raises(LayoutproofError, match=f"{codes.MODEL_OPERATOR}.*{message}"):
        graph_of(model_of(proto))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    """A missing file, and one with something else in it, are errors that name it."""
    with pytest.raises(LayoutproofError, match=codes.MODEL_FILE):
        read_model(tmp_path / "missing.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(LayoutproofError, match=codes.MODEL_FILE):
        read_model(tmp_path / "text.onnx")


def test_names_become_identifiers() -> None:
    """Names of models may hold anything; those of a graph's text are Python's."""
    assert [identifier(name) for name in ("gpu_0/data_0", "1", "lambda", "x")] == [
        "gpu_0_data_0",
        "v_1",
        "v_lambda",
        "x",
    ]


@one_in(21)
@pytest.mark.parametrize(
    ("network", "calls"),
    [
        ("squeezenet", 91),
        ("resnet50", 177),
        ("shufflenet", 205),
        ("inception_v1", 200),
        ("inception_v2", 372),
        ("densenet121", 669),
        ("vgg19", 63),
        ("zfnet512", 30),
        ("bvlc_alexnet", 30),
    ],
)
def test_networks_of_the_onnx_project(network: str, calls: int) -> None:
    """Each of the nine networks becomes a well-formed graph of calls."""
    graph = graph_of(read_model(LIGHT / f"light_{network}.onnx"))
    assert len(graph.steps) == calls and not graph.rewrites


def test_an_operand_that_is_left_out_is_none() -> None:
    """An empty name stands for an operand that is not given."""
    weight = filled(3, 4, 1, 1)
    node = helper.make_node("Conv", ["x", "w", ""], ["y"])
    given, got = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", X.shape), ("y", None))
    )
    graph = helper.make_graph([node], "one", [given], [got], [numpy_helper.from_array(weight, "w")])
    wanted = np.einsum("ncyx,kc->nkyx", X, weight[:, :, 0, 0])
    np.testing.assert_allclose(made(helper.make_model(graph), [X]), wanted, rtol=1e-5, atol=1e-6)


def test_names_that_become_one_identifier_stay_apart() -> None:
    """Two inputs whose names differ in what no identifier has are two inputs."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 6)) for name in ("a/b", "a_b")]
    got = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    proto = helper.make_model(helper.make_graph([helper.make_node("Sub", ["a/b", "a_b"], ["y"])], "one", given, [got]))
    np.testing.assert_array_equal(made(proto, [M, filled(2, 6, seed=1)]), M - filled(2, 6, seed=1))


@pytest.mark.parametrize(
    "kind", [TensorProto.STRING, TensorProto.COMPLEX64, TensorProto.UNDEFINED, TensorProto.FLOAT8E4M3FN]
)
def test_inputs_of_other_types_are_refused(kind: int) -> None:
    """An input that is no array of numbers is an error that names it."""
    given, got = (helper.make_tensor_value_info(name, kind, (2,)) for name in ("x", "y"))
    proto = helper.make_model(helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "one", [given], [got]))
    with pytest.raises(LayoutproofError, match=f"{codes.MODEL_FILE}.*input x"):
        model_of(proto)


@pytest.mark.parametrize("seed", range(3))
def test_bytes_of_a_model_that_changed_are_a_graph_or_an_error(seed: int, tmp_path: Path) -> None:
    """No bytes make anything else: half files, and files with some other bytes."""
    arrays = [filled(2, 4, 3, 3), filled(2)]
    data, random = (
        model("Conv", [X], arrays, pads=[1, 1, 1, 1], group=1).SerializeToString(),
        np.random.default_rng(seed),
    )
    path = tmp_path / "spoilt.onnx"
    for _ in range(60):
        spoilt = bytearray(data)
        for place in random.integers(len(data), size=2):
            spoilt[place] = random.choice(np.array([0, 1, 127, 255, random.integers(256)]))
        path.write_bytes(bytes(spoilt[: random.choice(np.array([len(data), random.integers(len(data))]))]))
        try:
            assert graph_of(read_model(path)).steps
        except LayoutproofError as refusal:
            assert refusal.diagnostics
