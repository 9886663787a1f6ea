"""Layouts of studies: how the padded axes of an operator are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.diagnostic import error
from layoutproof.studies import codes

LARGEST_BLOCK = 128
_BLOCK = re.compile(r"block(\d+)")


@dataclass(frozen=True, slots=True)
class Layout:
    """How an axis `x` with each letter is stored: text of the axes that it becomes. Letters without an entry stay.

    Loops run over `loops` where their order is not that of memory.
    """

    name: str
    about: str
    axes: Mapping[str, tuple[str, ...]]
    loops: Mapping[str, tuple[str, ...]] | None = None

    def map_text(self, letters: str) -> str | None:
        """The index map of a buffer or a block with these letters; None where the layout leaves it as it is."""
        return _map_text(letters, self.axes)

    def loops_text(self, letters: str) -> str | None:
        """`map_text` for a block, whose loops know no axis separators."""
        text = _map_text(letters, self.loops if self.loops is not None else self.axes)
        return None if text is None else text.replace("AXIS_SEPARATOR, ", "")


def _map_text(letters: str, axes: Mapping[str, tuple[str, ...]]) -> str | None:
    if not set(letters) & set(axes):
        return None
    names = [f"x{number}" for number in range(len(letters))]
    outputs = [
        text.replace("x", name) if text != "SEP" else "AXIS_SEPARATOR"
        for name, letter in zip(names, letters, strict=True)
        for text in axes.get(letter, ("x",))
    ]
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}]"


def layout_named(name: str) -> Layout:
    """The layout of a name. Raises LayoutproofError for another name."""
    match = _BLOCK.fullmatch(name)
    if match and 2 <= int(match[1]) <= LARGEST_BLOCK:
        return _everywhere(name, f"blocks of {match[1]}", f"x//{match[1]}", f"x%{match[1]}")
    if name not in _NAMED:
        known = f"block2 to block{LARGEST_BLOCK}, {', '.join(_NAMED)}"
        raise error(codes.STUDY_FILE, f"there is no layout {name!r}", help=f"layouts are {known}")
    return _NAMED[name]


def _everywhere(name: str, about: str, *axes: str) -> Layout:
    """A layout of the one padded axis, which serves a halo as well."""
    return Layout(name, about, {"n": axes, "h": axes})


_NAMED: Mapping[str, Layout] = {
    layout.name: layout
    for layout in (
        _everywhere("offset", "two cells of padding before the elements, in rows of 8", "(x + 2)//8", "(x + 2)%8"),
        Layout(
            "two-axes",
            "blocks of 4 along both axes",
            {"n": ("x//4", "x%4"), "h": ("x//4", "x%4"), "r": ("x//4", "x%4")},
        ),
        Layout(
            "swizzle",
            "rows of 8, the place in a row changed by the row; loops run in the order of the elements",
            {"n": ("x//8", "(x//8) % 8 ^ x%8"), "h": ("x//8", "(x//8) % 8 ^ x%8")},
            {"n": ("x//8", "x%8"), "h": ("x//8", "x%8")},
        ),
        _everywhere("texture", "texels of four lanes", "x//4", "SEP", "x%4"),
    )
}
