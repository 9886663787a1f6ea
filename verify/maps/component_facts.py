"""One component of an index map in full: what was decided, with an inverse and the padding as expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, compare, const, logical_or
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.visit import substitute, walk
from layoutproof.verify.algebra.enumeration import MAX_CELLS, MAX_POINTS, Table, TooLarge, over_box
from layoutproof.verify.algebra.lift import NumberTooWide, number
from layoutproof.verify.algebra.polynomials import constant
from layoutproof.verify.algebra.rendering import Renderer
from layoutproof.verify.maps.bits import Linear
from layoutproof.verify.maps.component import by_isl, decide, without_structure
from layoutproof.verify.maps.conditions import condition_expr, input_exprs, padding_exprs, violations
from layoutproof.verify.maps.decision import Decision, Points
from layoutproof.verify.maps.facts_by_isl import described_by_isl
from layoutproof.verify.maps.inverse import Inversion
from layoutproof.verify.maps.map_report import Answer
from layoutproof.verify.maps.problem import Part, cell_variable, written_size
from layoutproof.verify.maps.tables import TooManyPieces, everything_but, predicate_of, values_of
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


MAX_WRITTEN = 20_000
LONG = 30
SMALL_BOX = 1 << 12


def analyse(part: Part) -> Answer:
    """The component's answer by the first engine that decides, or by the next one, where that writes shorter texts."""
    decision = decide(part)
    answer = described(part, decision)
    return answer if answer is not None else _described(part, without_structure(part))


def described(part: Part, decision: Decision) -> Answer | None:
    """The answer that follows from a decision; None where the texts of an inversion are too long, and a table is
    shorter, or where its numbers are too wide.
    """
    if isinstance(decision.found, Inversion):
        return _by_inversion(part, decision, decision.found)
    return _described(part, decision)


def _described(part: Part, decision: Decision) -> Answer:
    if isinstance(decision.found, Linear):
        return _by_bits(part, decision, decision.found)
    if isinstance(decision.found, Points):
        return _by_table(part, decision, decision.found)
    if not part.axes:
        return _unused_input(part, decision)
    if decision.engine == "symbolic":
        return _identity(part, decision) if part.inputs else _by_constant(part, decision)
    if decision.engine == "isl":
        return described_by_isl(part, decision)
    if decision.engine == "z3":
        return _by_z3(part, decision)
    # Two indices with one image were found before isl was asked.
    seen = described_by_isl(part, by_isl(part))
    return replace(seen, decision=decision, inverse=None)


def _unused_input(part: Part, decision: Decision) -> Answer:
    if decision.status is Status.UNKNOWN:
        return Answer(decision)
    inverse = {part.inputs[0]: const(0)} if decision.status is Status.PROVED else None
    return Answer(decision, inverse=inverse, padding=(), image=decision.image)


def _identity(part: Part, decision: Decision) -> Answer:
    """One axis that is one input."""
    return Answer(decision, inverse={part.inputs[0]: part.cell(part.axes[0])}, padding=(), image=decision.image)


def _by_constant(part: Part, decision: Decision) -> Answer:
    """Axes without inputs: one cell is reached, and every other one is padding."""
    problem = part.problem
    zero = {
        v: number(0, v.dtype) for v, atom in zip(problem.index_map.inputs, problem.atoms, strict=True) if atom is None
    }
    outputs = [substitute(o, zero) for o in part.outputs]
    answer = Answer(decision, inverse={}, padding=(), image=decision.image)
    if part.box_size() == constant(1):
        return answer
    if not all(_is_plain(o) for o in outputs):
        return replace(
            answer,
            padding=None,
            padding_reason="a constant axis is written with operations that a predicate may not have",
        )
    return replace(
        answer, padding=tuple(compare(CompareOp.NE, part.cell(a), o) for a, o in zip(part.axes, outputs, strict=True))
    )


_PLAIN = {
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.FLOORDIV,
    BinaryOp.FLOORMOD,
    BinaryOp.BITAND,
    BinaryOp.BITXOR,
    BinaryOp.SHL,
}


def _is_plain(expr: Expr) -> bool:
    """Whether an expression has only the operations that predicates and inverses are written with."""
    return all(
        isinstance(n, Var | IntImm) or (isinstance(n, Binary) and n.op in {*_PLAIN, BinaryOp.SHR}) for n in walk(expr)
    )


def _by_z3(part: Part, decision: Decision) -> Answer:
    missing = "proved by z3, which gives no expression"
    padding = () if part.domain_size() is not None and part.domain_size() == part.box_size() else None
    return Answer(decision, inverse_reason=missing, padding=padding, padding_reason=missing, image=decision.image)


def _by_bits(part: Part, decision: Decision, linear: Linear) -> Answer:
    cells = [part.cell(a) for a in part.axes]
    padding = () if decision.image == part.box_size() else tuple(padding_exprs(linear, part.box, cells))
    proved = decision.status is Status.PROVED
    inverse = dict(zip(part.inputs, input_exprs(linear, part.extents, cells), strict=True)) if proved else None
    return Answer(decision, inverse=inverse, padding=padding, image=decision.image)


def _by_inversion(part: Part, decision: Decision, inversion: Inversion) -> Answer | None:
    problem, size = part.problem, decision.image
    # As many logical indices as cells, and injective: there is no padding.
    full = size is not None and size == part.box_size()
    try:
        renderer = make_renderer(part)
        totals = {k: inversion.totals[atom] for k in part.inputs if (atom := problem.atoms[k]) is not None}
        inverse = {k: renderer.expr(total) for k, total in totals.items()}
        padding = () if full else tuple(condition_expr(renderer, violation) for violation in violations(inversion))
    except NumberTooWide:
        if part.cell_type == INT64:
            return None  # another engine may have smaller numbers
        raise
    padding = _read_from_table(part, padding)
    if sum(map(written_size, [*inverse.values(), *padding])) <= MAX_WRITTEN:
        return Answer(decision, inverse=inverse, padding=padding, image=size)
    if problem.concrete and prod(part.extents) <= MAX_POINTS:
        return None  # enumeration finds shorter texts
    reason = f"the shortest text found has more than {MAX_WRITTEN} operands"
    return Answer(decision, image=size, inverse_reason=reason, padding_reason=reason)


def _read_from_table(part: Part, padding: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """A shorter condition that is true on the same cells of a small box, if there is one."""
    if not part.problem.concrete or any(axis not in part.sizes for axis in part.axes):
        return padding
    size = sum(map(written_size, padding))
    if size < LONG or size > MAX_WRITTEN or prod(part.box) > SMALL_BOX:
        return padding
    try:
        mask = over_box(logical_or(*padding), [f"p{axis}" for axis in part.axes], part.box).astype(np.bool_)
        shorter = predicate_of(mask.reshape(part.box), [part.cell(a) for a in part.axes], size // 3)
    except (TooLarge, TooManyPieces):
        return padding
    return (shorter,) if written_size(shorter) < size else padding


def make_renderer(part: Part) -> Renderer:
    """Prints cells as `p<axis>` variables of the cells' type."""
    names = dict(part.problem.shown)
    for axis in part.axes:
        for monomial in part.cells[axis]:
            names[monomial[0]] = cell_variable(axis, part.cell_type)
    return Renderer(part.problem.ring, names, part.cell_type)


# Enumeration


def _by_table(part: Part, decision: Decision, points: Points) -> Answer:
    padding, reason, hole, count = _image_of(part, points.offsets)
    answer = Answer(decision, padding=padding, padding_reason=reason, image=constant(count), hole=hole)
    if decision.status is not Status.PROVED:
        return answer
    try:
        inverse = _table_inverse(part, points.table, points.offsets)
    except TooManyPieces as reason_found:
        return replace(answer, inverse_reason=f"no expression of moderate size inverts it: {reason_found}")
    return replace(answer, inverse=inverse)


def _image_of(
    part: Part, offsets: NDArray[np.int64]
) -> tuple[tuple[Expr, ...] | None, str | None, Mapping[int, int] | None, int]:
    """The padding predicate, or why there is none; a cell that is not reached; the number of cells that are."""
    box = part.box
    if prod(box) > MAX_CELLS:
        return _image_in_large_box(part, offsets)
    free = np.ones(prod(box), dtype=np.bool_)
    free[offsets] = False
    holes = np.flatnonzero(free)
    count = prod(box) - len(holes)
    if not len(holes):
        return (), None, None, count
    hole = dict(zip(part.axes, Table(box, []).point(int(holes[0])), strict=True))
    try:
        return (predicate_of(free.reshape(box), [part.cell(a) for a in part.axes]),), None, hole, count
    except TooManyPieces as problem:
        return None, f"no predicate of moderate size: {problem}", hole, count


def _image_in_large_box(
    part: Part, offsets: NDArray[Any]
) -> tuple[tuple[Expr, ...] | None, str | None, Mapping[int, int] | None, int]:
    """As `_image_of`, by sorting the cells that are reached."""
    ordered = np.sort(offsets)
    reached = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    later = np.flatnonzero(reached != np.arange(len(reached)))
    first = int(later[0]) if len(later) else len(reached)
    hole = dict(zip(part.axes, Table(part.box, []).point(first), strict=True))
    if len(part.axes) > 1:
        return None, f"a box of {prod(part.box)} cells is too large to describe cell by cell", hole, len(reached)
    try:
        return (everything_but(reached, part.box[0], part.cell(part.axes[0])),), None, hole, len(reached)
    except TooManyPieces as problem:
        return None, f"no predicate of moderate size: {problem}", hole, len(reached)


def _table_inverse(part: Part, table: Table, offsets: NDArray[np.int64]) -> dict[int, Expr]:
    cells = [part.cell(a) for a in part.axes]
    coordinates = np.unravel_index(np.arange(table.points), table.extents) if table.extents else ()
    return {k: values_of(offsets, coordinates[position], part.box, cells) for position, k in enumerate(part.inputs)}
