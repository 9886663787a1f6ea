"""`layoutproof draw`: the picture of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from layoutproof.cli.options import file_path, notation_options, size_option, takes


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """A map on a shape, and the picture to draw."""

    index_map: str
    shape: str | None
    notation: str | None
    axes: tuple[str, ...]
    sizes: tuple[str, ...]
    output: Path
    cells: int


@click.command("draw")
@click.argument("index_map", metavar="MAP")
@click.option(
    "--shape",
    metavar="N,N,...",
    help="Logical extents; names need --size. Needed where MAP does not say them.",
)
@notation_options
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

    MAP may be in any notation that `map` reads. More than two axes become a grid of grids; with AXIS_SEPARATOR the
    first group runs down and the second to the right, as an image has it. The exit code is that of injectivity; a map
    that is not injective is drawn too, its clashes in red.
    """
    from layoutproof.cli.option_values import read_layout_and_shape, read_sizes
    from layoutproof.cli.output import check_writable, console, exit_code, write_file
    from layoutproof.cli.plot.layout_figure import concrete, ending_of, picture_of, with_sizes
    from layoutproof.cli.render.map_report import counterexample_text
    from layoutproof.ir.index_map import index_map_text
    from layoutproof.verify.maps.check_map import check_map
    from layoutproof.verify.maps.layout_text import total_map

    ending = ending_of(request.output)
    check_writable(request.output)
    layout, shape = read_layout_and_shape(request.index_map, request.shape, request.axes, request.notation)
    sizes = read_sizes(request.sizes)
    extents = concrete(shape, sizes)
    report = check_map(with_sizes(total_map(layout, "<index map>"), sizes), extents)
    write_file(request.output, picture_of(report, ending, request.cells))
    lines = [f"{request.output}: {index_map_text(report.index_map)} on {', '.join(map(str, extents))}"]
    example = counterexample_text(report.injective)
    for line in lines if example is None else [*lines, f"not injective: {example}"]:
        console().print(line, markup=False, soft_wrap=True)
    return exit_code(report.injective.status)
