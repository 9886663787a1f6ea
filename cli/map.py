"""`layoutproof map`: everything that can be said of one index map on one shape."""

from __future__ import annotations

import json
from pathlib import Path

import click

from layoutproof.cli.options import format_option, output_option, read_index_map
from layoutproof.cli.output import check_writable, emit, exit_code, show
from layoutproof.cli.render.text import render_map
from layoutproof.ir.map_text import parse_shape
from layoutproof.verify.maps import Box, check_map


@click.command("map")
@click.argument("index_map", metavar="MAP")
@click.option("--shape", required=True, metavar="N,N,...", help="Logical extents: numbers, names, or expressions of names such as 4*n.")
@click.option("--where", metavar="CONDITION", help="What is known of the names, such as 'n >= 1 and c >= 1'. They are at least 0 anyway.")
@click.option("--box", type=click.Choice(["digits", "tight"]), default="digits", show_default=True, help="How physical extents are chosen.")
@click.option("--physical-shape", metavar="N,N,...", help="The physical box to use; it must hold the image.")
@format_option("text", "json")
@output_option
def map_command(
    index_map: str, shape: str, where: str | None, box: str, physical_shape: str | None, output_format: str, output: Path | None
) -> int:
    """Is MAP injective, what is its physical shape, which cells are padding, what is its inverse?

    MAP is a lambda ('lambda n, h, w, c: [n, c//4, h, w, c%4]', AXIS_SEPARATOR between axis groups) or two layouts
    ('NHWC->NCHW4c'). The exit code depends on injectivity alone: a padded map is a fine map.
    """
    if output is not None:
        check_writable(output)
    logical = parse_shape(shape)
    wanted = parse_shape(physical_shape) if physical_shape is not None else None
    chosen: Box = "tight" if box == "tight" else "digits"
    report = check_map(read_index_map(index_map, logical), logical, where, box=chosen, physical_shape=wanted)
    if output_format == "json":
        emit(json.dumps(report.to_dict(), indent=2) + "\n", output)
    elif output is not None:
        emit(render_map(report), output)
    else:
        show(render_map(report, markup=True))
    return exit_code(report.injective.status)
