"""What layout operators do, on labels instead of numbers: a second opinion on folds that knows where each cell came
from.

A cell of an input is known by its place, one of a constant or of a pad by its number, and one of undefined padding by
the pad and its place. So one run says whether a graph does only what another may do, for every input and whatever
undefined padding holds.
"""

from __future__ import annotations

import struct
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.graph.model.graph import Call, Crop, Graph, LayoutTransform, Pad, number_of

Label = tuple[Any, ...]
Labels = NDArray[Any]


def _number(value: Any) -> Label:
    number = float(value)
    return ("number", "nan" if isnan(number) else struct.pack(">d", number).hex())


def cells_of(graph: Graph, which: str) -> tuple[dict[str, Labels], dict[Label, Label]]:
    """The labels of every value of a graph without calls, and what crops claim of labels; `which` tells undefined
    padding of graphs apart.

    Raises ValueError where claims contradict one another, so that there is no run.
    """
    found: dict[str, Labels] = {}
    for value in graph.inputs:
        found[value.name] = _filled(value.shape, lambda index, name=value.name: ("input", name, index))
    for constant in graph.constants:
        found[constant.value.name] = _filled(
            constant.value.shape, lambda index, data=constant.data: _number(data[index])
        )
    claimed: dict[Label, Label] = {}
    for step in graph.steps:
        assert not isinstance(step, Call)
        source, made = found[step.operand], np.empty(step.result.shape, object)
        match step:
            case LayoutTransform():
                for index in np.ndindex(*source.shape):
                    made[tuple(step.index_map.evaluate(list(index)))] = source[index]
            case Pad():
                number = number_of(step.value)
                of = ("undefined", which, step.result.name)
                made = _filled(
                    step.result.shape, lambda index, n=number, of=of: (*of, index) if n is None else _number(n)
                )
                made[tuple(slice(w, w + n) for (w, _), n in zip(step.widths, source.shape, strict=True))] = source
            case Crop():
                box = tuple(slice(start, start + size) for start, size in zip(step.starts, step.sizes, strict=True))
                made = source[box]
                _claim(step, source, box, claimed)
        found[step.result.name] = made
    return found, claimed


def _filled(shape: tuple[int, ...], label: Any) -> Labels:
    made = np.empty(shape, object)
    for index in np.ndindex(*shape):
        made[index] = label(index)
    return made


def _claim(step: Crop, source: Labels, box: tuple[slice, ...], claimed: dict[Label, Label]) -> None:
    number = None if step.cropped_value is None else number_of(step.cropped_value)
    if number is None:
        return
    outside = np.ones(source.shape, np.bool_)
    outside[box] = False
    for label in source[outside]:
        held = label if label[0] == "number" else claimed.setdefault(label, _number(number))
        if held != _number(number):
            raise ValueError(f"{step.result.name} claims what is not so")


def difference(old: Graph, new: Graph) -> str | None:
    """Where the new graph does what the old one cannot have done; None where it never does. Raises ValueError where
    claims leave no run.
    """
    (before, claimed), (after, _) = cells_of(old, "old"), cells_of(new, "new")
    chosen: dict[Label, Label] = {}
    for ours, theirs in zip(new.outputs, old.outputs, strict=True):
        if after[ours].shape != before[theirs].shape:
            return f"{ours} has another shape than {theirs}"
        for index in np.ndindex(*after[ours].shape):
            was, made = (claimed.get(cells.item(*index), cells.item(*index)) for cells in (before[theirs], after[ours]))
            if was[0] == "undefined":
                was = chosen.setdefault(was, made)
            if was != made:
                return f"{ours}{list(index)} is {made}, {theirs} was {was}"
    return None
