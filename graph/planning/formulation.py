"""From variants to the planning problem: the layouts of inputs and outputs as a caller asks for them, and what rewrites
cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import permutations
from math import prod

from layoutproof.graph import codes
from layoutproof.graph.builder import MapLike, map_of
from layoutproof.graph.model.graph import Graph, Value, number_of
from layoutproof.graph.model.graph_witness import AS_IT_WAS, GraphRewrite, Interface
from layoutproof.graph.model.layout_maps import report_of
from layoutproof.graph.planning.apply import outputs_of
from layoutproof.graph.planning.array_layouts import Layout, bare, implies, layout_of, map_of_layout, plain, settled
from layoutproof.graph.planning.costs import CostOf, bytes_moved
from layoutproof.graph.planning.planning_problem import Choice, PlannedCall, Problem, Variant
from layoutproof.graph.planning.variants import Candidates, calls_of, planned_call
from layoutproof.ir.diagnostic import error
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Ends:
    """Layouts of inputs, by name, and of outputs, in order; None where the planner chooses. Others are plain."""

    inputs: Mapping[str, Layout | None] = field(default_factory=lambda: dict[str, Layout | None]())
    outputs: tuple[tuple[str, Layout | None], ...] = ()

    def stated(self) -> list[tuple[str, Layout]]:
        """The layouts that are not left to the planner."""
        return [(name, layout) for name, layout in (*self.inputs.items(), *self.outputs) if layout is not None]


def plain_ends(graph: Graph) -> Ends:
    """Everything as it is in the graph."""
    values = graph.by_name()
    return Ends({}, tuple((name, plain(len(values[name].shape))) for name in graph.outputs))


def problem_of(candidates: Candidates, ends: Ends | None = None, cost: CostOf = bytes_moved) -> Problem:
    """The question of a graph of calls: what its ends say, else inputs come plain and outputs go plain; rewrites cost
    what `cost` says.

    Padding that a function fills costs its bytes where rewrites cost theirs, and nothing beside other costs, which say
    nothing of it.
    """
    graph, values = candidates.graph, candidates.values
    known = ends if ends is not None else plain_ends(graph)
    fixed = {value.name: plain(len(value.shape)) for value in graph.inputs}
    entering, leaving = list[PlannedCall](), list[PlannedCall]()
    calls = tuple(planned_call(candidates, call, fills_cost=cost is bytes_moved) for call in calls_of(graph))
    for name, layout in known.inputs.items():
        if layout is None:
            del fixed[name]
            entering.append(_end((), (name,), [Variant((), (each,)) for each in _choices(candidates, name)]))
        else:
            fixed[name] = candidates.outer(name, layout)
    outputs = list[tuple[str, Layout | None]]()
    for name, layout in known.outputs:
        outputs.append((candidates.roots[name].value, None if layout is None else candidates.outer(name, layout)))
        if layout is None:
            leaving.append(_end((outputs[-1][0],), (), [Variant((each,), ()) for each in _choices(candidates, name)]))
    every = (*entering, *calls, *leaving)
    free = frozenset(constant.value.name for constant in graph.constants)
    made, needed = (
        _met(every, fixed.items(), made=True),
        _met(every, ((n, o) for n, o in outputs if o is not None), made=False),
    )
    costs = {
        (name, source, target): cost(values[name], source, target)
        for name in needed
        if name not in free and any(not implies(source, target) for source in made[name] for target in needed[name])
        for source, target in permutations(
            dict.fromkeys([*made[name], *needed[name], plain(len(values[name].shape))]), 2
        )
        if not implies(source, target)
    }
    return Problem(every, fixed, free, tuple(outputs), costs, len(entering), len(leaving))


def _end(operands: tuple[str, ...], results: tuple[str, ...], variants: Sequence[Variant]) -> PlannedCall:
    return PlannedCall(operands, results, tuple(variants), tuple(variants))


def _choices(candidates: Candidates, name: str) -> list[Layout]:
    """The layouts of the root that an end may have, the one that it has now first; of padding an end says nothing."""
    first = candidates.outer(name, plain(len(candidates.values[name].shape)))
    found = (bare(each) for each in candidates.layouts[candidates.roots[name].value])
    return list(dict.fromkeys([first, *(each for each in found if candidates.inner(name, each) is not None)]))


def _met(
    calls: Iterable[PlannedCall], more: Iterable[tuple[str, Layout]], *, made: bool
) -> dict[str, dict[Layout, None]]:
    """The layouts that values are made in, or needed in."""
    found: dict[str, dict[Layout, None]] = {}
    for name, layout in more:
        found.setdefault(name, {})[layout] = None
    for call in calls:
        for variant in call.variants:
            names, layouts = (call.results, variant.results) if made else (call.operands, variant.operands)
            for name, layout in zip(names, layouts, strict=True):
                found.setdefault(name, {})[layout] = None
    return found


class Free(Enum):
    """A layout that the planner chooses."""

    FREE = "free"


FREE = Free.FREE
Asked = MapLike | Free


def ends_of(graph: Graph, inputs: Mapping[str, Asked], outputs: Sequence[tuple[str, Asked | None]] | None) -> Ends:
    """The checked layouts of an interface. Raises LayoutproofError for unknown names and maps that lose elements."""
    values = graph.by_name()
    names = [value.name for value in graph.inputs]
    for name in inputs:
        if name not in names:
            raise error(
                codes.LAYOUT_NAMES, f"{graph.name} has no input called {name!r}", help=f"available: {', '.join(names)}"
            )
    asked: Sequence[tuple[str, Asked | None]] = [(name, None) for name in graph.outputs] if outputs is None else outputs
    for name, _ in asked:
        if name not in graph.outputs:
            raise error(
                codes.LAYOUT_NAMES,
                f"{graph.name} has no output called {name!r}",
                help=f"available: {', '.join(graph.outputs)}",
            )
    missing = [name for name in graph.outputs if name not in dict(asked)]
    if missing:
        raise error(
            codes.LAYOUT_NAMES, f"the output {missing[0]} of {graph.name} is not among those that are to go out"
        )
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
    """What the padding of inputs (anything) and outputs (as proved) of the interface may hold."""
    old, new = rewrite.old.by_name(), rewrite.new.by_name()
    found = dict[str, None]()
    for name in interface.inputs:
        if prod(new[name].shape) != prod(old[name].shape):
            found[f"the padding of {name} may hold anything"] = None
    for (name, _), made in zip(
        interface.outputs if interface.outputs is not None else (), rewrite.new.outputs, strict=False
    ):
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
        assert own is not None  # it was asked for, or is a layout of the value
        found.append((name, own))
    kept = [name for name, _ in found] == list(graph.outputs) and all(
        own == plain(len(values[name].shape)) for name, own in found
    )
    if not inputs and kept:
        return AS_IT_WAS
    return Interface(inputs, tuple((name, map_of_layout(own)) for name, own in found))
