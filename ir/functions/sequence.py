"""Sequences of IEEE 754 operations on float64 numbers and their bits, of which math functions are made, with their text
in Python, C and OpenCL.

There are no branches, so a sequence has the same result everywhere, as long as no operation is contracted, regrouped or
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Op(Enum):
    """An operation. Words are unsigned and wrap; a choice is its third operand where the comparison holds."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    SQRT = auto()
    ABS = auto()
    COPYSIGN = auto()
    IF_LESS = auto()
    IF_EQUAL = auto()
    BITS = auto()
    NUMBER = auto()
    WORD_ADD = auto()
    WORD_SUB = auto()
    WORD_AND = auto()
    WORD_OR = auto()
    WORD_XOR = auto()
    LEFT = auto()
    RIGHT = auto()


WORDS = frozenset({Op.BITS, Op.WORD_ADD, Op.WORD_SUB, Op.WORD_AND, Op.WORD_OR, Op.WORD_XOR, Op.LEFT, Op.RIGHT})
"""Operations whose result is a word."""


@dataclass(frozen=True, slots=True)
class Ref:
    """The result of a step by its number; 0 is the argument."""

    number: int


Operand = Ref | float | int
"""An earlier result, or a constant: a float64 number, or a word (and the distance of a shift)."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation."""

    op: Op
    operands: tuple[Operand, ...]

    @property
    def is_word(self) -> bool:
        """Whether the result is a word."""
        return self.op in WORDS


@dataclass(frozen=True, slots=True)
class Sequence:
    """The steps of a function of one argument: step `n` is `Ref(n + 1)`, and the last is the result."""

    steps: tuple[Step, ...]


class Line:
    """A sequence in the making."""

    def __init__(self) -> None:
        self._steps: list[Step] = []

    @property
    def argument(self) -> Term:
        """The argument."""
        return Term(self, Ref(0))

    def step(self, op: Op, *operands: Term | float | int) -> Term:
        """Append an operation; the result."""
        self._steps.append(Step(op, tuple(o.ref if isinstance(o, Term) else o for o in operands)))
        return Term(self, Ref(len(self._steps)))

    def finish(self, result: Term) -> Sequence:
        """The sequence, which ends with `result`."""
        assert result.ref.number == len(self._steps), "a step after the result"
        return Sequence(tuple(self._steps))


@dataclass(frozen=True, slots=True)
class Term:
    """A result in a line in the making, with the operators of float64."""

    line: Line
    ref: Ref

    def __add__(self, other: Term | float) -> Term:
        return self.line.step(Op.ADD, self, other)

    def __sub__(self, other: Term | float) -> Term:
        return self.line.step(Op.SUB, self, other)

    def __rsub__(self, other: float) -> Term:
        return self.line.step(Op.SUB, other, self)

    def __mul__(self, other: Term | float) -> Term:
        return self.line.step(Op.MUL, self, other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.line.step(Op.DIV, self, other)

    def __rtruediv__(self, other: float) -> Term:
        return self.line.step(Op.DIV, other, self)

    def __abs__(self) -> Term:
        return self.line.step(Op.ABS, self)

    def sqrt(self) -> Term:
        """The square root; NaN of a negative number."""
        return self.line.step(Op.SQRT, self)

    def signed_like(self, other: Term) -> Term:
        """This magnitude with the sign of another number."""
        return self.line.step(Op.COPYSIGN, self, other)

    def below(self, limit: float, then: Term | float, otherwise: Term | float) -> Term:
        """`then` where this is less than `limit`, else `otherwise`, also for NaN."""
        return self.line.step(Op.IF_LESS, self, limit, then, otherwise)

    def above(self, limit: float, then: Term | float, otherwise: Term | float) -> Term:
        """`then` where this is more than `limit`, else `otherwise`, also for NaN."""
        return self.line.step(Op.IF_LESS, limit, self, then, otherwise)

    def equal(self, to: float, then: Term | float, otherwise: Term | float) -> Term:
        """`then` where this equals `to`, else `otherwise`."""
        return self.line.step(Op.IF_EQUAL, self, to, then, otherwise)

    @property
    def bits(self) -> Word:
        """The 64 bits of this number."""
        return Word(self.line, self.line.step(Op.BITS, self).ref)


@dataclass(frozen=True, slots=True)
class Word:
    """A result of 64 bits in a line in the making."""

    line: Line
    ref: Ref

    def _step(self, op: Op, other: Word | int) -> Word:
        operand: Term | int = Term(self.line, other.ref) if isinstance(other, Word) else other
        return Word(self.line, self.line.step(op, Term(self.line, self.ref), operand).ref)

    def __add__(self, other: Word | int) -> Word:
        return self._step(Op.WORD_ADD, other)

    def __sub__(self, other: Word | int) -> Word:
        return self._step(Op.WORD_SUB, other)

    def __and__(self, other: Word | int) -> Word:
        return self._step(Op.WORD_AND, other)

    def __or__(self, other: Word | int) -> Word:
        return self._step(Op.WORD_OR, other)

    def __xor__(self, other: Word | int) -> Word:
        return self._step(Op.WORD_XOR, other)

    def __lshift__(self, by: int) -> Word:
        return self._step(Op.LEFT, by)

    def __rshift__(self, by: int) -> Word:
        return self._step(Op.RIGHT, by)

    @property
    def number(self) -> Term:
        """The float64 number of these bits."""
        return self.line.step(Op.NUMBER, Term(self.line, self.ref))


@dataclass(frozen=True, slots=True)
class Spelling:
    """A language: operations as patterns over operands, constants, and assignments by whether they declare a word."""

    operations: Mapping[Op, str]
    number: Callable[[float], str]
    word: Callable[[int], str]
    assignment: Callable[[bool], str]


def _symmetric(spelt: Mapping[Op, str]) -> Mapping[Op, str]:
    plain = {Op.ADD: "{0} + {1}", Op.SUB: "{0} - {1}", Op.MUL: "{0} * {1}", Op.WORD_AND: "{0} & {1}"}
    return {**plain, Op.WORD_OR: "{0} | {1}", Op.WORD_XOR: "{0} ^ {1}", **spelt}


def _python_number(value: float) -> str:
    return repr(value) if value - value == 0.0 else f"float('{value!r}')"


_KEPT = "0xFFFFFFFFFFFFFFFF"

PYTHON = Spelling(
    _symmetric(
        {
            Op.DIV: "divided({0}, {1})",
            Op.SQRT: "root({0})",
            Op.ABS: "abs({0})",
            Op.COPYSIGN: "copysign({0}, {1})",
            Op.IF_LESS: "{2} if {0} < {1} else {3}",
            Op.IF_EQUAL: "{2} if {0} == {1} else {3}",
            Op.BITS: "bits({0})",
            Op.NUMBER: "number({0})",
            Op.WORD_ADD: f"({{0}} + {{1}}) & {_KEPT}",
            Op.WORD_SUB: f"({{0}} - {{1}}) & {_KEPT}",
            Op.LEFT: f"({{0}} << {{1}}) & {_KEPT}",
            Op.RIGHT: "{0} >> {1}",
        }
    ),
    _python_number,
    str,
    lambda is_word: "",
)

NUMPY = Spelling(
    _symmetric(
        {
            Op.DIV: "{0} / {1}",
            Op.SQRT: "root({0})",
            Op.ABS: "abs({0})",
            Op.COPYSIGN: "copysign({0}, {1})",
            Op.IF_LESS: "where({0} < {1}, {2}, {3})",
            Op.IF_EQUAL: "where({0} == {1}, {2}, {3})",
            Op.BITS: "bits({0})",
            Op.NUMBER: "number({0})",
            Op.WORD_ADD: "{0} + {1}",
            Op.WORD_SUB: "{0} - {1}",
            Op.LEFT: "{0} << {1}",
            Op.RIGHT: "{0} >> {1}",
        }
    ),
    _python_number,
    lambda value: f"word({value})",
    lambda is_word: "",
)


def _c_number(value: float) -> str:
    if value != value:
        return "NAN"
    return value.hex() if value - value == 0.0 else "INFINITY" if value > 0 else "-INFINITY"


C = Spelling(
    _symmetric(
        {
            Op.DIV: "{0} / {1}",
            Op.SQRT: "sqrt({0})",
            Op.ABS: "fabs({0})",
            Op.COPYSIGN: "copysign({0}, {1})",
            Op.IF_LESS: "{0} < {1} ? {2} : {3}",
            Op.IF_EQUAL: "{0} == {1} ? {2} : {3}",
            Op.BITS: "lp_bits({0})",
            Op.NUMBER: "lp_number({0})",
            Op.WORD_ADD: "{0} + {1}",
            Op.WORD_SUB: "{0} - {1}",
            Op.LEFT: "{0} << {1}",
            Op.RIGHT: "{0} >> {1}",
        }
    ),
    _c_number,
    lambda value: f"UINT64_C({value})",
    lambda is_word: "uint64_t " if is_word else "double ",
)


def statements(sequence: Sequence, spelling: Spelling, argument: str) -> Iterator[str]:
    """The steps, each assigned to a name, without the statement's end; the last name is `result_name`."""
    for number, step in enumerate(sequence.steps, 1):
        yield f"{spelling.assignment(step.is_word)}v{number} = {_expression(step, spelling, argument)}"


def result_name(sequence: Sequence) -> str:
    """The name that the result was assigned to."""
    return f"v{len(sequence.steps)}"


def _expression(step: Step, spelling: Spelling, argument: str) -> str:
    return spelling.operations[step.op].format(*(_operand(o, spelling, argument) for o in step.operands))


def _operand(operand: Operand, spelling: Spelling, argument: str) -> str:
    match operand:
        case Ref(number=0):
            return argument
        case Ref(number=number):
            return f"v{number}"
        case float():
            return spelling.number(operand)
        case int():
            return spelling.word(operand)
