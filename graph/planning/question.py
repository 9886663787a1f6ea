"""From candidates to the question that planning solves: what comes in and goes out in which layouts, and what rewrites cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from layoutproof.graph.model import Graph
from layoutproof.graph.planning.candidates import Candidates, calls_of, planned_call
from layoutproof.graph.planning.costs import CostOf, bytes_moved
from layoutproof.graph.planning.layouts import Layout, bare, implies, plain
from layoutproof.graph.planning.problem import PlannedCall, Problem, Variant


@dataclass(frozen=True, slots=True)
class Ends:
    """The layouts in which inputs come, by name, and in which outputs go, in order; None where the planner chooses. Others are plain."""

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
    """The question of a graph of calls: what its ends say, else inputs come plain and outputs go plain; rewrites cost what `cost` says.

    Padding that a function fills costs its bytes where rewrites cost theirs, and nothing beside other costs, which say nothing of it.
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
    made, needed = _met(every, fixed.items(), made=True), _met(every, ((n, o) for n, o in outputs if o is not None), made=False)
    costs = {
        (name, source, target): cost(values[name], source, target)
        for name in needed
        if name not in free and any(not implies(source, target) for source in made[name] for target in needed[name])
        for source, target in permutations(dict.fromkeys([*made[name], *needed[name], plain(len(values[name].shape))]), 2)
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


def _met(calls: Iterable[PlannedCall], more: Iterable[tuple[str, Layout]], *, made: bool) -> dict[str, dict[Layout, None]]:
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
