"""A module of MLIR as plain data: operations, types, affine maps.

What the reader of the text makes and the tables of operations take. Nothing here depends on the package that reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, TypeVar, overload

from layoutproof.importers.mlir import codes
from layoutproof.ir.diagnostic import LayoutproofError, Span, error
from layoutproof.ir.dtype import INT64, DType
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, IntImm, const, logical_and, logical_or, negated
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import loads_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number type; `index` is a signed integer of 64 bits whose arithmetic is proved not to overflow."""

    dtype: DType
    index: bool = False


INDEX = Scalar(INT64, index=True)


@dataclass(frozen=True, slots=True)
class Shaped:
    """A memref, tensor or vector type. An extent None is dynamic. `layout` is that of a memref, None for row-major;
    `inner` the shape of its elements where they are vectors, and `space` the memory space, if it is not the usual one.
    """

    kind: str
    shape: tuple[int | None, ...]
    element: Scalar
    layout: AffineMap | Strided | None = None
    inner: tuple[int, ...] = ()
    space: str | None = None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Strided:
    """The layout `strided<[...], offset: ...>`; None is dynamic."""

    strides: tuple[int | None, ...]
    offset: int | None


Type = Scalar | Shaped


# ---- affine maps


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of an affine map."""

    number: int


@dataclass(frozen=True, slots=True)
class Sym:
    """A symbol of an affine map."""

    number: int


@dataclass(frozen=True, slots=True)
class Num:
    """A constant of an affine map."""

    value: int


@dataclass(frozen=True, slots=True)
class Operation2:
    """`lhs kind rhs`, with kind one of `+`, `*`, `mod`, `floordiv`, `ceildiv`."""

    kind: str
    lhs: AffineExpr
    rhs: AffineExpr


AffineExpr = Dim | Sym | Num | Operation2


@dataclass(frozen=True, slots=True)
class AffineMap:
    """`(d0, ...)[s0, ...] -> (results)`."""

    dims: int
    symbols: int
    results: tuple[AffineExpr, ...]

    def apply(self, operands: Sequence[Expr]) -> tuple[Expr, ...]:
        """The results for operands, dimensions first. Raises ValueError for another number of them."""
        if len(operands) != self.dims + self.symbols:
            raise ValueError(f"a map of {self.dims} + {self.symbols} operands is given {len(operands)}")
        return tuple(self._value(result, operands) for result in self.results)

    def _value(self, expr: AffineExpr, operands: Sequence[Expr]) -> Expr:
        match expr:
            case Num(value):
                return const(value, INT64)
            case Dim(number):
                return operands[number]
            case Sym(number):
                return operands[self.dims + number]
            case Operation2(kind, lhs, rhs):
                return AFFINE[kind](self._value(lhs, operands), self._value(rhs, operands))

    def lambda_text(self) -> str:
        """The map as this tool writes index maps. Raises ValueError for one with symbols."""
        if self.symbols:
            raise ValueError("a map with symbols is no index map")
        names = ", ".join(f"d{n}" for n in range(self.dims))
        return f"lambda {names}: [{', '.join(_text(result) for result in self.results)}]"

    @property
    def is_identity(self) -> bool:
        """Whether it is `(d0, d1, ...) -> (d0, d1, ...)`."""
        return self.symbols == 0 and self.results == tuple(Dim(n) for n in range(self.dims))


@dataclass(frozen=True, slots=True)
class AffineSet:
    """Constraints `expr >= 0`, or `expr == 0` where `equalities` says so."""

    constraints: AffineMap
    equalities: tuple[bool, ...]


def _text(expr: AffineExpr) -> str:
    match expr:
        case Num(value):
            return str(value)
        case Dim(number):
            return f"d{number}"
        case Sym(number):
            return f"s{number}"
        case Operation2("ceildiv", lhs, rhs):
            return f"(({_text(lhs)} + {_text(rhs)} - 1)//{_text(rhs)})"
        case Operation2(kind, lhs, rhs):
            return f"({_text(lhs)} {_SIGNS[kind]} {_text(rhs)})"


_SIGNS = {"+": "+", "*": "*", "mod": "%", "floordiv": "//"}


def add(a: Expr, b: Expr) -> Expr:
    """`a + b` of two integers of one type, constants folded."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return _folded(a.value + b.value, a.dtype)
    if isinstance(a, IntImm) and a.value == 0:
        return b
    if isinstance(b, IntImm) and b.value == 0:
        return a
    if isinstance(b, IntImm) and b.value < 0:
        return a - _folded(-b.value, b.dtype)
    return a + b


def sub(a: Expr, b: Expr) -> Expr:
    """`a - b` of two integers of one type, constants folded."""
    if a == b and not any(True for _ in loads_in(a)):
        return _folded(0, a.dtype)
    if isinstance(b, IntImm):
        return add(a, _folded(-b.value, b.dtype))
    return a - b


def mul(a: Expr, b: Expr) -> Expr:
    """`a * b` of two integers of one type, constants folded."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return _folded(a.value * b.value, a.dtype)
    if isinstance(a, IntImm):
        a, b = b, a
    if isinstance(b, IntImm) and b.value == 1:
        return a
    return a * b


def _folded(value: int, dtype: DType) -> Expr:
    # Raises ValueError outside the type: an overflow while reading, which the caller reports with its place.
    return const(value, dtype)


def _positive(b: Expr) -> Expr:
    """A divisor of an affine map, undefined unless it is positive: then the division has no result."""
    return b if isinstance(b, IntImm) and b.value > 0 else IfThenElseExpr(b > 0, b, const(0, b.dtype))


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a floordiv b`, undefined for b <= 0."""
    if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value > 0:
        return _folded(a.value // b.value, a.dtype)
    return a if isinstance(b, IntImm) and b.value == 1 else a // _positive(b)


def ceildiv(a: Expr, b: Expr) -> Expr:
    """`a ceildiv b`, undefined for b <= 0."""
    return floordiv(add(a, sub(b, const(1, b.dtype))), b)


def floormod(a: Expr, b: Expr) -> Expr:
    """`a mod b`, which is not negative; undefined for b <= 0."""
    if isinstance(a, IntImm) and isinstance(b, IntImm) and b.value > 0:
        return _folded(a.value % b.value, a.dtype)
    return a % _positive(b)


AFFINE = {"+": add, "*": mul, "mod": floormod, "floordiv": floordiv, "ceildiv": ceildiv}


def least(values: Sequence[Expr]) -> Expr:
    """The minimum of integers."""
    return _chosen(BinaryOp.MIN, values)


def greatest(values: Sequence[Expr]) -> Expr:
    """The maximum of integers."""
    return _chosen(BinaryOp.MAX, values)


def _chosen(op: BinaryOp, values: Sequence[Expr]) -> Expr:
    if not values:
        raise ValueError("a map without results gives no bound")
    numbers = [v.value for v in values if isinstance(v, IntImm)]
    rest = list(dict.fromkeys(v for v in values if not isinstance(v, IntImm)))
    if numbers:
        rest.append(const(min(numbers) if op is BinaryOp.MIN else max(numbers), values[0].dtype))
    result = rest[0]
    for value in rest[1:]:
        result = Binary(op, result, value)
    return result


# ---- operations


class Items(tuple[T, ...]):
    """Operands, results or operations. One that is missing is a ValueError, as an operand of a wrong type is."""

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, key: slice, /) -> Items[T]: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> T | Items[T]:
        if isinstance(key, slice):
            return Items(super().__getitem__(key))
        try:
            return super().__getitem__(key)
        except IndexError:
            raise ValueError("an operand, a result or an operation in a region is missing") from None


@dataclass(eq=False, slots=True)
class Value:
    """A result of an operation, or an argument of a block. Compared by identity."""

    type: Type
    name: str | None
    uses: list[Op] = field(default_factory=list, repr=False)
    owner: Op | None = field(default=None, repr=False)


@dataclass(eq=False, slots=True)
class Block:
    """Arguments and operations. The last operation is the terminator."""

    arguments: Items[Value]
    ops: Items[Op] = field(default_factory=lambda: Items[Op]())


_SIZES: Mapping[str, Callable[[int], tuple[int, ...]]] = {
    "linalg.transpose": lambda count: (count - 1, 1),
    "linalg.broadcast": lambda count: (count - 1, 1),
    "linalg.map": lambda count: (count - 1, 1),
    "linalg.reduce": lambda count: (count // 2, count - count // 2),
    "tensor.unpack": lambda count: (1, 1, count - 2),
    "linalg.unpack": lambda count: (1, 1, count - 2),
}


@dataclass(eq=False, slots=True)
class Op:
    """One operation; `attributes` has its properties, too, as plain data where that is possible. `position` is its
    number in the block `parent`.
    """

    name: str
    operands: Items[Value]
    results: Items[Value]
    attributes: Mapping[str, Any]
    regions: tuple[tuple[Block, ...], ...]
    span: Span
    parent: Block | None = field(default=None, repr=False)
    position: int = 0

    def fail(self, message: str, *, help: str | None = None) -> LayoutproofError:
        """The error that this operation is not translated."""
        return error(codes.MLIR_OPERATION, f"{self.name}: {message}", self.span, help=help)

    def attribute(self, name: str) -> Any:
        """An attribute. Raises LayoutproofError where it is missing."""
        if name not in self.attributes:
            raise self.fail(f"the attribute {name} is missing")
        return self.attributes[name]

    def block(self, number: int = 0) -> Block:
        """The only block of a region. Raises LayoutproofError where there are more, or none."""
        if number >= len(self.regions) or len(self.regions[number]) != 1:
            raise self.fail("a region with other than one block is not translated")
        return self.regions[number][0]

    @property
    def is_grouped(self) -> bool:
        """Whether the operands are in groups, inputs and outputs among them."""
        return "operandSegmentSizes" in self.attributes or self.name in _SIZES

    def segments(self) -> Items[Items[Value]]:
        """The operands in the groups of `operandSegmentSizes`, which generic forms leave out where they are clear."""
        groups, start = [], 0
        known = "operandSegmentSizes" not in self.attributes and self.name in _SIZES
        sizes = _SIZES[self.name](len(self.operands)) if known else self.attribute("operandSegmentSizes")
        for size in sizes:
            groups.append(self.operands[start : start + size])
            start += size
        return Items(groups)

    def nested(self) -> Iterator[Op]:
        """All operations in the regions, in order."""
        for region in self.regions:
            for block in region:
                for op in block.ops:
                    yield op
                    yield from op.nested()


def unsigned_order(predicate: int, a: Expr, b: Expr) -> Expr:
    """An unsigned comparison of index arithmetic, in which a cast of a negative number would be an overflow."""
    if predicate in (7, 8):  # `a <= b` is not `b < a`, and `a > b` is that
        a, b = b, a
    zero = const(0, a.dtype)
    both = logical_and(a >= zero, a < b)  # if b is not negative
    above = logical_or(a >= zero, a < b)  # if it is, and so larger than all that are not
    if isinstance(b, IntImm):
        less = both if b.value >= 0 else above
    else:
        less = logical_or(both, logical_and(b < zero, above))
    return negated(less) if predicate in (7, 9) else less
