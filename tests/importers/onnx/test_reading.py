"""Files of models: open extents and their sizes, arrays in files of their own, types of elements, what is damaged."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.graph.nets import filled
from tests.importers.onnx.nodes import agree, graph_from, info, model, one
from tests.shares import one_in

from layoutproof.graph import codes
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.importers.onnx import load_model
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of, read_model
from layoutproof.ir.diagnostic import LayoutproofError

X = filled(2, 3)


def opened(*extents: int | str | None) -> onnx.ModelProto:
    """A model whose input has some open extents."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(extents))
    return model(
        [helper.make_node("Relu", ["x"], ["y"])],
        [given],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, list(extents))],
    )


@one_in(4)
@pytest.mark.parametrize(
    ("extents", "sizes"),
    [
        (("batch", 3), {"batch": 2}),
        ((None, 3), {"x.0": 2}),
        (("batch", 3), {"x.0": 2}),
        (("n", "n"), {"n": 5, "x.0": 2, "x.1": 3}),
        (("n", "n"), {"n": 3, "x.0": 2}),
        (("past + 1", 3), {"past + 1": 2}),
        ((2, 3), {}),
        ((0, 3), {"x.0": 2}),
    ],
)
def test_open_extents_get_sizes(extents: tuple[int | str | None, ...], sizes: dict[str, int]) -> None:
    """By the name of a dimension, or by the input and its axis, which comes first."""
    agree(opened(*extents), X, sizes=sizes)


@pytest.mark.parametrize(
    ("extents", "sizes", "message", "advice"),
    [
        (("batch", 3), {}, "the input x has an extent that is open: axis 0 is the dimension 'batch'", "--size batch=1"),
        ((None, 3), {}, "the input x has an extent that is open: axis 0 is a dimension without a name", "--size x.0=1"),
        (
            ("batch", 3),
            {"bath": 2, "batch": 2},
            "no extent of an input is open under the name 'bath'",
            "open are x.0, batch",
        ),
        (
            (2, 3),
            {"batch": 2},
            "no extent of an input is open under the name 'batch'",
            "all extents of the model are numbers",
        ),
        (("batch", 3), {"batch": 0}, "the size of batch is 0", ""),
    ],
)
def test_open_extents_without_sizes(extents: tuple[Any, ...], sizes: dict[str, int], message: str, advice: str) -> None:
    """An extent that stays open, and a size for none, are errors that say what to give."""
    with pytest.raises(LayoutproofError) as caught:
        graph_from(opened(*extents), sizes)
    (found,) = caught.value.diagnostics
    assert found.code == codes.MODEL_SHAPE and message in found.message and advice in (found.help or "")


def test_sizes_of_files(tmp_path: Path) -> None:
    """A file is read with sizes as well."""
    onnx.save(opened("batch", 3), tmp_path / "open.onnx")
    assert load_model(tmp_path / "open.onnx", {"batch": 7}).inputs[0].shape == (7, 3)


def test_inputs_without_a_shape() -> None:
    """An input about whose axes nothing is said is an error."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    with pytest.raises(LayoutproofError, match=f"{codes.MODEL_SHAPE}.*input x has no shape"):
        graph_from(model([helper.make_node("Relu", ["x"], ["y"])], [given], [info("y")]))


def test_an_input_that_has_an_array() -> None:
    """What stands in the model for an input is what the input is."""
    proto = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [info("x", X), info("w", X)],
        [info("y")],
        [numpy_helper.from_array(X, "w")],
    )
    graph = graph_from(proto)
    assert [value.name for value in graph.inputs] == ["x"] and [
        constant.value.name for constant in graph.constants
    ] == ["w"]


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint64", "bool"]
)
def test_types_of_elements(dtype: str) -> None:
    """Inputs and arrays of each type that a graph has come through as they are."""
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    x = (filled(2, 3) * 3).astype(kind)
    proto = model(
        [helper.make_node("Concat", ["x", "w"], ["y"], axis=0)],
        [info("x", x)],
        [info("y")],
        [numpy_helper.from_array(x + x, "w")],
    )
    made = run_graph(graph_from(proto), {"x": x})[0]
    assert made.dtype == kind and made.tobytes() == np.concatenate([x, x + x]).tobytes()


def outside(tmp_path: Path, weight: Any) -> onnx.ModelProto:
    """A model in a folder whose array stands in a file of its own, after some other bytes."""
    (tmp_path / "model").mkdir()
    proto = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [info("x", X)],
        [info("y", X)],
        [numpy_helper.from_array(weight, "w")],
    )
    (item,) = proto.graph.initializer
    (tmp_path / "model" / "data.bin").write_bytes(bytes(64) + item.raw_data)
    item.ClearField("raw_data")
    item.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "data.bin"), ("offset", "64"), ("length", str(weight.nbytes))):
        item.external_data.add(key=key, value=value)
    return proto


def told(proto: onnx.ModelProto, **entries: str) -> None:
    """Say other things of the file of an array."""
    for entry in proto.graph.initializer[0].external_data:
        entry.value = entries.get(entry.key, entry.value)


def test_arrays_in_files(tmp_path: Path) -> None:
    """An array in a file beside the model is read from there."""
    proto = outside(tmp_path, X + 1)
    (tmp_path / "model" / "m.onnx").write_bytes(proto.SerializeToString())
    np.testing.assert_array_equal(run_graph(load_model(tmp_path / "model" / "m.onnx"), {"x": X})[0], X + (X + 1))


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "other.bin"}, "there is no file"),
        ({"location": "../secret.bin"}, "does not lie in the model's folder"),
        ({"location": "/etc/hostname"}, "does not lie in the model's folder"),
        ({"location": "link.bin"}, "does not lie in the model's folder"),
        ({"location": ""}, "does not lie in the model's folder"),
        ({"location": "."}, "there is no file"),
        ({"offset": "80"}, "has no 24 bytes for it from byte 80"),
        ({"offset": "-8"}, "has no 24 bytes for it from byte -8"),
        ({"offset": "first"}, "invalid literal"),
        ({"length": "20"}, r"other than the model says \(20\)"),
    ],
)
def test_arrays_in_files_that_are_not_there(entries: dict[str, str], message: str, tmp_path: Path) -> None:
    """No file outside the model's folder is read, and none that is too short."""
    proto = outside(tmp_path, X)
    (tmp_path / "secret.bin").write_bytes(bytes(200))
    (tmp_path / "model" / "link.bin").symlink_to(tmp_path / "secret.bin")
    told(proto, **entries)
    (tmp_path / "model" / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(LayoutproofError, match=f"{codes.MODEL_FILE}.*{message}"):
        read_model(tmp_path / "model" / "m.onnx")


def test_arrays_in_files_of_a_model_in_memory(tmp_path: Path) -> None:
    """A model that was not read from a file has no folder to look into."""
    with pytest.raises(LayoutproofError, match="without its folder"):
        model_of(outside(tmp_path, X))


def sparse(places: Any, shape: tuple[int, ...] = (2, 3)) -> onnx.ModelProto:
    """A model that adds a sparse array."""
    held = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([5, 7], np.float32), "w"), numpy_helper.from_array(places), list(shape)
    )
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], [info("x", X)], [info("y")])
    proto.graph.sparse_initializer.append(held)
    return proto


@pytest.mark.parametrize("places", [np.array([1, 5]), np.array([[0, 1], [1, 2]])])
def test_sparse_arrays(places: Any) -> None:
    """A sparse array is one with zeros, its places given by number or by axes."""
    wanted = np.zeros((2, 3), np.float32)
    wanted[0, 1], wanted[1, 2] = 5, 7
    np.testing.assert_array_equal(run_graph(graph_from(sparse(places)), {"x": X})[0], X + wanted)


@pytest.mark.parametrize(
    ("places", "shape"),
    [
        (np.array([1, 6]), (2, 3)),
        (np.array([[0, 1], [1, 3]]), (2, 3)),
        (np.array([1]), (2, 3)),
        (np.array([1, 5]), (2**20, 2**20)),
    ],
)
def test_sparse_arrays_that_are_none(places: Any, shape: tuple[int, ...]) -> None:
    """Places outside, too few of them, and shapes too large to be written out."""
    with pytest.raises(LayoutproofError, match=f"{codes.MODEL_FILE}.*'w'"):
        graph_from(sparse(places, shape))


def spoilt(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    """A model of two nodes with something changed."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["h"], name="first", axis=1),
        helper.make_node("Add", ["h", "w"], ["y"], name="second"),
    ]
    proto = model(nodes, [info("x", X)], [info("y", X)], [numpy_helper.from_array(X, "w")])
    change(proto)
    return proto


def renamed(names: MutableSequence[str], place: int, name: str) -> None:
    """Put another name into a place."""
    names[place] = name


NO_VALUE, TWO_VALUES, NODE, FILE = codes.NO_VALUE, codes.TWO_VALUES, codes.MODEL_OPERATOR, codes.MODEL_FILE
SPOILT: dict[str, tuple[Callable[[onnx.ModelProto], object], str, str]] = {
    "an operand of nothing": (
        lambda p: renamed(p.graph.node[1].input, 0, "z"),
        NO_VALUE,
        "Add second: nothing in the model makes z",
    ),
    "a circle": (
        lambda p: renamed(p.graph.node[0].input, 0, "y"),
        NO_VALUE,
        "Softmax first: nothing in the model makes y",
    ),
    "an order that cannot run": (
        lambda p: p.graph.node.reverse(),
        NO_VALUE,
        "Add second: nothing in the model makes h",
    ),
    "two results of one name": (
        lambda p: renamed(p.graph.node[1].output, 0, "h"),
        TWO_VALUES,
        "Add second: .*called h",
    ),
    "a result with the name of an array": (
        lambda p: renamed(p.graph.node[1].output, 0, "w"),
        TWO_VALUES,
        "Add second: .*called w",
    ),
    "two inputs of one name": (lambda p: p.graph.input.append(p.graph.input[0]), TWO_VALUES, "two inputs .* called x"),
    "two arrays of one name": (
        lambda p: p.graph.initializer.append(p.graph.initializer[0]),
        TWO_VALUES,
        "two arrays .* called w",
    ),
    "an output that nothing makes": (
        lambda p: p.graph.output.append(info("q")),
        NO_VALUE,
        "nothing in the model makes q",
    ),
    "an operand left out": (
        lambda p: renamed(p.graph.node[1].input, 1, ""),
        NO_VALUE,
        "Add second: an operand is left out",
    ),
    "too few operands": (lambda p: p.graph.node[1].input.pop(), NODE, "Add second: it has 1 operands, expected are 2"),
    "too many results": (
        lambda p: p.graph.node[1].output.append("q"),
        NODE,
        "Add second: it has 2 results, expected are 1",
    ),
    "an attribute of another kind": (
        lambda p: p.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("axis", 1.0)),
        NODE,
        "Softmax first: the attribute axis is of another kind than int",
    ),
    "an attribute twice": (
        lambda p: p.graph.node[0].attribute.append(p.graph.node[0].attribute[0]),
        NODE,
        "Softmax first: the attribute axis is given twice",
    ),
    "an attribute that is none": (
        lambda p: p.graph.node[0].attribute.append(helper.make_attribute("axle", 1)),
        NODE,
        "Softmax first: the attribute axle",
    ),
    "an operator that is none": (lambda p: setattr(p.graph.node[0], "op_type", "Softmux"), NODE, r"Softmux \(1 node\)"),
    "an operator of a later version": (
        lambda p: setattr(p.graph.node[0], "op_type", "RMSNormalization"),
        NODE,
        "RMSNormalization first: version 21 of ONNX has no such operator",
    ),
    "an operator of others": (
        lambda p: setattr(p.graph.node[0], "domain", "com.other"),
        NODE,
        r"com.other.Softmax \(1 node\)",
    ),
    "a shape below zero": (lambda p: p.graph.initializer[0].dims.__setitem__(0, -2), FILE, r"'w' .*\[-2, 3\]"),
    "a shape that the data do not fill": (lambda p: p.graph.initializer[0].dims.__setitem__(0, 2**40), FILE, "'w' "),
    "a type that is none": (lambda p: setattr(p.graph.initializer[0], "data_type", 77), FILE, "'w' "),
    "an input of texts": (
        lambda p: setattr(p.graph.input[0].type.tensor_type, "elem_type", TensorProto.STRING),
        FILE,
        "input x is no array of numbers",
    ),
    "an input that is a sequence": (
        lambda p: p.graph.input[0].CopyFrom(helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2, 3])),
        FILE,
        "input x is no array of numbers",
    ),
    "shapes that do not go together": (
        lambda p: p.graph.initializer[0].CopyFrom(numpy_helper.from_array(filled(4), "w")),
        codes.OPERATOR_ARGUMENT,
        "Add second: add: .*do not go together",
    ),
    "no output": (lambda p: p.graph.output.pop(), codes.NO_OUTPUT, "no output"),
}


@pytest.mark.parametrize("name", list(SPOILT))
def test_models_that_are_none(name: str) -> None:
    """What is wrong is said with the name of the node, of the input or of the array that it is wrong with."""
    change, code, message = SPOILT[name]
    with pytest.raises(LayoutproofError, match=f"{code}.*{message}"):
        graph_from(spoilt(change))


@pytest.mark.parametrize("name", sorted(set(SPOILT) - {"an attribute that is none"}))
def test_files_of_models_that_are_none(name: str, tmp_path: Path) -> None:
    """In a file each of them is an error as well, whoever finds it."""
    (tmp_path / "m.onnx").write_bytes(spoilt(SPOILT[name][0]).SerializeToString())
    with pytest.raises(LayoutproofError):
        load_model(tmp_path / "m.onnx")


def test_more_results_than_are_translated() -> None:
    """A result that is asked for and that no translation makes is an error that names it."""
    x = filled(1, 2, 4, 4)
    with pytest.raises(LayoutproofError, match="MaxPool that makes y0, y1: "):
        graph_of(model_of(one("MaxPool", [x], results=2, kernel_shape=[2, 2])))
