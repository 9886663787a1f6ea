"""Values of a graph get the names that they have in the model that it was read from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from keyword import iskeyword

from layoutproof.graph.assembly import unused
from layoutproof.graph.model import Call, Crop, Graph, LayoutTransform, Pad, Step, Value


def identifier(name: str) -> str:
    """A name of a model as one of a graph's text."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"v_{plain}" if not plain or plain[0].isdigit() or iskeyword(plain) else plain


def named(graph: Graph, known: Mapping[str, str]) -> Graph:
    """The graph with other names for what its steps make: `known` has names of a model by names of values; where two become one
    identifier, the later one gets a number. Inputs and constants stay as they are.
    """
    taken = {value.name for value in (*graph.inputs, *(constant.value for constant in graph.constants))}
    made = [value.name for step in graph.steps for value in step.results]
    names = {name: name for name in taken}
    # Values without a name in the model come last: theirs say nothing to those who know the model.
    for name in sorted(made, key=lambda name: name not in known):
        names[name] = unused(identifier(known.get(name, name)), taken)
        taken.add(names[name])
    steps = tuple(_renamed(step, names) for step in graph.steps)
    return replace(graph, steps=steps, outputs=tuple(names[name] for name in graph.outputs))


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    match step:
        case Call():
            results = tuple(_called(value, names) for value in step.results)
            return replace(step, results=results, operands=tuple(names[name] for name in step.operands))
        case LayoutTransform() | Pad() | Crop():
            return replace(step, result=_called(step.result, names), operand=names[step.operand])


def _called(value: Value, names: Mapping[str, str]) -> Value:
    return replace(value, name=names[value.name])
