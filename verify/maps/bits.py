"""Maps that are linear over bits (XOR swizzles, Gray codes, shuffled bits), by Gaussian elimination over GF(2).

Where every input has a power of two of values and every output bit is an XOR of input bits (and perhaps 1), the map is
injective exactly when its matrix has full rank; the kernel gives two indices with one image, and dependent rows tell
which cells are padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.verify.algebra.polynomials import power_of_two

Bits = tuple[int, ...]  # bit k of a value as a mask of input bits; the mask's top bit, `one`, is the constant 1
MAX_BITS = 62


class NotLinear(Exception):
    """An output is not linear over bits."""


@dataclass(slots=True)
class _Reader:
    """Reads expressions into bits; `one` is the mask that stands for the constant 1."""

    values: Mapping[str, Bits]
    one: int

    def bits(self, expr: Expr) -> Bits:
        operation = _READERS.get(type(expr))
        if operation is None:
            raise NotLinear(type(expr).__name__)
        return operation(self, expr)

    def number(self, value: int) -> Bits:
        if value < 0:
            raise NotLinear("a negative number")
        return tuple(self.one if value >> k & 1 else 0 for k in range(value.bit_length()))


def _trim(bits: Sequence[int]) -> Bits:
    end = len(bits)
    while end and not bits[end - 1]:
        end -= 1
    return tuple(bits[:end])


def _pad(a: Bits, b: Bits) -> list[tuple[int, int]]:
    return list(zip_longest(a, b, fillvalue=0))


def _disjoint(a: Bits, b: Bits) -> Bits:
    if any(x and y for x, y in _pad(a, b)):
        raise NotLinear("a sum with carries")
    return tuple(x | y for x, y in _pad(a, b))


def _difference(a: Bits, b: Bits) -> Bits:
    if any(y and x != y for x, y in _pad(a, b)):
        raise NotLinear("a difference with borrows")
    return _trim([x ^ y for x, y in _pad(a, b)])


def _and(reader: _Reader, a: Bits, b: Bits) -> Bits:
    result = []
    for x, y in _pad(a, b):
        if x and y and x != y and reader.one not in (x, y):
            raise NotLinear("`&` of two variables")
        result.append(0 if not x or not y else x if y == reader.one else y)
    return _trim(result)


def _or(reader: _Reader, a: Bits, b: Bits) -> Bits:
    result = []
    for x, y in _pad(a, b):
        if x and y and x != y and reader.one not in (x, y):
            raise NotLinear("`|` of two variables")
        result.append(x | y if not x or not y else x if x == y else reader.one)
    return tuple(result)


def _constant(bits: Bits, one: int) -> int:
    if any(bit not in (0, one) for bit in bits):
        raise NotLinear("an operation with a variable second operand")
    return sum(1 << k for k, bit in enumerate(bits) if bit)


def _amount(bits: Bits, one: int) -> int:
    value = _constant(bits, one)
    if value > MAX_BITS:
        raise NotLinear("a shift too far")
    return value


def _exponent(bits: Bits, one: int) -> int:
    value = _constant(bits, one)
    if not power_of_two(value):
        raise NotLinear("a factor or divisor that is not a power of two")
    return value.bit_length() - 1


def _multiply(reader: _Reader, a: Bits, b: Bits) -> Bits:
    if all(bit in (0, reader.one) for bit in a):
        a, b = b, a
    if not a or not b:
        return ()
    return (0,) * _exponent(b, reader.one) + a


_BINARY: dict[BinaryOp, Callable[[_Reader, Bits, Bits], Bits]] = {
    BinaryOp.ADD: lambda r, a, b: _disjoint(a, b),
    BinaryOp.SUB: lambda r, a, b: _difference(a, b),
    BinaryOp.MUL: _multiply,
    BinaryOp.FLOORDIV: lambda r, a, b: a[_exponent(b, r.one) :],
    BinaryOp.FLOORMOD: lambda r, a, b: _trim(a[: _exponent(b, r.one)]),
    BinaryOp.TRUNCDIV: lambda r, a, b: a[_exponent(b, r.one) :],
    BinaryOp.TRUNCMOD: lambda r, a, b: _trim(a[: _exponent(b, r.one)]),
    BinaryOp.BITAND: _and,
    BinaryOp.BITOR: _or,
    BinaryOp.BITXOR: lambda r, a, b: _trim([x ^ y for x, y in _pad(a, b)]),
    BinaryOp.SHL: lambda r, a, b: (0,) * _amount(b, r.one) + a,
    BinaryOp.SHR: lambda r, a, b: a[_amount(b, r.one) :],
}


def _binary(reader: _Reader, expr: Binary) -> Bits:
    operation = _BINARY.get(expr.op)
    if operation is None:
        raise NotLinear(f"`{expr.op}`")
    result = operation(reader, reader.bits(expr.lhs), reader.bits(expr.rhs))
    if len(result) > MAX_BITS:
        raise NotLinear("too many bits")
    return result


def _variable(reader: _Reader, expr: Var) -> Bits:
    if expr.name not in reader.values:
        raise NotLinear(expr.name)
    return reader.values[expr.name]


def _cast(reader: _Reader, expr: Cast) -> Bits:
    if not expr.value.dtype.is_integer:
        raise NotLinear("a truth value")
    return reader.bits(expr.value)


_READERS: dict[type[Expr], Callable[[_Reader, Any], Bits]] = {
    IntImm: lambda r, e: r.number(e.value),
    Var: _variable,
    Binary: _binary,
    Cast: _cast,
}


# Elimination


@dataclass(slots=True)
class _Row:
    """An XOR of cell bits (the mask `used`) that equals an XOR of input bits (`inputs`, the constant included)."""

    inputs: int
    used: int


@dataclass(frozen=True, slots=True)
class Linear:
    """A map over bits. `columns` are the outputs' bits over input bits.

    `places` are the output bits as (axis position, bit), `widths` the bits of each axis. `solved[b]` gives input bit b
    as (mask of places, constant); `relations` are the (mask of places, constant) that hold on the image; `kernel` is a
    nonzero combination of input bits that changes nothing, 0 where the map is injective.
    """

    columns: tuple[Bits, ...]
    places: tuple[tuple[int, int], ...]
    widths: tuple[int, ...]
    input_bits: int
    rank: int
    kernel: int
    solved: Mapping[int, tuple[int, int]]
    relations: tuple[tuple[int, int], ...]


def read_linear(outputs: Sequence[Expr], names: Sequence[str], extents: Sequence[int]) -> Linear | None:
    """The map over bits, reduced; None where an extent is not a power of two or an output is not linear."""
    if not all(power_of_two(e) for e in extents):
        return None
    values: dict[str, Bits] = {}
    count = 0
    for name, extent in zip(names, extents, strict=True):
        size = extent.bit_length() - 1
        values[name] = tuple(1 << (count + k) for k in range(size))
        count += size
    if count > MAX_BITS:
        return None
    reader = _Reader(values, 1 << count)
    try:
        columns = [_trim(reader.bits(o)) for o in outputs]
    except NotLinear:
        return None
    places = tuple((axis, k) for axis, bits in enumerate(columns) for k in range(len(bits)))
    rows = [_Row(columns[axis][k], 1 << position) for position, (axis, k) in enumerate(places)]
    return _reduce(rows, places, tuple(columns), count)


def largest_value(output: Expr, names: Sequence[str], extents: Sequence[int]) -> int | None:
    """The largest value of a linear output: bits from the highest, each 1 if those above allow it. None as above."""
    if not all(power_of_two(e) for e in extents):
        return None
    linear = read_linear([output], names, extents)
    if linear is None:
        return None
    one = 1 << linear.input_bits
    fixed: list[tuple[int, int]] = []  # equations `form == 0` over the input bits and 1, with the pivot of each
    value = 0
    for k in reversed(range(len(linear.columns[0]))):
        form = linear.columns[0][k]
        for pivot, equation in fixed:
            if form & pivot:
                form ^= equation
        variables = form & (one - 1)
        if variables:
            value |= 1 << k
            pivot = variables & -variables
            fixed = [(p, e ^ (form ^ one) if e & pivot else e) for p, e in fixed]
            fixed.append((pivot, form ^ one))
        elif form & one:
            value |= 1 << k
    return value


def _reduce(rows: list[_Row], places: tuple[tuple[int, int], ...], columns: tuple[Bits, ...], count: int) -> Linear:
    one = 1 << count
    pivots: dict[int, _Row] = {}
    relations: list[tuple[int, int]] = []
    for row in rows:
        for bit, pivot in pivots.items():
            if row.inputs >> bit & 1:
                row.inputs ^= pivot.inputs
                row.used ^= pivot.used
        variables = row.inputs & (one - 1)
        if not variables:
            relations.append((row.used, int(bool(row.inputs & one))))
            continue
        bit = (variables & -variables).bit_length() - 1
        for pivot in pivots.values():
            if pivot.inputs >> bit & 1:
                pivot.inputs ^= row.inputs
                pivot.used ^= row.used
        pivots[bit] = row
    free = [bit for bit in range(count) if bit not in pivots]
    kernel = 0
    if free:
        kernel = 1 << free[0]
        for bit, pivot in pivots.items():
            if pivot.inputs >> free[0] & 1:
                kernel |= 1 << bit
    solved = {bit: (pivot.used, int(bool(pivot.inputs & one))) for bit, pivot in pivots.items()}
    return Linear(
        columns, places, tuple(len(bits) for bits in columns), count, len(pivots), kernel, solved, tuple(relations)
    )


def kernel_points(linear: Linear, extents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two points with one image: zero, and the kernel's vector."""
    point: list[int] = []
    first = 0
    for extent in extents:
        size = extent.bit_length() - 1
        point.append(linear.kernel >> first & (1 << size) - 1)
        first += size
    return [0] * len(extents), point
