"""`layoutproof map`: check one index map on one shape."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from layoutproof.cli.options import notation_options, result_options, takes, verbose_option


@dataclass(frozen=True, slots=True)
class MapRequest:
    """A map, its shape, and the preconditions."""

    index_map: str
    shape: str | None
    notation: str | None
    axes: tuple[str, ...]
    where: str | None
    box: Literal["digits", "tight"]
    physical_shape: str | None
    output_format: str
    output: Path | None


@click.command("map")
@click.argument("index_map", metavar="MAP")
@click.option(
    "--shape",
    metavar="N,N,...",
    help="Logical extents: numbers, names, or expressions of names such as 4*n. Needed where MAP does not say them.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    help="A precondition on the names, such as 'n >= 1 and c >= 1'; extents are at least 0. With indices or names "
    "that are in no extent: where the map has to be injective.",
)
@click.option(
    "--box",
    type=click.Choice(["digits", "tight"]),
    default="digits",
    show_default=True,
    help="Physical extents: k for an axis `e % k` (digits), or as small as the image allows (tight).",
)
@click.option("--physical-shape", metavar="N,N,...", help="The physical box to use; it must hold the image.")
@notation_options
@result_options
@verbose_option
@takes(MapRequest)
def map_command(request: MapRequest) -> int:
    """Is MAP injective, what is its physical shape, which cells are padding, what is its inverse?

    MAP is a lambda ('lambda n, h, w, c: [n, c//4, h, w, c%4]', AXIS_SEPARATOR between axis groups), two layouts
    ('NHWC->NCHW4c'), or a layout of CuTe, Triton, MLIR, oneDNN, einops, isl, strides or XLA.

    Exit codes: 0 injective (padding is not an error); 1 not injective; 2 the input is wrong; 3 unknown or vacuous.
    """
    from layoutproof.cli.option_values import read_layout_and_shape
    from layoutproof.cli.output import check_output, exit_code, tell
    from layoutproof.cli.render.map_report import render_map, render_restricted
    from layoutproof.ir.notations.map_text import parse_condition, parse_shape
    from layoutproof.ir.visit import free_variables
    from layoutproof.verify.maps.check_map import check_map
    from layoutproof.verify.maps.layout_text import total_map
    from layoutproof.verify.maps.map_report import MapReport
    from layoutproof.verify.maps.restricted import RestrictedReport, is_restricted, judge_restricted

    check_output(request.output)
    where = None if request.where is None else parse_condition(request.where, (), open_ended=True)
    names = () if where is None else free_variables(where)
    layout, shape = read_layout_and_shape(request.index_map, request.shape, request.axes, request.notation, names)
    physical = parse_shape(request.physical_shape) if request.physical_shape is not None else None
    index_map = total_map(layout, "<index map>")
    if where is not None and is_restricted(where, index_map, shape):
        if physical is not None:
            raise click.UsageError(
                "--physical-shape needs a map of its whole shape: --where names indices, or parameters"
            )
        restricted = judge_restricted(index_map, shape, where)
        tell(restricted, request.output_format, request.output, RestrictedReport.to_dict, render_restricted)
        return exit_code(restricted.injective.status)
    report = check_map(index_map, shape, request.where, box=request.box, physical_shape=physical)
    tell(report, request.output_format, request.output, MapReport.to_dict, render_map)
    return exit_code(report.injective.status)
