"""The ends of a planned graph: given layouts, freed ones, a value in two layouts; and what rewrites cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for, diamond, filled, running_example
from tests.shares import one_in

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.model.graph_run import run_graph, transformed
from layoutproof.graph.model.graph_witness import Interface
from layoutproof.graph.planning import variants as candidates
from layoutproof.graph.planning.array_layouts import plain
from layoutproof.graph.planning.costs import Move, bytes_moved, from_table, measured, moves_of
from layoutproof.graph.planning.formulation import FREE, padding_of_ends
from layoutproof.graph.planning.planner import Frozen, Plan, plan
from layoutproof.graph.prove.prove_graph import prove_graph_rewrite
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.verdict.verdict import Status

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}
ANOTHER = "lambda n, c, h, w: [n, c//4, w, h, c%4]"


def check_equal(found: Plan) -> None:
    """Every value is proved, and outputs are the old ones, bit for bit, where the interface says."""
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(found.graph)
    old = dict(zip(found.graph.outputs, run_graph(found.graph, inputs), strict=True))
    made = run_graph(found.rewrite.new, found.interface.given(inputs))
    for name, array in found.interface.taken(found.graph, made):
        np.testing.assert_array_equal(old[name].view(np.int32), array.view(np.int32))


def padded_ends() -> Graph:
    """A convolution from three channels to six."""
    g = GraphBuilder("ends")
    return g.build(g.conv2d(g.input("x", (1, 3, 4, 4)), g.constant(filled(6, 3, 1, 1), "w")))


@one_in(4)
@pytest.mark.parametrize("graph", [running_example(), diamond(), padded_ends()], ids=lambda graph: graph.name)
def test_freed_ends_leave_no_rewrite(graph: Graph) -> None:
    """Where inputs and outputs may have any layout nothing is rewritten; the interface says which layouts they have."""
    found = plan(graph, CONV, inputs={"x": FREE}, outputs=[(name, FREE) for name in graph.outputs])
    assert (found.count(found.choice), found.cost) == (0, 0)
    assert found.interface.inputs["x"].rank == 5
    assert found.rewrite.new.inputs[0].shape != graph.inputs[0].shape
    check_equal(found)


@pytest.mark.parametrize(
    ("asked", "told"), [(CONV, "anything"), ({"conv2d": {"X": NCHW4C, "Y": (NCHW4C, 0.0)}}, "0.0")]
)
def test_what_the_padding_of_freed_ends_holds(asked: Frozen, told: str) -> None:
    """Of an input's padding nothing is needed; of an output's what is told is so in a run, whatever the input's padding
    holds.
    """
    found = plan(padded_ends(), asked, inputs={"x": FREE}, outputs=[("conv2d", FREE)])
    assert padding_of_ends(found.rewrite, found.interface) == (
        "the padding of x may hold anything",
        f"the padding of conv2d holds {told}",
    )
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs, made = arrays_for(found.graph), list[Any]()
    for number in (3.0, float("nan")):
        given = found.interface.inputs["x"].map_array(inputs["x"], found.rewrite.new.inputs[0].shape, number)
        made += run_graph(found.rewrite.new, {"x": given})
    ((_, index_map),) = found.interface.outputs or ()
    inside = index_map.map_array(np.ones((1, 6, 4, 4), np.bool_), made[0].shape)
    np.testing.assert_array_equal(made[0][inside].view(np.int32), made[1][inside].view(np.int32))
    if told == "0.0":
        assert not made[1][~inside].view(np.int32).any()
    assert padding_of_ends(plan(running_example(), CONV).rewrite, Interface()) == ()


def test_one_freed_end() -> None:
    """With the input freed alone the rewrite of the output is left."""
    found = plan(running_example(), CONV, inputs={"x": FREE})
    assert [each.value for each in found.remaining] == [running_example().outputs[0]]
    check_equal(found)


def test_ends_in_given_layouts() -> None:
    """An input that comes as the convolution takes it needs no rewrite; an output in a third layout needs one."""
    graph = running_example()
    found = plan(graph, CONV, inputs={"x": NCHW4C}, outputs=[(graph.outputs[0], ANOTHER)])
    assert [each.value for each in found.remaining] == [graph.outputs[0]]
    check_equal(found)


@pytest.mark.parametrize("graph", [running_example(), padded_ends()], ids=lambda graph: graph.name)
def test_an_output_in_two_layouts(graph: Graph) -> None:
    """A value goes out as it is and in blocks; the rewrite of one of them is left, since the convolution makes the
    other.
    """
    (name,) = graph.outputs
    found = plan(graph, CONV, outputs=[(name, None), (name, NCHW4C)])
    assert sorted(each.value for each in found.remaining) == sorted(["x", name])
    assert len(found.rewrite.new.outputs) == 2
    check_equal(found)


def test_an_interface_is_no_part_of_the_witness() -> None:
    """A graph that is called in another way is proved for that way only."""
    found = plan(running_example(), CONV, inputs={"x": FREE})
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(found.rewrite))
    another = Interface({"x": parse_index_map(ANOTHER)})
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(found.rewrite, another))


def lies() -> Sequence[tuple[str, Interface]]:
    """Interfaces that the planned running example has not."""
    graph, m = running_example(), parse_index_map(NCHW4C)
    (name,) = graph.outputs
    identity = parse_index_map("lambda n, c, h, w: [n, c, h, w]")
    return [
        ("another layout of the output", Interface({}, ((name, parse_index_map("lambda n, c, h, w: [n, c, w, h]")),))),
        ("another output", Interface({}, (("x", identity),))),
        ("no output", Interface({}, ())),
        ("two outputs", Interface({}, ((name, identity), (name, m)))),
        ("a map that loses elements", Interface({"x": parse_index_map("lambda n, c, h, w: [n, c, h, 0]")})),
    ]


@one_in(10)
@pytest.mark.parametrize("interface", [each for _, each in lies()], ids=[name for name, _ in lies()])
def test_a_wrong_interface_is_not_proved(interface: Interface) -> None:
    """Nothing is proved of a graph called in another way than it is made for."""
    rewrite = plan(running_example(), CONV).rewrite
    assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(rewrite, interface))


def test_an_input_of_another_shape() -> None:
    """An input that the interface calls as it was may not have another shape or type."""
    found = plan(running_example(), CONV, inputs={"x": NCHW4C})
    places = {
        **found.rewrite.places,
        "x": replace(found.rewrite.places["x"], index_map=parse_index_map("lambda a, b, c, d: [a, b, c, d]")),
    }
    wrong = replace(found.rewrite, places=places)
    for interface in (found.interface, Interface()):
        assert any(verdict.status is not Status.PROVED for verdict in prove_graph_rewrite(wrong, interface))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"inputs": {"y": FREE}}, "no input called 'y'"),
        ({"outputs": [("x", FREE)]}, "no output called 'x'"),
        ({"outputs": []}, "is not among those that are to go out"),
        ({"inputs": {"x": "lambda n: [n]"}}, "takes 1 ind"),
        ({"inputs": {"x": "lambda n, c, h, w: [n, c, h]"}}, "a place of its own"),
    ],
)
def test_ends_that_mean_nothing_are_refused(asked: Mapping[str, Any], message: str) -> None:
    """Names that no input or output has and maps that lose elements are wrong input."""
    with pytest.raises(LayoutproofError, match=message):
        plan(running_example(), CONV, **asked)


def test_measured_costs_replace_bytes() -> None:
    """A table says what rewrites cost, by shapes and layouts; a plan under it is proved like any other."""
    found = plan(running_example(), CONV)
    moves = moves_of(found.problem.costs, found.candidates.values)
    table = dict.fromkeys(moves, 7)
    cheap = plan(running_example(), CONV, cost=from_table(table))
    assert (cheap.cost, cheap.count(cheap.choice)) == (14, 2)
    assert cheap.remaining[0].to_dict()["cost"] == 7
    assert cheap.remaining[0].bytes == found.remaining[0].bytes
    check_equal(cheap)


def test_costs_decide_where_a_rewrite_stands() -> None:
    """The rewrite stands where it costs least, and what is in between follows."""
    g = GraphBuilder("where")
    start = g.softmax(g.input("x", (1, 8, 4, 4)), axis=3)
    graph = g.build(g.conv2d(g.relu(start), g.constant(filled(8, 8, 1, 1), "w")))

    def left(*dear: str) -> set[str]:
        found = plan(
            graph,
            CONV,
            cost=lambda value, source, target: bytes_moved(value, source, target) * (9 if value.name in dear else 1),
        )
        return {each.value for each in found.remaining} - set(graph.outputs)

    assert left("x", "softmax") == {"relu"}
    assert left("relu", "softmax") == {"x"}


def test_a_table_without_a_rewrite_is_refused() -> None:
    """A rewrite that may be needed and is not in the table is wrong input, and so is one of less than no cost."""
    with pytest.raises(LayoutproofError, match="has no cost in the table"):
        plan(running_example(), CONV, cost=from_table({}))
    moves = moves_of(plan(running_example(), CONV).problem.costs, running_example().by_name())
    with pytest.raises(LayoutproofError, match="costs less than nothing"):
        plan(running_example(), CONV, cost=from_table(dict.fromkeys(moves, -1)))


def test_a_rewrite_is_timed() -> None:
    """A rewrite's cost can be measured on its layout operators."""
    g = GraphBuilder()
    graph = g.build(g.layout_transform(g.input("x", (1, 8, 4, 4)), NCHW4C))
    move = Move((1, 8, 4, 4), graph.inputs[0].dtype, plain(4), NCHW4C)
    assert measured(move, graph, transformed) > 0


def test_variants_that_are_left_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with too many variants reports how many it does not have, and so does the rest around it."""
    monkeypatch.setattr(candidates, "MOST_VARIANTS", 1)
    found = plan(diamond(), CONV)
    assert found.cut and all(count >= 1 for count in found.cut.values())
    assert any("not all variants of add were tried" in each.why for each in found.remaining)
    assert all(each.more is None and not each.needed for each in found.remaining)
    check_equal(found)
    assert not plan(running_example(), {}).cut


@pytest.mark.parametrize(
    "layout",
    [
        "lambda n, c, h, w: [n, c, h, h + w]",
        "lambda n, c, h, w: [n, (c + 1)//4, h, w, (c + 1)%4]",
        "lambda n, c, h, w: [2*n, 3*c, h, w]",
    ],
)
def test_a_layout_that_nothing_can_be_rewritten_to(layout: str) -> None:
    """A layout whose padding no pad makes is refused for the call that was to have it; the rest of the graph is
    planned.
    """
    g = GraphBuilder("moved")
    found = plan(g.build(g.relu(g.sigmoid(g.input("x", (2, 3, 4, 4))))), {"sigmoid": {"X": layout}})
    assert list(found.refused) == ["sigmoid"] and "no rewrite of x to" in found.refused["sigmoid"]
    assert found.count(found.choice) == 0
    check_equal(found)


@one_in(4)
@pytest.mark.parametrize(
    "layout",
    [
        "lambda n, c, h, w: [n, h, w ^ (h % 4), c]",
        "lambda n, c, h, w: [n, c//4, h, w, (c % 4) ^ (w % 4)]",
        "lambda n, c, h, w: [n, c//2, AXIS_SEPARATOR, h, w, c%2]",
        "lambda n, c, h, w: [n, c//4, h//2, w//2, h%2, w%2, c%4]",
        "lambda n, c, h, w: [n, c, (h*4 + w)//8, (h*4 + w)%8]",
    ],
)
def test_layouts_of_other_kinds(layout: str) -> None:
    """Swizzles, blocks of several axes and texture layouts flow, are rewritten to, and run as others do."""
    g = GraphBuilder("kinds")
    graph = g.build(g.relu(g.add(g.sigmoid(g.input("x", (1, 3, 4, 4))), g.constant(filled(3, 1, 1), "b"))))
    found = plan(graph, {"sigmoid": {"Y": layout}})
    assert not found.refused and found.count(found.choice) <= 2 and found.optimal
    check_equal(found)
