"""The ratios of benchmarks/results.md as a picture: for each kernel, how many times longer every other way takes.

    python -m benchmarks.plot

draws benchmarks/results.svg from the page as it stands; `python -m benchmarks` does so when it has measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent / "results.md"
PICTURE = RESULTS.with_suffix(".svg")
SECTIONS = ("Kernels", "Layout changes")
# Columns that are no ratios.
_FIGURES = ("MB", "ms", "operations/s")


@dataclass(frozen=True)
class Table:
    """A table of ratios: its title, the columns of ratios, and the rows by name; NaN where nothing was measured."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


def tables(page: str) -> Iterator[Table]:
    """The tables of the sections that compare kernels."""
    for section in page.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        if title.strip() in SECTIONS:
            for block in text.split("\n\n"):
                lines = [_cells(line) for line in block.splitlines() if line.startswith("|")]
                if len(lines) > 2:
                    yield _table(lines[0], lines[2:])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    places = [k for k, name in enumerate(head) if k > 0 and not name.endswith(_FIGURES)]
    numbers = [(row[0].strip("`"), tuple(math.nan if row[k] == "-" else float(row[k]) for k in places)) for row in rows]
    return Table(head[0], tuple(head[k].removesuffix(", times") for k in places), tuple(numbers))


def draw(found: Sequence[Table]) -> Figure:
    """One row of bars for each table, on a logarithmic scale; the line is our kernel."""
    heights = [max(1.5, 0.16 * len(table.rows) * (len(table.columns) + 1)) for table in found]
    figure = Figure(figsize=(11, sum(heights) + 0.7 * len(found)), layout="constrained")
    for axes, table in zip(
        figure.subplots(len(found), 1, squeeze=False, height_ratios=heights)[:, 0], found, strict=True
    ):
        width = 1 / (len(table.columns) + 1)
        for number, column in enumerate(table.columns):
            places = [row + number * width for row in range(len(table.rows))]
            axes.barh(places, [values[number] - 1 for _, values in table.rows], left=1, height=width, label=column)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks(
            [row + width * (len(table.columns) - 1) / 2 for row in range(len(table.rows))],
            [name for name, _ in table.rows],
        )
        axes.tick_params(axis="y", labelsize=7)
        axes.invert_yaxis()
        axes.set_title(f"{table.title}: times longer than the proved kernel", fontsize=9, loc="left")
        axes.legend(fontsize=7)
    return figure


def main() -> None:
    """Draw the page's ratios."""
    draw(list(tables(RESULTS.read_text(encoding="utf-8")))).savefig(PICTURE)


if __name__ == "__main__":
    main()
