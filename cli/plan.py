"""`layoutproof plan`: a whole graph, layouts for some of its operators, and the fewest layout rewrites that this takes, each proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from layoutproof.cli.options import file_path, format_option
from layoutproof.cli.plan_limits import read_limits


@click.command("plan")
@click.argument("graph", type=file_path, metavar="MODEL.onnx|GRAPH.py")
@click.option("--layout", "layouts", multiple=True, metavar="OP=LAYOUT", help="A layout for all calls of an operator, such as conv=NCHW8c.")
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
    "--layouts", "layout_file", type=file_path, metavar="FILE", help="Layouts as a dictionary, .toml or .json; options go before."
)
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="The value of an extent that a model leaves open; may be repeated.")
@click.option(
    "--absorb",
    multiple=True,
    metavar="NAME[.ARRAY]",
    help="Fold the rewrites that are left beside a call into it: it reads or stores these arrays as they come, whatever that costs it.",
)
@click.option("--costs", type=file_path, metavar="FILE", help="What rewrites cost, .json or .csv, instead of the bytes that they move.")
@click.option(
    "--measure",
    type=file_path,
    metavar="FILE",
    help="Measure on this machine what rewrites cost, those that --costs does not have, and write the table there.",
)
@click.option("--greedy", is_flag=True, help="Plan by a greedy walk, which adapts each operator to what comes before it.")
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
    help="Plan nothing: prove that this graph, such as -o wrote, is the given one; --free says how it is called, if otherwise.",
)
@click.option("--run", is_flag=True, help="Run the graph and the planned one as compiled C on made-up data, and compare bit for bit.")
@click.option("--onnxruntime", is_flag=True, help="With --run, compare with onnxruntime too, which has to be installed.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, (1 << 63) - 1), help="Of the made-up data.")
@click.option("-o", "--output", type=file_path, metavar="GRAPH.py", help="Write the planned graph there, and its arrays beside it (.npz).")
@click.option("--picture", type=file_path, metavar="FILE", help="Draw the graph before and after there: .svg or .png.")
@click.option("--certificate", type=file_path, metavar="FILE", help="Write what was proved there, for `layoutproof recheck`.")
@click.option("--cache", "cache", type=file_path, metavar="PLACE", help="The proof cache: an .sqlite file, or a shared folder.")
@click.option("--no-cache", is_flag=True, help="Prove everything anew.")
@format_option("text", "json")
def plan_command(graph: Path, **options: Any) -> int:
    """Give operators of a graph their layouts, with as few bytes moved between layouts as can be.

    The graph is an ONNX model (`pip install 'layoutproof[onnx]'`), or a graph as text. Layouts flow from the operators that are given one
    through those that have none; where they do not flow, or meet another layout, a rewrite stays. Constants are stored in any layout
    for nothing; inputs and outputs keep theirs unless they are freed. Every value of the planned graph is proved to hold what it held,
    bit for bit: no licence is asked for.

    OP is an operator as its function is called: conv2d, relu, dense. `conv` and `pool` stand for all convolutions and all poolings.
    OP.ARRAY is one array of its function, as in conv.W. LAYOUT is what letters say (NCHW8c, of NCHW unless NHWC->NHWC8c says of what),
    or a lambda; `NCHW8c holding 0` says what its padding holds, too. Without an array, the layout is that of the first operand and of the
    results, where they have as many axes.

    Exit codes: 0 all proved, and equal where it was run; 1 something refuted, results that differ, or more left than --at-most; 2 something
    is wrong with the input; 3 something unknown.
    """
    from layoutproof.cli.plan_request import request_of
    from layoutproof.cli.planning import plan_graph

    request = request_of(graph, **options)
    if request.planned is not None:
        from layoutproof.cli.plan_check import check_planned

        return check_planned(request)
    return plan_graph(request)
