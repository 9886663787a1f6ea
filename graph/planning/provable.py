"""Variants that a choice takes and that are not proved: a layout may flow through a function that no proof follows through.

Whether a function in other layouts is the function is asked only of what is chosen. What is not proved is no choice, and another is made.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutproof.graph.flow import NoFlow
from layoutproof.graph.model import Call
from layoutproof.graph.planning.candidates import Candidates, calls_of
from layoutproof.graph.planning.contracted import schedule_of
from layoutproof.graph.planning.problem import Choice, Problem, Variant
from layoutproof.lowering.passes.illegal import IllegalTransform


def unproved(candidates: Candidates, problem: Problem, choice: Choice) -> Iterator[tuple[Call, Variant, str]]:
    """The calls whose chosen variant is not proved, each function and variant once, with the reason; of frozen calls nothing is asked."""
    seen: set[tuple[int, Variant]] = set()
    for call, asked, number in zip(calls_of(candidates.graph), problem.calls[problem.inner], choice[problem.inner], strict=True):
        variant = asked.own[number]
        key = (id(call.function), variant)
        if number == 0 or call.results[0].name in candidates.frozen or key in seen:
            continue
        seen.add(key)
        try:
            schedule_of(call.function, variant)
        except NoFlow as stop:
            yield call, variant, stop.reason
        except IllegalTransform as stop:
            yield call, variant, f"it is not proved to do the same then: {stop.diagnostics[0].message}"
