"""What integer sets tell of one component of an index map beside whether it is injective: inverse, padding, and the
number of cells reached; each question within its own budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.ir.expr import Expr, Var, equal, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.algebra.lift import number
from layoutproof.verify.algebra.polynomials import Poly, constant
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.component import OPERATIONS, relation_of
from layoutproof.verify.maps.decision import Decision
from layoutproof.verify.maps.map_report import Answer, size_exprs
from layoutproof.verify.maps.problem import Part, Problem
from layoutproof.verify.verdict.verdict import Status


def described_by_isl(part: Part, decision: Decision) -> Answer:
    """The answer that follows from isl's decision."""
    if decision.status is Status.UNKNOWN:
        said = decision.found.reason if isinstance(decision.found, Decision) else decision.reason
        return Answer(decision, padding_reason=said)
    if decision.status is Status.REFUTED:
        return _with_padding(part, Answer(decision, image=_count(part)))
    return _with_padding(part, _with_inverse(part, Answer(decision, image=decision.image)))


def _count(part: Part) -> Poly | None:
    # Most maps need no relation, which takes long to load.
    from layoutproof.verify.isl.relation_exprs import count_of

    try:
        with limited(OPERATIONS) as ctx:
            count = count_of(relation_of(part, ctx))
    except BudgetExceeded:
        return None
    return None if count is None else constant(count)


def _with_inverse(part: Part, answer: Answer) -> Answer:
    from layoutproof.verify.isl.relation_exprs import inverse_of

    try:
        with limited(OPERATIONS) as ctx:
            found = inverse_of(relation_of(part, ctx))
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
    from layoutproof.verify.isl.relation_exprs import padding_of

    sizes = size_exprs(part.problem, [part.sizes[a] for a in part.axes])
    try:
        with limited(OPERATIONS) as ctx:
            found = padding_of(relation_of(part, ctx), sizes)
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
