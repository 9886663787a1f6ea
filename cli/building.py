"""What `build` does: prove, lower, generate; two files for programs that know nothing of Python: source and header or description."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from layoutproof.cli import codes
from layoutproof.cli.gate.loading import remarks_on
from layoutproof.cli.output import check_writable, exit_code, show, write_files
from layoutproof.cli.progress import stages
from layoutproof.cli.render.build_report import build_to_dict, render_build
from layoutproof.cli.render.interface import c_interface, opencl_interface
from layoutproof.cli.report import BuildResult, Refusal, RunReport
from layoutproof.cli.running import apply_and_lower, build_or_refuse, chosen_device
from layoutproof.cli.values import choose_function
from layoutproof.ir.diagnostic import error
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.codegen.opencl.emit import emit_opencl
from layoutproof.lowering.conventions import runtime_layouts
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.runtime.assumptions import contract_of
from layoutproof.lowering.runtime.kernel import BuildReport
from layoutproof.lowering.runtime.layouts import layout_notes
from layoutproof.lowering.runtime.opencl.devices import Device
from layoutproof.lowering.runtime.opencl.limits import parse_profile
from layoutproof.lowering.runtime.opencl.obligations import prove_textures
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.trace import load_trace, passes_of

ENDINGS: Mapping[str, tuple[str, str]] = {"c": (".c", ".h"), "opencl": (".cl", ".json")}
"""By target, how the source's and the other file's names end."""


@dataclass(frozen=True, slots=True)
class _Generated:
    """The two files' contents, and what a caller has to know, as plain data."""

    source: bytes
    other: bytes
    interface: dict[str, Any]


def build_program(
    program: Path,
    outputs: tuple[Path, Path],
    trace_path: Path | None,
    target: str,
    device: str | None,
    profile: str | None,
    function: str | None,
    check: bool,
    output_format: str,
) -> int:
    """Build a program as the options of `build` say, which these are, and return the exit code. Raises LayoutproofError for bad input."""
    source, other = _places(outputs, target)
    for path in (source, other):
        check_writable(path)
    if target != "opencl" or check:
        chosen = chosen_device(target, device, profile)
    elif device is not None:
        raise error(codes.OTHER_TARGET, "--device names what the kernel is compared on, and --no-check compares nothing")
    else:
        chosen = None
    func = choose_function(program, function)
    schedule = Schedule(func)
    passes = passes_of(load_trace(trace_path) if trace_path is not None else [])
    for diagnostic in remarks_on(func):
        click.echo(diagnostic.render(), err=True)
    name = f"{program}:{func.name}"
    with stages(len(passes) + 3) as advance:
        refused = apply_and_lower(schedule, passes, advance)
        if refused is None:
            advance("compiling")
            built = _checked(schedule, target, chosen, profile) if check else _proved(schedule, target, profile)
            if isinstance(built, Refusal):
                result = BuildResult(RunReport(name, schedule.steps, schedule.lowering_steps, refused=built), target)
            else:
                advance("writing")
                generated = _generate(schedule, target, source, other)
                write_files({source: generated.source, other: generated.other})
                kept = RunReport(name, schedule.steps, schedule.lowering_steps, built=built)
                result = BuildResult(kept, target, (source, other), generated.interface)
        else:
            result = BuildResult(RunReport(name, schedule.steps, refused=refused), target)
    _tell(result, output_format)
    return exit_code(result.report.status)


def _checked(schedule: Schedule, target: str, device: Device | None, profile: str | None) -> BuildReport | Refusal:
    """The kernel compiled, and compared with the reference interpreter. Raises LayoutproofError where they differ."""
    kernel = build_or_refuse(schedule, target, device, profile)
    return kernel if isinstance(kernel, Refusal) else kernel.report


def _proved(schedule: Schedule, target: str, profile: str | None) -> Refusal | None:
    """What takes no compiler and no device: what the target needs of textures is proved, for the profile alone."""
    if target != "opencl":
        return None
    try:
        prove_textures(schedule.lower(), None, parse_profile(profile) if profile is not None else None, schedule.assumptions)
    except IllegalTransform as problem:
        return Refusal("build", {"target": target}, problem)
    return None


def _places(outputs: Sequence[Path], target: str) -> tuple[Path, Path]:
    """The source's and the other file's path, by their endings, in whatever order. Raises LayoutproofError for other endings."""
    wanted = ENDINGS[target]
    by_ending = {path.suffix: path for path in outputs}
    if set(by_ending) != set(wanted):
        raise error(
            codes.OUTPUT_PAIR,
            f"-o {' '.join(map(str, outputs))}: --target {target} writes a file that ends in {wanted[0]} and one that ends in {wanted[1]}",
            help=f"for instance -o kernel{wanted[0]} kernel{wanted[1]}",
        )
    return by_ending[wanted[0]], by_ending[wanted[1]]


def _generate(schedule: Schedule, target: str, source: Path, other: Path) -> _Generated:
    """The contents of the files. Raises LayoutproofError for what the target cannot express."""
    lowered = schedule.lower()
    layouts = runtime_layouts(lowered)
    notes, contract = layout_notes(layouts), contract_of(schedule.assumptions)
    if target == "c":
        code = emit_c(lowered, notes=notes, contract=contract)
        # The compiler of the source compares it with what its callers see.
        header = os.path.relpath(other.absolute(), source.absolute().parent).replace(os.sep, "/")
        include = "" if any(c in header for c in '"\\\n') else f'#include "{header}"\n\n'
        return _Generated(f"{include}{code.text}".encode(), code.header.encode(), c_interface(code, layouts, schedule.assumptions))
    kernels = emit_opencl(lowered, notes=notes, contract=contract)
    interface = opencl_interface(kernels, layouts, schedule.assumptions)
    return _Generated(kernels.text.encode(), (json.dumps(interface, indent=2) + "\n").encode(), interface)


def _tell(result: BuildResult, output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps(build_to_dict(result), indent=2))
    else:
        show(render_build(result))
    for diagnostic in result.report.refused.diagnostics if result.report.refused is not None else ():
        click.echo(diagnostic.render(), err=True)
