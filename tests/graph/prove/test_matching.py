"""Two graphs as they stand: a planned one is proved to be the graph it was planned from, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, diamond, filled, running_example, two_results
from tests.graph.random_graphs import random_graph
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.graph_files import print_graph
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Call, Constant, Graph, LayoutTransform, Step
from layoutproof.graph.planning.formulation import FREE
from layoutproof.graph.planning.planner import Frozen, plan
from layoutproof.graph.planning.variants import calls_of, operator_name
from layoutproof.graph.prove.graph_matching import matched, prove_planned
from layoutproof.graph.rewrite.absorb import absorbed
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.verdict.verdict import Status, Verdict

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


def again(graph: Graph) -> Graph:
    """The graph as its text has it."""
    return parse_graph(print_graph(graph), arrays={constant.value.name: constant.data for constant in graph.constants})


def statuses(verdicts: tuple[Verdict, ...]) -> set[Status]:
    """Which statuses there are."""
    return {verdict.status for verdict in verdicts}


def padded() -> Graph:
    """Three channels, which fill no block, and a pad and a crop that are planned as calls."""
    g = GraphBuilder("padded")
    x = g.pad(g.input("x", (1, 3, 4, 4)), ((0, 0), (0, 0), (1, 1), (0, 0)), 0.0)
    made = g.conv2d(x, g.constant(filled(6, 3, 3, 3), "w"))
    return g.build(g.relu(g.crop(made, (0, 0, 1, 0), (1, 6, 2, 2))))


@one_in(14)
@pytest.mark.parametrize("graph", [running_example, diamond, two_results, padded])
def test_a_planned_graph_is_found_to_be_what_it_was(graph: Callable[[], Graph]) -> None:
    """From the two texts alone every value of a planned graph is proved, as planning proved it."""
    found = plan(graph(), CONV)
    assert statuses(prove_planned(again(graph()), again(found.rewrite.new))) == {Status.PROVED}
    unplanned = replace(found, choice=found.unplanned)
    assert statuses(prove_planned(graph(), again(unplanned.rewrite.new))) == {Status.PROVED}


def test_a_graph_is_itself() -> None:
    """A graph that nobody changed is proved to be itself, without anything to be proved of its functions."""
    found = matched(running_example(), again(running_example()))
    assert not isinstance(found, Verdict) and all(not chain.records for chain in found.schedules.values())
    assert statuses(prove_planned(running_example(), running_example())) == {Status.PROVED}


@one_in(4)
def test_a_graph_with_folded_rewrites() -> None:
    """A graph whose calls read and store what they did not in the plan is found again too."""
    made = absorbed(absorbed(plan(running_example(), CONV).rewrite, "conv2d"), "conv2d_1")
    assert statuses(prove_planned(running_example(), again(made.new))) == {Status.PROVED}


@one_in(4)
def test_ends_in_other_layouts() -> None:
    """How the planned graph is called belongs to what is claimed: with the plan's interface it is proved, without it is
    not.
    """
    found = plan(running_example(), CONV, inputs={"x": FREE}, outputs=[("conv2d_1", FREE)])
    assert found.interface.inputs
    new = again(found.rewrite.new)
    assert statuses(prove_planned(running_example(), new, found.interface)) == {Status.PROVED}
    assert statuses(prove_planned(running_example(), new)) != {Status.PROVED}


@one_in(4)
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    """Plans of random graphs are found again."""
    graph = random_graph(seed)
    operators = {operator_name(call) for call in calls_of(graph)}
    found = plan(
        graph, {name: {"X": NCHW4C} for name in operators & {"conv2d", "relu", "max_pool2d", "depthwise_conv2d"}}
    )
    assert statuses(prove_planned(graph, again(found.rewrite.new))) == {Status.PROVED}


def changed(graph: Graph, kind: str) -> Graph:
    """A planned graph with something wrong."""
    steps = list(graph.steps)
    calls = [number for number, step in enumerate(steps) if isinstance(step, Call)]
    match kind:
        case "a constant":
            first, *rest = graph.constants
            data = first.data.copy()
            data.reshape(-1)[0] += np.float32(1)
            return replace(graph, constants=(Constant(first.value, data), *rest))
        case "a transform":
            number = next(
                n
                for n, step in enumerate(steps)
                if isinstance(step, LayoutTransform) and len(step.index_map.inputs) == 4
            )
            step = steps[number]
            assert isinstance(step, LayoutTransform)
            steps[number] = replace(step, index_map=parse_index_map("lambda n, c, h, w: [n, c//4, w, h, c%4]"))
        case "an operand":
            second = steps[calls[-1]]
            assert isinstance(second, Call)
            first_ = steps[calls[0]]
            steps[calls[-1]] = replace(second, operands=(first_.results[0].name, *second.operands[1:]))
        case "an output":
            return replace(graph, outputs=(steps[calls[0]].results[0].name,))
        case _:
            call = steps[calls[1]]
            assert isinstance(call, Call)
            twice = replace(
                call,
                results=(replace(call.results[0], name="again"),),
                operands=(call.results[0].name, call.operands[1]),
            )
            steps.insert(calls[1] + 1, twice)
            steps = [
                *steps[: calls[1] + 2],
                *(_taking(step, call.results[0].name, "again") for step in steps[calls[1] + 2 :]),
            ]
    return replace(graph, steps=tuple(steps))


def _taking(step: Step, old: str, new: str) -> Step:
    if not isinstance(step, Call):
        return step
    return replace(step, operands=tuple(new if name == old else name for name in step.operands))


@one_in(7)
@pytest.mark.parametrize("kind", ["a constant", "a transform", "an operand", "an output", "a call twice"])
def test_a_wrong_graph_is_not_proved(kind: str) -> None:
    """A planned graph with something wrong in it is never proved, and what is not paired is named with a reason."""
    wrong = changed(plan(running_example(), CONV).rewrite.new, kind)
    verdicts = prove_planned(running_example(), wrong)
    assert statuses(verdicts) != {Status.PROVED}
    assert all(v.reason is not None or v.counterexample is not None for v in verdicts if v.status is not Status.PROVED)


@one_in(4)
def test_a_function_that_computes_something_else() -> None:
    """Where the function of a call computes something else, the call is not paired, and the reason says why."""
    text = print_graph(plan(running_example(), CONV).rewrite.new)
    assert " + B[" in text
    new = parse_graph(
        text.replace(" + B[", " - B["),
        arrays={c.value.name: c.data for c in plan(running_example(), CONV).rewrite.new.constants},
    )
    found = matched(running_example(), new)
    assert isinstance(found, Verdict) and found.status is Status.UNKNOWN
    assert (
        found.claim.text.startswith("add is paired")
        and found.reason is not None
        and "is not proved to do what add does" in found.reason
    )


def test_other_inputs() -> None:
    """A graph with an input that is not there before is not paired."""
    new = replace(running_example(), inputs=(*running_example().inputs, replace(running_example().inputs[0], name="y")))
    found = matched(running_example(), new)
    assert (
        isinstance(found, Verdict)
        and found.claim.text.startswith("y is paired")
        and "no input of this name" in str(found.reason)
    )
