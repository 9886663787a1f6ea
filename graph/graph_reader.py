"""Text -> graph: read with Python's grammar, never executed; errors have their line and column."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from math import prod
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import (
    Array,
    Call,
    Constant,
    Crop,
    Graph,
    LayoutTransform,
    Pad,
    Step,
    Value,
    shape_of,
    signature_of,
)
from layoutproof.graph.model.layout_maps import box_of
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, Source, counted, split_lines
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import Expr, FloatImm, IntImm
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.expressions import ExpressionReader, dotted_name
from layoutproof.ir.script.functions import FUNCTIONS, PLAIN_FUNCTIONS, PLAIN_NAMESPACES
from layoutproof.ir.script.parsing import Text, check_depth, limited_depth, parse_module
from layoutproof.ir.script.reader import PrimFuncReader, decorates

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
        """The graph operator that is called, None for a function of the text. Raises LayoutproofError for others."""
        path = dotted_name(node.func)
        if path is None or len(path) > 2 or (len(path) == 2 and path[0] != "G"):
            raise self.fail(codes.GRAPH_NAME, "a step calls a function of this text, or an operator of G", node.func)
        if len(path) == 1:
            return None
        if path[1] not in OPERATORS:
            raise self.fail(
                codes.GRAPH_NAME, f"there is no operator G.{path[1]}; available: {', '.join(OPERATORS)}", node.func
            )
        return path[1]

    def arguments(self, node: ast.Call, count: int, *keywords: str) -> list[Any]:
        """The arguments in order, then those by keyword, None where absent. Raises LayoutproofError for others."""
        if len(node.args) != count:
            given = counted(len(node.args), "argument", "arguments")
            raise self.fail(codes.GRAPH_TEXT, f"expected {count} arguments, got {given}", node)
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
        """A map; errors in it have their place in this text."""
        span = self.text.span(node)
        rows = self._lines[span.line - 1 : span.end_line]
        rows[-1] = rows[-1][: span.end_column]
        rows[0] = " " * span.column + rows[0][span.column :]
        return parse_index_map("\n" * (span.line - 1) + "\n".join(rows), self.text.source.name)


def parse_graph(
    text: str, name: str = "<text>", arrays: Mapping[str, Array] | None = None, *, unread: bool = False
) -> Graph:
    """The graph of a text, with the functions that stand in it. `arrays` are the constants whose data does not.

    With `unread` some may be missing: of such a constant only the digest is known, and nothing can be run with it.
    Raises LayoutproofError for anything that is not understood, for missing or wrong arrays, and for a graph that is
    not well-formed.
    """
    tree, found = parse_module(Source(name, text.removeprefix("\ufeff")))
    check_depth(tree, found)
    words = Words(found)
    functions: dict[str, PrimFunc] = {}
    graphs: list[ast.FunctionDef] = []
    with limited_depth(found):
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and any(decorates(d, "prim_func") for d in node.decorator_list):
                function = PrimFuncReader(found, node, {"T"}, False).read()
                if function.name in functions:
                    raise words.fail(codes.TWO_FUNCTIONS, f"two functions are called {function.name}", node)
                functions[function.name] = function
            elif isinstance(node, ast.FunctionDef) and any(decorates(d, "graph") for d in node.decorator_list):
                graphs.append(node)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                raise words.fail(
                    codes.GRAPH_TEXT, "only functions decorated with T.prim_func or G.graph may stand here", node
                )
        if len(graphs) != 1:
            raise words.fail(codes.GRAPH_TEXT, f"expected one function decorated with G.graph, got {len(graphs)}", tree)
        return require_graph(
            _GraphReader(words, functions, arrays if arrays is not None else {}, unread).read(graphs[0])
        )


class _GraphReader:
    """Reads the one function of steps."""

    def __init__(
        self, words: Words, functions: Mapping[str, PrimFunc], arrays: Mapping[str, Array], unread: bool
    ) -> None:
        self.words = words
        self.functions = functions
        self.arrays = arrays
        self.unread = unread
        self.values: dict[str, Value] = {}
        self.constants: list[Constant] = []
        self.steps: list[Step] = []

    def read(self, node: ast.FunctionDef) -> Graph:
        """The graph, not yet checked."""
        given = node.args
        if (
            given.posonlyargs
            or given.kwonlyargs
            or given.vararg is not None
            or given.kwarg is not None
            or given.defaults
        ):
            raise self.words.fail(codes.GRAPH_TEXT, "inputs are plain parameters, without defaults", node)
        inputs = tuple(self._input(argument) for argument in given.args)
        *assignments, last = node.body
        for statement in assignments:
            self._statement(statement)
        if not isinstance(last, ast.Return) or last.value is None:
            raise self.words.fail(codes.GRAPH_TEXT, "a graph ends with `return` and the names of its outputs", last)
        items = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
        outputs = tuple(self._known(item).name for item in items)
        return Graph(node.name, inputs, tuple(self.constants), tuple(self.steps), outputs, self.words.text.span(node))

    def _input(self, argument: ast.arg) -> Value:
        note = argument.annotation
        if not isinstance(note, ast.Call) or not decorates(note, "Tensor"):
            raise self.words.fail(
                codes.GRAPH_TEXT, f'{argument.arg} is given as `{argument.arg}: G.Tensor((2, 3), "float32")`', argument
            )
        shape, dtype = self.words.arguments(note, 2)
        return self._define(
            argument.arg, Value(argument.arg, self.words.integers(shape), self.words.dtype(dtype)), argument
        )

    def _define(self, name: str, value: Value, node: ast.AST) -> Value:
        if name in self.values:
            raise self.words.fail(codes.TWO_VALUES, f"two values are called {name}", node)
        self.values[name] = value
        return value

    def _known(self, node: ast.expr) -> Value:
        if not isinstance(node, ast.Name):
            raise self.words.fail(codes.GRAPH_TEXT, "the name of a value is expected", node)
        if node.id not in self.values:
            raise self.words.fail(
                codes.NO_VALUE, f"no step before this makes {node.id}", node, self.words.near(node.id, self.values)
            )
        return self.values[node.id]

    def _statement(self, node: ast.stmt) -> None:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Call):
            raise self.words.fail(codes.GRAPH_TEXT, "a step is `name = function(operands)`", node)
        target = node.targets[0]
        names = [self._name(item) for item in (target.elts if isinstance(target, ast.Tuple) else [target])]
        operator = self.words.operator(node.value)
        if operator is None:
            results = self._call(names, node.value)
        elif len(names) != 1:
            raise self.words.fail(codes.GRAPH_TEXT, f"G.{operator} makes one value", target)
        else:
            results = (self._operator(operator, names[0], node.value),)
        for value in results:
            self._define(value.name, value, target)

    def _name(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self.words.fail(codes.GRAPH_TEXT, "the name of a value is expected", node)
        return node.id

    def _call(self, names: list[str], node: ast.Call) -> tuple[Value, ...]:
        assert isinstance(node.func, ast.Name)
        function = self.functions.get(node.func.id)
        if function is None:
            help = self.words.near(node.func.id, self.functions)
            raise self.words.fail(codes.GRAPH_NAME, f"there is no function called {node.func.id}", node.func, help)
        if node.keywords:
            raise self.words.fail(codes.GRAPH_TEXT, "operands are given in their order", node.keywords[0].value)
        operands = tuple(self._known(argument).name for argument in node.args)
        made = signature_of(function).results
        if len(made) != len(names):
            raise self.words.fail(
                codes.OPERANDS, f"{function.name} makes {len(made)} values, there are {len(names)} names", node
            )
        results = tuple(Value(name, shape_of(buffer), buffer.dtype) for name, buffer in zip(names, made, strict=True))
        self.steps.append(Call(results, function, operands, self.words.text.span(node)))
        return results

    def _operator(self, operator: str, name: str, node: ast.Call) -> Value:
        if operator == "constant":
            return self._constant(name, node)
        step = {"layout_transform": self._transform, "pad": self._pad, "crop": self._crop}[operator](name, node)
        self.steps.append(replace(step, span=self.words.text.span(node)))
        return step.results[0]

    def _transform(self, name: str, node: ast.Call) -> Step:
        operand, written = self.words.arguments(node, 2)
        value, index_map = self._known(operand), self.words.index_map(written)
        try:
            shape = box_of(index_map, value.shape)
        except LayoutproofError as problem:
            raise self.words.fail(codes.TRANSFORM_MAP, problem.diagnostics[0].message, written) from problem
        return LayoutTransform(Value(name, shape, value.dtype), value.name, index_map)

    def _pad(self, name: str, node: ast.Call) -> Step:
        operand, pairs, written = self.words.arguments(node, 3)
        value = self._known(operand)
        widths = self.words.pairs(pairs)
        if len(widths) != len(value.shape):
            raise self.words.fail(codes.PAD_WIDTHS, f"the widths {list(widths)} do not fit {value}", pairs)
        shape = tuple(extent + before + after for extent, (before, after) in zip(value.shape, widths, strict=True))
        return Pad(Value(name, shape, value.dtype), value.name, widths, self.words.scalar(written, value.dtype))

    def _crop(self, name: str, node: ast.Call) -> Step:
        operand, starts, sizes, known = self.words.arguments(node, 3, "cropped_value")
        value = self._known(operand)
        cropped = None if known is None else self.words.scalar(known, value.dtype)
        box = self.words.integers(sizes)
        return Crop(Value(name, box, value.dtype), value.name, self.words.integers(starts), box, cropped)

    def _constant(self, name: str, node: ast.Call) -> Value:
        shape, dtype, data, digest = self.words.arguments(node, 2, "data", "sha256")
        value = Value(name, self.words.integers(shape), self.words.dtype(dtype))
        if (data is None) is (digest is None):
            raise self.words.fail(
                codes.CONSTANT_DATA,
                "a constant has `data` or the `sha256` of an array that is given beside the text",
                node,
            )
        unread = None
        if data is not None:
            array = self._inline(value, data)
        elif name in self.arrays:
            array = np.asarray(self.arrays[name])
        elif self.unread and all(extent > 0 for extent in value.shape):
            unread, array = (
                self.words.string(digest),
                np.broadcast_to(np.zeros((), numpy_dtype(value.dtype)), value.shape),
            )
        else:
            raise self.words.fail(
                codes.CONSTANT_DATA, f"the array of {name} is missing", node, _arrays_there(self.arrays)
            )
        constant = Constant(value, array, self.words.text.span(node), unread)
        fits = (array.shape, array.dtype) == (value.shape, numpy_dtype(value.dtype))
        if digest is not None and not (fits and constant.digest == self.words.string(digest)):
            raise self.words.fail(
                codes.CONSTANT_DATA, f"the array of {name} is not the one that the text speaks of", digest
            )
        self.constants.append(constant)
        return value

    def _inline(self, value: Value, node: ast.expr) -> Array:
        elements = self.words.numbers(node, value.dtype)
        array = np.array(elements, dtype=numpy_dtype(value.dtype))
        if array.size != prod(value.shape):
            raise self.words.fail(
                codes.CONSTANT_DATA, f"{value} has another number of elements than these {array.size}", node
            )
        return array.reshape(value.shape)


def _arrays_there(arrays: Iterable[str]) -> str:
    return f"given are {', '.join(arrays)}" if arrays else "none are given beside the text"
