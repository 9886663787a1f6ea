"""The picture of a plan: the graph as it was asked for, nothing planned, beside the planned one."""

from __future__ import annotations

from dataclasses import replace

from layoutproof.cli.graph_picture import Column, column_of
from layoutproof.cli.plan_report import PlanReport
from layoutproof.graph.planning.plan import Plan
from layoutproof.ir.diagnostic import counted


def picture_of_plan(report: PlanReport, ending: str) -> bytes:
    """The graph before and after planning, as the bytes of an `svg` or `png` file."""
    from layoutproof.cli.graph_drawing import draw_columns  # matplotlib takes a second to load, and only pictures need it

    return draw_columns(columns_of(report), report.layout_name, f"{report.source}: {report.graph.name}", ending)


def columns_of(report: PlanReport) -> tuple[Column, Column]:
    """Before and after."""
    before = replace(report.plan, choice=report.plan.unplanned)

    def column(what: str, plan: Plan) -> Column:
        rewrites = counted(plan.count(plan.choice), "rewrite", "rewrites")
        return column_of(plan.rewrite, f"{what}: {rewrites}, {plan.cost:,} bytes", report.layout_name)

    return column("as asked", before), column("planned", report.plan)
