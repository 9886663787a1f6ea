"""What `compare` does before anything is proved: its options become a request of the gate, with one item.

Both programs are read here, and names and texts of options are looked up in them, so that a wrong one is told at once, with its place in
the option's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.gate.comparisons import Asked
from layoutproof.cli.gate.items import Item
from layoutproof.cli.gate.loading import read_program
from layoutproof.cli.gate.outcome import Kind
from layoutproof.cli.gating import Request
from layoutproof.cli.gating import request_of as gate_request_of
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.parsing import parse_expression
from layoutproof.ir.source import Source
from layoutproof.lowering.scopes import constants_of

Pairs = Sequence[tuple[str, str]]


def request_of(
    before: Path,
    after: Path,
    *,
    layouts: Sequence[str],
    pads: Sequence[str],
    matches: Sequence[str],
    where: str | None,
    function: str | None,
    **options: Any,
) -> Request:
    """The request that the options of `layoutproof compare` make. Raises LayoutproofError or click.UsageError for those that make none."""
    old, new = _programs(before, after, function)
    known = [buffer.name for buffer in old.buffers]
    matched = _pairs("--match", matches, "NEW=OLD")
    _check_names("--match", [name for name, _ in matched], _parameters(new), new, after)
    _check_names("--match", [name for _, name in matched], _parameters(old), old, before)
    _check_once("--match", [name for _, name in matched])
    maps = _pairs("--layout", layouts, "NAME=MAP")
    _check_names("--layout", [name for name, _ in maps], known, old, before)
    values = _pairs("--pad", pads, "NAME=VALUE")
    _check_names("--pad", [name for name, _ in values], known, old, before)
    for name, text in values:
        parse_expression(Source(f"--pad {name}", text), "a pad value")
    if where is not None:
        _check_condition(where, old)
    asked = Asked((old.name, new.name), tuple((n, _map(old, n, text)) for n, text in maps), tuple(values), tuple(matched), where)
    chosen = function is not None
    title = f"{_title(before, old, chosen)} -> {_title(after, new, chosen)}"
    line = new.span.line if new.span is not None else 1
    item = Item(Kind.COMPARISON, title, str(after), line, new.name, None, str(before), asked.text)
    return gate_request_of(paths=(before, after), traces=(), function=None, workers=1, shard=None, dask=None, items=(item,), **options)


def _programs(before: Path, after: Path, function: str | None) -> tuple[PrimFunc, PrimFunc]:
    for path in (before, after):
        if path.is_dir():
            raise error(codes.NOTHING_TO_CHECK, f"{path} is a folder; `compare` takes two files", help="gates compare many: lp.compare")
    first, equals, second = function.partition("=") if function is not None else ("", "", "")
    if function is not None and (not first or (equals and not second)):
        raise error(codes.COMPARE_OPTION, f"--function {function}: expected NAME or NAME=NAME, such as main=main_packed")
    return _program(before, first), _program(after, second if equals else first)


def _program(path: Path, name: str) -> PrimFunc:
    return read_program(str(path), name if name else None)


def _title(path: Path, func: PrimFunc, chosen: bool) -> str:
    return f"{path}:{func.name}" if chosen else str(path)


def _parameters(func: PrimFunc) -> list[str]:
    """The names of a function's parameters as users write them: of buffers, and of scalars."""
    buffers = dict(func.buffer_map)
    return [buffers[p].name if p in buffers else p.name for p in func.params]


def _pairs(option: str, texts: Sequence[str], form: str) -> Pairs:
    """`NAME=VALUE` as pairs. Raises LayoutproofError for other texts, and for a name that is given twice."""
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
    """Raise LayoutproofError for a name that is no parameter of a function, with those that are."""
    for name in names:
        if name not in known:
            there = f"its parameters are {', '.join(known)}" if known else "it has none"
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? {there}" if close else there
            raise error(codes.COMPARE_NAME, f"{option} {name}: {func.name} of {path} has no parameter {name}", help=hint)


def _check_condition(text: str, func: PrimFunc) -> None:
    """Raise LayoutproofError, with the names that there are, for a text that is no condition on the constants of a function."""
    from layoutproof.ir.map_text import parse_condition

    names = constants_of(func)
    try:
        parse_condition(text, names, "--where")
    except LayoutproofError as problem:
        known = ", ".join(v.name for v in names) if names else "there is none"
        there = f"the names in the shapes of {func.name}, and its integers: {known}"
        raise LayoutproofError([replace(d, help=there if d.help is None else d.help) for d in problem.diagnostics]) from problem


def _map(func: PrimFunc, name: str, text: str) -> str:
    """The text of a map as a lambda. Raises LayoutproofError for one that is none, or that takes another number of indices."""
    from layoutproof.cli.values import read_index_map
    from layoutproof.ir.map_text import index_map_text

    buffer = next(buffer for buffer in func.buffers if buffer.name == name)
    found = read_index_map(text, constants_of(func), f"--layout {name}")
    if len(found.inputs) != buffer.rank:
        takes = counted(len(found.inputs), "index", "indices")
        message = f"--layout {name}: the map takes {takes}, and {name} has {counted(buffer.rank, 'axis', 'axes')}"
        raise error(codes.COMPARE_OPTION, message, buffer.span)
    return text if text.startswith("lambda") else index_map_text(found)
