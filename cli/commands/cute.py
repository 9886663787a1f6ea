"""`layoutproof cute`: CuTe's algebra of layouts, with its conditions decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import result_options, takes

if TYPE_CHECKING:
    from layoutproof.ir.notations.cute import CuteLayout
    from layoutproof.verify.layouts.cute_algebra import AlgebraResult

OPERATIONS = (
    "blocked_product",
    "complement",
    "composition",
    "logical_divide",
    "logical_product",
    "raked_product",
    "zipped_divide",
)


@dataclass(frozen=True, slots=True)
class CuteRequest:
    """An operation and its operands."""

    operation: str
    operands: tuple[str, ...]
    output_format: str
    output: Path | None


@click.command("cute")
@click.argument("operation", type=click.Choice(OPERATIONS), metavar="OPERATION")
@click.argument("operands", nargs=-1, required=True, metavar="A [B]...")
@result_options
@takes(CuteRequest)
def cute_command(request: CuteRequest) -> int:
    """The layout of an operation of CuTe's algebra, or the condition that fails and where.

    OPERATION is blocked_product, complement, composition, logical_divide, logical_product, raked_product or
    zipped_divide. `complement` takes a layout and a size, `zipped_divide` a layout and a tiler for each mode, the
    others two layouts.

    Exit codes: 0 there is a layout; 1 a condition fails; 2 the input is wrong.
    """
    from layoutproof.cli.output import check_output, tell
    from layoutproof.cli.render.layout_report import render_algebra
    from layoutproof.verify.layouts import cute_algebra
    from layoutproof.verify.layouts.cute_algebra import AlgebraResult

    check_output(request.output)
    two: Mapping[str, Callable[[CuteLayout, CuteLayout], AlgebraResult]] = {
        "blocked_product": cute_algebra.blocked_product,
        "composition": cute_algebra.composition,
        "logical_divide": cute_algebra.logical_divide,
        "logical_product": cute_algebra.logical_product,
        "raked_product": cute_algebra.raked_product,
    }
    first, *others = request.operands
    if request.operation == "complement":
        found = _complement(first, others)
    elif request.operation == "zipped_divide":
        found = cute_algebra.zipped_divide(_layout(first), [_layout(other) for other in others])
    elif len(others) != 1:
        raise click.UsageError(f"{request.operation} takes two layouts, {len(request.operands)} are given")
    else:
        found = two[request.operation](_layout(first), _layout(others[0]))
    tell(found, request.output_format, request.output, AlgebraResult.to_dict, render_algebra)
    return 0 if found.is_defined else 1


def _complement(first: str, others: list[str]) -> AlgebraResult:
    from layoutproof.verify.layouts.cute_algebra import complement, cosize

    layout = _layout(first)
    if len(others) > 1 or (others and not (others[0].isdecimal() and 0 < int(others[0]) < 1 << 62)):
        raise click.UsageError("complement takes a layout and a size of at least 1")
    return complement(layout, int(others[0]) if others else cosize(layout))


def _layout(text: str) -> CuteLayout:
    from layoutproof.ir.notations.cute import parse_cute

    return parse_cute(text)
