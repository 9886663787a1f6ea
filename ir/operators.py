"""The operators of expressions, by name."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class BinaryOp(StrEnum):
    """Operations on two values of one type; the value is the name used in messages and tables."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    FLOORMOD = "%"
    TRUNCDIV = "truncdiv"
    TRUNCMOD = "truncmod"
    MIN = "min"
    MAX = "max"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"
    SHL = "<<"
    SHR = ">>"


class CompareOp(StrEnum):
    """Comparisons; on floats they are IEEE's."""

    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> CompareOp:
        """What holds of two integers where this does not."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> CompareOp:
        """The same comparison with its sides exchanged."""
        return _MIRRORED.get(self, self)


_NEGATED: Mapping[CompareOp, CompareOp] = {
    CompareOp.EQ: CompareOp.NE,
    CompareOp.NE: CompareOp.EQ,
    CompareOp.LT: CompareOp.GE,
    CompareOp.LE: CompareOp.GT,
    CompareOp.GT: CompareOp.LE,
    CompareOp.GE: CompareOp.LT,
}
_MIRRORED: Mapping[CompareOp, CompareOp] = {
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}


class LogicalOp(StrEnum):
    """Connectives of truth values; both sides are evaluated left to right and the right side only when it matters."""

    AND = "and"
    OR = "or"


DIVISIONS = frozenset((BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD))
"""Quotients and remainders of integers, which have no value where the divisor is 0."""

# As Python's syntax has them.
BINARY_OPERATORS: Mapping[type[ast.operator], BinaryOp] = {
    ast.Add: BinaryOp.ADD,
    ast.Sub: BinaryOp.SUB,
    ast.Mult: BinaryOp.MUL,
    ast.Div: BinaryOp.DIV,
    ast.FloorDiv: BinaryOp.FLOORDIV,
    ast.Mod: BinaryOp.FLOORMOD,
    ast.BitAnd: BinaryOp.BITAND,
    ast.BitOr: BinaryOp.BITOR,
    ast.BitXor: BinaryOp.BITXOR,
    ast.LShift: BinaryOp.SHL,
    ast.RShift: BinaryOp.SHR,
}

# On Python numbers, numpy arrays and whatever else has Python's comparisons.
COMPARISONS: Mapping[CompareOp, Callable[[Any, Any], Any]] = {
    CompareOp.EQ: operator.eq,
    CompareOp.NE: operator.ne,
    CompareOp.LT: operator.lt,
    CompareOp.LE: operator.le,
    CompareOp.GT: operator.gt,
    CompareOp.GE: operator.ge,
}
