"""`check --fix`: schedules in which hints were applied, written back where every step is proved then."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.judging.cached_proofs import remembered
from layoutproof.cli.gate.loading import function_of, text_of
from layoutproof.cli.gate.outcomes import Kind
from layoutproof.cli.output import on_one_line, readable, write_file
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.values.fast_math import FastMath


@dataclass(frozen=True, slots=True)
class Change:
    """One schedule: what was changed in it, in words, its text then, and what it `was`; `left` says why it stays as it
    was. `line` is its line in a file of several, None where the file is the schedule.
    """

    name: str
    repairs: tuple[str, ...] = ()
    text: str = ""
    line: int | None = None
    left: str | None = None
    was: str = ""


def mend_files(items: Iterable[Item], options: Options) -> Iterator[str]:
    """Mend the schedules among the items, file by file, and tell what was done: hints, and the difference as a diff.

    A file is written once, whole, with the schedules of which every step is proved after their repairs; others stay as
    they are.
    """
    traces = (item for item in items if item.kind is Kind.TRACE and Path(item.path).is_file())
    for path, group in groupby(traces, key=lambda item: item.path):
        changes = [change for item in group if (change := _mended(item, options)) is not None]
        for change in changes:
            if change.left is not None:
                yield readable(f"{on_one_line(change.name)}: not mended: {change.left}")
            yield from (readable(f"{on_one_line(change.name)}: {repair}") for repair in change.repairs)
        yield from _written(Path(path), [change for change in changes if change.left is None])


def _written(path: Path, changes: list[Change]) -> Iterator[str]:
    if not changes:
        return
    # Bytes that are no UTF-8, and ends of lines, stay as they are.
    before = path.read_bytes().decode("utf-8", errors="surrogateescape")
    lines = before.split("\n")
    for change in changes:
        first, last = (0, len(lines)) if change.line is None else (change.line - 1, change.line)
        there = "\n".join(lines[first:last])
        end = there[len(there.rstrip("\r")) :] if change.line is not None else ""
        if there.removeprefix("\ufeff").removesuffix(end) != change.was:
            yield readable(f"{on_one_line(change.name)}: not mended: the file was changed meanwhile")
            return
        lines[first:last] = (change.text + end).split("\n")
    name, after = on_one_line(str(path)), "\n".join(lines)
    shown = difflib.unified_diff(before.splitlines(), after.splitlines(), name, f"{name} (mended)", lineterm="")
    yield from map(readable, shown)
    write_file(path, after.encode(errors="surrogateescape"))


def _mended(item: Item, options: Options) -> Change | None:
    """The change of one schedule; None where nothing is to be mended, or where its text or its program is no input."""
    from layoutproof.lowering.schedule.trace import json_of, trace_text
    from layoutproof.lowering.suggest.repairs import mended

    try:
        func = function_of(item.program, text_of(item.program), item.subject)
        trace = json_of(item.text)
    except (LayoutproofError, ValueError, RecursionError):
        return None  # `check` tells what is wrong with it
    if not isinstance(trace, list):
        return None
    with remembered(options):
        found = mended(func, trace, frozenset(FastMath(word) for word in options.fast_math))
    if found.left is not None:
        return Change(item.name, left=f"no hint leads to a proof of step {found.left.number + 1}")
    if not found.repairs:
        return None
    if Path(item.path).suffix == ".jsonl":
        return Change(item.name, found.repairs, json.dumps(found.trace), item.line, was=item.text)
    return Change(item.name, found.repairs, trace_text(found.trace), was=item.text)
