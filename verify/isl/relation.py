"""An index map as an isl relation: injectivity, points and extremes, each under a budget.

Inputs, symbols and cells are known by name. Every method raises BudgetExceeded past the context's operations, and
NoAnswer where a check shows that isl's answer is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr
from layoutproof.verify.isl.decode import Decoder, pieces_of
from layoutproof.verify.isl.encode import Encoder
from layoutproof.verify.isl.operations import extreme_of, point_of
from layoutproof.verify.isl.space import NamedSpace, NoAnswer, integer, isl, map_from_affs


@dataclass(slots=True)
class Relation:
    """The map from points of the domain to cells; `space` names inputs and symbols, `cells` cells and symbols."""

    space: NamedSpace
    cells: NamedSpace
    functions: list[isl.PwAff]
    domain: isl.Set
    relation: isl.Map

    def is_injective(self) -> bool:
        """Whether no two points have one image, for any values of the symbols."""
        return bool(self.relation.is_injective())

    def extreme(self, position: int, largest: bool) -> Expr | None:
        """The exact least or largest value of one output over the symbols; None where it takes several pieces."""
        values = isl.Map.from_pw_aff(self.functions[position]).intersect_domain(self.domain).range()
        extreme = extreme_of(values, largest)
        pieces = pieces_of(extreme)
        if len(pieces) != 1:
            return None
        (domain, piece), symbols = pieces[0], NamedSpace(self.space.ctx, (), self.space.params)
        found = Decoder(symbols).affine(piece.get_aff(0))
        stated = map_from_affs(symbols, [Encoder(symbols).function(found)], domain)
        if not stated.is_equal(isl.Map.from_pw_multi_aff(extreme)):
            raise NoAnswer("the extreme value that isl found is not that of the expression")
        return found

    def below_zero(self, position: int) -> tuple[dict[str, int], dict[str, int]] | None:
        """A point, and the symbols' values, at which an output is negative."""
        negative = self.functions[position].neg().pos_set().intersect(self.domain)
        if negative.is_empty():
            return None
        return self._point(negative)

    def point_where(self, condition: Expr) -> tuple[dict[str, int], dict[str, int]] | None:
        """A point of the domain, and the symbols' values, at which a condition holds. Raises NotQuasiAffine."""
        found = Encoder(self.space, self.domain).set_of(condition).intersect(self.domain)
        return None if found.is_empty() else self._point(found)

    def _point(self, where: isl.Set) -> tuple[dict[str, int], dict[str, int]]:
        point = point_of(where)
        index = {n: integer(point.get_coordinate_val(isl.dim_type.set, k)) for k, n in enumerate(self.space.dims)}
        symbols = {n: integer(point.get_coordinate_val(isl.dim_type.param, k)) for k, n in enumerate(self.space.params)}
        return index, symbols


def make_relation(
    ctx: isl.Context,
    names: Sequence[str],
    extents: Sequence[Expr],
    symbols: Sequence[str],
    where: Expr,
    outputs: Mapping[str, Expr],
) -> Relation:
    """The relation of `outputs` (a cell's name for each) on the box of the named inputs. Raises NotQuasiAffine."""
    space = NamedSpace(ctx, names, symbols)
    encoder = Encoder(space)
    domain = encoder.set_of(where)
    for name in symbols:
        domain = domain.intersect(isl.PwAff.from_aff(space.variable(name)).nonneg_set())
    for name, extent in zip(names, extents, strict=True):
        this = isl.PwAff.from_aff(space.variable(name))
        domain = domain.intersect(this.nonneg_set()).intersect(this.lt_set(encoder.function(extent)))
    inner = Encoder(space, domain)
    functions = [inner.function(o) for o in outputs.values()]
    return Relation(
        space, NamedSpace(ctx, list(outputs), symbols), functions, domain, map_from_affs(space, functions, domain)
    )
