"""What xDSL parsed, as the plain data of `model`. The only file that looks into objects of xDSL.

Imported when a file is read: xDSL is optional.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.dialects.vector import CombiningKindAttr
from xdsl.ir import affine
from xdsl.utils.exceptions import ParseError, VerifyException

from layoutproof.importers.mlir import codes
from layoutproof.importers.mlir.model import (
    INDEX,
    AffineExpr,
    AffineMap,
    AffineSet,
    Block,
    Dim,
    Items,
    Num,
    Op,
    Operation2,
    Scalar,
    Shaped,
    Strided,
    Sym,
    Type,
    Value,
)
from layoutproof.importers.mlir.xdsl_parser import MlirParser
from layoutproof.ir.diagnostic import LayoutproofError, Source, Span, error
from layoutproof.ir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64


def parse(text: str, name: str) -> Op:
    """The module of a text. Raises LayoutproofError with the place of what cannot be read."""
    source = Source(name, text)
    lines = _Lines(source)
    for match in _STRINGS.finditer(text):
        if match["close"] == "":
            raise error(codes.MLIR_TEXT, "a string without its end", lines.span(match.start(), match.end()))
    parser = None
    try:
        parser = MlirParser(text, name)
        module = parser.parse_module()
    except ParseError as problem:
        said = problem.msg.strip()
        if "builtin.unregistered" in said:  # xDSL's name for an operation that it does not know
            said = f"the operation {text[: problem.span.start].split()[-1]} is not known"
        raise error(codes.MLIR_TEXT, said, lines.span(problem.span.start, problem.span.end)) from problem
    except RecursionError as problem:
        raise error(codes.MLIR_TEXT, f"{name} is nested too deep", lines.span(0, 1)) from problem
    except Exception as problem:
        if not _is_of_xdsl(problem):
            raise
        # What xDSL raises for attributes and operations that it refuses has no place; what is being read is it.
        at = parser.pos if parser is not None else 0
        said = f": {problem}" if isinstance(problem, VerifyException | ValueError | NotImplementedError) else ""
        raise error(codes.MLIR_TEXT, f"not read{said}", lines.span(at, at + 1)) from problem
    return _Converter(parser.places, lines).op(module)


# Comments, and strings with their end or without: xDSL needs time without bound to see that a string has none.
_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*(?P<close>"?)')


def _is_of_xdsl(problem: Exception) -> bool:
    """Whether an exception comes from xDSL, whose parsers and checks raise of all kinds; not from a parser here."""
    owner, place = "", problem.__traceback__
    while place is not None:
        package = str(place.tb_frame.f_globals.get("__name__")).partition(".")[0]
        owner = package if package in ("xdsl", "layoutproof") else owner
        place = place.tb_next
    return owner == "xdsl"


class _Lines:
    """Places in a text by the number of the character."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.starts = [0, *(n + 1 for n, c in enumerate(source.text) if c == "\n")]

    def span(self, start: int, end: int) -> Span:
        """From `start` to `end`, without white space behind."""
        while end > start + 1 and self.source.text[end - 1 : end].isspace():
            end -= 1
        first, last = bisect_right(self.starts, start), bisect_right(self.starts, max(end - 1, start))
        return Span(self.source, first, start - self.starts[first - 1], last, end - self.starts[last - 1])


class _Converter:
    def __init__(self, places: Mapping[Any, tuple[int, int]], lines: _Lines) -> None:
        self.places = places
        self.lines = lines
        self.values: dict[Any, Value] = {}
        self.here = lines.span(0, 1)

    def op(self, op: Any) -> Op:
        outside = self.here
        if op in self.places:
            self.here = self.lines.span(*self.places[op])
        unregistered = op.name == "builtin.unregistered"
        found = {**op.attributes, **op.properties}
        name = found.pop("op_name__").data if unregistered else op.name
        made = Op(
            name,
            Items(self.known(value) for value in op.operands),
            Items(self.value(result) for result in op.results),
            {key: self.attribute(value) for key, value in found.items()},
            (),
            self.here,
        )
        if op.successors:
            raise made.fail("branches between blocks are not translated")
        for value in made.operands:
            value.uses.append(made)
        for result in made.results:
            result.owner = made
        made.regions = tuple(tuple(self.block(block) for block in region.blocks) for region in op.regions)
        self.here = outside
        return made

    def block(self, block: Any) -> Block:
        made = Block(Items(self.value(argument) for argument in block.args))
        made.ops = Items(self.op(op) for op in block.ops)
        for position, op in enumerate(made.ops):
            op.parent, op.position = made, position
        return made

    def value(self, value: Any) -> Value:
        self.values[value] = Value(self.type(value.type), value.name_hint)
        return self.values[value]

    def known(self, value: Any) -> Value:
        if value not in self.values:
            raise error(codes.MLIR_TEXT, f"%{value.name_hint} is used before it is defined", self.here)
        return self.values[value]

    # ---- types

    def type(self, found: Any) -> Type:
        """A type of a value. Raises LayoutproofError for others."""
        if isinstance(found, builtin.MemRefType):
            element, inner = self.element(found.element_type)
            space = None if str(found.memory_space) in _USUAL_SPACE else str(found.memory_space)
            return Shaped("memref", _shape(found), element, self.layout(found.layout), inner, space)
        if isinstance(found, builtin.TensorType):
            if not isinstance(found.encoding, builtin.NoneAttr):
                raise self.unknown(found)
            return Shaped("tensor", _shape(found), self.scalar(found.element_type))
        if isinstance(found, builtin.VectorType):
            if any(bool(flag) for flag in found.get_scalable_dims()):
                raise self.unknown(found)
            return Shaped("vector", _shape(found), self.scalar(found.element_type))
        return self.scalar(found)

    def element(self, found: Any) -> tuple[Scalar, tuple[int, ...]]:
        if isinstance(found, builtin.VectorType):
            return self.scalar(found.element_type), tuple(int(extent) for extent in found.get_shape())
        return self.scalar(found), ()

    def scalar(self, found: Any) -> Scalar:
        if isinstance(found, builtin.IndexType):
            return INDEX
        kind = _DTYPES.get(str(found))
        if kind is None:
            raise self.unknown(found)
        return Scalar(kind)

    def layout(self, found: Any) -> AffineMap | Strided | None:
        if isinstance(found, builtin.NoneAttr):
            return None
        if isinstance(found, builtin.StridedLayoutAttr):
            strides = tuple(None if isinstance(s, builtin.NoneAttr) else s.data for s in found.strides)
            offset = found.offset
            return Strided(strides, None if isinstance(offset, builtin.NoneAttr) else offset.data)
        if isinstance(found, builtin.AffineMapAttr):
            made = affine_map(found.data)
            return None if made.is_identity else made
        raise self.unknown(found)

    def unknown(self, found: Any) -> LayoutproofError:
        return error(codes.MLIR_OPERATION, f"the type {found} is not translated", self.here)

    # ---- attributes

    def attribute(self, found: Any) -> Any:
        """An attribute as plain data; its text where it is of no kind that an operation asks for."""
        for kind, convert in _ATTRIBUTES:
            if isinstance(found, kind):
                return convert(self, found)
        return str(found)


_USUAL_SPACE = (str(builtin.NoneAttr()), "0 : i64", "0 : index", "0 : i32")

_DTYPES = {
    "i1": BOOL,
    "i8": INT8,
    "i16": INT16,
    "i32": INT32,
    "i64": INT64,
    "f16": FLOAT16,
    "bf16": BFLOAT16,
    "f32": FLOAT32,
    "f64": FLOAT64,
}


def _shape(found: Any) -> tuple[int | None, ...]:
    return tuple(None if extent == builtin.DYNAMIC_INDEX else int(extent) for extent in found.get_shape())


def affine_map(found: Any) -> AffineMap:
    """An affine map of xDSL."""
    return AffineMap(found.num_dims, found.num_symbols, tuple(_affine(result) for result in found.results))


def _affine(expr: Any) -> AffineExpr:
    if isinstance(expr, affine.AffineConstantExpr):
        return Num(expr.value)
    if isinstance(expr, affine.AffineDimExpr):
        return Dim(expr.position)
    if isinstance(expr, affine.AffineSymExpr):
        return Sym(expr.position)
    return Operation2(_KINDS[expr.kind], _affine(expr.lhs), _affine(expr.rhs))


_KINDS = {
    affine.AffineBinaryOpKind.Add: "+",
    affine.AffineBinaryOpKind.Mul: "*",
    affine.AffineBinaryOpKind.Mod: "mod",
    affine.AffineBinaryOpKind.FloorDiv: "floordiv",
    affine.AffineBinaryOpKind.CeilDiv: "ceildiv",
}


def _affine_set(found: Any) -> AffineSet:
    results, equalities = [], []
    for constraint in found.constraints:
        left, right = _affine(constraint.lhs), _affine(constraint.rhs)
        if constraint.kind is affine.AffineConstraintKind.le:
            left, right = right, left
        results.append(left if right == Num(0) else Operation2("+", left, Operation2("*", right, Num(-1))))
        equalities.append(constraint.kind is affine.AffineConstraintKind.eq)
    return AffineSet(AffineMap(found.num_dims, found.num_symbols, tuple(results)), tuple(equalities))


def _dense(converter: _Converter, found: Any) -> tuple[Type, tuple[Any, ...]]:
    """The type and the elements, one where they are all the same."""
    kind = converter.type(found.type)
    values = tuple(found.get_values())
    return kind, values


_ATTRIBUTES: tuple[tuple[Any, Callable[[_Converter, Any], Any]], ...] = (
    (builtin.IntegerAttr, lambda _, a: int(a.value.data)),
    (builtin.FloatAttr, lambda _, a: float(a.value.data)),
    (builtin.StringAttr, lambda _, a: str(a.data)),
    (builtin.SymbolRefAttr, lambda _, a: str(a.string_value())),
    (builtin.UnitAttr, lambda _, a: True),
    (builtin.ArrayAttr, lambda c, a: [c.attribute(each) for each in a]),
    (builtin.DenseArrayBase, lambda _, a: [int(v) for v in a.get_values()]),
    (builtin.AffineMapAttr, lambda _, a: affine_map(a.data)),
    (builtin.AffineSetAttr, lambda _, a: _affine_set(a.data)),
    (builtin.DenseIntOrFPElementsAttr, _dense),
    (FastMathFlagsAttr, lambda _, a: tuple(sorted(str(flag.value) for flag in a.data))),
    (IntegerOverflowAttr, lambda _, a: tuple(sorted(str(flag.value) for flag in a.data))),
    (CombiningKindAttr, lambda _, a: str(a.data.value)),
)
