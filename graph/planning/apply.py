"""A choice -> the planned graph, with the witness of where each old value is in the new graph. It is a proposal:
`prove_graph` proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Call, Constant, Crop, Graph, LayoutTransform, Pad, Step, Value, scalar
from layoutproof.graph.model.graph_witness import GraphRewrite, Place, Steps
from layoutproof.graph.model.layout_maps import inverse_of
from layoutproof.graph.planning.array_layouts import (
    Layout,
    bare,
    between,
    filled_shape,
    implies,
    map_of_layout,
    pad_of,
    physical,
    plain,
)
from layoutproof.graph.planning.contracted import schedule_of
from layoutproof.graph.planning.planning_problem import Choice, PlannedCall, Problem, Variant, rewrites_of
from layoutproof.graph.planning.variants import calls_of
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import fresh


def planned(graph: Graph, problem: Problem, choice: Choice) -> GraphRewrite:
    """The graph of a choice. Raises IllegalTransform where a function in its new layouts is not proved equivalent."""
    made = _Planned(graph, {(name, target): source for name, source, target in rewrites_of(problem, choice)})
    layouts = {**problem.fixed}
    for end, number in zip(problem.calls[: problem.entering], choice, strict=False):
        layouts[end.results[0]] = end.variants[number].results[0]
    for value in graph.inputs:
        made.enter(value, layouts[value.name], Value(value.name, physical(value, layouts[value.name]), value.dtype))
    for call, asked, number in zip(calls_of(graph), problem.calls[problem.inner], choice[problem.inner], strict=True):
        made.call(call, asked, number)
    return made.finished(outputs_of(problem, choice))


def rewriting(value: Value, source: Layout, target: Layout) -> Graph:
    """The layout operators that take a value from one layout to another, as a graph of one input and one output.

    Raises LayoutproofError where no such rewrite is known.
    """
    made = _Planned(Graph("rewrite", (value,), (), (), (value.name,)), {(value.name, target): source})
    made.enter(value, source, Value(value.name, physical(value, source), value.dtype))
    return made.finished(((value.name, target),)).new


def outputs_of(problem: Problem, choice: Choice) -> tuple[tuple[str, Layout], ...]:
    """The outputs of a choice, in order: roots, each with the layout that it goes out in."""
    ends = iter(zip(problem.calls, choice, strict=True))
    freed = iter(list(ends)[problem.inner.stop :])
    found = []
    for name, layout in problem.outputs:
        if layout is None:
            end, number = next(freed)
            layout = end.variants[number].operands[0]
        found.append((name, layout))
    return tuple(found)


@dataclass(slots=True)
class _Planned:
    """The new graph on its way. `starts` says from which layout the rewrite of a value to another starts."""

    graph: Graph
    starts: Mapping[tuple[str, Layout], Layout]
    values: Mapping[str, Value] = field(init=False)
    data: Mapping[str, Constant] = field(init=False)
    taken: set[str] = field(init=False)
    stored: dict[tuple[str, Layout], Value] = field(init=False, default_factory=dict)
    home: dict[str, Layout] = field(init=False, default_factory=dict)
    places: dict[str, Place] = field(init=False, default_factory=dict)
    constants: list[Constant] = field(init=False, default_factory=list)
    steps: list[Step] = field(init=False, default_factory=list)
    schedules: dict[str, Steps] = field(init=False, default_factory=dict)
    functions: dict[tuple[PrimFunc, Variant], PrimFunc] = field(init=False, default_factory=dict)
    names: dict[str, PrimFunc] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.values = self.graph.by_name()
        self.data = {constant.value.name: constant for constant in self.graph.constants}
        self.taken = {value.name for value in self.graph.inputs}

    def enter(self, old: Value, layout: Layout, new: Value) -> None:
        """A value that is made in a layout."""
        self.home.setdefault(old.name, layout)
        self.stored[old.name, layout] = new
        self.places[new.name] = Place(old.name, map_of_layout(layout), held(old, layout))

    def call(self, call: Call, asked: PlannedCall, number: int) -> None:
        """A call in a variant, with the rewrites that its operands need."""
        variant, own = asked.variants[number], asked.own[number]
        operands = tuple(
            self.value(name, layout).name for name, layout in zip(asked.operands, variant.operands, strict=True)
        )
        results = []
        for old, layout in zip(call.results, variant.results, strict=True):
            results.append(Value(self.fresh(old.name), physical(old, layout), old.dtype))
            self.enter(old, layout, results[-1])
        self.steps.append(Call(tuple(results), self.function(call.function, own), operands))

    def value(self, name: str, layout: Layout) -> Value:
        """An old value in a layout, rewritten where it is not there yet."""
        known = self.stored.get((name, layout))
        if known is None and name not in self.data and (name, layout) not in self.starts:
            # A value with padding that holds a number is read as one without a claim.
            made = [self.home[name], *(target for other, target in self.starts if other == name)]
            known = self.value(name, next(each for each in made if implies(each, layout)))
        if known is not None:
            return known
        old = self.values[name]
        if name in self.data:
            new = Value(self.fresh(name), physical(old, layout), old.dtype)
            pad = pad_of(layout)
            array = map_of_layout(layout).map_array(self.data[name].data, new.shape, pad if pad is not None else 0)
            self.constants.append(Constant(new, np.asarray(array, order="C")))
            self.enter(old, layout, new)
            return new
        return self.rewritten(old, self.starts[name, layout], layout)

    def rewritten(self, old: Value, source: Layout, target: Layout) -> Value:
        """The value in another layout: cropped of what padding it has, moved, padded again."""
        current, index_map = self.value(old.name, source), map_of_layout(source)
        filled, wanted = (filled_shape(map_of_layout(layout), old.shape) for layout in (source, target))
        # Padding moves along: a map that is right for the elements alone may be no bijection.
        moved = None if filled is None else between(filled, source, target)
        if filled is None or wanted is None or moved is None:
            raise error(codes.NO_PLAN, f"no rewrite of {old} from `{source}` to `{target}` is known")
        refilled = pad_of(target) is not None and repr(pad_of(target)) != repr(pad_of(source))
        kept, last = held(old, source), held(old, target)
        if filled != wanted or refilled:
            # By way of the plain layout: only there padding can be taken off and put on.
            identity = IndexMap.identity(len(old.shape))
            if bare(source) != plain(len(old.shape)):
                back = inverse_of(index_map, filled)
                assert back is not None  # the map is a bijection of that box
                current = self.step(
                    LayoutTransform(self.made(old, filled), current.name, back), Place(old.name, identity, kept)
                )
            if filled != old.shape:
                current = self.step(
                    Crop(self.made(old, old.shape), current.name, (0,) * len(filled), old.shape),
                    Place(old.name, identity),
                )
            if wanted != old.shape:
                widths = tuple((0, after - before) for before, after in zip(old.shape, wanted, strict=True))
                value = last if last is not None else Undef(old.dtype)
                current = self.step(
                    Pad(self.made(old, wanted), current.name, widths, value), Place(old.name, identity, last)
                )
            moved = map_of_layout(target)
        if target != plain(len(old.shape)) or (filled == wanted and not refilled):
            made = self.made(old, physical(old, target))
            current = self.step(
                LayoutTransform(made, current.name, moved), Place(old.name, map_of_layout(target), last)
            )
        self.enter(old, target, current)
        return current

    def made(self, old: Value, shape: tuple[int, ...]) -> Value:
        """A new value for an old one."""
        return Value(self.fresh(old.name), shape, old.dtype)

    def step(self, step: LayoutTransform | Pad | Crop, place: Place) -> Value:
        """A step, and where the old value lies in what it makes."""
        self.steps.append(step)
        self.places[step.result.name] = place
        return step.result

    def fresh(self, name: str) -> str:
        """A name that no value has."""
        found = fresh(name, self.taken)
        self.taken.add(found)
        return found

    def function(self, func: PrimFunc, variant: Variant) -> PrimFunc:
        """The function in the layouts of a variant, under a name that stands for it alone."""
        key = (func, variant)
        if key not in self.functions:
            schedule = schedule_of(func, variant)
            made = self.names.get(func.name)
            name = func.name if made is None else fresh(func.name, set(self.names))
            new = replace(schedule.func, name=name)
            self.names[name] = new
            self.schedules[name] = schedule
            self.functions[key] = new
        return self.functions[key]

    def finished(self, asked: tuple[tuple[str, Layout], ...]) -> GraphRewrite:
        """The new graph with its witness."""
        outputs = tuple(self.value(name, layout).name for name, layout in asked)
        inputs = tuple(self.stored[value.name, self.home[value.name]] for value in self.graph.inputs)
        new = Graph(self.graph.name, inputs, tuple(self.constants), tuple(self.steps), outputs)
        return GraphRewrite(self.graph, new, self.places, self.schedules)


def held(value: Value, layout: Layout) -> Expr | None:
    """What a value's padding holds in a layout, as a constant of its type; None without a claim."""
    pad = pad_of(layout)
    return None if pad is None else scalar(pad, value.dtype)
