"""What `plan --planned` found, as a plain object that renderers read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from layoutproof.cli.plan_limits import Broken, Left, Limit, broken_of
from layoutproof.cli.plan_moves import moves_in
from layoutproof.cli.plan_trial import OutputComparison
from layoutproof.graph.fold import Folding
from layoutproof.graph.hoist import Hoisting
from layoutproof.graph.model import Graph
from layoutproof.graph.witness import GraphRewrite
from layoutproof.verify.verdict import Status, Verdict, worst


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Two graphs, by their files, and what is proved of the second one. `rewrite` is None where its calls could not be paired.

    `outputs` are compared where both were run; `written` are the files that were made, `seconds` how long each stage took.
    """

    source: str
    planned: str
    graph: Graph
    new: Graph
    hoisting: Hoisting
    folding: Folding
    rewrite: GraphRewrite | None
    verdicts: tuple[Verdict, ...]
    limits: tuple[Limit, ...] = ()
    outputs: tuple[OutputComparison, ...] | None = None
    written: tuple[Path, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())

    @property
    def proof(self) -> Status:
        """The worst of all claims; results that differ refute them."""
        if self.outputs is not None and any(output.differing for output in self.outputs):
            return Status.REFUTED
        hoists = (verdict for hoisted in self.hoisting.made for verdict in hoisted.verdicts)
        folds = (verdict for fold in self.folding.made for verdict in fold.verdicts)
        return worst(verdict.status for verdict in (*hoists, *folds, *self.verdicts))

    @property
    def status(self) -> Status:
        """What the run ends with: the worst of all claims; refuted where a limit is not kept."""
        return worst([self.proof, *([Status.REFUTED] if self.broken else [])])

    @property
    def left(self) -> Left | None:
        """The rewrites that the planned graph has; None where nothing is known of what it moves."""
        if self.rewrite is None:
            return None
        moves = list(moves_in(self.rewrite))
        return Left(len(moves), sum(each.bytes for each in moves))

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The limits that are not kept."""
        return () if self.left is None else broken_of(self.limits, self.left)
