"""Colours of cells: by place in the logical order, by source row, by memory bank; and of padding, by its contract."""

from __future__ import annotations

from colorsys import hls_to_rgb

_ORDER = ((0xFB, 0xFD, 0xD0), (0xB9, 0xE3, 0xB5), (0x66, 0xC2, 0xBF))
_ROWS = (
    "#a6cee3",
    "#fdd49e",
    "#b2df8a",
    "#f4b6d2",
    "#cab2d6",
    "#ffed8a",
    "#8fd3c7",
    "#f5b7a1",
    "#9fb8e8",
    "#d9ef9f",
    "#d8b38a",
    "#c9ccd1",
)
CLASH = "#f08a7c"
FORBIDDEN, UNDEFINED, VALUE = ("#f2f2f2", "#9aa4ab"), ("#efe6f7", "#a98bc4"), ("#fdf3d0", "#d1a94a")
"""The colour of padding and of its hatching: no contract, any value, a certain value."""


def by_order(rank: float) -> str:
    """Light to dark, for a place from 0 to 1."""
    part = rank * 2
    low, high = (_ORDER[0], _ORDER[1]) if part <= 1 else (_ORDER[1], _ORDER[2])
    share = part if part <= 1 else part - 1
    return _hex(tuple(round(a + (b - a) * share) for a, b in zip(low, high, strict=True)))


def by_row(row: int) -> str:
    """One of twelve colours."""
    return _ROWS[row % len(_ROWS)]


def by_bank(bank: int, banks: int) -> str:
    """One of as many hues as there are banks."""
    red, green, blue = hls_to_rgb(bank / max(banks, 1), 0.8 if bank % 2 else 0.72, 0.62)
    return _hex(tuple(round(part * 255) for part in (red, green, blue)))


def of_padding(contract: str | None) -> tuple[str, str]:
    """The colour and the hatching for a contract's text: None if there is none, `undef`, or a value."""
    if contract is None:
        return FORBIDDEN
    return UNDEFINED if contract == "undef" or "undef" in contract else VALUE


def _hex(rgb: tuple[int, ...]) -> str:
    return "#" + "".join(f"{part:02x}" for part in rgb)
