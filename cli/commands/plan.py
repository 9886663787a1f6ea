"""`layoutproof plan`: plan the layouts of a graph with the fewest layout rewrites, each proved."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import (
    cache_options,
    certificate_option,
    file_path,
    format_option,
    seed_option,
    takes,
    verbose_option,
)
from layoutproof.cli.plan.plan_options import PlanOptions, read_limits

if TYPE_CHECKING:
    from layoutproof.cli.gate.check_items import Options
    from layoutproof.cli.plan.plan_graph import Request
    from layoutproof.cli.plan.plan_result import PlanReport
    from layoutproof.verify.certificate.sealed_files import Content


@click.command("plan")
@click.argument("graph", type=file_path, metavar="MODEL.onnx|GRAPH.py")
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    metavar="OP=LAYOUT",
    help="A layout for all calls of an operator, such as conv=NCHW8c.",
)
@click.option(
    "--frozen",
    multiple=True,
    metavar="NAME[=LAYOUT]",
    help="A layout for one call, by the value that it makes; without a layout it keeps those that it has.",
)
@click.option(
    "--free",
    multiple=True,
    metavar="NAME[=LAYOUT]",
    help="An input or output that need not stay as it is: it gets this layout, or the one that costs least.",
)
@click.option(
    "--layouts",
    "layout_file",
    type=file_path,
    metavar="FILE",
    help="Layouts as a dictionary, .toml or .json; options go before.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=N",
    help="The value of an extent that a model leaves open; may be repeated.",
)
@click.option(
    "--absorb",
    multiple=True,
    metavar="NAME[.ARRAY]",
    help="Fold the rewrites that are left beside a call into it: it reads or stores these arrays as they "
    "come, whatever that costs it.",
)
@click.option(
    "--costs",
    type=file_path,
    metavar="FILE",
    help="What rewrites cost, .json or .csv, instead of the bytes that they move.",
)
@click.option(
    "--measure",
    type=file_path,
    metavar="FILE",
    help="Measure on this machine what rewrites cost, those that --costs does not have, and write the table there.",
)
@click.option("--greedy", is_flag=True, help="Plan greedily: each operator adapts to what comes before it.")
@click.option(
    "--at-most",
    "limits",
    multiple=True,
    callback=read_limits,
    metavar="N|SIZE",
    help="Fail if more rewrites than this are left, or more bytes moved, such as 2.5MB; may be repeated.",
)
@click.option(
    "--planned",
    type=file_path,
    metavar="GRAPH.py",
    help="Plan nothing: prove that this graph, such as -o wrote, is the given one; --free says how it is "
    "called, if otherwise.",
)
@click.option(
    "--run",
    is_flag=True,
    help="Run the graph and the planned one as compiled C on random inputs, and compare bit for bit.",
)
@click.option(
    "--onnxruntime", is_flag=True, help="With --run, compare with onnxruntime too, which has to be installed."
)
@seed_option
@click.option(
    "-o",
    "--output",
    type=file_path,
    metavar="GRAPH.py",
    help="Write the planned graph there, and its arrays beside it (.npz).",
)
@click.option("--picture", type=file_path, metavar="FILE", help="Draw the graph before and after there: .svg or .png.")
@certificate_option
@cache_options
@format_option("text", "json")
@verbose_option
@takes(PlanOptions)
def plan_command(asked: PlanOptions) -> int:
    """Choose the layouts of a graph's operators, with the fewest bytes moved between layouts.

    The graph is an ONNX model (`pip install 'layoutproof[onnx]'`), or a graph as text. Layouts are propagated from the
    operators that are given one to those that have none; where an operator prevents that, or two layouts meet, a
    layout rewrite stays. Constants are stored in any layout at no cost; inputs and outputs keep theirs unless --free
    names them. Every value of the planned graph is proved to be preserved, bit for bit.

    OP is the name of an operator's function: conv2d, relu, dense. `conv` and `pool` stand for all convolutions and all
    poolings. OP.ARRAY is one array of its function, as in conv.W. LAYOUT is a layout string (NCHW8c, of NCHW unless
    the source is given, as in NHWC->NHWC8c), or a lambda; `NCHW8c holding 0` also states what its padding holds.
    Without an array, the layout is that of the first operand and of the results of the same rank.

    Exit codes: 0 all proved, and equal where it was run; 1 something refuted, results that differ, or more rewrites
    than --at-most allows; 2 the input is wrong; 3 something unknown.
    """
    from layoutproof.cli.gate.check_items import Options
    from layoutproof.cli.gate.judging.cached_proofs import cache_place
    from layoutproof.cli.plan.plan_graph import request_of

    options = Options((), cache=cache_place(asked.cache, asked.no_cache))
    request = request_of(asked)
    return _plan(request, options) if asked.planned is None else _check(request, options)


def _plan(request: Request, options: Options) -> int:
    from layoutproof.cli.gate.judging.cached_proofs import remembered
    from layoutproof.cli.output import exit_code, say, stages, tell, timed, write_files
    from layoutproof.cli.plan.plan_graph import planned
    from layoutproof.cli.render.plan_json import plan_to_dict
    from layoutproof.cli.render.plan_report import render_plan
    from layoutproof.verify.verdict.verdict import Status

    asked, seconds = request.asked, dict[str, float]()
    with stages(6 + asked.run) as shown, remembered(options), timed(shown, seconds) as advance:
        report = planned(request, advance)
        advance("writing")
        files = _files(request, report)
        if files:
            write_files(files)
    report = replace(report, written=tuple(files), seconds=seconds)
    # Times differ from run to run, so redirected output, which may be compared, has none.
    tell(report, asked.output_format, None, plan_to_dict, partial(render_plan, times=sys.stdout.isatty()))
    say(report.refused.diagnostics if report.refused is not None else ())
    wanted = asked.output or asked.certificate
    undone = [what for what, missing in (("run", asked.run and report.trial is None), ("written", wanted)) if missing]
    if report.proof is not Status.PROVED and undone:
        click.echo(f"the planned graph is not {' and not '.join(undone)}: not all of it is proved", err=True)
    return exit_code(report.status)


def _files(request: Request, report: PlanReport) -> dict[Path, Content]:
    """Write the planned graph and its certificate if all of it is proved, the picture, and measured costs."""
    from layoutproof.graph.graph_files import graph_files
    from layoutproof.graph.planning.costs import costs_text
    from layoutproof.graph.prove.graph_certificate import certificate_files
    from layoutproof.verify.verdict.verdict import Status

    asked = request.asked
    files: dict[Path, Content] = {}
    if asked.measure is not None and report.costs is not None:
        files[asked.measure] = costs_text(report.costs.table, asked.measure).encode()
    if report.refused is not None:
        return files
    if asked.certificate is not None and report.proof is Status.PROVED:
        files |= certificate_files(asked.certificate, report.rewrite, report.plan.interface)
    if asked.output is not None and report.proof is Status.PROVED:
        files |= graph_files(report.rewrite.new, asked.output)
    if asked.picture is not None:
        from layoutproof.cli.plot.graph_figure import picture_of_plan

        files[asked.picture] = picture_of_plan(report, asked.picture.suffix.lower().removeprefix("."))
    return files


def _check(request: Request, options: Options) -> int:
    """Prove that a graph is the given one, planned; write the certificate and report."""
    from layoutproof.cli.gate.judging.cached_proofs import remembered
    from layoutproof.cli.output import exit_code, stages, tell, timed, write_file
    from layoutproof.cli.plan.plan_graph import checked
    from layoutproof.cli.render.plan_report import check_to_dict, render_check
    from layoutproof.graph.prove.graph_certificate import certify_graph
    from layoutproof.verify.certificate.sealed_files import to_bytes
    from layoutproof.verify.verdict.verdict import Status

    asked, seconds = request.asked, dict[str, float]()
    with stages(4 + asked.run) as shown, remembered(options), timed(shown, seconds) as advance:
        report, interface = checked(request, advance)
        if asked.certificate is not None and report.rewrite is not None and report.proof is Status.PROVED:
            advance("writing")
            write_file(asked.certificate, to_bytes(certify_graph(report.rewrite, interface)))
            report = replace(report, written=(asked.certificate,))
    report = replace(report, seconds=seconds)
    tell(report, asked.output_format, None, check_to_dict, partial(render_check, times=sys.stdout.isatty()))
    if asked.certificate is not None and not report.written:
        click.echo("no certificate is written: not all of it is proved", err=True)
    return exit_code(report.status)
