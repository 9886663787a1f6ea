"""One component of an index map through the engines, in order: symbolic, bits, enumeration, isl, z3. Each decides or
passes on; the decision names the one that did. Part of the trusted computing base.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import const
from layoutproof.verify.algebra.enumeration import MAX_POINTS, TooLarge, duplicate, tabulate
from layoutproof.verify.algebra.polynomials import AtomKind, constant, constant_of, plus, scale
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.space import BudgetExceeded, limited
from layoutproof.verify.maps.bits import kernel_points, read_linear
from layoutproof.verify.maps.decision import Collision, Decision, Points
from layoutproof.verify.maps.examples import collision_at, collision_in_window, two_values
from layoutproof.verify.maps.inverse import Inversion, try_invert
from layoutproof.verify.maps.problem import Part
from layoutproof.verify.maps.proposals import try_invert_through_carrier
from layoutproof.verify.maps.symbolic_shapes import prove_injective_by_z3
from layoutproof.verify.program.questions import Because
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    from layoutproof.verify.isl.relation import Relation

RLIMIT = 4_000_000
OPERATIONS = 200_000  # of isl, for each question


def decide(part: Part) -> Decision:
    """Whether the component is injective, by the first engine that decides."""
    if not part.axes:
        return _unused_input(part)
    found = by_identity(part) or by_structure(part)
    return found if found is not None else without_structure(part)


def without_structure(part: Part) -> Decision:
    """The same without the symbolic engine."""
    if part.problem.concrete:
        return _concrete(part)
    if not part.inputs:
        return Decision(Status.PROVED, "symbolic", image=constant(1))
    return _by_solvers(part, "")


def _unused_input(part: Part) -> Decision:
    """An input that no output uses: any two of its values go to one cell."""
    (k,) = part.inputs
    collision = two_values(k, part)
    if collision is not None:
        return Decision(Status.REFUTED, "symbolic", collision=collision, image=constant(1))
    extent = part.problem.extent_polys[k]
    if extent is not None and part.problem.ring.is_nonnegative(plus(scale(extent, -1), 1)):
        return Decision(Status.PROVED, "symbolic", image=constant(1))
    reason = "an input is not used, and no instance in which it has two values was found"
    return Decision(Status.UNKNOWN, "symbolic", reason=reason)


def _concrete(part: Part) -> Decision:
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


def _by_solvers(part: Part, reason: str) -> Decision:
    """isl, then z3; before them, a search for two indices with one image among the small ones."""
    collision = collision_in_window(part)
    if collision is not None:
        return Decision(Status.REFUTED, "enumeration", collision=collision)
    first = by_isl(part)
    if first.status is not Status.UNKNOWN:
        return first
    second = by_z3(part)
    if second.status is Status.PROVED:
        return second
    reasons = [
        reason,
        *(why for a in part.axes if (why := part.problem.why_not.get(a)) is not None),
        first.reason,
        second.reason,
    ]
    told = "; ".join(dict.fromkeys(r for r in reasons if r))
    return replace(first, reason=told, because=first.because | second.because, found=first)


# The engines


def by_identity(part: Part) -> Decision | None:
    """One axis that is one input, in a box of exactly its extent: the most common component."""
    if len(part.axes) != 1 or len(part.inputs) != 1:
        return None
    (axis,), (k,) = part.axes, part.inputs
    problem = part.problem
    atom = problem.atoms[k]
    if problem.outputs[axis] != {(atom,): 1} or problem.extent_polys[k] != part.sizes.get(axis):
        return None
    return Decision(Status.PROVED, "symbolic", image=problem.extent_polys[k])


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


def by_structure(part: Part) -> Decision | None:
    """The symbolic engine: elimination, checked by rewriting."""
    inversion = invert(part)
    if inversion is None and len(part.inputs) > 1:
        inversion = try_invert_through_carrier(part)
    if inversion is None:
        return None
    engine = "mixed-radix" if _has_products(part) else "symbolic"
    return Decision(Status.PROVED, engine, image=part.domain_size(), found=inversion)


def _has_products(part: Part) -> bool:
    """Whether products or quotients of symbols occur, so that the mixed-radix lemma was used."""
    ring = part.problem.ring
    forms = [form for a in part.axes if (form := part.problem.outputs[a]) is not None]
    below = [ring.atoms[number] for number in ring.atoms_below(forms)]
    divisors = [atom.parts[1] for atom in below if atom.kind is AtomKind.FLOOR]
    return any(len(m) > 1 for form in forms for m in form) or any(constant_of(d) is None for d in divisors)


def by_bits(part: Part) -> Decision | None:
    """Gaussian elimination over bits, where every output is linear in them."""
    linear = read_linear(part.outputs, part.names, part.extents)
    if linear is None:
        return None
    image = constant(1 << linear.rank)
    if not linear.kernel:
        return Decision(Status.PROVED, "GF(2)", image=image, found=linear)
    first, second = (dict(zip(part.inputs, point, strict=True)) for point in kernel_points(linear, part.extents))
    return Decision(Status.REFUTED, "GF(2)", collision=Collision(first, second), image=image, found=linear)


def by_enumeration(part: Part) -> Decision:
    """Every point of the component. Raises TooLarge."""
    units = part.unit_names
    table = tabulate(part.outputs, [*part.names, *units], [*part.extents, *(1 for _ in units)])
    points = Points(table, table.flat(part.box))
    twice = duplicate(points.offsets)
    if twice is not None:
        collision = collision_at(part, table, twice, {})
        return Decision(Status.REFUTED, "enumeration", collision=collision, found=points)
    return Decision(Status.PROVED, "enumeration", image=constant(table.points), found=points)


def relation_of(part: Part, ctx: Any) -> Relation:
    """The component as a relation. Raises NotQuasiAffine."""
    # Most maps need no relation, which takes long to load.
    from layoutproof.verify.isl.relation import make_relation

    problem = part.problem
    names = [*part.names, *part.unit_names]
    extents = [*(problem.shape[k] for k in part.inputs), *(const(1) for _ in part.unit_names)]
    outputs = {f"p{axis}": problem.index_map.outputs[axis] for axis in part.axes}
    return make_relation(ctx, names, extents, problem.symbols, problem.inhabited, outputs)


def by_isl(part: Part) -> Decision:
    """Integer sets with a budget for each question; unknown if not quasi-affine or the budget is spent."""
    try:
        with limited(OPERATIONS) as ctx:
            injective = relation_of(part, ctx).is_injective()
    except (NotQuasiAffine, BudgetExceeded) as reason:
        because = frozenset(reason.because if isinstance(reason, BudgetExceeded) else ())
        return Decision(Status.UNKNOWN, "isl", reason=str(reason), because=because)
    if injective:
        return Decision(Status.PROVED, "isl", image=part.domain_size())
    collision = _collision_by_isl(part)
    if collision is None:
        reason_text = "not injective, but the search for two indices with one image spent its budget"
        return Decision(Status.UNKNOWN, "isl", reason=reason_text, because=frozenset((Because.BUDGET,)))
    return Decision(Status.REFUTED, "isl", collision=collision)


def _collision_by_isl(part: Part) -> Collision | None:
    # Most maps need no relation, which takes long to load.
    from layoutproof.verify.isl.relation_exprs import collision_of

    try:
        with limited(OPERATIONS) as ctx:
            found = collision_of(relation_of(part, ctx))
    except BudgetExceeded:
        return None
    if found is None:
        return None
    first, second, symbols = found
    positions = {v.name: k for k, v in enumerate(part.problem.index_map.inputs)}
    return Collision({positions[n]: i for n, i in first.items()}, {positions[n]: i for n, i in second.items()}, symbols)


def by_z3(part: Part) -> Decision:
    """Injectivity by non-linear integer arithmetic."""
    proved, reason, because = prove_injective_by_z3(part.problem, part.axes, part.inputs, RLIMIT)
    if proved:
        return Decision(Status.PROVED, "z3", image=part.domain_size())
    return Decision(Status.UNKNOWN, "z3", reason=reason, because=because)
