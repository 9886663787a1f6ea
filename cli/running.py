"""What `run` does: prove, lower, build, run on made-up data, compare with the reference interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from layoutproof.cli import codes
from layoutproof.cli.gate.loading import remarks_on
from layoutproof.cli.made_up import check_amount, logical_shapes
from layoutproof.cli.output import check_writable, emit, exit_code, show, write_file
from layoutproof.cli.progress import Advance, stages
from layoutproof.cli.render.run_report import render_run, run_to_dict
from layoutproof.cli.report import Refusal, RunReport, licensed_steps
from layoutproof.cli.trial import compare_kernel
from layoutproof.cli.values import choose_function, read_sizes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.interp import Fault
from layoutproof.lowering.conventions import runtime_layouts
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.opencl.devices import Device, find_device
from layoutproof.lowering.runtime.opencl.limits import parse_profile
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.trace import load_trace, passes_of


def run_program(
    program: Path,
    trace_path: Path | None,
    target: str,
    device: str | None,
    profile: str | None,
    function: str | None,
    sizes: Sequence[str],
    seed: int,
    emit_path: Path | None,
    output_format: str,
    output: Path | None,
) -> int:
    """Run a program as the options of `run` say, which these are, and return the exit code. Raises LayoutproofError for bad input."""
    for path in (output, emit_path):
        if path is not None:
            check_writable(path)
    chosen = chosen_device(target, device, profile)
    numbers = read_sizes(sizes)
    func = choose_function(program, function)
    schedule = Schedule(func)
    passes = passes_of(load_trace(trace_path) if trace_path is not None else [])
    logical_shapes(func, runtime_layouts(func), numbers)
    check_amount(func, numbers)
    for diagnostic in remarks_on(func):
        click.echo(diagnostic.render(), err=True)
    name = f"{program}:{func.name}"
    with stages(len(passes) + 3) as advance:
        refused = apply_and_lower(schedule, passes, advance)
        if refused is None:
            check_amount(schedule.func, numbers)
            advance("compiling")
            kernel = build_or_refuse(schedule, target, chosen, profile)
            if isinstance(kernel, Refusal):
                report = RunReport(name, schedule.steps, schedule.lowering_steps, refused=kernel)
            else:
                report = _compare(name, schedule, kernel, numbers, seed, advance)
                if emit_path is not None:
                    write_file(emit_path, kernel.source.text.encode())
        else:
            report = RunReport(name, schedule.steps, refused=refused)
    _tell(report, output_format, output)
    return exit_code(report.status)


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
                raise LayoutproofError(_at_step(problem.diagnostics, number)) from problem
            return Refusal(transform.primitive, transform.arguments(), problem)
    advance("lowering")
    try:
        schedule.lower()
    except IllegalTransform as problem:
        if not problem.verdicts:
            raise
        return Refusal("lower", {}, problem)
    return None


def _at_step(diagnostics: Sequence[Diagnostic], number: int) -> list[Diagnostic]:
    first, *rest = diagnostics
    return [replace(first, message=f"step {number}: {first.message}"), *rest]


def _compare(name: str, schedule: Schedule, kernel: Kernel, sizes: Mapping[str, int], seed: int, advance: Advance) -> RunReport:
    advance("comparing with the reference interpreter")
    licensed = licensed_steps(schedule.steps)
    reference = schedule.steps[licensed - 1].rewrite.new if licensed else schedule.original
    report = RunReport(name, schedule.steps, schedule.lowering_steps, built=kernel.report, licensed=licensed)
    try:
        return replace(report, trial=compare_kernel(reference, schedule.func, kernel, sizes, seed))
    except Fault as fault:
        return replace(report, fault=fault)


def _tell(report: RunReport, output_format: str, output: Path | None) -> None:
    if output_format == "json":
        emit(json.dumps(run_to_dict(report), indent=2) + "\n", output)
    elif output is not None:
        emit(render_run(report), output)
    else:
        show(render_run(report, markup=True))
    diagnostics = report.refused.diagnostics if report.refused is not None else ()
    for diagnostic in (*diagnostics, *((report.fault.diagnostic(codes.FAULT),) if report.fault is not None else ())):
        click.echo(diagnostic.render(), err=True)
