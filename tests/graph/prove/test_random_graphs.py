"""Random graphs: planned, proved, run, equal; folded, printed and read back, equal."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.nets import NCHW4C, arrays_for
from tests.graph.random_graphs import random_graph
from tests.shares import one_in

from layoutproof.graph.graph_files import print_graph
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Call
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.planning.planner import plan
from layoutproof.graph.rewrite.fold import fold
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.verdict.verdict import Status

LAYOUTS = {"conv2d": {"X": NCHW4C, "Y": NCHW4C}}


@one_in(9)
@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph_is_planned(seed: int) -> None:
    """A plan is proved for every value and computes the same bits; it costs no more than no plan, and than the greedy
    one.
    """
    graph = random_graph(seed)
    if not any(step.function.name.startswith("conv2d") for step in graph.steps if isinstance(step, Call)):
        with pytest.raises(LayoutproofError, match="no call is of an operator"):
            plan(graph, LAYOUTS)
        return
    found = plan(graph, LAYOUTS)
    assert found.optimal
    assert {verdict.status for verdict in found.verdicts} == {Status.PROVED}
    inputs = arrays_for(graph)
    for before, after in zip(run_graph(graph, inputs), run_graph(found.rewrite.new, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))


@one_in(7)
@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph_folds_and_reads_back(seed: int) -> None:
    """A folded graph computes the same bits, and both read back from their text."""
    graph = random_graph(seed)
    folded = fold(graph).new
    inputs = arrays_for(graph)
    for before, after in zip(run_graph(graph, inputs), run_graph(folded, inputs), strict=True):
        np.testing.assert_array_equal(before.view(np.int32), after.view(np.int32))
    for each in (graph, folded):
        arrays = {constant.value.name: constant.data for constant in each.constants}
        assert parse_graph(print_graph(each), arrays=arrays) == each
