"""The engines behind elimination, for one component: bits, a window of small indices, isl, z3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from layoutproof.ir.expr import Expr, Var, const, equal, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.verify.answer import Answer, Collision
from layoutproof.verify.bits import input_exprs, kernel_points, padding_exprs, read_linear
from layoutproof.verify.box import size_exprs
from layoutproof.verify.enumerate import TooLarge, duplicate, tabulate
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.relation import Relation, make_relation
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.lift import number
from layoutproof.verify.part import Part
from layoutproof.verify.polynomial import constant
from layoutproof.verify.problem import Problem
from layoutproof.verify.search import Because
from layoutproof.verify.symbolic import at_instance, instances, prove_injective_by_z3
from layoutproof.verify.verdict import Status

OPERATIONS = 200_000
RLIMIT = 4_000_000
WINDOW = 1 << 12


def by_bits(part: Part) -> Answer | None:
    """Gaussian elimination over bits, where every output is linear in them."""
    linear = read_linear(part.outputs, part.names, part.extents)
    if linear is None:
        return None
    cells = [part.cell(a) for a in part.axes]
    image = constant(1 << linear.rank)
    full = image == part.box_size()
    padding = () if full else tuple(padding_exprs(linear, part.box, cells))
    if linear.kernel:
        first, second = (dict(zip(part.inputs, point, strict=True)) for point in kernel_points(linear, part.extents))
        return Answer(Status.REFUTED, "f2", collision=Collision(first, second), padding=padding, image=image)
    inverse = dict(zip(part.inputs, input_exprs(linear, part.extents, cells), strict=True))
    return Answer(Status.PROVED, "f2", inverse=inverse, padding=padding, image=image)


def collision_in_window(part: Part) -> Collision | None:
    """Two indices with one image among the first few values of every input, or in a small instance of a symbolic shape."""
    if part.problem.concrete:
        return _collision(part, part.outputs, part.extents, {})
    for instance in instances(part.problem, 200):
        outputs = [at_instance(part.problem, o, instance) for o in part.outputs]
        found = _collision(part, outputs, tuple(instance.extents[k] for k in part.inputs), dict(instance.values))
        if found is not None:
            return found
    return None


def _collision(part: Part, outputs: list[Expr], extents: tuple[int, ...], symbols: dict[str, int]) -> Collision | None:
    window = list(extents)
    while prod(window) > WINDOW:
        longest = window.index(max(window))
        window[longest] = (window[longest] + 1) // 2
    units = part.unit_names
    try:
        table = tabulate(outputs, [*part.names, *units], [*window, *(1 for _ in units)])
        box = [int(column.max()) + 1 for column in table.columns]
        twice = duplicate(table.flat(box))
    except TooLarge:
        return None
    if twice is None:
        return None
    first, second = (dict(zip(part.inputs, table.point(position)[: len(part.inputs)], strict=True)) for position in twice)
    return Collision(first, second, symbols)


# -- isl --------------------------------------------------------------------------------------------------------------------------


def _relation(part: Part, ctx: Any) -> Relation:
    problem = part.problem
    names = [*part.names, *part.unit_names]
    extents = [*(problem.shape[k] for k in part.inputs), *(const(1) for _ in part.unit_names)]
    outputs = {f"p{axis}": problem.index_map.outputs[axis] for axis in part.axes}
    return make_relation(ctx, names, extents, problem.symbols, problem.inhabited, outputs)


def by_isl(part: Part) -> Answer:
    """Integer sets, each question within its own budget; unknown where the component is not quasi-affine or the budget is spent."""
    try:
        with limited(OPERATIONS) as ctx:
            injective = _relation(part, ctx).is_injective()
    except (NotQuasiAffine, BudgetExceeded) as reason:
        because = frozenset(reason.because if isinstance(reason, BudgetExceeded) else ())
        return Answer(Status.UNKNOWN, "isl", reason=str(reason), because=because, padding_reason=str(reason))
    answer = Answer(Status.PROVED if injective else Status.REFUTED, "isl", image=part.domain_size() if injective else None)
    if not injective:
        collision = _isl_collision(part)
        if collision is None:
            reason_text = "not injective, but the search for two indices with one image spent its budget"
            return Answer(Status.UNKNOWN, "isl", reason=reason_text, because=frozenset((Because.BUDGET,)), padding_reason=reason_text)
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
    """The expressions over cells of the report's own width."""
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
    """Whether isl shows that no logical index is mapped to a cell; false also where it cannot."""
    names = [v.name for v in problem.index_map.inputs]
    same = logical_and(*(equal(o, number(c, o.dtype)) for o, c in zip(problem.index_map.outputs, cell, strict=True)))
    try:
        with limited(OPERATIONS) as ctx:
            return make_relation(ctx, names, problem.shape, problem.symbols, problem.inhabited, {}).point_where(same) is None
    except (NotQuasiAffine, BudgetExceeded):
        return False


# -- z3 ---------------------------------------------------------------------------------------------------------------------------


def by_z3(part: Part) -> Answer:
    """Injectivity by non-linear integer arithmetic; neither inverse nor predicate come with it."""
    proved, reason, because = prove_injective_by_z3(part.problem, part.axes, part.inputs, RLIMIT)
    missing = "proved by z3, which gives no expression"
    if proved:
        full = part.domain_size() is not None and part.domain_size() == part.box_size()
        padding = () if full else None
        return Answer(Status.PROVED, "z3", inverse_reason=missing, padding=padding, padding_reason=missing, image=part.domain_size())
    return Answer(Status.UNKNOWN, "z3", reason=reason, because=because, padding_reason=reason)
