"""What changed between two programs: line by line, and within lines word by word. Small enough to be kept for every step of a schedule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

Marks = list[list[int]]
"""Stretches of a line that are not in its counterpart: `[start, end]`, columns from 0, the end exclusive."""
Row = list[Any]
"""`["=", n]`: n lines are the same; `["-", n]`: n are gone; `["+", n]`: n are new; `["~", marks, marks]`: one line became another."""

_WORD = re.compile(r"\w+|\s+|.")
_LARGEST_BLOCK = 2_500
_LARGEST_TEXT = 1 << 20
_ALIKE = 0.4


def diff_of(old: Sequence[str], new: Sequence[str]) -> list[Row]:
    """The rows that lead from `old` to `new`, in order; walking them counts the lines of both."""
    return _diff(tuple(old), tuple(new))


@lru_cache(maxsize=512)
def _diff(old: tuple[str, ...], new: tuple[str, ...]) -> list[Row]:
    rows: list[Row] = []
    # Of very long programs, lines that are everywhere are no landmarks: that is slightly worse and much faster.
    large = len(old) * len(new) > _LARGEST_TEXT
    for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new, autojunk=large).get_opcodes():
        if tag == "equal":
            rows.append(["=", i_end - i])
        elif tag == "delete":
            rows.append(["-", i_end - i])
        elif tag == "insert":
            rows.append(["+", j_end - j])
        else:
            rows += _replaced(old[i:i_end], new[j:j_end])
    return rows


def _replaced(old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """A block that was replaced: lines that are alike are pairs, the others are gone or new."""
    i = j = 0
    for left, right in (*_pairs(old, new), (len(old), len(new))):
        if left > i:
            yield ["-", left - i]
        if right > j:
            yield ["+", right - j]
        if left < len(old):
            yield ["~", *_marks(old[left], new[right])]
        i, j = left + 1, right + 1


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which lines correspond, in order: as alike as possible together. Of a very large block, none."""
    if len(old) * len(new) > _LARGEST_BLOCK:
        return []
    words = [set(_WORD.findall(line.strip())) for line in (*old, *new)]
    alike = [[_likeness(words[i], words[len(old) + j]) for j in range(len(new))] for i in range(len(old))]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            together = best[i + 1][j + 1] + alike[i][j] if alike[i][j] >= _ALIKE else 0.0
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    found: list[tuple[int, int]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        if alike[i][j] >= _ALIKE and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _likeness(one: set[str], other: set[str]) -> float:
    """The share of words that two lines have in common, 0 to 1."""
    every = one | other
    return len(one & other) / len(every) if every else 1.0


def _marks(old: str, new: str) -> tuple[Marks, Marks]:
    """Which words of a line and of its counterpart are not in the other one."""
    left, right = _WORD.findall(old), _WORD.findall(new)
    gone: Marks = []
    fresh: Marks = []
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            _mark(gone, left, i, i_end)
            _mark(fresh, right, j, j_end)
    return gone, fresh


def _mark(marks: Marks, words: Sequence[str], start: int, end: int) -> None:
    if start == end:
        return
    column = sum(len(word) for word in words[:start])
    length = sum(len(word) for word in words[start:end])
    marks.append([column, column + length])
