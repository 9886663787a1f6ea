"""`layoutproof build`: prove, lower, generate; two files for programs that know nothing of Python: source and header or description."""

from __future__ import annotations

from pathlib import Path

import click

from layoutproof.cli.options import file_path, format_option


@click.command("build")
@click.argument("program", type=file_path)
@click.option(
    "-o",
    "outputs",
    nargs=2,
    type=file_path,
    required=True,
    metavar="FILE FILE",
    help="Where to write: kernel.c kernel.h, or kernel.cl kernel.json.",
)
@click.option("--trace", "trace_path", type=file_path, metavar="TRACE.json", help="A schedule to apply first.")
@click.option("--target", type=click.Choice(["c", "opencl"]), default="c", show_default=True, help="What code is generated.")
@click.option("--device", metavar="NAME", help="The OpenCL device that is compared with: a part of its name, as `devices` lists it.")
@click.option("--device-profile", "profile", metavar="WxH", help="Also refuse images that are larger, in texels, such as 16384x16384.")
@click.option("--function", metavar="NAME", help="Which function, where the program has several.")
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Compile, and compare with the reference interpreter, before anything is written.",
)
@format_option("text", "json")
def build_command(
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
    """Write PROGRAM (text in TVM's script syntax) as C that other programs can call: prove each step of the schedule, lower, generate.

    Nothing is written unless every step is proved, and, with --check, the kernel does on made-up data what the reference
    interpreter does. Both files are written, or neither.
    """
    from layoutproof.cli.building import build_program

    return build_program(program, outputs, trace_path, target, device, profile, function, check, output_format)
