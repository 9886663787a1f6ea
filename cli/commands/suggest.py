"""`layoutproof suggest`: a proved schedule that stores everything that a block touches in one layout."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli.options import file_path, function_option, proof_options, result_options, takes, trace_option

if TYPE_CHECKING:
    from layoutproof.verify.values.fast_math import FastMathSet


@dataclass(frozen=True, slots=True)
class SuggestRequest:
    """A program with the steps before, the block, its layouts, and the outputs."""

    program: Path
    trace_path: Path | None
    block: str
    layouts: tuple[str, ...]
    function: str | None
    allowed: FastMathSet
    budget: float
    certificate: Path | None
    save: Path | None
    output_format: str
    output: Path | None


@click.command("suggest")
@click.argument("program", type=file_path)
@click.option("--block", required=True, metavar="NAME", help="The block whose buffers are to be stored so.")
@click.option(
    "--layout",
    "layouts",
    required=True,
    multiple=True,
    metavar="LAYOUT",
    help="NHWC8c, NHWC->NCHW8c, or the text of an index map; BUFFER=LAYOUT for one buffer.",
)
@trace_option
@click.option("--save", type=file_path, metavar="TRACE.json", help="Write the schedule there.")
@function_option
@proof_options("The fast-math assumptions that proofs may use, the fewest that suffice.")
@result_options
@takes(SuggestRequest)
def suggest_command(request: SuggestRequest) -> int:
    """Propose a schedule of PROGRAM that stores every buffer that a block touches in one layout.

    The layout is for what the block writes, and for the operand that is indexed most like it; the axes of other buffers
    are split like the variables that index them. Loops are split and ordered to match, and pad values are chosen so
    that branches against padding can be removed. Every step is proved. A step that is not proved is left out, and the
    report names the obligation that fails and a remedy. --save writes a trace for `layoutproof check --trace`.

    Exit codes: 0 nothing was left out; 1 something is refuted; 2 the input is wrong; 3 something is unknown.
    """
    from layoutproof.cli.gate.loading import read_program
    from layoutproof.cli.output import check_output, exit_code, say, stages, tell, write_file
    from layoutproof.cli.render.suggestion_report import NamedSuggestion, render_suggestion, suggestion_to_dict
    from layoutproof.lowering.passes.illegal import IllegalTransform
    from layoutproof.lowering.schedule.schedule import Schedule
    from layoutproof.lowering.schedule.trace import load_trace, passes_of, trace_text
    from layoutproof.lowering.suggest.suggest import MOST_TRIES, suggest
    from layoutproof.verify.settings import Settings, within

    for path in (request.output, request.save, request.certificate):
        check_output(path)
    layout, single = _layouts(request.layouts)
    func = read_program(str(request.program), request.function)
    steps = passes_of(load_trace(request.trace_path) if request.trace_path is not None else [])
    try:
        with within(Settings(request.budget, request.allowed)), stages(MOST_TRIES + 1) as advance:
            schedule = Schedule(func, allowed=request.allowed)
            for step in steps:
                schedule.apply(step)
            found = suggest(schedule, request.block, layout, layouts=single, tell=advance)
            if request.certificate is not None:
                found.schedule.certificate.save(request.certificate)
    except IllegalTransform as problem:
        if problem.status is None:
            raise
        say(problem.diagnostics)
        return exit_code(problem.status)
    if request.save is not None:
        write_file(request.save, trace_text(found.trace).encode())
    name = f"{request.program}:{func.name}"
    tell(
        NamedSuggestion(name, found, request.save),
        request.output_format,
        request.output,
        suggestion_to_dict,
        render_suggestion,
    )
    return exit_code(found.status)


def _layouts(texts: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The layout for the block, and those of single buffers. Raises click.BadParameter for none, or several, of the
    first.
    """
    single: dict[str, str] = {}
    plain: list[str] = []
    for text in texts:
        named = re.fullmatch(r"\s*([^\W\d]\w*)\s*=(?!=)\s*(.*\S)\s*", text, re.DOTALL)
        if named is None:
            plain.append(text)
        elif named[1] in single:
            raise click.BadParameter(f"{named[1]} is given two layouts", param_hint="--layout")
        else:
            single[named[1]] = named[2]
    if len(plain) != 1:
        what = "one layout is for the block" if plain else "a layout for the block is missing"
        raise click.BadParameter(f"{what}; BUFFER=LAYOUT is for one buffer", param_hint="--layout")
    return plain[0], single
