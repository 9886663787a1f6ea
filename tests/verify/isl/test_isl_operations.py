"""What every proof with integer sets rests on, against brute force: each isl operation that is used unchecked, and the
checked ones.
"""

from __future__ import annotations

from random import Random

import islpy as isl
import pytest
from tests.shares import one_in
from tests.verify.isl.isl_sets import Small, from_rows, points_of, random_small

from layoutproof.verify.isl.operations import (
    bounds_of,
    coalesced,
    extreme_of,
    function_of,
    greatest,
    is_extreme,
    least,
    point_of,
)
from layoutproof.verify.isl.space import NoAnswer, new_context

_D = isl.dim_type

# Relations about which isl 2026.2 is wrong when asked for the last or the first partner.
HARD = (
    from_rows(
        1,
        [
            [-4, 3, 4, -12],
            [7, -3, -4, 12],
            [1, 0, -1, 3],
            [1, 0, 1, -3],
            [-1, 0, 1, 0],
            [4, 0, -1, 0],
            [0, 1, 0, 0],
            [3, -1, 0, 0],
        ],
        [range(4), range(1, 5)],
    ),
    from_rows(
        1,
        [
            [1, 0, 1, 0],
            [2, 0, -1, 0],
            [0, 1, 0, 0],
            [4, -1, 0, 0],
            [-8, 2, 5, -10],
            [9, -2, -5, 10],
            [0, 0, -1, 2],
            [1, 0, 1, -2],
        ],
        [range(5), range(-1, 3)],
    ),
    from_rows(
        1,
        [
            [1, 0, 1, 0],
            [3, 0, -1, 0],
            [0, 1, 0, 0],
            [3, -1, 0, 0],
            [-1, 2, -3, -12],
            [3, -2, 3, 12],
            [1, 0, 1, -4],
            [0, 0, -1, 4],
        ],
        [range(4), range(-1, 4)],
    ),
)


def pair(seed: str) -> tuple[Small, Small]:
    """Two random relations of one space that have points."""
    rng = Random(seed)
    while True:
        first, second = random_small(rng), random_small(rng)
        if first.points and second.points and first.inputs == second.inputs:
            return first, second


def single(which: int) -> Small:
    """One of the hard relations, then random ones."""
    return HARD[which] if which < len(HARD) else pair(f"single {which}")[0]


@one_in(4)
@pytest.mark.parametrize("which", range(len(HARD) + 60))
def test_extremes_are_right(which: int) -> None:
    """The last and the first partner, and the bounds of the outputs, are those found by trying every point."""
    ctx = new_context()
    small = single(which)
    partners = small.partners()
    assert points_of(greatest(small.relation(ctx))) == {point + max(outputs) for point, outputs in partners.items()}
    assert points_of(least(small.relation(ctx))) == {point + min(outputs) for point, outputs in partners.items()}
    outputs = {point[-1] for point in small.points}
    values = small.relation(ctx).range()
    assert points_of(isl.Map.from_pw_multi_aff(extreme_of(values, True)).range()) == {(max(outputs),)}
    assert points_of(isl.Map.from_pw_multi_aff(extreme_of(values, False)).range()) == {(min(outputs),)}


@one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_sets_and_relations_are_right(seed: int) -> None:
    """Union, intersection, difference, projection, composition and what is asked of them agree with lists of points."""
    ctx = new_context()
    first, second = pair(f"relations {seed}")
    a, b = first.points, second.points
    one, other = first.relation(ctx), second.relation(ctx)
    assert points_of(one) == a
    assert points_of(coalesced(one)) == a
    assert points_of(one.compute_divs()) == a
    assert points_of(coalesced(one.union(other))) == a | b
    assert points_of(coalesced(one.intersect(other))) == a & b
    assert points_of(coalesced(one.subtract(other))) == a - b
    assert points_of(one.gist(other).intersect(other)) == a & b
    assert points_of(one.domain()) == {p[:-1] for p in a}
    assert points_of(one.range()) == {p[-1:] for p in a}
    assert points_of(coalesced(one.domain().subtract(other.domain()))) == {p[:-1] for p in a} - {p[:-1] for p in b}
    assert points_of(one.intersect_domain(other.domain())) == {p for p in a if p[:-1] in {q[:-1] for q in b}}
    assert points_of(one.apply_range(other.reverse())) == {p[:-1] + q[:-1] for p in a for q in b if p[-1] == q[-1]}
    assert points_of(one.equate(_D.in_, 0, _D.out, 0)) == {p for p in a if p[0] == p[-1]}
    assert points_of(one.order_gt(_D.in_, 0, _D.out, 0)) == {p for p in a if p[0] > p[-1]}


@one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_questions_are_answered_rightly(seed: int) -> None:
    """Emptiness, inclusion, equality, injectivity and single values agree with lists of points."""
    ctx = new_context()
    first, second = pair(f"questions {seed}")
    a, b = first.points, second.points
    one, other = first.relation(ctx), second.relation(ctx)
    assert one.intersect(other).is_empty() == (not a & b)
    assert one.subtract(other).is_empty() == (a <= b)
    assert one.is_subset(other) == (a <= b)
    assert one.is_equal(other) == (a == b)
    assert one.is_disjoint(other) == (not a & b)
    assert one.subtract(other).union(one.intersect(other)).is_equal(one)
    assert one.domain().is_subset(other.domain()) == ({p[:-1] for p in a} <= {p[:-1] for p in b})
    assert one.is_injective() == (len({p[-1:] for p in a}) == len(a))
    assert one.is_single_valued() == (len(first.partners()) == len(a))
    assert one.wrap().count_val().to_python() == len(a)
    assert points_of(isl.Set.from_point(point_of(one.wrap().flatten()))) <= a
    if one.is_single_valued():
        assert points_of(isl.Map.from_pw_multi_aff(function_of(one))) == a
    last = isl.PwAff.from_aff(
        isl.Aff.var_on_domain(isl.LocalSpace.from_space(one.wrap().flatten().get_space()), _D.set, first.inputs)
    )
    bounds = bounds_of(last.intersect_domain(one.wrap().flatten()))
    assert bounds is None or bounds == (min(p[-1] for p in a), max(p[-1] for p in a))


@one_in(4)
@pytest.mark.parametrize("which", range(len(HARD) + 20))
def test_looking_for_extremes_changes_nothing(which: int) -> None:
    """A relation has the points that it had after its extremes were looked for."""
    small = single(which)
    relation = small.relation(new_context())
    greatest(relation)
    least(relation)
    assert points_of(relation) == small.points


def test_what_is_no_function_has_none() -> None:
    """A relation with two partners for one element is noticed; so is an extreme that is none."""
    relation = isl.Map("{ [i] -> [j] : 0 <= i <= 3 and i <= j <= i + 1 }")
    with pytest.raises((NoAnswer, isl.Error)):
        function_of(relation)
    assert not is_extreme(relation, isl.Map("{ [i] -> [i] : 0 <= i <= 3 }"), True)
    assert is_extreme(relation, isl.Map("{ [i] -> [i] : 0 <= i <= 3 }"), False)
