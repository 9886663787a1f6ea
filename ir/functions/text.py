"""Sequences as program text, one assignment for each step: Python to evaluate them (on numbers, or on arrays), C and OpenCL to emit them.

One writer and a table of spellings, so that no two readings of a sequence can differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from layoutproof.ir.functions.sequence import Op, Operand, Ref, Sequence, Step


@dataclass(frozen=True, slots=True)
class Spelling:
    """A language: each operation as a pattern over its operands, constants, and an assignment by whether it declares a word."""

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
    """The steps, each assigned to a name of its own, without the end of a statement; the last one's name is `result_name`."""
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
