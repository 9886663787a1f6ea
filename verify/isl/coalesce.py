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

import islpy as isl

from layoutproof.verify.isl.space import integer, value

_D = isl.dim_type
_COLUMNS = (_D.cst, _D.param, _D.set, _D.div)

R = TypeVar("R", isl.Map, isl.Set, isl.UnionMap, isl.UnionSet)
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
    if sum(piece.dim(_D.div) > 1 for piece in pieces) < 2:
        return points
    told = [_in_remainders(piece) if piece.dim(_D.div) > 1 else None for piece in pieces]
    if all(each is None for each in told):
        return points
    result = isl.Set.empty(points.get_space())
    for piece, other in zip(pieces, told, strict=True):
        result = result.union(isl.Set.from_basic_set(piece if other is None else other))
    return result


def _in_remainders(piece: isl.BasicSet) -> isl.BasicSet | None:
    """The piece with each variable that an equality defines over no other one said as a remainder; None where all are."""
    equalities = _rows(piece.equalities_matrix(*_COLUMNS))
    hidden = piece.dim(_D.div)
    first = 1 + piece.dim(_D.param) + piece.dim(_D.set)
    strides = [row for row in equalities if sum(entry != 0 for entry in row[first:]) == 1]
    defined = {next(k for k in range(first, first + hidden) if row[k] != 0): row for row in strides}
    if all(_is_plain(piece, column - first) for column in defined):
        return None
    inequalities = _rows(piece.inequalities_matrix(*_COLUMNS))
    others = [row for row in equalities if all(row is not stride for stride in defined.values())]
    for column, stride in defined.items():
        others, inequalities = ([_without(row, column, stride) for row in rows] for rows in (others, inequalities))
    kept = [k for k in range(first + hidden) if k not in defined]
    equal, not_negative = (_matrix(piece.get_ctx(), [[row[k] for k in kept] for row in rows], len(kept)) for rows in (others, inequalities))
    told = isl.BasicSet.from_constraint_matrices(piece.get_space(), equal, not_negative, *_COLUMNS)
    for column, stride in defined.items():
        told = told.intersect(_remainder(piece, stride[:first], abs(stride[column])))
    return told if told.is_equal(piece) else None


def _is_plain(piece: isl.BasicSet, position: int) -> bool:
    """Whether an existential variable is a quotient of something without a constant."""
    try:
        return bool(piece.get_div(position).get_constant_val().is_zero())
    except isl.Error:
        return False  # isl knows no quotient for it


def _without(row: _Row, column: int, stride: _Row) -> _Row:
    """An equality or inequality with the variable of a column expressed by the equality that defines it."""
    factor = abs(stride[column])
    times = row[column] if stride[column] > 0 else -row[column]
    return [factor * entry - times * other for entry, other in zip(row, stride, strict=True)] if times else row


def _remainder(piece: isl.BasicSet, row: Sequence[int], modulus: int) -> isl.BasicSet:
    """That a sum, given as a constant and the factors of parameters and dims, is a multiple of `modulus`: without the constant it leaves
    a certain remainder.
    """
    ctx, params = piece.get_ctx(), piece.dim(_D.param)
    total = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(piece.get_space()))
    for position, factor in enumerate(row[1:]):
        kind, place = (_D.param, position) if position < params else (_D.in_, position - params)
        if factor:
            total = total.set_coefficient_val(kind, place, value(ctx, factor))
    rest = total.mod_val(value(ctx, modulus)).set_constant_val(value(ctx, -(-row[0] % modulus)))
    return rest.zero_basic_set()


def _rows(matrix: isl.Mat) -> list[_Row]:
    return [[integer(matrix.get_element_val(k, column)) for column in range(matrix.cols())] for k in range(matrix.rows())]


def _matrix(ctx: isl.Context, rows: Sequence[_Row], width: int) -> isl.Mat:
    matrix = isl.Mat.alloc(ctx, len(rows), width)
    for k, row in enumerate(rows):
        for column, entry in enumerate(row):
            matrix = matrix.set_element_val(k, column, value(ctx, entry))
    return matrix
