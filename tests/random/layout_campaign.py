"""Random layouts against their oracles: `python -m tests.random.layout_campaign --count 5000 --seed 7`.

Each is read, evaluated at every index, compared with what it means, and written in every notation; each text is read
back and evaluated again, without any proof.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection
from random import Random
from time import perf_counter

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.detect import notation_of
from layoutproof.ir.notations.notation import Notation
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.layouts.writing import write_layout
from layoutproof.verify.maps.layout_text import read_layout
from tests.random.layouts import DRAWS, Ints, RandomLayout


def cells_of(index_map: IndexMap, shape: tuple[int, ...]) -> Ints:
    """The cell of every index, one a row."""
    columns = [np.broadcast_to(values, shape).reshape(-1) for values in index_map.output_values(shape)]
    return np.stack(columns, axis=1)


def check_read(layout: RandomLayout) -> IndexMap:
    """The map of a layout. Fails where it is read as another one."""
    # One word on both sides of an arrow is a pair of layout strings, or of tags.
    words = re.fullmatch(r"\w+ -> \w+", layout.text) is not None
    assert words or notation_of(layout.text) is Notation(layout.notation), layout
    shape = tuple(const(extent) for extent in layout.shape)
    given = None if layout.says_shape else shape
    found = read_layout(layout.text, given, axes=layout.axes, notation=layout.notation if words else None)
    assert found.shape is not None and [e.value for e in found.shape] == list(layout.shape), layout  # type: ignore[attr-defined]  # constants
    assert np.array_equal(cells_of(found.index_map, layout.shape), layout.cells.reshape(-1, found.index_map.rank)), (
        layout
    )
    return found.index_map


def check_layout(
    layout: RandomLayout, written: Counter[str] | None = None, notations: Collection[Notation] = tuple(Notation)
) -> None:
    """Fail where a layout is read as another one, or is written as another one."""
    index_map = check_read(layout)
    if layout.cells.min(initial=0) < 0:
        return
    shape = tuple(const(extent) for extent in layout.shape)
    for notation in notations:
        try:
            text = write_layout(index_map, shape, notation)
        except LayoutproofError:
            continue
        check_written(layout, index_map, notation, text)
        if written is not None:
            written[f"{layout.notation} -> {notation}"] += 1


def check_written(layout: RandomLayout, index_map: IndexMap, notation: Notation, text: str) -> None:
    """Fail where a written text does not read back as the layout."""
    shape = tuple(const(extent) for extent in layout.shape)
    axes: dict[str, int] = {}
    if notation is Notation.EINOPS:
        text, *lengths = text.split(", ")
        axes = {name: int(value) for name, value in (length.split("=") for length in lengths)}
    if notation is Notation.TRITON and index_map.inputs[0].name != "register":
        return  # bases of indices that are no hardware are printed, and not read
    try:
        back = read_layout(text, shape, axes=axes, notation=notation)
    except LayoutproofError as problem:
        # isl writes XORs of many bits as relations that take it too long to read.
        assert notation is Notation.ISL and "isl stopped after" in str(problem), problem
        return
    a, b = index_map, back.index_map
    if a.rank != b.rank:
        a, b = offset_map(a, shape), offset_map(b, shape)
    assert np.array_equal(cells_of(a, layout.shape), cells_of(b, layout.shape)), f"{layout}: written as {text}"


def main() -> int:
    """Check as many layouts of each notation as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="layouts of each notation")
    parser.add_argument("--written", type=int, help="how many of them are written in every notation; all unless said")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--notation", choices=list(DRAWS), action="append")
    given = parser.parse_args()
    written: Counter[str] = Counter()
    for notation in given.notation or DRAWS:
        start = perf_counter()
        draw = Random(f"{notation} {given.seed}")
        for number in range(given.count):
            layout = DRAWS[notation](draw)
            if given.written is None or number < given.written:
                check_layout(layout, written)
            else:
                check_read(layout)
        print(f"{notation:8} {given.count} layouts, 0 differences, {perf_counter() - start:.0f} s", flush=True)
    print("written: " + ", ".join(f"{key} {count}" for key, count in sorted(written.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
