"""`layoutproof draw`: the picture of a layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from layoutproof.cli.options import file_path, size_option


@click.command("draw")
@click.argument("index_map", metavar="MAP")
@click.option("--shape", required=True, metavar="N,N,...", help="Logical extents; names need --size.")
@size_option
@click.option("-o", "--output", type=file_path, required=True, metavar="FILE", help="Picture to write: .svg or .png.")
@click.option("--cells", default=256, show_default=True, type=click.IntRange(4, 4096), help="Most cells to show; longer axes are elided.")
def draw(index_map: str, shape: str, sizes: Sequence[str], output: Path, cells: int) -> int:
    """Draw the physical box of MAP: cells, the logical index each holds, padding hatched, row-major order.

    More than two axes become a grid of grids; with AXIS_SEPARATOR the first group runs down and the second to the right,
    as an image has it. The exit code is that of injectivity; a map that is not injective is drawn too, its clashes in red.
    """
    from layoutproof.cli.map_picture import draw_map

    return draw_map(index_map, shape, sizes, output, cells)
