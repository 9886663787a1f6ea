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
    output: Path | None
    cells: int
    colour: str
    banks: int | None
    pad: str | None


@click.command("draw")
@click.argument("index_map", metavar="MAP")
@click.option(
    "--shape",
    metavar="N,N,...",
    help="Logical extents; names need --size. Needed where MAP does not say them.",
)
@notation_options
@size_option
@click.option(
    "-o",
    "--output",
    type=file_path,
    metavar="FILE",
    help="Picture to write: .svg or .png. Without it, text is printed.",
)
@click.option(
    "--cells",
    default=256,
    show_default=True,
    type=click.IntRange(4, 4096),
    help="Most cells to show; longer axes are elided.",
)
@click.option(
    "--colour",
    type=click.Choice(("auto", "order", "row", "bank", "thread")),
    default="auto",
    show_default=True,
    help="Cells by logical order, source row, memory bank or thread; auto: by thread where an axis is the lane, "
    "else by row where the map changes the order.",
)
@click.option(
    "--banks", type=click.IntRange(2, 1024), metavar="N", help="Number of banks (default 32); implies --colour bank."
)
@click.option("--pad", metavar="VALUE", help="What the padding holds, to be shown: a number, or undef.")
@takes(DrawRequest)
def draw_command(request: DrawRequest) -> int:
    """Draw the physical box of MAP: cells, the logical index each holds, padding hatched, row-major offsets.

    A map that changes the order has its logical box beside it, in the same colours, with one tile outlined in both.
    MAP may be in any notation that `map` reads. More than two axes become a grid of grids; with AXIS_SEPARATOR the
    first group runs down and the second to the right, as in an image. A map that is
    not injective is drawn too: the cells with two elements are red, with arrows from both.

    Exit codes: as of `map`.
    """
    from layoutproof.cli.option_values import read_layout_and_shape, read_sizes
    from layoutproof.cli.output import check_writable, emit, exit_code, write_file
    from layoutproof.cli.plot.map_picture import PictureOptions, concrete, ending_of, picture_of, text_of, with_sizes
    from layoutproof.cli.render.map_report import counterexample_text
    from layoutproof.ir.index_map import index_map_text
    from layoutproof.verify.maps.check_map import check_map
    from layoutproof.verify.maps.layout_text import total_map

    ending = None if request.output is None else ending_of(request.output)
    if request.output is not None:
        check_writable(request.output)
    banks = 32 if request.banks is None else request.banks
    options = PictureOptions(request.cells, request.colour if request.banks is None else "bank", banks, request.pad)
    layout, shape = read_layout_and_shape(request.index_map, request.shape, request.axes, request.notation)
    sizes = read_sizes(request.sizes)
    extents = concrete(shape, sizes)
    report = check_map(with_sizes(total_map(layout, "<index map>"), sizes), extents)
    what = f"{index_map_text(report.index_map)} on {', '.join(map(str, extents))}"
    if request.output is None or ending is None:
        lines = [what, text_of(report, options).rstrip("\n")]
    else:
        write_file(request.output, picture_of(report, ending, options))
        lines = [f"{request.output}: {what}"]
    example = counterexample_text(report.injective)
    emit("\n".join(lines if example is None else [*lines, f"not injective: {example}"]) + "\n", None)
    return exit_code(report.injective.status)
