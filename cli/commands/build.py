"""`layoutproof build`: prove, lower, generate: a source file, and its header or description."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from layoutproof.cli import codes
from layoutproof.cli.options import (
    file_path,
    format_option,
    function_option,
    takes,
    target_options,
    trace_option,
    verbose_option,
)
from layoutproof.ir.diagnostic import error

if TYPE_CHECKING:
    from layoutproof.cli.run_result import BuildResult, Refusal
    from layoutproof.lowering.runtime.kernel import BuildReport
    from layoutproof.lowering.schedule.schedule import Schedule

ENDINGS: Mapping[str, tuple[str, str]] = {
    "c": (".c", ".h"),
    "opencl": (".cl", ".json"),
    "mlir": (".mlir", ".json"),
}
"""By target, how the source's and the other file's names end."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A program, its schedule, the target and the options."""

    program: Path
    outputs: tuple[Path, Path]
    trace_path: Path | None
    target: str
    device: str | None
    profile: str | None
    function: str | None
    check: bool
    output_format: str


@click.command("build")
@click.argument("program", type=file_path)
@click.option(
    "-o",
    "outputs",
    nargs=2,
    type=file_path,
    required=True,
    metavar="FILE FILE",
    help="Where to write: kernel.c kernel.h, kernel.cl kernel.json, or kernel.mlir kernel.json.",
)
@trace_option
@target_options(" that is compared with", ("c", "opencl", "mlir"))
@function_option
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Compile, and compare with the reference interpreter, before anything is written.",
)
@format_option("text", "json")
@verbose_option
@takes(BuildRequest)
def build_command(request: BuildRequest) -> int:
    """Write PROGRAM (text in TVM's script syntax) as C that other programs can call: prove each step of the schedule,
    lower, generate.

    Nothing is written unless every step is proved and, with --check, the kernel's results on random inputs are those of
    the reference interpreter. Both files are written, or neither.

    With --target mlir the program is written for mlir-opt, in affine, scf, memref and arith; --check then proves that
    the written text is equivalent to the program.

    Exit codes: 0 written; 1 a step is refuted, or a result differs; 2 the input is wrong; 3 unknown.
    """
    from layoutproof.cli.output import exit_code, say, tell
    from layoutproof.cli.render.run_report import build_to_dict, render_build

    result = _built(request)
    tell(result, request.output_format, None, build_to_dict, render_build)
    say(result.report.diagnostics)
    return exit_code(result.report.status)


def _built(request: BuildRequest) -> BuildResult:
    from layoutproof.cli.gate.loading import read_program, remarks_on
    from layoutproof.cli.mlir_build import mlir_of
    from layoutproof.cli.output import check_writable, json_text, say, stages, write_files
    from layoutproof.cli.run_result import (
        BuildResult,
        Refusal,
        RunReport,
        apply_and_lower,
        build_or_refuse,
        chosen_device,
    )
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.lowering.schedule.trace import load_trace, passes_of

    target, files = request.target, _places(request)
    for path in files:
        check_writable(path)
    device = None
    if target != "opencl" or request.check:
        device = chosen_device(target, request.device, request.profile)
    elif request.device is not None:
        raise error(
            codes.OTHER_TARGET, "--device names what the kernel is compared on, and --no-check compares nothing"
        )
    func = read_program(str(request.program), request.function)
    schedule = Schedule(func)
    passes = passes_of(load_trace(request.trace_path) if request.trace_path is not None else [])
    say(remarks_on(func, empty=True))
    name = f"{request.program}:{func.name}"
    with stages(len(passes) + 3) as advance:
        refused = apply_and_lower(schedule, passes, advance)
        if refused is not None:
            return BuildResult(RunReport(name, schedule.steps, refused=refused), target)
        advance("compiling")
        built: BuildReport | Refusal | None
        if target == "mlir":
            text, printed, built = mlir_of(schedule, request.check)
            advance("writing")
            write_files(dict(zip(files, (text.encode(), json_text(printed).encode()), strict=True)))
            report = RunReport(name, schedule.steps, schedule.lowering_steps, built=built)
            return BuildResult(report, target, files, printed)
        if request.check:
            kernel = build_or_refuse(schedule, target, device, request.profile)
            built = kernel if isinstance(kernel, Refusal) else kernel.report
        else:
            built = _refused_textures(schedule, request)
        if isinstance(built, Refusal):
            return BuildResult(RunReport(name, schedule.steps, schedule.lowering_steps, refused=built), target)
        advance("writing")
        contents, interface = _generated(schedule, target, files)
        write_files(dict(zip(files, contents, strict=True)))
    return BuildResult(RunReport(name, schedule.steps, schedule.lowering_steps, built=built), target, files, interface)


def _refused_textures(schedule: Schedule, request: BuildRequest) -> Refusal | None:
    """Prove the constraints of textures for the target's profile; this needs neither a compiler nor a device."""
    from layoutproof.cli.run_result import Refusal
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.runtime.opencl.build_opencl import prove_textures
    from layoutproof.lowering.runtime.opencl.devices import parse_profile

    if request.target != "opencl":
        return None
    try:
        limits = parse_profile(request.profile) if request.profile is not None else None
        prove_textures(schedule.lower(), None, limits, schedule.assumptions)
    except IllegalTransform as problem:
        return Refusal("build", {"target": request.target}, problem)
    return None


def _places(request: BuildRequest) -> tuple[Path, Path]:
    """The paths of the source and of the other file, by their endings. Raises LayoutproofError for other endings."""
    wanted = ENDINGS[request.target]
    by_ending = {path.suffix: path for path in request.outputs}
    if set(by_ending) != set(wanted):
        given, (first, second) = " ".join(map(str, request.outputs)), wanted
        raise error(
            codes.OUTPUT_PAIR,
            f"-o {given}: --target {request.target} writes a file that ends in {first} and one that ends in {second}",
            help=f"for instance -o kernel{first} kernel{second}",
        )
    return by_ending[wanted[0]], by_ending[wanted[1]]


def _generated(schedule: Schedule, target: str, files: tuple[Path, Path]) -> tuple[tuple[bytes, bytes], dict[str, Any]]:
    """The contents of the files, and the interface for callers. Raises LayoutproofError for what the target cannot
    express.
    """
    from layoutproof.cli.output import json_text
    from layoutproof.cli.render.kernel_interface import c_interface, opencl_interface
    from layoutproof.lowering.codegen.c import emit_c
    from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
    from layoutproof.lowering.runtime.array_layouts import layout_notes, runtime_layouts
    from layoutproof.lowering.runtime.call_arguments import contract_of

    source, other = files
    lowered = schedule.lower()
    layouts = runtime_layouts(lowered)
    notes, contract = layout_notes(layouts), contract_of(schedule.assumptions)
    if target == "c":
        code = emit_c(lowered, notes=notes, contract=contract)
        # The compiler of the source compares it with what its callers see.
        header = os.path.relpath(other.absolute(), source.absolute().parent).replace(os.sep, "/")
        include = "" if any(c in header for c in '"\\\n') else f'#include "{header}"\n\n'
        return (f"{include}{code.text}".encode(), code.header.encode()), c_interface(
            code, layouts, schedule.assumptions
        )
    kernels = emit_opencl(lowered, notes=notes, contract=contract)
    interface = opencl_interface(kernels, layouts, schedule.assumptions)
    return (kernels.text.encode(), json_text(interface).encode()), interface
