"""The least cost of all choices of a planning problem, with what a choice costs worked out anew: from elements, cells
and padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import prod

from tests.graph.planning.brute import Image, cells, image

from layoutproof.graph.model.graph import Value
from layoutproof.graph.planning.array_layouts import Layout, bare, pad_of
from layoutproof.graph.planning.planning_problem import Problem

Held = tuple[Image, str]
"""A layout, and what its padding holds, as text; nothing where that is empty."""


def held(value: Value, layout: Layout) -> Held:
    """A layout as it is compared here."""
    return image(bare(layout), value.shape), "" if pad_of(layout) is None else repr(pad_of(layout))


def number_of_choices(problem: Problem) -> int:
    """How many choices there are."""
    return prod(len(call.variants) for call in problem.calls)


def least_of(problem: Problem, values: Mapping[str, Value]) -> int:
    """The bytes that the cheapest choice moves and fills."""
    return min(
        bytes_of(problem, values, choice) for choice in product(*(range(len(call.variants)) for call in problem.calls))
    )


def bytes_of(problem: Problem, values: Mapping[str, Value], choice: Sequence[int]) -> int:
    """The bytes that a choice moves and fills."""
    made = {name: held(values[name], layout) for name, layout in problem.fixed.items()}
    needed: dict[str, set[Held]] = {}
    known: dict[str, set[Held]] = {}
    for name, asked in problem.outputs:
        if asked is not None:
            needed.setdefault(name, set()).add(held(values[name], asked))
    filled = 0
    for call, number in zip(problem.calls, choice, strict=True):
        for k, variant in enumerate(call.variants):
            for name, layout in zip(
                (*call.operands, *call.results), (*variant.operands, *variant.results), strict=True
            ):
                known.setdefault(name, set()).add(held(values[name], layout))
                if k == number and name in call.results:
                    made[name] = held(values[name], layout)
                    if pad_of(layout) is not None and not variant.through:
                        filled += (cells(made[name][0]) - prod(values[name].shape)) * values[name].dtype.bytes
                elif k == number:
                    needed.setdefault(name, set()).add(held(values[name], layout))
    for name, layouts in needed.items():
        if name not in problem.free:
            axes = ", ".join(f"i{axis}" for axis in range(len(values[name].shape)))
            every = known.get(name, set()) | layouts | {made[name], held(values[name], f"lambda {axes}: [{axes}]")}
            filled += moved(made[name], frozenset(layouts), tuple(sorted(every))) * values[name].dtype.bytes
    return filled


@cache
def moved(made: Held, needed: frozenset[Held], known: tuple[Held, ...]) -> int:
    """The least number of cells that are read and written until all layouts that are needed are there."""
    return _moved(frozenset({made}), needed, known)


@cache
def _moved(there: frozenset[Held], needed: frozenset[Held], known: tuple[Held, ...]) -> int:
    if all(is_there(layout, there) for layout in needed):
        return 0
    rest = [target for target in known if not is_there(target, there)]
    return min(
        min(cells(source[0]) for source in there) + cells(target[0]) + _moved(there | {target}, needed, known)
        for target in rest
    )


def is_there(layout: Held, there: frozenset[Held]) -> bool:
    """Whether a value is there in a layout, or in it with padding that holds more than is asked."""
    return layout in there or (not layout[1] and any(layout[0] == other[0] for other in there))
