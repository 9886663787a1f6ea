"""A model's file as plain data: nodes with attributes as Python values, arrays in the file or beside it, shapes of
inputs with sizes for open extents, functions by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Array, Shape
from layoutproof.importers.onnx.optional_packages import DOMAINS, check_node, library, text_of
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType


class Extents:
    """Sizes by names of dimensions, and by `input.axis`, which wins; which of them exist and are used is kept."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            if size < 1:
                raise error(codes.MODEL_SHAPE, f"the size of {name} is {size!r}; expected is a whole number, 1 or more")
        self._sizes = sizes
        self._open: list[str] = []
        self._used: set[str] = set()

    def type_of(self, item: Any) -> tuple[Shape, str]:
        """The shape and the numpy type of an input (`onnx.ValueInfoProto`).

        Raises LayoutproofError for an open extent without a size, and for what is no array of numbers.
        """
        onnx, tensor, name = library(), item.type.tensor_type, text_of(item.name)
        try:
            dtype = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).name)
            DType.parse(dtype)
        except (KeyError, ValueError) as problem:
            raise error(codes.MODEL_FILE, f"the input {name} is no array of numbers of a known type") from problem
        if not tensor.HasField("shape"):
            raise error(
                codes.MODEL_SHAPE, f"the input {name} has no shape; expected is one, with names for what is open"
            )
        return tuple(self._extent(name, axis, extent) for axis, extent in enumerate(tensor.shape.dim)), dtype

    def _extent(self, name: str, axis: int, extent: Any) -> int:
        if extent.dim_value > 0:
            return int(extent.dim_value)
        place, called = f"{name}.{axis}", text_of(extent.dim_param)
        keys = [place, called] if called else [place]
        self._open += keys
        found = next((key for key in keys if key in self._sizes), None)
        if found is None:
            known = called or place
            what = f"the dimension {called!r}" if called else "a dimension without a name"
            message = f"the input {name} has an extent that is open: axis {axis} is {what}"
            raise error(
                codes.MODEL_SHAPE,
                message,
                help=f"give its size: sizes={{{known!r}: 1}}, on the command line --size {known}=1",
            )
        self._used.update(key for key in keys if key in self._sizes)
        return self._sizes[found]

    def check_all_used(self) -> None:
        """Raise LayoutproofError for a size that belongs to no open extent."""
        unknown = [name for name in self._sizes if name not in self._used]
        if unknown:
            there = ", ".join(dict.fromkeys(self._open))
            message = f"no extent of an input is open under the name {unknown[0]!r}"
            raise error(
                codes.MODEL_SHAPE,
                message,
                help=f"open are {there}" if there else "all extents of the model are numbers",
            )


MOST_BYTES = 2**30
"""How much memory the arrays take that are not in a model's files, but are made when it is read."""


def arrays_of(graph: Any, folder: Path | None) -> dict[str, Array]:
    """The arrays of a graph (`onnx.GraphProto`) by name; those in files of their own are read from a folder.

    Raises LayoutproofError for two of one name, and for arrays that cannot be read.
    """
    found: dict[str, Array] = {}
    for name, array in (
        *((text_of(item.name), array_of(item, folder)) for item in graph.initializer),
        *((text_of(item.values.name), dense_array(item)) for item in graph.sparse_initializer),
    ):
        if name in found:
            raise error(codes.TWO_VALUES, f"two arrays of the model are called {name}")
        found[name] = array
    return found


def array_of(item: Any, folder: Path | None) -> Array:
    """An array of a model (`onnx.TensorProto`). Raises LayoutproofError where its data do not fit its type or shape."""
    onnx = library()
    if any(extent < 0 for extent in item.dims):
        raise _unreadable(item, f"its shape is {list(item.dims)}")
    try:
        if item.data_location == onnx.TensorProto.EXTERNAL:
            return _from_file(onnx, item, folder)
        return np.asarray(onnx.numpy_helper.to_array(item))
    except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as problem:
        raise _unreadable(item, str(problem)) from problem


def _from_file(onnx: Any, item: Any, folder: Path | None) -> Array:
    """An array that stands in a file of its own, in the model's folder or below it."""
    entries = {entry.key: entry.value for entry in item.external_data}
    location = text_of(entries.get("location", ""))
    if folder is None:
        raise _unreadable(item, f"it stands in the file {location!r}, and the model was given without its folder")
    path = folder / location
    if not location or Path(location).is_absolute() or not path.resolve().is_relative_to(folder.resolve()):
        raise _unreadable(item, f"the file {location!r} does not lie in the model's folder {folder}")
    if not path.is_file():
        raise _unreadable(item, f"there is no file {path}")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(item.data_type))
    count, start = prod(item.dims), int(entries.get("offset", 0))
    # Types of less than a byte stand packed, two or four in one; the package unpacks them.
    whole = dtype.name in _WHOLE
    length = count * dtype.itemsize if whole else int(entries.get("length", path.stat().st_size - start))
    told = int(entries.get("length", length))
    if start < 0 or length < 0 or start + length > path.stat().st_size or told != length:
        raise _unreadable(
            item, f"{path} has no {length} bytes for it from byte {start}, or other than the model says ({told})"
        )
    with path.open("rb") as file:
        file.seek(start)
        if whole:
            held: Array = np.fromfile(file, dtype=dtype.newbyteorder("<"), count=count)
            return held.astype(dtype, copy=False).reshape(tuple(item.dims))
        plain = onnx.TensorProto(data_type=item.data_type, dims=list(item.dims), raw_data=file.read(length))
    return np.asarray(onnx.numpy_helper.to_array(plain))


_WHOLE = frozenset(
    (
        "bool",
        "bfloat16",
        *(f"float{k}" for k in (16, 32, 64)),
        *(f"{s}int{k}" for s in ("", "u") for k in (8, 16, 32, 64)),
    )
)


def dense_array(item: Any) -> Array:
    """A sparse array of a model (`onnx.SparseTensorProto`) with its zeros.

    Raises LayoutproofError for places outside it, and for one that is too large to be written out.
    """
    values, places = array_of(item.values, None), array_of(item.indices, None)
    shape = tuple(item.dims)
    if any(extent < 0 for extent in shape) or prod(shape) * values.itemsize > MOST_BYTES:
        raise _unreadable(item.values, f"its shape is {list(shape)}, too large to be written out")
    if places.ndim == 2 and places.shape[1] == len(shape):
        bounds = np.array(shape, dtype=np.int64)
        inside = bool(np.all((places >= 0) & (places < bounds)))
        flat = (
            np.ravel_multi_index(tuple(places.T), shape)
            if inside and places.size
            else np.zeros(len(places), dtype=np.int64)
        )
    else:
        flat, inside = places.reshape(-1), bool(np.all((places >= 0) & (places < prod(shape))))
    if not inside or places.dtype.kind != "i" or values.ndim != 1 or len(flat) != len(values):
        raise _unreadable(
            item.values, f"its places do not lie in {list(shape)}, one for each of {values.size} elements"
        )
    made: Array = np.zeros(prod(shape), dtype=values.dtype)
    made[flat] = values
    return made.reshape(shape)


def _unreadable(item: Any, why: str) -> LayoutproofError:
    return error(codes.MODEL_FILE, f"the array {text_of(item.name)!r} of the model cannot be read: {why}")


@dataclass(frozen=True, slots=True)
class ModelNode:
    """One operator: `operands` and `results` are names, empty where omitted. `opset` is its version of ONNX."""

    operator: str
    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int

    def __str__(self) -> str:
        return (
            f"{self.operator} {self.name}".strip()
            if self.name
            else f"{self.operator} that makes {', '.join(filter(None, self.results))}"
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """An attribute in the body of a function that is an attribute of the node that calls it."""

    name: str


@dataclass(frozen=True, slots=True)
class Body:
    """Nodes in place of one, of a function or a branch; `attributes` are the defaults."""

    operands: tuple[str, ...]
    results: tuple[str, ...]
    nodes: tuple[ModelNode, ...]
    arrays: Mapping[str, Array]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its inputs without those that have an array, with their shapes and numpy types, nodes in order, outputs
    by name.

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
    """The model of a file, with the arrays that stand in files of its own folder. `sizes` gives open extents, see
    `model_of`.

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
    return Body(
        operands,
        results,
        tuple(_node(node, version) for node in item.node),
        {},
        attributes_of(item.attribute_proto, version),
    )


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
