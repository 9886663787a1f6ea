"""What generated source calls: the checks that failed, races, and the operations that Python has no operator for."""

from __future__ import annotations

import math
from typing import NoReturn

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.interp import memory, number
from layoutproof.ir.interp.fault import Fault, FaultKind, access_text, over_limit
from layoutproof.ir.semantics import Trap

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
    """Who touched which cell of one memory, among the iterations of one run of a concurrent loop.

    Iterations are run one after the other, so of a cell's readers the first is enough: whoever writes later is that one only
    if it is the only one.
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
    message = f"{access_text(buffer, indices)}: iteration {one} {first} it, iteration {other} {second} it, and nothing orders them"
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
        "half_values": memory.half_values(Kind.FLOAT),
        "bfloat_values": memory.half_values(Kind.BFLOAT),
        "half_bits": memory.half_bits,
        "bfloat_bits": memory.bfloat_bits,
        "float_div": number.float_div,
        "fused_multiply_add": number.fused_multiply_add,
        "round_float": semantics.round_float,
        "int_to_float": semantics.int_to_float,
        "float_to_int": semantics.float_to_int,
        **{f"exact_{name}": function for name, function in number.EXACT.items()},
        **{f"rounded_{name}": function for name, function in number.ROUNDED.items()},
        **{f"library_{name}": function for name, function in number.LIBRARY.items()},
    }
