"""`plan --planned`: nothing is planned; a graph that is there, say one that was written before, is proved to be the given one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from layoutproof.cli.plan.layouts import asked_of
from layoutproof.cli.plan.limits import Broken, Left, Limit, broken_of
from layoutproof.cli.plan.moves import moves_in
from layoutproof.cli.plan.planning import read_graph
from layoutproof.cli.plan.request import Request
from layoutproof.cli.plan.trial import OutputComparison, compare_outputs
from layoutproof.cli.progress import Advance
from layoutproof.graph import codes
from layoutproof.graph.fold import Folding, fold
from layoutproof.graph.hoist import Hoisting, hoisting
from layoutproof.graph.maps import box_of
from layoutproof.graph.matching import matched
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.ends import Free
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.text.files import load_graph
from layoutproof.graph.witness import AS_IT_WAS, GraphRewrite, Interface
from layoutproof.ir.diagnostic import error
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.verdict.verdict import Status, Verdict, worst


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


def checked(request: Request, advance: Advance) -> tuple[CheckReport, Interface]:
    """What is proved of the planned graph, and how it is called. Raises LayoutproofError for bad input."""
    asked = request.asked
    assert asked.planned is not None  # else there is nothing to check
    advance("reading")
    given, new = read_graph(asked.graph, request.sizes), load_graph(asked.planned)
    advance("folding")
    hoisted = hoisting(given)
    folding = fold(hoisted.new)
    interface = _interface(request, folding.new)
    advance("proving")
    found = matched(folding.new, new, interface)
    rewrite = None if isinstance(found, Verdict) else found
    verdicts = (found,) if isinstance(found, Verdict) else prove_graph_rewrite(found, interface)
    report = CheckReport(str(asked.graph), str(asked.planned), given, new, hoisted, folding, rewrite, verdicts, asked.limits)
    if asked.run:
        advance("running")
        _check_alike(folding.new, new, interface)
        report = replace(report, outputs=compare_outputs(given, new, interface, asked.seed))
    return report, interface


def _interface(request: Request, graph: Graph) -> Interface:
    """How the planned graph is called: `--free` says so. Raises LayoutproofError for an end that is free without a layout."""
    asked = asked_of(graph, request.wishes, request.file_wishes)
    free = [*asked.inputs.items(), *((graph.outputs[number], each) for number, each in asked.outputs.items())]
    for name, each in free:
        if isinstance(each, Free):
            raise error(codes.LAYOUT_NAMES, f"--free {name}: with --planned, say in which layout: --free {name}=NCHW8c")
    values = graph.by_name()
    inputs = {name: each for name, each in asked.inputs.items() if isinstance(each, IndexMap)}
    outputs = []
    for number, name in enumerate(graph.outputs):
        stored = asked.outputs.get(number)
        outputs.append((name, stored if isinstance(stored, IndexMap) else IndexMap.identity(len(values[name].shape))))
    return Interface(inputs, tuple(outputs)) if free else AS_IT_WAS


def _check_alike(old: Graph, new: Graph, interface: Interface) -> None:
    """Raise LayoutproofError where the planned graph cannot be called as the given one is: then there is nothing to compare."""
    maps = interface.inputs
    wanted = [(v.name, box_of(maps[v.name], v.shape) if v.name in maps else v.shape, v.dtype) for v in old.inputs]
    if wanted != [(v.name, v.shape, v.dtype) for v in new.inputs] or len(new.outputs) != len(old.outputs):
        raise error(codes.RUN_INPUT, "the planned graph has other inputs or outputs than the given one, so not both run on the same data")
