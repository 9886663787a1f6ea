"""The lexicographically first or last of several instances and what rests on it, checked: isl's answer is taken only where it is right.

isl of version 2026.2 answers `lexmin` and `lexmax` wrongly now and then where an existential variable of the relation is tied to an
output at two granularities (`y <= 3*e <= y + 2` besides `12*e <= 4*y + x`), and may change the relation that it was asked about. So do
`dim_min`, `dim_max` and `lexmin_pw_multi_aff`, which are the same search. Everything else that proofs rest on agreed with brute force
on such sets (`tests/verify/test_isl_operations.py`): emptiness, subsets, subtraction, projection, composition, injectivity. These are
what the checks here are made of. With the existential variables as outputs of their own the search goes right. Part of the trust base.
"""

from __future__ import annotations

from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.space import NoAnswer, integer, is_internal, value

_FORMS = ("lexopt", "lifted", "compute_divs", "remove_redundancies", "detect_equalities", "coordinates")


def greatest(relation: isl.Map) -> isl.Map:
    """The lexicographically greatest partner of each element. Raises NoAnswer where isl finds no right one."""
    return _extreme(relation, True)


def least(relation: isl.Map) -> isl.Map:
    """The lexicographically least partner of each element. Raises NoAnswer where isl finds no right one."""
    return _extreme(relation, False)


def _extreme(relation: isl.Map, last: bool) -> isl.Map:
    if relation.dim(isl.dim_type.out) == 0:
        return relation
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
    """A relation that nobody else has: what isl searches or fails in, it may leave changed, wherever else that is used."""
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
        wide = isl.BasicMap.from_constraint_matrices(piece.get_space().add_dims(isl.dim_type.out, hidden), *rows, *columns)
        best = wide.lexmax() if last else wide.lexmin()
        found.append(best.project_out(isl.dim_type.out, count, hidden))
    if not found:
        return relation
    whole = found[0]
    for piece_map in found[1:]:
        whole = whole.union(piece_map)
    return whole if len(found) == 1 else _of(whole, last)


def _coordinatewise(relation: isl.Map, last: bool) -> isl.Map:
    """One coordinate after the other."""
    count = relation.dim(isl.dim_type.out)
    for axis in range(count):
        one = relation.project_out(isl.dim_type.out, axis + 1, count - axis - 1).project_out(isl.dim_type.out, 0, axis)
        best = _of(one, last)
        relation = relation.intersect(best.insert_dims(isl.dim_type.out, 0, axis).add_dims(isl.dim_type.out, count - axis - 1))
    return relation


def is_extreme(relation: isl.Map, found: isl.Map, last: bool) -> bool:
    """Whether `found` has for each element of the domain a partner of its own, and no partner comes after it (before it, for the
    first)."""
    if not relation.domain().is_subset(found.domain()) or not found.is_subset(relation):
        return False
    order = (isl.Map.lex_lt if last else isl.Map.lex_gt)(found.get_space().range())
    return bool(relation.intersect(found.apply_range(order)).is_empty())


# What rests on extremes


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
    """The least and the largest value of a function, for all parameters; None where there is none, or isl cannot say. The function
    is defined somewhere."""
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
    below, above = (isl.PwAff.from_aff(isl.Aff.val_on_domain(domain, value(function.get_ctx(), number))) for number in found)
    if not (function.lt_set(below).is_empty() and function.gt_set(above).is_empty()):
        raise NoAnswer("isl did not find the bounds of a function")
    return found


def point_of(points: isl.Set) -> isl.Point:
    """A point of a set that is not empty. Raises NoAnswer where isl finds none."""
    point = points.sample_point()
    if point.is_void() or not isl.Set.from_point(point).is_subset(points):
        raise NoAnswer("isl did not find a point of a set that is not empty")
    return point
