"""Regions that blocks match as buffers, written out: the elements that they mean, and what is left as it is."""

from __future__ import annotations

import numpy as np
import pytest

from layoutproof.ir.interp.run import run
from layoutproof.ir.interp.written_out import without_views, written_out
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block, Evaluate, Let
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk

_HEAD = '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32")):\n'


def test_regions_in_regions() -> None:
    """A region of a region begins where both begin."""
    func = loads(
        _HEAD + "    for i, j in T.grid(4, 3):\n        with T.sblock('b'):\n"
        "            vi, vj = T.axis.remap('SS', [i, j])\n"
        "            row = T.match_buffer(A[vi, 0:6], (6,))\n"
        "            half = T.match_buffer(row[3:6], (3,))\n"
        "            out = T.match_buffer(B[vi, vj : vj + 1], (1,))\n"
        "            out[0] = half[vj] * T.float32(2)\n"
    )
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    wanted = np.zeros((4, 6), np.float32)
    wanted[:, 0:3] = 2 * a[:, 3:6]
    assert np.array_equal(run(func, [a, np.zeros((4, 6), np.float32)]).arrays["B"], wanted)
    plain = without_views(func)
    assert not any(node.match_buffers for node in walk(plain.body) if isinstance(node, Block))
    assert written_out(plain) is plain


def test_pointers_and_offsets() -> None:
    """The pointer of a region is that of the whole, and its offset counts elements from there."""
    func = loads(
        _HEAD + "    with T.sblock('b'):\n        T.reads()\n        T.writes()\n"
        "        part = T.match_buffer(A[1:3, 2:4], (2, 2), strides=['s0', 's1'], offset_factor=1)\n"
        "        T.evaluate(T.call_extern('int32', 'f', part.data, part.elem_offset, part.strides[0]))\n"
    )
    call = next(n for n in walk(without_views(func).body) if isinstance(n, OpaqueCall))
    texts = [expr_text(each, Style.PLAIN) for each in call.arguments[1:]]
    assert texts[0] == "A_data" and eval(texts[1]) == 6 * 1 + 2 and texts[2] == "6"


@pytest.mark.parametrize(
    "match",
    [
        "part = T.match_buffer(A[0, 0:6], (5,))",
        "part = T.match_buffer(A[0:2, 0:6], (6,))",
        "part = T.match_buffer(A[0, 0:6], (6,), 'int32')",
        "part = T.match_buffer(A[T.Cast('int32', B[0, 0]), 0:6], (6,))",
        "part = T.match_buffer(A[0, 0:6], (6,), elem_offset=7)",
        "part = T.match_buffer(A[1, 0:6], (6,), elem_offset=5)",
    ],
)
def test_what_is_not_a_view_stays(match: str) -> None:
    """A shape or an offset that is not the region's, another type and a region that data decides stay as they are."""
    func = loads(_HEAD + f"    with T.sblock('b'):\n        {match}\n        B[0, 0] = T.Cast('float32', part[0])\n")
    assert without_views(func) is func


@pytest.mark.parametrize(("offset", "stays"), [("vi * 6", False), ("vi * 6 + 1", True)])
def test_an_offset_that_is_stated_is_that_of_the_region(offset: str, *, stays: bool) -> None:
    """A buffer that states where it begins is a view of a region that begins there."""
    func = loads(
        _HEAD + "    for i in range(4):\n        with T.sblock('b'):\n            vi = T.axis.spatial(4, i)\n"
        f"            part = T.match_buffer(A[vi, 0:6], (6,), elem_offset={offset})\n"
        "            B[vi, 0] = part[0]\n"
    )
    assert (without_views(func) is func) is stays


def test_lets_of_one_store() -> None:
    """A let of one store is its value; one whose value may differ each time, or is not sure to be used, stays."""
    once = loads(_HEAD + "    x = T.bind(A[0, 0] + T.float32(1))\n    B[0, 0] = x * x\n")
    assert not any(isinstance(node, Let) for node in walk(written_out(once).body))
    undefined = loads(_HEAD + "    x = T.bind(T.undef(dtype='float32'))\n    B[0, 0] = x * x\n")
    unsure = loads(
        _HEAD + "    x = T.bind(A[0, 0])\n    B[0, 0] = T.if_then_else(A[1, 1] > T.float32(0), x, T.float32(0))\n"
    )
    for func in (undefined, unsure):
        assert any(isinstance(node, Let) for node in walk(written_out(func).body))


@pytest.mark.parametrize("value", ["7 // n", "n << (n + 1)", "T.Cast('int32', T.infinity('float32'))", "A[n, 0]"])
def test_what_may_have_no_result_stays(value: str) -> None:
    """An expression that is evaluated for nothing is nothing only if evaluating it has a result."""
    head = _HEAD.replace("):\n", ", n: T.int32):\n", 1)
    func = loads(head + f"    T.evaluate({value})\n    B[0, 0] = T.float32(1)\n")
    assert any(isinstance(node, Evaluate) for node in walk(written_out(func).body))
    plain = loads(head + "    T.evaluate(n + 7)\n    B[0, 0] = T.float32(1)\n")
    assert not any(isinstance(node, Evaluate) for node in walk(written_out(plain).body))


@pytest.mark.parametrize(
    ("value", "store", "stays"),
    [
        ("C[0] * 2", "B[0, 0] = A[0, T.max(T.min(x, 5), 0)]", True),
        ("C[0] * 2", "B[T.max(T.min(x, 3), 0), 0] = T.float32(1)", True),
        ("C[0] * 2 < 0", "B[0, 0] = A[0, T.Select(x, 1, 0)]", True),
        ("C[0] * 2", "B[0, 0] = T.Cast('float32', x)", False),
        ("C[0]", "B[0, 0] = A[0, T.max(T.min(x, 5), 0)]", False),
        ("n * 2", "B[0, 0] = T.Cast('float32', x)", True),
        ("n * 2", "B[0, 0] = A[0, T.max(T.min(x, 5), 0)]", False),
        ("n", "B[0, 0] = T.Cast('float32', x)", False),
    ],
)
def test_arithmetic_wraps_where_it_did(value: str, store: str, *, stays: bool) -> None:
    """A let stays where its arithmetic would be exact in the store and wraps in the let, or the other way round."""
    head = _HEAD.replace("):\n", ', C: T.Buffer((1,), "int32"), n: T.int32):\n', 1)
    func = loads(head + f"    x = T.bind({value})\n    {store}\n")
    assert any(isinstance(node, Let) for node in walk(written_out(func).body)) is stays
    given: list[object] = [np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((4, 6), np.float32)]
    given += [np.array([2**31 - 1], np.int32), 7]
    before, after = (run(each, given).arrays["B"] for each in (func, written_out(func)))
    assert np.array_equal(before, after)
