"""Figures of studies as SVG, written directly: one look, colours that the colour-blind can tell apart, and that differ
in print by their lightness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from layoutproof.studies.report.tables import Table

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Okabe and Ito's palette."""
FONT = "font-family:ui-sans-serif,Helvetica,Arial,sans-serif"
WIDTH = 760


@dataclass(slots=True)
class Drawing:
    """An SVG in the making."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", size: int = 12) -> None:
        """Words at a place; `anchor` is SVG's."""
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        self.parts.append(f'<text {place} fill="#222">{escape(words)}</text>')

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled rectangle."""
        place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect {place} fill="{colour}" stroke="#fff" stroke-width="0.8"/>')

    def line(self, points: Sequence[tuple[float, float]], colour: str, *, width: float = 1.0, dash: str = "") -> None:
        """A line through points."""
        along = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{along}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>')

    def dot(self, x: float, y: float, colour: str) -> None:
        """A point."""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')

    def svg(self) -> str:
        """The whole figure."""
        box = f'viewBox="0 0 {self.width} {self.height}" role="img" style="{FONT}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'
        body = "\n".join(self.parts)
        back = f'<rect width="{self.width}" height="{self.height}" fill="#fff"/>'
        return f"{head}\n<title>{escape(self.title)}</title>\n{back}\n{body}\n</svg>\n"


def ladder_figure(table: Table) -> str:
    """F4: for each operator how many pad values each further assumption adds, as stacked bars."""
    rows = table.rows
    left, top, step, scale = 190, 56, 20, 52.0
    drawing = Drawing(WIDTH, top + step * len(rows) + 30, table.title)
    drawing.text(12, 20, table.title, size=15)
    for number, rung in enumerate(table.columns):
        x = 12 + 124 * number
        drawing.rectangle(x, 30, 12, 12, COLOURS[number % len(COLOURS)])
        drawing.text(x + 16, 40, rung, size=11)
    for number, (heads, entries) in enumerate(rows):
        y = top + step * number
        drawing.text(left - 8, y + 13, heads[0], anchor="end")
        reached = 0
        for colour, entry in zip(COLOURS, entries, strict=True):
            count = int(entry.text)
            if count > reached:
                drawing.rectangle(left + scale * reached, y + 2, scale * (count - reached), step - 5, colour)
                reached = count
        drawing.text(left + scale * reached + 6, y + 13, f"{reached} of {heads[1]}", size=11)
    return drawing.svg()
