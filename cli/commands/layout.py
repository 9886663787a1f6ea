"""`layoutproof layout`: two layouts compared, or one in every notation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import NOTATIONS, notation_options, result_options, takes, verbose_option

if TYPE_CHECKING:
    from layoutproof.ir.notations.notation import WrittenLayout


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """One layout or two, and what is said beside their texts."""

    first: str
    second: str | None
    shape: str | None
    target: str | None
    notation: str | None
    axes: tuple[str, ...]
    output_format: str
    output: Path | None


@click.command("layout")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option("--shape", metavar="N,N,...", help="Logical extents, where a layout does not say them.")
@click.option("--to", "target", type=click.Choice(NOTATIONS), help="Print A in this notation, and nothing else.")
@notation_options
@result_options
@verbose_option
@takes(LayoutRequest)
def layout_command(request: LayoutRequest) -> int:
    """Are layouts A and B the same function? If not, an index where they differ; and the map from one to the other.

    Each may be in any notation that `map` reads. Layouts whose physical axes differ are compared by their
    offsets. Without B: the properties of A, and A in every notation.

    Exit codes: 0 the same function; 1 different, also if only the order of axes differs; 2 the input is wrong; 3
    unknown. Without B: 0, or 2.
    """
    from layoutproof.cli.output import check_output, emit, exit_code, tell
    from layoutproof.cli.render.layout_report import render_comparison, render_layout
    from layoutproof.verify.layouts.comparison import LayoutComparison, compare_layouts
    from layoutproof.verify.layouts.described import LayoutDescription, describe_layout
    from layoutproof.verify.layouts.writing import write_layout
    from layoutproof.verify.maps.layout_text import total_map

    check_output(request.output)
    first = _read(request, request.first)
    if request.second is not None:
        if request.target is not None:
            raise click.UsageError("--to prints one layout, and two are given")
        comparison = compare_layouts(first, _read(request, request.second))
        tell(comparison, request.output_format, request.output, LayoutComparison.to_dict, render_comparison)
        return exit_code(comparison.same.status)
    if request.target is not None:
        emit(write_layout(total_map(first), first.extents(), request.target) + "\n", request.output)
        return 0
    described = describe_layout(first)
    tell(described, request.output_format, request.output, LayoutDescription.to_dict, render_layout)
    return 0


def _read(request: LayoutRequest, text: str) -> WrittenLayout:
    """A layout; einops' axes are those of the texts that are einops patterns."""
    from layoutproof.cli.option_values import read_axes
    from layoutproof.ir.notations.detect import notation_of
    from layoutproof.ir.notations.map_text import parse_shape
    from layoutproof.ir.notations.notation import Notation
    from layoutproof.verify.maps.layout_text import read_layout

    notation = Notation(request.notation) if request.notation is not None else notation_of(text)
    axes = read_axes(request.axes) if notation is Notation.EINOPS else {}
    given = None if request.shape is None else parse_shape(request.shape)
    return read_layout(text, given, axes=axes, notation=request.notation)
