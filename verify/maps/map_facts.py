"""Facts about an index map on a shape: injective, bijective onto its physical box, padding, inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT32, INT64, DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.algebra.enumeration import MAX_POINTS, TooLarge, tabulate
from layoutproof.verify.algebra.lift import NumberTooWide, number
from layoutproof.verify.algebra.polynomials import constant_of
from layoutproof.verify.algebra.rendering import Renderer
from layoutproof.verify.maps.box import Size, physical_box
from layoutproof.verify.maps.cells import find_hole
from layoutproof.verify.maps.component_facts import analyse
from layoutproof.verify.maps.examples import at_instance, concrete_map, instances
from layoutproof.verify.maps.facts_by_isl import is_unreached_by_isl
from layoutproof.verify.maps.injective import joined, make_parts, product, vacuous
from layoutproof.verify.maps.map_report import (
    Answer,
    MapReport,
    Padding,
    bijective_claim,
    combine,
    shown_sizes,
    size_exprs,
)
from layoutproof.verify.maps.problem import Part, Problem, Shape, cell_variable, read_problem, with_forms
from layoutproof.verify.maps.split_report import report_on_splits
from layoutproof.verify.verdict.verdict import Claim, Status, Verdict

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


Box = Literal["digits", "tight"]


def report_on(
    index_map: IndexMap,
    shape: Shape,
    where: Expr | None = None,
    *,
    box: Box = "digits",
    physical_shape: Shape | None = None,
) -> MapReport:
    """Everything about an index map on a logical shape; see `maps.check_map`."""
    start = perf_counter()
    reading = read_problem(index_map, shape, where)
    if box == "digits" and physical_shape is None:
        plain = report_on_splits(reading, start)
        if plain is not None:
            return plain
    problem = with_forms(reading)
    sizes = physical_box(problem, box, physical_shape)
    cell_type = _cell_type(problem, sizes)
    parts = [replace(part, cell_type=cell_type) for part in make_parts(problem, sizes)]
    nothing = vacuous(problem, start)
    if nothing is not None:
        return _vacuous(problem, sizes, nothing)
    try:
        try:
            return _report(_Analysis(problem, sizes, parts, [analyse(part) for part in parts], start))
        except NumberTooWide:
            parts = [replace(part, cell_type=INT64) for part in parts]
            return _report(_Analysis(problem, sizes, parts, [analyse(part) for part in parts], start))
    except NumberTooWide as reason:
        raise error(codes.TOO_WIDE, f"the answer needs numbers of more than 64 bits: {reason}") from reason


def _cell_type(problem: Problem, sizes: Sequence[Size]) -> DType:
    """32 bits, or 64 where an extent of the box or of the logical shape does not fit 32."""
    numbers = [constant_of(size) for size in sizes if not isinstance(size, str)]
    wide = any(number is not None and number > INT32.max_int for number in numbers)
    return INT64 if wide or any(v.dtype == INT64 for v in problem.index_map.inputs) else INT32


def _vacuous(problem: Problem, sizes: Sequence[Size], verdict: Verdict) -> MapReport:
    physical = shown_sizes(problem, sizes)
    flattened = _flattened(problem, sizes)
    padding = Padding(None, None, None, verdict.reason)
    return MapReport(
        problem.given, problem.shape, verdict, verdict, physical,
        problem.given.separators, flattened, None, padding, verdict.reason,
    )  # fmt: skip


# Putting the components together


@dataclass(frozen=True, slots=True)
class _Analysis:
    """The components of a problem with an answer for each, begun at the time `start`."""

    problem: Problem
    sizes: Sequence[Size]
    parts: Sequence[Part]
    answers: Sequence[Answer]
    start: float

    @property
    def seconds(self) -> float:
        """Until now."""
        return perf_counter() - self.start


def _report(found: _Analysis) -> MapReport:
    problem, sizes, answers = found.problem, found.sizes, found.answers
    physical = shown_sizes(problem, sizes)
    injective = joined(problem, [a.decision for a in answers], found.start)
    padding = combine(sizes, answers, Renderer(problem.ring, problem.shown))
    inverse, reason = _inverse(problem, found.parts, answers, injective)
    bijective = _bijective(found, physical, injective, padding, inverse)
    flattened = _flattened(problem, sizes)
    return MapReport(
        problem.given, problem.shape, injective, bijective, physical,
        problem.given.separators, flattened, inverse, padding, reason,
    )  # fmt: skip


def _flattened(problem: Problem, sizes: Sequence[Size]) -> tuple[Expr | None, ...]:
    result: list[Expr | None] = []
    for group in problem.given.groups:
        known = [size for axis in group if not isinstance(size := sizes[axis], str)]
        result.append(size_exprs(problem, [product(known)])[0] if len(known) == len(group) else None)
    return tuple(result)


def _bijective(
    found: _Analysis,
    physical: Sequence[Expr | None],
    injective: Verdict,
    padding: Padding,
    inverse: IndexMap | None,
) -> Verdict:
    problem, engine = found.problem, injective.engine
    claim = bijective_claim(physical, problem.domain_text())
    if padding.is_empty or injective.status in (Status.REFUTED, Status.VACUOUS):
        return replace(injective, claim=claim, seconds=found.seconds)
    if any(size is None for size in physical):
        reason = padding.reason if padding.reason is not None else "an extent of the box is not known"
        return Verdict(Status.UNKNOWN, claim, engine, reason=reason, seconds=found.seconds)
    if problem.concrete:
        hole = _a_hole(problem, found.parts, found.answers, inverse)
        if hole is not None:
            example = {"unreached": hole}
            return Verdict(Status.REFUTED, claim, engine, counterexample=example, seconds=found.seconds)
        reason = "no cell that nothing reaches was found"
        return Verdict(Status.UNKNOWN, claim, engine, reason=reason, seconds=found.seconds)
    return replace(_bijective_by_instances(problem, claim, physical, engine), seconds=found.seconds)


def _bijective_by_instances(problem: Problem, claim: Claim, physical: Sequence[Expr | None], engine: str) -> Verdict:
    """A box that has padding for some values of the symbols: one small instance, with a cell that nothing reaches."""
    known = [size for size in physical if size is not None]
    for instance in instances(problem, 40, None):
        concrete = concrete_map(problem, instance)
        sizes = [at_instance(problem, size, instance) for size in known]
        report = report_on(concrete, instance.extents, physical_shape=sizes)
        example = report.bijective.counterexample
        if report.bijective.status is Status.REFUTED and example is not None:
            return Verdict(Status.REFUTED, claim, engine, counterexample={**example, "symbols": dict(instance.values)})
    return Verdict(
        Status.UNKNOWN, claim, engine, reason="the padding is not proved empty, and small instances have none"
    )


def _a_hole(
    problem: Problem, parts: Sequence[Part], answers: Sequence[Answer], inverse: IndexMap | None
) -> list[int] | None:
    """A cell that no logical index reaches, replayed."""
    hole = find_hole(parts, answers)
    return hole if hole is not None and unreached(problem, hole, inverse) else None


def unreached(problem: Problem, hole: Sequence[int], inverse: IndexMap | None) -> bool:
    """Whether the reference evaluator agrees that no logical index has this image.

    By the inverse: the index that it gives is outside the domain, or has another image. Without one, by every index
    where there are few, else by isl.
    """
    extents = problem.numbers(range(len(problem.extents)))
    if inverse is not None:
        index = inverse.evaluate(hole)
        return not all(0 <= i < e for i, e in zip(index, extents, strict=True)) or list(
            problem.index_map.evaluate(index)
        ) != list(hole)
    if prod(extents) > MAX_POINTS:
        return is_unreached_by_isl(problem, hole)
    try:
        table = tabulate(problem.index_map.outputs, [v.name for v in problem.index_map.inputs], extents)
    except TooLarge:
        return is_unreached_by_isl(problem, hole)
    same = np.ones(table.points, dtype=np.bool_)
    for column, coordinate in zip(table.columns, hole, strict=True):
        same &= column == coordinate
    return not same.any()


def _inverse(
    problem: Problem, parts: Sequence[Part], answers: Sequence[Answer], injective: Verdict
) -> tuple[IndexMap | None, str | None]:
    if injective.status is not Status.PROVED:
        return None, "the map is not injective" if injective.status is Status.REFUTED else injective.reason
    found: dict[int, Expr] = {}
    for answer in answers:
        if answer.inverse is None:
            return None, answer.inverse_reason
        found.update(answer.inverse)
    cell_type = parts[0].cell_type if parts else INT32
    cells = tuple(cell_variable(axis, cell_type) for axis in range(problem.given.rank))
    return IndexMap(cells, tuple(found.get(k, number(0)) for k in range(len(problem.extents)))), None
