"""The most common component: one input, moved by a number, and all digits of the result in a mixed radix, in any order:
`(x + 1)//32, (x + 1)//4 % 8, (x + 1)%4`.

Every integer is the sum of its digits times their weights, whatever its sign. So the weighted sum of the cells, less the
number, is the inverse; and a cell whose lower coordinates are digits is reached exactly where that sum is a logical
index. Nothing is searched for or rewritten. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.polynomials import Poly, add, constant_of, plus
from layoutproof.verify.algebra.ring import Ring
from layoutproof.verify.maps.inverse import Condition, Sense, without_repeats
from layoutproof.verify.maps.problem import Part

Moved = tuple[str, int]  # a name, and the number that is added to it


@dataclass(frozen=True, slots=True)
class Split:
    """The inverse: `totals[x]` is the input atom x as a form over cells; and the input's extent."""

    ring: Ring
    totals: Mapping[int, Poly]
    extent: Poly

    def violations(self) -> tuple[Condition, ...]:
        """A cell has no preimage exactly where the sum is no logical index."""
        (total,) = self.totals.values()
        below = Condition(total, Sense.NEGATIVE)
        beyond = Condition(add(total, self.extent, -1), Sense.NONNEGATIVE)
        return without_repeats(self.ring, (below, beyond))


def read_split(part: Part) -> Split | None:
    """The component as a split of its one input; None where it is not written as one."""
    if len(part.inputs) != 1:
        return None
    problem, (k,) = part.problem, part.inputs
    atom, extent = problem.atoms[k], problem.extent_polys[k]
    found: list[tuple[int, int, int]] = []  # weight, modulus (0 for the highest digit) and axis
    moved: Moved | None = None
    for axis in part.axes:
        digit = _read_digit(problem.index_map.outputs[axis])
        if digit is None or (moved is not None and digit[2] != moved):
            return None
        weight, modulus, moved = digit
        if modulus and not _is_at_most(part.sizes.get(axis), modulus):
            return None
        found.append((weight, modulus, axis))
    if moved is None or atom is None or extent is None or moved[0] != problem.index_map.inputs[k].name:
        return None
    expected = 1
    total: Poly = {}
    for weight, modulus, axis in sorted(found, key=_from_the_lowest):
        if weight != expected:
            return None
        expected = weight * modulus  # 0 after the highest, which is no weight
        for cell in part.cells[axis]:
            total[cell] = weight
    return None if expected else Split(problem.ring, {atom: plus(total, -moved[1])}, extent)


def _from_the_lowest(digit: tuple[int, int, int]) -> tuple[int, bool]:
    return digit[0], digit[1] == 0


def _is_at_most(size: Poly | None, modulus: int) -> bool:
    number = None if size is None else constant_of(size)
    return number is not None and number <= modulus


def _read_digit(expr: Expr) -> tuple[int, int, Moved] | None:
    """`(x + c) // weight % modulus` as its numbers, with the modulus 0 where there is none; None for other forms."""
    weight, modulus = 1, 0
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORMOD:
        expr, modulus = _divided(expr)
        if modulus < 1:
            return None
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV:
        expr, weight = _divided(expr)
        if weight < 1:
            return None
    moved = _read_moved(expr)
    return None if moved is None else (weight, modulus, moved)


def _divided(expr: Binary) -> tuple[Expr, int]:
    """The dividend, and the divisor if it is a number; else 0."""
    return expr.lhs, expr.rhs.value if isinstance(expr.rhs, IntImm) else 0


def _read_moved(expr: Expr) -> Moved | None:
    """`x`, `x + c` or `x - c`."""
    if isinstance(expr, Var):
        return expr.name, 0
    if not (isinstance(expr, Binary) and isinstance(expr.lhs, Var) and isinstance(expr.rhs, IntImm)):
        return None
    if expr.op is BinaryOp.ADD:
        return expr.lhs.name, expr.rhs.value
    return (expr.lhs.name, -expr.rhs.value) if expr.op is BinaryOp.SUB else None
