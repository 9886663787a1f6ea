"""Planning a graph: layouts for some operators are given, the others follow, and the remaining rewrites cost least.

A variant that cannot be proved is dropped, and the choice is made again.

Sources: Relax's issue `relax-layout-transformation`, "Minimize Layout Rewrite Cost in Graph"; what is given is like
upstream's ConvertLayout dictionary, by the names of arrays instead of strings with a meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from layoutproof.graph import codes
from layoutproof.graph.builder import MapLike, map_of
from layoutproof.graph.flow.layout_flow import NoFlow
from layoutproof.graph.model.graph import Call, Graph, is_frozen, number_in, shape_of, signature_of
from layoutproof.graph.model.graph_witness import GraphRewrite, Interface
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.planning.apply import planned
from layoutproof.graph.planning.array_layouts import Layout, PadNumber, holding, pad_of, settled
from layoutproof.graph.planning.contracted import computing, schedule_of
from layoutproof.graph.planning.costs import CostOf, bytes_moved
from layoutproof.graph.planning.explained import Explained, Remaining
from layoutproof.graph.planning.formulation import Asked, Ends, ends_of, interface_of, problem_of
from layoutproof.graph.planning.optimiser import cheapest, greedy
from layoutproof.graph.planning.planning_problem import Choice, Problem, Variant, cost_of, rewrites_of
from layoutproof.graph.planning.variants import Callback, Candidates, calls_of, operator_name, plain_variant, variant_of
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import walk
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.report import Report
from layoutproof.verify.verdict.verdict import Verdict


def unproved(candidates: Candidates, problem: Problem, choice: Choice) -> Iterator[tuple[Call, Variant, str]]:
    """The calls, frozen ones aside, whose chosen variant is not proved, each once, with the reason."""
    seen: set[tuple[int, Variant]] = set()
    for call, asked, number in zip(
        calls_of(candidates.graph), problem.calls[problem.inner], choice[problem.inner], strict=True
    ):
        variant = asked.own[number]
        key = (id(call.function), variant)
        if number == 0 or call.results[0].name in candidates.frozen or key in seen:
            continue
        seen.add(key)
        try:
            schedule_of(call.function, variant)
        except NoFlow as stop:
            yield call, variant, stop.reason
        except IllegalTransform as stop:
            yield call, variant, f"it is not proved to do the same then: {stop.diagnostics[0].message}"


Frozen = Mapping[str, Mapping[str, MapLike | tuple[MapLike, PadNumber]]]
"""By an operator's name (its function's, without a number at the end), a map for some of its arrays; others follow.

A map with a number is a contract: padding of an operand has to hold the number, padding of a result will. Without one
it may not be read.
"""


@dataclass(frozen=True, repr=False)
class Plan(Report):
    """What was planned for a graph. It is proved that no choice among the candidates costs less than `least`; `cut`
    says how many more variants a call would have had; `refused` are calls that could not be given the layouts that were
    asked for, with the reason.
    """

    graph: Graph
    problem: Problem
    choice: Choice
    least: int
    candidates: Candidates = field(repr=False)
    refused: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    ends: Ends = field(default_factory=Ends, repr=False)

    def __repr__(self) -> str:
        rewrites = counted(self.count(self.choice), "layout rewrite", "layout rewrites")
        return f"<plan of {self.graph.name}: {rewrites}, unplanned {self.count(self.unplanned)}>"

    @cached_property
    def cost(self) -> int:
        """The cost of rewrites and filled padding: bytes moved where no table has one."""
        return cost_of(self.problem, self.choice)

    @property
    def optimal(self) -> bool:
        """Whether it is proved that no choice among the candidates costs less."""
        return self.cost == self.least

    @cached_property
    def cut(self) -> Mapping[str, int]:
        """By calls, how many variants were left out because there were too many to choose from."""
        return self.candidates.left_out()

    @cached_property
    def interface(self) -> Interface:
        """How the planned graph is called: the layouts of its inputs and outputs, given or chosen."""
        return interface_of(self.problem, self.choice, self.candidates, [name for name, _ in self.ends.outputs])

    @property
    def contracts(self) -> tuple[str, ...]:
        """What the padding of planned results holds, by call, and why it is filled where it is."""
        found = []
        for call, number in zip(self.problem.calls, self.choice, strict=True):
            variant = call.variants[number]
            for name, layout in zip(call.results, variant.results, strict=True):
                if pad_of(layout) is not None:
                    how = "computes" if variant.through else "fills"
                    stop = self.candidates.stops.get((name, name, layout))
                    found.append(
                        f"{name} {how} its padding: {pad_of(layout)!r}"
                        + (f", since {stop}" if stop and not variant.through else "")
                    )
        return tuple(found)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Preconditions of the graph's own functions on operands, which neither the plan nor its proof checks."""
        found = {
            f"{call.results[0].name} takes for granted: {expr_text(node.condition, 'plain')}": None
            for call in calls_of(self.graph)
            for node in walk(call.function.body)
            if isinstance(node, Assume)
        }
        return tuple(found)

    @cached_property
    def unplanned(self) -> Choice:
        """The choice without planning: what is frozen in its layouts, everything else as it is."""
        return [0] * len(self.problem.calls)

    @cached_property
    def greedy(self) -> Choice:
        """The choice of a greedy walk."""
        return greedy(self.problem)

    def count(self, choice: Choice) -> int:
        """The rewrites that a choice leaves."""
        return sum(1 for _ in rewrites_of(self.problem, choice))

    @cached_property
    def rewrite(self) -> GraphRewrite:
        """The planned graph with its witness. Raises IllegalTransform where an operator's layouts are not proved."""
        return planned(self.graph, self.problem, self.choice)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What is proved of the planned graph."""
        return prove_graph_rewrite(self.rewrite, self.interface)

    @property
    def asked(self) -> tuple[Verdict, ...]:
        """What is proved of the planned graph."""
        return self.verdicts

    @cached_property
    def remaining(self) -> tuple[Remaining, ...]:
        """The rewrites that are left, the largest first."""
        return Explained(self.problem, self.choice, self.candidates).remaining()


def plan(
    graph: Graph,
    frozen: Frozen,
    *,
    callbacks: Mapping[str, Callback] | None = None,
    calls: Frozen | None = None,
    inputs: Mapping[str, Asked] | None = None,
    outputs: Sequence[tuple[str, Asked | None]] | None = None,
    cost: CostOf = bytes_moved,
) -> Plan:
    """The plan of least cost for a graph. Functions that are marked as frozen keep their layouts; pads and crops are
    planned as calls.

    `callbacks` are asked, by operators' names, how layouts go through these operators. `calls` gives maps to single
    calls, each by the name of its first result; they come before those of the call's operator. `inputs` come in other
    layouts than they do: in a given one, or in one that the planner chooses (`FREE`); their padding is not read.
    `outputs` are what goes out instead of the graph's outputs, each of them at least once, in a given layout,
    one that is chosen, or as it is (None): a value may go out in two layouts. `cost` is what a rewrite costs.

    Raises LayoutproofError for names that no operator, array or value has, and for maps that do not fit.
    """
    require_graph(graph)
    ends = ends_of(graph, inputs if inputs is not None else {}, outputs)
    held, refused, filled = _held(graph, frozen, calls if calls is not None else {})
    candidates = Candidates(graph, held, callbacks if callbacks is not None else {}, ends.stated())
    candidates.fill(filled)
    refused |= candidates.refused
    candidates.spread()
    problem = problem_of(candidates, ends, cost)
    found = cheapest(problem)
    while banned := list(unproved(candidates, problem, found.choice)):
        for call, variant, reason in banned:
            candidates.ban(call, variant, reason)
        problem = problem_of(candidates, ends, cost)
        found = cheapest(problem)
    return Plan(graph, problem, found.choice, found.least, candidates, refused, ends)


def _held(graph: Graph, frozen: Frozen, single: Frozen) -> tuple[dict[str, Variant], dict[str, str], dict[str, str]]:
    """The variants of calls with given layouts, why some could not have them, and why some fill their padding."""
    held: dict[str, Variant] = {}
    refused, filled = dict[str, str](), dict[str, str]()
    for call in calls_of(graph):
        result = call.results[0].name
        maps = single.get(result, frozen.get(operator_name(call)))
        if maps is None:
            if is_frozen(call.function):
                held[result] = plain_variant(call.function)
            continue
        try:
            held[result], why = computing(call.function, _frozen_variant(call, maps))
            filled |= {} if why is None else {result: why}
        except NoFlow as stop:
            refused[result] = stop.reason
            held[result] = plain_variant(call.function)
    _check_names("is of an operator", frozen, {operator_name(call) for call in calls_of(graph)})
    _check_names("makes", single, {call.results[0].name for call in calls_of(graph)})
    return held, refused, filled


def _check_names(what: str, asked: Iterable[str], known: Collection[str]) -> None:
    unknown = sorted(set(asked) - set(known))
    if unknown:
        there = f"available: {', '.join(sorted(known))}"
        raise error(codes.LAYOUT_NAMES, f"no call {what} {unknown[0]!r}", help=there)


def _frozen_variant(call: Call, given: Mapping[str, MapLike | tuple[MapLike, PadNumber]]) -> Variant:
    """The variant of an annotation: layouts that follow from its maps, with its claims about padding. Raises NoFlow."""
    signature = signature_of(call.function)
    buffers = {buffer.name: buffer for buffer in (*signature.operands, *signature.results)}
    maps: dict[str, IndexMap] = {}
    pads: dict[str, PadNumber] = {}
    for name, asked in given.items():
        if name not in buffers:
            raise error(
                codes.LAYOUT_NAMES,
                f"{call.function.name} has no array {name!r}",
                help=f"available: {', '.join(buffers)}",
            )
        index_map, pad = asked if isinstance(asked, tuple) else (asked, None)
        if pad is not None:
            dtype = buffers[name].dtype
            number = None if isinstance(pad, bool) and not dtype.is_bool else number_in(pad, dtype)
            if number is None:
                raise error(codes.PAD_SCALAR, f"padding of {name} of {call.function.name} cannot hold {pad!r}")
            pads[name] = number
        maps[name] = map_of(index_map, buffers[name].rank)
    found = variant_of(call.function, maps)

    def said(held: Sequence[Buffer], layouts: Sequence[Layout]) -> tuple[Layout, ...]:
        pairs = zip(held, layouts, strict=True)
        return tuple(settled(holding(layout, pads.get(buffer.name)), shape_of(buffer)) for buffer, layout in pairs)

    return replace(
        found, operands=said(signature.operands, found.operands), results=said(signature.results, found.results)
    )
