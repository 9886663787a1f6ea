"""Outcomes as JSON: one object, or one a line, as `docs/schemas` has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TextIO

from layoutproof.cli.gate.outcome import Outcome
from layoutproof.cli.gate.summary import Summary


def render_json(outcomes: Iterable[Outcome], summary: Summary, out: TextIO, *, lines: bool = True) -> None:
    """Each outcome as an object on a line of its own; without `lines`, for a run of one item, indented."""
    for outcome in outcomes:
        # Not `json.dump`, which is several times slower.
        out.write(json.dumps(outcome.to_report(), indent=None if lines else 2) + "\n")
