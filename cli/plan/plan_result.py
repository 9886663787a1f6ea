"""The results of `plan`, as plain objects that renderers read: the layout rewrites in the planned graph, and the
comparison of both graphs on the same random inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from pathlib import Path
from time import perf_counter

import numpy as np

from layoutproof.cli import codes
from layoutproof.cli.plan.plan_layouts import Asked
from layoutproof.cli.plan.plan_options import Broken, Left, Limit, broken_of
from layoutproof.cli.random_inputs import MOST_BYTES, random_array
from layoutproof.graph.model.graph import Array, Call, Graph, Value, number_of
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
from layoutproof.graph.planning.array_layouts import Layout, bare, is_plain, layout_of, pad_of
from layoutproof.graph.planning.costs import MeasuredCosts, bytes_moved
from layoutproof.graph.planning.explained import Remaining
from layoutproof.graph.planning.formulation import padding_of_ends
from layoutproof.graph.planning.planner import Plan
from layoutproof.graph.planning.planning_problem import Choice, rewrites_of
from layoutproof.graph.planning.variants import calls_of, operator_name
from layoutproof.graph.rewrite.fold import Folding
from layoutproof.graph.rewrite.hoist_rewrites import Hoisting
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.importers.onnx.optional_packages import PeerRun
from layoutproof.ir.diagnostic import error
from layoutproof.ir.interp.run import same_values
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Moved:
    """An old value that is rewritten, from which layout to which, by a chain of steps that takes `first` and makes
    `made`.
    """

    value: str
    source: Layout
    target: Layout
    first: Value
    made: tuple[Value, ...]

    @property
    def bytes(self) -> int:
        """The bytes read at the beginning and written at the end."""
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
    """The name of a value, followed by its operator if the name does not contain it."""
    made = graph.producers().get(value)
    if not isinstance(made, Call) or value.startswith(operator_name(made)):
        return value
    return f"{value} ({operator_name(made)})"


_RUNS = 5
_SECONDS = 2.0
"""A graph is run so often, or until it has taken so long; the shortest run counts."""

TOLERANCE = 1e-3
"""How far from onnxruntime's an output may be, as a part of its largest element."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """An output of the given graph, and the number of cells that differ in the planned graph."""

    name: str
    cells: int
    differing: int


@dataclass(frozen=True, slots=True)
class PeerComparison:
    """The largest difference of any output from onnxruntime's, relative to that output's largest element; and the
    seconds of its run.
    """

    version: str
    difference: float
    seconds: float

    @property
    def close(self) -> bool:
        """Whether another order of sums explains the difference."""
        return self.difference <= TOLERANCE


@dataclass(frozen=True, slots=True)
class GraphTrial:
    """The comparison with the planned graph. Seconds are of one run, without builds: of the given graph, of the one in
    which only the requested operators have their layouts, with all rewrites that this takes, and of the planned one.
    """

    outputs: tuple[OutputComparison, ...]
    given_seconds: float
    unplanned_seconds: float
    planned_seconds: float
    peer: PeerComparison | None = None

    @property
    def equal(self) -> bool:
        """Whether no cell differs, and every output is close to onnxruntime's."""
        return not any(output.differing for output in self.outputs) and (self.peer is None or self.peer.close)


def compare_graphs(
    graph: Graph, plan: Plan, rewrite: GraphRewrite, seed: int, peer: Callable[[Sequence[Array]], PeerRun] | None = None
) -> GraphTrial:
    """Run all three, and `peer`, if there is one, on the same inputs.

    Raises LayoutproofError for too much data, and if no kernel can be built.
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
    """Run a graph and its rewritten form. Raises as `compare_graphs` does."""
    inputs = _inputs(graph, seed)
    kernels = Kernels()
    wanted = run_graph(graph, inputs, runner=kernels, mover=kernels.move)
    made = interface.taken(graph, run_graph(new, interface.given(inputs), runner=kernels, mover=kernels.move))
    held = dict(zip(graph.outputs, wanted, strict=True))
    return tuple(
        OutputComparison(name, array.size, int(np.count_nonzero(~same_values(held[name], array))))
        for name, array in made
    )


def _inputs(graph: Graph, seed: int) -> dict[str, Array]:
    """Random inputs. Raises LayoutproofError if a run would take too much memory."""
    size = sum(value.dtype.bytes * int(np.prod(value.shape)) for value in graph.values())
    if size > MOST_BYTES:
        raise error(
            codes.TOO_LARGE,
            f"{graph.name}: its values take {size / (1 << 30):,.1f} GiB; runs go up to {MOST_BYTES >> 30} GiB",
        )
    generator = np.random.default_rng(seed)
    return {value.name: random_array(value.shape, value.dtype, generator) for value in graph.inputs}


def compared(ours: Sequence[Array], peer: PeerRun) -> PeerComparison:
    """The distance of outputs from another tool's; infinite for different shapes."""
    farthest = 0.0
    for mine, theirs in zip(ours, peer.outputs, strict=False):
        farthest = max(farthest, _distance(mine, theirs) if mine.shape == theirs.shape else inf)
    return PeerComparison(peer.version, farthest if len(ours) == len(peer.outputs) else inf, peer.seconds)


def _distance(mine: Array, theirs: Array) -> float:
    """The largest difference of two elements, relative to the largest one; non-finite numbers equal themselves."""
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


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan: of which file and graph, the request, hoisting and folding, and the proofs about the planned graph.

    `absorbed`: the planned graph with rewrites folded into calls, on request. `refused`: an operator whose layouts were
    not proved; there is no planned graph then. `written`: the files made; `seconds`: the duration of each stage.
    """

    source: str
    graph: Graph
    asked: Asked
    hoisting: Hoisting
    folding: Folding
    plan: Plan
    greedy: bool
    costs: MeasuredCosts | None = None
    limits: tuple[Limit, ...] = ()
    absorbed: GraphRewrite | None = None
    verdicts: tuple[Verdict, ...] = ()
    refused: IllegalTransform | None = None
    trial: GraphTrial | None = None
    written: tuple[Path, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())

    @property
    def rewrite(self) -> GraphRewrite:
        """The planned graph with its witness. Raises IllegalTransform if an operator's layouts are not proved."""
        return self.absorbed if self.absorbed is not None else self.plan.rewrite

    @property
    def padding_of_ends(self) -> tuple[str, ...]:
        """The padding of inputs and outputs that have another layout, proved with their values."""
        return () if self.refused is not None else padding_of_ends(self.rewrite, self.plan.interface)

    @property
    def claims(self) -> tuple[Verdict, ...]:
        """All claims, proved or not: on hoisting, folds and values, or on the refused operator."""
        hoists = (verdict for hoisted in self.hoisting.made for verdict in hoisted.verdicts)
        folds = (verdict for fold in self.folding.made for verdict in fold.verdicts)
        return (*hoists, *folds, *(self.refused.verdicts if self.refused is not None else self.verdicts))

    @property
    def proof(self) -> Status:
        """The worst of all claims; different results refute them."""
        if self.trial is not None and not self.trial.equal:
            return Status.REFUTED
        return worst(verdict.status for verdict in self.claims)

    @property
    def status(self) -> Status:
        """The status of the run: the worst of all claims; refuted if a limit is exceeded."""
        return worst([self.proof, *([Status.REFUTED] if self.broken else [])])

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The exceeded limits."""
        return broken_of(self.limits, self.left)

    def moved(self, choice: Choice) -> Left:
        """What a choice of the planner leaves."""
        plan = self.plan
        values = plan.candidates.values
        own = sum(call.cost(number) for call, number in zip(plan.problem.calls, choice, strict=True))
        found = [
            bytes_moved(values[name], source, target) for name, source, target in rewrites_of(plan.problem, choice)
        ]
        return Left(len(found), sum(found) + own)

    @property
    def left(self) -> Left:
        """The rewrites that remain."""
        planned = self.moved(self.plan.choice)
        if self.absorbed is None:
            return planned
        before, after = (list(moves_in(rewrite)) for rewrite in (self.plan.rewrite, self.absorbed))
        return Left(len(after), planned.bytes - sum(each.bytes for each in before) + sum(each.bytes for each in after))

    @property
    def remaining(self) -> tuple[Remaining, ...]:
        """The rewrites that remain, the largest first."""
        if self.absorbed is None:
            return self.plan.remaining
        there = {(each.value, each.target) for each in moves_in(self.absorbed)}
        return tuple(each for each in self.plan.remaining if (each.value, each.target) in there)

    @property
    def kept(self) -> tuple[Moved, ...]:
        """What folding into calls left of rewrites: pads and crops, which no call absorbs."""
        if self.absorbed is None:
            return ()
        known = {(each.value, each.target) for each in self.plan.remaining}
        return tuple(each for each in moves_in(self.absorbed) if (each.value, each.target) not in known)

    @property
    def calls(self) -> int:
        """The number of planned calls."""
        return len(self.plan.problem.calls[self.plan.problem.inner])

    def layout_name(self, layout: Layout) -> str:
        """A layout's name: as requested, else by its stored indices."""
        known, pad = bare(layout), pad_of(layout)
        name = "plain" if is_plain(known) else self.asked.names.get(known, known.partition(":")[2].strip())
        return name if pad is None else f"{name} with {pad} in its padding"

    @property
    def operators(self) -> Iterator[tuple[str, Layout, int]]:
        """Each operator with the layouts of its calls' first results, and the number of calls, in the order of the
        graph.
        """
        found: Counter[tuple[str, Layout]] = Counter()
        inner = self.plan.problem.inner
        for call, asked, number in zip(
            calls_of(self.plan.graph), self.plan.problem.calls[inner], self.plan.choice[inner], strict=True
        ):
            found[operator_name(call), asked.own[number].results[0]] += 1
        order = dict.fromkeys(name for name, _ in found)
        for name in order:
            yield from ((name, layout, number) for (other, layout), number in found.items() if other == name)
