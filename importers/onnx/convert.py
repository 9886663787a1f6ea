"""A model -> a graph: each node becomes calls of the operator library; nodes on known arrays are computed at once."""

from __future__ import annotations

from collections import Counter

from layoutproof.graph import codes
from layoutproof.graph.model import Graph
from layoutproof.importers.onnx.model import Model
from layoutproof.importers.onnx.operators import OPERATORS
from layoutproof.importers.onnx.translate import Translation
from layoutproof.ir.diagnostic import counted, error


def graph_of(model: Model) -> Graph:
    """The graph of a model. Raises LayoutproofError for operators and attributes that are not translated."""
    _check_operators(model)
    translation = Translation(model)
    for node in model.nodes:
        for name, value in zip(node.results, OPERATORS[node.operator](translation, node), strict=False):
            if name:
                translation.known[name] = value
    return translation.builder.build(*(translation.value(name) for name in model.outputs))


def _check_operators(model: Model) -> None:
    """Raise LayoutproofError, naming all of them, for operators that are not translated."""
    unknown = Counter(node.operator for node in model.nodes if node.operator not in OPERATORS)
    if unknown:
        names = ", ".join(f"{name} ({counted(number, 'node', 'nodes')})" for name, number in sorted(unknown.items()))
        message = f"no operators of these names are translated: {names}"
        raise error(codes.MODEL_OPERATOR, message, help=f"known are {', '.join(sorted(OPERATORS))}")
