"""`layoutproof demo`: the whole tool in a minute, on a convolution with 70 channels."""

from __future__ import annotations

import json
import re
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


@click.command("demo")
@click.option(
    "-o", "--output", type=file_path, default=Path("demo-output"), show_default=True, help="Folder for what it writes."
)
def demo_command(output: Path) -> int:
    """Take a real conv2d with 70 channels from NHWC to padded NCHW4c: prove, transform, flatten, draw, compile, run,
    compare.

    Programs, C source and pictures are saved in the output folder.
    """
    from layoutproof.cli.output import check_writable, console, exit_code, make_folder
    from layoutproof.cli.render.run_report import lowering_lines, step_lines, summary_lines
    from layoutproof.ir.script.printer import print_func
    from layoutproof.ir.script.reader import loads
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.verify.verdict.verdict import Status, worst

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
    from layoutproof.cli.plot.layout_figure import picture_of
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

    from layoutproof.ir.primfunc import LAYOUT

    short = re.sub(rf'"{re.escape(LAYOUT)}": .*(?=}}\)$)', f'"{LAYOUT}": ...', text, flags=re.MULTILINE)
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
