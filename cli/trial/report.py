"""What `run` did, as one object that every renderer reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.trial.compare import Trial
from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.ir.interp import Fault, FaultKind
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.runtime.kernel import BuildReport
from layoutproof.verify.verdict.verdict import Status, Verdict, worst


def licensed_steps(steps: Sequence[Step]) -> int:
    """How many steps there are up to the last that needs a float licence: what the program computes after it is kept bit for bit."""
    return max((number for number, step in enumerate(steps, start=1) if any(v.strictness for v in step.verdicts)), default=0)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A step that was not kept: what it was, and why."""

    primitive: str
    arguments: Mapping[str, Any]
    problem: IllegalTransform

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those that were not proved, worst first."""
        return self.problem.verdicts

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The reasons with their places in the program."""
        return self.problem.diagnostics

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, like a step."""
        return {"primitive": self.primitive, "arguments": dict(self.arguments), "obligations": [v.to_dict() for v in self.verdicts]}


@dataclass(frozen=True, slots=True)
class RunReport:
    """The program's name, the steps kept, the lowering passes, and what came of the kernel; or the step that was refused.

    `built` and `trial` are None where a step was refused: nothing was run then. `fault` is what the interpreter stopped at. The kernel
    is compared with the program after its first `licensed` steps: those need float licences, under which results may differ.
    """

    program: str
    steps: Sequence[Step]
    lowering: Sequence[Step] = ()
    refused: Refusal | None = None
    built: BuildReport | None = None
    trial: Trial | None = None
    fault: Fault | None = None
    licensed: int = 0

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was refused, and what the interpreter stopped at."""
        refused = self.refused.diagnostics if self.refused is not None else ()
        return (*refused, *((self.fault.diagnostic(codes.FAULT),) if self.fault is not None else ()))

    @property
    def status(self) -> Status:
        """The worst verdict of the steps and of lowering; refuted where kernel and interpreter differ or the program is at fault.

        Made-up data that break an assumption of the program say nothing of it: unknown.
        """
        if self.fault is not None:
            return Status.UNKNOWN if self.fault.kind is FaultKind.ASSUMPTION else Status.REFUTED
        if self.trial is not None and not self.trial.equal:
            return Status.REFUTED
        refused = self.refused.verdicts if self.refused is not None else ()
        kept = (verdict for step in (*self.steps, *self.lowering) for verdict in step.verdicts)
        return worst(verdict.status for verdict in (*refused, *kept))


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What `build` did: the proofs and, unless it was switched off, the comparison; what was written, and what a caller has to know.

    `files` and `interface` are None where a step was refused: nothing was written then.
    """

    report: RunReport
    target: str
    files: tuple[Path, Path] | None = None
    interface: Mapping[str, Any] | None = None
