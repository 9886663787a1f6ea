"""Nodes with attributes or operands that do not fit are errors that name them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.importers.onnx.random_nodes import NODES, Node, Random, random_node
from tests.shares import one_in

from layoutproof.graph import codes
from layoutproof.importers.onnx.convert import graph_of
from layoutproof.importers.onnx.onnx_model import model_of
from layoutproof.ir.diagnostic import LayoutproofError

Array = NDArray[Any]
NUMBERS = (-(2**31), -3, -1, 0, 1, 2, 7, 1000, 2**31, 2**62)
TYPES = (np.float16, np.float64, np.int8, np.int64, np.uint16, np.bool_)


def spoilt(node: Node, random: Random) -> Node:
    """The node with another number, list, text, shape or type in one place."""
    operands, given = list(node.operands), dict(node.attributes)
    match random.among("attribute", "attribute", "shape", "type", "fewer", "opset"):
        case "attribute" if given:
            name = random.among(*given)
            given[name] = _other(given[name], random)
        case "shape":
            place = random.number(0, len(operands) - 1)
            array = operands[place]
            if array is not None:
                shape = [*array.shape, random.number(1, 3)] if random.among(True, False) else array.shape[1:]
                operands[place] = np.resize(array, tuple(shape))
        case "type":
            place = random.number(0, len(operands) - 1)
            array = operands[place]
            if array is not None:
                operands[place] = array.astype(random.among(*TYPES))
        case "fewer" if len(operands) > 1:
            operands[random.number(1, len(operands) - 1)] = None
        case _:
            return replace(node, opset=random.number(1, 22))
    return replace(node, operands=operands, attributes=given)


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, str):
        return random.among("", "nearest", "SAME_UPPER", "other")
    if isinstance(value, float):
        return random.among(0.0, -1.0, float("nan"), float("inf"), 1e30)
    if isinstance(value, list):
        longer = [*value, 1] if len(value) < 2 or random.among(True, False) else value[:-1]
        return longer if random.among(True, False) else [random.among(*NUMBERS) for _ in value]
    return random.among(*NUMBERS)


def check(kind: str, seed: int) -> bool:
    """Whether a spoilt node was refused; fail where anything else but a graph or an error comes of it."""
    random = Random(np.random.default_rng(seed))
    node = spoilt(random_node(kind, seed), random)
    try:
        graph = graph_of(model_of(node.model()))
    except LayoutproofError as refusal:
        assert {each.code for each in refusal.diagnostics} <= set(codes.MEANINGS), refusal
        assert node.operator in str(refusal) or "the input" in str(refusal), refusal
        return True
    assert graph.outputs
    return False


@one_in(4)
@pytest.mark.parametrize("kind", list(NODES))
def test_a_spoilt_node_is_a_graph_or_an_error(kind: str) -> None:
    """With one number, list, text, shape or type changed a node is still read, or refused by name."""
    assert sum(check(kind, seed) for seed in range(12)) > 0


@pytest.mark.campaign
@pytest.mark.parametrize("kind", list(NODES))
def test_many_spoilt_nodes(kind: str) -> None:
    """So it is for two thousand of each kind."""
    assert sum(check(kind, seed) for seed in range(1000, 3000)) > 100
