"""A schedule's steps, lowering and the kernel, for `run` and `build`: each is made, or the refusal that says which was not proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutproof.cli import codes
from layoutproof.cli.progress import Advance
from layoutproof.cli.trial.report import Refusal
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.opencl.device_limits import parse_profile
from layoutproof.lowering.runtime.opencl.devices import Device, find_device
from layoutproof.lowering.schedule.schedule import Schedule


def chosen_device(target: str, device: str | None, profile: str | None) -> Device | None:
    """The device of the OpenCL target, known before anything is proved. Raises LayoutproofError, for options of another target too."""
    if target != "opencl":
        given = "--device" if device is not None else "--device-profile" if profile is not None else None
        if given is not None:
            raise error(codes.OTHER_TARGET, f"{given} is for --target opencl; --target {target} has no other device than the processor")
        return None
    if profile is not None:
        parse_profile(profile)
    return find_device(device)


def build_or_refuse(schedule: Schedule, target: str, device: Device | None, profile: str | None) -> Kernel | Refusal:
    """The kernel; or the refusal, where what the target needs of textures is not proved. Raises LayoutproofError for all else."""
    try:
        return schedule.build(target, device=device, profile=profile)
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return Refusal("build", {"target": target}, problem)


def apply_and_lower(schedule: Schedule, passes: Sequence[Pass], advance: Advance) -> Refusal | None:
    """Apply the passes and lower; the first step that is not proved, or None. Raises LayoutproofError for one that does not apply."""
    for number, transform in enumerate(passes, start=1):
        advance(f"step {number} of {len(passes)}")
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
