"""One component of an index map by integer sets, each question within its own budget. Part of the trusted computing
base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Expr, Var, const, equal, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.algebra.lift import number
from layoutproof.verify.algebra.polynomials import constant
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.box import size_exprs
from layoutproof.verify.maps.map_report import Answer, Collision
from layoutproof.verify.maps.problem import Part, Problem
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    from layoutproof.verify.isl.relation import Relation

OPERATIONS = 200_000


def _relation(part: Part, ctx: Any) -> Relation:
    # Most maps need no relation, which takes long to load.
    from layoutproof.verify.isl.relation import make_relation

    problem = part.problem
    names = [*part.names, *part.unit_names]
    extents = [*(problem.shape[k] for k in part.inputs), *(const(1) for _ in part.unit_names)]
    outputs = {f"p{axis}": problem.index_map.outputs[axis] for axis in part.axes}
    return make_relation(ctx, names, extents, problem.symbols, problem.inhabited, outputs)


def by_isl(part: Part) -> Answer:
    """Integer sets with a budget for each question; unknown if not quasi-affine or the budget is spent."""
    try:
        with limited(OPERATIONS) as ctx:
            injective = _relation(part, ctx).is_injective()
    except (NotQuasiAffine, BudgetExceeded) as reason:
        because = frozenset(reason.because if isinstance(reason, BudgetExceeded) else ())
        return Answer(Status.UNKNOWN, "isl", reason=str(reason), because=because, padding_reason=str(reason))
    answer = Answer(
        Status.PROVED if injective else Status.REFUTED, "isl", image=part.domain_size() if injective else None
    )
    if not injective:
        collision = _isl_collision(part)
        if collision is None:
            reason_text = "not injective, but the search for two indices with one image spent its budget"
            return Answer(
                Status.UNKNOWN,
                "isl",
                reason=reason_text,
                because=frozenset((Because.BUDGET,)),
                padding_reason=reason_text,
            )
        answer = replace(answer, collision=collision, image=_isl_count(part))
    return _with_padding(part, _with_inverse(part, answer) if injective else answer)


def _isl_collision(part: Part) -> Collision | None:
    try:
        with limited(OPERATIONS) as ctx:
            found = _relation(part, ctx).collision()
    except BudgetExceeded:
        return None
    if found is None:
        return None
    first, second, symbols = found
    positions = {v.name: k for k, v in enumerate(part.problem.index_map.inputs)}
    return Collision({positions[n]: i for n, i in first.items()}, {positions[n]: i for n, i in second.items()}, symbols)


def _isl_count(part: Part) -> dict[tuple[int, ...], int] | None:
    try:
        with limited(OPERATIONS) as ctx:
            count = _relation(part, ctx).count()
    except BudgetExceeded:
        return None
    return None if count is None else constant(count)


def _with_inverse(part: Part, answer: Answer) -> Answer:
    try:
        with limited(OPERATIONS) as ctx:
            found = _relation(part, ctx).inverse()
    except (NotQuasiAffine, BudgetExceeded) as reason:
        return replace(answer, inverse_reason=f"no expression was found: {reason}")
    if found is None:
        return replace(answer, inverse_reason="no single expression inverts it")
    return replace(answer, inverse=_retyped(part, dict(zip(part.inputs, found[: len(part.inputs)], strict=True))))


def _retyped(part: Part, inverse: dict[int, Expr]) -> dict[int, Expr]:
    """The expressions over cells of the report's type."""
    cells = tuple(Var(f"p{axis}") for axis in part.axes)
    order = list(inverse)
    moved = IndexMap(cells, tuple(inverse[k] for k in order)).map_indices([Var(c.name, part.cell_type) for c in cells])
    return dict(zip(order, moved, strict=True))


def _with_padding(part: Part, answer: Answer) -> Answer:
    size = answer.image
    if size is not None and size == part.box_size():
        return replace(answer, padding=())
    if any(a not in part.sizes for a in part.axes):
        return replace(answer, padding_reason="the box is not known")
    sizes = size_exprs(part.problem, [part.sizes[a] for a in part.axes])
    try:
        with limited(OPERATIONS) as ctx:
            found = _relation(part, ctx).padding(sizes)
    except (NotQuasiAffine, BudgetExceeded) as reason:
        return replace(answer, padding_reason=f"no predicate was found: {reason}")
    return replace(answer, padding=(found,))


def is_unreached_by_isl(problem: Problem, cell: Sequence[int]) -> bool:
    """Whether isl proves that no logical index is mapped to a cell."""
    from layoutproof.verify.isl.relation import make_relation

    names = [v.name for v in problem.index_map.inputs]
    same = logical_and(*(equal(o, number(c, o.dtype)) for o, c in zip(problem.index_map.outputs, cell, strict=True)))
    try:
        with limited(OPERATIONS) as ctx:
            relation = make_relation(ctx, names, problem.shape, problem.symbols, problem.inhabited, {})
            return relation.point_where(same) is None
    except (NotQuasiAffine, BudgetExceeded):
        return False
