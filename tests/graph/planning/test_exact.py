"""Networks that are too wide for elimination: z3's optimiser is asked, and whatever it says a plan comes, with what is
proved of it.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import product
from random import Random

import pytest
from tests.graph.nets import NCHW4C, diamond
from tests.graph.planning.small_graphs import small_graph
from tests.shares import one_in

from layoutproof.graph.planning import elimination
from layoutproof.graph.planning import elimination as network
from layoutproof.graph.planning.array_layouts import plain
from layoutproof.graph.planning.elimination import Network, TooWide
from layoutproof.graph.planning.optimiser import asked, cheapest, greedy, improved
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.planning.planning_problem import PlannedCall, Problem, Variant, cost_of, rewrites_of

LAYOUTS = (
    plain(2),
    "lambda i0, i1: [i0, i1//4, i1%4]",
    "lambda i0, i1: [i0, i1//4, i1%4] holding 0.0",
    "lambda i0, i1: [i1, i0]",
)


def random_problem(seed: int, calls: int = 6, most: int = 3) -> Problem:
    """Calls that take up to three values of those before them, in any layouts, and costs that keep no rule."""
    chance = Random(seed)
    made = ["x"]
    found = []
    for number in range(calls):
        operands = tuple(chance.sample(made, min(len(made), chance.randint(1, most))))
        variants = tuple(
            Variant(tuple(chance.choice(LAYOUTS) for _ in operands), (chance.choice(LAYOUTS),))
            for _ in range(chance.randint(1, 3))
        )
        fills = tuple(chance.choice((0, 0, 3)) for _ in variants)
        found.append(PlannedCall(operands, (f"v{number}",), variants, variants, fills))
        made.append(f"v{number}")
    costs = {
        (name, source, target): chance.choice((0, 1, 2, 5, 9))
        for name in made
        for source, target in product(LAYOUTS, LAYOUTS)
        if source != target and source.partition(" holding")[0] != target
    }
    return Problem(tuple(found), {"x": plain(2)}, frozenset(), ((made[-1], plain(2)), (made[-2], LAYOUTS[1])), costs)


@one_in(28)
@pytest.mark.parametrize("seed", range(24))
def test_both_ways_find_the_cheapest(seed: int) -> None:
    """Elimination, with tables over all who use a value or over sets of layouts, and z3 find what trying everything
    finds.
    """
    problem = random_problem(seed)
    least = min(cost_of(problem, choice) for choice in product(*(range(len(call.variants)) for call in problem.calls)))
    with pytest.MonkeyPatch.context() as patched:
        for together in (network.MOST_TOGETHER, 1):
            patched.setattr(network, "MOST_TOGETHER", together)
            found = cheapest(problem)
            assert found.least == cost_of(problem, found.choice) == least
    by_z3 = asked(problem)
    assert by_z3.least == cost_of(problem, by_z3.choice) == least


@one_in(4)
@pytest.mark.parametrize("seed", range(6))
def test_what_a_plan_without_a_rewrite_costs(seed: int) -> None:
    """What is said to be the cost without a rewrite is that of the cheapest of all choices that do without it."""
    problem = random_problem(seed, calls=5)
    tables = Network(problem)
    every = product(*(range(len(call.variants)) for call in problem.calls))
    used = [(cost_of(problem, choice), set(rewrites_of(problem, choice))) for choice in every]
    for rewrite in problem.costs:
        without = [cost for cost, rewrites in used if rewrite not in rewrites]
        assert tables.without(rewrite[0], rewrite[1:]) == (min(without) if without else None)


def test_a_network_that_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tables would be too large z3 is asked; the plan is the same, and its rest is explained without numbers."""
    graph, held = small_graph(2)
    wanted = plan(graph, {}, calls=held)
    assert any(each.more is not None for each in wanted.remaining)
    monkeypatch.setattr(elimination, "MOST_CELLS", 1)
    found = plan(graph, {}, calls=held)
    assert found.optimal and found.cost == wanted.cost
    assert all(each.more is None and not each.needed for each in found.remaining)


def test_too_many_sets_of_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that may have to be there in too many sets of layouts makes a network too wide."""
    monkeypatch.setattr(network, "MOST_TOGETHER", 1)
    monkeypatch.setattr(network, "MOST_SETS", 1)
    with pytest.raises(TooWide):
        Network(random_problem(3))


@one_in(10)
@pytest.mark.parametrize("rlimit", [1, 1000, 30_000])
def test_a_search_that_does_not_end(rlimit: int) -> None:
    """A plan comes whatever the budget is; it costs no more than a greedy one, and what is said to be the least any
    costs is no more.
    """
    problem = random_problem(7, calls=60)
    best = cheapest(problem)
    found = asked(problem, rlimit=rlimit)
    assert found.least <= best.least <= cost_of(problem, found.choice) <= cost_of(problem, greedy(problem))
    if rlimit == 1:
        assert found.least < cost_of(problem, found.choice)


def test_a_plan_that_is_not_proved_to_be_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not say that it is, and what it says is the least that any plan costs is right."""
    monkeypatch.setattr(elimination, "MOST_CELLS", 1)
    monkeypatch.setattr("layoutproof.graph.planning.optimiser.RLIMIT", 1)
    found = plan(diamond(), {"conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    assert found.cost >= found.least
    assert found.optimal == (found.cost == found.least)


@pytest.mark.parametrize("seed", range(10))
def test_a_choice_is_improved(seed: int) -> None:
    """A choice that is mended costs no more than it did, nor less than the cheapest."""
    problem = random_problem(seed, calls=20)
    start = [Random(seed + 1).randrange(len(call.variants)) for call in problem.calls]
    better = improved(problem, start)
    assert cheapest(problem).least <= cost_of(problem, better) <= cost_of(problem, start)


INTERRUPTED = """
import random, signal, threading, os, sys
from layoutproof.verify.smt.optimise import cheapest_assignment
chance = random.Random(0)
groups = [[3 * k + 1, 3 * k + 2, 3 * k + 3] for k in range(120)]
clauses, costs = [], {}
for number in range(361, 361 + 2160):
    costs[number] = chance.randint(1, 99)
    first, second = chance.sample(range(120), 2)
    clauses.append([number, -chance.choice(groups[first]), -chance.choice(groups[second])])
threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
cheapest_assignment(groups, clauses, costs, rlimit=2_000_000_000)
"""


@one_in(10)
@pytest.mark.parametrize("seconds", ["0.45", "1.0"])
def test_ctrl_c_ends_a_search(seconds: str) -> None:
    """An interrupt in the middle of z3's search, or as it begins, ends the program as it would anywhere else; nothing
    is returned.
    """
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, seconds], capture_output=True, text=True, timeout=120, check=False
    )
    assert "KeyboardInterrupt" in ended.stderr and ended.returncode in (-signal.SIGINT, 1, 130)
