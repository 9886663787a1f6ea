"""What both evaluators call: operations on single numbers, rounded once in their own type, the checks that failed, and
the detection of races. Integers and truth values are Python integers; floats of every type are Python floats that are
numbers of that type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NoReturn

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.functions.definitions import DEFINITIONS, Definition
from layoutproof.ir.functions.definitions import function as sequence_function
from layoutproof.ir.interp import memory
from layoutproof.ir.interp.memory import Fault, FaultKind, access_text, over_limit
from layoutproof.ir.semantics import Trap, float_format, round_float, wrap


def float_div(a: float, b: float) -> float:
    """IEEE division in float64: infinities and NaN where Python raises."""
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _scaled(value: float) -> tuple[int, int]:
    """A finite float as `integer * 2**exponent`."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def round_scaled(number: int, exponent: int, dtype: DType) -> float:
    """`number * 2**exponent`, number not 0, rounded once to a float type; ties to even, overflow to infinity."""
    precision, emin, emax = float_format(dtype)
    magnitude = abs(number)
    ulp = max(magnitude.bit_length() + exponent - precision, emin - precision + 1)
    shift = ulp - exponent
    if shift > 0:
        low, half = magnitude & ((1 << shift) - 1), 1 << (shift - 1)
        magnitude >>= shift
        magnitude += int(low > half or (low == half and magnitude & 1 == 1))
    else:
        magnitude <<= -shift
    if magnitude.bit_length() + ulp > emax + 1:
        return math.inf if number > 0 else -math.inf
    rounded = math.ldexp(magnitude, ulp)
    return rounded if number > 0 else -rounded


def fused_multiply_add(a: float, b: float, c: float, dtype: DType) -> float:
    """`a * b + c` rounded once, to `dtype` (IEEE fusedMultiplyAdd)."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    if a == 0.0 or b == 0.0:
        return a * b + c
    if c == 0.0:
        (x, ex), (y, ey) = _scaled(a), _scaled(b)
        return round_scaled(x * y, ex + ey, dtype)
    (x, ex), (y, ey), (z, ez) = _scaled(a), _scaled(b), _scaled(c)
    exponent = min(ex + ey, ez)
    total = (x * y << (ex + ey - exponent)) + (z << (ez - exponent))
    return round_scaled(total, exponent, dtype) if total != 0 else 0.0


def fmax(a: float, b: float) -> float:
    """C's fmax: a NaN loses; +0 is above -0."""
    if a != a:
        return b
    if b != b:
        return a
    return maximum(a, b)


def fmin(a: float, b: float) -> float:
    """C's fmin: a NaN loses; -0 is below +0."""
    if a != a:
        return b
    if b != b:
        return a
    return minimum(a, b)


def maximum(a: float, b: float) -> float:
    """IEEE 754-2019 maximum: a NaN wins; +0 is above -0."""
    if a != a or b != b:
        return math.nan
    if a == b == 0.0:
        return a if math.copysign(1.0, a) > 0 else b
    return a if a > b else b


def minimum(a: float, b: float) -> float:
    """IEEE 754-2019 minimum: a NaN wins; -0 is below +0."""
    if a != a or b != b:
        return math.nan
    if a == b == 0.0:
        return a if math.copysign(1.0, a) < 0 else b
    return a if a < b else b


def _total(function: Callable[[float], float], *, pole: float | None = None) -> Callable[[float], float]:
    """A one-argument function of the C library: NaN outside its domain, `pole` at zero, infinity on overflow."""

    def call(x: float) -> float:
        if x == 0.0 and pole is not None:
            return pole
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def _sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def _rsqrt(x: float) -> float:
    return float_div(1.0, math.sqrt(x)) if x >= 0.0 else math.nan


def _sigmoid(x: float) -> float:
    # by sign, so that the result keeps its digits where it is tiny
    e = _EXP(-abs(x))
    return e / (1.0 + e) if x < 0.0 else 1.0 / (1.0 + e)


def power(x: float, y: float) -> float:
    """C's pow, the cases included where Python raises."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0.0 and y % 2.0 == 1.0 else math.inf
    except ValueError:  # a negative base with a fraction in the exponent, or zero to a negative power
        if x != 0.0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2.0 == 1.0 else math.inf


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    """Rounding to an integral value that keeps NaN, infinities and the sign of zero."""
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


_EXP = _total(math.exp)

# The C library's functions on float64.
LIBRARY: Mapping[str, Callable[..., float]] = {
    "exp": _EXP,
    "exp2": _total(math.exp2),
    "log": _total(math.log, pole=-math.inf),
    "log2": _total(math.log2, pole=-math.inf),
    "log10": _total(math.log10, pole=-math.inf),
    "sqrt": _total(math.sqrt),
    "rsqrt": _rsqrt,
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "erf": math.erf,
    "sin": _total(math.sin),
    "cos": _total(math.cos),
    "tan": _total(math.tan),
    "sinh": _sinh,
    "cosh": _total(math.cosh),
    "atan": math.atan,
    "pow": power,
}


def _narrow(definition: Definition) -> Callable[[float], float]:
    inside, limit, beyond = sequence_function(definition.name), definition.limit, LIBRARY[definition.name]
    return inside if limit is None else lambda x: beyond(x) if abs(x) > limit else inside(x)


# Float64 results to round to a narrower type: the sequences of `ir/functions`, and the C library's where there is none.
ROUNDED: Mapping[str, Callable[..., float]] = {
    **LIBRARY,
    **{name: _narrow(found) for name, found in DEFINITIONS.items()},
}

# Exact: the result is a number of the arguments' type already.
EXACT: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "trunc": _integral(math.trunc),
    "round": _integral(round),  # Python's, as IEEE's default: halves to the even neighbour
    "fmax": fmax,
    "fmin": fmin,
    "maximum": maximum,
    "minimum": minimum,
}


def before_rounding(function: str, dtype: DType) -> Callable[..., float]:
    """The function of float64 numbers whose result, rounded to a type, is that of a named function of the type."""
    return (LIBRARY if dtype.bits == 64 else ROUNDED)[function]


def call_math(function: str, arguments: tuple[float | int, ...], dtype: DType) -> float | int:
    """One math function on one lane: float64 (`ir/functions`) rounded to `dtype`, or exact, or (fma) rounded once."""
    if dtype.is_integer:
        return wrap(abs(int(arguments[0])), dtype)
    if function == "fma":
        a, b, c = (float(x) for x in arguments)
        return fused_multiply_add(a, b, c, dtype)
    exact = EXACT.get(function)
    if exact is not None:
        return exact(*arguments)
    return round_float(before_rounding(function, dtype)(*arguments), dtype)


Indices = tuple[int, ...]


def out_of_bounds(buffer: str, indices: Indices, axis: int, extent: int) -> NoReturn:
    """An index outside its axis."""
    message = f"{access_text(buffer, indices)}: index {indices[axis]} of axis {axis}, which has extent {extent}"
    raise Fault(FaultKind.OUT_OF_BOUNDS, message, buffer=buffer, indices=indices)


def past_end(buffer: str, indices: Indices, element: int, size: int) -> NoReturn:
    """Within the view's shape, but outside the memory behind it."""
    message = f"{access_text(buffer, indices)} is element {element} of its data, which has {size}"
    raise Fault(FaultKind.OUT_OF_BOUNDS, message, buffer=buffer, indices=indices)


def unreadable(state: int, buffer: str, indices: Indices) -> NoReturn:
    """A read of a cell that may not be read."""
    if state == memory.FORBIDDEN:
        message = f"{access_text(buffer, indices)} is padding that may not be read"
        raise Fault(FaultKind.FORBIDDEN, message, buffer=buffer, indices=indices)
    message = f"{access_text(buffer, indices)} is read before anything was written there"
    raise Fault(FaultKind.UNINITIALISED, message, buffer=buffer, indices=indices)


def unwritable(buffer: str, indices: Indices) -> NoReturn:
    """A write to padding without a contract."""
    message = f"{access_text(buffer, indices)} is padding that may not be written"
    raise Fault(FaultKind.FORBIDDEN, message, buffer=buffer, indices=indices)


def overflow(value: int, dtype: str) -> NoReturn:
    """Index arithmetic that leaves its type."""
    raise Fault(FaultKind.OVERFLOW, f"{value} does not fit {dtype}")


def bad_shift(amount: int, dtype: str) -> NoReturn:
    """A shift by a negative amount or by the width or more."""
    raise Trap(f"shift by {amount} of a {dtype}")


def divide(operation: str, a: int, b: int, dtype: DType) -> int:
    """`semantics.divide` in the order in which generated source has it."""
    return semantics.divide(operation, a, b, dtype)


def undefined(what: str) -> NoReturn:
    """An undefined value where control or an address depends on it."""
    raise Fault(FaultKind.UNDEF, f"{what} depends on an undefined value")


def violated() -> NoReturn:
    """An assumption that does not hold."""
    raise Fault(FaultKind.ASSUMPTION, "the assumption does not hold")


def outside(block: str, variable: str, value: int) -> NoReturn:
    """An executed block instance outside its domain."""
    raise Fault(FaultKind.BINDING, f"{variable} = {value} is outside the domain that block {block} gives it")


def lanes_collide(buffer: str, indices: Indices) -> NoReturn:
    """Two lanes of one store in one cell."""
    message = f"two lanes of one store meet, one of them at {access_text(buffer, indices)}"
    raise Fault(FaultKind.RACE, message, buffer=buffer, indices=indices)


def over(limit: int) -> NoReturn:
    """Too many iterations."""
    raise over_limit(limit)


class RaceTable:
    """The accesses to the cells of one memory by the iterations of one run of a concurrent loop.

    Iterations are run in order, so the first reader of a cell is enough: a later writer is that iteration only if no
    other one read the cell.
    """

    __slots__ = ("_readers", "_writers")

    def __init__(self) -> None:
        self._readers: dict[int, object] = {}
        self._writers: dict[int, object] = {}

    def reads(self, cell: int, iteration: object, buffer: str, indices: Indices) -> None:
        """A read; raises Fault if another iteration wrote the cell."""
        if self._writers.get(cell, iteration) != iteration:
            raise _race(buffer, indices, "writes", self._writers[cell], "reads", iteration)
        self._readers.setdefault(cell, iteration)

    def writes(self, cell: int, iteration: object, buffer: str, indices: Indices) -> None:
        """A write; raises Fault if another iteration read or wrote the cell."""
        if self._writers.setdefault(cell, iteration) != iteration:
            raise _race(buffer, indices, "writes", self._writers[cell], "writes", iteration)
        reader = self._readers.get(cell, iteration)
        if reader != iteration:
            raise _race(buffer, indices, "reads", reader, "writes", iteration)


def _race(buffer: str, indices: Indices, first: str, one: object, second: str, other: object) -> Fault:
    message = (
        f"{access_text(buffer, indices)}: iteration {one} {first} it, iteration {other} {second} it, and nothing "
        "orders them"
    )
    return Fault(FaultKind.RACE, message, buffer=buffer, indices=indices)


def namespace() -> dict[str, object]:
    """The global names of generated source, apart from a run's own."""
    return {
        "inf": math.inf,
        "nan": math.nan,
        "out_of_bounds": out_of_bounds,
        "past_end": past_end,
        "unreadable": unreadable,
        "unwritable": unwritable,
        "overflow": overflow,
        "bad_shift": bad_shift,
        "divide": divide,
        "undefined": undefined,
        "violated": violated,
        "outside": outside,
        "lanes_collide": lanes_collide,
        "over": over,
        "RaceTable": RaceTable,
        "worst_state": memory.worst_state,
        "same_value": memory.same_value,
        "float_of_bits": semantics.float_of_bits,
        "half_values": memory.model_values(Kind.FLOAT),
        "bfloat_values": memory.model_values(Kind.BFLOAT),
        "half_bits": memory.half_bits,
        "bfloat_bits": memory.bfloat_bits,
        "float_div": float_div,
        "fused_multiply_add": fused_multiply_add,
        "round_float": semantics.round_float,
        "int_to_float": semantics.int_to_float,
        "float_to_int": semantics.float_to_int,
        **{f"exact_{name}": function for name, function in EXACT.items()},
        **{f"rounded_{name}": function for name, function in ROUNDED.items()},
        **{f"library_{name}": function for name, function in LIBRARY.items()},
    }
