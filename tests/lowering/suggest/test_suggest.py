"""A schedule for a layout: the buffers and loops that it is for, against kernels and numpy; and what stops it."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.expr import TRUE
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.layout.block_layouts import layouts_of_block, parts_of, touched_by
from layoutproof.lowering.passes.find import find_block
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.suggest.loops_to_match import Digit, digits_of
from layoutproof.lowering.suggest.suggestion import Suggestion
from layoutproof.verify.verdict.verdict import Status

CONV = """
@T.prim_func
def conv(X: T.Buffer((1, 6, 6, 5), "float32"), W: T.Buffer((3, 3, 5, 7), "float32"), S: T.Buffer((7,), "float32"),
         Y: T.Buffer((1, 4, 4, 7), "float32")):
    T.func_attr({"tir.noalias": True})
    for n, y, x, f, r, s, c in T.grid(1, 4, 4, 7, 3, 3, 5):
        with T.block("conv"):
            vn, vy, vx, vf, vr, vs, vc = T.axis.remap("SSSSRRR", [n, y, x, f, r, s, c])
            with T.init():
                Y[vn, vy, vx, vf] = T.float32(0)
            Y[vn, vy, vx, vf] = Y[vn, vy, vx, vf] + X[vn, vy + vr, vx + vs, vc] * W[vr, vs, vc, vf]
    for n, y, x, f in T.grid(1, 4, 4, 7):
        with T.block("scale"):
            vn, vy, vx, vf = T.axis.remap("SSSS", [n, y, x, f])
            Y[vn, vy, vx, vf] = Y[vn, vy, vx, vf] * S[vf]
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((5, 14), "float32"), B: T.Buffer((5,), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for i, j in T.grid(5, 14):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = {start}
            B[vi] = {value}
"""
ROWS = "lambda i, j: [i, j//4, j%4]"


def conv() -> PrimFunc:
    """A convolution, whose channels are no blocks of 4, and a scale."""
    return lp.loads(CONV)


def reduction(start: str, value: str) -> PrimFunc:
    """A reduction of rows."""
    return lp.loads(SUM.format(start=start, value=value))


@cache
def asked(block: str, layout: str) -> Suggestion:
    """What is suggested for a block of the convolution."""
    return lp.suggest(conv(), block, layout)


def shown(func: PrimFunc, block: str, layout: str) -> dict[str, str]:
    """The maps of a block's buffers, as text."""
    return {name: index_map_text(each) for name, each in layouts_of_block(func, block, layout).items()}


def test_a_layout_is_for_all_that_a_block_touches() -> None:
    """The result and the operand like it get the layout, weights and scales what their variables get."""
    assert shown(conv(), "conv", "NHWC->NCHW4c") == {
        "X": "lambda n, h, w, c: [n, c//4, h, w, c%4]",
        "W": "lambda r, s, c, f: [r, s, c//4, f//4, c%4, f%4]",
        "Y": "lambda n, h, w, c: [n, c//4, h, w, c%4]",
    }
    assert shown(conv(), "scale", "NHWC4c") == {
        "S": "lambda f: [f//4, f%4]",
        "Y": "lambda n, h, w, c: [n, h, w, c//4, c%4]",
    }


def test_a_layout_that_takes_no_variable_apart_stays_with_its_buffers() -> None:
    """A transposition, or a swizzle, of the result says nothing about weights."""
    assert set(shown(conv(), "conv", "NHWC->NCHW")) == {"X", "Y"}
    assert set(shown(conv(), "scale", "lambda n, h, w, c: [n, h, w, c ^ 1]")) == {"Y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lambda i: [i//4, i%4]", (Digit(4, None), Digit(1, 4))),
        ("lambda i: [i%4, i//4]", (Digit(4, None), Digit(1, 4))),
        ("lambda i: [i//16, i//4%4, i%4]", (Digit(16, None), Digit(4, 4), Digit(1, 4))),
        ("lambda i: [i//16, i%16//4, i%4]", (Digit(16, None), Digit(4, 4), Digit(1, 4))),
        ("lambda i: [i//4, i%8]", None),
        ("lambda i: [i//8, i%4]", None),
        ("lambda i: [i%4, i%8]", None),
    ],
)
def test_parts_are_digits(text: str, expected: tuple[Digit, ...] | None) -> None:
    """Quotients and remainders are the digits of a number only where each begins as the finer one ends."""
    index_map = parse_index_map(text)
    (parts,) = parts_of(index_map, index_map.inputs).values()
    assert digits_of(parts) == expected
    if expected is not None:
        # By brute force: the digits, weighed by their steps, are the number.
        for number in range(64):
            values = [number // digit.step % (digit.extent or 10**9) for digit in expected]
            assert sum(value * digit.step for value, digit in zip(values, expected, strict=True)) == number


@one_in(7)
@pytest.mark.parametrize(("block", "layout"), [("conv", "NHWC->NCHW4c"), ("scale", "NHWC4c")])
def test_the_kernel_of_a_suggestion_computes_the_same(block: str, layout: str) -> None:
    """Nothing is left out, no guard stays, the trace replays, and the kernel agrees with numpy."""
    found = asked(block, layout)
    assert (found.status, found.obstacles) == (Status.PROVED, ())
    assert find_block(found.schedule.func, block).where == TRUE
    again = Schedule.replay(conv(), json.loads(json.dumps(found.trace)))
    assert again.func == found.schedule.func
    rng = np.random.default_rng(0)
    x, w, scale = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((1, 6, 6, 5), (3, 3, 5, 7), (7,)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    expected = np.einsum("nyxcrs,rscf->nyxf", windows, w) * scale
    assert np.array_equal(np.asarray(found.schedule.build("c")(x, w, scale)), expected)


@one_in(14)
def test_loops_match_the_layout() -> None:
    """Coarse loops come in the order of the result's memory, sums keep theirs, fine loops are innermost."""
    found = asked("conv", "NHWC->NCHW4c")
    assert found.schedule.get_loops("conv") == ("n", "f_0", "y", "x", "r", "s", "c_0", "c_1", "f_1")
    assert found.preconditions == ("padding of X holds T.float32(0.0)", "padding of W holds T.float32(0.0)")
    assert found.pads["Y"] == "T.undef()"


@one_in(4)
@pytest.mark.parametrize(
    ("start", "value", "pad"),
    [
        ("T.float32(0)", "B[vi] + A[vi, vj]", 0.0),
        ("T.float32(1)", "B[vi] * A[vi, vj]", 1.0),
        ('T.min_value("float32")', "T.max(A[vi, vj], B[vi])", 'T.float32("-inf")'),
        ("T.float32(0)", "B[vi] + A[vi, vj] * A[vi, vj]", 0.0),
    ],
)
def test_pad_values_are_found(start: str, value: str, pad: object) -> None:
    """The identity of the reduction lets the branch go, and the caller is told to fill it in."""
    found = lp.suggest(reduction(start, value), "sum", lambda i, j: [i, j // 4, j % 4])
    assert (found.status, found.pads["A"]) == (Status.PROVED, pad)
    assert [step.transform.primitive for step in found.steps][-1] == "remove_branching_through_overcompute"
    assert len(found.preconditions) == 1 and "padding of A holds" in found.preconditions[0]


def test_whole_blocks_need_no_pad_value() -> None:
    """Where blocks divide the extents there is neither padding nor a branch."""
    found = lp.suggest(reduction("T.float32(0)", "B[vi] + A[vi, vj]"), "sum", "lambda i, j: [i, j//7, j%7]")
    assert (found.status, dict(found.pads), found.preconditions) == (Status.PROVED, {}, ())
    assert [step.transform.primitive for step in found.steps] == ["transform_layout", "split"]


@one_in(4)
def test_what_stops_a_suggestion_is_said() -> None:
    """A sum that adds 1 for each element keeps its branch, with a counterexample; the steps that hold are there."""
    found = lp.suggest(reduction("T.float32(0)", "B[vi] + (A[vi, vj] + T.float32(1))"), "sum", ROWS)
    assert found.status is Status.REFUTED
    (obstacle,) = found.obstacles
    assert obstacle.problem is not None and obstacle.problem.verdict is not None
    assert obstacle.problem.verdict.counterexample is not None
    assert obstacle.code == "LP373" and "0.0" in (obstacle.remedy or "")
    assert [step.status for step in found.steps] == [Status.PROVED] * 2
    assert find_block(found.schedule.func, "sum").where != TRUE
    assert found.preconditions == ()


@one_in(7)
def test_fast_math_that_would_help_is_named() -> None:
    """A sum from -0.0 of products loses its branch if signs of zero do not count, and only then."""
    func = reduction("T.float32(-0.0)", "B[vi] + A[vi, vj] * A[vi, vj]")
    strict = lp.suggest(func, "sum", ROWS, allowed=frozenset())
    assert strict.status is not Status.PROVED
    assert "--strictness 'nsz'" in (strict.obstacles[0].remedy or "")
    free = lp.suggest(func, "sum", ROWS)
    assert free.status is Status.PROVED
    assert {word for step in free.steps for verdict in step.verdicts for word in verdict.strictness} == {"nsz"}


@one_in(4)
def test_a_suggestion_goes_on_from_a_schedule() -> None:
    """The steps of a schedule stay, and it does not change."""
    schedule = Schedule(conv())
    schedule.split("conv", "f", [None, 7])
    found = lp.suggest(schedule, "scale", "NHWC4c")
    assert len(schedule.steps) == 1 and found.schedule.steps[0] == schedule.steps[0]
    assert found.begun == 1 and len(found.steps) == len(found.schedule.steps) - 1


def test_the_primitive_does_what_single_steps_do() -> None:
    """One `transform_layouts` makes the program of one `transform_layout` for each buffer."""
    pads = {"X": 0.0, "W": 0.0, "Y": "T.undef()"}
    together, single = Schedule(conv()), Schedule(conv())
    together.transform_layouts("conv", "NHWC->NCHW4c", pads)
    for name, text in shown(conv(), "conv", "NHWC->NCHW4c").items():
        single.transform_layout("conv", name, text, pads[name])
    assert together.func == single.func
    assert Schedule.replay(conv(), together.trace).func == together.func


@pytest.mark.parametrize(
    ("block", "layout", "code"),
    [
        ("conv", "NC4c", "LP309"),
        ("nothing", "NHWC4c", "LP303"),
        ("conv", "NHWC4", "LP122"),
        ("conv", "lambda n, h, w, c: [n, h, w, c//4]", "LP314"),
        ("conv", "lambda n, h, w: [n", "LP110"),
    ],
)
def test_bad_requests(block: str, layout: str, code: str) -> None:
    """A layout that fits nothing, a block that is not there, a text that is no layout, a map that loses elements."""
    for ask in (lambda: lp.suggest(conv(), block, layout), lambda: Schedule(conv()).transform_layouts(block, layout)):
        with pytest.raises(lp.LayoutproofError) as raised:
            ask()
        assert raised.value.diagnostics[0].code == code


def test_the_primitive_refuses_pads_of_other_buffers() -> None:
    """A buffer that keeps its layout has no padding."""
    with pytest.raises(lp.IllegalTransform, match="S keeps its layout"):
        Schedule(conv()).transform_layouts("conv", "NHWC4c", {"S": 0.0})


def test_touched_buffers_are_those_of_the_body() -> None:
    """What a block writes comes first; what it reads to update itself is no operand."""
    touched = touched_by(conv(), "conv")
    assert [access.buffer.name for access in touched.written] == ["Y"]
    assert [access.buffer.name for access in touched.read] == ["X", "W"]
