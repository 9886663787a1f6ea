"""The rewrites of one value: the cheapest set of them, whatever they cost, as trying all orders finds it."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.graph.planning.array_layouts import implies, plain
from layoutproof.graph.planning.planning_problem import Move, cheapest_moves, may_chain

LAYOUTS = (
    plain(2),
    "lambda i0, i1: [i0, i1//4, i1%4]",
    "lambda i0, i1: [i0, i1//4, i1%4] holding 0.0",
    "lambda i0, i1: [i0, i1//8, i1%8] holding 1.0",
    "lambda i0, i1: [i1, i0]",
)


def random_costs(chance: Random) -> dict[Move, int]:
    """Costs of some rewrites, by no rule."""
    moves = [(one, other) for one in LAYOUTS for other in LAYOUTS if not implies(one, other)]
    return {move: chance.choice((0, 1, 2, 5, 9)) for move in moves if chance.random() < 0.8}


def closed(there: frozenset[str]) -> frozenset[str]:
    """All that is there when these are: what holds something is there without it, too."""
    return frozenset(layout for layout in LAYOUTS if any(implies(each, layout) for each in there))


def least(costs: Mapping[Move, int], there: frozenset[str], needed: frozenset[str]) -> int | None:
    """The least cost of making what is needed, by trying every rewrite that makes something new."""
    if needed <= there:
        return 0
    found = None
    for (source, target), cost in costs.items():
        if source in there and target not in there:
            rest = least(costs, closed(there | {target}), needed)
            if rest is not None and (found is None or cost + rest < found):
                found = cost + rest
    return found


@one_in(7)
@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_rewrites(seed: int) -> None:
    """They start from what is there, lead to what is needed, and no other rewrites that do cost less."""
    chance = Random(seed)
    costs, source = random_costs(chance), chance.choice(LAYOUTS)
    needed = chance.sample(LAYOUTS, chance.randint(1, 3))
    wanted = least(costs, closed(frozenset({source})), frozenset(needed))
    if wanted is None:
        with pytest.raises(KeyError):
            cheapest_moves(costs, source, needed)
        return
    moves, there = cheapest_moves(costs, source, needed), closed(frozenset({source}))
    for start, target in moves:
        assert start in there and target not in there
        there = closed(there | {target})
    assert set(needed) <= there
    assert sum(costs[move] for move in moves) == wanted
    if not may_chain(costs, [source], needed):
        assert all(start == source for start, _ in moves)


def test_bytes_without_padding_need_no_search() -> None:
    """Where all layouts take as much room, each rewrite starts from the layout that the value is made in."""
    costs = {(one, other): 64 for one in LAYOUTS for other in LAYOUTS if "holding" not in one + other and one != other}
    assert not may_chain(costs, LAYOUTS[:1], LAYOUTS[1:2])
    assert cheapest_moves(costs, LAYOUTS[0], LAYOUTS[1:2]) == ((LAYOUTS[0], LAYOUTS[1]),)


def test_many_layouts_of_one_value() -> None:
    """Of a value in sixteen layouts, all padded, one after the other starts from the smallest."""
    sizes = {plain(2): 3} | {f"lambda i0, i1: [i0, i1//{k}, i1%{k}]": k for k in range(4, 20)}
    costs = {(one, other): sizes[one] + sizes[other] for one in sizes for other in sizes if one != other}
    first, *others = list(sizes)[1:]
    moves = cheapest_moves(costs, first, others)
    assert [source for source, _ in moves] == [first, *[plain(2)] * len(others)]
    assert sum(costs[move] for move in moves) == 4 + 3 + sum(3 + sizes[other] for other in others)
