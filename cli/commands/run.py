"""`layoutproof run`: prove, lower, build, run on random inputs, compare with the reference interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import (
    file_path,
    function_option,
    result_options,
    seed_option,
    size_option,
    takes,
    target_options,
    trace_option,
    verbose_option,
)

if TYPE_CHECKING:
    from layoutproof.cli.run_result import RunReport
    from layoutproof.lowering.runtime.kernel import Kernel
    from layoutproof.lowering.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A program, its schedule, the target and the inputs."""

    program: Path
    trace_path: Path | None
    target: str
    device: str | None
    profile: str | None
    function: str | None
    sizes: tuple[str, ...]
    seed: int
    emit_path: Path | None
    output_format: str
    output: Path | None


@click.command("run")
@click.argument("program", type=file_path)
@trace_option
@target_options("")
@function_option
@size_option
@seed_option
@click.option("--emit", "emit_path", type=file_path, metavar="FILE", help="Also write the generated source there.")
@result_options
@verbose_option
@takes(RunRequest)
def run_command(request: RunRequest) -> int:
    """Run PROGRAM (text in TVM's script syntax): apply the schedule, prove each step, lower, compile, run, compare.

    Inputs are random. The result is compared with the reference interpreter, bit for bit; on a device whose math
    functions may differ, with an enclosure of the result. Every cell is compared, or, if the run has more than two
    million instances, 1,000 cells beside padding and 1,000 random ones. Padding of the outputs must satisfy its
    contract.

    Exit codes: 0 proved and equal; 1 a step is refuted, or a result differs; 2 the input is wrong; 3 unknown.
    """
    from layoutproof.cli.output import check_output, exit_code, say, tell
    from layoutproof.cli.render.run_report import render_run, run_to_dict

    check_output(request.output)
    check_output(request.emit_path)
    report = _report(request)
    tell(report, request.output_format, request.output, run_to_dict, render_run)
    say(report.diagnostics)
    return exit_code(report.status)


def _report(request: RunRequest) -> RunReport:
    """The report on the steps, the kernel and its run. Raises LayoutproofError for bad input."""
    from layoutproof.cli.gate.loading import read_program, remarks_on
    from layoutproof.cli.option_values import read_sizes
    from layoutproof.cli.output import say, stages, write_file
    from layoutproof.cli.random_inputs import check_amount, logical_shapes
    from layoutproof.cli.run_result import Refusal, RunReport, apply_and_lower, build_or_refuse, chosen_device
    from layoutproof.lowering.runtime.array_layouts import runtime_layouts
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.lowering.schedule.trace import load_trace, passes_of

    device, sizes = chosen_device(request.target, request.device, request.profile), read_sizes(request.sizes)
    func = read_program(str(request.program), request.function)
    schedule = Schedule(func)
    passes = passes_of(load_trace(request.trace_path) if request.trace_path is not None else [])
    logical_shapes(func, runtime_layouts(func), sizes)
    check_amount(func, sizes)
    say(remarks_on(func))
    name = f"{request.program}:{func.name}"
    with stages(len(passes) + 3) as advance:
        refused = apply_and_lower(schedule, passes, advance)
        if refused is not None:
            return RunReport(name, schedule.steps, refused=refused)
        report = RunReport(name, schedule.steps, schedule.lowering_steps)
        check_amount(schedule.func, sizes)
        advance("compiling")
        kernel = build_or_refuse(schedule, request.target, device, request.profile)
        if isinstance(kernel, Refusal):
            return replace(report, refused=kernel)
        advance("comparing with the reference interpreter")
        report = _compared(report, schedule, kernel, sizes, request.seed)
        if request.emit_path is not None:
            write_file(request.emit_path, kernel.source.text.encode())
    return report


def _compared(report: RunReport, schedule: Schedule, kernel: Kernel, sizes: Mapping[str, int], seed: int) -> RunReport:
    """The report with the kernel run and compared with the program after the last step that needs a fast-math
    assumption.
    """
    from layoutproof.cli.kernel_trial import compare_kernel
    from layoutproof.cli.run_result import excused_steps
    from layoutproof.ir.interp import Fault

    excused = excused_steps(schedule.steps)
    reference = schedule.steps[excused - 1].rewrite.new if excused else schedule.original
    report = replace(report, built=kernel.report, excused=excused)
    try:
        return replace(report, trial=compare_kernel(reference, schedule.func, kernel, sizes, seed))
    except Fault as fault:
        return replace(report, fault=fault)
