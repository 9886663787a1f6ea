"""How the texts of options become values: index maps and sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layoutproof.cli import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.layout_strings import try_layout_map
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.visit import free_variables

MAX_EXTENT = (1 << 31) - 1


def read_index_map(text: str, shape: Sequence[Expr] = (), name: str = "<index map>") -> IndexMap:
    """An index map from lambda text, which may use the names of `shape`, or from two layout strings: `NHWC->NCHW4c`.

    `name` stands for the text in messages. Raises LayoutproofError.
    """
    stated = try_layout_map(text)
    return parse_index_map(text, name, symbols=names_of(shape)) if stated is None else stated


def names_of(shape: Sequence[Expr]) -> tuple[Var, ...]:
    """The names that extents use, in order of first appearance."""
    return tuple(dict.fromkeys(v for extent in shape for v in free_variables(extent)))


def read_sizes(items: Sequence[str]) -> dict[str, int]:
    """`n=5` options as a dictionary. Raises LayoutproofError for other texts, repeated names and negative sizes."""
    sizes: dict[str, int] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier() or not re.fullmatch(r"[0-9]+", value):
            raise error(codes.SIZE, f"--size {item}: expected NAME=NUMBER, such as n=5")
        if name in sizes:
            raise error(codes.SIZE, f"--size {item}: {name} was given already")
        if int(value) > MAX_EXTENT:
            raise error(codes.SIZE, f"--size {item}: sizes go up to {MAX_EXTENT}")
        sizes[name] = int(value)
    return sizes
