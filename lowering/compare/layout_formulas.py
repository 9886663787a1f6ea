"""Layouts as they are written: index expressions of the new program, with its loops as functions of an old cell.

A swizzle stays a swizzle, a block a division and a remainder, and a symbolic extent symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice, product, takewhile

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Expr, IntImm, Var, binary, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interval import interval_of
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, map_children, substitute, walk
from layoutproof.lowering.arith.affine import fold_constants
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Scope
from layoutproof.lowering.compare.layout_equations import Spot
from layoutproof.verify.flow.models import NEW, RewriteModel
from layoutproof.verify.isl.encode import NotQuasiAffine
from layoutproof.verify.isl.instance_sets import Link, function_between
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.isl.proposing import at_point, called, coordinate, functions_of, span

_CELL, _AT = "cell", "at"
_BITWISE = (BinaryOp.BITXOR, BinaryOp.BITAND, BinaryOp.BITOR)
# Integer sets take bitwise operations apart bit by bit where there are not more values than this.
_WIDE = 1 << 20
# Short enough: a quotient or a remainder of an index.
_SHORT = 3
# So many corners of a logical shape are looked at before all of its cells are; symbols are at least so large there.
_CORNERS, _SIZE = 8, 61


class Guess(StrEnum):
    """Whether parts of indices that are no function of the cell are taken for indices of it: the largest such parts, or
    the smallest.
    """

    NONE = "none"
    SMALL = "small"
    LARGE = "large"


def written_out(
    rewrite_model: RewriteModel,
    names: Sequence[Var],
    shape: Sequence[Expr],
    box: Sequence[Expr],
    spots: Sequence[Spot],
    guess: Guess = Guess.NONE,
) -> Iterator[IndexMap]:
    """The layouts into `box` that accesses state by themselves, each once: `names` are the indices of a cell of the
    logical `shape`.

    An access states none if a part of its indices is no function of the cell, unless `guess` takes it for one.
    """
    seen: set[tuple[Expr, ...]] = set()
    for spot in spots:
        reading = _Reading(rewrite_model, names, shape, spot, guess)
        found = (reading.expressed(index) for index in spot.coordinates)
        outputs = [output for output in takewhile(lambda each: each is not None, found) if output is not None]
        if len(outputs) < len(spot.coordinates):
            continue
        # Where integer sets cannot say a bitwise operation, stores one for one may still do, and cost much less.
        for each in (outputs, [bounded(output, names, shape) for output in outputs]):
            told = with_ones(each, names, shape, box)
            if told not in seen:
                seen.add(told)
                yield IndexMap(tuple(names), told)


@dataclass(slots=True)
class _Reading:
    """The numbers of one access as functions of the cell. `taken` are the guessed indices of the cell, `samples` the
    accesses of a few cells, and `everywhere` whether each of these cells has any. `extents` are those of the shape at
    the samples' symbols.
    """

    rewrite_model: RewriteModel
    names: Sequence[Var]
    shape: Sequence[Expr]
    spot: Spot
    guess: Guess
    taken: dict[Expr, Expr] = field(default_factory=dict)
    samples: list[Link] = field(default_factory=list)
    extents: list[int] = field(default_factory=list)
    everywhere: bool = False

    def __post_init__(self) -> None:
        symbols = {name: _SIZE + 22 * k for k, name in enumerate(self.rewrite_model.workspace.params)}
        try:
            self.extents = [int(evaluate(extent, symbols)) for extent in self.shape]
        except Trap:
            return
        corners = islice(product(*((0, extent - 1) if extent > 1 else (0,) for extent in self.extents)), _CORNERS)
        cells = (*corners, tuple(extent // 2 for extent in self.extents))
        found = [coalesced(at_point(self.spot.instances, cell, list(symbols.values()))) for cell in cells]
        self.samples = [link for link in found if not link.is_empty()]
        self.everywhere = len(self.samples) == len(found)

    def expressed(self, expr: Expr) -> Expr | None:
        """A number over the loops of the new program, over the indices of the old cell: as one expression or part by
        part, whichever is shorter. None if some part is no function of the cell.
        """
        if not free_variables(expr):
            return _number(expr)
        values = self._values(expr)
        whole = None
        plain = not any(isinstance(node, Binary) and node.op in _BITWISE for node in walk(expr))
        if (
            values is not None
            and plain
            and all(sample.apply_range(values).is_single_valued() for sample in self.samples)
        ):
            whole = self._shorter(
                function_of_cell(self.rewrite_model, self.names, self.spot.instances.apply_range(values))
            )
            if whole is not None and self.everywhere and _length(whole) <= _SHORT:
                return whole
        if whole is None and self.guess is Guess.LARGE and (guessed := self._guessed(expr, values)) is not None:
            return guessed
        parts = self._by_parts(expr)
        if parts is None and whole is None and self.guess is Guess.SMALL:
            return self._guessed(expr, values)
        if parts is None or whole is None:
            return parts if whole is None else whole
        # What holds for some cells may be shorter than what holds for all.
        return min(parts, whole, key=_length) if self.everywhere else parts

    def _by_parts(self, expr: Expr) -> Expr | None:
        if not isinstance(expr, Binary):
            return None
        taken = dict(self.taken)
        left = self.expressed(expr.lhs)
        right = self.expressed(expr.rhs) if left is not None else None
        if left is None or right is None:
            self.taken = taken
            return None
        return self._shorter(fold_constants(binary(expr.op, left, right)))

    def _shorter(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else simplified(expr, self.names, self.shape)

    def _values(self, expr: Expr) -> Link | None:
        """New instance -> the number that it has there; None if integer sets cannot say it."""
        statement = self.spot.statement
        try:
            return function_between(
                self.rewrite_model.encoder_of(statement.dims), f"{NEW}{statement.number}", [expr], _AT
            )
        except NotQuasiAffine:
            return None

    def _guessed(self, expr: Expr, values: Link | None) -> Expr | None:
        """The index of the cell that a number may be, up to a constant: one index for one number, its namesake
        first.
        """
        if values is None or expr in self.taken:
            return self.taken.get(expr)
        samples = [called(sample.apply_range(values), _CELL, _AT) for sample in self.samples]
        spans = [each for sample in samples if (each := span(sample)) is not None]
        if not spans or len(spans) < len(samples):
            return None
        low, high = min(each[0] for each in spans), max(each[1] for each in spans)
        used = {variable for taken in self.taken.values() for variable in free_variables(taken)}
        called_so = {variable.name for variable in free_variables(expr)}
        for axis, name in sorted(enumerate(self.names), key=lambda each: each[1].name not in called_so):
            if name not in used and high - low < self.extents[axis]:
                for shift in dict.fromkeys((0, low)):
                    if all(self._index(axis, shift, sample).is_subset(sample) for sample in samples):
                        self.taken[expr] = name + shift if shift else name
                        return self.taken[expr]
        return None

    def _index(self, axis: int, shift: int, cells: Link) -> Link:
        """An index of the cell, plus a constant, at the cells from which a link leads."""
        encoder = self.rewrite_model.encoder([f"c{k}" for k in range(len(self.names))])
        place = Var(f"c{axis}", self.names[axis].dtype)
        return function_between(encoder, _CELL, [place + shift if shift else place], _AT).intersect_domain(
            cells.domain()
        )


def _number(expr: Expr) -> Expr | None:
    try:
        return const(int(evaluate(expr, {})), expr.dtype)
    except Trap:
        return None


def _length(expr: Expr) -> int:
    return sum(1 for _ in walk(expr))


def function_of_cell(rewrite_model: RewriteModel, names: Sequence[Var], link: Link) -> Expr | None:
    """One number for each cell, as an expression over its indices that holds on the link's domain; None if there are
    several numbers, or no one expression.
    """
    if not link.is_single_valued():
        return None
    places = [f"c{axis}" for axis in range(len(names))]
    encoder = rewrite_model.encoder(places)
    pieces = functions_of(link, encoder.space, dict(zip(places, names, strict=True)))
    outputs = {piece.outputs[0]: None for piece in pieces}
    cells: dict[Var, Expr] = {name: Var(place, name.dtype) for name, place in zip(names, places, strict=True)}
    for output in sorted(outputs, key=lambda each: not free_variables(each)):
        try:
            whole = function_between(encoder, _CELL, [substitute(output, cells)], _AT)
        except NotQuasiAffine:
            continue
        if called(link, _CELL, _AT).is_subset(whole):
            return output
    return None


def layout_of(rewrite_model: RewriteModel, names: Sequence[Var], link: Link) -> IndexMap | None:
    """A relation from old cells to new ones as an index map; None if it is no function, or needs several
    expressions.
    """
    outputs: list[Expr] = []
    for position in range(link.range().n_dim()):
        found = function_of_cell(rewrite_model, names, coordinate(link, position))
        if found is None:
            return None
        outputs.append(found)
    return IndexMap(tuple(names), tuple(outputs))


def bounded(expr: Expr, names: Sequence[Var], shape: Sequence[Expr]) -> Expr:
    """The expression with a remainder around each operand of a bitwise operation that shows its number of bits."""
    scope = _inside(names, shape)

    def visit(node: Node) -> Node:
        rebuilt = map_children(node, visit)
        if not isinstance(rebuilt, Binary) or rebuilt.op not in _BITWISE:
            return rebuilt
        left, right = _cut(rebuilt.lhs, scope), _cut(rebuilt.rhs, scope)
        if rebuilt.op is not BinaryOp.BITAND and const(0) in (left, right):
            return right if left == const(0) else left
        return binary(rebuilt.op, left, right)

    result = visit(expr)
    assert isinstance(result, Expr)
    return result


def _cut(operand: Expr, scope: Scope) -> Expr:
    found = scope.bounds(operand)
    if interval_of(operand, {}).high < _WIDE or found.low < 0 or found.high >= _WIDE:
        return operand
    return operand % (1 << int(found.high).bit_length())


def with_ones(
    outputs: Sequence[Expr], names: Sequence[Var], shape: Sequence[Expr], box: Sequence[Expr]
) -> tuple[Expr, ...]:
    """Outputs with the index of an axis of extent 1 in the place of a 0: the axes one for one, in order."""
    used = {variable for output in outputs for variable in free_variables(output)}
    ones = (name for name, extent in zip(names, shape, strict=True) if _is_one(extent) and name not in used)
    paired = zip(outputs, box, strict=True) if len(outputs) == len(box) else ()
    found = tuple(next(ones, output) if _is_one(extent) and output == const(0) else output for output, extent in paired)
    return found if found else tuple(outputs)


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, IntImm) and extent.value == 1


def simplified(expr: Expr, names: Sequence[Var], shape: Sequence[Expr]) -> Expr:
    """The expression in its shortest form, for indices inside the shape."""
    found = IndexSimplifier(_inside(names, shape)).simplify(expr)
    return const(found.value) if isinstance(found, IntImm) else found


def _inside(names: Sequence[Var], shape: Sequence[Expr]) -> Scope:
    """What is known of indices inside a shape."""
    scope = Scope()
    for name, extent in zip(names, shape, strict=True):
        scope = scope.with_range(name, const(0, name.dtype), extent)
    return scope
