"""From a lowered function to a kernel on an OpenCL device: choose the device, prove what textures need, emit, load."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.opencl.emit import emit_opencl
from layoutproof.lowering.codegen.signature import Bounds
from layoutproof.lowering.runtime.assumptions import Assumption, contract_of
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.layouts import Layout, layout_notes
from layoutproof.lowering.runtime.opencl.devices import Device, find_device
from layoutproof.lowering.runtime.opencl.limits import parse_profile
from layoutproof.lowering.runtime.opencl.obligations import prove_textures


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
    """The kernel of a lowered, flattened function on an OpenCL device, where buffers of scope `global.texture` are images.

    `device` is a device or a part of its name (`find_device` says which one it is where there is none); `profile`, `WIDTHxHEIGHT` in
    texels, is the largest image of other devices that the kernel is to run on. `layouts`, `check`, `fast`, `bounds`, `index_bits` and
    `assumptions` are those of `build_c`.
    Raises IllegalTransform for an obligation of textures that is not proved; else LayoutproofError: LP401 to LP405 for what OpenCL
    cannot express, LP440 to LP447 for the device and its memory, LP428 where kernel and interpreter disagree.
    """
    limits = parse_profile(profile) if profile is not None else None
    chosen = device if isinstance(device, Device) else find_device(device)
    known = layouts if layouts is not None else {}
    verdicts = prove_textures(func, chosen, limits, assumptions)
    source = emit_opencl(func, index_bits=index_bits, bounds=bounds, notes=layout_notes(known), contract=contract_of(assumptions))
    # Loading imports pyopencl, which `find_device` has found to be there.
    from layoutproof.lowering.runtime.opencl.load import load_opencl

    return load_opencl(func, source, known, chosen, profile=limits, check=check, fast=fast, assumptions=assumptions, verdicts=verdicts)
