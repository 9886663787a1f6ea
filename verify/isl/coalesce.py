"""Fewer pieces for the same set, the same ones in every run.

isl of version 2026.2 joins pieces in a way that depends on addresses in memory. While it brings the existential variables of two pieces
into one form, it asks whether a constraint is an equality by comparing pointers into two allocations (`isl_basic_map_constraint`, which
is handed a row of a piece that was copied meanwhile). What it answers is right, but the pieces differ from run to run, and with them the
text of certificates, and now and then an answer within a budget. The question is put only for a variable that an equality defines,
`m*e == f - c`, where another piece has the same with another `c`. Here such variables are given as `f % m == c` with `0 <= c < m`,
whose quotient isl keeps as `floor(f / m)`: then nothing is left to be brought into one form. What is given in another form is compared
with what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.space import integer, value

# Of a piece with more existential variables, a comparison takes seconds: it stays as it is.
_MOST_HIDDEN = 12

R = TypeVar("R", "isl.Map", "isl.Set", "isl.UnionMap", "isl.UnionSet")
_Row = list[int]


def coalesced(relation: R) -> R:
    """The same relation or set in fewer pieces, where isl finds such."""
    match relation:
        case isl.UnionMap():
            maps: list[isl.Map] = []
            relation.foreach_map(maps.append)
            joined = isl.UnionMap.empty(relation.get_space())
            for each in maps:
                joined = joined.union(isl.UnionMap.from_map(coalesced(each)))
            return joined
        case isl.UnionSet():
            sets: list[isl.Set] = []
            relation.foreach_set(sets.append)
            gathered = isl.UnionSet.empty(relation.get_space())
            for part in sets:
                gathered = gathered.union(isl.UnionSet.from_set(coalesced(part)))
            return gathered
        case isl.Map():
            return relation.coalesce() if relation.n_basic_map() < 2 else _alike(relation.wrap()).coalesce().unwrap()
        case _:
            return relation.coalesce() if relation.n_basic_set() < 2 else _alike(relation).coalesce()


def _alike(points: isl.Set) -> isl.Set:
    """The set with what its pieces say of remainders said in one form."""
    pieces = points.get_basic_sets()
    if sum(piece.dim(isl.dim_type.div) > 1 for piece in pieces) < 2:
        return points
    told = [_in_remainders(piece) if 1 < piece.dim(isl.dim_type.div) <= _MOST_HIDDEN else None for piece in pieces]
    if all(each is None for each in told):
        return points
    result = isl.Set.empty(points.get_space())
    for piece, other in zip(pieces, told, strict=True):
        result = result.union(isl.Set.from_basic_set(piece if other is None else other))
    return result


def _in_remainders(piece: isl.BasicSet) -> isl.BasicSet | None:
    """The piece with each variable that an equality defines over no other one said as a remainder; None where all are, or where isl does
    not know what another one is.
    """
    columns = (isl.dim_type.cst, isl.dim_type.param, isl.dim_type.set, isl.dim_type.div)
    equalities = _rows(piece.equalities_matrix(*columns))
    hidden = piece.dim(isl.dim_type.div)
    first = 1 + piece.dim(isl.dim_type.param) + piece.dim(isl.dim_type.set)
    strides = {k: row for row in equalities if (k := _only(row[first:])) is not None}
    if all(_is_plain(piece, position) for position in strides):
        return None
    sums = _Sums(piece)
    told = isl.BasicSet.universe(piece.get_space())
    for position in range(hidden):
        if position in strides:
            told = told.intersect(sums.add_quotient(strides[position][:first], strides[position][first + position]))
        elif not sums.add_floor(piece, position):
            return None
    for row in equalities:
        told = told.intersect(sums.of(row).zero_basic_set())
    for row in _rows(piece.inequalities_matrix(*columns)):
        told = told.intersect(sums.of(row).ge_basic_set(sums.of([0])))
    return told if told.is_equal(piece) else None


def _only(factors: Sequence[int]) -> int | None:
    """The position of the one factor that is not 0; None where there are none or several."""
    found = [position for position, factor in enumerate(factors) if factor]
    return found[0] if len(found) == 1 else None


def _is_plain(piece: isl.BasicSet, position: int) -> bool:
    """Whether an existential variable is a quotient of something without a constant."""
    try:
        return bool(piece.get_div(position).get_constant_val().is_zero())
    except isl.Error:
        return False  # isl knows no quotient for it


class _Sums:
    """Sums over a constant, the parameters, the dims and those existential variables of a piece that were added, in this order."""

    def __init__(self, piece: isl.BasicSet) -> None:
        self._ctx = piece.get_ctx()
        self._local = isl.LocalSpace.from_space(piece.get_space())
        self._places = [(kind, position) for kind in (isl.dim_type.param, isl.dim_type.set) for position in range(piece.dim(kind))]
        self._terms = [isl.Aff.var_on_domain(self._local, *place) for place in self._places]

    def of(self, row: Sequence[int]) -> isl.Aff:
        """The sum with these factors, the constant first."""
        return self._sum([value(self._ctx, factor) for factor in row])

    def _sum(self, factors: Sequence[isl.Val]) -> isl.Aff:
        total = isl.Aff.zero_on_domain(self._local).set_constant_val(factors[0])
        for factor, term in zip(factors[1:], self._terms[: len(factors) - 1], strict=True):
            if not factor.is_zero():
                total = total.add(term.scale_val(factor))
        return total

    def add_quotient(self, row: Sequence[int], factor: int) -> isl.BasicSet:
        """Add the variable which, times `factor`, makes the sum of a row 0; gives what that asks of the row."""
        modulus, sign = abs(factor), -1 if factor > 0 else 1
        constant, total = sign * row[0], self.of([0, *(sign * entry for entry in row[1:])])
        rest = -constant % modulus
        by, less = value(self._ctx, modulus), value(self._ctx, -rest)
        self._terms.append(total.scale_down_val(by).floor().add_constant_val(value(self._ctx, (constant + rest) // modulus)))
        return total.mod_val(by).add_constant_val(less).zero_basic_set()

    def add_floor(self, piece: isl.BasicSet, position: int) -> bool:
        """Add the variable at a position, rounded down from what isl says that it is; False where it does not say."""
        try:
            inside = piece.get_div(position)
        except isl.Error:
            return False
        kinds = {isl.dim_type.param: isl.dim_type.param, isl.dim_type.set: isl.dim_type.in_}
        factors = [inside.get_constant_val(), *(inside.get_coefficient_val(kinds[kind], place) for kind, place in self._places)]
        factors += [inside.get_coefficient_val(isl.dim_type.div, earlier) for earlier in range(position)]
        self._terms.append(self._sum(factors).floor())
        return True


def _rows(matrix: isl.Mat) -> list[_Row]:
    return [[integer(matrix.get_element_val(k, column)) for column in range(matrix.cols())] for k in range(matrix.rows())]
