"""A kernel on an OpenCL device from its generated text: check the device's limits, compile it, and compare.

Importing this imports pyopencl: do so once a device is found.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.opencl.cl_helpers import OpenCLSource
from layoutproof.lowering.runtime.inexact import Inexact, function_notes, of_device
from layoutproof.lowering.runtime.kernel import BuildReport, Kernel, LoweredFunc
from layoutproof.lowering.runtime.opencl.device_behaviour import (
    DIVISION_ULPS,
    Taken,
    check_format,
    computed_in_single,
    fast_math_taken,
    observe,
)
from layoutproof.lowering.runtime.opencl.devices import (
    Device,
    Profile,
)
from layoutproof.lowering.runtime.opencl.launcher import (
    FAST,
    UNOPTIMISED,
    BuiltProgram,
    OpenCLLauncher,
    arithmetic_options,
    compile_program,
    version_for,
)
from layoutproof.lowering.runtime.opencl.limits import check_capabilities, check_images, textures_of
from layoutproof.lowering.runtime.selfcheck import self_check


class OpenCLKernel(Kernel):
    """A kernel on an OpenCL device: its source, with the launches that a host makes."""

    @property
    def source(self) -> OpenCLSource:
        """The generated OpenCL C."""
        assert isinstance(self._source, OpenCLSource)
        return self._source


def load_opencl(
    lowered: LoweredFunc,
    source: OpenCLSource,
    device: Device,
    *,
    profile: Profile | None = None,
    check: bool = True,
    fast: bool = False,
) -> OpenCLKernel:
    """The kernel of a function on a device, from its generated text; the other arguments are those of `build_opencl`.

    Raises LayoutproofError: LP444 and LP445 for what the device or the profile does not take, LP446 where it does not
    compile, LP428 where kernel and interpreter disagree.
    """
    func = lowered.func
    check_capabilities(source, device)
    textures = textures_of(source)
    check_images(textures, device, profile, {})
    for texture in textures:
        check_format(texture, device)
    options, taken = _arithmetic(func, device, fast=fast)
    built = compile_program(func.name, source, device, (version_for(source, device), *options))
    inexact = _liberties(device, taken, fast=fast)
    report = _report(source, built, device, taken, fast=fast)
    report = replace(report, notes=(*report.notes, *function_notes(func, inexact, device.title)))
    launcher = OpenCLLauncher(func.name, source, built, device, profile)
    kernel = OpenCLKernel(lowered, source, launcher, report, inexact)
    if check:
        kernel.report = replace(report, self_check=self_check(func, kernel))
    return kernel


def _arithmetic(func: PrimFunc, device: Device, *, fast: bool) -> tuple[tuple[str, ...], tuple[Taken, ...]]:
    """The options under which the device is closest to IEEE 754, and the liberties that it still takes."""
    options = arithmetic_options(device, fast=fast)
    if fast or next(computed_in_single(func), None) is None:
        return options, ()
    seen = observe(device.handle, options)
    if seen.regroups:
        careful = observe(device.handle, (*options, UNOPTIMISED))
        if not careful.regroups:
            options, seen = (*options, UNOPTIMISED), careful
    return options, fast_math_taken(func, device, seen)


def _liberties(device: Device, taken: tuple[Taken, ...], *, fast: bool) -> Inexact:
    """How results may differ: by the device's own functions, and by the liberties that it takes."""
    names = {each.name for each in taken}
    return of_device(
        doubles=device.fp64,
        fast=fast,
        division=DIVISION_ULPS if "approximate-division" in names else 0.0,
        regroups="reassoc" in names,
        flushes="flush-subnormals" in names,
    )


def _report(
    source: OpenCLSource, built: BuiltProgram, device: Device, taken: tuple[Taken, ...], *, fast: bool
) -> BuildReport:
    slow = (
        f"compiled without optimisation ({UNOPTIMISED}): the compiler of {device.title} regroups float sums otherwise"
    )
    notes = [
        *built.notes,
        *([slow] if UNOPTIMISED in built.options else []),
        *(f"fast-math assumption {each.name}: {each.words}" for each in taken),
    ]
    if fast:
        allowed = "may regroup float operations and take NaN, infinity and the sign of zero for absent"
        notes.append(f"built with fast math ({FAST}): the device {allowed}")
    return BuildReport(
        target="opencl",
        command=" ".join(built.options),
        source_path=None,
        library_path=None,
        reused=False,
        index_bits=source.index_bits,
        openmp=False,
        fast=fast,
        self_check="off",
        notes=tuple(notes),
        device=device.title,
        fast_math=tuple(each.name for each in taken),
    )
