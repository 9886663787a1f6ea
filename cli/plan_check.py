"""`plan --planned`: nothing is planned; a graph that is there, say one that was written before, is proved to be the given one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import click

from layoutproof.cli.gate.known import remembered
from layoutproof.cli.output import emit, exit_code, show, write_files
from layoutproof.cli.plan_checked import CheckReport
from layoutproof.cli.plan_layouts import asked_of
from layoutproof.cli.plan_request import Request
from layoutproof.cli.plan_trial import compare_outputs
from layoutproof.cli.planning import read_graph
from layoutproof.cli.progress import Advance, stages, timed
from layoutproof.cli.render.plan_check import check_to_dict, render_check
from layoutproof.graph import codes
from layoutproof.graph.certificate import certify_graph
from layoutproof.graph.fold import fold
from layoutproof.graph.hoist import hoisting
from layoutproof.graph.maps import box_of
from layoutproof.graph.matching import matched
from layoutproof.graph.model import Graph
from layoutproof.graph.planning.ends import Free
from layoutproof.graph.proving import prove_graph_rewrite
from layoutproof.graph.text.files import load_graph
from layoutproof.graph.witness import AS_IT_WAS, Interface
from layoutproof.ir.diagnostic import error
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.certificate.sealing import to_bytes
from layoutproof.verify.verdict import Status, Verdict


def check_planned(request: Request) -> int:
    """Prove that the planned graph is the given one, and return the exit code. Raises LayoutproofError for bad input."""
    seconds: dict[str, float] = {}
    with stages(4 + request.run) as shown, remembered(request.options), timed(shown, seconds) as advance:
        report, interface = _checked(request, advance)
        files = {}
        if request.certificate is not None and report.rewrite is not None and report.proof is Status.PROVED:
            advance("writing")
            files[request.certificate] = to_bytes(certify_graph(report.rewrite, interface))
            write_files(files)
    report = replace(report, written=tuple(files), seconds=seconds)
    if request.output_format == "json":
        emit(json.dumps(check_to_dict(report), indent=2) + "\n", None)
    else:
        show(render_check(report, markup=True, times=sys.stdout.isatty()))
    if request.certificate is not None and not files:
        click.echo("no certificate is written: not all of it is proved", err=True)
    return exit_code(report.status)


def _checked(request: Request, advance: Advance) -> tuple[CheckReport, Interface]:
    """What is proved of the planned graph, and how it is called."""
    assert request.planned is not None  # else there is nothing to check
    advance("reading")
    given, new = read_graph(request.graph, request.sizes), load_graph(request.planned)
    advance("folding")
    hoisted = hoisting(given)
    folding = fold(hoisted.new)
    interface = _interface(request, folding.new)
    advance("proving")
    found = matched(folding.new, new, interface)
    rewrite = None if isinstance(found, Verdict) else found
    verdicts = (found,) if isinstance(found, Verdict) else prove_graph_rewrite(found, interface)
    report = CheckReport(str(request.graph), str(request.planned), given, new, hoisted, folding, rewrite, verdicts, request.limits)
    if request.run:
        advance("running")
        _check_alike(folding.new, new, interface)
        report = replace(report, outputs=compare_outputs(given, new, interface, request.seed))
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
