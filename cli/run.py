"""`layoutproof run`: prove, lower, build, run on made-up data, compare with the reference interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from layoutproof.cli.options import file_path, format_option, output_option, size_option


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

    The data is made up; the result is compared with the reference interpreter bit for bit (where a device's own
    functions may differ, with the enclosure of the program): all cells, or, past two million instances, the backward slice of chosen
    ones, 1,000 of those beside padding and 1,000 at random. Padding of the outputs must hold what the schedule promises.
    """
    from layoutproof.cli.running import run_program

    return run_program(program, trace_path, target, device, profile, function, sizes, seed, emit_path, output_format, output)
