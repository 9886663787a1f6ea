"""An index map as MLIR's `affine_map`: bitwise operations of bounded operands become divisions and remainders, and the
text is read back and proved equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interval import Interval, interval_of
from layoutproof.ir.notations.mlir import read_mlir
from layoutproof.ir.notations.notation import Context
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.layouts.conversions import check_equal, refused
from layoutproof.verify.maps.problem import Shape, coerce_shape

_SUM, _PRODUCT, _ATOM = range(3)
_MOST_BITS = 62
Piece = tuple[str, int]


def to_affine_map(index_map: IndexMap, shape: Shape | None = None) -> str:
    """The text of the affine map that is equal to a map, on a shape where one is given.

    Raises LayoutproofError, naming the part, where it is not quasi-affine; bitwise operations need a shape.
    """
    extents = None if shape is None else coerce_shape(shape)
    writer = _Writer(index_map, extents)
    symbols = dict.fromkeys(v.name for o in index_map.outputs for v in free_variables(o) if v not in index_map.inputs)
    results = ", ".join(writer.at(output, _SUM) for output in index_map.outputs)
    names = f"[{', '.join(symbols)}]" if symbols else ""
    text = f"affine_map<({', '.join(writer.dims.values())}){names} -> ({results})>"
    if extents is not None:
        check_equal(index_map, read_mlir(text, Context()).index_map, extents, "the affine map that was written")
    return text


class _Writer:
    """Expressions as MLIR's affine expressions."""

    def __init__(self, index_map: IndexMap, extents: Sequence[Expr] | None) -> None:
        self.index_map = index_map
        self.dims = {v: f"d{axis}" for axis, v in enumerate(index_map.inputs)}
        self.ranges: dict[Var, Interval] = {}
        if extents is not None:
            pairs = zip(index_map.inputs, extents, strict=True)
            self.ranges = {v: Interval(0, e.value - 1) for v, e in pairs if isinstance(e, IntImm)}

    def no(self, expr: Expr, why: str) -> LayoutproofError:
        """The error for a part that affine maps lack."""
        return refused(self.index_map, "no affine map", f"`{expr_text(expr, 'plain')}` {why}")

    def at(self, expr: Expr, level: int) -> str:
        """The text, in parentheses where it binds looser than `level`."""
        text, precedence = self.piece(expr)
        return text if precedence >= level else f"({text})"

    def piece(self, expr: Expr) -> Piece:
        """The text and how tight it binds."""
        if isinstance(expr, IntImm):
            return (str(expr.value), _ATOM) if expr.value >= 0 else (f"({expr.value})", _ATOM)
        if isinstance(expr, Var):
            return self.dims.get(expr, expr.name), _ATOM
        if isinstance(expr, Cast) and expr.dtype.is_integer and expr.value.dtype.is_integer:
            return self.piece(expr.value)
        if not isinstance(expr, Binary) or expr.op not in _WRITERS:
            raise self.no(expr, "is not made of +, -, *, floordiv and mod")
        return _WRITERS[expr.op](self, expr)

    def sum(self, expr: Binary) -> Piece:
        sign = "+" if expr.op is BinaryOp.ADD else "-"
        return f"{self.at(expr.lhs, _SUM)} {sign} {self.at(expr.rhs, _PRODUCT)}", _SUM

    def product(self, expr: Binary) -> Piece:
        left, right = expr.lhs, expr.rhs
        if self.has_dims(right):
            left, right = right, left
        if self.has_dims(right):
            raise self.no(expr, "is a product of two indices")
        return f"{self.at(left, _PRODUCT)} * {self.at(right, _ATOM)}", _PRODUCT

    def division(self, expr: Binary) -> Piece:
        divisor = expr.rhs
        if self.has_dims(divisor):
            raise self.no(expr, "divides by an index")
        if isinstance(divisor, IntImm) and divisor.value < 1:
            raise self.no(expr, "divides by a number below 1")
        word = "floordiv" if expr.op is BinaryOp.FLOORDIV else "mod"
        return f"{self.at(expr.lhs, _PRODUCT)} {word} {self.at(divisor, _ATOM)}", _PRODUCT

    def shift(self, expr: Binary) -> Piece:
        amount = expr.rhs
        if not isinstance(amount, IntImm) or not 0 <= amount.value <= _MOST_BITS:
            raise self.no(expr, "shifts by what is no constant")
        word = "*" if expr.op is BinaryOp.SHL else "floordiv"
        return f"{self.at(expr.lhs, _PRODUCT)} {word} {1 << amount.value}", _PRODUCT

    def bitwise(self, expr: Binary) -> Piece:
        """Runs of bits that one operand alone may have are slices of it, others are taken bit by bit."""
        a, b = self.reach(expr.lhs), self.reach(expr.rhs)
        if expr.op is BinaryOp.BITAND:
            a, b, alone = a & b, a & b, 0
        else:
            alone = a ^ b
        terms = [self.slice(expr.lhs, low, high) for low, high in _runs(a & alone)]
        terms += [self.slice(expr.rhs, low, high) for low, high in _runs(b & alone)]
        both = a & b
        for low, high in _runs(both):
            masked = self._masked(expr, low, high)
            terms += [masked] if masked is not None else [self.bit(expr, k) for k in range(low, high)]
        return (" + ".join(terms), _SUM) if len(terms) > 1 else (terms[0], _PRODUCT) if terms else ("0", _ATOM)

    def _masked(self, expr: Binary, low: int, high: int) -> str | None:
        """A run of bits under a mask of ones."""
        ones = ((1 << high) - 1) >> low << low
        for mask, other in ((expr.rhs, expr.lhs), (expr.lhs, expr.rhs)):
            if expr.op is BinaryOp.BITAND and isinstance(mask, IntImm) and mask.value & ones == ones:
                return self.slice(other, low, high)
        return None

    def slice(self, expr: Expr, low: int, high: int) -> str:
        """The bits from `low` to below `high`, at their places."""
        text = self.at(expr, _PRODUCT)
        if low:
            text = f"{text} floordiv {1 << low}"
        if self.reach(expr) >> high:
            text = f"{text} mod {1 << (high - low)}"
        return f"{text} * {1 << low}" if low else text

    def bit(self, expr: Binary, k: int) -> str:
        """One bit of the result: the sum of two bits is 2 in one case only."""
        shift = f" floordiv {1 << k}" if k else ""
        a, b = (f"{self.at(operand, _PRODUCT)}{shift} mod 2" for operand in (expr.lhs, expr.rhs))
        text = {
            BinaryOp.BITXOR: f"({a} + {b}) mod 2",
            BinaryOp.BITAND: f"({a} + {b}) floordiv 2",
            BinaryOp.BITOR: f"({a} + {b} + 1) floordiv 2",
        }[expr.op]
        return f"{text} * {1 << k}" if k else text

    def reach(self, expr: Expr) -> int:
        """The bits that may be set in an operand. Raises LayoutproofError for one without bound, or below 0."""
        found = interval_of(expr, self.ranges)
        if not 0 <= found.low <= found.high < 1 << _MOST_BITS:
            raise self.no(expr, "is an operand of a bitwise operation, and has no bound, or may be below 0")
        bound = (1 << int(found.high).bit_length()) - 1
        if isinstance(expr, IntImm):
            return expr.value
        if isinstance(expr, Binary) and isinstance(expr.rhs, IntImm):
            narrow = _REACH.get(expr.op)
            if narrow is not None:
                return narrow(self, expr.lhs, expr.rhs.value) & bound
        return bound

    def has_dims(self, expr: Expr) -> bool:
        """Whether an index occurs."""
        return any(v in self.dims for v in free_variables(expr))


_WRITERS: Mapping[BinaryOp, Callable[[_Writer, Binary], Piece]] = {
    BinaryOp.ADD: _Writer.sum,
    BinaryOp.SUB: _Writer.sum,
    BinaryOp.MUL: _Writer.product,
    BinaryOp.FLOORDIV: _Writer.division,
    BinaryOp.FLOORMOD: _Writer.division,
    BinaryOp.SHL: _Writer.shift,
    BinaryOp.SHR: _Writer.shift,
    BinaryOp.BITAND: _Writer.bitwise,
    BinaryOp.BITOR: _Writer.bitwise,
    BinaryOp.BITXOR: _Writer.bitwise,
}


def _power(value: int) -> int | None:
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _divided(writer: _Writer, operand: Expr, divisor: int) -> int:
    power = _power(divisor)
    return -1 if power is None else writer.reach(operand) >> power


def _multiplied(writer: _Writer, operand: Expr, factor: int) -> int:
    power = _power(factor)
    return -1 if power is None else writer.reach(operand) << power


def _remainder(writer: _Writer, operand: Expr, divisor: int) -> int:
    return -1 if _power(divisor) is None else writer.reach(operand) & (divisor - 1)


# With -1 the bound of the value alone counts.
_REACH: Mapping[BinaryOp, Callable[[_Writer, Expr, int], int]] = {
    BinaryOp.BITAND: lambda w, e, n: w.reach(e) & n if n >= 0 else -1,
    BinaryOp.SHR: lambda w, e, n: w.reach(e) >> n if 0 <= n <= _MOST_BITS else -1,
    BinaryOp.SHL: lambda w, e, n: w.reach(e) << n if 0 <= n <= _MOST_BITS else -1,
    BinaryOp.FLOORDIV: _divided,
    BinaryOp.FLOORMOD: _remainder,
    BinaryOp.MUL: _multiplied,
}


def _runs(mask: int) -> list[tuple[int, int]]:
    """The runs of ones in a mask, each from a bit to below another."""
    found: list[tuple[int, int]] = []
    low = 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        high = low
        while mask >> high & 1:
            high += 1
        found.append((low, high))
        low = high
    return found
