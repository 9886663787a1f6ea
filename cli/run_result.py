"""The stages that `run` and `build` share (prove, lower, build), and their results as one object for renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.kernel_trial import Trial
from layoutproof.cli.output import Advance
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.interp import Fault, FaultKind
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.runtime.kernel import BuildReport, Kernel
from layoutproof.lowering.runtime.opencl.devices import Device, find_device, parse_profile
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict


def excused_steps(steps: Sequence[Step]) -> int:
    """The number of steps up to the last that needs a fast-math assumption; later ones keep values bit for bit."""
    return max(
        (number for number, step in enumerate(steps, start=1) if any(v.strictness for v in step.verdicts)), default=0
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused step and the reasons."""

    primitive: str
    arguments: Mapping[str, Any]
    problem: IllegalTransform

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts that are not proved, worst first."""
        return self.problem.verdicts

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The reasons with their places in the program."""
        return self.problem.diagnostics

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, like a step."""
        return {
            "primitive": self.primitive,
            "arguments": dict(self.arguments),
            "obligations": [v.to_dict() for v in self.verdicts],
        }


@dataclass(frozen=True, slots=True)
class RunReport:
    """The program's name, the applied steps, the lowering passes, and the results of the kernel; or the refused step.

    `built` and `trial` are None after a refused step. `fault`: what stopped the interpreter. The kernel is compared
    with the program after its first `excused` steps: these need fast-math assumptions, under which results may differ.
    """

    program: str
    steps: Sequence[Step]
    lowering: Sequence[Step] = ()
    refused: Refusal | None = None
    built: BuildReport | None = None
    trial: Trial | None = None
    fault: Fault | None = None
    excused: int = 0

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was refused, and what the interpreter stopped at."""
        refused = self.refused.diagnostics if self.refused is not None else ()
        return (*refused, *((self.fault.diagnostic(codes.FAULT),) if self.fault is not None else ()))

    @property
    def status(self) -> Status:
        """The worst verdict of the steps and of lowering; refuted if kernel and interpreter differ or the program has a
        fault.

        If the random inputs violate an assumption, that is unknown.
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
    """The result of `build`: the proofs and, unless switched off, the comparison; the written files and the interface.

    `files` and `interface` are None after a refused step: nothing was written.
    """

    report: RunReport
    target: str
    files: tuple[Path, Path] | None = None
    interface: Mapping[str, Any] | None = None


def chosen_device(target: str, device: str | None, profile: str | None) -> Device | None:
    """The device of the OpenCL target, known before any proof. Raises LayoutproofError, also for options of other
    targets.
    """
    if target != "opencl":
        given = "--device" if device is not None else "--device-profile" if profile is not None else None
        if given is not None:
            raise error(
                codes.OTHER_TARGET,
                f"{given} is for --target opencl; --target {target} has no other device than the processor",
            )
        return None
    if profile is not None:
        parse_profile(profile)
    return find_device(device)


def build_or_refuse(schedule: Schedule, target: str, device: Device | None, profile: str | None) -> Kernel | Refusal:
    """The kernel; or the refusal if the target's constraints on textures are not proved. Raises LayoutproofError
    otherwise.
    """
    try:
        return schedule.build(target, device=device, profile=profile)
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return Refusal("build", {"target": target}, problem)


def apply_and_lower(schedule: Schedule, passes: Sequence[Pass], advance: Advance) -> Refusal | None:
    """Apply the passes and lower; the first step that is not proved, or None. Raises LayoutproofError for an
    inapplicable one.
    """
    for number, transform in enumerate(passes, start=1):
        advance(f"step {number} of {len(passes)}: {transform.primitive}")
        try:
            schedule.apply(transform)
        except IllegalTransform as problem:
            if not problem.verdicts:
                first, *rest = problem.diagnostics
                raise LayoutproofError([replace(first, message=f"step {number}: {first.message}"), *rest]) from problem
            return Refusal(transform.primitive, transform.arguments(), problem)
    advance("lowering")
    try:
        schedule.lower()
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return Refusal("lower", {}, problem)
    return None
