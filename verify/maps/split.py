"""The most common component: one input of a concrete extent, moved by a number, and all digits of the result in a mixed
radix, in any order: `(x + 1)//32, (x + 1)//4 % 8, (x + 1)%4`.

Every integer is the sum of its digits times their weights, whatever its sign. So the weighted sum of the cells, less
the number, is the inverse; and a cell whose lower coordinates are digits is reached exactly where that sum is a
logical index. Nothing is searched for or rewritten. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from layoutproof.ir.expr import Expr
from layoutproof.verify.algebra.lift import join
from layoutproof.verify.algebra.polynomials import constant_of
from layoutproof.verify.maps.inverse import Term, bound_expr
from layoutproof.verify.maps.problem import Part


@dataclass(frozen=True, slots=True)
class Split:
    """The input over the cells, the conditions of padding, and a padding cell by axis, if there is any."""

    inverse: Expr
    padding: tuple[Expr, ...]
    hole: dict[int, int] | None
    extent: int


def read_split(part: Part) -> Split | None:
    """The component as a split of its one input; None where it is not written as one. Raises NumberTooWide."""
    if len(part.inputs) != 1:
        return None
    (k,) = part.inputs
    extent = part.problem.extents[k]
    digits = _digits(part, part.problem.index_map.inputs[k].name)
    if digits is None or not isinstance(extent, int):
        return None
    offset, weights, sizes = digits
    terms = [
        Term(weight, part.cell(axis), 0, size - 1)
        for weight, axis, size in zip(weights, part.axes, sizes, strict=True)
        if size > 1
    ]
    terms.sort(key=lambda term: -term.factor)
    sums: list[tuple[int, Expr | None]] = [(term.factor, term.expr) for term in terms]
    inverse = join([*sums, (-offset, None)] if offset else sums, part.cell_type)
    if prod(sizes) == extent:
        return Split(inverse, (), None, extent)
    last = sum(weight * (size - 1) for weight, size in zip(weights, sizes, strict=True))
    if not terms or last < offset or -offset >= extent:
        return None  # no cell is reached: not a box that holds the image
    corner = {axis: size - 1 if last - offset >= extent else 0 for axis, size in zip(part.axes, sizes, strict=True)}
    return Split(inverse, tuple(_outside(terms, offset, last, extent)), corner, extent)


def _outside(terms: Sequence[Term], offset: int, last: int, extent: int) -> Iterator[Expr]:
    """Where the sum of the terms, at most `last`, is below `offset`, and where it is at least `offset + extent`."""
    common = gcd(*(term.factor for term in terms))
    reduced = [Term(term.factor // common, term.expr, term.low, term.high) for term in terms]
    if offset > 0:
        yield bound_expr(reduced, -(-offset // common), False)
    if last - offset >= extent:
        yield bound_expr(reduced, -(-(offset + extent) // common), True)


def _digits(part: Part, name: str) -> tuple[int, list[int], list[int]] | None:
    """The number that is added to the input; the weight and the size of each axis. None where they are not its digits
    in one radix, or an axis is longer than its digit.
    """
    offset: int | None = None
    weights: list[int] = []
    sizes: list[int] = []
    following: dict[int, int] = {}  # of each weight the one of the next digit; 0 after the highest
    for axis in part.axes:
        digit, size = part.problem.digits[axis], constant_of(part.sizes.get(axis, {}))
        if digit is None or not size or digit.name != name or (digit.modulus and size > digit.modulus):
            return None
        if offset not in (None, digit.offset) or (digit.weight in following and digit.modulus != 1):
            return None
        offset = digit.offset
        if digit.modulus != 1:  # a digit with one value adds nothing
            following[digit.weight] = digit.weight * digit.modulus
        weights.append(digit.weight)
        sizes.append(size)
    weight, seen = 1, 0
    while weight in following:
        weight, seen = following[weight], seen + 1
    return None if weight or seen < len(following) or offset is None else (offset, weights, sizes)
