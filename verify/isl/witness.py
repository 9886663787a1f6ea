"""Which of several relations reaches a point, and where from, as expressions: so a claim about covers needs no quantifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from layoutproof.verify.evidence import Unsaid, Witness
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.extremes import function_of, least
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.space import NamedSpace

# A cover: its number, the names of all its dimensions, its points.
Reaching: TypeAlias = "tuple[int, tuple[str, ...], isl.Set]"


def choose_witnesses(space: NamedSpace, points: isl.Set, covers: Sequence[Reaching]) -> list[Witness]:
    """For each cover in turn and what the ones before left of `points`: the least further coordinates, piece by piece.

    `space` names the coordinates of the points, which every cover has too. Raises Unsaid for numbers that are too large to write down,
    and NoAnswer.
    """
    decoder = Decoder(space)
    left = points
    found: list[Witness] = []
    for number, names, reached in covers:
        if left.is_empty():
            break
        relation, further = _relation(space, names, reached)
        relation = relation.intersect_domain(left)
        for _, piece in pieces_of(function_of(least(relation))):
            try:
                found.append((number, {name: decoder.affine(piece.get_aff(k)) for k, name in enumerate(further)}))
            except ValueError as problem:
                raise Unsaid(f"a number is too large: {problem}") from problem
        left = coalesced(left.subtract(relation.domain()))
    return found


def _relation(space: NamedSpace, names: Sequence[str], points: isl.Set) -> tuple[isl.Map, list[str]]:
    """A set over `names` as the relation from the coordinates of `space` to the further ones, with their names."""
    relation = isl.Map.from_range(points)
    remaining = list(names)
    for position, name in enumerate(space.dims):
        place = remaining.index(name)
        relation = relation.move_dims(isl.dim_type.in_, position, isl.dim_type.out, place, 1)
        del remaining[place]
    return relation, remaining
