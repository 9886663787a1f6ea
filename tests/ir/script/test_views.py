"""What TVM prints after its lowering: views of memory in another shape, and attributes of nothing in particular."""

from __future__ import annotations

import numpy as np
import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import AttrStmt
from layoutproof.ir.visit import walk


def viewed(view: str, index: str = "i", shape: str = "(2, 3)") -> PrimFunc:
    """A program that stores every element of a parameter through a view."""
    return loads(
        f'@T.prim_func\ndef f(A: T.Buffer({shape}, "float32"), n: T.int32):\n'
        f"    A_1 = A.{view}\n    for i in range(6):\n        A_1[{index}] = T.float32(i)\n"
    )


@pytest.mark.parametrize(
    ("view", "index"),
    [("view(6)", "i"), ("view(3, 2)", "i // 2, i % 2"), ("view(-1)", "i"), ("view(-1, 2)", "i // 2, i % 2")],
)
def test_a_view_has_the_same_memory_row_by_row(view: str, index: str) -> None:
    """`A.view(6)` is TVM's text for the flat form of a parameter; one extent may be left to be found."""
    func = viewed(view, index)
    for each in (func, loads(print_func(func))):
        found = run(each, {"A": np.zeros((2, 3), np.float32), "n": 1}).arrays["A"]
        assert found.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_view_of_symbolic_size() -> None:
    """Of an extent that is left, all others are divided out."""
    func = viewed("view(-1)", shape='(2, "m")')
    found = run(func, {"A": np.zeros((2, 3), np.float32), "n": 1}).arrays["A"]
    assert found.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("view()", "other arguments than extents"),
        ('view("int32")', "other arguments than extents"),
        ("view(6, layout=None)", "other arguments than extents"),
        ("view(-1, -1)", "at most one extent"),
        ("view(-1, 4)", "6 elements, which no extent makes of 4"),
        ("view(-2)", "below zero"),
    ],
)
def test_other_views_are_refused(view: str, message: str) -> None:
    """What is not read is named, at its place."""
    with pytest.raises(LayoutproofError, match=message):
        viewed(view)


def test_attributes_of_no_node() -> None:
    """`T.attr({...})` is an attribute of 0 for each key, the first one outside, for the rest of the body."""
    func = loads(
        '@T.prim_func\ndef f(A: T.Buffer((2,), "float32")):\n    T.attr({"pragma_scope": "seq", "b": 1})\n'
        "    for i in range(2):\n        A[i] = T.float32(i)\n"
    )
    attributes = [node for node in walk(func.body) if isinstance(node, AttrStmt)]
    assert [(a.key, a.target) for a in attributes] == [("pragma_scope", IntImm(0)), ("b", IntImm(0))]
    assert loads(print_func(func)) == func
    assert run(func, {"A": np.zeros(2, np.float32)}).arrays["A"].tolist() == [0, 1]
    with pytest.raises(LayoutproofError, match="a key with its value"):
        loads('@T.prim_func\ndef f(A: T.Buffer((2,), "float32")):\n    T.attr({**A})\n    A[0] = T.float32(0)\n')
