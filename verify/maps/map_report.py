"""Results about an index map: an engine's answer for one component, the padding of the whole map, and the report of
`check_map`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.expr import FALSE, Expr, IntImm, logical_or
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.text import expr_text
from layoutproof.verify.algebra.polynomials import Poly, add, constant_of
from layoutproof.verify.algebra.rendering import Renderer, size_expr
from layoutproof.verify.maps.decision import Decision
from layoutproof.verify.maps.injective import product
from layoutproof.verify.maps.problem import Problem
from layoutproof.verify.verdict.report import Report
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Verdict


@dataclass(frozen=True, slots=True)
class Answer:
    """What is told of a component, with what was decided. `padding` has conditions that make a cell padding; None:
    unknown, by `padding_reason`.

    `inverse` has an expression over cells for every input of the component. `image` is the number of cells reached;
    None when not known. `hole` is a cell of the component's axes that is not reached, by axis, if one is known without
    a search.
    """

    decision: Decision
    inverse: Mapping[int, Expr] | None = None
    inverse_reason: str | None = None
    padding: tuple[Expr, ...] | None = None
    padding_reason: str | None = None
    image: Poly | None = None
    hole: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Padding:
    """The physical cells without a logical index.

    `predicate` is over `p0, p1, ...` and the shape's names, true exactly on padding where no extent is 0 (where one is,
    nothing is stored, and it may divide by 0); None where it is not known. `cells` is their number, `fraction` their
    share of the box, if numbers. `reason` says why something is None.
    """

    predicate: Expr | None
    cells: int | Expr | None
    fraction: float | None
    reason: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether every cell is known to hold a logical index."""
        return self.cells == 0 if isinstance(self.cells, int) else self.predicate == FALSE

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it: the predicate as text, the cells as a number or text."""
        return {
            "predicate": None if self.predicate is None else expr_text(self.predicate, "plain"),
            "cells": json_size(self.cells),
            "fraction": self.fraction,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class MapReport(Report):
    """The facts about an index map on a shape; what is asked of it is whether it is injective. Extents are expressions,
    constants where the shape is concrete.

    An extent is None without a closed form (a symbolic one that takes a case distinction). `inverse` is a map over `p0,
    p1, ...`, right on the image and free of traps in the whole box; None where the map is not known to be injective,
    and, with `inverse_reason`, where no expression was found.
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

    def __repr__(self) -> str:
        # The class of a slotted dataclass is made twice, so super() is not told which one it is.
        return f"<{index_map_text(self.index_map)}: injective>" if self.ok else Report.__repr__(self)

    @property
    def asked(self) -> tuple[Verdict, ...]:
        """Injectivity. That a map is not onto its box is no fault: its padding says where."""
        return (self.injective,)

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


def bijective_claim(physical: Sequence[Expr | None], domain: str) -> Claim:
    """That a map of a domain reaches every cell of a box once."""
    shown = ", ".join(map(_size_text, physical))
    text = f"every cell of the physical box [{shown}] holds exactly one logical index of {domain}"
    return Claim(ClaimKind.OTHER, text, about=("bijective", shown, domain))


def _size_text(size: Expr | None) -> str:
    if isinstance(size, IntImm):
        return str(size.value)
    return "?" if size is None else expr_text(size, "plain")


def json_size(size: int | Expr | None) -> int | str | None:
    """A number as a number, anything else as text."""
    if isinstance(size, IntImm):
        return size.value
    return expr_text(size, "plain") if isinstance(size, Expr) else size


def combine(sizes: Sequence[Poly | str], answers: Sequence[Answer], renderer: Renderer) -> Padding:
    """The padding of the map: a cell is padding where any component says so; reached cells are a product."""
    missing = next((a for a in answers if a.padding is None), None)
    reason = None if missing is None else missing.padding_reason
    predicate = None if missing is not None else _joined([term for a in answers for term in a.padding or ()])
    known = [size for size in sizes if not isinstance(size, str)]
    if len(known) < len(sizes):
        unknown = next(size for size in sizes if isinstance(size, str))
        return Padding(predicate, None, None, unknown)
    images = [a.image for a in answers if a.image is not None]
    if len(images) < len(answers):
        return Padding(
            predicate, None, None, reason if reason is not None else "the number of cells reached has no closed form"
        )
    total = product(known)
    count = add(total, product(images), -1)
    number, all_cells = constant_of(count), constant_of(total)
    if number is None or all_cells is None:
        return Padding(predicate, renderer.expr(count) if number is None else number, None, reason)
    return Padding(predicate, number, number / all_cells if all_cells else 0.0, reason)


def _joined(terms: Sequence[Expr]) -> Expr:
    kept: list[Expr] = []
    for term in terms:
        if term != FALSE and term not in kept:
            kept.append(term)
    return logical_or(*kept)


def size_exprs(problem: Problem, sizes: Sequence[Poly]) -> tuple[Expr, ...]:
    """Extents as expressions."""
    renderer = Renderer(problem.ring, problem.shown)
    return tuple(size_expr(renderer, size) for size in sizes)


def shown_sizes(problem: Problem, sizes: Sequence[Poly | str]) -> tuple[Expr | None, ...]:
    """The same; None where there is no closed form."""
    return tuple(None if isinstance(size, str) else size_exprs(problem, [size])[0] for size in sizes)
