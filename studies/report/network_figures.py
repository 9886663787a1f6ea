"""F2 and F3, the figures of the network study, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.studies.networks import Shares
from layoutproof.studies.report.figures import COLOURS, WIDTH, Drawing
from layoutproof.studies.report.tables import Entry, Table

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
