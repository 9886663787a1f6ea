"""The cheapest plan of a small graph by trying everything: an oracle that knows neither the planner's candidates nor
what it says of costs.

What a call may have is asked of the flow, for every set of layouts of its arrays; a layout's size is counted on the
elements; the rewrites of a value are found by trying all orders in which layouts can be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from math import prod

import numpy as np

from layoutproof.graph.flow.layout_flow import NoFlow, flow
from layoutproof.graph.model.graph import Call, Graph, Shape, shape_of, signature_of
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc

Image = tuple[Shape, tuple[int, ...]]
"""The box that a value is stored in, and which element stands in each of its cells, -1 in none: what a layout is here.
"""
FEW = 20_000
"""The number of choices up to which all of them are tried."""


@cache
def image(layout: str, shape: Shape) -> Image:
    """The layout that a map's text states."""
    stored = parse_index_map(layout).map_array(np.arange(prod(shape)).reshape(shape), fill=-1)
    return stored.shape, tuple(stored.flat)


def cells(layout: Image) -> int:
    """The number of cells of the box that a layout fills, padding included."""
    return prod(layout[0])


class Brute:
    """All layouts that may reach each value, all that each call may have, and the least cost of all choices."""

    def __init__(self, graph: Graph, held: Mapping[str, Mapping[str, str]]) -> None:
        """`held` are maps, by arrays, for calls by their first results; these keep what follows from them."""
        self.graph, self.values = graph, graph.by_name()
        self.calls = [step for step in graph.steps if isinstance(step, Call)]
        assert len(self.calls) == len(graph.steps)
        self.held = held
        self.constants = {constant.value.name for constant in graph.constants}
        self.texts: dict[str, dict[Image, str]] = {}
        for value in graph.values():
            self.texts[value.name] = {image(plain(value.shape), value.shape): plain(value.shape)}
        self.variants: list[dict[tuple[Image, ...], None]] = [{} for _ in self.calls]
        while self.grown():
            pass

    def grown(self) -> bool:
        """Whether trying everything that is known gives something new."""
        new = False
        for call, variants in zip(self.calls, self.variants, strict=True):
            names = [*call.operands, *(value.name for value in call.results)]
            for texts in list(self.tried(call, names)):
                found = self.flowed(call.function, texts)
                if found is None:
                    continue
                tuple_ = tuple(image(text, self.values[name].shape) for name, text in zip(names, found, strict=True))
                new |= tuple_ not in variants
                variants[tuple_] = None
                for name, layout, text in zip(names, tuple_, found, strict=True):
                    if name not in self.constants:
                        new |= layout not in self.texts[name]
                        self.texts[name].setdefault(layout, text)
        return new

    def tried(self, call: Call, names: Sequence[str]) -> Iterator[Mapping[str, str]]:
        """The layouts of arrays that a call is tried with: of a held one those that are given, else all sets of those
        that are known.
        """
        signature = signature_of(call.function)
        arrays = [buffer.name for buffer in (*signature.operands, *signature.results)]
        given = self.held.get(call.results[0].name)
        if given is not None:
            yield given
            return
        alone = [
            (array, text)
            for array, name in zip(arrays, names, strict=True)
            if name not in self.constants
            for text in list(self.texts[name].values())[1:]
            if self.flowed(call.function, {array: text}) is not None
        ]
        for number in range(len(arrays) + 1):
            for items in combinations(alone, number):
                if all(self.apart(call.function, arrays, *pair) for pair in combinations(items, 2)):
                    yield dict(items)

    def apart(self, func: PrimFunc, arrays: Sequence[str], one: tuple[str, str], other: tuple[str, str]) -> bool:
        """Whether two layouts are of two arrays, and neither says anything of the other's array."""

        def leaves(item: tuple[str, str], array: str) -> bool:
            found = self.flowed(func, dict([item]))
            assert found is not None  # only layouts that flow are asked about
            buffer = next(b for b in func.buffers if b.name == array)
            return image(found[arrays.index(array)], shape_of(buffer)) == image(
                plain(shape_of(buffer)), shape_of(buffer)
            )

        return one[0] != other[0] and leaves(one, other[0]) and leaves(other, one[0])

    @staticmethod
    def flowed(func: PrimFunc, texts: Mapping[str, str]) -> tuple[str, ...] | None:
        """The layouts of all arrays that follow from those of some."""
        try:
            maps = flow(func, {array: parse_index_map(text) for array, text in texts.items()})
        except NoFlow:
            return None
        signature = signature_of(func)
        arrays = (*signature.operands, *signature.results)
        if any(texts[name] != index_map_text(maps[name]) for name in texts if name in maps):
            return None
        return tuple(index_map_text(maps[b.name]) if b.name in maps else plain(shape_of(b)) for b in arrays)

    def choices(self) -> int:
        """The number of all choices."""
        return prod(map(len, self.variants))

    def least(self) -> int:
        """The bytes that the cheapest of all choices moves."""
        return min(self.cost(choice) for choice in product(*self.variants))

    def cost(self, choice: Sequence[tuple[Image, ...]]) -> int:
        """The bytes that a choice moves."""
        made = {value.name: next(iter(self.texts[value.name])) for value in self.graph.inputs}
        needed: dict[str, set[Image]] = {name: {next(iter(self.texts[name]))} for name in self.graph.outputs}
        for call, layouts in zip(self.calls, choice, strict=True):
            made |= {
                value.name: layout for value, layout in zip(call.results, layouts[len(call.operands) :], strict=True)
            }
            for name, layout in zip(call.operands, layouts, strict=False):
                needed.setdefault(name, set()).add(layout)
        return sum(
            moved(made[name], frozenset(layouts), tuple(self.texts[name])) * self.values[name].dtype.bytes
            for name, layouts in needed.items()
            if name not in self.constants
        )


def plain(shape: Shape) -> str:
    """The map of an array that is stored as it is indexed."""
    axes = ", ".join(f"i{axis}" for axis in range(len(shape)))
    return f"lambda {axes}: [{axes}]"


@cache
def moved(made: Image, needed: frozenset[Image], known: tuple[Image, ...]) -> int:
    """The least number of cells that are read and written to make all layouts that are needed, by way of any that are
    known.
    """
    return _moved(frozenset({made}), needed, known)


@cache
def _moved(there: frozenset[Image], needed: frozenset[Image], known: tuple[Image, ...]) -> int:
    if needed <= there:
        return 0
    best = None
    for target in known:
        if target not in there:
            cost = min(cells(source) for source in there) + cells(target) + _moved(there | {target}, needed, known)
            best = cost if best is None else min(best, cost)
    assert best is not None  # what is needed is known
    return best
