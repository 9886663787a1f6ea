"""One component of an index map through the engines, in order: symbolic, bits, enumeration, a window of small indices,
isl, z3. Each decides exactly or passes on; the answer names the one that decided. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.dtype import INT64
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, compare, const, logical_or
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.visit import substitute, walk
from layoutproof.verify.algebra.enumeration import MAX_CELLS, MAX_POINTS, Table, TooLarge, duplicate, over_box, tabulate
from layoutproof.verify.algebra.lift import NumberTooWide, Renderer, number
from layoutproof.verify.algebra.polynomials import AtomKind, constant, constant_of, plus, scale
from layoutproof.verify.maps.bits import input_exprs, kernel_points, padding_exprs, read_linear
from layoutproof.verify.maps.component_by_isl import by_isl
from layoutproof.verify.maps.inverse import Inversion, condition_expr, try_invert
from layoutproof.verify.maps.map_report import Answer, Collision
from layoutproof.verify.maps.problem import Part, cell_variable, written_size
from layoutproof.verify.maps.proposals import try_invert_through_carrier
from layoutproof.verify.maps.symbolic_shapes import at_instance, instances, prove_injective_by_z3
from layoutproof.verify.maps.tables import TooManyPieces, everything_but, predicate_of, values_of
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from layoutproof.ir.late import np


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
        return Answer(Status.REFUTED, "GF(2)", collision=Collision(first, second), padding=padding, image=image)
    inverse = dict(zip(part.inputs, input_exprs(linear, part.extents, cells), strict=True))
    return Answer(Status.PROVED, "GF(2)", inverse=inverse, padding=padding, image=image)


def collision_in_window(part: Part) -> Collision | None:
    """Two indices with one image in a small window of the inputs, or in a small instance of a symbolic shape."""
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
    return _collision_at(part, table, twice, symbols)


def _collision_at(part: Part, table: Table, twice: tuple[int, int], symbols: Mapping[str, int]) -> Collision:
    count = len(part.inputs)
    first, second = (dict(zip(part.inputs, table.point(position)[:count], strict=True)) for position in twice)
    return Collision(first, second, symbols)


def by_z3(part: Part) -> Answer:
    """Injectivity by non-linear integer arithmetic, without an inverse or a predicate."""
    proved, reason, because = prove_injective_by_z3(part.problem, part.axes, part.inputs, RLIMIT)
    missing = "proved by z3, which gives no expression"
    if proved:
        full = part.domain_size() is not None and part.domain_size() == part.box_size()
        padding = () if full else None
        return Answer(
            Status.PROVED,
            "z3",
            inverse_reason=missing,
            padding=padding,
            padding_reason=missing,
            image=part.domain_size(),
        )
    return Answer(Status.UNKNOWN, "z3", reason=reason, because=because, padding_reason=reason)


MAX_WRITTEN = 20_000
LONG = 30
SMALL_BOX = 1 << 12


def analyse(part: Part) -> Answer:
    """The component's answer by the first engine that decides."""
    if not part.axes:
        return _unused_input(part)
    found = by_identity(part) or by_structure(part)
    if found is not None:
        return found
    if part.problem.concrete:
        return _concrete(part)
    if not part.inputs:
        return by_constant(part)
    return _by_solvers(part, "")


def _unused_input(part: Part) -> Answer:
    """An input that no output uses: any two of its values go to one cell."""
    (k,) = part.inputs
    for instance in instances(part.problem, points=None):
        if instance.extents[k] > 1:
            collision = Collision({k: 0}, {k: 1}, instance.values)
            return Answer(Status.REFUTED, "symbolic", collision=collision, padding=(), image=constant(1))
    extent = part.problem.extent_polys[k]
    if extent is not None and part.problem.ring.is_nonnegative(plus(scale(extent, -1), 1)):
        return Answer(Status.PROVED, "symbolic", inverse={k: const(0)}, padding=(), image=constant(1))
    reason = "an input is not used, and no instance in which it has two values was found"
    return Answer(Status.UNKNOWN, "symbolic", reason=reason)


def _concrete(part: Part) -> Answer:
    if any(axis not in part.sizes for axis in part.axes):
        return _by_solvers(part, "an extent of the box is not known")
    found = by_bits(part)
    if found is not None:
        return found
    reason = f"{prod(part.extents)} points"
    if prod(part.extents) <= MAX_POINTS:
        try:
            return by_enumeration(part)
        except TooLarge as problem:
            reason = str(problem)
    return _by_solvers(part, reason)


def _by_solvers(part: Part, reason: str) -> Answer:
    """isl, then z3; before them, a search for two indices with one image among the small ones."""
    collision = collision_in_window(part)
    answer = by_isl(part)
    if collision is not None:
        kept = answer if answer.status is not Status.PROVED else Answer(Status.REFUTED, "enumeration")
        return replace(
            kept, status=Status.REFUTED, engine="enumeration", collision=collision, inverse=None, reason=None
        )
    if answer.status is not Status.UNKNOWN:
        return answer
    second = by_z3(part)
    if second.status is Status.PROVED:
        return second
    reasons = [
        reason,
        *(why for a in part.axes if (why := part.problem.why_not.get(a)) is not None),
        answer.reason,
        second.reason,
    ]
    return replace(
        answer, reason="; ".join(dict.fromkeys(r for r in reasons if r)), because=answer.because | second.because
    )


# The symbolic engine


def by_identity(part: Part) -> Answer | None:
    """One axis that is one input, in a box of exactly its extent: the most common component."""
    if len(part.axes) != 1 or len(part.inputs) != 1:
        return None
    (axis,), (k,) = part.axes, part.inputs
    problem = part.problem
    atom = problem.atoms[k]
    if problem.outputs[axis] != {(atom,): 1} or problem.extent_polys[k] != part.sizes.get(axis):
        return None
    return Answer(Status.PROVED, "symbolic", inverse={k: part.cell(axis)}, padding=(), image=problem.extent_polys[k])


def by_constant(part: Part) -> Answer:
    """Axes without inputs: one cell is reached, and every other one is padding."""
    problem = part.problem
    zero = {
        v: number(0, v.dtype) for v, atom in zip(problem.index_map.inputs, problem.atoms, strict=True) if atom is None
    }
    outputs = [substitute(o, zero) for o in part.outputs]
    answer = Answer(Status.PROVED, "symbolic", inverse={}, padding=(), image=constant(1))
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


def invert(part: Part) -> Inversion | None:
    """The checked inverse in normal form, where every output has a normal form and elimination inverts them."""
    problem = part.problem
    outputs = [form for a in part.axes if (form := problem.outputs[a]) is not None]
    atoms = [atom for k in part.inputs if (atom := problem.atoms[k]) is not None]
    extents = {
        a: e for k in part.inputs if (a := problem.atoms[k]) is not None and (e := problem.extent_polys[k]) is not None
    }
    if len(outputs) != len(part.axes) or len(extents) != len(part.inputs):
        return None
    return try_invert(problem.ring, outputs, [part.cells[a] for a in part.axes], atoms, extents)


def by_structure(part: Part) -> Answer | None:
    """The symbolic engine: elimination, checked by rewriting."""
    inversion = invert(part)
    if inversion is None and len(part.inputs) > 1:
        inversion = try_invert_through_carrier(part)
    if inversion is None:
        return None
    problem = part.problem
    size = part.domain_size()
    # As many logical indices as cells, and injective: there is no padding.
    full = size is not None and size == part.box_size()
    try:
        renderer = make_renderer(part)
        totals = {k: inversion.totals[atom] for k in part.inputs if (atom := problem.atoms[k]) is not None}
        inverse = {k: renderer.expr(total) for k, total in totals.items()}
        padding = () if full else tuple(condition_expr(renderer, violation) for violation in inversion.violations())
    except NumberTooWide:
        if part.cell_type == INT64:
            return None  # another engine may have smaller numbers
        raise
    engine = "mixed-radix" if _has_products(part) else "symbolic"
    padding = _read_from_table(part, padding)
    if sum(map(written_size, [*inverse.values(), *padding])) <= MAX_WRITTEN:
        return Answer(Status.PROVED, engine, inverse=inverse, padding=padding, image=size)
    if problem.concrete and prod(part.extents) <= MAX_POINTS:
        return None  # enumeration finds shorter texts
    reason = f"the shortest text found has more than {MAX_WRITTEN} operands"
    return Answer(Status.PROVED, engine, image=size, inverse_reason=reason, padding_reason=reason)


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


def _has_products(part: Part) -> bool:
    """Whether products or quotients of symbols occur, so that the mixed-radix lemma was used."""
    ring = part.problem.ring
    forms = [form for a in part.axes if (form := part.problem.outputs[a]) is not None]
    below = [ring.atoms[number] for number in ring.atoms_below(forms)]
    divisors = [atom.parts[1] for atom in below if atom.kind is AtomKind.FLOOR]
    return any(len(m) > 1 for form in forms for m in form) or any(constant_of(d) is None for d in divisors)


def make_renderer(part: Part) -> Renderer:
    """Prints cells as `p<axis>` variables of the cells' type."""
    names = dict(part.problem.shown)
    for axis in part.axes:
        for monomial in part.cells[axis]:
            names[monomial[0]] = cell_variable(axis, part.cell_type)
    return Renderer(part.problem.ring, names, part.cell_type)


# Enumeration


def by_enumeration(part: Part) -> Answer:
    """Every point of the component. Raises TooLarge."""
    units = part.unit_names
    table = tabulate(part.outputs, [*part.names, *units], [*part.extents, *(1 for _ in units)])
    offsets = table.flat(part.box)
    twice = duplicate(offsets)
    padding, reason, hole, count = _image_of(part, offsets)
    answer = Answer(
        Status.PROVED, "enumeration", padding=padding, padding_reason=reason, image=constant(count), hole=hole
    )
    if twice is not None:
        return replace(answer, status=Status.REFUTED, collision=_collision_at(part, table, twice, {}))
    try:
        inverse = _table_inverse(part, table, offsets)
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
