"""Layout transforms that a plan leaves, folded into the calls beside them: proved of the graph before planning, and run
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, diamond, filled, running_example
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Call, Graph, LayoutTransform
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import GraphRewrite
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.graph.rewrite.absorb import absorbed
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.verdict.verdict import Status

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


def transforms(rewrite: GraphRewrite) -> int:
    """How many layout transforms are left."""
    return sum(isinstance(step, LayoutTransform) for step in rewrite.new.steps)


def check(found: Plan, rewrite: GraphRewrite) -> None:
    """All of it is proved, and it runs bit-equal to the graph before planning."""
    assert {verdict.status for verdict in prove_graph_rewrite(rewrite, found.interface)} == {Status.PROVED}
    inputs = arrays_for(found.graph)
    before, after = run_graph(found.graph, inputs), run_graph(rewrite.new, inputs)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one.view(np.int32), other.view(np.int32))


@one_in(7)
@pytest.mark.parametrize(
    ("call", "arrays"), [("conv2d", None), ("conv2d", ["X"]), ("conv2d_1", None), ("conv2d_1", ["Y", "W"])]
)
def test_the_ends_of_the_running_example(call: str, arrays: Sequence[str] | None) -> None:
    """The first convolution reads the input as it comes, the second one stores the output as it goes: one transform
    less each time.
    """
    found = plan(running_example(), CONV)
    made = absorbed(found.rewrite, call, arrays)
    assert transforms(made) == transforms(found.rewrite) - 1 == 1
    check(found, made)


@one_in(4)
def test_one_after_the_other() -> None:
    """What one call absorbed is there for the next one: no transform is left."""
    found = plan(running_example(), CONV)
    made = absorbed(absorbed(found.rewrite, "conv2d"), "conv2d_1")
    assert transforms(made) == 0
    check(found, made)


@one_in(4)
@pytest.mark.parametrize("call", ["relu", "sigmoid"])
def test_a_transform_that_others_need_stays(call: str) -> None:
    """A call that reads one of two copies of a value from before the transform leaves it to the other; proved all the
    same.
    """
    g = GraphBuilder("shared")
    x = g.input("x", (1, 8, 2, 2))
    made = g.conv2d(x, g.constant(filled(8, 8, 1, 1), "w"))
    found = plan(
        g.build(g.relu(made), g.sigmoid(made)),
        {**CONV, "relu": {"X": "lambda n, c, h, w: [n, h, w, c]"}, "sigmoid": {"X": "lambda n, c, h, w: [n, h, w, c]"}},
    )
    before = found.rewrite
    after = absorbed(before, call, ["X"])
    assert transforms(after) == transforms(before)
    check(found, after)


def test_a_value_that_is_given_twice() -> None:
    """Both arrays of a call that are given one value are folded, or the one that is meant."""
    g = GraphBuilder("twice")
    made = g.relu(g.input("x", (4, 8)))
    graph = g.build(g.add(made, made))
    found = plan(graph, {"relu": {"X": "lambda i, j: [j, i]"}})
    kept = replace(found, choice=found.unplanned)
    (call,) = [
        step for step in kept.rewrite.new.steps if isinstance(step, Call) and step.results[0].name.startswith("add")
    ]
    assert len(set(call.operands)) == 1
    both = absorbed(kept.rewrite, "add")
    one = absorbed(kept.rewrite, "add", [call.function.buffers[0].name])
    assert transforms(both) == transforms(one) - 1
    check(kept, both)
    check(kept, one)


def test_a_wrong_result_is_not_proved() -> None:
    """The witness carries what it needs: with the transform gone and the function as it was, the claim of the call is
    not proved.
    """
    found = plan(running_example(), CONV)
    made = absorbed(found.rewrite, "conv2d")
    wrong = replace(
        made, schedules={**made.schedules, **dict.fromkeys(made.schedules, found.rewrite.schedules["conv2d"])}
    )
    assert {verdict.status for verdict in prove_graph_rewrite(wrong, found.interface)} != {Status.PROVED}


@pytest.mark.parametrize(
    ("graph", "call", "arrays", "told"),
    [
        (running_example, "add", None, "no layout transform that could go stands beside add"),
        (running_example, "conv2d", ["W"], "stands beside W of conv2d"),
        (running_example, "conv2d", ["Q"], "conv2d has no array Q"),
        (running_example, "x", None, "no call makes x"),
        (diamond, "nothing", None, "no call makes nothing"),
    ],
)
def test_what_cannot_be_absorbed(
    graph: Callable[[], Graph], call: str, arrays: Sequence[str] | None, told: str
) -> None:
    """Where no transform stands beside a call, or there is no such call, that is said."""
    with pytest.raises(LayoutproofError, match=told):
        absorbed(plan(graph(), CONV).rewrite, call, arrays)


def test_a_function_that_was_given_for_an_operator() -> None:
    """What a user gave in an operator's place, which no schedule leads to, is not changed behind their back."""
    rewrite = plan(running_example(), CONV).rewrite
    given = replace(rewrite, schedules={name: each for name, each in rewrite.schedules.items() if name != "conv2d"})
    with pytest.raises(LayoutproofError, match="a function that was given for its operator"):
        absorbed(given, "conv2d")
