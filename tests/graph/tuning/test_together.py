"""Passes that are proved as one step are stated one by one: a trace of them is replayed."""

from __future__ import annotations

from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.tuning.loop_schedules import Together, apply_together, drafted
from layoutproof.lowering.schedule.schedule import Schedule


def test_a_trace_of_passes_proved_together_replays() -> None:
    """The trace has the passes, not the step that they were, and leads to the same program."""
    func = unary("relu", (4, 6))
    made = Schedule(func)
    apply_together(
        made, [drafted(func, lambda draft: [draft.split("relu", 1, [None, 3]), draft.reorder("relu", [1, 0, 2])])]
    )
    assert [type(step.transform) for step in made.steps] == [Together]
    assert [primitive for primitive, _ in made.trace] == ["split", "reorder"]
    assert Schedule.replay(func, made.trace).func == made.func
