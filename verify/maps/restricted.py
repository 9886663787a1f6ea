"""Whether a map is injective on the part of a box where a condition over its indices holds, for all values of free
parameters, which occur in no extent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.relation import Relation, make_relation
from layoutproof.verify.isl.relation_exprs import collision_of
from layoutproof.verify.isl.space import BudgetExceeded, NoAnswer, limited
from layoutproof.verify.maps.problem import check_rank
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

OPERATIONS = 2_000_000
MAX_POINTS = 1 << 16


@dataclass(frozen=True, slots=True)
class RestrictedReport:
    """A map, its box, the condition, and the verdict; `parameters` are names in no extent."""

    index_map: IndexMap
    shape: tuple[Expr, ...]
    where: Expr
    parameters: tuple[str, ...]
    injective: Verdict

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "index_map": index_map_text(self.index_map),
            "logical_shape": [e.value if isinstance(e, IntImm) else expr_text(e, "plain") for e in self.shape],
            "where": expr_text(self.where, "plain"),
            "parameters": list(self.parameters),
            "injective": self.injective.to_dict(),
        }


def judge_restricted(index_map: IndexMap, shape: Sequence[Expr], where: Expr) -> RestrictedReport:
    """Decide it by integer sets, or index by index where these cannot state it and the box has numbers.

    Parameters and symbols of extents are at least 0. Raises LayoutproofError for a map of another rank, or one that has
    no value, or a negative one, at an index where the condition holds.
    """
    check_rank(index_map, len(shape))
    start = perf_counter()
    names = [v.name for v in index_map.inputs]
    used = [v for e in (*shape, where, *index_map.outputs) for v in free_variables(e) if v.name not in names]
    symbols = list(dict.fromkeys(v.name for v in used))
    box = {v.name for e in shape for v in free_variables(e)}
    about = expr_text(where, "plain")
    claim = Claim(ClaimKind.CELLS, f"no two logical indices where {about} share a physical cell", about=("injective",))
    try:
        verdict = _by_sets(index_map, shape, where, symbols, claim)
    except (NotQuasiAffine, BudgetExceeded, NoAnswer) as problem:
        verdict = _by_points(index_map, shape, where, symbols, claim, str(problem))
    verdict = replace(verdict, seconds=perf_counter() - start)
    free = tuple(name for name in symbols if name not in box)
    return RestrictedReport(index_map, tuple(shape), where, free, verdict)


def _by_sets(index_map: IndexMap, shape: Sequence[Expr], where: Expr, symbols: Sequence[str], claim: Claim) -> Verdict:
    names = [v.name for v in index_map.inputs]
    outputs = {f"p{axis}": output for axis, output in enumerate(index_map.outputs)}
    with limited(OPERATIONS) as ctx:
        relation = make_relation(ctx, names, shape, symbols, where, outputs)
        if relation.domain.is_empty():
            return Verdict(Status.VACUOUS, claim, "isl", reason="no index satisfies the condition")
        _check_not_negative(relation, index_map)
        if relation.is_injective():
            return Verdict(Status.PROVED, claim, "isl")
        found = collision_of(relation)
    if found is None:
        return Verdict(Status.UNKNOWN, claim, "isl", reason="two indices share a cell, but none were found")
    first, second, values = found
    return _refuted(index_map, where, ([first[n] for n in names], [second[n] for n in names]), values, claim)


def _check_not_negative(relation: Relation, index_map: IndexMap) -> None:
    for axis in range(index_map.rank):
        below = relation.below_zero(axis)
        if below is not None:
            raise _negative(axis, [below[0][v.name] for v in index_map.inputs], below[1])


def _negative(axis: int, index: Sequence[int], values: dict[str, int]) -> LayoutproofError:
    given = f" (for {', '.join(f'{name} = {value}' for name, value in values.items())})" if values else ""
    return error(codes.BELOW_ZERO, f"output {axis} is below 0 at the index {tuple(index)}{given}")


def _refuted(
    index_map: IndexMap, where: Expr, points: tuple[list[int], list[int]], values: dict[str, int], claim: Claim
) -> Verdict:
    """The counterexample, once the reference evaluator has shown that both indices count and have one image."""
    names = [v.name for v in index_map.inputs]
    inside = all(bool(evaluate(where, {**values, **dict(zip(names, p, strict=True))})) for p in points)
    images = [index_map.evaluate(p, values) for p in points]
    if not inside or points[0] == points[1] or images[0] != images[1]:
        reason = "a counterexample was found but does not replay"
        return Verdict(Status.UNKNOWN, claim, "isl", reason=reason)
    example: dict[str, Any] = {"first": points[0], "second": points[1], "image": list(images[0])}
    if values:
        example["symbols"] = values
    return Verdict(Status.REFUTED, claim, "isl", counterexample=example)


def _by_points(
    index_map: IndexMap, shape: Sequence[Expr], where: Expr, symbols: Sequence[str], claim: Claim, why: str
) -> Verdict:
    extents = [extent.value for extent in shape if isinstance(extent, IntImm)]
    if symbols or prod(extents) > MAX_POINTS:
        return Verdict(Status.UNKNOWN, claim, "isl", reason=why)
    seen: dict[tuple[int, ...], list[int]] = {}
    names = [v.name for v in index_map.inputs]
    for number in range(prod(extents)):
        index: list[int] = []
        for extent in reversed(extents):
            index.insert(0, number % extent)
            number //= extent
        try:
            if not evaluate(where, dict(zip(names, index, strict=True))):
                continue
            image = index_map.evaluate(index)
        except Trap as problem:
            raise error(codes.NO_VALUE, f"the map has no value at the index {tuple(index)}: {problem}") from problem
        if min(image, default=0) < 0:
            raise _negative(next(k for k, value in enumerate(image) if value < 0), index, {})
        other = seen.setdefault(image, index)
        if other is not index:
            return _refuted(index_map, where, (other, index), {}, claim)
    if not seen:
        return Verdict(Status.VACUOUS, claim, "enumeration", reason="no index satisfies the condition")
    return Verdict(Status.PROVED, claim, "enumeration")


def is_restricted(where: Expr, index_map: IndexMap, shape: Sequence[Expr]) -> bool:
    """Whether a condition, or a map, has more names than a condition on the symbols of a shape: indices, parameters."""
    box = {v.name for extent in shape for v in free_variables(extent)}
    inputs = {v.name for v in index_map.inputs}
    names = {v.name for output in index_map.outputs for v in free_variables(output)} - inputs
    return bool((names | {v.name for v in free_variables(where)}) - box)
