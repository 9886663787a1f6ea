"""isl operations made deterministic and checked: fewer pieces for the same set, the same in every run, and the
lexicographically first or last point only where isl's answer is right. isl of version 2026.2 joins pieces in a way that
depends on addresses in memory, and sometimes answers `lexmin` and `lexmax` wrongly. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from layoutproof.verify.isl.space import NoAnswer, integer, is_internal, isl, value

# A comparison of a piece with more existential variables takes seconds.
_MOST_HIDDEN = 12

R = TypeVar("R", "isl.Map", "isl.Set", "isl.UnionMap", "isl.UnionSet")
_Row = list[int]


def maps_of(relation: isl.UnionMap) -> list[isl.Map]:
    """The maps of a union."""
    maps: list[isl.Map] = []
    relation.foreach_map(maps.append)
    return maps


def sets_of(points: isl.UnionSet) -> list[isl.Set]:
    """The sets of a union."""
    sets: list[isl.Set] = []
    points.foreach_set(sets.append)
    return sets


def coalesced(relation: R) -> R:
    """The same relation or set in fewer pieces, where isl finds them."""
    match relation:
        case isl.UnionMap():
            joined = isl.UnionMap.empty(relation.get_space())
            for each in maps_of(relation):
                joined = joined.union(isl.UnionMap.from_map(coalesced(each)))
            return joined
        case isl.UnionSet():
            gathered = isl.UnionSet.empty(relation.get_space())
            for part in sets_of(relation):
                gathered = gathered.union(isl.UnionSet.from_set(coalesced(part)))
            return gathered
        case isl.Map():
            return relation.coalesce() if relation.n_basic_map() < 2 else _alike(relation.wrap()).coalesce().unwrap()
        case _:
            return relation.coalesce() if relation.n_basic_set() < 2 else _alike(relation).coalesce()


def _alike(points: isl.Set) -> isl.Set:
    """The set with remainders in the same form in all pieces."""
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
    """The piece with variables that equalities define as remainders; None where it has no other, or isl cannot tell."""
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
    """The position of the only factor that is not 0; None where there are none or several."""
    found = [position for position, factor in enumerate(factors) if factor]
    return found[0] if len(found) == 1 else None


def _is_plain(piece: isl.BasicSet, position: int) -> bool:
    """Whether an existential variable is a quotient of something without a constant."""
    try:
        return bool(piece.get_div(position).get_constant_val().is_zero())
    except isl.Error:
        return False  # isl knows no quotient for it


class _Sums:
    """Sums over a constant, parameters, dims and the existential variables that were added, in this order."""

    def __init__(self, piece: isl.BasicSet) -> None:
        self._ctx = piece.get_ctx()
        self._local = isl.LocalSpace.from_space(piece.get_space())
        self._places = [
            (kind, position) for kind in (isl.dim_type.param, isl.dim_type.set) for position in range(piece.dim(kind))
        ]
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
        self._terms.append(
            total.scale_down_val(by).floor().add_constant_val(value(self._ctx, (constant + rest) // modulus))
        )
        return total.mod_val(by).add_constant_val(less).zero_basic_set()

    def add_floor(self, piece: isl.BasicSet, position: int) -> bool:
        """Add the variable at a position by isl's definition as a floor; False where isl has none."""
        try:
            inside = piece.get_div(position)
        except isl.Error:
            return False
        kinds = {isl.dim_type.param: isl.dim_type.param, isl.dim_type.set: isl.dim_type.in_}
        factors = [
            inside.get_constant_val(),
            *(inside.get_coefficient_val(kinds[kind], place) for kind, place in self._places),
        ]
        factors += [inside.get_coefficient_val(isl.dim_type.div, earlier) for earlier in range(position)]
        self._terms.append(self._sum(factors).floor())
        return True


def _rows(matrix: isl.Mat) -> list[_Row]:
    return [
        [integer(matrix.get_element_val(k, column)) for column in range(matrix.cols())] for k in range(matrix.rows())
    ]


_FORMS = ("lexopt", "lifted", "compute_divs", "remove_redundancies", "detect_equalities", "coordinates")


def greatest(relation: isl.Map) -> isl.Map:
    """The lexicographically greatest partner of each element. Raises NoAnswer where isl finds no right one."""
    return _extreme(relation, True)


def least(relation: isl.Map) -> isl.Map:
    """The lexicographically least partner of each element. Raises NoAnswer where isl finds no right one."""
    return _extreme(relation, False)


def _extreme(relation: isl.Map, last: bool) -> isl.Map:
    # Where there is one partner only, it is cheaper to see that than to search for it and check what was found.
    if relation.dim(isl.dim_type.out) == 0 or (relation.n_basic_map() == 1 and relation.is_single_valued()):
        return coalesced(relation)
    for form in _FORMS:
        try:
            found = coalesced(_attempt(relation, last, form))
        except isl.Error as problem:
            if not is_internal(problem):
                raise
            continue
        if is_extreme(relation, found, last):
            return found
    raise NoAnswer("isl did not find the last of several instances")


def _attempt(relation: isl.Map, last: bool, form: str) -> isl.Map:
    match form:
        case "lexopt":
            return _of(relation, last)
        case "lifted":
            return _lifted(relation, last)
        case "compute_divs":
            return _of(_own(relation).compute_divs(), last)
        case "remove_redundancies":
            return _of(_own(relation).remove_redundancies(), last)
        case "detect_equalities":
            return _of(_own(relation).detect_equalities(), last)
        case _:
            return _coordinatewise(relation, last)


def _own(relation: isl.Map) -> isl.Map:
    """A relation of its own: isl may change one that it searches or fails in, wherever else that is used."""
    return relation.set_tuple_name(isl.dim_type.out, "own").reset_tuple_id(isl.dim_type.out)


def _of(relation: isl.Map, last: bool) -> isl.Map:
    own = _own(relation)
    return own.lexmax() if last else own.lexmin()


def _lifted(relation: isl.Map, last: bool) -> isl.Map:
    """Existential variables as further outputs: the best of all is the best of the outputs that come before."""
    columns = (isl.dim_type.cst, isl.dim_type.param, isl.dim_type.in_, isl.dim_type.out, isl.dim_type.div)
    found: list[isl.Map] = []
    for piece in relation.get_basic_maps():
        count, hidden = piece.dim(isl.dim_type.out), piece.dim(isl.dim_type.div)
        rows = piece.equalities_matrix(*columns), piece.inequalities_matrix(*columns)
        wide = isl.BasicMap.from_constraint_matrices(
            piece.get_space().add_dims(isl.dim_type.out, hidden), *rows, *columns
        )
        best = wide.lexmax() if last else wide.lexmin()
        found.append(best.project_out(isl.dim_type.out, count, hidden))
    if not found:
        return relation
    whole = found[0]
    for piece_map in found[1:]:
        whole = whole.union(piece_map)
    return whole if len(found) == 1 else _of(whole, last)


def _coordinatewise(relation: isl.Map, last: bool) -> isl.Map:
    count = relation.dim(isl.dim_type.out)
    for axis in range(count):
        one = relation.project_out(isl.dim_type.out, axis + 1, count - axis - 1).project_out(isl.dim_type.out, 0, axis)
        best = _of(one, last)
        relation = relation.intersect(
            best.insert_dims(isl.dim_type.out, 0, axis).add_dims(isl.dim_type.out, count - axis - 1)
        )
    return relation


def is_extreme(relation: isl.Map, found: isl.Map, last: bool) -> bool:
    """Whether `found` gives each element of the domain one partner, and none comes after (before) it."""
    if not relation.domain().is_subset(found.domain()) or not found.is_subset(relation):
        return False
    order = (isl.Map.lex_lt if last else isl.Map.lex_gt)(found.get_space().range())
    return bool(relation.intersect(found.apply_range(order)).is_empty())


# By extremes


def function_of(relation: isl.Map) -> isl.PwMultiAff:
    """A single-valued relation as a function, piece by piece. Raises NoAnswer where isl does not find it."""
    function = isl.PwMultiAff.from_map(_own(relation))
    if not isl.Map.from_pw_multi_aff(function).is_equal(relation):
        raise NoAnswer("isl did not find the function that a relation is")
    return function


def extreme_of(values: isl.Set, largest: bool) -> isl.PwMultiAff:
    """The largest or least of a set of integers, over the parameters. Raises NoAnswer."""
    relation = isl.Map.from_range(values)
    return function_of(greatest(relation) if largest else least(relation))


def bounds_of(function: isl.PwAff) -> tuple[int, int] | None:
    """The least and the largest value of a nonempty function, for all parameters; None where isl has no bound."""
    try:
        low, high = function.min_val(), function.max_val()
    except isl.Error as problem:
        if not is_internal(problem):
            raise
        return None
    if not (low.is_int() and high.is_int()):
        return None
    found = integer(low), integer(high)
    domain = function.domain().get_space()
    below, above = (
        isl.PwAff.from_aff(isl.Aff.val_on_domain(domain, value(function.get_ctx(), number))) for number in found
    )
    if not (function.lt_set(below).is_empty() and function.gt_set(above).is_empty()):
        raise NoAnswer("isl did not find the bounds of a function")
    return found


def point_of(points: isl.Set) -> isl.Point:
    """A point of a set that is not empty. Raises NoAnswer where isl finds none."""
    point = points.sample_point()
    if point.is_void() or not isl.Set.from_point(point).is_subset(points):
        raise NoAnswer("isl did not find a point of a set that is not empty")
    return point
