"""The layouts that `plan` is given, in options and in a TOML or JSON file, as maps for arrays of calls.

Names are looked up in the graph.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Call, Graph, signature_of
from layoutproof.graph.planning.array_layouts import Layout, PadNumber, layout_of
from layoutproof.graph.planning.formulation import FREE, Free
from layoutproof.graph.planning.variants import calls_of, operator_name
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.layout_strings import layout_map, parse_layout
from layoutproof.ir.notations.map_text import parse_index_map

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "conv": tuple(
        f"{way}{kind}{rank}d"
        for kind in ("conv", "conv_transpose")
        for rank in (2, 1, 3)
        for way in ("", "grouped_", "depthwise_")
    ),
    "pool": tuple(f"{kind}_pool{rank}d" for rank in (2, 1, 3) for kind in ("max", "avg")),
}
"""Names that stand for several operators of the library."""

_PLAIN = ("NCHW", "OIHW", "NCW", "OIW", "NCDHW", "OIDHW", "NC", "C")
"""How the library stores arrays: a layout with the axes of one of these is made from it."""

_FORMS = {
    "--layout": "OP=LAYOUT, such as conv=NCHW8c, conv.W=OIHW8i8o or 'relu=NCHW8c holding 0'",
    "--frozen": "NAME or NAME=LAYOUT, such as conv2d_3=NCHW8c",
    "--free": "NAME or NAME=LAYOUT, such as x=NCHW8c",
}
_ARROW = re.compile(r"\s*(\w+)\s*->\s*(\w+)\s*")
_WORD = re.compile(r"\s*\w*\s*")
_HOLDING = re.compile(r"(.*\S)\s+holding\s+(.*)", re.DOTALL)

Map = IndexMap | tuple[IndexMap, PadNumber]
"""A map, or one with what padding holds."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested layout: of which operator, call or end, of which array, by name or position among operands and
    results (None: the first operand and the results), its map, and its padding's contents. `label` is the place of the
    request.
    """

    label: str
    name: str
    array: str | int | None
    text: str
    index_map: IndexMap | None
    pad: PadNumber | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """Requested layouts, not yet looked up in a graph: of operators, of single calls, of inputs and outputs."""

    operators: tuple[Wanted, ...] = ()
    calls: tuple[Wanted, ...] = ()
    ends: tuple[Wanted, ...] = ()


NOTHING = Wishes()


@dataclass(frozen=True, slots=True)
class Asked:
    """The request on a graph: maps for arrays of calls, by their first results; free inputs by name, and outputs by
    number; and the names of the layouts.
    """

    calls: Mapping[str, Mapping[str, Map]]
    inputs: Mapping[str, IndexMap | Free]
    outputs: Mapping[int, IndexMap | Free]
    names: Mapping[Layout, str]


def wishes_of(layouts: Sequence[str], frozen: Sequence[str], free: Sequence[str]) -> Wishes:
    """The layouts in the options. Raises LayoutproofError for malformed texts."""
    return Wishes(
        *(
            tuple(_read(option, text) for text in texts)
            for option, texts in zip(_FORMS, (layouts, frozen, free), strict=True)
        )
    )


def asked_of(graph: Graph, options: Wishes, file: Wishes = NOTHING) -> Asked:
    """The request on a graph: for an array, options override a file; for a call, what names it overrides the rest.

    Raises LayoutproofError for unknown names, and for a layout that fits none of the arrays.
    """
    calls = tuple(calls_of(graph))
    found: dict[str, dict[str, Map]] = {}
    for wishes in (file, options):
        for call, maps in _of_operators(calls, wishes.operators).items():
            found.setdefault(call, {}).update(maps)
    for wishes in (file, options):
        found |= _of_calls(calls, wishes.calls)
    inputs, outputs = dict[str, IndexMap | Free](), dict[int, IndexMap | Free]()
    for wishes in (file, options):
        entering, leaving = _ends(graph, wishes.ends)
        inputs, outputs = {**inputs, **entering}, {**outputs, **leaving}
    named = (each for wishes in (file, options) for each in (*wishes.operators, *wishes.calls, *wishes.ends))
    names = {
        layout_of(each.index_map): each.text
        for each in named
        if each.index_map is not None and _WORD.fullmatch(each.text)
    }
    return Asked(found, inputs, outputs, names)


def _of_operators(calls: Sequence[Call], wanted: Sequence[Wanted]) -> dict[str, dict[str, Map]]:
    found: dict[str, dict[str, Map]] = {}
    for each in wanted:
        of_operator = tuple(call for call in calls if operator_name(call) in FAMILIES.get(each.name, (each.name,)))
        if not of_operator:
            raise _unknown(each, "no call is of an operator", {operator_name(call) for call in calls}, FAMILIES)
        _give(found, each, of_operator)
    return found


def _of_calls(calls: Sequence[Call], wanted: Sequence[Wanted]) -> dict[str, dict[str, Map]]:
    found: dict[str, dict[str, Map]] = {}
    for each in wanted:
        one = tuple(call for call in calls if each.name in (value.name for value in call.results))
        if not one:
            raise _unknown(each, "no call makes a value", {value.name for call in calls for value in call.results})
        _give(found, each, one)
    return found


def _ends(graph: Graph, wanted: Sequence[Wanted]) -> tuple[dict[str, IndexMap | Free], dict[int, IndexMap | Free]]:
    """The request on inputs, by name, and outputs, by number. Raises LayoutproofError for wrong names and misfits."""
    inputs: dict[str, IndexMap | Free] = {}
    outputs: dict[int, IndexMap | Free] = {}
    values = graph.by_name()
    entering = {value.name for value in graph.inputs}
    for each in wanted:
        asked = each.index_map if each.index_map is not None else FREE
        if each.name not in entering and each.name not in graph.outputs:
            raise _unknown(each, "no input or output is called", entering | set(graph.outputs))
        if each.pad is not None:
            help = "of an output's padding the call that makes it can be asked"
            raise error(
                codes.LAYOUT_NAMES, f"{each.label}: what padding holds is not asked of inputs and outputs", help=help
            )
        rank = len(values[each.name].shape)
        if each.index_map is not None and len(each.index_map.inputs) != rank:
            takes = counted(len(each.index_map.inputs), "index", "indices")
            raise error(
                codes.LAYOUT_NAMES,
                f"{each.label}: the layout takes {takes}, {each.name} has {counted(rank, 'axis', 'axes')}",
            )
        if each.name in entering:
            inputs[each.name] = asked
        outputs |= {number: asked for number, name in enumerate(graph.outputs) if name == each.name}
    return inputs, outputs


def _read(option: str, text: str) -> Wanted:
    """`OP=LAYOUT`, or `NAME` alone if the layout is optional. Raises LayoutproofError."""
    name, equals, layout = (part.strip() for part in text.partition("="))
    name, dot, array = name.partition(".")
    named = name.isidentifier() and (not dot or option != "--free") and (not dot or array.isidentifier())
    given = bool(layout) if equals else option != "--layout" and not dot
    if not named or not given:
        raise error(codes.LAYOUT_NAMES, f"{option} {text!r}: expected {_FORMS[option]}")
    label = f"{option} {name}"
    return (
        wanted_of(label, name, array if dot else None, layout, f"{label}{dot}{array}")
        if equals
        else Wanted(label, name, None, "", None)
    )


def wanted_of(label: str, name: str, array: str | int | None, text: str, place: str) -> Wanted:
    """A layout as text: `NCHW8c`, or `NCHW8c holding 0` for the contents of its padding. Raises LayoutproofError."""
    found = _HOLDING.fullmatch(text)
    if found is None:
        return Wanted(label, name, array, text, _map_of(text, place))
    return Wanted(label, name, array, found[1], _map_of(found[1], place), _number(found[2], place))


def _number(text: str, place: str) -> PadNumber:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise error(codes.LAYOUT_NAMES, f"{place}: padding holds a number, not {text!r}")


def _map_of(text: str, name: str) -> IndexMap:
    """A layout's map. Raises LayoutproofError, with the place, for other texts."""
    arrow = _ARROW.fullmatch(text)
    if arrow is not None:
        return layout_map(parse_layout(arrow[1], name), parse_layout(arrow[2], name))
    if not _WORD.fullmatch(text):
        return parse_index_map(text, name)
    target = parse_layout(text, name)
    source = next((plain for plain in _PLAIN if sorted(plain) == sorted(target.names)), None)
    if source is None:
        message = f"{name}: the axes of {text} are those of none of {', '.join(_PLAIN)}"
        raise error(
            codes.LAYOUT_NAMES, message, help="say which layout it is made of, such as NHWC->NHWC8c, or write a lambda"
        )
    return layout_map(source, target)


def _give(found: dict[str, dict[str, Map]], wanted: Wanted, calls: Sequence[Call]) -> None:
    """Record the map for all calls whose arrays it fits. Raises LayoutproofError for none, or for a second layout."""
    fits = False
    for call in calls:
        arrays = list(_arrays(call, wanted))
        fits = fits or bool(arrays) or wanted.index_map is None
        if wanted.index_map is None:
            found.setdefault(call.results[0].name, {})
        for array in arrays:
            maps = found.setdefault(call.results[0].name, {})
            if array in maps:
                raise error(codes.LAYOUT_NAMES, f"{wanted.label}: {array} of {call.function.name} is given two layouts")
            assert wanted.index_map is not None  # else there are no arrays
            maps[array] = wanted.index_map if wanted.pad is None else (wanted.index_map, wanted.pad)
    if not fits:
        raise _fits_none(wanted, calls)


def _arrays(call: Call, wanted: Wanted) -> Iterator[str]:
    """The arrays of a call that a layout is for, if they have as many axes as the map takes."""
    if wanted.index_map is None:
        return
    rank = len(wanted.index_map.inputs)
    signature = signature_of(call.function)
    if wanted.array is None:
        yield from (buffer.name for buffer in (*signature.operands[:1], *signature.results) if buffer.rank == rank)
    else:
        every = enumerate((*signature.operands, *signature.results))
        yield from (
            buffer.name for number, buffer in every if buffer.rank == rank and wanted.array in (number, buffer.name)
        )


def _fits_none(wanted: Wanted, calls: Sequence[Call]) -> LayoutproofError:
    signature = signature_of(calls[0].function)
    there = {buffer.name: buffer.rank for buffer in (*signature.operands, *signature.results)}
    known = ", ".join(f"{name} with {counted(rank, 'axis', 'axes')}" for name, rank in there.items())
    if isinstance(wanted.array, int) and wanted.array >= len(there):
        message = (
            f"{wanted.label}: {calls[0].function.name} has {counted(len(there), 'array', 'arrays')}, "
            "operands before results"
        )
    elif isinstance(wanted.array, str) and wanted.array not in there:
        message = f"{wanted.label}.{wanted.array}: {calls[0].function.name} has no array {wanted.array}"
    else:
        assert wanted.index_map is not None  # else it fits
        takes = counted(len(wanted.index_map.inputs), "index", "indices")
        message = f"{wanted.label}: the layout takes {takes}, and no array that it could be for has as many axes"
    return error(codes.LAYOUT_NAMES, message, help=f"{calls[0].function.name} has {known}")


def _unknown(
    wanted: Wanted, what: str, known: set[str], families: Mapping[str, tuple[str, ...]] | None = None
) -> LayoutproofError:
    names = sorted(known | {name for name, members in (families or {}).items() if known.intersection(members)})
    close = get_close_matches(wanted.name, names, n=1)
    shown = ", ".join(names[:_MOST_NAMES]) + (
        f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    there = f"available: {shown}" if names else "the graph has no calls"
    hint = f"did you mean {close[0]}? {there}" if close else there
    return error(codes.LAYOUT_NAMES, f"{wanted.label}: {what} {wanted.name}", help=hint)


_MOST_NAMES = 30


DEFAULT = "default"
_SECTIONS = ("operators", "calls", "ends")


def read_layouts(path: Path) -> Wishes:
    """The layouts in a file. Raises LayoutproofError, with the line or entry, for a wrong one."""
    found = _parsed(path)
    if not isinstance(found, dict):
        raise _wrong(path, f"expected a table of {', '.join(_SECTIONS)}")
    for section, entries in found.items():
        if section not in _SECTIONS:
            raise _wrong(path, f"{section}: there is no such section", f"available: {', '.join(_SECTIONS)}")
        if not isinstance(entries, dict):
            raise _wrong(path, f"{section}: expected a table of names and layouts")
    operators, calls, ends = (found.get(section, {}) for section in _SECTIONS)
    return Wishes(
        tuple(
            wanted
            for name, value in operators.items()
            for wanted in _arrays_of_layout_file(path, "operators", name, value)
        ),
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


def _arrays_of_layout_file(path: Path, section: str, name: str, value: Any) -> Iterator[Wanted]:
    """The layouts of one name: one for the first operand and the results, or one for each array by name or position."""
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
            raise _wrong(
                path, f"{section}.{name}: expected a layout, a table of arrays and layouts, or a list of layouts"
            )
    for array, text in pairs:
        yield _wanted(label, name, array, text)


def _wanted(label: str, name: str, array: str | int | None, text: Any) -> Wanted:
    place = label if array is None else f"{label}[{array}]" if isinstance(array, int) else f"{label}.{array}"
    if not isinstance(text, str) or not text.strip():
        raise error(codes.LAYOUT_FILE, f"{place}: expected a layout as text, such as NCHW8c, got {_shown(text)}")
    return wanted_of(label, name, array, text.strip(), place)


def _of_call(path: Path, name: str, value: Any) -> Iterator[Wanted]:
    if value == DEFAULT:
        yield Wanted(f"{path}: calls.{name}", name, None, "", None)
    else:
        yield from _arrays_of_layout_file(path, "calls", name, value)


def _end(path: Path, name: str, value: Any) -> Wanted:
    label = f"{path}: ends.{name}"
    if value is True:
        return Wanted(label, name, None, "", None)
    if not isinstance(value, str):
        raise error(codes.LAYOUT_FILE, f"{label}: expected a layout, or true, got {_shown(value)}")
    return _wanted(label, name, None, value)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
