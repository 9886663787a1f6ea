"""oneDNN's format tags, `aBcd8b` and `OIhw4i16o4i`: letters are logical dimensions from the slowest to the fastest in
memory, capitals those that are blocked, numbers with small letters the inner blocks, outermost first.

The map goes from the logical index, whose order the letters determine, to the blocked one. Dimensions are padded to
whole blocks, and padding is zero by oneDNN's contract.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.notations.layout_strings import Layout, layout_map, parse_layout
from layoutproof.ir.notations.notation import Context, Notation, Scanner, WrittenLayout, whole

_WHAT = "oneDNN tag"
_OUTER = re.compile(r"[A-Za-z]")
_INNER = re.compile(r"([0-9]+)([A-Za-z])")
# The logical order of dimensions that are named by what they are: data, weights, and those of recurrent networks.
_ORDERS = ("ncdhw", "goidhw", "tnc", "ldnc", "ldigo", "ldio", "ldgo")
_NEEDED = {
    "ncdhw": "nc",
    "goidhw": "oi",
    "tnc": "tnc",
    "ldnc": "ldnc",
    "ldigo": "ldigo",
    "ldio": "ldio",
    "ldgo": "ldgo",
}
_TAG = re.compile(r"([A-Za-z]+)((?:[0-9]+[A-Za-z])*)")
_LETTERS = "abcdefghijkl"


def is_plain(text: str) -> bool:
    """Whether a word has a small letter without a number: no layout string of TVM has one."""
    return re.search(r"(?<![0-9])[a-z]", text) is not None


def is_tag(text: str) -> bool:
    """Whether a word has the form of a tag, with dimensions that oneDNN has, or with blocks."""
    match = _TAG.fullmatch(text)
    return match is not None and (bool(match[2]) or logical_order(match[1].lower()) is not None)


def logical_order(letters: str) -> str | None:
    """The letters in the order of the logical dimensions; None where they are no set that oneDNN has."""
    if "".join(sorted(letters)) == _LETTERS[: len(letters)]:
        return "".join(sorted(letters))
    for order in _ORDERS:
        if set(letters) <= set(order) and set(_NEEDED[order]) <= set(letters):
            return "".join(letter for letter in order if letter in letters)
    return None


def parse_tag(text: str, name: str = "<layout>") -> Layout:
    """The tag as a layout whose axes are all in upper case. Raises LayoutproofError at what is no tag."""
    scanner = Scanner(text, _WHAT, name)
    outer: list[tuple[str, int]] = []
    while (match := scanner.matched(_OUTER)) is not None:
        if match[0].lower() in (letter.lower() for letter, _ in outer):
            raise scanner.fail(f"the dimension {match[0]} stands twice", match.start(), match.end())
        outer.append((match[0], match.start()))
    inner: list[tuple[int, str]] = []
    while (match := scanner.matched(_INNER)) is not None:
        if match[2].isupper():
            raise scanner.fail("an inner block has a small letter", match.start(), match.end())
        if match[2] not in (letter.lower() for letter, _ in outer):
            raise scanner.fail(f"the block {match[0]} has no dimension", match.start(), match.end())
        if not 1 <= int(match[1][:10]) < 1 << 31 or len(match[1]) > 10:
            raise scanner.fail("the size of a block is from 1 to 2147483647", match.start(), match.end())
        inner.append((int(match[1]), match[2]))
    scanner.end()
    if not outer:
        raise scanner.fail("a letter for each dimension is expected", 0, len(text))
    _check_capitals(scanner, outer, {letter for _, letter in inner})
    plain = "".join(letter.upper() for letter, _ in outer) + "".join(f"{size}{letter}" for size, letter in inner)
    return parse_layout(plain, name)


def _check_capitals(scanner: Scanner, outer: Sequence[tuple[str, int]], blocked: set[str]) -> None:
    for letter, start in outer:
        if letter.isupper() and letter.lower() not in blocked:
            raise scanner.fail(f"{letter} is a capital, but no block of {letter.lower()} follows", start, start + 1)
        if letter.islower() and letter in blocked:
            message = f"{letter} has a block, so its letter is a capital: {letter.upper()}"
            raise scanner.fail(message, start, start + 1)


def tag_text(layout: Layout) -> str:
    """The tag of a layout whose axes are named by oneDNN's letters."""
    tiled = Counter(axis.name for axis in layout.axes if axis.extent is not None)
    return "".join(
        f"{axis.extent}{axis.name.lower()}"
        if axis.extent is not None
        else axis.name
        if axis.name in tiled
        else axis.name.lower()
        for axis in layout.axes
    )


def read_onednn(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of one tag from the logical order, or from the first of two: `nchw->nChw8c`. Raises LayoutproofError."""
    first, arrow, second = text.partition("->")
    if arrow:
        source, target = parse_tag(first.strip(), name), parse_tag(second.strip(), name)
        return WrittenLayout(Notation.ONEDNN, text, layout_map(source, target), context.shape)
    target = parse_tag(text.strip(), name)
    order = logical_order("".join(target.names).lower())
    if order is None:
        letters = "".join(target.names).lower()
        message = f"the dimensions {', '.join(letters)} have no logical order: they are a, b, c, ..., or oneDNN's names"
        raise error(codes.NOTATION, message, whole(Scanner(text, _WHAT, name).source))
    return WrittenLayout(Notation.ONEDNN, text, layout_map(parse_layout(order.upper()), target), context.shape)
