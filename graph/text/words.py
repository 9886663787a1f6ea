"""The parts of a graph's text: arguments, integers, types, maps and scalars, each read where it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from layoutproof.graph import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, counted, split_lines
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Expr, FloatImm, IntImm
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.script.expressions import ExpressionReader, dotted_name
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.parsing import Text

OPERATORS = ("constant", "layout_transform", "pad", "crop")


class _NoNames:
    """Nothing that has a name may stand in a scalar."""

    def lookup(self, name: str) -> Expr | Buffer | None:
        return None

    def names(self) -> Iterable[str]:
        return ()


class Words:
    """Reads the parts of one text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._lines = split_lines(text.source.text)
        self._reader = ExpressionReader(text, _NoNames(), FUNCTIONS, PLAIN_NAMESPACES, PLAIN_FUNCTIONS)

    def fail(self, code: str, message: str, node: ast.AST, help: str | None = None) -> LayoutproofError:
        """An error that points at a part."""
        return self.text.fail(code, message, node, help=help)

    def near(self, name: str, known: Iterable[str]) -> str | None:
        """A name that was perhaps meant."""
        close = get_close_matches(name, list(known), n=1)
        return f"did you mean {close[0]!r}?" if close else None

    def operator(self, node: ast.Call) -> str | None:
        """The graph's own operator that is called; None for a function of the text. Raises LayoutproofError for anything else."""
        path = dotted_name(node.func)
        if path is None or len(path) > 2 or (len(path) == 2 and path[0] != "G"):
            raise self.fail(codes.GRAPH_NAME, "a step calls a function of this text, or an operator of G", node.func)
        if len(path) == 1:
            return None
        if path[1] not in OPERATORS:
            raise self.fail(codes.GRAPH_NAME, f"there is no operator G.{path[1]}; there are {', '.join(OPERATORS)}", node.func)
        return path[1]

    def arguments(self, node: ast.Call, count: int, *keywords: str) -> list[Any]:
        """The arguments in order, then those given by a keyword, None where they are not. Raises LayoutproofError for others."""
        if len(node.args) != count:
            given = counted(len(node.args), "argument", "arguments")
            raise self.fail(codes.GRAPH_TEXT, f"{count} arguments are expected here, there are {given}", node)
        named: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in keywords or keyword.arg in named:
                raise self.fail(codes.GRAPH_TEXT, f"there is no argument {keyword.arg} here", keyword.value)
            named[keyword.arg] = keyword.value
        return [*node.args, *(named.get(keyword) for keyword in keywords)]

    def integers(self, node: ast.expr) -> tuple[int, ...]:
        """A list or tuple of integers."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.fail(codes.GRAPH_TEXT, "a list of integers is expected", node)
        return tuple(self._integer(item) for item in node.elts)

    def pairs(self, node: ast.expr) -> tuple[tuple[int, int], ...]:
        """A list of pairs of integers."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.fail(codes.GRAPH_TEXT, "a list of pairs of integers is expected", node)
        found = [(item, self.integers(item)) for item in node.elts]
        for item, pair in found:
            if len(pair) != 2:
                raise self.fail(codes.GRAPH_TEXT, "a pair of integers is expected", item)
        return tuple((pair[0], pair[1]) for _, pair in found)

    def _integer(self, node: ast.expr) -> int:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._integer(node.operand)
        if not isinstance(node, ast.Constant) or type(node.value) is not int:
            raise self.fail(codes.GRAPH_TEXT, "an integer is expected", node)
        return node.value

    def string(self, node: ast.expr) -> str:
        """A string."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise self.fail(codes.GRAPH_TEXT, "a string is expected", node)
        return node.value

    def dtype(self, node: ast.expr) -> DType:
        """The data type of an element."""
        try:
            return DType.parse(self.string(node))
        except ValueError as problem:
            raise self.fail(codes.GRAPH_TEXT, str(problem), node) from problem

    def scalar(self, node: ast.expr, dtype: DType) -> Expr:
        """One number, or undef; whether it is of the type is for the rules of graphs to say."""
        return self._reader.expr(node, dtype)

    def numbers(self, node: ast.expr, dtype: DType) -> list[int | float]:
        """A list of numbers of a type."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.fail(codes.GRAPH_TEXT, "a list of numbers is expected", node)
        found: list[int | float] = []
        for item in node.elts:
            if isinstance(item, ast.Constant) and item.value in ("inf", "-inf"):
                found.append(float(item.value))
                continue
            value = self._reader.expr(item, dtype)
            if not isinstance(value, IntImm | FloatImm) or value.dtype != dtype:
                raise self.fail(codes.CONSTANT_DATA, f"a number of type {dtype} is expected", item)
            found.append(value.value)
        return found

    def index_map(self, node: ast.expr) -> IndexMap:
        """A map; what is wrong with it is said where it stands in this text."""
        span = self.text.span(node)
        rows = self._lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column]
        rows[0] = " " * span.column + rows[0][span.column :]
        return parse_index_map("\n" * (span.line - 1) + "\n".join(rows), self.text.source.name)
