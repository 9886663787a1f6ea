"""The physical box of a map: digits, least extents, or a given shape; and the refusal of maps that go below zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import FALSE, Expr
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import expr_text
from layoutproof.verify.algebra.enumeration import MAX_EXACT_POINTS, TooLarge, first_where, trap_condition
from layoutproof.verify.algebra.lift import Lifter
from layoutproof.verify.algebra.polynomials import GiveUp, Poly, add, constant, constant_of, plus
from layoutproof.verify.algebra.rendering import Renderer, size_text
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.bits import largest_value
from layoutproof.verify.maps.examples import Instance, at_instance, instances, lopsided_instances
from layoutproof.verify.maps.extents import axis_inputs, symbolic_extreme, tabulated_extreme
from layoutproof.verify.maps.problem import Problem, Shape, coerce_shape
from layoutproof.verify.maps.symbolic_shapes import Point, divisors_are_nonzero, is_nonnegative_by_z3
from layoutproof.verify.verdict.codes import IMAGE_UNKNOWN

if TYPE_CHECKING:
    from layoutproof.verify.isl.relation import Relation

OPERATIONS = 150_000
RLIMIT = 4_000_000


Size = Poly | str  # an extent, or why there is no closed form of it


def physical_box(problem: Problem, box: str, physical_shape: Shape | None) -> list[Size]:
    """The extent of every physical axis. Raises LayoutproofError for images below zero, traps, and small shapes."""
    if box not in ("digits", "tight"):
        raise error(codes.BOX_NAME, f"the box is {box!r}: 'digits' or 'tight' is expected")
    rank = problem.given.rank
    given: list[Poly | None] = [None] * rank
    if physical_shape is not None:
        sizes = coerce_shape(physical_shape)
        if len(sizes) != rank:
            extents, axes = counted(len(sizes), "extent", "extents"), counted(rank, "axis", "axes")
            raise error(codes.PHYSICAL_SHAPE, f"the physical shape has {extents}, the index map {axes}")
        given = [_lifted(problem, size) for size in sizes]
        box = "tight"
    result: list[Size] = []
    for axis in range(rank):
        wanted = given[axis]
        if wanted is not None and _plainly_holds(problem, axis, wanted):
            result.append(wanted)
            continue
        extent = axis_extent(problem, axis, box)
        if wanted is not None:
            if isinstance(extent, str):
                raise error(
                    codes.PHYSICAL_SHAPE, f"axis {axis} of the physical shape is not proved to hold the image: {extent}"
                )
            if not problem.ring.is_nonnegative(add(wanted, extent, -1)):
                raise _too_small(problem, axis, wanted, extent)
            extent = wanted
        result.append(extent)
    return result


def _plainly_holds(problem: Problem, axis: int, wanted: Poly) -> bool:
    """Whether the ranges of an output's normal form show that it stays within `[0, wanted)`."""
    form = problem.outputs[axis]
    if form is None:
        return False
    return problem.ring.is_nonnegative(form) and problem.ring.is_nonnegative(plus(add(wanted, form, -1), -1))


def _lifted(problem: Problem, size: Expr) -> Poly:
    try:
        return Lifter(problem.ring, problem.symbol_forms).lift(size)
    except GiveUp as reason:
        raise error(
            codes.PHYSICAL_SHAPE,
            f"the extent {expr_text(size, 'plain')} of the physical shape is not understood: {reason}",
        ) from reason


def _too_small(problem: Problem, axis: int, wanted: Poly, extent: Poly) -> LayoutproofError:
    renderer = Renderer(problem.ring, problem.shown)
    shown, least = size_text(renderer, wanted), size_text(renderer, extent)
    is_number = constant_of(add(wanted, extent, -1)) is not None
    doubt = "" if is_number else " (for some values of the symbols, or that is not proved)"
    return error(
        codes.PHYSICAL_SHAPE,
        f"axis {axis} of the physical shape is {shown}, which does not hold the image: its extent is {least}{doubt}",
    )


def axis_extent(problem: Problem, axis: int, box: str) -> Size:
    """The extent of one axis, once it is known to stay at or above zero and not to trap."""
    form = problem.outputs[axis]
    if form is None:
        check_traps(problem, axis)
    digit = digit_of(problem, axis)
    if digit is not None and box == "digits":
        return digit
    low = None if form is None else problem.ring.range_of(form)[0]
    if digit is None and (low is None or low < 0):
        check_not_negative(problem, axis)
    largest = symbolic_extreme(problem, axis, True)
    if largest is not None:
        return plus(largest, 1)
    if problem.concrete:
        largest_bits = _largest_by_bits(problem, axis)
        if largest_bits is not None:
            return constant(largest_bits + 1)
        found = tabulated_extreme(problem, axis)
        if found is not None:
            return constant(found[1] + 1)
    return _extent_by_isl(problem, axis)


def _largest_by_bits(problem: Problem, axis: int) -> int | None:
    inputs = axis_inputs(problem, axis)
    names = [problem.index_map.inputs[k].name for k in inputs]
    return largest_value(problem.index_map.outputs[axis], names, problem.numbers(inputs))


def digit_of(problem: Problem, axis: int) -> Poly | None:
    """`k` of an axis written `e % k`, where k is proved positive; None for any other axis."""
    digit = problem.index_map.digit_extent(axis)
    if digit is None:
        return None
    try:
        form = Lifter(problem.ring, problem.symbol_forms).lift(digit)
    except GiveUp:
        return None
    return form if problem.ring.is_nonnegative(plus(form, -1)) else None


# Images below zero


def check_not_negative(problem: Problem, axis: int) -> None:
    """Raise LayoutproofError where an output goes below zero, naming a logical index; also where neither is proved."""
    least = symbolic_extreme(problem, axis, False)
    if least is not None and problem.ring.is_nonnegative(least):
        return
    if problem.concrete:
        if _largest_by_bits(problem, axis) is not None:
            return
        found = tabulated_extreme(problem, axis)
        if found is not None:
            low, _, point = found
            if low < 0:
                raise _below_zero(problem, axis, low, dict(zip(axis_inputs(problem, axis), point, strict=True)), {})
            return
    else:
        _refute_nonnegative(problem, axis, instances(problem, 60))
    _nonnegative_by_isl(problem, axis)


def _below_zero(
    problem: Problem, axis: int, value: int, point: Mapping[int, int], symbols: Mapping[str, int]
) -> LayoutproofError:
    shown = _index_text(problem, point, symbols)
    text = expr_text(problem.given.outputs[axis], "plain")
    found = f"axis {axis} of the index map, `{text}`, is {value} at the logical index {shown}"
    message = f"{found}: a physical index is at least 0"
    return error(codes.BELOW_ZERO, message, help="add an offset that keeps it at or above 0, or wrap it with `%`")


def _index_text(problem: Problem, point: Mapping[int, int], symbols: Mapping[str, int]) -> str:
    index = f"({', '.join(str(point.get(k, 0)) for k in range(len(problem.extents)))})"
    return index + (f" with {', '.join(f'{n} = {v}' for n, v in symbols.items())}" if symbols else "")


def _refute_nonnegative(problem: Problem, axis: int, candidates: Iterable[Instance]) -> None:
    """Look for a negative value in some instances."""
    inputs = axis_inputs(problem, axis)
    output = problem.index_map.outputs[axis]
    for instance in candidates:
        point = _first_in(problem, instance, at_instance(problem, output, instance) < 0, inputs)
        if point is not None:
            index = [point.get(k, 0) for k in range(len(problem.extents))]
            raise _below_zero(
                problem, axis, problem.index_map.evaluate(index, instance.values)[axis], point, instance.values
            )


def _first_in(problem: Problem, instance: Instance, condition: Expr, inputs: Sequence[int]) -> dict[int, int] | None:
    """The first point of an instance where a condition on some inputs holds; None also if numbers are too large."""
    try:
        point = first_where(
            condition, [problem.index_map.inputs[k].name for k in inputs], [instance.extents[k] for k in inputs]
        )
    except TooLarge:
        return None
    return None if point is None else dict(zip(inputs, point, strict=True))


@dataclass(slots=True)
class _Scope:
    """An isl relation of one axis, and the inputs it is over."""

    relation: Relation
    inputs: list[int]


def _axis_relation(problem: Problem, axis: int, ctx: Any) -> _Scope:
    # Most maps need no relation, which takes long to load.
    from layoutproof.verify.isl.relation import make_relation

    inputs = axis_inputs(problem, axis)
    names = [problem.index_map.inputs[k].name for k in inputs]
    exprs = [problem.shape[k] for k in inputs]
    return _Scope(
        make_relation(
            ctx, names, exprs, problem.symbols, problem.inhabited, {f"p{axis}": problem.index_map.outputs[axis]}
        ),
        inputs,
    )


def _nonnegative_by_isl(problem: Problem, axis: int) -> None:
    try:
        with limited(OPERATIONS) as ctx:
            scope = _axis_relation(problem, axis, ctx)
            found = scope.relation.below_zero(0)
    except (NotQuasiAffine, BudgetExceeded) as reason:
        found_by_z3 = is_nonnegative_by_z3(problem, axis, RLIMIT)
        if found_by_z3 is True:
            return
        if isinstance(found_by_z3, Point):
            value = _value_at(problem, axis, found_by_z3)
            if value is not None and value < 0:
                raise _below_zero(
                    problem, axis, value, dict(enumerate(found_by_z3.index)), found_by_z3.instance.values
                ) from None
        if not problem.concrete:
            _refute_nonnegative(problem, axis, lopsided_instances(problem, MAX_EXACT_POINTS))
        text = expr_text(problem.given.outputs[axis], "plain")
        raise error(
            IMAGE_UNKNOWN, f"axis {axis} of the index map, `{text}`, is not proved to stay at or above 0: {reason}"
        ) from reason
    if found is not None:
        point, symbols = found
        values = {k: point[problem.index_map.inputs[k].name] for k in scope.inputs}
        index = [values.get(k, 0) for k in range(len(problem.extents))]
        raise _below_zero(problem, axis, problem.index_map.evaluate(index, symbols)[axis], values, symbols)


def _value_at(problem: Problem, axis: int, point: Point) -> int | None:
    """An output at a point; None where it has no value."""
    names = {v.name: i for v, i in zip(problem.index_map.inputs, point.index, strict=True)}
    try:
        return int(evaluate(problem.index_map.outputs[axis], {**point.instance.values, **names}))
    except Trap:
        return None


def _extent_by_isl(problem: Problem, axis: int) -> Size:
    try:
        with limited(OPERATIONS) as ctx:
            largest = _axis_relation(problem, axis, ctx).relation.extreme(0, True)
        if largest is not None:
            return plus(Lifter(problem.ring, problem.symbol_forms).lift(largest), 1)
    except (NotQuasiAffine, BudgetExceeded, GiveUp) as found:
        return f"the extent of axis {axis} is not found: {found}"
    return f"the extent of axis {axis} takes more than one formula"


# Traps


def check_traps(problem: Problem, axis: int) -> None:
    """Raise LayoutproofError if an output divides by zero, with the logical index, or if that is not excluded."""
    output = problem.index_map.outputs[axis]
    condition = trap_condition(output)
    if condition == FALSE:
        return
    inputs = axis_inputs(problem, axis)
    if problem.concrete:
        names = [problem.index_map.inputs[k].name for k in inputs]
        try:
            point = first_where(condition, names, problem.numbers(inputs))
        except TooLarge as reason:
            text = expr_text(problem.given.outputs[axis], "plain")
            raise error(
                IMAGE_UNKNOWN, f"axis {axis}, `{text}`, is not proved to be free of divisions by zero: {reason}"
            ) from reason
        if point is not None:
            raise _traps(problem, axis, dict(zip(inputs, point, strict=True)), {})
        return
    _refute_traps(problem, axis, condition, instances(problem, 60))
    found = divisors_are_nonzero(problem, axis, RLIMIT)
    if found is True:
        return
    if isinstance(found, Point) and _value_at(problem, axis, found) is None:
        raise _traps(problem, axis, dict(enumerate(found.index)), found.instance.values)
    _refute_traps(problem, axis, condition, lopsided_instances(problem, MAX_EXACT_POINTS))
    text = expr_text(problem.given.outputs[axis], "plain")
    raise error(IMAGE_UNKNOWN, f"axis {axis}, `{text}`, is not proved to be free of divisions by zero")


def _refute_traps(problem: Problem, axis: int, condition: Expr, candidates: Iterable[Instance]) -> None:
    """Look for a division by zero in some instances."""
    inputs = axis_inputs(problem, axis)
    for instance in candidates:
        point = _first_in(problem, instance, at_instance(problem, condition, instance), inputs)
        if point is not None:
            raise _traps(problem, axis, point, instance.values)


def _traps(problem: Problem, axis: int, point: Mapping[int, int], symbols: Mapping[str, int]) -> LayoutproofError:
    text = expr_text(problem.given.outputs[axis], "plain")
    shown = _index_text(problem, point, symbols)
    return error(
        codes.NO_VALUE,
        f"axis {axis} of the index map, `{text}`, divides by zero or shifts too far at the logical index {shown}",
    )
