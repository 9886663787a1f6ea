"""From a lowered function to a kernel on an OpenCL device: choose the device, prove what textures need, emit,
and load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.ir.expr import Expr, logical_and
from layoutproof.ir.primfunc import APART, PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.codegen.calling_convention import Bounds
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.array_layouts import Layout, layout_notes
from layoutproof.lowering.runtime.call_arguments import Assumption, contract_of
from layoutproof.lowering.runtime.kernel import Kernel, LoweredFunc
from layoutproof.lowering.runtime.opencl.devices import Device, Profile, find_device, parse_profile
from layoutproof.verify.textures.texture_checks import PROFILES, DeviceLimits, check_texels
from layoutproof.verify.verdict.report import refusal_text
from layoutproof.verify.verdict.verdict import Status, Verdict


def limits_of(device: Device | None, profile: Profile | None) -> DeviceLimits | None:
    """What both the device and the profile accept; None for a device without images.

    Without either, the minimum of OpenCL 2 devices with images.
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

    The requirements among the assumptions, and that parameters do not overlap, are checked at every call and so may be
    used. A device without images accepts no textures, so there is nothing to prove.
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
    message = f"{subject}: {refusal_text(verdict)}"
    return Diagnostic(codes.NOT_PROVED, message)


def build_opencl(
    func: PrimFunc,
    layouts: Mapping[str, Layout] | None = None,
    *,
    device: str | Device | None = None,
    profile: str | None = None,
    check: bool = True,
    fast: bool = False,
    bounds: Bounds | None = None,
    index_bits: int | None = None,
    assumptions: tuple[Assumption, ...] = (),
) -> Kernel:
    """The kernel of a lowered, flattened function on an OpenCL device, where buffers of scope `global.texture` are
    images.

    `device` is a device or a part of its name (by default as `find_device` chooses); `profile`, `WIDTHxHEIGHT` in
    texels, is the largest image of other devices that the kernel shall run on. `layouts`, `check`, `fast`, `bounds`,
    `index_bits` and `assumptions` are those of `build_c`. Raises IllegalTransform for an obligation of textures that is
    not proved; else LayoutproofError: LP401 to LP405 for what OpenCL cannot express, LP440 to LP447 for the device and
    its memory, LP428 where kernel and interpreter disagree.
    """
    limits = parse_profile(profile) if profile is not None else None
    chosen = device if isinstance(device, Device) else find_device(device)
    known = layouts if layouts is not None else {}
    verdicts = prove_textures(func, chosen, limits, assumptions)
    source = emit_opencl(
        func, index_bits=index_bits, bounds=bounds, notes=layout_notes(known), contract=contract_of(assumptions)
    )
    # Loading imports pyopencl, which `find_device` has found to be there.
    from layoutproof.lowering.runtime.opencl.load_opencl import load_opencl

    lowered = LoweredFunc(func, known, assumptions)
    kernel = load_opencl(lowered, source, chosen, profile=limits, check=check, fast=fast)
    kernel.report = replace(kernel.report, verdicts=verdicts)
    return kernel
