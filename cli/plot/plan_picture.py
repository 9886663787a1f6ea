"""The picture of a plan: the graph as it was asked for, nothing planned, beside the planned one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from layoutproof.cli.plan.limits import Left
from layoutproof.cli.plan.report import PlanReport
from layoutproof.cli.plot.graph_picture import Column, column_of
from layoutproof.cli.texts import bytes_text
from layoutproof.graph.witness import GraphRewrite
from layoutproof.ir.diagnostic import counted


def picture_of_plan(report: PlanReport, ending: str) -> bytes:
    """The graph before and after planning, as the bytes of an `svg` or `png` file."""
    from layoutproof.cli.plot.graph_drawing import draw_columns  # matplotlib takes a second to load, and only pictures need it

    return draw_columns(columns_of(report), report.layout_name, f"{Path(report.source).name}: {report.graph.name}", ending)


def columns_of(report: PlanReport) -> tuple[Column, Column]:
    """Before and after."""
    unplanned = replace(report.plan, choice=report.plan.unplanned)

    def column(what: str, rewrite: GraphRewrite, left: Left) -> Column:
        title = f"{what}: {counted(left.count, 'rewrite', 'rewrites')}, {bytes_text(left.bytes)}"
        return column_of(rewrite, title, report.layout_name)

    return column("as asked", unplanned.rewrite, report.moved(unplanned.choice)), column("planned", report.rewrite, report.left)
