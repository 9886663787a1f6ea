"""`layoutproof conflicts`: what a memory with banks does with accesses of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from layoutproof.cli.options import notation_options, result_options, takes

_POWER = click.IntRange(1, 1 << 20)


@dataclass(frozen=True, slots=True)
class ConflictsRequest:
    """A layout, access patterns and a memory."""

    layout: str
    access: tuple[str, ...]
    lanes: str | None
    shape: str | None
    banks: int
    width: int
    element: int
    vector: int
    phase: int | None
    segment: int
    conflict_free: bool
    row: int | None
    notation: str | None
    axes: tuple[str, ...]
    output_format: str
    output: Path | None


@click.command("conflicts")
@click.argument("layout", metavar="LAYOUT")
@click.option(
    "--access",
    multiple=True,
    required=True,
    metavar="MAP",
    help="From (iteration..., lane) to the logical index that a lane accesses; may be repeated.",
)
@click.option("--lanes", metavar="N,...", help="Extents of the iterations and lanes, where MAP does not say them.")
@click.option("--shape", metavar="N,N,...", help="Logical extents, where LAYOUT does not say them.")
@click.option("--banks", type=_POWER, default=32, show_default=True, help="Banks of the memory.")
@click.option("--width", type=_POWER, default=4, show_default=True, help="Bytes of a bank's word.")
@click.option("--element", type=_POWER, default=4, show_default=True, help="Bytes of an element.")
@click.option("--vector", type=_POWER, default=1, show_default=True, help="Elements that a lane accesses at once.")
@click.option("--phase", type=_POWER, help="Lanes that are served at once; by default as many as fill all banks.")
@click.option(
    "--segment", type=_POWER, default=32, show_default=True, help="Bytes of a transaction, if the memory is global."
)
@click.option("--conflict-free", is_flag=True, help="Find the smallest swizzle and padding without conflicts.")
@click.option("--row", type=_POWER, help="Elements between paddings; by default the largest stride of LAYOUT.")
@notation_options
@result_options
@takes(ConflictsRequest)
def conflicts_command(request: ConflictsRequest) -> int:
    """Count the bank conflicts of accesses to LAYOUT, or find a layout without.

    LAYOUT and MAP may be in any notation that `map` reads; in a Triton layout the lanes are its own. Lanes are
    served in phases, each of as many vectors as fill all banks once. A symbol in LAYOUT's shape stands for all its
    values.

    Exit codes: 0 no conflicts; 1 conflicts; 2 the input is wrong.
    """
    from layoutproof.cli.option_values import read_layout_and_shape
    from layoutproof.cli.output import check_output, tell
    from layoutproof.cli.render.conflicts_report import render_conflicts, render_symbolic
    from layoutproof.verify.layouts.accesses import AccessReport, in_memory, judge_accesses, read_access
    from layoutproof.verify.layouts.conflicts import Memory
    from layoutproof.verify.layouts.symbolic_conflicts import SymbolicReport, judge_symbolic, symbols_of

    check_output(request.output)
    memory = Memory(request.banks, request.width, request.element, request.vector, request.phase)
    layout, _ = read_layout_and_shape(request.layout, request.shape, request.axes, request.notation)
    layout = in_memory(layout)
    patterns = [read_access(text, request.lanes, layout) for text in request.access]
    if symbols_of(layout):
        if request.conflict_free:
            raise click.UsageError("--conflict-free searches for one layout: give numbers for the symbols of its shape")
        found = judge_symbolic(layout, patterns, memory, request.segment)
        tell(found, request.output_format, request.output, SymbolicReport.to_dict, render_symbolic)
        return 1 if found.has_conflicts else 0
    report = judge_accesses(layout, patterns, memory, request.segment, request.row if request.conflict_free else 0)
    tell(report, request.output_format, request.output, AccessReport.to_dict, render_conflicts)
    return 1 if report.has_conflicts else 0
