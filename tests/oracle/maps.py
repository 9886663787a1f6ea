"""Index maps by brute force: what is true of a map on a small domain, found by evaluating it at every point.

It shares no code with the evaluator or the verifier: the map's text is run by Python itself, on numpy arrays of all
logical indices at once. Predicates and inverses are run the same way, or cell by cell with plain integers where the box
is small.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALAR_CELLS = 4096
"""Boxes up to this many cells are visited with plain Python integers, as a reader of the text would."""

Ints = NDArray[np.int64]
Symbols = Mapping[str, int]


def _truncdiv(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (abs(a) // abs(b))


def _truncmod(a: Any, b: Any) -> Any:
    return a - b * _truncdiv(a, b)


NUMPY_NAMES: dict[str, Any] = {
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "select": np.where,
    "if_then_else": np.where,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
    "_and": np.logical_and,
    "_or": np.logical_or,
    "_not": np.logical_not,
    "__builtins__": {},
}


class _Elementwise(ast.NodeTransformer):
    """`and`, `or`, `not` and chained comparisons as function calls that work on arrays."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "_and" if isinstance(node.op, ast.And) else "_or"
        return _fold(name, [self.visit(value) for value in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.Call(ast.Name("_not", ast.Load()), [operand], [])
        return ast.UnaryOp(node.op, operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        links: list[ast.expr] = [
            ast.Compare(a, [op], [b]) for (a, b), op in zip(pairwise(sides), node.ops, strict=True)
        ]
        return _fold("_and", links)


def _fold(name: str, terms: list[ast.expr]) -> ast.expr:
    result = terms[0]
    for term in terms[1:]:
        result = ast.Call(ast.Name(name, ast.Load()), [result, term], [])
    return result


def _compiled(names: Sequence[str], body: ast.expr, scope: Mapping[str, Any]) -> Callable[..., Any]:
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    tree = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    function: Callable[..., Any] = eval(compile(tree, "<map>", "eval"), dict(scope))
    return function


def on_arrays(names: Sequence[str], body: ast.expr, symbols: Symbols) -> Callable[..., Any]:
    """`body` as a function of arrays of values for `names`."""
    return _compiled(names, _Elementwise().visit(copy.deepcopy(body)), {**symbols, **NUMPY_NAMES})


def on_integers(names: Sequence[str], body: ast.expr, symbols: Symbols) -> Callable[..., Any]:
    """`body` as a function of plain integers, with nothing in scope but the symbols."""
    return _compiled(names, body, {**symbols, "__builtins__": {}})


@dataclass(frozen=True)
class MapText:
    """The parts of `lambda i, j: [i, AXIS_SEPARATOR, j]`."""

    names: tuple[str, ...]
    outputs: tuple[ast.expr, ...]
    separators: tuple[int, ...]


def read_map(text: str) -> MapText:
    """The parts of a map's text; a separator is the index of the axis before it."""
    tree = ast.parse(text, mode="eval").body
    assert isinstance(tree, ast.Lambda) and isinstance(tree.body, ast.List), text
    outputs: list[ast.expr] = []
    separators: list[int] = []
    for entry in tree.body.elts:
        if isinstance(entry, ast.Name) and entry.id == "AXIS_SEPARATOR":
            separators.append(len(outputs) - 1)
        else:
            outputs.append(entry)
    return MapText(tuple(argument.arg for argument in tree.args.args), tuple(outputs), tuple(separators))


def images(text: str, points: Sequence[Ints], symbols: Symbols | None = None) -> Ints:
    """One row per point: the physical index of the logical one. Raises FloatingPointError for a division by zero."""
    parts = read_map(text)
    count = len(points[0]) if points else 1
    with np.errstate(divide="raise", invalid="raise"):
        columns = [on_arrays(parts.names, output, symbols or {})(*points) for output in parts.outputs]
    return np.stack([np.broadcast_to(np.asarray(column, dtype=np.int64), (count,)) for column in columns], axis=1)


def all_points(shape: Sequence[int]) -> list[Ints]:
    """Every index of the box, row-major, one flat array per axis."""
    return [axis.reshape(-1) for axis in np.meshgrid(*(np.arange(n, dtype=np.int64) for n in shape), indexing="ij")]


def digit(output: ast.expr, names: Sequence[str], symbols: Symbols) -> int | None:
    """The extent of an axis that is written as a digit, `e % k` or `e & (2**m - 1)`; else None."""
    if not isinstance(output, ast.BinOp):
        return None
    if isinstance(output.op, ast.Mod) and not {n.id for n in ast.walk(output.right) if isinstance(n, ast.Name)} & set(
        names
    ):
        extent = int(on_integers((), output.right, symbols)())
        return extent if extent > 0 else None
    if isinstance(output.op, ast.BitAnd):
        for side in (output.right, output.left):
            mask = 0 if any(isinstance(n, ast.Name) for n in ast.walk(side)) else int(on_integers((), side, symbols)())
            if mask > 0 and not mask & (mask + 1):
                return mask + 1
    return None


@dataclass(frozen=True)
class Truth:
    """What is true of one map on one concrete box.

    `image` has one row per logical index in row-major order; `shape` is the physical shape by the digit rule, None
    where the image goes below zero at the logical index `negative`.
    """

    text: str
    logical: tuple[int, ...]
    points: tuple[Ints, ...]
    image: Ints
    injective: bool
    negative: tuple[int, ...] | None
    shape: tuple[int, ...] | None
    separators: tuple[int, ...]

    @property
    def box_cells(self) -> int:
        """The number of physical cells."""
        assert self.shape is not None
        return math.prod(self.shape)

    @property
    def cells(self) -> int:
        """The number of padding cells."""
        return self.box_cells - len(np.unique(self.flat))

    @property
    def bijective(self) -> bool:
        """One logical index for every physical cell."""
        return self.injective and self.cells == 0

    @property
    def flat(self) -> Ints:
        """The row-major offset in the physical box of every logical index."""
        assert self.shape is not None
        offsets = np.zeros(len(self.image), dtype=np.int64)
        for axis, extent in enumerate(self.shape):
            offsets = offsets * extent + self.image[:, axis]
        return offsets

    @property
    def padding(self) -> NDArray[np.bool_]:
        """For every physical cell, row-major, whether no logical index comes there."""
        free = np.ones(self.box_cells, dtype=np.bool_)
        free[self.flat] = False
        return free

    @property
    def flattened(self) -> tuple[int, ...]:
        """The extents after flattening: one per axis group."""
        assert self.shape is not None
        ends = [0, *(axis + 1 for axis in self.separators), len(self.shape)]
        return tuple(math.prod(self.shape[a:b]) for a, b in pairwise(ends))


def truth(text: str, shape: Sequence[int], symbols: Symbols | None = None) -> Truth:
    """All facts of the map by trying every logical index. Raises FloatingPointError if the map divides by zero."""
    known = symbols or {}
    parts = read_map(text)
    points = all_points(shape)
    image = images(text, points, known)
    below = np.flatnonzero((image < 0).any(axis=1))
    injective = len(np.unique(image, axis=0)) == len(image) if len(parts.outputs) else len(image) <= 1
    negative = tuple(int(axis[below[0]]) for axis in points) if len(below) else None
    physical = None
    if negative is None:
        digits = [digit(output, parts.names, known) for output in parts.outputs]
        highest = image.max(axis=0) if len(image) else np.full(len(digits), -1)
        physical = tuple(int(top) + 1 if k is None else k for k, top in zip(digits, highest, strict=True))
    return Truth(text, tuple(shape), tuple(points), image, injective, negative, physical, parts.separators)


def physical_names(rank: int) -> list[str]:
    """`p0, p1, ...`."""
    return [f"p{axis}" for axis in range(rank)]


def cells_where(text: str, box: Sequence[int], symbols: Symbols | None = None) -> NDArray[np.bool_]:
    """For every cell of the box, row-major, whether the predicate holds; plain integers where the box is small.

    Raises ZeroDivisionError (FloatingPointError on large boxes) where the text divides by zero.
    """
    body = ast.parse(text, mode="eval").body
    names = physical_names(len(box))
    if math.prod(box) <= SCALAR_CELLS:
        scalar = on_integers(names, body, symbols or {})
        return np.fromiter((bool(scalar(*cell)) for cell in product(*map(range, box))), dtype=np.bool_)
    with np.errstate(divide="raise", invalid="raise"):
        values = on_arrays(names, body, symbols or {})(*all_points(box))
    return np.broadcast_to(np.asarray(values, dtype=np.bool_), (math.prod(box),))


def unmapped(text: str, box: Sequence[int], symbols: Symbols | None = None) -> Ints:
    """The inverse's value at every cell of the box, row-major, one row per cell. Raises as `cells_where` does."""
    parts = read_map(text)
    assert parts.names == tuple(physical_names(len(box))), f"an inverse of {len(box)} axes takes {parts.names}"
    if math.prod(box) <= SCALAR_CELLS:
        scalar = on_integers(parts.names, ast.List(list(parts.outputs), ast.Load()), symbols or {})
        rows = [scalar(*cell) for cell in product(*map(range, box))]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(parts.outputs))
    return images(text, all_points(box), symbols)


_ALLOWED = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.Compare),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitXor, ast.BitAnd, ast.LShift, ast.RShift),
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.Lt, ast.LtE, ast.Eq, ast.GtE, ast.Gt, ast.NotEq),
)


def foreign(text: str, names: Sequence[str]) -> list[str]:
    """What a predicate or an entry of an inverse contains besides the operators and names that can be evaluated."""
    found = []
    for node in ast.walk(ast.parse(text, mode="eval")):
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and not isinstance(node.value, int)):
            found.append(ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__)
        elif isinstance(node, ast.Name) and node.id not in names:
            found.append(node.id)
    return found
