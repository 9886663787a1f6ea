"""What is true of an index map on a shape, asked as people ask: with maps, shapes and conditions as texts where they like.

`check_map` answers everything at once; `prove_injective` and `prove_bijective` give one verdict each.
"""

from __future__ import annotations

from layoutproof.ir.expr import Expr
from layoutproof.verify import map_report
from layoutproof.verify.map_report import Box, report_on
from layoutproof.verify.questions import MapLike, ShapeLike, read_question, read_shape
from layoutproof.verify.report import MapReport
from layoutproof.verify.verdict import Verdict


def check_map(
    index_map: MapLike,
    shape: ShapeLike,
    where: Expr | str | None = None,
    *,
    box: Box = "digits",
    physical_shape: ShapeLike | None = None,
) -> MapReport:
    """Everything about an index map on a logical shape.

    `shape` has integers, names and expressions such as `4*n`, or is text (`"n,64,64,c"`); names are at least 0, and `where` says more.
    With `box="digits"` an axis written `e % k` has extent k; with `"tight"` every axis is as small as the image allows; `physical_shape`
    is taken as it is once it is proved to hold the image. Raises LayoutproofError for bad input, for a map that goes below zero or
    divides by zero (naming the logical index), and for a physical shape that is too small.
    Source: the seed `buffer-physical-layout`.
    """
    given = read_question(index_map, shape, where)
    return report_on(*given, box=box, physical_shape=None if physical_shape is None else read_shape(physical_shape))


def prove_injective(index_map: MapLike, shape: ShapeLike, where: Expr | str | None = None) -> Verdict:
    """Whether no two logical indices share a cell. Raises as `check_map` does."""
    return map_report.prove_injective(*read_question(index_map, shape, where))


def prove_bijective(index_map: MapLike, shape: ShapeLike, where: Expr | str | None = None) -> Verdict:
    """Whether every cell of the physical box holds exactly one logical index. Raises as `check_map` does."""
    return check_map(index_map, shape, where).bijective
