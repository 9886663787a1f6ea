"""What the playground answers: maps decided, drawn and compared in a browser, where neither isl nor z3 runs.

Texts come from the page and go back as JSON. Only what can be decided by symbols, bits and trying all points is; what
needs more says so, and gives the command that decides it. numpy is used where it is loaded, and not needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import Overflow, evaluate
from layoutproof.ir.expr import IntImm
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.ir.notations.notation import WrittenLayout
from layoutproof.ir.semantics import Trap
from layoutproof.verify.layouts.comparison import prove_same
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.layout_text import read_layout, total_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Verdict

MOST_POINTS = 1 << 16
"""Indices that are tried one by one where numpy is not there."""

_ABSENT = {"islpy": "isl", "z3": "z3", "numpy": "numpy"}


def answer(question: str) -> str:
    """The answer to a question, both JSON: `{"map", "shape", "where", "other"}`, texts that may be empty.

    The answer has `status` (a verdict's word, `error`, or `needs`), `rows` of a label and a text each, `picture` (SVG
    or null) and `command`, which says the same on a machine of one's own.
    """
    given = {key: str(value).strip() for key, value in json.loads(question).items()}
    rule = _compared if given.get("other") else _decided
    try:
        found = rule(given)
    except LayoutproofError as problem:
        text = "\n".join(diagnostic.render() for diagnostic in problem.diagnostics)
        found = {"status": "error", "rows": [("input", text)], "picture": None}
    except RecursionError:
        found = {"status": "error", "rows": [("input", "it is nested too deep")], "picture": None}
    return json.dumps({**found, "command": _command(given)})


def _command(given: Mapping[str, str]) -> str:
    from shlex import quote

    other = given.get("other", "")
    words = ["layoutproof", "layout" if other else "map", given["map"], *([other] if other else [])]
    for option in ("shape", "where"):
        words += [f"--{option}", given[option]] if given.get(option) and not (other and option == "where") else []
    return " ".join(map(quote, words))


def _layout(text: str, shape: str) -> WrittenLayout:
    return read_layout(text, parse_shape(shape) if shape else None, name="<index map>")


def _decided(given: Mapping[str, str]) -> dict[str, Any]:
    text, shape, where = given["map"], given.get("shape") or None, given.get("where") or None
    report = _or_else(lambda: check_map(text, shape, where))
    if isinstance(report, MapReport):
        told = report.to_dict()
        rows = [("index map", told["index_map"]), ("injective", _words(report.injective))]
        rows += [("surjective", _words(report.bijective)), ("physical shape", _list(told["physical_shape"]))]
        rows += [("padding where", str(told["padding"]["predicate"])), ("padding cells", str(told["padding"]["cells"]))]
        rows.append(("inverse", told["inverse"] or f"none ({report.inverse_reason})"))
        return {"status": report.injective.status.value, "rows": rows, "picture": _picture(report)}
    layout = _layout(text, shape or "")
    extents = None if where is not None or layout.shape is None else _numbers(layout.shape)
    if extents is None or prod(extents) > MOST_POINTS:
        return _needs(report)
    return _by_points(total_map(layout, "<index map>"), extents)


def _compared(given: Mapping[str, str]) -> dict[str, Any]:
    shape = given.get("shape", "")
    first, second = _layout(given["map"], shape), _layout(given["other"], shape)
    if first.shape is None and second.shape is not None:
        first = read_layout(first.text, second.shape, name="<index map>")
    elif second.shape is None and first.shape is not None:
        second = read_layout(second.text, first.shape, name="<index map>")
    if first.shape is None or second.shape is None:
        row = ("input", "neither layout says its shape: give the shape")
        return {"status": "error", "rows": [row], "picture": None}
    found = _or_else(lambda: prove_same(first, second))
    if not isinstance(found, str):
        same, compared = found
        return {"status": same.status.value, "rows": [("same " + compared, _words(same))], "picture": None}
    extents = _numbers(first.shape)
    if extents is None or extents != _numbers(second.shape) or prod(extents) > MOST_POINTS:
        return _needs(found)
    return _differing(total_map(first), total_map(second), extents) or _needs(found)


def _or_else(question: Callable[[], Any]) -> Any:
    """The answer, or the name of what it would take: a solver or numpy, or processes, which solvers run in."""
    try:
        return question()
    except ModuleNotFoundError as problem:
        name = (problem.name or "").partition(".")[0]
        if name not in _ABSENT:
            raise
        return _ABSENT[name]
    except OSError:
        return "z3"  # solvers have processes of their own, which a browser does not have


def _needs(what: str) -> dict[str, Any]:
    where = "is not loaded here" if what == "numpy" else "does not run in a browser"
    text = f"this question needs {what}, which {where}; the command below decides it on your machine"
    return {"status": "needs", "rows": [("needs", text)], "picture": None}


def _words(verdict: Verdict) -> str:
    example = verdict.counterexample
    if example is None:
        return verdict.status.value + (f": {verdict.reason}" if verdict.reason is not None else "")
    if "image" in example:
        return f"{verdict.status.value}: {example['first']} and {example['second']} both go to {example['image']}"
    if "unreached" in example:
        return f"no: {example['unreached']} is reached by no index"
    told = ", ".join(f"{name} = {value}" for name, value in example.items())
    return f"{verdict.status.value}: {told}"


def _list(values: list[Any]) -> str:
    return ", ".join("?" if value is None else str(value) for value in values)


def _picture(report: MapReport) -> str | None:
    from layoutproof.cli.plot.map_picture import scene_of_map

    if _numbers(report.shape) is None:
        return None
    try:
        return scene_of_map(report).svg()
    except (LayoutproofError, ModuleNotFoundError):
        return None  # it has no box of numbers, or its clashes would have to be searched with numpy


def _numbers(shape: Any) -> list[int] | None:
    found = [extent.value for extent in shape if isinstance(extent, IntImm)]
    return found if len(found) == len(shape) else None


def _values(index_map: IndexMap, index: tuple[int, ...]) -> tuple[int, ...]:
    env = dict(zip((each.name for each in index_map.inputs), index, strict=True))
    return tuple(int(evaluate(output, env)) for output in index_map.outputs)


def _by_points(index_map: IndexMap, extents: list[int]) -> dict[str, Any]:
    """Injectivity by trying all indices."""
    cells: dict[tuple[int, ...], tuple[int, ...]] = {}
    for index in product(*map(range, extents)):
        try:
            cell = _values(index_map, index)
        except (Trap, Overflow) as problem:
            row = ("input", f"at {list(index)} the map has no value: {problem}")
            return {"status": "error", "rows": [row], "picture": None}
        if cell in cells:
            words = f"refuted: {list(cells[cell])} and {list(index)} both go to {list(cell)}"
            return {"status": "refuted", "rows": [("injective", words)], "picture": None}
        cells[cell] = index
    words = f"proved: all {len(cells):,} indices were tried; for the inverse and the padding numpy has to be loaded"
    return {"status": "proved", "rows": [("injective", words)], "picture": None}


def _differing(first: IndexMap, second: IndexMap, extents: list[int]) -> dict[str, Any] | None:
    """The first index at which two maps differ, or that there is none; None if their cells have other axes."""
    if first.rank != second.rank:
        return None
    for index in product(*map(range, extents)):
        one, other = _values(first, index), _values(second, index)
        if one != other:
            words = f"refuted: {list(index)} goes to {list(one)}, and to {list(other)}"
            return {"status": "refuted", "rows": [("same cells", words)], "picture": None}
    words = f"proved: all {prod(extents):,} indices were tried"
    return {"status": "proved", "rows": [("same cells", words)], "picture": None}
