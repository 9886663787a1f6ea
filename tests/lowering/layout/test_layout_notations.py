"""Layouts in the notations of others, given to the primitives and comparisons that take an index map."""

from __future__ import annotations

import numpy as np
import pytest

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError

PROGRAM = """
@T.prim_func
def copy(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(8,16):(1,8)", "lambda i0, i1: [i0 + i1*8]"),
        ("aB4b", "lambda a, b: [a, b//4, b%4]"),
        ("AB->BA", "lambda a, b: [b, a]"),
        ("{0,1:T(4,8)}", "lambda i0, i1: [i1//4, i0//8, i1%4, i0%8]"),
        ("affine_map<(d0, d1) -> (d1, d0)>", "lambda d0, d1: [d1, d0]"),
    ],
)
def test_transform_layout(text: str, expected: str) -> None:
    """A buffer is stored by a layout in any notation; the trace has it as a lambda and replays."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    schedule.transform_layout("copy", "B", text)
    (step,) = schedule.trace
    assert step[1]["index_map"] == expected


def test_transform_layout_of_another_shape() -> None:
    """A layout that says another shape than the buffer's is refused."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    with pytest.raises(LayoutproofError, match="does not group the modes"):
        schedule.transform_layout("copy", "B", "(16,16):(1,16)")


def test_relayout_and_check_map() -> None:
    """The functions of the package take any notation; `check_map` needs no shape for a text that says it."""
    kernel = lp.relayout("aB4b", (8, 16), "float32")
    given = np.arange(128, dtype=np.float32).reshape(8, 16)
    assert np.array_equal(np.asarray(kernel(given)), given.reshape(8, 4, 4))
    report = lp.check_map("(4,(2,4)):(2,(1,8))")
    assert report.to_dict()["physical_shape"] == [32]
    with pytest.raises(LayoutproofError, match="does not say its shape"):
        lp.check_map("aB4b")
    with pytest.raises(LayoutproofError, match="does not say its shape"):
        lp.check_map(lp.IndexMap.identity(2))
    with pytest.raises(LayoutproofError, match="the text has the form of no notation"):
        lp.check_map("foo bar", (4,))


def test_compare() -> None:
    """Two programs are compared up to a layout in any notation."""
    after = PROGRAM.replace("B: T.Buffer((8, 16)", "B: T.Buffer((16, 8)").replace("B[vi, vj]", "B[vj, vi]")
    found = lp.compare(lp.loads(PROGRAM), lp.loads(after), layouts={"B": "ba"})
    assert found.status is lp.Status.PROVED
