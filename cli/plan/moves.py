"""The layout rewrites that stand in a rewritten graph: layout operators in a row, from one layout of an old value to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from layoutproof.graph.model import Call, Graph, Value
from layoutproof.graph.planning.candidates import operator_name
from layoutproof.graph.planning.layouts import Layout, layout_of
from layoutproof.graph.scalars import number_of
from layoutproof.graph.witness import GraphRewrite


@dataclass(frozen=True, slots=True)
class Moved:
    """An old value that is rewritten, from which layout to which; `first` is taken, and `made` are the values that this makes, in a row."""

    value: str
    source: Layout
    target: Layout
    first: Value
    made: tuple[Value, ...]

    @property
    def bytes(self) -> int:
        """What is read at the beginning and written at the end."""
        return sum(prod(value.shape) * value.dtype.bytes for value in (self.first, self.made[-1]))


def layout_in(rewrite: GraphRewrite, name: str) -> Layout:
    """The layout of a new value."""
    place = rewrite.places[name]
    return layout_of(place.index_map, None if place.pad is None else number_of(place.pad))


def moves_in(rewrite: GraphRewrite) -> Iterator[Moved]:
    """The rewrites of a graph, in order."""
    values = rewrite.new.by_name()
    pending: list[Value] = []
    steps = rewrite.new.steps
    for number, step in enumerate(steps):
        if isinstance(step, Call):
            continue
        pending = [*(pending if pending else [values[step.operand]]), step.result]
        after = steps[number + 1] if number + 1 < len(steps) else None
        if after is None or isinstance(after, Call) or after.operand != step.result.name:
            first, *made = pending
            old = rewrite.places[first.name].value
            yield Moved(old, layout_in(rewrite, first.name), layout_in(rewrite, made[-1].name), first, tuple(made))
            pending = []


def with_operator(graph: Graph, value: str) -> str:
    """The name of a value, with that of the operator that makes it where the name does not say so."""
    made = graph.producers().get(value)
    if not isinstance(made, Call) or value.startswith(operator_name(made)):
        return value
    return f"{value} ({operator_name(made)})"
