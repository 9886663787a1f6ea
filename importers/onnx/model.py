"""A model's file as plain data: nodes with attributes as Python values, arrays by name, shapes of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Shape
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType

DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One operator: `operands` and `results` are names, an empty one is an operand that is left out."""

    operator: str
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.operator} {self.name}".strip() if self.name else f"{self.operator} that makes {', '.join(self.results)}"


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its inputs without those that have an array, with their shapes and numpy types, nodes in order, outputs by name."""

    name: str
    opset: int
    inputs: Mapping[str, tuple[Shape, str]]
    arrays: Mapping[str, Array]
    nodes: tuple[ModelNode, ...]
    outputs: tuple[str, ...]


def read_model(path: str | Path) -> Model:
    """The model of a file. Raises LayoutproofError where it cannot be read, `onnx` is not installed, or an input's extent is open."""
    onnx = _library()
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(str(path), format="protobuf")
        onnx.checker.check_model(proto)
    except OSError as problem:
        raise error(codes.MODEL_FILE, f"{path} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, DecodeError, onnx.checker.ValidationError) as problem:
        raise error(codes.MODEL_FILE, f"{path} cannot be read as a model: {problem}") from problem
    return model_of(proto)


def model_of(proto: Any) -> Model:
    """The model of a loaded one (`onnx.ModelProto`). Raises LayoutproofError where an input's extent is open."""
    onnx = _library()
    versions = [item.version for item in proto.opset_import if item.domain in DOMAINS]
    graph = proto.graph
    arrays = {_text(item.name): _array(onnx, item) for item in graph.initializer}
    inputs = {_text(item.name): _input_type(onnx, item) for item in graph.input if item.name not in arrays}
    nodes = tuple(_node(onnx, node) for node in graph.node)
    return Model(_text(graph.name), max(versions, default=1), inputs, arrays, nodes, tuple(_text(item.name) for item in graph.output))


def _node(onnx: Any, node: Any) -> ModelNode:
    attributes = {_text(item.name): _attribute(onnx, item) for item in node.attribute}
    # Operators of other domains get names that no operator of ours has, so that they are told of with all that are not known.
    operator = _text(node.op_type) if node.domain in DOMAINS else f"{node.domain}.{node.op_type}"
    operands, results = (tuple(_text(name) for name in names) for names in (node.input, node.output))
    return ModelNode(operator, _text(node.name), operands, results, attributes)


def _attribute(onnx: Any, item: Any) -> Any:
    value = onnx.helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, onnx.TensorProto):
        return _array(onnx, value)
    return value if isinstance(value, int | float) else tuple(value) if hasattr(value, "__iter__") else value


def _text(value: str | bytes) -> str:
    """A string of a model. Raises LayoutproofError for bytes that are no text."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as problem:
        raise error(codes.MODEL_FILE, f"the model has a string that is no text: {value!r}") from problem


def _array(onnx: Any, item: Any) -> Array:
    """An array of a model. Raises LayoutproofError where its data do not fit its type and shape."""
    try:
        return np.asarray(onnx.numpy_helper.to_array(item))
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as problem:
        raise error(codes.MODEL_FILE, f"the array {item.name!r} of the model cannot be read: {problem}") from problem


def _input_type(onnx: Any, item: Any) -> tuple[Shape, str]:
    tensor = item.type.tensor_type
    extents = tuple(axis.dim_value if axis.HasField("dim_value") else 0 for axis in tensor.shape.dim)
    if any(extent < 1 for extent in extents):
        raise error(codes.MODEL_SHAPE, f"the input {item.name} has an extent that is open: {list(extents)}")
    try:
        name = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name)
        DType.parse(name)
    except (KeyError, ValueError) as problem:
        raise error(codes.MODEL_FILE, f"the input {item.name} is no array of numbers of a known type") from problem
    return extents, name


def _library() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as problem:
        raise _missing() from problem
    return onnx


def _missing() -> LayoutproofError:
    return error(codes.MODEL_FILE, "models are read by the package onnx, which is not installed", help="pip install 'layoutproof[onnx]'")
