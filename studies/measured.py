"""The record of a cell: its verdict, its costs, and on request its certificate."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from layoutproof.studies.cells import Cell
from layoutproof.studies.counting import cost_record
from layoutproof.studies.judge import judge, record_of
from layoutproof.studies.operators import Operator
from layoutproof.verify.verdict.verdict import Status

COSTS = ("extra_stores", "extra_loads", "extra_operations", "padding_bytes")


def measured(operator: Operator, cell: Cell) -> dict[str, Any]:
    """A cell as plain data."""
    judged = judge(operator, cell)
    return {**record_of(judged), "costs": cost_record(judged)}


def undecided(cell: Cell, reason: str) -> dict[str, Any]:
    """The record of a cell whose run was ended by a limit."""
    empty: dict[str, Any] = {
        "licences": [],
        "breaks": {},
        "claims": [],
        "guards": 0,
        "guards_left": 0,
        "counterexample": None,
        "costs": {},
    }
    return {**asdict(cell), "verdict": Status.UNKNOWN.value, "reason": reason, **empty}
