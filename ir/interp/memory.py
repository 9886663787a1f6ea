"""Memory of a run: blocks of bytes with a state for every cell, how numbers lie in them, and what undefined cells hold.
The bytes are those that a compiled kernel has (little endian), so views of another element type read the same there.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.semantics import max_finite, round_float

UNINITIALISED, DEFINED, POISON, FORBIDDEN = 0, 1, 3, 4  # bit 0: may be read; bit 1: holds an arbitrary value
READABLE, ARBITRARY = 1, 2

_FORMATS = {
    (Kind.BOOL, 8): "B",
    (Kind.INT, 8): "b",
    (Kind.INT, 16): "h",
    (Kind.INT, 32): "i",
    (Kind.INT, 64): "q",
    (Kind.UINT, 8): "B",
    (Kind.UINT, 16): "H",
    (Kind.UINT, 32): "I",
    (Kind.UINT, 64): "Q",
    (Kind.FLOAT, 16): "H",
    (Kind.FLOAT, 32): "f",
    (Kind.FLOAT, 64): "d",
    (Kind.BFLOAT, 16): "H",
}


def memory_format(dtype: DType) -> str:
    """The memoryview format of one lane; 16-bit floats are stored as bits. Raises TypeError for handles."""
    code = _FORMATS.get((dtype.kind, dtype.bits))
    if code is None:
        raise TypeError(f"elements of type {dtype} are not stored")
    return code


@lru_cache(maxsize=2)
def model_values(kind: Kind) -> list[float]:
    """The number of each of the 65,536 bit patterns of float16 or bfloat16."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        if kind is Kind.FLOAT:
            return [float(x) for x in bits.view(np.float16).astype(np.float64)]
        return [float(x) for x in (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)]


def half_bits(value: float) -> int:
    """The bits of a float16 number; one NaN for all."""
    if value != value:
        return 0x7E00
    return int.from_bytes(struct.pack("<e", value), "little")


def bfloat_bits(value: float) -> int:
    """The bits of a bfloat16 number; one NaN for all."""
    if value != value:
        return 0x7FC0
    return int.from_bytes(struct.pack("<f", value), "little") >> 16


def encoder(dtype: DType) -> Callable[[float], int] | None:
    """From a number to what is stored, where that is not the number itself."""
    if dtype.bits != 16 or not dtype.is_float:
        return None
    return half_bits if dtype.kind is Kind.FLOAT else bfloat_bits


class Storage:
    """One block of memory: `size` bytes that exist, `unit` bytes to a state.

    `data` is somebody else's memory that is only read, a multiple of 8 bytes; without it the block has bytes of its
    own, all zero.
    """

    __slots__ = ("_views", "data", "name", "size", "state", "unit")

    def __init__(self, name: str, size: int, unit: int, data: npt.NDArray[np.uint8] | None = None) -> None:
        self.name, self.size, self.unit = name, size, unit
        self.data: npt.NDArray[np.uint8] = (
            data if data is not None else np.zeros(-(-max(size, 1) // 8) * 8, dtype=np.uint8)
        )
        self.state = bytearray(len(self.data) // unit)
        self._views: dict[str, memoryview] = {}

    def view(self, code: str) -> memoryview:
        """The bytes as numbers of a memoryview format."""
        view = self._views.get(code)
        if view is None:
            whole: Any = memoryview(self.data.data)
            view = self._views[code] = whole.cast(code)
        return view

    def read(self, dtype: DType, address: int) -> int | float:
        """Scalar number `address` as a `dtype` (one lane), whatever its state."""
        value: int | float = self.view(memory_format(dtype))[address]
        return model_values(dtype.kind)[int(value)] if encoder(dtype) is not None else value

    def write(self, dtype: DType, address: int, value: int | float) -> None:
        """Put a number of `dtype` (one lane) at scalar number `address`."""
        encode = encoder(dtype)
        view: Any = self.view(memory_format(dtype))
        view[address] = encode(float(value)) if encode is not None else value

    def scalars(self, dtype: DType) -> int:
        """How many scalars of `dtype` fit."""
        return self.size // (dtype.bits // 8)

    def states(self, size: int, address: int) -> bytearray:
        """The states of the units under the scalar of `size` bytes at scalar number `address`."""
        units = size // self.unit
        return self.state[address * units : (address + 1) * units]

    def set_states(self, size: int, address: int, state: int) -> None:
        """Give one state to the units under a scalar."""
        units = size // self.unit
        self.state[address * units : (address + 1) * units] = bytes((state,)) * units


def worst_state(states: bytearray) -> int:
    """One state for several units: the first that may not be read, else poison if any is."""
    for state in states:
        if not state & READABLE:
            return state
    return POISON if any(state & ARBITRARY for state in states) else DEFINED


def same_value(a: float, b: float) -> bool:
    """Value identity: +0 is not -0, a NaN is any NaN."""
    if a != a or b != b:
        return a != a and b != b
    return a == b and (a != 0 or math.copysign(1.0, a) == math.copysign(1.0, b))


class Fill(StrEnum):
    """The ways to choose."""

    RANDOM = "random"
    ZERO = "zero"
    NAN = "nan"
    INFINITY = "infinity"
    LOWEST = "lowest"


@dataclass(slots=True)
class Filling:
    """A source of arbitrary values; the same one gives the same values again."""

    fill: Fill = Fill.RANDOM
    seed: int = 0
    _random: random.Random = field(init=False, repr=False)
    _is_odd: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """From the first value again."""
        self._random, self._is_odd = random.Random(self.seed), False

    def value(self, dtype: DType) -> int | float:
        """The next value of a scalar type. Integers have no NaN and no infinity: their largest stands for both. Random
        ones are even and odd in turn, or a sum of two times the least would be 0 half of the time.
        """
        if dtype.is_float:
            return self._float(dtype)
        match self.fill:
            case Fill.RANDOM:
                self._is_odd = not self._is_odd
                return self._random.randint(dtype.min_int, dtype.max_int) & ~1 | self._is_odd
            case Fill.ZERO:
                return 0
            case Fill.NAN | Fill.INFINITY:
                return dtype.max_int
            case Fill.LOWEST:
                return dtype.min_int

    def _float(self, dtype: DType) -> float:
        match self.fill:
            case Fill.RANDOM:
                return round_float(self._random.uniform(-8.0, 8.0), dtype)
            case Fill.ZERO:
                return 0.0
            case Fill.NAN:
                return math.nan
            case Fill.INFINITY:
                return math.inf
            case Fill.LOWEST:
                return -max_finite(dtype)


def all_fillings() -> tuple[Filling, ...]:
    """One of each kind, and a second random one."""
    return (*(Filling(fill) for fill in Fill), Filling(Fill.RANDOM, 1))


class FaultKind(StrEnum):
    """What happened."""

    OUT_OF_BOUNDS = "out of bounds"
    UNINITIALISED = "read of an uninitialised cell"
    FORBIDDEN = "access to padding without a contract"
    TRAP = "trap"
    RACE = "race"
    OVERFLOW = "index overflow"
    ASSUMPTION = "violated assumption"
    UNDEF = "undefined value in control or an index"
    BINDING = "iteration variable outside its domain"


class Fault(Exception):
    """One fault, and the end of the run that met it.

    `span` is the place of the access or statement where the text is known, `block` the innermost block's name, `buffer`
    and `indices` (elements, one an axis) the access, `values` the loop, block and let variables in scope.
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        span: Span | None = None,
        block: str | None = None,
        buffer: str | None = None,
        indices: tuple[int, ...] = (),
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.kind, self.message, self.span, self.block = kind, message, span, block
        self.buffer, self.indices = buffer, indices
        self.values: Mapping[str, object] = dict(values) if values is not None else {}
        super().__init__(kind, message)

    def located(self, span: Span | None, block: str | None, values: Mapping[str, object]) -> Fault:
        """The same fault with its place filled in where it had none."""
        return Fault(
            self.kind,
            self.message,
            span=self.span if self.span is not None else span,
            block=self.block if self.block is not None else block,
            buffer=self.buffer,
            indices=self.indices,
            values=self.values if self.values else values,
        )

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        where = f" in block {self.block}" if self.block is not None else ""
        values = f" (with {', '.join(f'{k} = {v}' for k, v in self.values.items())})" if self.values else ""
        return f"{place}{self.kind.value}{where}: {self.message}{values}"

    def diagnostic(self, code: str) -> Diagnostic:
        """The fault as a message to a user, under the code that the caller's layer gives it."""
        return Diagnostic(code, str(self).removeprefix(f"{self.span}: "), self.span)


def cannot_interpret(what: str, span: Span | None = None) -> LayoutproofError:
    """The error for a program outside what has a meaning here; `what` names it."""
    return LayoutproofError(Diagnostic(codes.NOT_INTERPRETED, f"{what} cannot be interpreted", span))


def bad_argument(message: str) -> LayoutproofError:
    """The error for arguments that do not fit the function."""
    return LayoutproofError(Diagnostic(codes.RUN_ARGUMENT, message))


def over_limit(limit: int) -> LayoutproofError:
    """The error for a run that was stopped because it takes too long."""
    help_ = "run the backward slice of chosen cells, or raise the limit"
    return LayoutproofError(Diagnostic(codes.RUN_LIMIT, f"the run was stopped after {limit} iterations", help=help_))


def over_memory(name: str, size: int) -> LayoutproofError:
    """The error for a run that was stopped because it asks for too much memory."""
    return LayoutproofError(Diagnostic(codes.RUN_LIMIT, f"the run was stopped: `{name}` has {size} bytes"))


def access_text(buffer: str, indices: tuple[int, ...]) -> str:
    """`A[1, 2]`."""
    return f"{buffer}[{', '.join(map(str, indices))}]"
