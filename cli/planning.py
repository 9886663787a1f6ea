"""What `plan` does: read a graph, fold, plan, prove, run; and write what comes of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from layoutproof.cli.gate.known import remembered
from layoutproof.cli.output import emit, exit_code, show, write_files
from layoutproof.cli.plan_layouts import asked_of
from layoutproof.cli.plan_picture import picture_of_plan
from layoutproof.cli.plan_report import PlanReport
from layoutproof.cli.plan_request import Request
from layoutproof.cli.plan_trial import compare_graphs
from layoutproof.cli.progress import Advance, stages, timed
from layoutproof.cli.render.plan_json import plan_to_dict
from layoutproof.cli.render.plan_report import render_plan
from layoutproof.graph import codes
from layoutproof.graph.absorbed import absorbed
from layoutproof.graph.certificate import certificate_files
from layoutproof.graph.fold import fold
from layoutproof.graph.hoist import hoisting
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.planning.cost_files import costs_text
from layoutproof.graph.planning.costs import bytes_moved
from layoutproof.graph.planning.plan import plan
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.text.files import graph_files, load_graph
from layoutproof.graph.witness import GraphRewrite
from layoutproof.importers.onnx import load_model
from layoutproof.importers.onnx.peer import PeerRun, run_with_onnxruntime
from layoutproof.ir.diagnostic import counted, error
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.verify.verdict import Status
from layoutproof.verify.whole_files import Content


def plan_graph(request: Request) -> int:
    """Plan what is asked for and return the exit code. Raises LayoutproofError for bad input."""
    seconds: dict[str, float] = {}
    with stages(6 + request.run) as shown, remembered(request.options), timed(shown, seconds) as advance:
        advance("reading")
        given = read_graph(request.graph, request.sizes)
        report = _planned(request, given, advance)
        if request.run and report.refused is None and report.proof is Status.PROVED:
            advance("running")
            report = replace(report, trial=compare_graphs(given, report.plan, report.rewrite, request.seed, _peer(request)))
        advance("writing")
        files = _files(request, report)
        if files:
            write_files(files)
    report = replace(report, written=tuple(files), seconds=seconds)
    _tell(report, request.output_format)
    asked = request.output or request.certificate
    undone = [what for what, wanted in (("run", request.run and report.trial is None), ("written", asked)) if wanted]
    if report.proof is not Status.PROVED and undone:
        click.echo(f"the planned graph is not {' and not '.join(undone)}: not all of it is proved", err=True)
    return exit_code(report.status)


def read_graph(path: Path, sizes: Mapping[str, int]) -> Graph:
    """The graph of a file: a model, whose open extents have these sizes, or a text. Raises LayoutproofError."""
    if path.suffix == ".onnx":
        return load_model(path, sizes)
    if path.suffix == ".py":
        return load_graph(path)
    raise error(codes.MODEL_FILE, f"{path}: a graph is read from a file that ends in .onnx (a model) or .py (its text)")


def _planned(request: Request, graph: Graph, advance: Advance) -> PlanReport:
    """The plan of a graph with all that is proved of it; or what was refused. Raises LayoutproofError where nobody gets what was asked."""
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
    if request.greedy:
        found = replace(found, choice=found.greedy)
    report = PlanReport(str(request.graph), graph, asked, hoisted, folding, found, request.greedy, request.costs, request.limits)
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
    return replace(report, verdicts=found.verdicts if made is None else prove_graph_rewrite(made, found.interface))


def _with_absorbed(rewrite: GraphRewrite, names: Sequence[tuple[str, str | None]]) -> GraphRewrite:
    for name, array in names:
        rewrite = absorbed(rewrite, name, None if array is None else (array,))
    return rewrite


def _peer(request: Request) -> Callable[[Sequence[Array]], PeerRun] | None:
    """What runs the model on arrays besides, where that is asked for."""
    return (lambda arrays: run_with_onnxruntime(request.graph, arrays)) if request.onnxruntime else None


def _files(request: Request, report: PlanReport) -> dict[Path, Content]:
    """What is written: the planned graph and its certificate where all of it is proved, a picture of whatever there is, measured costs."""
    files: dict[Path, Content] = {}
    if request.measure is not None and report.costs is not None:
        files[request.measure] = costs_text(report.costs.table, request.measure).encode()
    if report.refused is not None:
        return files
    if request.certificate is not None and report.proof is Status.PROVED:
        files |= certificate_files(request.certificate, report.rewrite, report.plan.interface)
    if request.output is not None and report.proof is Status.PROVED:
        files |= graph_files(report.rewrite.new, request.output)
    if request.picture is not None:
        files[request.picture] = picture_of_plan(report, request.picture.suffix.lower().removeprefix("."))
    return files


def _tell(report: PlanReport, output_format: str) -> None:
    if output_format == "json":
        emit(json.dumps(plan_to_dict(report), indent=2) + "\n", None)
    else:
        # Times differ from run to run: who redirects the output to compare it has none in it.
        show(render_plan(report, markup=True, times=sys.stdout.isatty()))
    for diagnostic in report.refused.diagnostics if report.refused is not None else ():
        click.echo(diagnostic.render(), err=True)
