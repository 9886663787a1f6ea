"""A witness may speak of lanes: loops that became vectors, and vectors that became loops."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

_HEAD = """@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(16):
"""
LOOP = f"""{_HEAD}        for v in T.vectorized(4):
            B[i, v] = A[i, v] + T.float32(1)
"""
VECTOR = f"""{_HEAD}        B[i, T.Ramp(0, 1, 4)] = A[i, T.Ramp(0, 1, 4)] + T.Broadcast(T.float32(1), 4)
"""
BACKWARDS = f"""{_HEAD}        B[i, T.Ramp(3, -1, 4)] = A[i, T.Ramp(3, -1, 4)] + T.Broadcast(T.float32(1), 4)
"""
SHIFTED = f"""{_HEAD}        B[i, T.Ramp(0, 1, 4)] = A[i, T.Ramp(3, -1, 4)] + T.Broadcast(T.float32(1), 4)
"""


def rewrite(old: str, new: str, instances: str) -> Rewrite:
    """The rewrite from one text to another, with one store in each."""
    return Rewrite(
        loads(old, "old.py"), loads(new, "new.py"), Witness((InstanceMap(0, 0, parse_index_map(instances)),))
    )


@one_in(7)
@pytest.mark.parametrize(
    "old, new, instances, status",
    [
        (LOOP, VECTOR, "lambda i, lane: [i, lane]", Status.PROVED),
        (VECTOR, LOOP, "lambda i, v: [i, v]", Status.PROVED),
        (LOOP, BACKWARDS, "lambda i, lane: [i, 3 - lane]", Status.PROVED),
        (BACKWARDS, LOOP, "lambda i, v: [i, 3 - v]", Status.PROVED),
        (VECTOR, BACKWARDS, "lambda i, lane: [i, 3 - lane]", Status.PROVED),
        (VECTOR, VECTOR, "lambda i: [i]", Status.PROVED),
        (LOOP, VECTOR, "lambda i, lane: [i, 3 - lane]", Status.UNKNOWN),
        (LOOP, BACKWARDS, "lambda i, lane: [i, lane]", Status.UNKNOWN),
        (VECTOR, BACKWARDS, "lambda i: [i]", Status.UNKNOWN),
        (LOOP, VECTOR, "lambda i: [i, 0]", Status.UNKNOWN),
        (LOOP, VECTOR, "lambda i, lane, more: [i, lane]", Status.UNKNOWN),
        (LOOP, SHIFTED, "lambda i, lane: [i, lane]", Status.REFUTED),
        (SHIFTED, LOOP, "lambda i, v: [i, v]", Status.REFUTED),
    ],
)
def test_lanes_are_instances(old: str, new: str, instances: str, status: Status) -> None:
    """Right claims are proved in both directions; wrong ones are not, and wrong programs are refuted."""
    claimed = rewrite(old, new, instances)
    assert worst(v.status for v in check_rewrite(claimed)) is status
    assert parse_rewrite(rewrite_text(claimed), "lanes.py") == claimed


_VIEWS = """    A4 = T.decl_buffer((16,), "float32x4", data=A.data)
    B4 = T.decl_buffer((16,), "float32x4", data=B.data)
"""
CAST = f"""{_HEAD.replace("    for", _VIEWS + "    for")}        B4[i] = A4[i] + T.Broadcast(T.float32(1), 4)
"""
CAST_ASIDE = CAST.replace("A4[i]", "A4[(i + 1) % 16]")
_PAIRS = """    A2 = T.decl_buffer((16, 2), "float32x2", data=A.data)
    B2 = T.decl_buffer((16, 2), "float32x2", data=B.data)
"""
PAIRS = f"""{_HEAD.replace("    for", _PAIRS + "    for")}        for p in range(2):
            B2[i, p] = A2[i, p] + T.Broadcast(T.float32(1), 2)
"""


@one_in(4)
@pytest.mark.parametrize(
    "old, new, instances, status",
    [
        (VECTOR, CAST, "lambda i: [i]", Status.PROVED),
        (LOOP, CAST, "lambda i, lane: [i, lane]", Status.PROVED),
        (CAST, LOOP, "lambda i, v: [i, v]", Status.PROVED),
        (CAST, PAIRS, "lambda i, p, lane: [i, 2*p + lane]", Status.PROVED),
        (PAIRS, CAST, "lambda i, lane: [i, lane//2, lane % 2]", Status.PROVED),
        (PAIRS, CAST, "lambda i, lane: [i, lane % 2, lane//2]", Status.UNKNOWN),
        (CAST, PAIRS, "lambda i, p, lane: [i, p + lane]", Status.UNKNOWN),
        (LOOP, CAST_ASIDE, "lambda i, lane: [i, lane]", Status.REFUTED),
        (CAST_ASIDE, CAST, "lambda i: [i]", Status.REFUTED),
    ],
)
def test_views_as_vectors_are_seen_scalar_by_scalar(old: str, new: str, instances: str, status: Status) -> None:
    """Lane `l` of element `i` of a view is scalar `lanes*i + l` of the memory, whatever its own elements are."""
    assert worst(v.status for v in check_rewrite(rewrite(old, new, instances))) is status
