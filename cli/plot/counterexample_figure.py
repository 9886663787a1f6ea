"""Pictures of counterexamples: two indices with one cell, and a result that differs, with the padding that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from layoutproof.cli.plot.layout_figure import TRACE, TRACE_LINE
from layoutproof.cli.plot.palette import CLASH, VALUE, by_order
from layoutproof.cli.plot.scene import EDGE, INK, Line, Rect, Scene, Text, cut, fitting, width_of

_BOX, _HIGH, _GAP, _MARGIN = 64.0, 34.0, 6.0, 16.0
_MOST = 12  # cells of an input
_GOOD, _BAD = "#d6f5de", "#fbd5d0"


def scene_of_counterexample(found: Mapping[str, Any]) -> Scene | None:
    """The picture of a counterexample, as JSON has it; None for kinds that have none."""
    if {"first", "second", "image"} <= found.keys():
        return _meeting(found)
    if {"element", "before", "after", "inputs"} <= found.keys():
        return _two_runs(found)
    return None


def _index(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))


def _meeting(found: Mapping[str, Any]) -> Scene:
    """Two boxes on the left, each with an arrow to the cell on the right."""
    first, second, image = (f"[{_index(found[key])}]" for key in ("first", "second", "image"))
    wide = max(_BOX, *(width_of(text, 13) + 16 for text in (first, second, image)))
    scene = Scene(f"{first} and {second} are both stored in {image}", 2 * wide + 110 + 2 * _MARGIN, 0.0)
    right, middle = _MARGIN + wide + 110, _MARGIN + 18 + _HIGH + _GAP / 2
    scene.add(
        Text(_MARGIN, _MARGIN + 8, "elements", 11, "start", EDGE), Text(right, _MARGIN + 8, "cell", 11, "start", EDGE)
    )
    for number, text in enumerate((first, second)):
        y = _MARGIN + 18 + number * (_HIGH + _GAP)
        scene.add(*_box(_MARGIN, y, wide, text, by_order(0.3 + 0.4 * number)))
        scene.add(Line(((_MARGIN + wide + 4, y + _HIGH / 2), (right - 4, middle)), TRACE, 1.8, 1.0, True))
    scene.add(*_box(right, middle - _HIGH / 2, wide, image, CLASH))
    scene.height = middle + _HIGH + _MARGIN
    given = _symbols(found)
    if given:
        scene.add(Text(_MARGIN, scene.height, f"with {given}", 11, "start", EDGE))
        scene.height += _MARGIN
    return scene


def _two_runs(found: Mapping[str, Any]) -> Scene:
    """The inputs, the padding that was read in the new program alone, and the result in both."""
    element = found["element"]
    index = next(place for place in (element["logical"], element["after_index"]) if place is not None)
    name, given = f"{element['buffer']}[{_index(index)}]", _symbols(found)
    before, after = _number(found["before"]), _number(found["after"])
    headline = f"{name}: expected {before}, got {after}" + (f"  (with {given})" if given else "")
    scene, y = Scene(headline), _MARGIN + 12
    scene.add(Text(_MARGIN, y, headline, 14, "start", bold=True))
    read = found.get("padding_read", [])
    arrays = {cell["access"].partition("[")[0] for cell in read} or set(found["inputs"]) - {element["buffer"]}
    y += 14
    for array in (array for array in found["inputs"] if array in arrays):
        cells = list(_cells(array, found["inputs"][array]))
        more = [(cell["access"], _number(cell["value"])) for cell in read if cell["access"].startswith(f"{array}[")]
        scene.add(
            Text(
                _MARGIN,
                y + 12,
                f"{array}, its elements" + (" and padding that is read" if more else ""),
                11,
                "start",
                EDGE,
            )
        )
        y += 18
        edge = _strip(scene, y, cells, (by_order(0.25), ""))
        if more:
            _strip(scene, y, more, VALUE, left=edge + 2 * _GAP, traced=True)
        y += _HIGH + 26
    for word, value, store, fill in (
        ("before", before, found.get("before_store"), _GOOD),
        ("after", after, found.get("after_store"), _BAD),
    ):
        scene.add(Text(_MARGIN, y + _HIGH / 2 + 4, word, 12, "start", bold=True))
        scene.add(*_box(_MARGIN + 60, y, max(_BOX, width_of(value, 13) + 16), value, fill))
        if store is not None:
            scene.add(
                Text(
                    _MARGIN + 68 + max(_BOX, width_of(value, 13) + 16),
                    y + _HIGH / 2 + 4,
                    _store(store),
                    11,
                    "start",
                    EDGE,
                    mono=True,
                )
            )
        y += _HIGH + _GAP
    scene.width = max([scene.width, *(_right(item) for item in scene.items)]) + _MARGIN
    scene.height = y + _MARGIN - _GAP
    return scene


def _strip(
    scene: Scene,
    y: float,
    cells: Sequence[tuple[str, str]],
    colours: tuple[str, str],
    left: float = _MARGIN,
    traced: bool = False,
) -> float:
    """Cells beside one another with their names below, in a colour and hatched; where they end."""
    fill, hatch = colours
    for access, value in cells:
        wide = max(_BOX, width_of(access, 10) + 4)
        scene.add(Rect(left, y, wide, _HIGH, fill, hatch=hatch, title=f"{access} = {value}"))
        scene.add(Text(left + wide / 2, y + _HIGH / 2 + 5, value, fitting(value, 14, wide - 6), bold=traced))
        scene.add(Text(left + wide / 2, y + _HIGH + 12, access, fitting(access, 10, wide), fill=EDGE, mono=True))
        if traced:
            scene.add(Rect(left + 1.5, y + 1.5, wide - 3, _HIGH - 3, "none", TRACE, TRACE_LINE))
        left += wide
    return left


def _cells(name: str, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The first elements of an input, by name, and their values."""
    shape = data["shape"]
    others = dict(data.get("others", []))
    for place, index in enumerate(islice(product(*map(range, shape)), _MOST)):
        value = data["values"][place] if "values" in data else others.get(place, data["fill"])
        yield f"{name}[{_index(index)}]", _number(value)


def _box(x: float, y: float, wide: float, text: str, fill: str) -> tuple[Rect, Text]:
    return Rect(x, y, wide, _HIGH, fill, radius=4.0), Text(x + wide / 2, y + _HIGH / 2 + 5, text, 13, fill=INK)


def _store(store: Mapping[str, Any]) -> str:
    at = ", ".join(f"{name} = {value}" for name, value in store["variables"].items())
    return cut(f"{store['text']}   {f'at {at}' if at else ''}", 90)


def _symbols(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in found.get("symbols", {}).items())


def _number(value: object) -> str:
    """A number as JSON has it, floats in decimal."""
    return repr(float.fromhex(value)) if isinstance(value, str) else str(value)


def _right(item: Rect | Text | Line) -> float:
    if isinstance(item, Rect):
        return item.x + item.width
    if isinstance(item, Text):
        return item.x + (width_of(item.text, item.size) if item.anchor == "start" else 0.0)
    return max(x for x, _ in item.points)
