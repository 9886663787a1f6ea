"""A graph and its plan run on the same made-up data, with a compiled kernel for each function: are they equal, and how fast?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from layoutproof.cli import codes
from layoutproof.cli.made_up import MOST_BYTES, made_up_array
from layoutproof.graph.kernels import Kernels
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.planning.plan import Plan
from layoutproof.graph.run import run_graph
from layoutproof.ir.diagnostic import error
from layoutproof.ir.interp.run import same_values
from layoutproof.lowering.schedule import Schedule

_RUNS = 5
_SECONDS = 2.0
"""A graph is run so often, or until it has taken so long; the shortest run counts."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """An output of the graph as it was given, and how many of its cells the planned graph has otherwise."""

    name: str
    cells: int
    differing: int


@dataclass(frozen=True, slots=True)
class GraphTrial:
    """How the planned graph compares. Seconds are of one run, kernels built: of the graph as it was given, of the one in which just the
    operators that were asked for have their layouts, with all the rewrites that this takes, and of the planned one.
    """

    outputs: tuple[OutputComparison, ...]
    given_seconds: float
    unplanned_seconds: float
    planned_seconds: float

    @property
    def equal(self) -> bool:
        """Whether no cell differs."""
        return not any(output.differing for output in self.outputs)


def compare_graphs(graph: Graph, plan: Plan, seed: int) -> GraphTrial:
    """Run all three. Raises LayoutproofError where data would take too much memory, and where no kernel can be built."""
    size = sum(value.dtype.bytes * int(np.prod(value.shape)) for value in graph.values())
    if size > MOST_BYTES:
        raise error(codes.TOO_LARGE, f"{graph.name}: its values take {size / (1 << 30):,.1f} GiB; runs go up to {MOST_BYTES >> 30} GiB")
    generator = np.random.default_rng(seed)
    inputs = {value.name: made_up_array(value.shape, value.dtype, generator) for value in graph.inputs}
    wanted, given_seconds = _timed(graph, {}, inputs)
    others, seconds = list[list[Array]](), list[float]()
    for each in (replace(plan, choice=plan.unplanned), plan):
        made, shortest = _timed(each.rewrite.new, each.rewrite.schedules, each.interface.given(inputs))
        others.append([array for _, array in each.interface.taken(plan.graph, made)])
        seconds.append(shortest)
    outputs = tuple(
        OutputComparison(name, array.size, int(np.count_nonzero(~(same_values(array, a) & same_values(array, b)))))
        for name, array, a, b in zip(graph.outputs, wanted, *others, strict=True)
    )
    return GraphTrial(outputs, given_seconds, *seconds)


def _timed(graph: Graph, schedules: Mapping[str, Schedule], inputs: Mapping[str, Array]) -> tuple[tuple[Array, ...], float]:
    """The outputs of a graph, and the seconds of its shortest run."""
    kernels = Kernels(schedules)
    outputs = run_graph(graph, inputs, runner=kernels, mover=kernels.move)
    shortest, begin = float("inf"), perf_counter()
    for _ in range(_RUNS):
        start = perf_counter()
        run_graph(graph, inputs, runner=kernels, mover=kernels.move)
        shortest = min(shortest, perf_counter() - start)
        if perf_counter() - begin > _SECONDS:
            break
    return outputs, shortest
