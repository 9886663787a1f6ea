"""Facts about an index map on a shape: injective, bijective onto its physical box, padding, inverse; and whether two
maps are equal. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import INT32, INT64, DType
from layoutproof.ir.expr import TRUE, Expr, compare, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import CompareOp
from layoutproof.verify.algebra.enumeration import MAX_POINTS, TooLarge, first_where, tabulate
from layoutproof.verify.algebra.lift import NumberTooWide, Renderer, number
from layoutproof.verify.algebra.polynomials import Poly, constant_of
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.bits import read_linear
from layoutproof.verify.maps.box import Size, check_traps, physical_box, shown_sizes, size_exprs
from layoutproof.verify.maps.component import analyse
from layoutproof.verify.maps.component_by_isl import is_unreached_by_isl
from layoutproof.verify.maps.map_report import (
    Answer,
    Collision,
    MapReport,
    Padding,
    bijective_claim,
    combine,
    injective_claim,
    product,
)
from layoutproof.verify.maps.problem import (
    Part,
    Problem,
    Shape,
    cell_variable,
    check_rank,
    coerce_shape,
    components,
    make_problem,
    read_problem,
    with_forms,
)
from layoutproof.verify.maps.proposals import find_hole
from layoutproof.verify.maps.split import report_on_splits
from layoutproof.verify.maps.symbolic_shapes import (
    at_instance,
    concrete_map,
    condition_is_satisfiable,
    instance_at,
    instances,
    outputs_are_equal_by_z3,
)
from layoutproof.verify.program.evidence import UNRECORDED, Gathered, OneToOne
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


Box = Literal["digits", "tight"]
RLIMIT = 2_000_000


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
    parts = make_parts(problem, sizes)
    if (problem.symbols or problem.where != TRUE) and condition_is_satisfiable(problem, RLIMIT) is False:
        return _vacuous(problem, sizes, start)
    try:
        try:
            return _report(_Analysis(problem, sizes, parts, [analyse(part) for part in parts], start))
        except NumberTooWide:
            parts = [replace(part, cell_type=INT64) for part in parts]
            return _report(_Analysis(problem, sizes, parts, [analyse(part) for part in parts], start))
    except NumberTooWide as reason:
        raise error(codes.TOO_WIDE, f"the answer needs numbers of more than 64 bits: {reason}") from reason


def prove_injective(
    index_map: IndexMap, shape: Shape, where: Expr | None = None, gathered: Gathered = UNRECORDED
) -> Verdict:
    """Whether no two logical indices share a cell. Raises as `report_on` does."""
    verdict = report_on(index_map, shape, where).injective
    if verdict.status is not Status.PROVED or not gathered.is_recording:
        return verdict
    problem = make_problem(index_map, shape, where)
    given = problem.index_map
    # The evidence on the way is about parts of the map; the whole claim is one question.
    return replace(
        verdict, evidence=(OneToOne(given.inputs, problem.shape, given.outputs, problem.where, verdict.engine),)
    )


def make_parts(problem: Problem, sizes: Sequence[Size]) -> list[Part]:
    """The components of a problem, each with its part of the box."""
    cell_type = _cell_type(problem, sizes)
    cells: dict[int, Poly] = {}
    for axis, size in enumerate(sizes):
        if isinstance(size, str):
            cells[axis] = problem.ring.name(f"p{axis}", 0, None)
        else:
            cells[axis] = {} if constant_of(size) == 1 else problem.ring.below(f"p{axis}", size)
    box = {axis: size for axis, size in enumerate(sizes) if not isinstance(size, str)}
    return [Part(problem, c.axes, c.inputs, box, cells, cell_type) for c in components(problem)]


def _cell_type(problem: Problem, sizes: Sequence[Size]) -> DType:
    """32 bits, or 64 where an extent of the box or of the logical shape does not fit 32."""
    numbers = [constant_of(size) for size in sizes if not isinstance(size, str)]
    wide = any(number is not None and number > INT32.max_int for number in numbers)
    return INT64 if wide or any(v.dtype == INT64 for v in problem.index_map.inputs) else INT32


def _vacuous(problem: Problem, sizes: Sequence[Size], start: float) -> MapReport:
    claim = injective_claim(problem.domain_text())
    reason = "no values of the symbols satisfy the side condition with every extent at least 1"
    because = frozenset((Because.CONTRADICTION,))
    verdict = Verdict(Status.VACUOUS, claim, "z3", reason=reason, seconds=perf_counter() - start, because=because)
    physical = shown_sizes(problem, sizes)
    flattened = _flattened(problem, sizes)
    padding = Padding(None, None, None, reason)
    return MapReport(
        problem.given, problem.shape, verdict, verdict, physical,
        problem.given.separators, flattened, None, padding, reason,
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
    injective = _injective(found)
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


def _injective(found: _Analysis) -> Verdict:
    problem, answers, seconds = found.problem, found.answers, found.seconds
    claim = injective_claim(problem.domain_text())
    refuted = next((a for a in answers if a.status is Status.REFUTED and a.collision is not None), None)
    if refuted is not None and refuted.collision is not None:
        example = replayed(problem, refuted.collision)
        if example is not None:
            return Verdict(Status.REFUTED, claim, refuted.engine, counterexample=example, seconds=seconds)
        reason = "a counterexample was found but does not replay"
        return Verdict(Status.UNKNOWN, claim, refuted.engine, reason=reason, seconds=seconds)
    unknown = next((a for a in answers if a.status is not Status.PROVED), None)
    if unknown is not None:
        why, because = unknown.reason, unknown.because
        return Verdict(unknown.status, claim, unknown.engine, reason=why, because=because, seconds=seconds)
    return Verdict(Status.PROVED, claim, _engine(answers), reason=problem.assumptions(), seconds=seconds)


_ENGINES = ("symbolic", "mixed-radix", "GF(2)", "isl", "z3", "enumeration")


def _engine(answers: Sequence[Answer]) -> str:
    """The engine that did the hardest part."""
    used = {a.engine for a in answers}
    return next((e for e in reversed(_ENGINES) if e in used), "symbolic")


def replayed(problem: Problem, collision: Collision) -> dict[str, Any] | None:
    """The collision as JSON has it, once the reference evaluator has shown both indices to have one image."""
    count = len(problem.extents)
    symbols = collision.symbols
    a, b = ([index.get(k, 0) for k in range(count)] for index in (collision.first, collision.second))
    instance = instance_at(problem, symbols)
    if (
        a == b
        or instance is None
        or not all(0 <= i < e for index in (a, b) for i, e in zip(index, instance.extents, strict=True))
    ):
        return None
    image = problem.index_map.evaluate(a, symbols)
    if problem.index_map.evaluate(b, symbols) != image:
        return None
    example: dict[str, Any] = {"first": a, "second": b, "image": list(image)}
    return {**example, "symbols": dict(symbols)} if symbols else example


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


OPERATIONS = 300_000
EQUAL_RLIMIT = 4_000_000


def prove_equal_maps(first: IndexMap, second: IndexMap, shape: Shape, where: Expr | None = None) -> Verdict:
    """Whether two maps take every logical index of a shape to the same cell, separators aside.

    Refuted with `{"index", "first", "second"}`, and the symbols' values. Raises LayoutproofError for bad input.
    """
    start = perf_counter()
    extents = coerce_shape(shape)
    joined = _joined(first, second, extents, where)
    rank = joined.given.rank // 2
    text = f"both maps take every logical index of {joined.domain_text()} to the same cell"
    claim = Claim(ClaimKind.OTHER, text, about=("equal-maps", joined.domain_text()))
    pairs = [(k, k + rank) for k in range(rank)]
    open_pairs = [(a, b) for a, b in pairs if joined.outputs[a] is None or joined.outputs[a] != joined.outputs[b]]
    for axis in range(joined.given.rank):
        if joined.outputs[axis] is None:
            check_traps(joined, axis)
    if not open_pairs:
        return Verdict(Status.PROVED, claim, "symbolic", reason=joined.assumptions(), seconds=perf_counter() - start)
    by_bits = _by_bits(joined, open_pairs, rank)
    if by_bits is not None:
        status, found = by_bits
        return Verdict(status, claim, "GF(2)", counterexample=found, seconds=perf_counter() - start)
    different = logical_or(
        *(compare(CompareOp.NE, joined.index_map.outputs[a], joined.index_map.outputs[b]) for a, b in open_pairs)
    )
    example, complete = _difference(joined, different, rank)
    if example is not None:
        return Verdict(Status.REFUTED, claim, "enumeration", counterexample=example, seconds=perf_counter() - start)
    if complete:
        return Verdict(Status.PROVED, claim, "enumeration", seconds=perf_counter() - start)
    return _by_solvers(joined, different, claim, rank, start)


def _by_bits(
    problem: Problem, pairs: Sequence[tuple[int, int]], rank: int
) -> tuple[Status, dict[str, Any] | None] | None:
    """Whether outputs that are linear over bits are equal: their bits are the same XORs, or differ at an index of one
    bit or none. None where one is not linear.
    """
    if not problem.concrete:
        return None
    names = [v.name for v in problem.index_map.inputs]
    extents = problem.numbers(range(len(names)))
    used = [problem.index_map.outputs[axis] for pair in pairs for axis in pair]
    linear = read_linear(used, names, extents)
    if linear is None:
        return None
    if linear.columns[::2] == linear.columns[1::2]:
        return Status.PROVED, None
    bits = ([1 << bit if k == axis else 0 for k in range(len(extents))]
            for axis, extent in enumerate(extents) for bit in range(extent.bit_length() - 1))  # fmt: skip
    for point in ([0] * len(extents), *bits):
        example = _example(problem, tuple(point), {}, rank)
        if example["first"] != example["second"]:
            return Status.REFUTED, example
    return None


def _joined(first: IndexMap, second: IndexMap, extents: tuple[Expr, ...], where: Expr | None) -> Problem:
    """One problem whose outputs are those of the first map and then those of the second."""
    a = make_problem(first, extents, where)
    names = [v.name for v in a.given.inputs]
    check_rank(second, len(extents))
    other = second.rename(names)
    if other.rank != a.given.rank:
        raise error(codes.RANK, f"the maps have {a.given.rank} and {other.rank} axes")
    return make_problem(IndexMap(a.given.inputs, (*a.given.outputs, *other.outputs)), extents, where)


def _difference(problem: Problem, different: Expr, rank: int) -> tuple[dict[str, Any] | None, bool]:
    """An index at which the maps differ, and whether every index was tried."""
    names = [v.name for v in problem.index_map.inputs]
    if problem.concrete:
        extents = problem.numbers(range(len(names)))
        if prod(extents) > MAX_POINTS:
            return None, False
        try:
            point = first_where(different, names, extents)
        except TooLarge:
            return None, False
        return (None if point is None else _example(problem, point, {}, rank)), True
    for instance in instances(problem, 100):
        try:
            point = first_where(at_instance(problem, different, instance), names, instance.extents)
        except TooLarge:
            continue
        if point is not None:
            return _example(problem, point, dict(instance.values), rank), False
    return None, False


def _example(problem: Problem, point: tuple[int, ...], symbols: dict[str, int], rank: int) -> dict[str, Any]:
    image = problem.index_map.evaluate(point, symbols)
    found: dict[str, Any] = {"index": list(point), "first": list(image[:rank]), "second": list(image[rank:])}
    return {**found, "symbols": symbols} if symbols else found


def _by_solvers(problem: Problem, different: Expr, claim: Claim, rank: int, start: float) -> Verdict:
    # Most questions need no relation, which takes long to load.
    from layoutproof.verify.isl.relation import make_relation

    names = [v.name for v in problem.index_map.inputs]
    try:
        with limited(OPERATIONS) as ctx:
            relation = make_relation(ctx, names, problem.shape, problem.symbols, problem.where, {})
            found = relation.point_where(different)
        if found is None:
            return Verdict(Status.PROVED, claim, "isl", reason=problem.assumptions(), seconds=perf_counter() - start)
        point, symbols = found
        example = _example(problem, tuple(point[name] for name in names), symbols, rank)
        if example["first"] != example["second"]:
            return Verdict(Status.REFUTED, claim, "isl", counterexample=example, seconds=perf_counter() - start)
        reason = "isl's counterexample does not replay"
    except (NotQuasiAffine, BudgetExceeded) as problem_found:
        reason = str(problem_found)
    if outputs_are_equal_by_z3(problem, different, EQUAL_RLIMIT):
        return Verdict(Status.PROVED, claim, "z3", reason=problem.assumptions(), seconds=perf_counter() - start)
    return Verdict(Status.UNKNOWN, claim, "z3", reason=reason, seconds=perf_counter() - start)
