"""Whether two index maps are equal on a shape. Part of the trusted computing base."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from time import perf_counter
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, compare, logical_or
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.operators import CompareOp
from layoutproof.verify.algebra.enumeration import MAX_POINTS, TooLarge, first_where
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.bits import read_linear
from layoutproof.verify.maps.box import check_traps
from layoutproof.verify.maps.examples import at_instance, instances
from layoutproof.verify.maps.problem import Problem, Shape, check_rank, coerce_shape, make_problem
from layoutproof.verify.maps.symbolic_shapes import outputs_are_equal_by_z3, with_signs
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

OPERATIONS = 300_000
EQUAL_RLIMIT = 4_000_000


def prove_equal_maps(
    first: IndexMap, second: IndexMap, shape: Shape, where: Expr | None = None, negative: Collection[str] = ()
) -> Verdict:
    """Whether two maps take every logical index of a shape to the same cell, separators aside.

    Names are at least 0, but for those that may be `negative`. Refuted with `{"index", "first", "second"}`, and the
    symbols' values. Raises LayoutproofError for bad input.
    """
    start = perf_counter()
    extents: Sequence[Expr] = coerce_shape(shape)
    if negative:
        (first, second), extents, where = with_signs([first, second], extents, where, negative)
    joined = _joined(first, second, tuple(extents), where)
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
