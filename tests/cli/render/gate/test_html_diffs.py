"""Differences of programs: walking their rows gives both texts back, and what is not marked is the same in both."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layoutproof.cli.gate.judging.detail import Row, diff_of

LINES = st.lists(
    st.sampled_from(
        [
            "for i in range(4):",
            "for i in range(14):",
            "    A[i] = B[i]",
            "    A[i // 4, i % 4] = B[i]",
            "",
            "T.evaluate(0)",
        ]
    )
)


def without(text: str, marks: list[list[int]]) -> str:
    """The text without its marked stretches."""
    at, kept = 0, ""
    for start, end in marks:
        assert at <= start < end <= len(text)
        kept += text[at:start]
        at = end
    return kept + text[at:]


def walked(rows: list[Row], old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines of both the rows account for; every row is true of its lines."""
    i = j = 0
    for row in rows:
        match row:
            case ["=", count]:
                assert count > 0 and old[i : i + count] == new[j : j + count]
                i, j = i + count, j + count
            case ["-", count]:
                i += count
            case ["+", count]:
                j += count
            case ["~", gone, fresh]:
                assert old[i] != new[j]
                assert without(old[i], gone) == without(new[j], fresh)
                i, j = i + 1, j + 1
            case _:
                raise AssertionError(row)
    return i, j


@given(LINES, LINES)
def test_rows_lead_from_one_text_to_the_other(old: list[str], new: list[str]) -> None:
    """Rows account for every line of both texts, in order, and unmarked stretches of a pair are equal."""
    assert walked(diff_of(old, new), old, new) == (len(old), len(new))


def test_alike_lines_are_pairs() -> None:
    """Of a block that was replaced, the line that became another stands beside it, with the words that changed
    marked.
    """
    old = ["def f():", "    B[vi] = B[vi] + A[vi, vj]"]
    new = ["def f():", "    T.writes()", "    B[vi] = B[vi] + A[vi, vj // 4, vj % 4]"]
    rows = diff_of(old, new)
    assert [row[0] for row in rows] == ["=", "+", "~"]
    gone, fresh = rows[-1][1:]
    assert gone == [] and "".join(new[2][a:b] for a, b in fresh).strip(" ,") == "// 4, vj % 4"


def test_equal_texts_have_one_row() -> None:
    """Nothing changed is one row, and of no lines none."""
    assert diff_of(["a", "b"], ["a", "b"]) == [["=", 2]]
    assert diff_of([], []) == []


def test_a_very_large_block_is_not_paired() -> None:
    """Blocks too large to be paired line by line are gone and new as a whole."""
    old, new = [f"old {n}" for n in range(60)], [f"new {n}" for n in range(60)]
    assert diff_of(old, new) == [["-", 60], ["+", 60]]
