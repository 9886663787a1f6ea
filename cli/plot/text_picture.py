"""A layout as text, for terminals: the physical box in rows and columns, each cell with the index that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from layoutproof.cli.plot.layout_cells import Picture

_ELIDED = 1.5  # cells further apart than that have others between them that are not shown


def text_picture(picture: Picture, texts: Mapping[tuple[int, ...], str]) -> str:
    """Lines of a plane: `texts` has every shown cell. Blocks are apart, and dots stand for what is left out."""
    columns = sorted({place.x for place in picture.places})
    rows = sorted({place.y for place in picture.places})
    at = {(place.x, place.y): texts[place.index] for place in picture.places}
    wide = max(len(text) for text in texts.values())
    lines: list[str] = []
    for number, y in enumerate(rows):
        if number:
            lines += _between(rows[number - 1], y)
        cells = [at.get((x, y), "").rjust(wide) for x in columns]
        gaps = ["", *(_gap(a, b) for a, b in pairwise(columns))]
        lines.append("".join(f"{gap}{cell}" for gap, cell in zip(gaps, cells, strict=True)).rstrip())
    return "\n".join(lines) + "\n"


def _gap(before: float, after: float) -> str:
    """What separates two columns."""
    if after - before > 1 + _ELIDED / 2 and after - before < 2 + _ELIDED / 2:
        return "  ..  "
    return " | " if after - before > 1.01 else "  "


def _between(before: float, after: float) -> Iterator[str]:
    """Lines between two rows."""
    if after - before > 1.01:
        yield "" if after - before < 1 + _ELIDED / 2 else "  .."
