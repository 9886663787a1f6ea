"""Where the parts of a JSON text stand: the elements of a list and the members of an object, by offset.

The text is known to be JSON; Python's own decoder finds the ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Part:
    """A value with its offsets; `key` are those of its name, if it is a member of an object."""

    value: Any
    start: int
    end: int
    name: str = ""
    key: tuple[int, int] = (0, 0)


def elements(text: str, start: int) -> Iterator[Part]:
    """The elements of the list that begins at an offset, or after blanks there; none for another value."""
    at = _after_blanks(text, start)
    if text[at : at + 1] != "[":
        return
    at = _after_blanks(text, at + 1)
    while text[at : at + 1] not in ("]", ""):
        value, end = _DECODER.raw_decode(text, at)
        yield Part(value, at, end)
        at = _past_comma(text, end)


def members(text: str, start: int) -> Iterator[Part]:
    """The members of the object that begins at an offset; none for another value."""
    at = _after_blanks(text, start)
    if text[at : at + 1] != "{":
        return
    at = _after_blanks(text, at + 1)
    while text[at : at + 1] not in ("}", ""):
        name, end = _DECODER.raw_decode(text, at)
        value_at = _after_blanks(text, _after_blanks(text, end) + 1)
        value, value_end = _DECODER.raw_decode(text, value_at)
        yield Part(value, value_at, value_end, name, (at, end))
        at = _past_comma(text, value_end)


def inner_offset(text: str, part: Part, index: int) -> int:
    """The offset of a character of a text value, which has escapes, maybe."""
    at = part.start + 1
    for _ in range(index):
        if text[at] == "\\":
            pair = text[at + 6 : at + 8] == "\\u" and text[at + 1] == "u" and text[at + 2 : at + 4].lower() in _HIGH
            at += 12 if pair else 6 if text[at + 1] == "u" else 2
        else:
            at += 1
    return min(at, part.end)


_HIGH = ("d8", "d9", "da", "db")  # the first of two that stand for one character


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANK:
        at += 1
    return at


def _past_comma(text: str, at: int) -> int:
    at = _after_blanks(text, at)
    return _after_blanks(text, at + 1) if text[at : at + 1] == "," else at
