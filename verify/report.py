"""What `check_map` reports, and its JSON form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.text import expr_text
from layoutproof.verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Padding:
    """The physical cells without a logical index.

    `predicate` is over `p0, p1, ...` and the shape's names, true exactly on padding where no extent is 0 (with one that is, nothing is
    stored, and it may divide by 0); None where it is not known. `cells` is their number;
    `fraction` their share of the box, where both are numbers. `reason` says why something is None.
    """

    predicate: Expr | None
    cells: int | Expr | None
    fraction: float | None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the predicate as text, the cells as a number or text."""
        return {
            "predicate": None if self.predicate is None else expr_text(self.predicate, "plain"),
            "cells": json_size(self.cells),
            "fraction": self.fraction,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class MapReport:
    """All that is found about an index map on a shape. Extents are expressions; constants where the shape is concrete.

    An extent that is not found in closed form (a symbolic one that takes a case distinction) is None.

    `inverse` is a map over `p0, p1, ...`, right on the image and free of traps everywhere in the box; None where the map is not injective
    (or where that is unknown), and, with `inverse_reason`, where no expression for it was found.
    """

    index_map: IndexMap
    shape: tuple[Expr, ...]
    injective: Verdict
    bijective: Verdict
    physical_shape: tuple[Expr | None, ...]
    axis_separators: tuple[int, ...]
    flattened_shape: tuple[Expr | None, ...]
    inverse: IndexMap | None
    padding: Padding
    inverse_reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "index_map": index_map_text(self.index_map),
            "shape": [json_size(e) for e in self.shape],
            "injective": self.injective.to_dict(),
            "bijective": self.bijective.to_dict(),
            "physical_shape": [json_size(e) for e in self.physical_shape],
            "axis_separators": list(self.axis_separators),
            "flattened_shape": [json_size(e) for e in self.flattened_shape],
            "inverse": None if self.inverse is None else index_map_text(self.inverse),
            "padding": self.padding.to_dict(),
        }


def json_size(size: int | Expr | None) -> int | str | None:
    """A number as a number, anything else as text."""
    if isinstance(size, IntImm):
        return size.value
    return expr_text(size, "plain") if isinstance(size, Expr) else size
