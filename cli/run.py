"""`layoutproof run`: prove, lower, build, run on made-up data, compare with the reference interpreter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from layoutproof.cli import codes
from layoutproof.cli.made_up import check_amount, logical_shapes
from layoutproof.cli.options import file_path, format_option, output_option, read_sizes, size_option
from layoutproof.cli.output import check_writable, emit, exit_code, show, write_file
from layoutproof.cli.progress import Advance, stages
from layoutproof.cli.render.run_report import render_run, run_to_dict
from layoutproof.cli.report import Refusal, RunReport, licensed_steps
from layoutproof.cli.trial import compare_kernel
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, error
from layoutproof.ir.interp import Fault
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script import check_init, load_module
from layoutproof.lowering.conventions import runtime_layouts
from layoutproof.lowering.illegal import IllegalTransform
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.opencl.devices import Device, find_device
from layoutproof.lowering.runtime.opencl.limits import parse_profile
from layoutproof.lowering.schedule import Schedule
from layoutproof.lowering.trace import load_trace, passes_of


@click.command("run")
@click.argument("program", type=file_path)
@click.option("--trace", "trace_path", type=file_path, metavar="TRACE.json", help="A schedule to apply first.")
@click.option("--target", type=click.Choice(["c", "opencl"]), default="c", show_default=True, help="What code is generated.")
@click.option("--device", metavar="NAME", help="The OpenCL device: a part of its name, as `devices` lists it.")
@click.option("--device-profile", "profile", metavar="WxH", help="Also refuse images that are larger, in texels, such as 16384x16384.")
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@size_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, (1 << 63) - 1), help="Of the made-up data.")
@click.option("--emit", "emit_path", type=file_path, metavar="FILE", help="Also write the generated source there.")
@format_option("text", "json")
@output_option
def run(
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
    """Run PROGRAM (text in TVM's script syntax): apply the schedule, prove each step, lower, compile, run, compare.

    The data is made up; the result is compared with the reference interpreter bit for bit (library functions such as exp
    within 4 units in the last place): all cells, or, past two million instances, the backward slice of chosen ones, 1,000 of
    those beside padding and 1,000 at random. Padding of the outputs must hold what the schedule promises.
    """
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
    for diagnostic in check_init(func):
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


def choose_function(path: Path, name: str | None) -> PrimFunc:
    """The program's only function, or the named one. Raises LayoutproofError with the names there are."""
    functions = load_module(path).functions
    names = ", ".join(f.name for f in functions)
    if name is not None:
        for candidate in functions:
            if candidate.name == name:
                return candidate
        raise error(codes.FUNCTION, f"{path} has no function {name}", help=f"it has {names}")
    if len(functions) != 1:
        raise error(codes.FUNCTION, f"{path} has {len(functions)} functions; choose one with --function", help=f"it has {names}")
    return functions[0]
