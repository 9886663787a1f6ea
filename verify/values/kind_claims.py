"""The tables of kinds as claims for solvers: no operands of these kinds give a result of another kind than the table says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from layoutproof.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import Binary, BinaryOp, Cast, Expr, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.verify.smt.encode_values import ValueEncoder, conjunction, disjunction
from layoutproof.verify.values.classes import KINDS, NAN, NEG, NEG_INF, NEG_ZERO, POS, POS_INF, POS_ZERO

_TESTS: Mapping[int, str] = {
    NAN: "(fp.isNaN {0})",
    NEG_INF: "(and (fp.isInfinite {0}) (fp.isNegative {0}))",
    NEG: "(and (fp.isNegative {0}) (not (fp.isInfinite {0})) (not (fp.isZero {0})))",
    NEG_ZERO: "(and (fp.isZero {0}) (fp.isNegative {0}))",
    POS_ZERO: "(and (fp.isZero {0}) (fp.isPositive {0}))",
    POS: "(and (fp.isPositive {0}) (not (fp.isInfinite {0})) (not (fp.isZero {0})))",
    POS_INF: "(and (fp.isInfinite {0}) (fp.isPositive {0}))",
}


def _binary(op: BinaryOp) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Binary(op, a, b)


def _call(function: str) -> Callable[..., Expr]:
    return lambda *arguments: Call(function, arguments)


OPERATIONS: Mapping[str, Callable[..., Expr]] = {
    **{op.value: _binary(op) for op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX)},
    **{name: _call(name) for name in ("fmin", "fmax", "minimum", "maximum", "abs", "sqrt", "floor", "ceil", "trunc", "round")},
}
"""Every operation with a table, conversions apart."""

# The conversions that lose something.
_NARROWER: Mapping[DType, tuple[DType, ...]] = {
    FLOAT64: (FLOAT32, FLOAT16, BFLOAT16),
    FLOAT32: (FLOAT16, BFLOAT16),
    FLOAT16: (BFLOAT16,),
    BFLOAT16: (FLOAT16,),
}


@dataclass(frozen=True, slots=True)
class KindScript:
    """One claim as SMT-LIB; `unsat` is its proof. `words` writes the operation."""

    name: str
    words: str
    text: str
    logic: str


def kinds_script(operation: str, dtype: DType, table: list[int]) -> Iterator[KindScript]:
    """The claims that a table holds in a float type."""
    x, y = Var("x", dtype), Var("y", dtype)
    if operation == "narrow":
        for target in _NARROWER[dtype]:
            yield _script(f"from {dtype} to {target}", Cast(target, x), (x,), table)
        return
    operands = (x, y) if len(table) == len(KINDS) ** 2 else (x,)
    yield _script(f"{operation} in {dtype}", OPERATIONS[operation](*operands), operands, table)


def _script(words: str, expr: Expr, operands: tuple[Var, ...], table: list[int]) -> KindScript:
    encoder = ValueEncoder()
    terms = [encoder.value(v) for v in operands]
    result = encoder.value(expr)

    def is_kind(term: str, kind: int) -> str:
        return encoder.define(_TESTS[kind].format(term), "Bool")

    cases = []
    for row, allowed in enumerate(table):
        kinds = (KINDS[row],) if len(operands) == 1 else (KINDS[row // len(KINDS)], KINDS[row % len(KINDS)])
        others = [is_kind(result, kind) for kind in KINDS if not kind & allowed]
        cases.append(conjunction([*(is_kind(term, kind) for kind, term in zip(kinds, terms, strict=True)), disjunction(others)]))
    return KindScript(f"kinds of {words}", words, encoder.script([disjunction(cases)], f"the kinds of {words}"), encoder.logic)
