"""CuTe's algebra: results are their definitions at every coordinate, agree with a library where both have one, and are
refused where a condition fails.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import tensor_layouts
from tests.shares import one_in

from layoutproof.ir.notations.cute import CuteLayout, parse_cute
from layoutproof.verify.layouts.cute_algebra import (
    AlgebraResult,
    blocked_product,
    complement,
    composition,
    cosize,
    joined,
    logical_divide,
    logical_product,
    raked_product,
    zipped_divide,
)


def draw_layout(draw: Random) -> CuteLayout:
    """A layout of one to three modes, compact in some order more often than not."""
    count = draw.randint(1, 3)
    shape = [draw.choice([1, 2, 2, 3, 4, 4, 6, 8]) for _ in range(count)]
    stride = [draw.choice([0, 1, 2, 3, 4, 6, 8, 12]) for _ in shape]
    if draw.random() < 0.6:
        step = draw.choice([1, 1, 2])
        for axis in draw.sample(range(count), count):
            stride[axis] = step
            step *= shape[axis]
    return CuteLayout(shape[0], stride[0]) if count == 1 else CuteLayout(tuple(shape), tuple(stride))


def theirs(layout: CuteLayout) -> Any:
    return tensor_layouts.Layout(layout.shape, layout.stride)


def layout_of(result: AlgebraResult) -> CuteLayout:
    assert result.layout is not None, result
    return result.layout


def agree(result: AlgebraResult, other: Any) -> None:
    found = layout_of(result)
    assert found.size == tensor_layouts.size(other)
    assert all(found(index) == other(index) for index in range(found.size)), (found, other)


def their(operation: Any, *operands: Any) -> Any:
    """The library's answer, None where it refuses."""
    try:
        return operation(*operands)
    except (ValueError, tensor_layouts.LayoutError):
        return None


@one_in(4)
def test_random_operands() -> None:
    """A composition gives A of B everywhere; where the library has an answer to the same question, it is the same."""
    draw = Random("algebra in every run")
    both = {"composition": 0, "complement": 0, "logical_divide": 0, "logical_product": 0}
    for _ in range(120):
        a, b = draw_layout(draw), draw_layout(draw)
        x, y = theirs(a), theirs(b)
        size = a.size * draw.choice([1, 2, 5])
        answers = [
            (composition(a, b), their(tensor_layouts.compose, x, y)),
            (complement(a, size), their(tensor_layouts.complement, x, size)),
            (logical_divide(a, b), their(tensor_layouts.logical_divide, x, y)),
            (logical_product(a, b), their(tensor_layouts.logical_product, x, y)),
        ]
        for ours, other in answers:
            if ours.layout is not None and other is not None:
                agree(ours, other)
                both[ours.operation] += 1
        found = answers[0][0].layout
        if found is not None:
            assert all(found(index) == a(b(index)) for index in range(b.size))
    assert min(both.values()) >= 15, both


def test_compositions_that_are_refused_are_none() -> None:
    """Where a composition is refused for its values, no digits and strides on B's modes give them: all were tried."""
    draw = Random("refused compositions")
    refused = 0
    for _ in range(150):
        a, b = draw_layout(draw), CuteLayout(draw.choice([4, 6, 8]), draw.choice([1, 2, 3, 5]))
        result = composition(a, b)
        if result.layout is not None or len(result.conditions) == 1:
            continue
        refused += 1
        values = [a(b(index)) for index in range(b.size)]
        assert not any(values == [c(index) for index in range(c.size)] for c in every_layout(values)), (a, b)
    assert refused >= 10


def every_layout(values: list[int]) -> list[CuteLayout]:
    """The layouts of every factorisation into digits, each with the only stride that it can have."""
    found: list[CuteLayout] = []

    def extend(shape: list[int], left: int) -> None:
        if left == 1:
            strides, step = [], 1
            for extent in shape:
                strides.append(values[step] - values[0] if extent > 1 else 0)
                step *= extent
            found.append(CuteLayout(tuple(shape), tuple(strides)))
        for extent in range(2, left + 1):
            if left % extent == 0:
                extend([*shape, extent], left // extent)

    extend([], len(values))
    return found


def test_a_complement_reaches_every_offset_once() -> None:
    """With its complement, a layout reaches every offset up to where both end exactly once."""
    draw = Random("complements")
    seen = 0
    for _ in range(120):
        a = draw_layout(draw)
        result = complement(a, a.size * 3)
        if result.layout is None or len({a(index) for index in range(a.size)}) < a.size:
            continue
        seen += 1
        both = joined(a, result.layout)
        offsets = sorted(both(index) for index in range(both.size))
        assert offsets == list(range(both.size)) and both.size >= a.size * 3
    assert seen >= 30


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (composition(parse_cute("(4,2):(2,1)"), parse_cute("4:3")), "B reaches 9, A has 8 coordinates"),
        (composition(parse_cute("(4,6):(1,12)"), parse_cute("(6,2):(1,12)")), "does not divide 6"),
        (complement(parse_cute("(2,2):(1,3)"), 12), "the stride 3 is no multiple of 2"),
        (complement(parse_cute("4:-1"), 12), "the stride -1 is negative"),
        (complement(parse_cute("Sw<1,0,1> o 0 o 4:1"), 12), "Sw<1,0,1>"),
        (logical_divide(parse_cute("6:1"), parse_cute("4:1")), "4 times 2 are not 6"),
        (zipped_divide(parse_cute("8:1"), [parse_cute("2:1"), parse_cute("2:1")]), ""),
        (blocked_product(parse_cute("(2,2):(1,2)"), parse_cute("3:1")), ""),
    ],
    ids=str,
)
def test_a_condition_that_fails(result: AlgebraResult, why: str) -> None:
    """There is no layout where a condition does not hold, and the condition says where."""
    failed = [condition for condition in result.conditions if not condition.holds]
    assert result.layout is None and not result.is_defined and len(failed) == 1
    assert why in (failed[0].why or "")
    assert result.to_dict()["layout"] is None


def test_known_results() -> None:
    """Examples of CuTe's documentation, and tiles as blocks and interleaved."""
    assert str(layout_of(composition(parse_cute("(6,2):(8,2)"), parse_cute("(4,3):(3,1)")))) == "((2,2),3):((24,2),8)"
    assert str(layout_of(complement(parse_cute("4:1"), 24))) == "6:4"
    assert str(layout_of(complement(parse_cute("(2,2):(1,6)"), 24))) == "(3,2):(2,12)"
    divided = logical_divide(parse_cute("(4,2,3):(2,1,8)"), parse_cute("4:2"))
    assert str(layout_of(divided)) == "((2,2),(2,3)):((4,1),(2,8))"
    zipped = zipped_divide(parse_cute("(8,8):(8,1)"), [parse_cute("4:1"), parse_cute("2:1")])
    assert str(layout_of(zipped)) == "((4,2),(2,4)):((8,1),(32,2))"
    block, tiler = parse_cute("(2,5):(5,1)"), parse_cute("(3,4):(1,3)")
    assert str(layout_of(blocked_product(block, tiler))) == "((2,3),(5,4)):((5,10),(1,30))"
    assert str(layout_of(raked_product(block, tiler))) == "((3,2),(4,5)):((10,5),(30,1))"


def test_a_swizzled_layout_is_composed() -> None:
    """A swizzle stays in front of what it is composed with."""
    a = parse_cute("Sw<2,0,3> o 0 o (8,8):(8,1)")
    found = layout_of(composition(a, parse_cute("(4,8):(1,8)")))
    assert found.swizzle is not None
    assert all(found(index) == a(index % 4 + index // 4 * 8) for index in range(32))
    assert cosize(parse_cute("(4,8):(8,1)")) == 32


def test_swizzled_modes_are_refused() -> None:
    """A layout with a swizzle is no mode of another layout."""
    with pytest.raises(ValueError, match="is no mode"):
        joined(parse_cute("Sw<1,0,1> o 0 o 4:1"), parse_cute("2:4"))
