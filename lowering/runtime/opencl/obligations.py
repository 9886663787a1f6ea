"""What textures need of a program is proved before it is generated: the obligations of `verify.texels`, for a device and a profile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.ir.expr import Expr, logical_and
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.illegal import IllegalTransform, counterexample_text
from layoutproof.lowering.runtime.assumptions import Assumption
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.limits import Profile
from layoutproof.verify.textures.texture_checks import PROFILES, DeviceLimits, check_texels
from layoutproof.verify.verdict.verdict import Status, Verdict

_WORDS = {Status.REFUTED: "is refuted", Status.UNKNOWN: "is not decided", Status.VACUOUS: "holds only of nothing"}


def limits_of(device: Device | None, profile: Profile | None) -> DeviceLimits | None:
    """What the device and the profile both take; None for a device without images.

    Without either, what OpenCL asks of every device of version 2 that has images.
    """
    if device is None:
        return DeviceLimits(profile.width, profile.height) if profile is not None else PROFILES["16384x16384"]
    if device.images is None:
        return None
    width, height, layers = device.images.width, device.images.height, device.images.layers
    if profile is not None:
        width, height = min(width, profile.width), min(height, profile.height)
    return DeviceLimits(width, height, layers)


def prove_textures(
    func: PrimFunc, device: Device | None, profile: Profile | None, assumptions: Iterable[Assumption]
) -> tuple[Verdict, ...]:
    """The verdicts on the textures of a lowered function, all proved. Raises IllegalTransform with those that are not.

    What is checked at every call may be used: the requirements among the assumptions, and that parameters do not overlap. Of a device
    without images nothing is asked: it takes no textures, whatever is true of them.
    """
    limits = limits_of(device, profile)
    if limits is None:
        return ()
    apart = replace(func, attrs=func.attrs.with_value(APART, True))
    verdicts = check_texels(apart, limits, where=_checked(assumptions))
    refused = [verdict for verdict in verdicts if verdict.status is not Status.PROVED]
    if refused:
        named = [device.title] if device is not None else []
        named += [f"the profile {profile}"] if profile is not None else []
        subject = f"{func.name} with textures{' of ' if named else ''}{' and '.join(named)}"
        raise IllegalTransform([_diagnostic(subject, verdict) for verdict in refused], refused)
    return verdicts


def _checked(assumptions: Iterable[Assumption]) -> Expr | None:
    found = [a.requirement.expr for a in assumptions if a.requirement is not None and not a.requirement.fits]
    return logical_and(*found) if found else None


def _diagnostic(subject: str, verdict: Verdict) -> Diagnostic:
    message = f"{subject}: {verdict.claim} {_WORDS[verdict.status]}: {counterexample_text(verdict)}"
    return Diagnostic(codes.NOT_PROVED, message)
