"""What `suggest` answers: a proved schedule, and what of the request could not be proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.shown import Shown
from layoutproof.lowering.layout.block_layouts import Layouts
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.schedule.trace import Trace
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that is not in the schedule, `what`; the refusal of the step, the pad values that it had, and what
    would make it possible, `lift`.
    """

    what: str
    problem: IllegalTransform | None = None
    pads: Mapping[str, PadText] | None = None
    lift: str | None = None

    @property
    def status(self) -> Status:
        """Refuted where a counterexample was run; else unknown."""
        found = None if self.problem is None else self.problem.status
        return found if found is Status.REFUTED else Status.UNKNOWN

    @property
    def reason(self) -> str | None:
        """What is not proved, and why; None where nothing was asked."""
        return None if self.problem is None else self.problem.diagnostics[0].message

    @property
    def code(self) -> str | None:
        """The code of what is not proved."""
        return None if self.problem is None else self.problem.diagnostics[0].code

    @property
    def remedy(self) -> str | None:
        """What would make it possible, where that is known."""
        return self.lift if self.lift is not None or self.problem is None else self.problem.diagnostics[0].help

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        pads = None if self.pads is None else dict(self.pads)
        return {
            "what": self.what,
            "status": self.status.value,
            "code": self.code,
            "reason": self.reason,
            "help": self.remedy,
            "pad_values": pads,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion(Shown):
    """A schedule in which everything that `block` touches is stored in `layout`; its steps from number `begun` on are
    the suggested ones, each proved.

    `layouts` are the maps of the buffers, `pads` what their padding holds; `obstacles` what was left out.
    """

    schedule: Schedule
    begun: int
    block: str
    layout: str
    layouts: Layouts
    pads: Mapping[str, PadText]
    obstacles: tuple[Obstacle, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The suggested steps with their verdicts."""
        return self.schedule.steps[self.begun :]

    @property
    def trace(self) -> Trace:
        """The schedule as plain data, earlier steps too."""
        return self.schedule.trace

    @property
    def status(self) -> Status:
        """Proved where nothing was left out; else the worst of what was."""
        return worst([Status.PROVED, *(obstacle.status for obstacle in self.obstacles)])

    @property
    def preconditions(self) -> tuple[str, ...]:
        """What callers have to see to: what the padding of inputs holds."""
        return self.schedule.preconditions

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        layouts = {
            name: {"index_map": index_map_text(index_map), "pad_value": self.pads.get(name)}
            for name, index_map in self.layouts.items()
        }
        return {
            "function": self.schedule.original.name,
            "block": self.block,
            "layout": self.layout,
            "verdict": self.status.value,
            "layouts": layouts,
            "steps": [step.to_dict() for step in self.steps],
            "preconditions": list(self.preconditions),
            "left_out": [obstacle.to_dict() for obstacle in self.obstacles],
            "trace": self.trace,
        }

    def __repr__(self) -> str:
        left = "" if not self.obstacles else f", {len(self.obstacles)} left out"
        return f"<suggestion for {self.block} in {self.layout}: {len(self.steps)} steps, each proved{left}>"
