"""What `plan` found, as plain objects that renderers read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from layoutproof.cli.plan.layouts import Asked
from layoutproof.cli.plan.limits import Broken, Left, Limit, broken_of
from layoutproof.cli.plan.moves import Moved, moves_in
from layoutproof.cli.plan.trial import GraphTrial
from layoutproof.graph.fold import Folding
from layoutproof.graph.hoist import Hoisting
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.candidates import calls_of, operator_name
from layoutproof.graph.planning.costs import bytes_moved
from layoutproof.graph.planning.ends import padding_of_ends
from layoutproof.graph.planning.explained import Remaining
from layoutproof.graph.planning.layouts import Layout, bare, is_plain, pad_of
from layoutproof.graph.planning.measuring import MeasuredCosts
from layoutproof.graph.planning.plan import Plan
from layoutproof.graph.planning.problem import Choice, rewrites_of
from layoutproof.graph.witness import GraphRewrite
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.verdict import Status, Verdict, worst


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan: of which file and graph, what was asked, what was taken apart and folded first, and what is proved of the planned graph.

    `absorbed` is the planned graph with rewrites folded into calls, where that was asked for. `refused` is set where an operator's layouts
    were not proved: then there is no planned graph. `written` are the files that were made, `seconds` how long each stage took.
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
        """The planned graph with its witness. Raises IllegalTransform where an operator's layouts are not proved."""
        return self.absorbed if self.absorbed is not None else self.plan.rewrite

    @property
    def padding_of_ends(self) -> tuple[str, ...]:
        """What padding of inputs and outputs holds that come or go in another layout; it is proved with their values."""
        return () if self.refused is not None else padding_of_ends(self.rewrite, self.plan.interface)

    @property
    def claims(self) -> tuple[Verdict, ...]:
        """All that was proved, or was not: of functions taken apart, of folds, of values, or of the operator that was refused."""
        hoists = (verdict for hoisted in self.hoisting.made for verdict in hoisted.verdicts)
        folds = (verdict for fold in self.folding.made for verdict in fold.verdicts)
        return (*hoists, *folds, *(self.refused.verdicts if self.refused is not None else self.verdicts))

    @property
    def proof(self) -> Status:
        """The worst of all claims; results that differ refute what was proved."""
        if self.trial is not None and not self.trial.equal:
            return Status.REFUTED
        return worst(verdict.status for verdict in self.claims)

    @property
    def status(self) -> Status:
        """What the run ends with: the worst of all claims; refuted where a limit is not kept."""
        return worst([self.proof, *([Status.REFUTED] if self.broken else [])])

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The limits that the planned graph does not keep."""
        return broken_of(self.limits, self.left)

    def moved(self, choice: Choice) -> Left:
        """What a choice of the planner leaves."""
        plan = self.plan
        values = plan.candidates.values
        own = sum(call.cost(number) for call, number in zip(plan.problem.calls, choice, strict=True))
        found = [bytes_moved(values[name], source, target) for name, source, target in rewrites_of(plan.problem, choice)]
        return Left(len(found), sum(found) + own)

    @property
    def left(self) -> Left:
        """What is left in the end."""
        planned = self.moved(self.plan.choice)
        if self.absorbed is None:
            return planned
        before, after = (list(moves_in(rewrite)) for rewrite in (self.plan.rewrite, self.absorbed))
        return Left(len(after), planned.bytes - sum(each.bytes for each in before) + sum(each.bytes for each in after))

    @property
    def remaining(self) -> tuple[Remaining, ...]:
        """The rewrites that are left in the end, the largest first."""
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
        """How many calls were planned."""
        return len(self.plan.problem.calls[self.plan.problem.inner])

    def layout_name(self, layout: Layout) -> str:
        """How people call a layout: as it was asked for, else by the indices that it stores by."""
        known, pad = bare(layout), pad_of(layout)
        name = "plain" if is_plain(known) else self.asked.names.get(known, known.partition(":")[2].strip())
        return name if pad is None else f"{name} with {pad} in its padding"

    @property
    def operators(self) -> Iterator[tuple[str, Layout, int]]:
        """Each operator with the layouts that its calls' first results have, and how many calls have it, in the order of the graph."""
        found: Counter[tuple[str, Layout]] = Counter()
        inner = self.plan.problem.inner
        for call, asked, number in zip(calls_of(self.plan.graph), self.plan.problem.calls[inner], self.plan.choice[inner], strict=True):
            found[operator_name(call), asked.own[number].results[0]] += 1
        order = dict.fromkeys(name for name, _ in found)
        for name in order:
            yield from ((name, layout, number) for (other, layout), number in found.items() if other == name)
