"""Operators that are nodes again: what ONNX itself says of an operator by other operators, and what is put in for a node's attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from layoutproof.importers.onnx.library import library
from layoutproof.importers.onnx.model import Body, ModelNode, Reference, attributes_of, function_of
from layoutproof.importers.onnx.schemas import schema_of
from layoutproof.importers.onnx.translate import Translation


def has_definition(node: ModelNode) -> bool:
    """Whether ONNX may define a node's operator by others."""
    schema = schema_of(node.operator, node.opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def definition_of(into: Translation, node: ModelNode) -> Body | None:
    """The body that ONNX defines a node by, for operands of the types that they have; None where there is none."""
    schema = schema_of(node.operator, node.opset)
    if schema is None:
        return None
    onnx = library()
    proto: Any = None
    if schema.has_context_dependent_function:
        version = max((k for k in schema.context_dependent_function_opset_versions if k <= node.opset), default=None)
        if version is not None:
            types = [_type(into, name).SerializeToString() for name in node.operands]
            text = schema.get_context_dependent_function_with_opset_version(version, _node_of(node, schema).SerializeToString(), types)
            proto = onnx.FunctionProto.FromString(text) if text else None
    elif schema.has_function:
        version = max((k for k in schema.function_opset_versions if k <= node.opset), default=None)
        text = schema.get_function_with_opset_version(version) if version is not None else None
        proto = onnx.FunctionProto.FromString(text) if isinstance(text, bytes) else text
    if proto is None or not proto.node:
        return None
    defaults = [known.default_value for known in schema.attributes.values() if known.default_value.name]
    return replace(function_of(proto), attributes=attributes_of(defaults))


def _type(into: Translation, name: str) -> Any:
    """The type of an operand (`onnx.TypeProto`); of one that is left out, nothing is said."""
    onnx = library()
    if not name:
        return onnx.TypeProto()
    found = into.known_as(name)
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(into.numpy_type(found)), found.shape)


def _node_of(node: ModelNode, schema: Any) -> Any:
    onnx = library()
    made = onnx.helper.make_node(node.operator, node.operands, node.results, name=node.name)
    for name, value in node.attributes.items():
        kind = onnx.AttributeProto.AttributeType.Name(int(schema.attributes[name].type.value)) if name in schema.attributes else None
        held = list(value) if isinstance(value, tuple) else value
        if kind == "TENSOR":
            held = onnx.numpy_helper.from_array(value)
        made.attribute.append(onnx.helper.make_attribute(name, held, attr_type=getattr(onnx.AttributeProto, kind) if kind else None))
    return made


def inlined(node: ModelNode, body: Body, inner: ModelNode, absent: frozenset[str]) -> ModelNode:
    """A node of a body as it stands for one node: with that node's attributes, and without the operands that it leaves out."""
    attributes = dict[str, Any]()
    for name, value in inner.attributes.items():
        if not isinstance(value, Reference):
            attributes[name] = value
        elif value.name in node.attributes or value.name in body.attributes:
            attributes[name] = node.attributes.get(value.name, body.attributes.get(value.name))
    operands = tuple("" if name in absent else name for name in inner.operands)
    return replace(inner, operands=operands, attributes=attributes)
