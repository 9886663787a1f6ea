"""Generated text compiled by a device's own compiler, with options that keep every result what IEEE 754 says, where the device can."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import pyopencl as cl

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.codegen.opencl.source import READ_WRITE_IMAGES, OpenCLSource
from layoutproof.lowering.runtime.opencl import codes
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.memory import place_of

CORRECT_DIVISION = "-cl-fp32-correctly-rounded-divide-sqrt"
FAST = "-cl-fast-relaxed-math"
UNOPTIMISED = "-cl-opt-disable"

_FORCED = "PYOPENCL_BUILD_OPTIONS"


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program, the options it was compiled with, and what is to be said of that."""

    program: cl.Program
    options: tuple[str, ...]
    notes: tuple[str, ...]


def version_for(source: OpenCLSource, device: Device) -> str:
    """The option that asks for the version of OpenCL C that the text needs."""
    version = ("CL3.0" if device.version.startswith("OpenCL 3") else "CL2.0") if READ_WRITE_IMAGES in source.extensions else "CL1.2"
    return f"-cl-std={version}"


def arithmetic_options(device: Device, *, fast: bool) -> tuple[str, ...]:
    """Correct division where the device has it; with `fast`, fast arithmetic. No other option that changes a result.

    Contraction is switched off in the text itself.
    """
    return (FAST,) if fast else (CORRECT_DIVISION,) if device.correct_division else ()


def build_text(context: cl.Context, text: str, options: Sequence[str]) -> cl.Program:
    """A program of this text. Raises pyopencl's errors."""
    program = cl.Program(context, text)
    with warnings.catch_warnings():
        # A compiler that says something and goes on is not worth a word to who calls a kernel.
        warnings.simplefilter("ignore")
        # Asking for anything keeps pyopencl from looking for the program in a cache on disk, which would be one more thing to go wrong:
        # drivers that compile slowly have caches of their own. It warns of that.
        program.get_info(cl.program_info.REFERENCE_COUNT)
        program.build(list(options))
    return program


def compile_program(name: str, source: OpenCLSource, device: Device, options: tuple[str, ...]) -> BuiltProgram:
    """Compile for one device. Raises LayoutproofError (LP446) with what its compiler says."""
    context = place_of(device.handle).context
    try:
        program = build_text(context, source.text, options)
    except cl.Error as problem:
        said = "\n    ".join(str(problem).strip().splitlines()[:40])
        raise error(
            codes.NOT_COMPILED,
            f"the compiler of {device.title} failed on {name}\n  options: {' '.join(options)}\n  it said: {said}",
            help="`layoutproof run --target opencl --emit FILE.cl` writes the text where another device compiles it",
        ) from problem
    forced = os.environ.get(_FORCED, "").strip()
    notes = (f"the environment variable {_FORCED} adds the options {forced}",) if forced else ()
    return BuiltProgram(program, options, notes)
