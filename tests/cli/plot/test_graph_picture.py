"""What pictures of planned graphs show: rows, shared by calls of one layout, and edges that lead down."""

from __future__ import annotations

from dataclasses import replace

from tests.graph.nets import NCHW4C, diamond, filled, running_example

from layoutproof.cli.plot.graph_figure import Column, Edge, Kind, column_of, layouts_in
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.planning.planner import Frozen, Plan, plan

CONV: Frozen = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


def column(found: Plan, most: int = 100) -> Column:
    """The picture of a plan's graph, layouts by their texts."""
    return column_of(found.rewrite, "title", lambda layout: layout, most)


def unplanned(graph: Graph) -> Plan:
    """The plan that leaves everything as it is but what was asked for."""
    found = plan(graph, CONV)
    return replace(found, choice=found.unplanned)


def chain(length: int) -> Graph:
    """A convolution and operators behind it, one after the other."""
    g = GraphBuilder("chain")
    made = g.conv2d(g.input("x", (1, 4, 2, 2)), g.constant(filled(4, 4, 1, 1), "w"))
    for _ in range(length):
        made = g.sigmoid(g.relu(made))
    return g.build(made)


def test_rows_of_a_small_graph() -> None:
    """Each input, call, rewrite and output has a row, in order, each leading to the next; values are called as in the
    graph before.
    """
    rows = column(unplanned(running_example())).rows
    kinds = [row.kind for row in rows]
    around = [Kind.REWRITE, Kind.CALLS]
    assert kinds == [Kind.INPUT, *around, *around, *around, Kind.REWRITE, Kind.OUTPUT]
    assert [row.text.partition(":")[0] for row in rows if row.kind in (Kind.REWRITE, Kind.OUTPUT)] == [
        "x",
        "conv2d",
        "add",
        "conv2d_1",
        "conv2d_1",
    ]
    assert len(layouts_in([column(unplanned(running_example()))])) == 2


def test_edges_lead_down() -> None:
    """An edge leads to a later row, beside the rows where it is not the next one; edges that pass one row have lanes of
    their own.
    """
    found = column(plan(diamond(), CONV))
    assert all(edge.start < edge.end and (edge.lane == 0) == (edge.end == edge.start + 1) for edge in found.edges)
    aside = [edge for edge in found.edges if edge.lane]
    assert len(aside) == 2 and found.lanes == 2
    reached = {edge.end for edge in found.edges}
    assert reached == {number for number, row in enumerate(found.rows) if row.kind is not Kind.INPUT}


def test_calls_of_a_large_graph_share_rows() -> None:
    """In a large graph, calls that follow one another in one layout are one row, and no call is lost."""
    found = column(plan(chain(20), CONV))
    calls = [row for row in found.rows if row.kind is Kind.CALLS]
    assert sum(row.kind is Kind.REWRITE for row in found.rows) == 2 and len(calls) <= 2
    assert sum(len(row.operators) for row in calls) == 41
    assert any("sigmoid x" in row.text for row in calls)


def test_long_pictures_are_shortened() -> None:
    """Rows in the middle give way to one that counts them; edges to them lead there."""
    found = column(unplanned(running_example()), most=5)
    assert [row.kind for row in found.rows] == [Kind.INPUT, Kind.REWRITE, Kind.GAP, Kind.REWRITE, Kind.OUTPUT]
    assert found.rows[2].text == "5 rows more, 2 rewrites among them"
    assert found.edges == tuple(Edge(number, number + 1, 0) for number in range(4))
