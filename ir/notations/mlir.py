"""MLIR's layouts: `affine_map<(d0)[s0] -> (d0 floordiv 4)>`, `memref<4x8xf32, strided<[8, 1], offset: 3>>`, and the
tiles of a pack, `outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [8, 2]`.

`floordiv` and `mod` round down, `ceildiv` up; `?` is a symbol. Source: the dialect documentation of MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.notation import (
    Context,
    Notation,
    Scanner,
    WrittenLayout,
    check_agrees,
    index_variables,
    scaled,
    whole,
)
from layoutproof.ir.notations.strides import strided_map
from layoutproof.ir.visit import free_variables

_OPERATOR = re.compile(r"\*|(?:floordiv|ceildiv|mod)(?![A-Za-z0-9_])")
_SIGN = re.compile(r"[+-](?!>)")
_NAME = re.compile(r"[A-Za-z_$.][A-Za-z0-9_$.]*")
_MAX_NESTING = 100


def read_mlir(text: str, context: Context, name: str = "<layout>") -> WrittenLayout:
    """The map of an affine map, of a memref type or of a pack. Raises LayoutproofError."""
    scanner = Scanner(text, "MLIR layout", name)
    if scanner.optional("memref<"):
        return _memref(scanner, context)
    if "inner_tiles" in text:
        return _pack(scanner, context)
    if scanner.optional("strided<"):
        shape = context.needed(scanner.source, "strided<...> does not say its shape")
        index_map = _strided(scanner, shape)
        scanner.end()
        return WrittenLayout(Notation.MLIR, text, index_map, shape)
    index_map = _AffineReader(scanner).affine_map()
    scanner.end()
    return WrittenLayout(Notation.MLIR, text, index_map, context.shape)


class _AffineReader:
    """Reads affine maps; `known` are the dimensions, `symbols` what is in brackets."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.known: dict[str, Var] = {}
        self.dims: tuple[Var, ...] = ()

    def affine_map(self) -> IndexMap:
        """`affine_map<(d0, d1)[s0] -> (...)>`, or the same without its frame."""
        scanner = self.scanner
        framed = scanner.optional("affine_map<")
        dims = self.names("(", ")")
        symbols = self.names("[", "]") if scanner.sees("[") else ()
        self.dims = tuple(Var(name) for name in dims)
        self.known = {name: Var(name) for name in (*dims, *symbols)}
        scanner.expect("->", "after the dimensions")
        scanner.expect("(", "around the results")
        outputs: list[Expr] = []
        while not scanner.optional(")"):
            if outputs:
                scanner.expect(",", "or ')'")
            outputs.append(self.sum(0))
        if framed:
            scanner.expect(">", "at the end of affine_map<")
        return IndexMap(self.dims, tuple(outputs))

    def names(self, opening: str, closing: str) -> tuple[str, ...]:
        """Names in brackets."""
        scanner = self.scanner
        scanner.expect(opening)
        found: list[str] = []
        while not scanner.optional(closing):
            if found:
                scanner.expect(",", f"or {closing!r}")
            start = scanner.position
            name = scanner.name("the name of a dimension or symbol")
            if name in found or name in self.known:
                raise scanner.fail(f"{name} is named twice", start, start + len(name))
            found.append(name)
        self.known.update((name, Var(name)) for name in found)
        return tuple(found)

    def sum(self, depth: int) -> Expr:
        """Terms with `+` and `-`."""
        if depth > _MAX_NESTING:
            raise self.scanner.fail("the expression is nested too deep")
        result = self.term(depth)
        while (sign := self.scanner.matched(_SIGN)) is not None:
            other = self.term(depth)
            result = result + other if sign[0] == "+" else result - other
        return result

    def term(self, depth: int) -> Expr:
        """Factors with `*`, `floordiv`, `ceildiv` and `mod`, of one precedence, from left to right."""
        result = self.factor(depth)
        while True:
            start = self.scanner.position
            match = self.scanner.matched(_OPERATOR)
            if match is None:
                return result
            result = self.combined(match[0], result, self.factor(depth), start)

    def combined(self, operator: str, left: Expr, right: Expr, start: int) -> Expr:
        """One operation, as affine expressions allow it."""
        if operator == "*":
            if self.uses_dims(left) and self.uses_dims(right):
                raise self.scanner.fail("one factor is a number or a symbol", start, start + 1)
            return left * right
        if self.uses_dims(right):
            message = f"the right side of {operator} is a number or a symbol"
            raise self.scanner.fail(message, start, start + len(operator))
        if isinstance(right, IntImm) and right.value <= 0:
            message = f"the right side of {operator} is positive, not {right.value}"
            raise self.scanner.fail(message, start, start + len(operator))
        if operator == "mod":
            return left % right
        return left // right if operator == "floordiv" else -(-left // right)

    def uses_dims(self, expr: Expr) -> bool:
        """Whether a dimension occurs."""
        return any(v in self.dims for v in free_variables(expr))

    def factor(self, depth: int) -> Expr:
        """A number, a name, a negated factor, or a sum in parentheses."""
        scanner = self.scanner
        if scanner.optional("("):
            result = self.sum(depth + 1)
            scanner.expect(")")
            return result
        if scanner.optional("-"):
            if depth > _MAX_NESTING:
                raise scanner.fail("the expression is nested too deep")
            operand = self.factor(depth + 1)
            return const(-operand.value) if isinstance(operand, IntImm) else -operand
        start = scanner.position
        match = scanner.matched(_NAME)
        if match is None:
            return const(scanner.integer("a number, a dimension or a symbol"))
        if match[0] not in self.known:
            names = ", ".join(self.known)
            raise scanner.fail(f"{match[0]} is none of the names {names}", start, match.end())
        return self.known[match[0]]


_DIMENSION = re.compile(r"([0-9]+|\?)x")
_ELEMENT = re.compile(r"[A-Za-z!][A-Za-z0-9_.!]*(?:<[^<>]*>)?")
_SIZE = re.compile(r"\?|-?[0-9]+")
_ALIAS = re.compile(r"#\w+(?![\w.<])")
_SPACE = re.compile(r"[0-9]+(?: *: *\w+)?|#[\w.]+(?:<[^<>]*>)?|\"[^\"]*\"")


def _memref(scanner: Scanner, context: Context) -> WrittenLayout:
    shape: list[Expr] = []
    while (match := scanner.matched(_DIMENSION)) is not None:
        if match[1] == "0" or len(match[1]) > 18:
            raise scanner.fail("every extent is at least 1, and fits 64 bits", match.start(), match.end())
        shape.append(Var(f"n{len(shape)}") if match[1] == "?" else const(int(match[1])))
    if scanner.matched(_ELEMENT) is None:
        raise scanner.fail(f"an element type is expected, not {scanner.next}")
    extents = _with_given(scanner, shape, context)
    index_map: IndexMap | None = None
    while scanner.optional(","):
        start = scanner.position
        found = _layout_or_space(scanner, extents)
        if found is not None and index_map is not None:
            raise scanner.fail("a type has one layout", start, scanner.position)
        index_map = found if found is not None else index_map
    scanner.expect(">", "at the end of memref<")
    scanner.end()
    whole_map = index_map if index_map is not None else _row_major(extents)
    return WrittenLayout(Notation.MLIR, scanner.text, whole_map, extents)


def _layout_or_space(scanner: Scanner, extents: Sequence[Expr]) -> IndexMap | None:
    """The layout of a type on its shape; None for a memory space."""
    if scanner.optional("strided<"):
        return _strided(scanner, extents)
    if scanner.sees("affine_map<"):
        index_map = _AffineReader(scanner).affine_map()
        if len(index_map.inputs) != len(extents):
            message = f"the affine map takes {len(index_map.inputs)} indices, the type has {len(extents)} axes"
            raise error(codes.NOTATION, f"MLIR layout: {message}", whole(scanner.source))
        return index_map
    alias = scanner.matched(_ALIAS)
    if alias is not None:
        raise scanner.fail("an alias may stand for a layout: write what it stands for", alias.start(), alias.end())
    if scanner.matched(_SPACE) is None:
        raise scanner.fail(f"strided<...>, affine_map<...> or a memory space is expected, not {scanner.next}")
    return None


def _with_given(scanner: Scanner, own: Sequence[Expr], context: Context) -> tuple[Expr, ...]:
    """The type's shape, its `?` replaced by the extents that are given."""
    check_agrees(own, context, scanner.source)
    return tuple(own) if context.shape is None else context.shape


def _row_major(shape: Sequence[Expr]) -> IndexMap:
    strides: list[Expr] = []
    step: Expr = const(1)
    for extent in reversed(shape):
        strides.append(step)
        both = (step.value * extent.value) if isinstance(step, IntImm) and isinstance(extent, IntImm) else None
        step = const(both) if both is not None else scaled(extent, step)
    return strided_map(shape, tuple(reversed(strides)))


def _strided(scanner: Scanner, shape: Sequence[Expr]) -> IndexMap:
    """`[8, 1], offset: 3>`, after `strided<`."""
    start = scanner.position
    scanner.expect("[")
    strides: list[Expr] = []
    while not scanner.optional("]"):
        if strides:
            scanner.expect(",", "or ']'")
        strides.append(_size(scanner, f"s{len(strides)}"))
    if len(strides) != len(shape):
        raise scanner.fail(f"{len(strides)} strides for {len(shape)} axes", start, scanner.position)
    offset: Expr = const(0)
    if scanner.optional(","):
        scanner.expect("offset")
        scanner.expect(":")
        offset = _size(scanner, "offset")
    scanner.expect(">", "at the end of strided<")
    return strided_map(shape, strides, offset if not _is_zero(offset) else 0)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, IntImm) and expr.value == 0


def _size(scanner: Scanner, symbol: str) -> Expr:
    match = scanner.matched(_SIZE)
    if match is None:
        raise scanner.fail(f"an integer or ? is expected, not {scanner.next}")
    if len(match[0]) > 19:
        raise scanner.fail("the number does not fit 64 bits", match.start(), match.end())
    return Var(symbol) if match[0] == "?" else const(int(match[0]))


_LIST = re.compile(r"(outer_dims_perm|inner_dims_pos|inner_tiles)\s*=\s*(?=\[)")
_TENSOR = re.compile(r"(?:tensor|memref)<((?:(?:[0-9]+|\?)x)+)[A-Za-z]")


def _pack(scanner: Scanner, context: Context) -> WrittenLayout:
    lists: dict[str, list[int]] = {}
    for match in _LIST.finditer(scanner.text):
        if match[1] in lists:
            raise scanner.fail(f"{match[1]} is given twice", match.start(), match.end())
        scanner.position = match.end()
        lists[match[1]] = scanner.listed("[", "]", "an integer")
    shape = context.shape if context.shape is not None else _plain_shape(scanner.text)
    rank = len(shape) if shape is not None else _rank_of(lists)
    if rank is None:
        shape = context.needed(scanner.source, "the pack does not say how many axes there are")
        rank = len(shape)
    index_map = packed_map(rank, lists, scanner)
    return WrittenLayout(Notation.MLIR, scanner.text, index_map, shape)


def _plain_shape(text: str) -> tuple[Expr, ...] | None:
    """The shape of the tensor that is not packed: of a pack's text the first type, of an unpack's the last."""
    types = _TENSOR.findall(text)
    if not types:
        return None
    extents = types[-1 if "unpack" in text else 0].split("x")[:-1]
    return None if "?" in extents else tuple(const(int(extent)) for extent in extents)


def _rank_of(lists: Mapping[str, Sequence[int]]) -> int | None:
    return len(lists["outer_dims_perm"]) if "outer_dims_perm" in lists else None


def packed_map(rank: int, lists: Mapping[str, Sequence[int]], scanner: Scanner) -> IndexMap:
    """The map of a pack: tiled axes divided, permuted, then a digit for each tile. Raises LayoutproofError."""
    tiles = lists.get("inner_tiles", ())
    positions = lists.get("inner_dims_pos", range(len(tiles)))
    permutation = lists.get("outer_dims_perm", range(rank))
    span = whole(scanner.source)
    if len(positions) != len(tiles) or len(set(positions)) != len(tiles) or any(not 0 <= p < rank for p in positions):
        message = f"inner_dims_pos names {len(tiles)} different axes, one for each tile, from 0 to {rank - 1}"
        raise error(codes.NOTATION, f"MLIR layout: {message}", span)
    if sorted(permutation) != list(range(rank)):
        raise error(codes.NOTATION, f"MLIR layout: outer_dims_perm is no permutation of {rank} axes", span)
    if any(tile < 1 for tile in tiles):
        raise error(codes.NOTATION, "MLIR layout: a tile is at least 1", span)
    inputs = index_variables([f"d{axis}" for axis in range(rank)], [])
    size = dict(zip(positions, tiles, strict=True))
    outer = [inputs[axis] // size[axis] if size.get(axis, 1) > 1 else inputs[axis] for axis in permutation]
    inner = [inputs[axis] % tile for axis, tile in zip(positions, tiles, strict=True)]
    return IndexMap(inputs, (*outer, *inner))
