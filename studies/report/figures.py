"""Figures of studies as SVG, written directly: one look, colours that the colour-blind can tell apart, and that differ
in print by their lightness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import log2

from layoutproof.studies.kernel_times import VARIANTS, Timing
from layoutproof.studies.networks import Shares
from layoutproof.studies.report.tables import Entry, Table

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


TITLE = "F1. Time over that of the branch-free kernel, by share of padding"
PANEL_WIDTH, PANEL_HEIGHT = 232, 190
_LOW, _HIGH = -2.0, 2.5  # the range of the ratio's logarithm to the base of two
_MOST_PADDING = 0.5
_TICKS = (0.25, 0.5, 1, 2, 4)


def speed_figure(timings: Sequence[Timing]) -> str:
    """A panel for each operator and type: medians with a bar from the lower to the upper quartile."""
    groups = list(dict.fromkeys((t.operator, t.dtype) for t in timings))
    rows = -(-len(groups) // 3)
    drawing = Drawing(WIDTH, 76 + rows * (PANEL_HEIGHT + 56), TITLE)
    drawing.text(12, 20, TITLE, size=15)
    for number, variant in enumerate(VARIANTS):
        drawing.rectangle(12 + 110 * number, 32, 12, 12, COLOURS[number])
        drawing.text(28 + 110 * number, 42, variant)
    drawing.text(350, 42, "above 1 the branch-free kernel is faster; bars are quartiles", size=11)
    types = list(dict.fromkeys(dtype for _, dtype in groups))
    operators = list(dict.fromkeys(name for name, _ in groups))
    for name, dtype in groups:
        left = 44 + operators.index(name) % 3 * (PANEL_WIDTH + 12)
        top = 72 + types.index(dtype) * (PANEL_HEIGHT + 56)
        _panel(drawing, left, top, [t for t in timings if (t.operator, t.dtype) == (name, dtype)])
    return drawing.svg()


def _panel(drawing: Drawing, left: float, top: float, timings: Sequence[Timing]) -> None:
    first = timings[0]
    width, height = PANEL_WIDTH - 36, PANEL_HEIGHT

    def place(timing: Timing, ratio: float) -> tuple[float, float]:
        share = (min(max(log2(ratio), _LOW), _HIGH) - _LOW) / (_HIGH - _LOW)
        return left + width * timing.padding / _MOST_PADDING, top + height * (1 - share)

    drawing.text(left, top - 6, f"{first.operator}, {first.dtype}")
    for tick in _TICKS:
        y = top + height * (1 - (log2(tick) - _LOW) / (_HIGH - _LOW))
        drawing.line([(left, y), (left + width, y)], "#222" if tick == 1 else "#ddd", dash="4 3" if tick == 1 else "")
        drawing.text(left - 4, y + 4, f"{tick:g}", anchor="end", size=10)
    for percent in (0, 10, 20, 30, 40, 50):
        x = left + width * percent / 100 / _MOST_PADDING
        drawing.text(x, top + height + 14, f"{percent}%", anchor="middle", size=10)
    for number, variant in enumerate(VARIANTS):
        mine = sorted((t for t in timings if t.variant == variant), key=lambda t: t.padding)
        if not mine:
            continue
        drawing.line([place(t, t.median) for t in mine], COLOURS[number], width=1.6)
        for timing in mine:
            drawing.dot(*place(timing, timing.median), COLOURS[number])
            drawing.line([place(timing, timing.lower), place(timing, timing.upper)], COLOURS[number], width=2.2)


def speed_table(timings: Sequence[Timing]) -> Table:
    """The medians with their quartiles, and where the branch-free kernel is faster."""
    keys = list(dict.fromkeys((t.operator, t.dtype, t.variant) for t in timings))
    shares = sorted({t.padding for t in timings})
    rows = []
    for key in keys:
        mine = {t.padding: t for t in timings if (t.operator, t.dtype, t.variant) == key}
        entries = [_entry(mine[share]) if share in mine else Entry("") for share in shares]
        rows.append((key, (*entries, Entry(crossover(list(mine.values()))))))
    columns = (*(f"{share:.0%}" for share in shares), "faster at")
    note = (
        "Median of paired ratios, quartiles in brackets; above 1 the branch-free kernel is faster. `faster at`: the "
        "shares of padding at which it is, by a lower quartile above 1."
    )
    return Table("F1", TITLE, note, ("operator", "type", "variant"), columns, tuple(rows))


def _entry(timing: Timing) -> Entry:
    return Entry(f"{timing.median:.2f} [{timing.lower:.2f}, {timing.upper:.2f}]")


def crossover(timings: Sequence[Timing]) -> str:
    """The shares of padding at which the branch-free kernel is faster, as ranges of those that were measured."""
    ordered = sorted(timings, key=lambda t: t.padding)
    faster = [timing.lower > 1 for timing in ordered]
    if all(faster) or not any(faster):
        return "everywhere" if any(faster) else "nowhere"
    ranges: list[list[str]] = []
    for number, timing in enumerate(ordered):
        if faster[number]:
            share = f"{timing.padding:.0%}"
            if number and faster[number - 1]:
                ranges[-1][1:] = [share]
            else:
                ranges.append([share])
    return ", ".join(" to ".join(each) for each in ranges)


SHARES_TITLE = "F3. Share of a network's edges that one contract serves"
FRONT_TITLE = "F2. Bytes of padding against guarded iterations, each relative to all"
Fronts = Mapping[str, Sequence[tuple[int, int]]]


def shares_table(shares: Sequence[Shares]) -> Table:
    """F3 as a table."""
    rows = tuple(
        (
            (s.network,),
            (
                Entry(str(s.edges)),
                Entry(str(s.anything)),
                Entry(str(s.zero)),
                Entry(str(s.other)),
                Entry(f"{s.served / s.edges:.0%}"),
            ),
        )
        for s in shares
    )
    note = (
        "Edges, and how many need no guard with anything in the padding, with zeros, with another value; and the share "
        "of all. The rest are read by an operator that moves elements along channels, or by two that disagree."
    )
    return Table("F3", SHARES_TITLE, note, ("network",), ("edges", "anything", "zero", "other", "served"), rows)


def shares_figure(shares: Sequence[Shares]) -> str:
    """F3 as stacked bars."""
    left, top, step, scale = 130, 56, 26, 540
    drawing = Drawing(WIDTH, top + step * len(shares) + 20, SHARES_TITLE)
    drawing.text(12, 20, SHARES_TITLE, size=15)
    for number, words in enumerate(("anything", "zero", "another value")):
        drawing.rectangle(12 + 120 * number, 30, 12, 12, COLOURS[number])
        drawing.text(28 + 120 * number, 40, words)
    for number, each in enumerate(shares):
        y, x = top + step * number, float(left)
        drawing.text(left - 8, y + 15, each.network, anchor="end")
        for colour, count in zip(COLOURS, (each.anything, each.zero, each.other), strict=False):
            drawing.rectangle(x, y + 2, scale * count / each.edges, step - 8, colour)
            x += scale * count / each.edges
        drawing.text(x + 6, y + 15, f"{each.served / each.edges:.0%} of {each.edges}", size=11)
    return drawing.svg()


def fronts_table(fronts: Mapping[int, Fronts]) -> Table:
    """F2 as a table: what all padding that serves costs, and the guarded iterations with and without."""
    rows = tuple(
        (
            (network, str(block)),
            (Entry(f"{points[-1][0]:,}"), Entry(f"{points[0][1]:,}"), Entry(f"{points[-1][1]:,}")),
        )
        for block, by_network in fronts.items()
        for network, points in by_network.items()
        if points[0][1]
    )
    note = (
        "Bytes of padding if every edge that a contract serves is padded; guarded iterations without it, and with it."
    )
    columns = ("bytes of padding", "guarded without", "guarded with")
    return Table("F2", "F2. Bytes of padding against guarded iterations", note, ("network", "block"), columns, rows)


def fronts_figure(fronts: Fronts, block: int) -> str:
    """F2: for each network the best trade, both axes relative to its largest."""
    left, top, width, height = 56, 50, 460, 320
    drawing = Drawing(WIDTH, top + height + 50, FRONT_TITLE)
    drawing.text(12, 20, f"{FRONT_TITLE} (blocks of {block} channels)", size=15)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y, x = top + height * (1 - share), left + width * share
        drawing.line([(left, y), (left + width, y)], "#ddd")
        drawing.text(left - 6, y + 4, f"{share:.0%}", anchor="end", size=10)
        drawing.text(x, top + height + 14, f"{share:.0%}", anchor="middle", size=10)
    drawing.text(left + width / 2, top + height + 34, "bytes of padding", anchor="middle")
    drawing.text(left, top - 8, "guarded iterations")
    shown = [(network, points) for network, points in fronts.items() if points[0][1] and points[-1][0]]
    for number, (network, points) in enumerate(shown):
        colour, dash = COLOURS[number % len(COLOURS)], "" if number < len(COLOURS) else "5 3"
        most, all_tests = points[-1][0], points[0][1]
        places = [(left + width * size / most, top + height * (1 - tests / all_tests)) for size, tests in points]
        drawing.line(places, colour, width=1.8, dash=dash)
        drawing.line(
            [(left + width + 20, top + 14 + 20 * number), (left + width + 44, top + 14 + 20 * number)],
            colour,
            width=2,
            dash=dash,
        )
        drawing.text(left + width + 50, top + 18 + 20 * number, network)
    return drawing.svg()
