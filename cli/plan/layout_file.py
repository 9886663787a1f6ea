"""Layouts from a file, for `plan --layouts`: a dictionary of operators, calls, inputs and outputs, as TOML or JSON.

[operators]                       # like --layout; a table names arrays, a list has operands, then results, in order
conv = "NCHW8c"
dense = ["NC8c", "default", "default"]
[operators.my_operator]
X = "NCHW8c"
[calls]                           # like --frozen; "default": the call keeps the layouts that it has
max_pool2d = "default"
[ends]                            # like --free; true: whichever costs least
image = true
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from layoutproof.cli.plan.layouts import Wanted, Wishes, wanted_of
from layoutproof.graph import codes
from layoutproof.ir.diagnostic import LayoutproofError, error

DEFAULT = "default"
_SECTIONS = ("operators", "calls", "ends")


def read_layouts(path: Path) -> Wishes:
    """What a file asks for. Raises LayoutproofError, naming the line or the entry, for what is no such file or no layout."""
    found = _parsed(path)
    if not isinstance(found, dict):
        raise _wrong(path, f"expected a table of {', '.join(_SECTIONS)}")
    for section, entries in found.items():
        if section not in _SECTIONS:
            raise _wrong(path, f"{section}: there is no such section", f"there are {', '.join(_SECTIONS)}")
        if not isinstance(entries, dict):
            raise _wrong(path, f"{section}: expected a table of names and layouts")
    operators, calls, ends = (found.get(section, {}) for section in _SECTIONS)
    return Wishes(
        tuple(wanted for name, value in operators.items() for wanted in _arrays(path, "operators", name, value)),
        tuple(wanted for name, value in calls.items() for wanted in _of_call(path, name, value)),
        tuple(_end(path, name, value) for name, value in ends.items()),
    )


def _parsed(path: Path) -> Any:
    ending = path.suffix.lower()
    if ending not in (".toml", ".json"):
        raise _wrong(path, "a file of layouts ends in .toml or .json")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise _wrong(path, f"it cannot be read: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise _wrong(path, "it is not text in UTF-8") from problem
    try:
        return tomllib.loads(text) if ending == ".toml" else json.loads(text, object_pairs_hook=_without_repeats)
    except tomllib.TOMLDecodeError as problem:
        raise _wrong(path, f"it is no TOML: {problem}") from problem
    except json.JSONDecodeError as problem:
        raise _wrong(path, f"it is no JSON: {problem.msg}, line {problem.lineno}, column {problem.colno}") from problem
    except (RecursionError, ValueError) as problem:
        raise _wrong(path, str(problem) if isinstance(problem, ValueError) else "it is nested too deeply") from problem


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} stands there twice")
    return found


def _wrong(path: Path, why: str, help: str | None = None) -> LayoutproofError:
    return error(codes.LAYOUT_FILE, f"{path}: {why}", help=help)


def _arrays(path: Path, section: str, name: str, value: Any) -> Iterator[Wanted]:
    """The layouts of one name: one for the first operand and the results, or one for each array that is named or has its place."""
    label = f"{path}: {section}.{name}"
    pairs: Iterator[tuple[str | int | None, Any]]
    match value:
        case str():
            pairs = iter([(None, value)])
        case dict():
            pairs = iter(value.items())
        case list():
            pairs = ((number, each) for number, each in enumerate(value) if each not in (DEFAULT, None))
        case _:
            raise _wrong(path, f"{section}.{name}: expected a layout, a table of arrays and layouts, or a list of layouts")
    for array, text in pairs:
        yield _wanted(path, label, name, array, text)


def _wanted(path: Path, label: str, name: str, array: str | int | None, text: Any) -> Wanted:
    place = label if array is None else f"{label}[{array}]" if isinstance(array, int) else f"{label}.{array}"
    if not isinstance(text, str) or not text.strip():
        raise error(codes.LAYOUT_FILE, f"{place}: expected a layout as text, such as NCHW8c, there is {_shown(text)}")
    return wanted_of(label, name, array, text.strip(), place)


def _of_call(path: Path, name: str, value: Any) -> Iterator[Wanted]:
    if value == DEFAULT:
        yield Wanted(f"{path}: calls.{name}", name, None, "", None)
    else:
        yield from _arrays(path, "calls", name, value)


def _end(path: Path, name: str, value: Any) -> Wanted:
    label = f"{path}: ends.{name}"
    if value is True:
        return Wanted(label, name, None, "", None)
    if not isinstance(value, str):
        raise error(codes.LAYOUT_FILE, f"{label}: expected a layout, or true, there is {_shown(value)}")
    return _wanted(path, label, name, None, value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
