"""A model -> a graph: each node becomes calls of the operator library, by the table of all operators; operators that
ONNX defines by others are expanded; nodes on known arrays are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Array, Graph, Value
from layoutproof.importers.onnx.constant_nodes import FOLDED, SHAPES
from layoutproof.importers.onnx.elementwise_nodes import ELEMENTWISE
from layoutproof.importers.onnx.indexing_nodes import TAKING
from layoutproof.importers.onnx.moving_nodes import MOVING
from layoutproof.importers.onnx.onnx_model import Body, Model, ModelNode, Reference, attributes_of, function_of
from layoutproof.importers.onnx.optional_packages import library, schema_of
from layoutproof.importers.onnx.quantized_nodes import QUANTIZED
from layoutproof.importers.onnx.reduction_nodes import LINEAR, NORMALISE, REDUCING
from layoutproof.importers.onnx.resizing_nodes import RESIZING
from layoutproof.importers.onnx.translate import AsDefined, Made, Translate, Translation, named, only, refused, require
from layoutproof.importers.onnx.window_nodes import CONVOLUTIONS, POOLING
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, counted, error


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
            text = schema.get_context_dependent_function_with_opset_version(
                version, _node_of(node, schema).SerializeToString(), types
            )
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
        kind = (
            onnx.AttributeProto.AttributeType.Name(int(schema.attributes[name].type.value))
            if name in schema.attributes
            else None
        )
        held = list(value) if isinstance(value, tuple) else value
        if kind == "TENSOR":
            held = onnx.numpy_helper.from_array(value)
        made.attribute.append(
            onnx.helper.make_attribute(name, held, attr_type=getattr(onnx.AttributeProto, kind) if kind else None)
        )
    return made


def inlined(node: ModelNode, body: Body, inner: ModelNode, absent: frozenset[str]) -> ModelNode:
    """A node of a function body for one call: with the call's attributes, without operands that it leaves out. So are
    the nodes of its branches.
    """
    attributes = dict[str, Any]()
    for name, value in inner.attributes.items():
        if isinstance(value, Body):
            nodes = tuple(inlined(node, body, each, absent) for each in value.nodes)
            attributes[name] = replace(value, nodes=nodes)
        elif not isinstance(value, Reference):
            attributes[name] = value
        elif value.name in node.attributes or value.name in body.attributes:
            attributes[name] = node.attributes.get(value.name, body.attributes.get(value.name))
    operands = tuple("" if name in absent else name for name in inner.operands)
    return replace(inner, operands=operands, attributes=attributes)


OPERATORS: Final[Mapping[str, Translate]] = {
    **CONVOLUTIONS,
    **ELEMENTWISE,
    **LINEAR,
    **MOVING,
    **NORMALISE,
    **POOLING,
    **QUANTIZED,
    **REDUCING,
    **RESIZING,
    **SHAPES,
    **TAKING,
}


MOST_DEEP = 32
"""How deep operators that are defined by others may lie in each other."""

MOST_NODES = 200_000
"""How many nodes are done, those of operators that are defined by others counted each time."""

NOTHING: Array = np.zeros(0, dtype=np.float32)
"""In the place of a result that is not asked for."""


def graph_of(model: Model) -> Graph:
    """The graph of a model. Raises LayoutproofError for operators and attributes that are not translated."""
    _check_operators(model)
    translation = Translation(model)
    _do(translation, model.nodes)
    graph = translation.builder.build(*(translation.value(name) for name in model.outputs))
    # Of several names for a value, one of an output comes first, then the oldest.
    names = dict.fromkeys((*model.outputs, *translation.known))
    values = {name: found for name in names if isinstance(found := translation.known[name], Value)}
    return named(graph, {value.name: name for name, value in reversed(values.items())})


def _do(into: Translation, nodes: Sequence[ModelNode]) -> None:
    """Do the nodes one after the other; what is wrong with one is said with its name."""
    for node in nodes:
        into.done += 1
        require(
            into.done <= MOST_NODES,
            node,
            f"with what its operators are defined by, the model has more than {MOST_NODES} nodes",
        )
        try:
            made = _made(into, node)
        except LayoutproofError as problem:
            raise _placed(problem, node) from problem
        for number, name in enumerate(node.results):
            if not name:
                continue
            require(number < len(made), node, f"its result {name} is not translated")
            if name in into.known:
                raise error(codes.TWO_VALUES, f"{node}: something before it is called {name} as well")
            # What numpy has computed may be a number, which is no array.
            into.known[name] = found if isinstance(found := made[number], Value) else np.asarray(found)


def _placed(problem: LayoutproofError, node: ModelNode) -> LayoutproofError:
    """The error with the node's name in front, unless it has one; an error in a function's text becomes the node's."""
    told = f"{node}: "
    return LayoutproofError(
        tuple(
            replace(found, message=found.message if found.message.startswith(told) else told + found.message)
            if found.code in codes.MEANINGS
            else Diagnostic(codes.MODEL_OPERATOR, f"{told}the library has no such operator: {found.message}")
            for found in problem.diagnostics
        )
    )


def _made(into: Translation, node: ModelNode) -> Made:
    own = into.model.functions.get(node.operator)
    there = own is not None or "." in node.operator or schema_of(node.operator, node.opset) is not None
    require(there, node, f"version {node.opset} of ONNX has no such operator")
    # Of the operand that another one is to be like, only the type is asked for.
    needed = node.operands[:1] if node.operator == "CastLike" else tuple(filter(None, node.operands))
    # Attributes of versions before 7 say more, of how operands are repeated.
    if node.opset >= 7 and node.operator in FOLDED and needed and into.is_known(*needed):
        return FOLDED[node.operator](into, node)
    translate = OPERATORS.get(node.operator)
    if translate is not None:
        try:
            return translate(into, node)
        except AsDefined:
            # What ONNX says of the operator follows.
            pass
    if node.operator == "If":
        return _branch(into, node)
    body = own if own is not None else definition_of(into, node)
    if body is None:
        unknown = [name for name in node.operands if name and not into.is_known(name)]
        what = (
            f"it is translated only where {', '.join(unknown)} is known before the model runs"
            if unknown
            else "it is not translated"
        )
        raise refused(node, what)
    return _expanded(into, node, body)


def _expanded(into: Translation, node: ModelNode, body: Body) -> Made:
    """What the body of an operator makes in the place of a node."""
    require(
        len(node.operands) <= len(body.operands),
        node,
        f"it has {len(node.operands)} operands, expected are {len(body.operands)}",
    )
    given = dict(zip(body.operands, node.operands, strict=False))
    absent = frozenset(name for name in body.operands if not given.get(name))
    known = {name: into.known_as(operand) for name, operand in given.items() if operand}
    with into.inside(known):
        require(into.depth <= MOST_DEEP, node, "operators are defined by each other without an end")
        _do(into, [inlined(node, body, inner, absent) for inner in body.nodes])
        # A result that nobody asks for may be one that the body does not make.
        return tuple(
            into.known_as(name) if asked else NOTHING for name, asked in zip(body.results, node.results, strict=False)
        )


def _branch(into: Translation, node: ModelNode) -> Made:
    """The one branch that is done, where it is known which."""
    given = only(node, then_branch=None, else_branch=None)
    chosen = given["then_branch" if bool(into.number(node, node.operands[0])) else "else_branch"]
    assert isinstance(chosen, Body)
    with into.inside({**into.known, **chosen.arrays}):
        require(into.depth <= MOST_DEEP, node, "branches lie in each other too deep")
        _do(into, chosen.nodes)
        return tuple(into.known_as(name) for name in chosen.results)


def _check_operators(model: Model) -> None:
    """Raise LayoutproofError, naming all of them, for operators that are not translated."""
    known = {*OPERATORS, *FOLDED, *model.functions, "If"}
    unknown = Counter(node.operator for node in model.nodes if node.operator not in known and not has_definition(node))
    if unknown:
        names = ", ".join(f"{name} ({counted(number, 'node', 'nodes')})" for name, number in sorted(unknown.items()))
        message = f"no operators of these names are translated: {names}"
        raise error(codes.MODEL_OPERATOR, message, help=f"known are {', '.join(sorted({*OPERATORS, *FOLDED}))}")
