"""Padding contracts flow through operators that keep them, and are refused by those that break them."""

from __future__ import annotations

import pytest
from tests.graph.nets import NCHW4C
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import NoFlow, flow
from layoutproof.graph.operators.elementwise import binary, unary
from layoutproof.graph.planning.contracted import through_padding
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.verdict.verdict import Status

SHAPE = (1, 6, 3, 3)


@one_in(7)
@pytest.mark.parametrize(
    ("func", "pads"),
    [
        (unary("relu", SHAPE), {"X": 0.0, "Y": 0.0}),
        (unary("tanh", SHAPE), {"X": 0.0, "Y": 0.0}),
        (unary("exp", SHAPE), {"X": 0.0, "Y": 1.0}),
        (binary("add", SHAPE, SHAPE), {"A": 0.0, "B": 1.0, "Y": 1.0}),
        (binary("multiply", SHAPE, SHAPE), {"A": 0.0, "B": 2.0, "Y": 0.0}),
    ],
    ids=lambda value: value.name if isinstance(value, PrimFunc) else str(value),
)
def test_a_contract_that_an_operator_keeps_flows(func: PrimFunc, pads: dict[str, float]) -> None:
    """Padding that is computed holds what the contract says, bit for bit, and no stage fills it."""
    schedule = through_padding(func, flow(func, {"Y": parse_index_map(NCHW4C)}), pads)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    assert not any(verdict.strictness for step in schedule.steps for verdict in step.verdicts)


@one_in(10)
@pytest.mark.parametrize(
    ("func", "pads", "reason"),
    [
        (unary("exp", SHAPE), {"X": 0.0, "Y": 0.0}, "the padding of X holds 0.0, that of Y does not come out as 0.0"),
        (unary("sigmoid", SHAPE), {"X": 0.0, "Y": 0.0}, "does not come out"),
        (unary("negative", SHAPE), {"X": 0.0, "Y": 0.0}, "does not come out"),
        (binary("add", SHAPE, SHAPE), {"A": 0.0, "B": 1.0, "Y": 0.0}, "A holds 0.0, B holds 1.0"),
    ],
    ids=lambda value: value.name if isinstance(value, PrimFunc) else str(value),
)
def test_a_contract_that_an_operator_breaks_is_refused(func: PrimFunc, pads: dict[str, float], reason: str) -> None:
    """Padding that would hold something else stops the flow, with what it was computed from."""
    with pytest.raises(NoFlow, match=reason):
        through_padding(func, flow(func, {"Y": parse_index_map(NCHW4C)}), pads)
