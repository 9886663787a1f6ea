"""Reports have no truth value: a refuted one is an object like any other, and would be true."""

from __future__ import annotations

import pytest
from tests.tree import ROOT

import layoutproof as lp

GOOD, BAD = "lambda i: [i // 4, i % 4]", "lambda i: [i // 4]"
MESSAGE = "a report has no truth value; ask for its `ok`, or call `require\\(\\)`"


@pytest.mark.parametrize("index_map", [GOOD, BAD])
def test_the_report_of_a_map(index_map: str) -> None:
    """`ok` and `require` answer for a proved and a refuted map; neither is true or false by itself."""
    report = lp.check_map(index_map, (14,))
    with pytest.raises(TypeError, match=MESSAGE):
        bool(report)
    assert report.ok is (index_map == GOOD)
    if report.ok:
        assert report.require() is report and repr(report) == "<lambda i: [i//4, i%4]: injective>"
        return
    with pytest.raises(lp.NotProved, match=r"LP210.*is refuted: \[0\] and \[1\] both go to \[0\]") as caught:
        report.require()
    assert caught.value.verdicts == (report.injective,)
    assert "refuted" in repr(report) and "both go to [0]" in repr(report) and len(repr(report)) < 240


def test_an_unknown_is_not_ok() -> None:
    """What is neither proved nor refuted does not pass."""
    report = lp.check_map("lambda i, j: [(i + j) * (i + j + 1) // 2 + j]", "n, m")
    assert report.injective.status is lp.Status.UNKNOWN and not report.ok
    with pytest.raises(lp.NotProved, match="is not decided"):
        report.require()


def test_a_map_with_padding_is_ok() -> None:
    """What is asked of a map is that no two indices share a cell; padding is information."""
    report = lp.check_map(GOOD, (14,))
    assert report.bijective.status is lp.Status.REFUTED and report.require() is report


def test_the_report_of_a_comparison() -> None:
    """The same for two programs: a program and itself, and one that stores something else."""
    text = (ROOT / "examples" / "programs" / "row_sum.py").read_text(encoding="utf-8")
    before = lp.loads(text)
    same = lp.compare(before, before)
    other = lp.compare(before, lp.loads(text.replace("B[vi] + A[vi, vj]", "B[vi] - A[vi, vj]")))
    for comparison in (same, other):
        with pytest.raises(TypeError, match=MESSAGE):
            bool(comparison)
    assert same.ok and same.require() is same and not other.ok
    with pytest.raises(lp.NotProved, match="is refuted"):
        other.require()
    assert other.verdicts[0].status is lp.Status.REFUTED and repr(other).startswith("<Comparison: refuted: ")
