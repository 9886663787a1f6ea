"""Plans: the issue's running example, the hard shapes of graphs, and that nothing but a right plan is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, diamond, filled, running_example, two_results
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import relaid
from layoutproof.graph.model.graph import Call, Graph, LayoutTransform, frozen
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.graph_witness import Chain, GraphRewrite, Place
from layoutproof.graph.operators.convolution import Sliding, conv2d
from layoutproof.graph.planning.array_layouts import map_of_layout
from layoutproof.graph.planning.formulation import problem_of
from layoutproof.graph.planning.optimiser import Cheapest, cheapest
from layoutproof.graph.planning.planner import Frozen, plan
from layoutproof.graph.planning.planning_problem import Problem, cost_of
from layoutproof.graph.planning.variants import Candidates
from layoutproof.graph.prove.graph_matching import Replacement
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


def mixed() -> Graph:
    """An operator in the middle that layouts do not flow through, and a value that goes both ways."""
    g = GraphBuilder("mixed")
    x = g.input("x", (1, 8, 4, 4))
    start = g.conv2d(x, g.constant(filled(8, 8, 1, 1), "w"))
    normed = g.response_norm(start, size=3, alpha=0.1, beta=0.75, bias=1.0)
    return g.build(g.conv2d(g.add(normed, start), g.constant(filled(8, 8, 1, 1), "w2")), normed)


def channels_padded() -> Graph:
    """A first convolution of three channels, which fill no block."""
    g = GraphBuilder("padded")
    x = g.input("x", (1, 3, 5, 5))
    start = g.relu(g.conv2d(x, g.constant(filled(6, 3, 3, 3), "w"), halo=(1, 1, 1, 1)))
    return g.build(g.conv2d(start, g.constant(filled(4, 6, 1, 1), "w2")))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "the issue's running example": running_example,
    "a diamond": diamond,
    "an operator with two results": two_results,
    "an operator in the way": mixed,
    "padded channels": channels_padded,
}


@pytest.mark.parametrize("name", ["the issue's running example", "a diamond", "padded channels"])
def test_few_rewrites_are_left(name: str) -> None:
    """Of the four rewrites before planning the two at the interface are left, and it says why."""
    found = plan(GRAPHS[name](), CONV)
    assert found.optimal
    assert (found.count(found.unplanned), found.count(found.choice)) == (4, 2)
    assert [each.why.split(";")[0].split()[-1] for each in found.remaining if each.value == "x"] == ["input"]


@one_in(9)
@pytest.mark.parametrize("name", list(GRAPHS))
def test_a_plan_is_proved_and_computes_the_same(name: str) -> None:
    """Every value of a planned graph is proved, and its outputs are the old ones, bit for bit."""
    found = plan(GRAPHS[name](), CONV)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(found.graph)
    for before, after in zip(run_graph(found.graph, inputs), run_graph(found.rewrite.new, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))


@one_in(4)
@pytest.mark.parametrize("name", list(GRAPHS))
def test_no_choice_is_cheaper(name: str) -> None:
    """The solver's choice costs what the cheapest of all choices costs; the greedy one does not cost less."""
    found = plan(GRAPHS[name](), CONV)
    every = product(*(range(len(call.variants)) for call in found.problem.calls))
    assert found.cost == min(cost_of(found.problem, choice) for choice in every)
    assert cost_of(found.problem, found.greedy) >= found.cost


def test_why_a_rewrite_is_left() -> None:
    """A rewrite in front of an operator that cannot follow names the access that is in the way."""
    found = plan(mixed(), CONV)
    assert any("response_norm cannot take conv2d so: " in each.why and "X[" in each.why for each in found.remaining)
    assert found.remaining[0].to_dict()["bytes"] == found.remaining[0].bytes > 0


def tampered(rewrite: GraphRewrite, kind: str) -> GraphRewrite:
    """A planned graph with one thing wrong."""
    new = rewrite.new
    first = next(step for step in new.steps if isinstance(step, LayoutTransform))
    match kind:
        case "another map":
            wrong = replace(first, index_map=parse_index_map("lambda n, c, h, w: [n, c//4, w, h, c%4]"))
            return replace(rewrite, new=replace(new, steps=tuple(wrong if s is first else s for s in new.steps)))
        case "another place":
            place = Place("x", parse_index_map("lambda n, c, h, w: [n, c//4, w, h, c%4]"))
            return replace(rewrite, places={**rewrite.places, first.result.name: place})
        case "another constant":
            constant = replace(new.constants[0], data=new.constants[0].data + np.float32(1))
            return replace(rewrite, new=replace(new, constants=(constant, *new.constants[1:])))
        case "no schedule":
            return replace(rewrite, schedules={})
        case "another function":
            last = new.steps[-2]
            assert isinstance(last, Call)
            other = next(s for s in rewrite.old.steps if isinstance(s, Call) and s.function.name == "add")
            return replace(
                rewrite, schedules={**rewrite.schedules, last.function.name: rewrite.schedules[other.function.name]}
            )
        case _:
            return replace(rewrite, new=replace(new, outputs=("x",)))


@one_in(4)
@pytest.mark.parametrize(
    "kind", ["another map", "another place", "another constant", "no schedule", "another function", "another output"]
)
def test_a_wrong_plan_is_not_proved(kind: str) -> None:
    """A planned graph with one thing wrong is not proved."""
    rewrite = tampered(plan(running_example(), CONV).rewrite, kind)
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(rewrite))


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        ({"conv3d": {"X": NCHW4C}}, "no call is of an operator 'conv3d'"),
        ({"conv2d": {"Z": NCHW4C}}, "has no array 'Z'"),
    ],
)
def test_names_that_mean_nothing_are_refused(frozen: Frozen, message: str) -> None:
    """Layouts for operators and arrays that are not there are wrong input."""
    with pytest.raises(LayoutproofError, match=message):
        plan(running_example(), frozen)


def test_layouts_that_an_operator_cannot_have() -> None:
    """An operator whose accesses would not be clean in the layouts asked for stays as it is, and the plan says so."""
    g = GraphBuilder()
    x = g.input("x", (1, 12, 4, 4))
    graph = g.build(g.conv2d(x, g.constant(filled(12, 6, 1, 1), "w"), groups=2))
    found = plan(graph, {"grouped_conv2d": {"X": NCHW4C, "Y": NCHW4C}})
    assert found.count(found.choice) == 0 and list(found.refused) == ["grouped_conv2d"]


def test_nothing_flows_without_a_start() -> None:
    """A graph without frozen operators has one variant for each call."""
    candidates = Candidates(running_example(), {})
    candidates.spread()
    problem: Problem = problem_of(candidates)
    assert [len(call.variants) for call in problem.calls] == [1, 1, 1]
    assert cheapest(problem) == Cheapest([0, 0, 0], 0)


def squared(name: str = "squared") -> PrimFunc:
    """An operator of a user's own, with an access that nothing follows: each channel with the one at the other end."""
    return loads(
        f"""
@T.prim_func
def {name}(X: T.Buffer((1, 8, 4, 4), "float32"), Y: T.Buffer((1, 8, 4, 4), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for n, c, h, w in T.grid(1, 8, 4, 4):
        with T.block("squared"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            Y[vn, vc, vh, vw] = X[vn, vc, vh, vw] * X[vn, 7 - vc, vh, vw]
""",
        "squared.py",
    )


def with_squared() -> Graph:
    """That operator between two convolutions."""
    g = GraphBuilder("user")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    (made,) = g.call(squared(), start)
    return g.build(g.conv2d(made, g.constant(filled(8, 8, 1, 1), "w2")))


def test_a_callback_is_asked_and_proved() -> None:
    """What a user knows of an operator that layouts do not flow through lets them pass; the plan is proved and computes
    the same.
    """
    layout = parse_index_map(NCHW4C)
    asked = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: {"X": layout, "Y": layout}})
    assert plan(with_squared(), CONV).count(plan(with_squared(), CONV).choice) == 4
    assert asked.count(asked.choice) == 2
    assert {verdict.status for verdict in asked.verdicts} == {Status.PROVED}
    inputs = arrays_for(asked.graph)
    np.testing.assert_array_equal(run_graph(asked.graph, inputs)[0], run_graph(asked.rewrite.new, inputs)[0])


def test_a_callback_may_know_nothing() -> None:
    """A callback that has no answer leaves the operator as it is."""
    found = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: None})
    assert found.count(found.choice) == 4


def test_a_callback_is_never_believed() -> None:
    """A layout that loses elements is refused, whoever asks for it."""
    lossy = parse_index_map("lambda n, c, h, w: [n, c//4, h, w]")
    found = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: {"X": lossy, "Y": lossy}})
    assert found.count(found.choice) == 4
    assert any("not proved to be injective" in each.why for each in found.remaining)


def in_blocks(value: str, layout: str = "1, 2, 4, 4, 4") -> PrimFunc:
    """A user's function for that operator in blocks of four channels, which computes a value."""
    return loads(
        f"""
@T.prim_func
def in_blocks(P: T.Buffer(({layout}), "float32"), Q: T.Buffer(({layout}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for n, o, h, w, i in T.grid(1, 2, 4, 4, 4):
        with T.block("in_blocks"):
            vn, vo, vh, vw, vi = T.axis.remap("SSSSS", [n, o, h, w, i])
            Q[vn, vo, vh, vw, vi] = {value}
""",
        "in_blocks.py",
    )


GIVEN = "P[vn, vo, vh, vw, vi] * P[vn, 1 - vo, vh, vw, 3 - vi]"


def test_a_callback_may_give_a_function() -> None:
    """A function that is proved to be the operator in its layouts takes its place; the planned graph is proved and
    computes the same.
    """
    layout = parse_index_map(NCHW4C)
    answer = Replacement(in_blocks(GIVEN), {"X": layout, "Y": layout})
    found = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: answer})
    assert found.count(found.choice) == 2
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    (given,) = (each for each in found.rewrite.schedules.values() if isinstance(each, Chain))
    assert "1 - vo" in print_func(given.func)
    inputs = arrays_for(found.graph)
    np.testing.assert_array_equal(run_graph(found.graph, inputs)[0], run_graph(found.rewrite.new, inputs)[0])


@one_in(4)
@pytest.mark.parametrize(
    ("value", "layout"),
    [
        ("P[vn, vo, vh, vw, vi] * P[vn, 1 - vo, vh, vw, vi]", "1, 2, 4, 4, 4"),
        ("P[vn, vo, vh, vw, vi]", "1, 2, 4, 4, 4"),
        ("P[vn, 1 - vo, vh, vw, 3 - vi] * P[vn, vo, vh, vw, vi] + T.float32(0)", "1, 2, 4, 4, 4"),
        (GIVEN, "1, 2, 4, 4, 5"),
    ],
)
def test_a_function_that_a_callback_gives_is_never_believed(value: str, layout: str) -> None:
    """A function that computes something else, or does not fit, is refused with the reason, and the operator stays as
    it is.
    """
    index_map = parse_index_map(NCHW4C)
    answer = Replacement(in_blocks(value, layout), {"X": index_map, "Y": index_map})
    found = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: answer})
    assert found.count(found.choice) == 4 and not any(
        isinstance(each, Chain) for each in found.rewrite.schedules.values()
    )
    assert any("in_blocks, which is given for it" in each.why for each in found.remaining)


def test_another_function_in_place_of_a_given_one() -> None:
    """A planned graph whose given function is exchanged behind the proof is not proved."""
    layout = parse_index_map(NCHW4C)
    answer = Replacement(in_blocks(GIVEN), {"X": layout, "Y": layout})
    rewrite = plan(with_squared(), CONV, callbacks={"squared": lambda func, given: answer}).rewrite
    ((name, chain),) = ((name, each) for name, each in rewrite.schedules.items() if isinstance(each, Chain))
    wrong = replace(in_blocks("P[vn, vo, vh, vw, vi]"), name=name)
    steps = tuple(
        replace(step, function=wrong) if isinstance(step, Call) and step.function.name == name else step
        for step in rewrite.new.steps
    )
    record = replace(
        chain.records[0], rewrite=replace(chain.records[0].rewrite, new=replace(wrong, name=chain.original.name))
    )
    for told in (chain, replace(chain, records=(record,)), replace(chain, records=())):
        tampered_one = replace(
            rewrite, new=replace(rewrite.new, steps=steps), schedules={**rewrite.schedules, name: told}
        )
        assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(tampered_one))


def test_a_callback_that_means_nothing_is_wrong_input() -> None:
    """A layout for an array that the operator has not is an error."""
    with pytest.raises(LayoutproofError, match="no buffer called 'Z'"):
        plan(with_squared(), CONV, callbacks={"squared": lambda func, given: {"Z": parse_index_map(NCHW4C)}})


NOISE = """
@T.prim_func
def noise(A: T.Buffer((1, 8, 4, 4), "float32"), B: T.Buffer((1, 8, 4, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, c, h, w in T.grid(1, 8, 4, 4):
        B[n, c, h, w] = A[n, c, h, w] + T.call_extern("float32", "rand")
"""


def test_layouts_that_no_proof_follows() -> None:
    """A layout that flows through an operator which is not proved in it is no choice: the plan does without, says why,
    and is proved.
    """
    g = GraphBuilder("noisy")
    start = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    (noisy,) = g.call(loads(NOISE), start)
    found = plan(g.build(g.conv2d(noisy, g.constant(filled(8, 8, 1, 1), "w2"))), CONV)
    assert found.optimal and found.count(found.choice) == 4
    assert any(
        "noise cannot take conv2d so: it is not proved to do the same then" in each.why for each in found.remaining
    )
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}


def with_rewrites() -> Graph:
    """The running example as the issue draws it: convolutions that take and make blocks of channels, and the rewrites
    around them.
    """
    weight = "lambda k, c, r, s: [k//4, c//4, r, s, c%4, k%4]"
    back = "lambda n, o, h, w, i: [n, o*4 + i, h, w]"
    maps = {"X": parse_index_map(NCHW4C), "Y": parse_index_map(NCHW4C), "W": parse_index_map(weight)}
    first = frozen(
        replace(relaid(conv2d((1, 8, 6, 6), (8, 8, 3, 3), Sliding(halo=(1, 1, 1, 1))), maps).func, name="conv")
    )
    second = frozen(replace(relaid(conv2d((1, 8, 6, 6), (4, 8, 1, 1)), maps).func, name="conv2"))
    g = GraphBuilder("drawn")
    x = g.layout_transform(g.input("x", (1, 8, 6, 6)), NCHW4C)
    f = g.layout_transform(g.constant(filled(8, 8, 3, 3), "f"), weight)
    r = g.layout_transform(g.call(first, x, f)[0], back)
    added = g.layout_transform(g.add(r, g.constant(filled(8, 1, 1, seed=2), "bias")), NCHW4C)
    (last,) = g.call(second, added, g.constant(filled(1, 2, 1, 1, 4, 4, seed=3), "f2"))
    return g.build(g.layout_transform(last, back))


@one_in(4)
def test_the_seeds_picture() -> None:
    """Five rewrites become two, at the input and at the output; the filter's and the bias are in constants."""
    graph = with_rewrites()
    found = plan(graph, {})
    new = found.rewrite.new
    assert (len(graph.rewrites), len(new.rewrites)) == (5, 2)
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    assert sorted(constant.value.shape for constant in new.constants) == [
        (1, 2, 1, 1, 4, 4),
        (2, 1, 1, 4),
        (2, 2, 3, 3, 4, 4),
    ]
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(new, inputs)[0])


def test_an_output_in_two_layouts() -> None:
    """A graph may give a value in two layouts; one of them is what the convolution makes."""
    g = GraphBuilder("both")
    made = g.conv2d(g.input("x", (1, 8, 4, 4)), g.constant(filled(8, 8, 1, 1), "w"))
    graph = g.build(made, g.layout_transform(made, NCHW4C))
    found = plan(graph, CONV)
    assert found.count(found.choice) == 2
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(graph)
    for before, after in zip(run_graph(graph, inputs), run_graph(found.rewrite.new, inputs), strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_padding_holds_is_not_taken_for_granted() -> None:
    """A function that assumes what its operand's padding holds is not proved to be the old one: nothing says that it
    holds that.
    """
    found = plan(channels_padded(), CONV)
    rewrite = found.rewrite
    call = next(step for step in rewrite.old.steps if isinstance(step, Call))
    name = next(step.function.name for step in rewrite.new.steps if isinstance(step, Call))
    layouts = {
        buffer: map_of_layout(text) for buffer, text in zip("XW", found.problem.calls[0].own[0].operands, strict=True)
    }
    layouts["Y"] = map_of_layout(found.problem.calls[0].own[0].results[0])
    assuming = relaid(call.function, layouts, {"X": 0.0})
    steps = tuple(
        replace(step, function=replace(assuming.func, name=name))
        if isinstance(step, Call) and step.function.name == name
        else step
        for step in rewrite.new.steps
    )
    wrong = replace(rewrite, new=replace(rewrite.new, steps=steps), schedules={**rewrite.schedules, name: assuming})
    reasons = [verdict.reason for verdict in prove_graph_rewrite(wrong) if verdict.status is not Status.PROVED]
    assert reasons[0] == f"{name} takes for granted what the padding of X holds"
