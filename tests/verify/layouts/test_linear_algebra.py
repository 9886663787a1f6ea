"""Layouts over bits: composed and inverted at every index, and how far data moves, by looking for every element."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from layoutproof.ir.notations.triton import HARDWARE, LinearLayout
from layoutproof.verify.layouts.linear_algebra import Moves, compose, invert, moves_between


def draw_layout(draw: Random, counts: tuple[int, ...], extents: tuple[int, ...], square: bool) -> LinearLayout:
    """Bases of the hardware's bits; with `square`, sums of the unit vectors that are often independent."""
    axes = range(len(extents))
    units = [
        [1 << bit if axis == other else 0 for other in axes]
        for axis in axes
        for bit in range(extents[axis].bit_length() - 1)
    ]
    draw.shuffle(units)
    wanted = sum(counts)
    vectors = (
        (units * wanted)[:wanted] if square else [draw.choice([*units, [0] * len(extents)]) for _ in range(wanted)]
    )
    for _ in range(draw.choice([0, 0, 2]) if wanted > 1 else 0):
        a, b = draw.sample(range(wanted), 2)
        vectors[a] = [x ^ y for x, y in zip(vectors[a], vectors[b], strict=True)]
    found, position = [], 0
    for name, count in zip(HARDWARE, counts, strict=True):
        found.append((name, tuple(tuple(vector) for vector in vectors[position : position + count])))
        position += count
    return LinearLayout(tuple(found), extents)


def test_inverse_and_composition_at_every_index() -> None:
    """An inverse leads back from every output, a composition gives both in turn, and what has no inverse is refused."""
    draw = Random("linear layouts in every run")
    inverted = 0
    for _ in range(80):
        layout = draw_layout(draw, (1, 2, 1, 0), (4, 4), square=draw.random() < 0.7)
        points = list(product(*(range(size) for size in layout.shape)))
        images = {layout(point) for point in points}
        if len(images) < len(points):
            with pytest.raises(ValueError, match="not injective"):
                invert(layout)
            continue
        inverted += 1
        back = invert(layout, ("y", "x"))
        both = compose(back, layout)
        assert all(back(layout(point)) == point == both(point) for point in points)
        assert back.names == ("y", "x")
    assert inverted >= 20


def test_what_does_not_fit_is_refused() -> None:
    """Layouts of other ranks, of larger outputs, and with outputs that nothing reaches, are told by name."""
    small = LinearLayout((("register", ((1,),)),), (2,))
    wide = LinearLayout((("register", ((4,),)),), (8,))
    with pytest.raises(ValueError, match="is the input register, of 2"):
        compose(small, wide)
    with pytest.raises(ValueError, match="1 outputs for 4 inputs"):
        compose(LinearLayout(tuple((name, ()) for name in HARDWARE), (1,)), small)
    with pytest.raises(ValueError, match="not surjective"):
        invert(wide)
    with pytest.raises(ValueError, match="other hardware"):
        moves_between(LinearLayout((("lane", ((1,),)),), (2,)), LinearLayout((("lane", ()),), (2,)))


def brute_moves(first: LinearLayout, second: LinearLayout) -> Moves:
    """For every element that a place has to hold, whether the same thread, warp or block holds it before."""
    holders: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for point in product(*(range(size) for size in first.shape)):
        holders.setdefault(first(point), set()).add(point)
    points = list(product(*(range(size) for size in second.shape)))
    if first.shape == second.shape and all(first(point) == second(point) for point in points):
        return Moves.NONE
    for level, moves in enumerate((Moves.REGISTERS, Moves.LANES, Moves.WARPS)):
        if all(any(h[level + 1 :] == p[level + 1 :] for h in holders.get(second(p), ())) for p in points):
            return moves
    return Moves.BLOCKS


def test_how_far_data_moves_by_looking_for_it() -> None:
    """The nearest level at which every element is there already is the one that ranks decide."""
    draw = Random("moves in every run")
    seen = set()
    for _ in range(250):
        counts = (draw.randint(0, 2), 2, 1, draw.choice([0, 1]))
        extents = draw.choice([(4, 4), (2, 4), (16,)])
        first = draw_layout(draw, counts, extents, square=draw.random() < 0.8)
        second = draw_layout(draw, counts, extents, square=draw.random() < 0.5)
        if draw.random() < 0.4:
            changed = draw.choice(HARDWARE[:2])
            keep = [(name, second.bases(name) if name == changed else first.bases(name)) for name in HARDWARE]
            second = LinearLayout(tuple(keep), extents)
        assert moves_between(first, second) is brute_moves(first, second), (first, second)
        seen.add(moves_between(first, second))
    assert seen == set(Moves)
