"""`layoutproof compare`: whether two given programs are equivalent up to the layouts of their buffers.

Both programs are read, and all names and texts of options are checked against them, before anything is proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from layoutproof.cli import codes
from layoutproof.cli.options import (
    GateOptions,
    cache_options,
    file_path,
    limit_options,
    policy_options,
    proof_options,
    report_options,
    takes,
    verbose_option,
)
from layoutproof.ir.diagnostic import LayoutproofError, counted, error

if TYPE_CHECKING:
    from layoutproof.cli.gate.judging.comparisons import Asked
    from layoutproof.ir.primfunc import PrimFunc

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareRequest(GateOptions):
    """Two programs, with the layouts and pad values that are given."""

    before: Path
    after: Path
    layouts: tuple[str, ...]
    pads: tuple[str, ...]
    matches: tuple[str, ...]
    where: str | None
    function: str | None
    witness: Path | None


@click.command("compare")
@click.argument("before", type=file_path, metavar="BEFORE.py")
@click.argument("after", type=file_path, metavar="AFTER.py")
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    metavar="NAME=MAP",
    help="The layout in AFTER of BEFORE's parameter NAME: a lambda.",
)
@click.option(
    "--pad",
    "pads",
    multiple=True,
    metavar="NAME=VALUE",
    help="What NAME's padding holds: T.float32(0), T.undef(), None.",
)
@click.option(
    "--match",
    "matches",
    multiple=True,
    metavar="NEW=OLD",
    help="AFTER's parameter NEW is BEFORE's OLD; else by position.",
)
@click.option("--where", metavar="CONDITION", help="A precondition on the names in shapes, such as 'n >= 1'.")
@click.option(
    "--function",
    metavar="NAME[=NAME]",
    help="The function, if a file has several: BEFORE's, then AFTER's if its name differs.",
)
@proof_options(
    "The fast-math assumptions that the proof may use, the fewest that suffice: ieee (none), finite, reals (all), "
    "or words."
)
@click.option(
    "--witness", type=file_path, metavar="FILE", help="Write there which store computes which, for `layoutproof check`."
)
@policy_options
@limit_options(
    "End the comparison if it takes longer; 0: never; by default 600.", "End the comparison if it takes more."
)
@cache_options
@report_options
@verbose_option
@takes(CompareRequest)
def compare_command(request: CompareRequest) -> int:
    """Does AFTER do what BEFORE does, up to the layouts of parameters?

    Each file holds a function in TVM's script syntax. The layouts and pad values that are not given are searched, and
    so is the witness: which store of AFTER computes which store of BEFORE. What was found is then proved. A parameter
    that has the same shape in both programs keeps its layout unless --layout says otherwise.

    MAP is a lambda over logical indices ('lambda n, h, w, c: [n, c//4, h, w, c%4]') or two layouts ('NHWC->NCHW4c').

    Exit codes: 0 proved; 1 refuted; 2 the input is wrong; 3 unknown or vacuous.
    """
    from layoutproof.cli.gate.check_items import Item
    from layoutproof.cli.gate.outcomes import Kind
    from layoutproof.cli.gate_run import Work, run_gate

    before, after = request.before, request.after
    old, new = _programs(before, after, request.function)
    asked = _asked(request, old, new)
    named = request.function is not None
    title = f"{_title(before, old, named)} -> {_title(after, new, named)}"
    line = new.span.line if new.span is not None else 1
    item = Item(Kind.COMPARISON, title, str(after), line, new.name, None, str(before), asked.text)
    return run_gate(request, Work((before, after), items=(item,), witness=request.witness))


def _asked(request: CompareRequest, old: PrimFunc, new: PrimFunc) -> Asked:
    """The options on parameters, checked against both functions. Raises LayoutproofError for wrong ones."""
    from layoutproof.cli.gate.judging.comparisons import Asked
    from layoutproof.ir.diagnostic import Source
    from layoutproof.ir.script.parsing import parse_expression

    known = [buffer.name for buffer in old.buffers]
    matched = _pairs("--match", request.matches, "NEW=OLD")
    _check_names("--match", [name for name, _ in matched], _parameters(new), new, request.after)
    _check_names("--match", [name for _, name in matched], _parameters(old), old, request.before)
    _check_once("--match", [name for _, name in matched])
    maps = _pairs("--layout", request.layouts, "NAME=MAP")
    _check_names("--layout", [name for name, _ in maps], known, old, request.before)
    values = _pairs("--pad", request.pads, "NAME=VALUE")
    _check_names("--pad", [name for name, _ in values], known, old, request.before)
    for name, text in values:
        parse_expression(Source(f"--pad {name}", text), "a pad value")
    if request.where is not None:
        _check_condition(request.where, old)
    return Asked(
        (old.name, new.name),
        tuple((n, _map(old, n, text)) for n, text in maps),
        tuple(values),
        tuple(matched),
        request.where,
    )


def _programs(before: Path, after: Path, function: str | None) -> tuple[PrimFunc, PrimFunc]:
    from layoutproof.cli.gate.loading import read_program

    for path in (before, after):
        if path.is_dir():
            raise error(
                codes.NOTHING_TO_CHECK,
                f"{path} is a folder; `compare` takes two files",
                help="gates compare many: lp.compare",
            )
    first, equals, second = function.partition("=") if function is not None else ("", "", "")
    if function is not None and (not first or (equals and not second)):
        raise error(
            codes.COMPARE_OPTION, f"--function {function}: expected NAME or NAME=NAME, such as main=main_packed"
        )
    return read_program(str(before), first), read_program(str(after), second if equals else first)


def _title(path: Path, func: PrimFunc, chosen: bool) -> str:
    return f"{path}:{func.name}" if chosen else str(path)


def _parameters(func: PrimFunc) -> list[str]:
    """The names of a function's parameters as users write them, of buffers and of scalars."""
    buffers = dict(func.buffer_map)
    return [buffers[p].name if p in buffers else p.name for p in func.params]


def _pairs(option: str, texts: Sequence[str], form: str) -> Pairs:
    """`NAME=VALUE` as pairs. Raises LayoutproofError for other texts and for repeated names."""
    found: list[tuple[str, str]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier() or not value.strip():
            raise error(codes.COMPARE_OPTION, f"{option} {text!r}: expected {form}{_EXAMPLES[option]}")
        found.append((name.strip(), value.strip()))
    _check_once(option, [name for name, _ in found])
    return found


_EXAMPLES = {
    "--layout": ", such as 'A=lambda i, j: [i, j//4, j%4]'",
    "--pad": ", such as 'A=T.float32(0)'",
    "--match": ", such as 'A_packed=A'",
}


def _check_once(option: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise error(codes.COMPARE_OPTION, f"{option}: {name} is given twice")
        seen.add(name)


def _check_names(option: str, names: Iterable[str], known: Sequence[str], func: PrimFunc, path: Path) -> None:
    """Raise LayoutproofError, listing the parameters, for a name that is none of them."""
    from difflib import get_close_matches

    for name in names:
        if name not in known:
            there = f"its parameters are {', '.join(known)}" if known else "it has none"
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? {there}" if close else there
            raise error(
                codes.COMPARE_NAME, f"{option} {name}: {func.name} of {path} has no parameter {name}", help=hint
            )


def _check_condition(text: str, func: PrimFunc) -> None:
    """Raise LayoutproofError, listing the names, for a text that is no condition on the constants of a function."""
    from layoutproof.ir.notations.map_text import parse_condition
    from layoutproof.lowering.arith.known_facts import constants_of

    names = constants_of(func)
    try:
        parse_condition(text, names, "--where")
    except LayoutproofError as problem:
        known = ", ".join(v.name for v in names) if names else "there is none"
        there = f"the names in the shapes of {func.name}, and its integers: {known}"
        raise LayoutproofError(
            [replace(d, help=there if d.help is None else d.help) for d in problem.diagnostics]
        ) from problem


def _map(func: PrimFunc, name: str, text: str) -> str:
    """A map's text as a lambda. Raises LayoutproofError for a text that is no map, or another number of indices."""
    from layoutproof.cli.option_values import read_index_map
    from layoutproof.ir.index_map import index_map_text
    from layoutproof.lowering.arith.known_facts import constants_of

    buffer = next(buffer for buffer in func.buffers if buffer.name == name)
    found = read_index_map(text, buffer.shape, f"--layout {name}", constants_of(func))
    if len(found.inputs) != buffer.rank:
        takes = counted(len(found.inputs), "index", "indices")
        message = f"--layout {name}: the map takes {takes}, and {name} has {counted(buffer.rank, 'axis', 'axes')}"
        raise error(codes.COMPARE_OPTION, message, buffer.span)
    return text if text.startswith("lambda") else index_map_text(found)
