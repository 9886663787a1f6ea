"""Index maps, shapes and conditions as text: on a command line, in a trace, in a report.

Maps and integers occur in programs too (`script/index_maps.py`); shapes and conditions only here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.script.index_maps import IntegerReader, PlainNames, by_name, parse_index_map, parse_integer
from layoutproof.ir.script.parsing import limited_depth, parse_expression

__all__ = ["parse_condition", "parse_index_map", "parse_integer", "parse_shape"]


def parse_shape(text: str, name: str = "<shape>") -> tuple[Expr, ...]:
    """The extents of `16,64,n` or `(4*n, m)`, names being new variables. Raises LayoutproofError, also below 1."""
    tree, source = parse_expression(Source(name, text), "a shape such as 16,64,n")
    nodes = list(tree.elts) if isinstance(tree, ast.Tuple | ast.List) else [tree]
    reader = IntegerReader(source, PlainNames({}, open_ended=True), "a shape")
    extents: list[Expr] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            raise source.fail(codes.UNSUPPORTED, "a starred extent", node)
        with limited_depth(source):
            extent = reader.integer(node, "an extent")
        if isinstance(extent, IntImm) and extent.value < 1:
            raise source.fail(codes.EXTENT, f"an extent must be at least 1, this is {extent.value}", node)
        extents.append(extent)
    return tuple(extents)


def parse_condition(
    text: str,
    variables: Mapping[str, Var] | Iterable[Var],
    name: str = "<condition>",
    *,
    folded: bool = True,
    open_ended: bool = False,
) -> Expr:
    """A condition over the variables, `0 <= i < n`, and with `open_ended` over others; `folded` as in
    `parse_index_map`. Raises LayoutproofError.
    """
    known = by_name(variables)
    tree, source = parse_expression(Source(name, text), "a condition such as n >= 1")
    with limited_depth(source):
        return IntegerReader(source, PlainNames(known, open_ended), "a condition", folded).condition(tree)
