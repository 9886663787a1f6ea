"""A graph and its plan run on the same made-up data, with a compiled kernel for each function: are they equal, and how fast?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np

from layoutproof.cli import codes
from layoutproof.cli.trial.made_up import MOST_BYTES, made_up_array
from layoutproof.graph.kernels import Kernels
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.planning.plan import Plan
from layoutproof.graph.run import run_graph
from layoutproof.graph.witness import GraphRewrite, Interface
from layoutproof.importers.onnx.peer import PeerRun
from layoutproof.ir.diagnostic import error
from layoutproof.ir.interp.run import same_values

_RUNS = 5
_SECONDS = 2.0
"""A graph is run so often, or until it has taken so long; the shortest run counts."""

TOLERANCE = 1e-3
"""How far from onnxruntime's an output may be, as a part of its largest element."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """An output of the graph as it was given, and how many of its cells the planned graph has otherwise."""

    name: str
    cells: int
    differing: int


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """The largest difference of any output from onnxruntime's, as a part of that output's largest element; and the seconds of its run."""

    version: str
    difference: float
    seconds: float

    @property
    def close(self) -> bool:
        """Whether that is what sums in another order come to."""
        return self.difference <= TOLERANCE


@dataclass(frozen=True, slots=True)
class GraphTrial:
    """How the planned graph compares. Seconds are of one run, kernels built: of the graph as it was given, of the one in which just the
    operators that were asked for have their layouts, with all the rewrites that this takes, and of the planned one.
    """

    outputs: tuple[OutputComparison, ...]
    given_seconds: float
    unplanned_seconds: float
    planned_seconds: float
    peer: PeerComparison | None = None

    @property
    def equal(self) -> bool:
        """Whether no cell differs, and no output is far from what onnxruntime makes of the model."""
        return not any(output.differing for output in self.outputs) and (self.peer is None or self.peer.close)


def compare_graphs(
    graph: Graph, plan: Plan, rewrite: GraphRewrite, seed: int, peer: Callable[[Sequence[Array]], PeerRun] | None = None
) -> GraphTrial:
    """Run all three, `rewrite` being what is made of the plan; and `peer`, where there is one, on the inputs in order.

    Raises LayoutproofError where data would take too much memory, and where no kernel can be built.
    """
    inputs = _inputs(graph, seed)
    kernels = Kernels()
    wanted, given_seconds = _timed(graph, kernels, inputs)
    others, seconds = list[list[Array]](), list[float]()
    unplanned = replace(plan, choice=plan.unplanned)
    for each, made_of_it in ((unplanned, unplanned.rewrite), (plan, rewrite)):
        made, shortest = _timed(made_of_it.new, kernels.also(made_of_it.schedules), each.interface.given(inputs))
        others.append([array for _, array in each.interface.taken(plan.graph, made)])
        seconds.append(shortest)
    outputs = tuple(
        OutputComparison(name, array.size, int(np.count_nonzero(~(same_values(array, a) & same_values(array, b)))))
        for name, array, a, b in zip(graph.outputs, wanted, *others, strict=True)
    )
    beside = None if peer is None else compared(wanted, peer([inputs[value.name] for value in graph.inputs]))
    unplanned_seconds, planned_seconds = seconds
    return GraphTrial(outputs, given_seconds, unplanned_seconds, planned_seconds, beside)


def compare_outputs(graph: Graph, new: Graph, interface: Interface, seed: int) -> tuple[OutputComparison, ...]:
    """Run a graph and one that is to do the same. Raises as `compare_graphs` does."""
    inputs = _inputs(graph, seed)
    kernels = Kernels()
    wanted = run_graph(graph, inputs, runner=kernels, mover=kernels.move)
    made = interface.taken(graph, run_graph(new, interface.given(inputs), runner=kernels, mover=kernels.move))
    held = dict(zip(graph.outputs, wanted, strict=True))
    return tuple(OutputComparison(name, array.size, int(np.count_nonzero(~same_values(held[name], array)))) for name, array in made)


def _inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Made-up arrays for the inputs. Raises LayoutproofError where a run would take too much memory."""
    size = sum(value.dtype.bytes * int(np.prod(value.shape)) for value in graph.values())
    if size > MOST_BYTES:
        raise error(codes.TOO_LARGE, f"{graph.name}: its values take {size / (1 << 30):,.1f} GiB; runs go up to {MOST_BYTES >> 30} GiB")
    generator = np.random.default_rng(seed)
    return {value.name: made_up_array(value.shape, value.dtype, generator) for value in graph.inputs}


def compared(ours: Sequence[Array], peer: PeerRun) -> PeerComparison:
    """How far outputs are from those of another tool. Where one of them has another shape, as far as can be."""
    farthest = 0.0
    for mine, theirs in zip(ours, peer.outputs, strict=False):
        farthest = max(farthest, _distance(mine, theirs) if mine.shape == theirs.shape else inf)
    return PeerComparison(peer.version, farthest if len(ours) == len(peer.outputs) else inf, peer.seconds)


def _distance(mine: Array, theirs: Array) -> float:
    """The largest difference of two elements, as a part of the largest one; what is no number counts as equal to its like."""
    a, b = mine.astype(np.float64), theirs.astype(np.float64)
    if a.size == 0:
        return 0.0
    with np.errstate(invalid="ignore"):
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    if not np.isfinite(difference).all():
        return inf
    largest = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
    return float(difference.max()) / largest if largest else inf if difference.any() else 0.0


def _timed(graph: Graph, kernels: Kernels, inputs: Mapping[str, Array]) -> tuple[tuple[Array, ...], float]:
    outputs = run_graph(graph, inputs, runner=kernels, mover=kernels.move)
    shortest, begin = float("inf"), perf_counter()
    for _ in range(_RUNS):
        start = perf_counter()
        run_graph(graph, inputs, runner=kernels, mover=kernels.move)
        shortest = min(shortest, perf_counter() - start)
        if perf_counter() - begin > _SECONDS:
            break
    return outputs, shortest
