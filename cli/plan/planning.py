"""What `plan` does: read a graph, fold, plan, prove, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from layoutproof.cli.plan.layouts import asked_of
from layoutproof.cli.plan.report import PlanReport
from layoutproof.cli.plan.request import Request
from layoutproof.cli.plan.trial import compare_graphs
from layoutproof.cli.progress import Advance
from layoutproof.graph import codes
from layoutproof.graph.absorbed import absorbed
from layoutproof.graph.fold import fold
from layoutproof.graph.hoist import hoisting
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.costs import bytes_moved
from layoutproof.graph.planning.plan import plan
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.text.files import load_graph
from layoutproof.graph.witness import GraphRewrite
from layoutproof.importers.onnx import load_model
from layoutproof.importers.onnx.peer import run_with_onnxruntime
from layoutproof.ir.diagnostic import counted, error
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.verdict import Status


def read_graph(path: Path, sizes: Mapping[str, int]) -> Graph:
    """The graph of a file: a model, whose open extents have these sizes, or a text. Raises LayoutproofError."""
    if path.suffix == ".onnx":
        return load_model(path, sizes)
    if path.suffix == ".py":
        return load_graph(path)
    raise error(codes.MODEL_FILE, f"{path}: a graph is read from a file that ends in .onnx (a model) or .py (its text)")


def planned(request: Request, advance: Advance) -> PlanReport:
    """The plan of a graph with all that is proved of it, and its run; or what was refused.

    Raises LayoutproofError for bad input, and where no call gets the layout that was asked for.
    """
    asked_for = request.asked
    advance("reading")
    graph = read_graph(asked_for.graph, request.sizes)
    advance("folding")
    hoisted = hoisting(graph)
    folding = fold(hoisted.new)
    asked = asked_of(folding.new, request.wishes, request.file_wishes)
    advance("planning")
    outputs = [(output, asked.outputs.get(number)) for number, output in enumerate(folding.new.outputs)]
    cost = request.costs if request.costs is not None else bytes_moved
    found = plan(folding.new, {}, calls=asked.calls, inputs=asked.inputs, outputs=outputs if asked.outputs else None, cost=cost)
    if found.refused and set(found.refused) == set(asked.calls):
        call, reason = next(iter(found.refused.items()))
        number = len(found.refused)
        raise error(codes.NO_PLAN, f"of {counted(number, 'call', 'calls')} none can have the layout that was asked for: {call}: {reason}")
    if asked_for.greedy:
        found = replace(found, choice=found.greedy)
    report = PlanReport(str(asked_for.graph), graph, asked, hoisted, folding, found, asked_for.greedy, request.costs, asked_for.limits)
    advance("giving operators their layouts")
    try:
        made = _with_absorbed(found.rewrite, request.absorb) if request.absorb else None
        report = replace(report, absorbed=made)
        _ = report.rewrite
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return replace(report, refused=problem)
    advance("proving")
    report = replace(report, verdicts=found.verdicts if made is None else prove_graph_rewrite(made, found.interface))
    if not asked_for.run or report.proof is not Status.PROVED:
        return report
    advance("running")
    peer = (lambda arrays: run_with_onnxruntime(asked_for.graph, arrays)) if asked_for.onnxruntime else None
    return replace(report, trial=compare_graphs(graph, found, report.rewrite, asked_for.seed, peer))


def _with_absorbed(rewrite: GraphRewrite, names: Sequence[tuple[str, str | None]]) -> GraphRewrite:
    for name, array in names:
        rewrite = absorbed(rewrite, name, None if array is None else (array,))
    return rewrite
