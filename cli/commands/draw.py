"""`layoutproof draw`: the picture of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from layoutproof.cli.options import file_path, size_option, takes


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """A map on a shape, and the picture to draw."""

    index_map: str
    shape: str
    sizes: tuple[str, ...]
    output: Path
    cells: int


@click.command("draw")
@click.argument("index_map", metavar="MAP")
@click.option("--shape", required=True, metavar="N,N,...", help="Logical extents; names need --size.")
@size_option
@click.option("-o", "--output", type=file_path, required=True, metavar="FILE", help="Picture to write: .svg or .png.")
@click.option(
    "--cells",
    default=256,
    show_default=True,
    type=click.IntRange(4, 4096),
    help="Most cells to show; longer axes are elided.",
)
@takes(DrawRequest)
def draw_command(request: DrawRequest) -> int:
    """Draw the physical box of MAP: cells, the logical index each holds, padding hatched, row-major order.

    More than two axes become a grid of grids; with AXIS_SEPARATOR the first group runs down and the second to the
    right, as an image has it. The exit code is that of injectivity; a map that is not injective is drawn too, its
    clashes in red.
    """
    from layoutproof.cli.option_values import read_index_map, read_sizes
    from layoutproof.cli.output import check_writable, console, exit_code, write_file
    from layoutproof.cli.plot.layout_figure import concrete, ending_of, picture_of, with_sizes
    from layoutproof.cli.render.map_report import counterexample_text
    from layoutproof.ir.index_map import index_map_text
    from layoutproof.ir.notations.map_text import parse_shape
    from layoutproof.verify.maps.check_map import check_map

    ending = ending_of(request.output)
    check_writable(request.output)
    shape, sizes = parse_shape(request.shape), read_sizes(request.sizes)
    extents = concrete(shape, sizes)
    report = check_map(with_sizes(read_index_map(request.index_map, shape), sizes), extents)
    write_file(request.output, picture_of(report, ending, request.cells))
    lines = [f"{request.output}: {index_map_text(report.index_map)} on {', '.join(map(str, extents))}"]
    example = counterexample_text(report.injective)
    for line in lines if example is None else [*lines, f"not injective: {example}"]:
        console().print(line, markup=False, soft_wrap=True)
    return exit_code(report.injective.status)
