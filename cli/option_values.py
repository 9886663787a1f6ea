"""How the texts of options become values: index maps and sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from layoutproof.cli import codes
from layoutproof.ir.codes import NOTATION_INCOMPLETE
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.ir.notations.notation import WrittenLayout
from layoutproof.ir.visit import free_variables

MAX_EXTENT = (1 << 31) - 1


def read_index_map(
    text: str, shape: Sequence[Expr] | None = None, name: str = "<index map>", symbols: Sequence[Var] = ()
) -> IndexMap:
    """An index map from a text in any notation; a lambda may use the names of `shape`, and `symbols`.

    `name` stands for the text in messages. Raises LayoutproofError.
    """
    from layoutproof.verify.maps.layout_text import read_layout, total_map

    return total_map(read_layout(text, shape, symbols=symbols, name=name), name)


def read_layout_and_shape(
    text: str,
    shape: str | None,
    axes: Sequence[str] = (),
    notation: str | None = None,
    symbols: Sequence[Var] = (),
) -> tuple[WrittenLayout, tuple[Expr, ...]]:
    """A layout in any notation and its shape, which the text or `--shape` gives; a lambda may use `symbols`.

    Raises LayoutproofError.
    """
    from layoutproof.verify.maps.layout_text import read_layout

    given = None if shape is None else parse_shape(shape)
    layout = read_layout(text, given, axes=read_axes(axes), notation=notation, symbols=symbols, name="<index map>")
    if layout.shape is None:
        raise error(NOTATION_INCOMPLETE, f"`{text}` does not say its shape: give it with --shape")
    return layout, layout.shape


def read_axes(items: Sequence[str]) -> dict[str, int]:
    """`p=2,q=3` as a dictionary. Raises LayoutproofError for other texts."""
    found: dict[str, int] = {}
    for item in (part.strip() for text in items for part in text.split(",")):
        name, equals, value = item.partition("=")
        if not equals or not name.isidentifier() or not re.fullmatch(r"[0-9]{1,10}", value) or int(value) < 1:
            raise error(codes.SIZE, f"--axes {item}: expected NAME=NUMBER,NAME=NUMBER, such as p=2,q=3")
        if name in found:
            raise error(codes.SIZE, f"--axes {item}: {name} was given already")
        found[name] = int(value)
    return found


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
