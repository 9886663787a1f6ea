"""Elements have the same place by meaning: records are followed, padding is told apart and filled as contracts say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.verify.replay.rewrites import func, pair, relaid

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.rewrite import CellMap, Rewrite, Witness
from layoutproof.verify.replay.placement import NotComparable, place_parameters

COPY = "for i in range(14):\n    B[i] = A[i]"


def test_a_logical_array_is_laid_out_with_its_padding() -> None:
    """Fourteen elements as four fours: two cells of padding, which hold the contract's value."""
    rewrite = relaid(func("A: f32[14]; B: f32[14]", COPY), "A", "lambda i: [i//4, i%4]", 2.5)
    placement = place_parameters(rewrite, {})
    place = placement.places[0]
    logical = np.arange(14, dtype=np.float32)
    new = placement.to_new(place, placement.to_old(place, logical, False), False)
    assert new.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 2.5, 2.5]]
    assert np.flatnonzero(place.new_padding()).tolist() == [14, 15]
    assert placement.to_logical(place, logical).tolist() == logical.tolist()


def test_padding_that_is_owed_holds_something_else_before_the_call() -> None:
    """What a program writes may hold anything before; what it only reads holds the contract's value."""
    old = func("A: f32[14]; B: f32[14]", COPY)
    for name, expected in (("A", [2.5, 2.5]), ("B", [77.0, 77.0])):
        rewrite = relaid(old, name, "lambda i: [i//4, i%4]", 2.5)
        placement = place_parameters(rewrite, {})
        place = next(p for p in placement.places if p.name == name)
        new = placement.to_new(place, np.zeros(14, dtype=np.float32), True)
        assert new.reshape(-1)[14:].tolist() == expected


def test_each_step_fills_its_own_padding() -> None:
    """A second transform moves the padding of the first along and adds its own; the contract may refer to elements."""
    first = relaid(
        func("A: i32[3]; B: i32[3]", "for i in range(3):\n    B[i] = A[i]"),
        "B",
        "lambda i: [i//2, i%2]",
        "lambda p, q: B[0, 0]",
    )
    second = relaid(first.new, "B", "lambda i, j: [j, i//3, i%3]", 9)
    placement = place_parameters(Rewrite(first.old, second.new, first.witness), {})
    place = placement.places[1]
    new = placement.to_new(place, np.array([5, 6, 7], dtype=np.int32), False)
    assert new.tolist() == [[[5, 7, 9]], [[6, 5, 9]]]
    required = {
        tuple(places.tolist()): values.reshape(-1).tolist() for places, values, _ in placement.required(place, new)
    }
    assert required == {(4,): [5], (2, 5): [9, 9]}


def test_symbols_have_numbers() -> None:
    """Shapes, maps and contracts are evaluated for the numbers at hand."""
    body = "for i in range(n):\n    B[i] = A[i]"
    rewrite = relaid(func("A: f32[n]; B: f32[n]", body), "A", "lambda i: [i//4, i%4]", 0.0)
    assert [place_parameters(rewrite, {"n": n}).places[0].new_shape for n in (0, 1, 5)] == [(0, 4), (1, 4), (2, 4)]


def test_a_witness_tells_a_layout_without_a_record() -> None:
    """A declared change of a parameter without a record is taken from the cell map; its padding has no contract."""
    old = func("A: f32[2, 3]; B: f32[2, 3]", "for i, j in T.grid(2, 3):\n    B[i, j] = A[i, j]")
    new = func("A: f32[2, 3]; B: f32[3, 3]", "for i, j in T.grid(2, 3):\n    B[j, i] = A[i, j]")
    cells = (CellMap("B_data", "B_data", IndexMap.from_func(lambda i, j: [j, i])),)
    place = place_parameters(Rewrite(old, new, Witness((), cells, ("B",))), {}).places[1]
    assert not place.recorded and place.new_places.tolist() == [0, 3, 6, 1, 4, 7]


def test_what_cannot_be_compared_is_said() -> None:
    """Other parameters, layouts nobody declared, records that do not go on, and elements without a place."""
    old = func("A: f32[14]; B: f32[14]", COPY)
    good = relaid(old, "A", "lambda i: [i//4, i%4]", 0.0)
    wrong = [
        pair(old, func("A: f32[14]; C: f32[14]", COPY.replace("B", "C"))),
        pair(old, func("A: f32[15]; B: f32[14]", COPY)),
        replace(good, witness=Witness(())),
        Rewrite(good.new, good.old, good.witness),
        Rewrite(
            old,
            func("A: f32[14]; B: f32[13]", COPY),
            Witness((), (CellMap("B_data", "B_data", IndexMap.identity(1)),), ("B",)),
        ),
    ]
    for rewrite in wrong:
        with pytest.raises(NotComparable):
            place_parameters(rewrite, {})
