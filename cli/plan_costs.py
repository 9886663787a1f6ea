"""What `plan` is told that rewrites cost: a table, what this machine takes for them, or nothing but their bytes."""

from __future__ import annotations

from pathlib import Path

from layoutproof.graph.planning.cost_files import load_costs
from layoutproof.graph.planning.measuring import MeasuredCosts


def costs_of(costs: Path | None, measure: Path | None) -> MeasuredCosts | None:
    """What the options say that rewrites cost; None: the bytes that they move. Raises LayoutproofError for a file that is no table."""
    if costs is None and measure is None:
        return None
    return MeasuredCosts(load_costs(costs) if costs is not None else None, measures=measure is not None)
