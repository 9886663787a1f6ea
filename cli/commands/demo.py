"""`layoutproof demo`: the tool in thirty lines, on a row sum; with --long, all of it on a conv2d with 70 channels."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import file_path

if TYPE_CHECKING:
    from rich.console import Console

    from layoutproof.ir.primfunc import PrimFunc
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.verdict.verdict import Status

_BLOCK = "conv2d_nhwc"
_BLOCKED = "lambda n, h, w, c: [n, c//4, h, w, c%4]"
_TILED = "lambda kh, kw, i, o: [o//4, i//4, kh, kw, i%4, o%4]"
_FORGETFUL = "lambda n, h, w, c: [n, c//4, h, w]"
# What the schedule does, in order: block, buffer, index map. Every padding cell is to hold zero.
_TRANSFORMS = (
    ("pad_temp", "A", _BLOCKED),
    ("pad_temp", "pad_temp", _BLOCKED),
    (_BLOCK, "W", _TILED),
    (_BLOCK, _BLOCK, _BLOCKED),
)
_CONTENTS = {
    "before.py": "the program",
    "trace.json": "the schedule: layoutproof run before.py --trace trace.json does it again",
    "after.py": "the program with its new layouts, before lowering",
    "lowered.py": "lowered and flattened",
    "conv2d.c": "the kernel",
    "nchw4c.svg": "the picture of the layout",
    "nchw4c.png": "the same for slides",
}


_SHORT = ("row_sum.py", "row_sum.json", "row_sum.c", "layout.svg")


@click.command("demo")
@click.option(
    "-o", "--output", type=file_path, default=Path("demo-output"), show_default=True, help="Folder for what it writes."
)
@click.option("--long", "in_full", is_flag=True, help="A real conv2d with 70 channels, with every program and claim.")
def demo_command(output: Path, in_full: bool) -> int:
    """Store a matrix in padded blocks, prove it for all sizes, drop a branch, refute a wrong pad value, time the
    kernels.

    With --long, take a conv2d with 70 channels from NHWC to padded NCHW4c: prove, transform, flatten, draw, compile,
    run, compare. Programs, C source and pictures are saved in the output folder.
    """
    return _long(output) if in_full else _short(output)


def _short(output: Path) -> int:
    from layoutproof.cli.output import check_writable, console, exit_code, make_folder
    from layoutproof.cli.plot.map_picture import PictureOptions, text_of
    from layoutproof.cli.render.demo_text import (
        difference_lines,
        map_lines,
        refusal_lines,
        step_line,
        strictness_line,
        timing_lines,
    )
    from layoutproof.cli.short_demo import layout, padded, timings, without_branch
    from layoutproof.verify.maps.check_map import check_map
    from layoutproof.verify.verdict.report import worst
    from layoutproof.verify.verdict.verdict import Status

    out = console()
    make_folder(output)
    for name in _SHORT:
        check_writable(output / name)
    picture = text_of(check_map("lambda j: [j//4, j%4]", (14,)), PictureOptions(pad="0"))
    _lines(out, [r"[bold]Sum the rows of A\[n, m], stored in blocks of 4 with zeros at the end[/] (a row of 14):"])
    _lines(out, (f"  {line}" for line in picture.splitlines()))
    report = layout()
    _lines(out, map_lines(report))
    guarded = padded(0)
    _lines(out, map(step_line, guarded.steps))
    fast = guarded.fork()
    refused = without_branch(fast)
    _lines(out, [step_line(fast.steps[-1]), *difference_lines(fast.steps[-1])] if refused is None else [])
    _lines(out, [strictness_line(fast.steps)])
    _lines(out, ["[bold]The same with 1 in the padding:[/]"])
    wrong = without_branch(padded(1))
    _lines(out, ["it was accepted"] if wrong is None else refusal_lines(wrong))
    both = timings((guarded, fast))
    _lines(out, ["[bold]Compiled C, 1000 rows of 1022, equal to numpy:[/]"])
    _lines(out, timing_lines(both, ("with the branch", "without it")))
    _save_short(output, fast, both[-1].kernel.source.text)
    _lines(out, _next(output))
    statuses = [report.injective.status, *(step.status for step in fast.steps)]
    expected = refused is None and wrong is not None and wrong.status is Status.REFUTED
    return exit_code(worst(statuses) if expected and all(one.equal for one in both) else Status.REFUTED)


def _save_short(output: Path, schedule: Schedule, source: str) -> None:
    from layoutproof.cli.output import write_file
    from layoutproof.cli.plot.map_picture import PictureOptions, picture_of
    from layoutproof.cli.short_demo import MAP, program_text
    from layoutproof.verify.maps.check_map import check_map

    picture = picture_of(check_map(MAP, (3, 14)), "svg", PictureOptions(pad="0"))
    contents = (
        program_text().encode(),
        (json.dumps(schedule.trace, indent=1) + "\n").encode(),
        source.encode(),
        picture,
    )
    for name, data in zip(_SHORT, contents, strict=True):
        write_file(output / name, data)


def _next(output: Path) -> Iterable[str]:
    """Commands to try, as they are called from here."""
    from rich.markup import escape

    name = "layoutproof" if shutil.which("layoutproof") else sys.argv[0]
    program = f"{output}/row_sum.py --trace {output}/row_sum.json"
    yield f"[bold]Saved in {escape(str(output))}/:[/] {', '.join(_SHORT)}. [bold]Next:[/]"
    yield f"  {escape(name)} check {escape(program)}"
    yield rf"  {escape(name)} draw 'lambda i, j: \[i, j ^ i]' --shape 8,8 -o swizzle.svg"
    yield f"  {escape(name)} explain LP373"
    yield f"  {escape(name)} demo --long"


def _long(output: Path) -> int:
    from layoutproof.cli.output import check_writable, console, exit_code, make_folder
    from layoutproof.cli.render.run_report import lowering_lines, step_lines, summary_lines
    from layoutproof.ir.script.printer import print_func
    from layoutproof.ir.script.reader import loads
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.verdict.report import worst
    from layoutproof.verify.verdict.verdict import Status

    out = console()
    make_folder(output)
    for name in _CONTENTS:
        check_writable(output / name)
    func = loads(
        resources.files("layoutproof.cli").joinpath("programs/conv2d_nhwc.py").read_text(encoding="utf-8"),
        "conv2d_nhwc.py",
    )
    _say(
        out, "1. A program", "In TVM's script syntax: a 3x3 convolution of 56x56 pixels, NHWC, 70 channels in and out."
    )
    _show(out, print_func(func))
    _say(out, "2. What is true of the index maps", "As NCHW4c, 70 channels are 18 blocks of 4: two lanes of padding.")
    statuses = [_map(out, "A", _BLOCKED, func), _map(out, "W", _TILED, func)]
    _say(out, None, "One that forgets the lane does not pass:")
    _map(out, "A", _FORGETFUL, func)
    _say(
        out,
        "3. Apply them",
        "Both inputs, the temporary and the output; padding holds zero. Each step is checked before it is kept.",
    )
    schedule = Schedule(func)
    for block, buffer, text in _TRANSFORMS:
        step = schedule.transform_layout(block, buffer, text, pad_value=0.0)
        statuses.append(step.status)
        _lines(out, step_lines(step, markup=True))
        _lines(out, summary_lines(step.verdicts, markup=True))
    _say(
        out,
        "4. The program after",
        "Padding is program text: a precondition of the inputs, a postcondition of the outputs.",
    )
    _show(out, print_func(schedule.func))
    _say(
        out,
        "5. Lowered and flattened",
        "Blocks are loops, every buffer is one-dimensional; the signature stays as it was.",
    )
    lowered = schedule.lower()
    _lines(out, lowering_lines(schedule.lowering_steps, markup=True))
    statuses += [step.status for step in schedule.lowering_steps]
    _show(out, "\n" + print_func(lowered))
    equal = _run(out, func, schedule, output)
    return exit_code(worst(statuses) if equal else Status.REFUTED)


def _run(out: Console, func: PrimFunc, schedule: Schedule, folder: Path) -> bool:
    """Compile, run, compare and save; whether the kernel agrees with the interpreter."""
    from layoutproof.cli.kernel_trial import compare_kernel
    from layoutproof.cli.output import stages, write_file
    from layoutproof.cli.plot.map_picture import picture_of
    from layoutproof.cli.render.run_report import build_lines, trial_lines
    from layoutproof.ir.notations.map_text import parse_index_map
    from layoutproof.ir.script.printer import print_func
    from layoutproof.verify.maps.check_map import check_map

    _say(out, "6. Compile, run, compare", "With the reference interpreter, on random inputs, bit for bit.")
    with stages(3) as advance:
        advance("compiling")
        kernel = schedule.build("c")
        advance("comparing with the reference interpreter")
        trial = compare_kernel(func, schedule.func, kernel, {})
        advance("drawing")
        report = check_map(parse_index_map(_BLOCKED), func.buffers[0].shape)
        files: Mapping[str, bytes] = {
            "before.py": print_func(func).encode(),
            "trace.json": (json.dumps(schedule.trace, indent=1) + "\n").encode(),
            "after.py": print_func(schedule.func).encode(),
            "lowered.py": print_func(schedule.lowered).encode(),
            "conv2d.c": kernel.source.text.encode(),
            "nchw4c.svg": picture_of(report, "svg"),
            "nchw4c.png": picture_of(report, "png"),
        }
        for name, data in files.items():
            write_file(folder / name, data)
    _lines(out, build_lines(kernel.report, markup=True))
    _lines(out, trial_lines(trial, markup=True))
    _say(out, "7. Saved", f"In {folder}/:")
    for name in files:
        _say(out, None, f"  {name:<11} {_CONTENTS[name]}")
    return trial.equal


def _map(out: Console, buffer: str, text: str, func: PrimFunc) -> Status:
    from layoutproof.cli.render.map_report import render_map
    from layoutproof.ir.notations.map_text import parse_index_map
    from layoutproof.verify.maps.check_map import check_map

    shape = next(b.shape for b in func.buffers if b.name == buffer)
    report = check_map(parse_index_map(text), shape)
    _lines(out, [f"[bold]{buffer}[/]", render_map(report, markup=True)])
    return report.injective.status


def _say(out: Console, title: str | None, text: str) -> None:
    from rich.markup import escape

    if title is not None:
        out.print()
        out.rule(f"[bold]{escape(title)}[/]", align="left", characters="-" if out.options.ascii_only else "─")
    out.print(text, markup=False, soft_wrap=True)
    if title is not None:
        out.print()


def _show(out: Console, text: str) -> None:
    """Print a program without its layout record, a line of a thousand characters that the file has."""
    from rich.syntax import Syntax

    from layoutproof.ir.script.program_texts import without_records

    short = without_records(text)
    if out.is_terminal:
        out.print(
            Syntax("", "python", theme="ansi_dark", background_color="default").highlight(short.rstrip()),
            soft_wrap=True,
        )
    else:
        out.out(short.rstrip(), highlight=False)


def _lines(out: Console, lines: Iterable[str]) -> None:
    for line in lines:
        out.print(line, soft_wrap=True)
