"""The symbols of a shape: their normal forms, and the facts that the side condition gives about them.

Bounds, multiples and equations of single symbols go into the forms, comparisons between symbols become facts of the
ring. Other conjuncts are left out, which only makes less provable; isl and z3 are given the whole condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Binary, Compare, Expr, IntImm, Logical, Var
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.visit import free_variables
from layoutproof.verify.algebra.lift import Lifter
from layoutproof.verify.algebra.polynomials import ONE, GiveUp, Poly, add, constant, constant_of, plus, scale
from layoutproof.verify.algebra.ring import Ring


@dataclass(slots=True)
class Bounds:
    """Bounds of one symbol by the side condition: `low <= s`, `s <= high`, `s % factor == 0`."""

    low: int = 0
    high: int | None = None
    factor: int = 1


def conjuncts(expr: Expr) -> list[Expr]:
    """The parts of a conjunction."""
    if isinstance(expr, Logical) and expr.op is LogicalOp.AND:
        return [*conjuncts(expr.lhs), *conjuncts(expr.rhs)]
    return [expr]


def symbol_bounds(condition: Expr, names: Sequence[str]) -> dict[str, Bounds]:
    """The bounds that the conjuncts state of single symbols; other conjuncts are left to isl and z3."""
    found = {name: Bounds() for name in names}
    for part in conjuncts(condition):
        if not isinstance(part, Compare):
            continue
        left, op, right = part.lhs, part.op, part.rhs
        if isinstance(left, IntImm):
            left, op, right = right, op.mirrored, left
        if not isinstance(right, IntImm):
            continue
        value = right.value
        if isinstance(left, Var):
            _note(found[left.name], op, value)
        elif (
            isinstance(left, Binary)
            and left.op is BinaryOp.FLOORMOD
            and isinstance(left.lhs, Var)
            and isinstance(left.rhs, IntImm)
        ):
            if op is CompareOp.EQ and value == 0 and left.rhs.value > 1 and found[left.lhs.name].factor == 1:
                found[left.lhs.name].factor = left.rhs.value
    return found


def _note(bounds: Bounds, op: CompareOp, value: int) -> None:
    if op in (CompareOp.GT, CompareOp.GE, CompareOp.EQ):
        bounds.low = max(bounds.low, value + (op is CompareOp.GT))
    if op in (CompareOp.LT, CompareOp.LE, CompareOp.EQ):
        top = value - (op is CompareOp.LT)
        bounds.high = top if bounds.high is None else min(bounds.high, top)


def symbol_forms(ring: Ring, names: Sequence[str], condition: Expr, shown: dict[int, Expr]) -> dict[str, Poly]:
    """The symbols' forms: atoms with bounds, or forms of other symbols that the side condition makes equal.

    Conjuncts that compare symbols with each other become facts of the ring.
    """
    bounds = symbol_bounds(condition, names)
    forms: dict[str, Poly] = {}
    equal_to, facts = _relations(condition, bounds)
    for name in names:
        if name not in equal_to:
            forms[name] = _symbol_form(ring, name, bounds[name], shown)
    for name, other in equal_to.items():
        try:
            forms[name] = Lifter(ring, forms).lift(other)
        except GiveUp:
            forms[name] = _symbol_form(ring, name, bounds[name], shown)
    lifter = Lifter(ring, forms)
    for small, large, strict in facts:
        try:
            fact = plus(add(lifter.lift(large), lifter.lift(small), -1), -strict)
        except GiveUp:
            continue
        if constant_of(fact) is None:
            ring.facts.append(fact)
    return forms


def _symbol_form(ring: Ring, name: str, bounds: Bounds, shown: dict[int, Expr]) -> Poly:
    if bounds.high is not None and bounds.high == bounds.low and bounds.factor == 1:
        return constant(bounds.low)
    low = -(-bounds.low // bounds.factor)
    high = None if bounds.high is None else max(bounds.high // bounds.factor, low)
    form = ring.name(name, low, high)
    if bounds.factor > 1:
        ((atom,),) = form
        shown[atom] = Var(name) // bounds.factor
    return scale(form, bounds.factor)


def _relations(condition: Expr, bounds: Mapping[str, Bounds]) -> tuple[dict[str, Expr], list[tuple[Expr, Expr, bool]]]:
    """What the conjuncts tell of several symbols: `n == 2*m` (n by m), and `small <= large` or `small < large`."""
    equal_to: dict[str, Expr] = {}
    facts: list[tuple[Expr, Expr, bool]] = []
    used: set[str] = set()
    for part in conjuncts(condition):
        if (
            not isinstance(part, Compare)
            or not part.lhs.dtype.is_integer
            or isinstance(part.lhs, IntImm)
            or isinstance(part.rhs, IntImm)
        ):
            continue
        left, op, right = part.lhs, part.op, part.rhs
        if op in (CompareOp.GT, CompareOp.GE):
            left, op, right = right, op.mirrored, left
        if op in (CompareOp.LT, CompareOp.LE):
            facts.append((left, right, op is CompareOp.LT))
        elif op is CompareOp.EQ:
            for this, other in ((left, right), (right, left)):
                mentioned = {v.name for v in free_variables(other)}
                # A symbol with bounds of its own keeps them: it stays an atom.
                free = isinstance(this, Var) and bounds[this.name] == Bounds() and this.name not in mentioned | used
                if isinstance(this, Var) and free and not mentioned & equal_to.keys():
                    equal_to[this.name] = other
                    used |= mentioned | {this.name}
                    break
            facts += [(left, right, False), (right, left, False)]
    return equal_to, facts


def raise_lower_bounds(ring: Ring, extent: Poly) -> None:
    """Bound symbols by an extent `c*s - d` or `c*s*t` that is at least 1: an empty domain has nothing to prove."""
    products = [m for m in extent if m != ONE]
    if len(products) != 1 or extent[products[0]] <= 0:
        return
    least = -(-(1 - extent.get(ONE, 0)) // extent[products[0]])
    monomial = products[0]
    if least < 1 or not all(ring.atoms[a].low is not None for a in monomial):
        return
    for position in monomial:
        atom = ring.atoms[position]
        bound = least if len(monomial) == 1 else 1
        if atom.low is not None and atom.low < bound:
            atom.low = bound
