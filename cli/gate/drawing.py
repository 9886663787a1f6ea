"""Counterexamples drawn small, in a few lines of text that stand in a terminal, a log of CI and a page alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from layoutproof.verify.verdict.verdict import Verdict

_WIDTH = 64  # columns of one cell of a table; longer texts are cut


def drawn(verdict: Verdict) -> tuple[str, ...]:
    """The lines that show a verdict's counterexample; none where there is none, or where its reason says all there is."""
    example = verdict.counterexample
    if example is None:
        return ()
    if {"first", "second", "image"} <= example.keys():
        return _meeting(_index(example["first"]), _index(example["second"]), f"cell {_index(example['image'])}", example)
    if {"first", "second", "cell", "buffer"} <= example.keys():
        first, second = (_values(example[key]) for key in ("first", "second"))
        return _meeting(first, second, f"{example['buffer']}{_index(example['cell'])}, in no order", example)
    if "element" in example:
        return _two_runs(example)
    return (f"cell {_index(example['unreached'])} <- no logical index",) if "unreached" in example else ()


def _meeting(first: str, second: str, where: str, example: Mapping[str, Any]) -> tuple[str, ...]:
    """Two things that end in one place."""
    width = max(len(first), len(second))
    given = _values(example.get("symbols", {}))
    return (
        f"{first:<{width}} ──┐",
        f"{'':<{width}}   ├──> {where}{f'   (with {given})' if given else ''}",
        f"{second:<{width}} ──┘",
    )


def _two_runs(example: Mapping[str, Any]) -> tuple[str, ...]:
    """One cell at the end of both programs, with the stores that made it and what they read, side by side."""
    element = example["element"]
    rows: list[tuple[str, str, str]] = [("", "before", "after")]
    # Padding is no element: it has the places of its cells only.
    places = (element[key] for key in ("logical", "after_index", "before_index"))
    index = next((place for place in places if place is not None), ())
    rows.append((f"{element['buffer']}{_index(index)} ends as", number(example["before"]), number(example["after"])))
    before, after = example.get("before_store"), example.get("after_store")
    if before is not None or after is not None:
        rows.append(("stored by", _store(before), _store(after)))
        left, right = (_values(store["variables"]) if store is not None else "" for store in (before, after))
        rows.append(("at", left, right))
        loads = [store["loads"] if store is not None else [] for store in (before, after)]
        for place, (old, new) in enumerate(_side_by_side(*loads)):
            rows.append(("from" if place == 0 else "", _load(old), _load(new)))
    given = _values(example.get("symbols", {}))
    if given:
        rows.append(("with", given, ""))
    cut = [[text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..." for text in row] for row in rows]
    widths = [max(len(row[column]) for row in cut) for column in range(3)]
    return tuple("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in cut)


def _side_by_side(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[Any, Any]]:
    count = max(len(left), len(right))
    return [(left[k] if k < len(left) else None, right[k] if k < len(right) else None) for k in range(count)]


def _store(store: Mapping[str, Any] | None) -> str:
    return f"line {store['line']}: {store['text']}" if store is not None else "no such store"


def _load(load: Mapping[str, Any] | None) -> str:
    return f"{load['access']} = {number(load['value'])}" if load is not None else ""


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _index(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, values))}]"


def number(value: Any) -> str:
    """A number of a counterexample for people: a float, which is hexadecimal there, in decimal."""
    if not isinstance(value, str):
        return str(value)
    try:
        return repr(float.fromhex(value))
    except ValueError:
        return value
