"""What `plan` found, as plain objects that renderers read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from layoutproof.cli.plan_layouts import Asked
from layoutproof.cli.plan_trial import GraphTrial
from layoutproof.graph.fold import Folding
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.candidates import calls_of, operator_name
from layoutproof.graph.planning.layouts import Layout, bare, is_plain, pad_of
from layoutproof.graph.planning.plan import Plan
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.verify.verdict import Status, Verdict, worst


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan: of which file and graph, what was asked, what was folded first, and what is proved of the planned graph.

    `refused` is set where an operator's layouts were not proved: then there is no planned graph. `written` are the files that were made.
    """

    source: str
    graph: Graph
    asked: Asked
    folding: Folding
    plan: Plan
    greedy: bool
    verdicts: tuple[Verdict, ...] = ()
    refused: IllegalTransform | None = None
    trial: GraphTrial | None = None
    written: tuple[Path, ...] = ()

    @property
    def claims(self) -> tuple[Verdict, ...]:
        """All that was proved, or was not: of folds, of values, or of the operator that was refused."""
        folds = tuple(verdict for fold in self.folding.made for verdict in fold.verdicts)
        return (*folds, *(self.refused.verdicts if self.refused is not None else self.verdicts))

    @property
    def status(self) -> Status:
        """The worst of it; results that differ refute what was proved."""
        if self.trial is not None and not self.trial.equal:
            return Status.REFUTED
        return worst(verdict.status for verdict in self.claims)

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
