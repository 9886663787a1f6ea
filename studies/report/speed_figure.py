"""F1 as a figure and a table: the time of guarded, masked and peeled kernels over that of the branch-free one."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from layoutproof.studies.kernel_times import VARIANTS, Timing
from layoutproof.studies.report.figures import COLOURS, WIDTH, Drawing
from layoutproof.studies.report.tables import Entry, Table

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
