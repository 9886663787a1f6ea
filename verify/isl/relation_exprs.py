"""An index map's relation as numbers and expressions: a collision, the inverse, the padding, the number of cells.

Every function raises BudgetExceeded past the context's operations, and NoAnswer where isl's answer is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.operations import coalesced, function_of, point_of
from layoutproof.verify.isl.relation import Relation
from layoutproof.verify.isl.space import NoAnswer, integer, isl, map_from_affs


@contextmanager
def _numbers_that_fit() -> Iterator[None]:
    """NotQuasiAffine for coefficients that do not fit cells of 32 bits."""
    try:
        yield
    except ValueError as problem:
        raise NotQuasiAffine(Var("cell"), f"the expression has a number that is too large: {problem}") from problem


def collision_of(given: Relation) -> tuple[dict[str, int], dict[str, int], dict[str, int]] | None:
    """Two points with one image and the symbols' values, where there are such."""
    pairs = given.relation.apply_range(given.relation.reverse())
    pairs = pairs.intersect(isl.Map.lex_lt(given.space.space))
    if pairs.is_empty():
        return None
    point = point_of(pairs.wrap())
    count = len(given.space.dims)
    values = [integer(point.get_coordinate_val(isl.dim_type.set, k)) for k in range(2 * count)]
    symbols = {
        name: integer(point.get_coordinate_val(isl.dim_type.param, k)) for k, name in enumerate(given.space.params)
    }  # fmt: skip
    first, second = (dict(zip(given.space.dims, part, strict=True)) for part in (values[:count], values[count:]))
    return first, second, symbols


def inverse_of(given: Relation) -> list[Expr] | None:
    """The inputs over the cells of an injective relation, if one piece of affine functions gives them."""
    back = given.relation.reverse()
    pieces = pieces_of(function_of(back))
    if len(pieces) != 1:
        return None
    decoder = Decoder(given.cells)
    piece = pieces[0][1]
    with _numbers_that_fit():
        found = [decoder.affine(piece.get_aff(k)) for k in range(len(given.space.dims))]
    encoder = Encoder(given.cells)
    if not map_from_affs(given.cells, [encoder.function(e) for e in found], back.domain()).is_equal(back):
        raise NoAnswer("the inverse that isl found does not lead back")
    return found


def padding_of(given: Relation, box: Sequence[Expr]) -> Expr:
    """The condition on cells of the box that no point is mapped to."""
    encoder = Encoder(given.cells)
    inside = given.cells.universe()
    for name, extent in zip(given.cells.dims, box, strict=True):
        cell = isl.PwAff.from_aff(given.cells.variable(name))
        inside = inside.intersect(cell.ge_set(encoder.constant(0))).intersect(cell.lt_set(encoder.function(extent)))
    inside = inside.intersect(
        isl.Set.from_params(given.domain.params()).add_dims(isl.dim_type.set, len(given.cells.dims))
    )
    missing = coalesced(inside.subtract(given.relation.range()))
    with _numbers_that_fit():
        found = Decoder(given.cells).condition(missing.gist(inside))
    if not encoder.set_of(found).intersect(inside).is_equal(missing):
        raise NoAnswer("the condition that isl found is not that of the cells that nothing reaches")
    return found


def count_of(given: Relation) -> int | None:
    """The number of cells reached; None with symbols."""
    if given.space.params:
        return None
    size = given.relation.range().count_val()
    return integer(size) if size.is_int() else None
