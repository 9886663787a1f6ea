"""Parameters that may overlap: a step whose proof needs that they do not says so under a name of its own."""

from __future__ import annotations

import pytest

from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.script.reader import loads
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status


def program(attrs: str, loops: str, index: str, value: str = "A[{0}] + T.float32(1)") -> str:
    """One store in loops."""
    return f"""@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({{{attrs}}})
    for {loops}:
        B[{index}] = {value.format(index)}
"""


def rewrite(before: str, after: str, value: str = "A[{0}] + T.float32(1)") -> Rewrite:
    """A loop that is run backwards."""
    old = loads(program(before, "i in range(16)", "i", value), "old.py")
    new = loads(program(after, "i in range(16)", "15 - i", value), "new.py")
    return Rewrite(old, new, Witness((InstanceMap(0, 0, parse_index_map("lambda i: [15 - i]")),)))


@pytest.mark.parametrize(
    "before, after, status",
    [
        ('"tirx.noalias": True', '"tirx.noalias": True', Status.PROVED),
        ("", '"layoutproof.apart": True', Status.PROVED),
        ("", '"tirx.noalias": True', Status.UNKNOWN),
        ("", "", Status.UNKNOWN),
    ],
)
def test_what_does_not_overlap_is_assumed_by_name(before: str, after: str, status: Status) -> None:
    """A step may ask every call for it; to assume it as if callers had promised it is refused."""
    verdicts = prove_rewrite(rewrite(before, after)).verdicts
    assert worst(v.status for v in verdicts) is status
    asked = status is Status.PROVED and not before
    assert (ASKED in [v.claim for v in verdicts]) is asked


def test_a_promise_that_is_not_needed_is_refused_too() -> None:
    """Later steps would build on it."""
    assert (
        worst(v.status for v in prove_rewrite(rewrite("", '"tirx.noalias": True', "T.float32(1)")).verdicts)
        is Status.UNKNOWN
    )
    assert worst(v.status for v in prove_rewrite(rewrite("", "", "T.float32(1)")).verdicts) is Status.PROVED
