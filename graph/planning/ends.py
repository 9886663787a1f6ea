"""The ends of a graph as a caller asks for them: inputs and outputs in given layouts, or in any that the planner likes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from math import prod

from layoutproof.graph import codes
from layoutproof.graph.assembly import MapLike, map_of
from layoutproof.graph.maps import report_of
from layoutproof.graph.model import Graph, Value
from layoutproof.graph.planning.apply import outputs_of
from layoutproof.graph.planning.candidates import Candidates
from layoutproof.graph.planning.layouts import Layout, layout_of, map_of_layout, plain, settled
from layoutproof.graph.planning.problem import Choice, Problem
from layoutproof.graph.planning.question import Ends
from layoutproof.graph.scalars import number_of
from layoutproof.graph.witness import AS_IT_WAS, GraphRewrite, Interface
from layoutproof.ir.diagnostic import error
from layoutproof.verify.verdict.verdict import Status


class Free(Enum):
    """A layout that the planner chooses."""

    FREE = "free"


FREE = Free.FREE
Asked = MapLike | Free


def ends_of(graph: Graph, inputs: Mapping[str, Asked], outputs: Sequence[tuple[str, Asked | None]] | None) -> Ends:
    """What is asked of a graph's ends, checked. Raises LayoutproofError for names that are none, and for maps that lose elements."""
    values = graph.by_name()
    names = [value.name for value in graph.inputs]
    for name in inputs:
        if name not in names:
            raise error(codes.LAYOUT_NAMES, f"{graph.name} has no input called {name!r}", help=f"there are {', '.join(names)}")
    asked: Sequence[tuple[str, Asked | None]] = [(name, None) for name in graph.outputs] if outputs is None else outputs
    for name, _ in asked:
        if name not in graph.outputs:
            raise error(codes.LAYOUT_NAMES, f"{graph.name} has no output called {name!r}", help=f"there are {', '.join(graph.outputs)}")
    missing = [name for name in graph.outputs if name not in dict(asked)]
    if missing:
        raise error(codes.LAYOUT_NAMES, f"the output {missing[0]} of {graph.name} is not among those that are to go out")
    return Ends(
        {name: _layout(values[name], each) for name, each in inputs.items()},
        tuple((name, _layout(values[name], each)) for name, each in asked),
    )


def _layout(value: Value, asked: Asked | None) -> Layout | None:
    if asked is None or isinstance(asked, Free):
        return plain(len(value.shape)) if asked is None else None
    index_map = map_of(asked, len(value.shape))
    if len(index_map.inputs) != len(value.shape):
        raise error(codes.TRANSFORM_MAP, f"the layout of {value} takes {len(index_map.inputs)} indices")
    if report_of(index_map, value.shape).injective.status is not Status.PROVED:
        raise error(codes.TRANSFORM_MAP, f"the layout of {value} is not proved to give each element a place of its own")
    return settled(layout_of(index_map), value.shape)


def padding_of_ends(rewrite: GraphRewrite, interface: Interface) -> tuple[str, ...]:
    """What the padding of ends may hold that come or go in a layout with padding: of inputs nobody reads it, of outputs it is proved."""
    old, new = rewrite.old.by_name(), rewrite.new.by_name()
    found = dict[str, None]()
    for name in interface.inputs:
        if prod(new[name].shape) != prod(old[name].shape):
            found[f"the padding of {name} may hold anything"] = None
    for (name, _), made in zip(interface.outputs if interface.outputs is not None else (), rewrite.new.outputs, strict=False):
        if prod(new[made].shape) != prod(old[name].shape):
            pad = rewrite.places[made].pad
            found[f"the padding of {name} holds {'anything' if pad is None else number_of(pad)}"] = None
    return tuple(found)


def interface_of(problem: Problem, choice: Choice, candidates: Candidates, names: Sequence[str]) -> Interface:
    """How the graph of a choice is called."""
    graph, values = candidates.graph, candidates.values
    layouts = {**problem.fixed}
    for end, number in zip(problem.calls[: problem.entering], choice, strict=False):
        layouts[end.results[0]] = end.variants[number].results[0]
    inputs = {v.name: map_of_layout(layouts[v.name]) for v in graph.inputs if layouts[v.name] != plain(len(v.shape))}
    found = []
    for name, (_, layout) in zip(names, outputs_of(problem, choice), strict=True):
        own = candidates.inner(name, layout)
        assert own is not None  # it is one that was asked for, or can be said of the value
        found.append((name, own))
    kept = [name for name, _ in found] == list(graph.outputs) and all(own == plain(len(values[name].shape)) for name, own in found)
    if not inputs and kept:
        return AS_IT_WAS
    return Interface(inputs, tuple((name, map_of_layout(own)) for name, own in found))
