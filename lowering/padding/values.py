"""Pad values worth trying: what the reductions over a buffer leave alone, and the values that everybody tries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, FloatImm, IntImm
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import stores_in, walk
from layoutproof.lowering.pad_value import PadText


@dataclass(frozen=True, slots=True)
class CandidateValue:
    """A pad value to try, as a trace states it, and why."""

    pad: PadText
    why: str

    def __str__(self) -> str:
        if self.pad is None:
            return "no contract"
        return {"T.undef()": "undef"}.get(self.pad, self.pad) if isinstance(self.pad, str) else repr(self.pad)


# What an operator leaves alone, exactly or on one side of zero: the laws are the checker's, these are only tried.
_NEUTRAL: Mapping[str, tuple[str, ...]] = {
    "+": ("0", "-0"),
    "-": ("0", "-0"),
    "*": ("1",),
    "max": ("-inf", "lowest"),
    "min": ("inf", "highest"),
    "fmax": ("-inf", "lowest"),
    "fmin": ("inf", "highest"),
    "maximum": ("-inf", "lowest"),
    "minimum": ("inf", "highest"),
    "&": ("ones",),
    "|": ("0",),
    "^": ("0",),
}
_OPERATORS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)


def candidate_values(scope: Stmt, buffer: Buffer) -> tuple[CandidateValue, ...]:
    """Pad values for a buffer that is used below `scope`: no contract and `undef` first, then the identities of the reductions seen,
    numbers that are taken away from its elements, zero, one, and the ends of the type.
    """
    dtype = buffer.dtype.element
    found: dict[str, CandidateValue] = {}
    wanted: list[tuple[PadText, str]] = [(None, "nobody may touch padding"), ("T.undef()", "anything may be there")]
    for operator in dict.fromkeys(_reductions(scope)):
        wanted += [(value, f"identity of {operator}") for name in _NEUTRAL[operator] if (value := _value(name, dtype)) is not None]
    wanted += [(number, "taken away from each element") for number in _taken_away(scope, buffer)]
    ends = ("-inf", "inf") if dtype.is_float else ("lowest", "highest")
    for name, why in (("0", "zero"), ("1", "one"), (ends[0], "low end of the type"), (ends[1], "high end of the type")):
        value = _value(name, dtype)
        if value is not None:
            wanted.append((value, why))
    for pad, why in wanted:
        candidate = CandidateValue(pad, why)
        found.setdefault(str(candidate), candidate)
    return tuple(found.values())


def _value(name: str, dtype: DType) -> PadText:
    """A value by its name, as a trace states it; None where the type has none such."""
    if dtype.is_bool:
        return {"0": False, "1": True, "ones": True, "lowest": False, "highest": True}.get(name)
    if dtype.is_float:
        floats: dict[str, PadText] = {"0": 0.0, "-0": -0.0, "1": 1.0, "-inf": f'T.{dtype}("-inf")', "inf": f'T.{dtype}("inf")'}
        limits: dict[str, PadText] = {"lowest": f'T.min_value("{dtype}")', "highest": f'T.max_value("{dtype}")'}
        return {**floats, **limits}.get(name)
    lowest, highest = dtype.min_int, dtype.max_int
    integers = {"0": 0, "1": 1, "-inf": lowest, "lowest": lowest, "inf": highest, "highest": highest}
    return {**integers, "ones": -1 if lowest < 0 else highest}.get(name)


def _reductions(scope: Stmt) -> Iterator[str]:
    """The operators by which stores below `scope` combine what is in a cell with something else."""
    for store in stores_in(scope):
        operator = _operator(store)
        if operator is not None:
            yield operator


def _operator(store: BufferStore) -> str | None:
    match store.value:
        case Binary(op=op, lhs=lhs, rhs=rhs) if op in _OPERATORS:
            return op.value if any(_is_cell(side, store) for side in (lhs, rhs)) else None
        case Call(function=function, arguments=arguments) if function in _NEUTRAL:
            return function if any(_is_cell(side, store) for side in arguments) else None
        case Call(function="fma", arguments=arguments):
            return "+" if _is_cell(arguments[-1], store) else None
        case _:
            return None


def _is_cell(value: Expr, store: BufferStore) -> bool:
    return isinstance(value, BufferLoad) and value.buffer == store.buffer and value.indices == store.indices


def _taken_away(scope: Stmt, buffer: Buffer) -> Iterator[int | float]:
    """Constants that are subtracted from elements: the zero point of quantised data."""
    for node in walk(scope):
        if isinstance(node, Binary) and node.op is BinaryOp.SUB and isinstance(node.rhs, IntImm | FloatImm):
            left = node.lhs
            while isinstance(left, Cast):
                left = left.value
            number = node.rhs.value
            if isinstance(left, BufferLoad) and left.buffer == buffer and _fits(number, buffer.dtype.element):
                yield number


def _fits(number: int | float, dtype: DType) -> bool:
    return dtype.is_float or (isinstance(number, int) and dtype.min_int <= number <= dtype.max_int)
