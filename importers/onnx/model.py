"""A model's file as plain data: nodes with attributes as Python values, arrays by name, shapes of inputs, functions by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Shape
from layoutproof.importers.onnx.extents import Extents
from layoutproof.importers.onnx.library import DOMAINS, library, text_of
from layoutproof.importers.onnx.schemas import check_node
from layoutproof.importers.onnx.tensors import array_of, arrays_of, dense_array
from layoutproof.ir.diagnostic import error


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One operator: `operands` and `results` are names, an empty one is left out. `opset` is the version of ONNX that it is meant in."""

    operator: str
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int

    def __str__(self) -> str:
        return (
            f"{self.operator} {self.name}".strip() if self.name else f"{self.operator} that makes {', '.join(filter(None, self.results))}"
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute in the body of a function that is an attribute of the node that calls it."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """Nodes that are done in the place of one, of a function or of a branch; `attributes` are those of a node that gives none."""

    operands: tuple[str, ...]
    results: tuple[str, ...]
    nodes: tuple[ModelNode, ...]
    arrays: Mapping[str, Array]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its inputs without those that have an array, with their shapes and numpy types, nodes in order, outputs by name.

    `functions` are the model's own operators, by names as nodes have them.
    """

    name: str
    opset: int
    inputs: Mapping[str, tuple[Shape, str]]
    arrays: Mapping[str, Array]
    nodes: tuple[ModelNode, ...]
    outputs: tuple[str, ...]
    functions: Mapping[str, Body] = field(default_factory=dict[str, Body])


def read_model(path: str | Path, sizes: Mapping[str, int] | None = None) -> Model:
    """The model of a file, with the arrays that stand in files of its own folder. `sizes` gives open extents, see `model_of`.

    Raises LayoutproofError where it cannot be read, `onnx` is not installed, or an input's extent is open.
    """
    onnx = library()
    from google.protobuf.message import DecodeError

    try:
        proto = onnx.load(str(path), format="protobuf", load_external_data=False)
        held = arrays_of(proto.graph, Path(path).parent)
        # By its file: a model is checked in one piece, which for those above two gigabytes there is not.
        onnx.checker.check_model(str(path))
    except OSError as problem:
        raise error(codes.MODEL_FILE, f"{path} cannot be read: {problem.strerror or problem}") from problem
    except (ValueError, DecodeError, onnx.checker.ValidationError) as problem:
        raise error(codes.MODEL_FILE, f"{path} cannot be read as a model: {problem}") from problem
    return _model(proto, held, sizes if sizes is not None else {})


def model_of(proto: Any, sizes: Mapping[str, int] | None = None) -> Model:
    """The model of a loaded one (`onnx.ModelProto`).

    `sizes` gives the inputs' open extents: by the name of the dimension, or by `input.axis` for one without a name.
    Raises LayoutproofError where an input's extent stays open, a size belongs to none, and for what is no model.
    """
    return _model(proto, arrays_of(proto.graph, None), sizes if sizes is not None else {})


def _model(proto: Any, arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> Model:
    graph = proto.graph
    opset = _opset(proto, 1)
    extents = Extents(sizes)
    inputs: dict[str, tuple[Shape, str]] = {}
    for item in graph.input:
        name = text_of(item.name)
        if name in inputs:
            raise error(codes.TWO_VALUES, f"two inputs of the model are called {name}")
        # An array with the name of an input is what the input is unless another one is given.
        if name not in arrays:
            inputs[name] = extents.type_of(item)
    extents.check_all_used()
    nodes = tuple(_node(node, opset) for node in graph.node)
    functions = {_operator(item.domain, item.name, item): _function(item, opset) for item in proto.functions}
    outputs = tuple(text_of(item.name) for item in graph.output)
    return Model(text_of(graph.name), opset, inputs, arrays, nodes, outputs, functions)


def function_of(item: Any) -> Body:
    """The body of a function (`onnx.FunctionProto`), in the version that it asks for."""
    return _function(item, 1)


def _function(item: Any, opset: int) -> Body:
    version = _opset(item, opset)
    operands, results = (tuple(text_of(name) for name in names) for names in (item.input, item.output))
    return Body(operands, results, tuple(_node(node, version) for node in item.node), {}, attributes_of(item.attribute_proto, version))


def attributes_of(items: Iterable[Any], opset: int = 1) -> dict[str, Any]:
    """Attributes (`onnx.AttributeProto`) as Python values, by name."""
    return {text_of(item.name): _attribute(item, opset) for item in items}


def _opset(item: Any, otherwise: int) -> int:
    return max((entry.version for entry in item.opset_import if entry.domain in DOMAINS), default=otherwise)


def _operator(domain: str, name: str, item: Any) -> str:
    """The name of an operator; those of other domains get names that no operator of ours has."""
    plain = text_of(name) if domain in DOMAINS else f"{domain}.{name}"
    return f"{plain}:{item.overload}" if getattr(item, "overload", "") else plain


def _node(node: Any, opset: int) -> ModelNode:
    operands, results = (tuple(text_of(name) for name in names) for names in (node.input, node.output))
    made = ModelNode(_operator(node.domain, node.op_type, node), text_of(node.name), operands, results, {}, opset)
    check_node(node, opset, str(made))
    return replace(made, attributes=attributes_of(node.attribute, opset))


def _attribute(item: Any, opset: int) -> Any:
    onnx = library()
    if item.ref_attr_name:
        return Reference(text_of(item.ref_attr_name))
    return _plain(onnx, onnx.helper.get_attribute_value(item), opset)


def _plain(onnx: Any, value: Any, opset: int) -> Any:
    """An attribute as a Python value: numbers and texts, arrays, bodies, and tuples of them."""
    match value:
        case bytes():
            return text_of(value)
        case onnx.TensorProto():
            return array_of(value, None)
        case onnx.SparseTensorProto():
            return dense_array(value)
        case onnx.GraphProto():
            operands, results = (tuple(text_of(item.name) for item in items) for items in (value.input, value.output))
            return Body(operands, results, tuple(_node(node, opset) for node in value.node), arrays_of(value, None))
        case _ if hasattr(value, "__iter__") and not isinstance(value, str):
            return tuple(_plain(onnx, item, opset) for item in value)
    return value
