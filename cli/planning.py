"""What `plan` does: read a graph, fold, plan, prove, run; and write what comes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from layoutproof.cli import codes as cli_codes
from layoutproof.cli.gate.items import Options
from layoutproof.cli.gate.known import remembered
from layoutproof.cli.output import check_writable, emit, exit_code, show, write_files
from layoutproof.cli.plan_layouts import Asked, asked_of
from layoutproof.cli.plan_picture import picture_of_plan
from layoutproof.cli.plan_report import PlanReport
from layoutproof.cli.plan_trial import compare_graphs
from layoutproof.cli.progress import Advance, stages
from layoutproof.cli.render.plan_report import plan_to_dict, render_plan
from layoutproof.graph import codes
from layoutproof.graph.certificate import certify_graph
from layoutproof.graph.fold import Folding, fold
from layoutproof.graph.hoist import hoisted_graph
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.plan import plan
from layoutproof.graph.text.files import graph_files, load_graph
from layoutproof.importers.onnx import load_model
from layoutproof.ir.diagnostic import counted, error
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.proof_cache.places import place_of
from layoutproof.verify.certificate.sealing import to_bytes
from layoutproof.verify.verdict import Status

_PICTURES = (".svg", ".png")


def plan_graph(
    graph: Path,
    *,
    layouts: Sequence[str],
    frozen: Sequence[str],
    free: Sequence[str],
    greedy: bool,
    run: bool,
    seed: int,
    output: Path | None,
    picture: Path | None,
    certificate: Path | None,
    cache: Path | None,
    no_cache: bool,
    output_format: str,
) -> int:
    """Plan as the options of `plan` say, which these are, and return the exit code. Raises LayoutproofError for bad input."""
    if cache is not None and no_cache:
        raise click.UsageError("--cache and --no-cache contradict each other.")
    _check_places(graph, output, picture, certificate)
    options = Options((), cache=None if no_cache else str(place_of(str(cache) if cache is not None else None)))
    with stages(6 + run) as advance, remembered(options):
        advance("reading")
        given = read_graph(graph)
        advance("folding")
        folding = fold(hoisted_graph(given))
        asked = asked_of(folding.new, layouts, frozen, free)
        report = _planned(str(graph), given, folding, asked, greedy, advance)
        if run and report.refused is None and report.status is Status.PROVED:
            advance("running")
            report = replace(report, trial=compare_graphs(given, report.plan, seed))
        advance("writing")
        files = _files(report, output, picture, certificate)
    if files:
        write_files(files)
    report = replace(report, written=tuple(files))
    _tell(report, output_format)
    undone = [what for what, asked in (("run", run and report.trial is None), ("written", output or certificate)) if asked]
    if report.status is not Status.PROVED and undone:
        click.echo(f"the planned graph is not {' and not '.join(undone)}: not all of it is proved", err=True)
    return exit_code(report.status)


def read_graph(path: Path) -> Graph:
    """The graph of a file: a model, or a text. Raises LayoutproofError."""
    if path.suffix == ".onnx":
        return load_model(path)
    if path.suffix == ".py":
        return load_graph(path)
    raise error(codes.MODEL_FILE, f"{path}: a graph is read from a file that ends in .onnx (a model) or .py (its text)")


def _check_places(graph: Path, output: Path | None, picture: Path | None, certificate: Path | None) -> None:
    """Raise LayoutproofError now for what could not be written at the end, or would overwrite what is read or written besides."""
    if output is not None and output.suffix != ".py":
        raise error(cli_codes.OUTPUT, f"cannot write {output}: a graph's text ends in .py, and its arrays stand beside it in .npz")
    if picture is not None and picture.suffix.lower() not in _PICTURES:
        raise error(cli_codes.PICTURE_FORMAT, f"{picture}: the file's ending chooses the format; expected .svg or .png")
    graphs = () if output is None else (output, output.with_suffix(".npz"))
    read = (graph, graph.with_suffix(".npz")) if graph.suffix == ".py" else (graph,)
    taken = {path.resolve(): "it is what is planned" for path in read}
    for path in (*graphs, *(path for path in (picture, certificate) if path is not None)):
        check_writable(path)
        if path.resolve() in taken:
            raise error(cli_codes.OUTPUT, f"cannot write {path}: {taken[path.resolve()]}")
        taken[path.resolve()] = "something else is written there"


def _planned(name: str, graph: Graph, folding: Folding, asked: Asked, greedy: bool, advance: Advance) -> PlanReport:
    """The plan of a graph with all that is proved of it; or what was refused. Raises LayoutproofError where nobody gets what was asked."""
    advance("planning")
    outputs = [(output, asked.outputs.get(number)) for number, output in enumerate(folding.new.outputs)]
    found = plan(folding.new, {}, calls=asked.calls, inputs=asked.inputs, outputs=outputs if asked.outputs else None)
    if found.refused and set(found.refused) == set(asked.calls):
        call, reason = next(iter(found.refused.items()))
        number = len(found.refused)
        raise error(codes.NO_PLAN, f"of {counted(number, 'call', 'calls')} none can have the layout that was asked for: {call}: {reason}")
    if greedy:
        found = replace(found, choice=found.greedy, optimal=False)
    report = PlanReport(name, graph, asked, folding, found, greedy)
    advance("giving operators their layouts")
    try:
        _ = found.rewrite
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return replace(report, refused=problem)
    advance("proving")
    return replace(report, verdicts=found.verdicts)


def _files(report: PlanReport, output: Path | None, picture: Path | None, certificate: Path | None) -> dict[Path, bytes]:
    """What is written: the planned graph and its certificate where all of it is proved, the picture of whatever there is.

    Raises LayoutproofError for a graph that is too large for a certificate.
    """
    files: dict[Path, bytes] = {}
    if report.refused is not None:
        return files
    if certificate is not None and report.status is Status.PROVED:
        files[certificate] = to_bytes(certify_graph(report.plan.rewrite, report.plan.interface))
    if output is not None and report.status is Status.PROVED:
        files |= graph_files(report.plan.rewrite.new, output)
    if picture is not None:
        files[picture] = picture_of_plan(report, picture.suffix.lower().removeprefix("."))
    return files


def _tell(report: PlanReport, output_format: str) -> None:
    if output_format == "json":
        emit(json.dumps(plan_to_dict(report), indent=2) + "\n", None)
    else:
        show(render_plan(report, markup=True))
    for diagnostic in report.refused.diagnostics if report.refused is not None else ():
        click.echo(diagnostic.render(), err=True)
