"""`layoutproof map`: everything that can be said of one index map on one shape."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.options import format_option, output_option


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
    from layoutproof.cli.mapping import tell_map

    return tell_map(index_map, shape, where, box, physical_shape, output_format, output)
