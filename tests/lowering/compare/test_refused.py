"""Questions to `compare` that are refused, with the argument that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.lowering.compare.copies import COPY, COPY_TILED, FOURS, SIZED, TWO, func
from tests.lowering.programs import copy

import layoutproof as lp
from layoutproof.ir.expr import Var
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.verify.verdict.verdict import Status

BUFFERED = func(TWO, 'T_1 = T.alloc_buffer((4,), "float32")\nT_1[0] = A[0]\nB[0] = T_1[0]')
PLACED, TYPE = codes.COMPARED_LAYOUT, codes.ARGUMENT_TYPE
WRONG: Mapping[str, tuple[Any, Any, Mapping[str, Any], str, str]] = {
    "number": (3, COPY, {}, TYPE, "argument 'before' is int"),
    "after": (COPY, None, {}, TYPE, "argument 'after' is NoneType"),
    "list": (COPY, COPY, {"layouts": ["B"]}, TYPE, "argument 'layouts' is list"),
    "where": (COPY, COPY, {"where": 3}, TYPE, "argument 'where' is int"),
    "where over another": (
        SIZED,
        SIZED,
        {"where": Var("k") > 0},
        TYPE,
        "over k, a condition such as 'n >= 1' over n is expected",
    ),
    "where is a number": (SIZED, SIZED, {"where": Var("n") + 1}, TYPE, "argument 'where' is Binary"),
    "empty list": (COPY, COPY, {"pads": []}, TYPE, "argument 'pads' is list"),
    "match of numbers": (COPY, COPY, {"match": {1: "A"}}, codes.COMPARED_MATCH, "the program after has no parameter 1"),
    "layout": (COPY, COPY, {"layouts": {"B": 3}}, TYPE, "that of B is int"),
    "no parameter": (COPY, COPY, {"layouts": {"Q": "lambda i: [i]"}}, PLACED, "are A, B"),
    "temporary": (BUFFERED, COPY, {"layouts": {"T_1": "lambda i: [i]"}}, PLACED, "T_1 is a temporary of main"),
    "not injective": (
        COPY,
        COPY_TILED,
        {"layouts": {"B": "lambda i: [i%4, i%2]"}},
        codes.NOT_INJECTIVE,
        "both go to [0, 0]",
    ),
    "arity": (
        COPY,
        COPY_TILED,
        {"layouts": {"B": "lambda i, j: [i, j]"}},
        codes.MAP_ARITY,
        "takes 2 indices, B has 1 axis",
    ),
    "box": (COPY, COPY_TILED, {"layouts": {"B": "lambda i: [i//2, i%2]"}}, PLACED, "does not fit its shape [4, 4]"),
    "rank": (
        COPY,
        COPY_TILED,
        {"layouts": {"B": "lambda i: [i]"}},
        PLACED,
        "B of shape [14], stored as `lambda i: [i]`",
    ),
    "pad of nothing": (COPY, COPY, {"pads": {"B": 0.0}}, PLACED, "keeps its layout, so it has no padding"),
    "pad of none": (COPY, COPY, {"pads": {"Q": 0.0}}, PLACED, "no parameter 'Q'"),
    "pad type": (COPY, COPY_TILED, {"pads": {"B": "T.int32(0)"}}, codes.PAD_TYPE, "has type int32, B holds float32"),
    "pad number": (COPY, COPY_TILED, {"pads": {"B": True}}, codes.PAD_TYPE, "True is not a constant of type float32"),
    "where name": (SIZED, SIZED, {"where": "m > 0"}, "LP116", "`m` is not defined here"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_question_is_refused(name: str) -> None:
    """Each wrong argument is named, with what was expected."""
    old, new, options, code, said = WRONG[name]
    with pytest.raises(lp.LayoutproofError) as problem:
        lp.compare(old, new, **options)
    (diagnostic,) = problem.value.diagnostics
    assert (diagnostic.code, said in diagnostic.render()) == (code, True), diagnostic.render()


def test_records_that_contradict_are_refused() -> None:
    """A layout, a pad value or a program before that the record of the program after does not agree with is named."""
    schedule = lp.Schedule(copy())
    schedule.transform_layout("copy", "B", FOURS["B"], 0.0)
    old, new = copy(), schedule.func
    asked: list[tuple[PrimFunc, Mapping[str, Any]]] = [
        (old, {"layouts": {"B": "lambda i: [i%4, i//4]"}}),
        (old, {"pads": {"B": 1.0}}),
        (copy("15"), {}),
    ]
    for before, options in asked:
        with pytest.raises(lp.LayoutproofError) as problem:
            lp.compare(before, new, **options)
        assert problem.value.diagnostics[0].code == codes.COMPARED_RECORD
    assert lp.compare(old, new, layouts=FOURS, pads={"B": 0.0}).status is Status.PROVED
