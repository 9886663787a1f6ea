"""Operations that may have no result, in a stored value and in the model of it."""

from __future__ import annotations

import pytest

from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import stores_in
from layoutproof.verify.flow.statement_reader import read_statements
from layoutproof.verify.program.accesses import read_program
from layoutproof.verify.program.traps import has_operations_of

PROGRAM = """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), X: T.Buffer((8,), "float32"), n: T.int32):
    T.func_attr({{"tirx.noalias": True}})
    {statement}
"""
SUM = "for i in range(8): B[i] = A[i] // n + A[i] % n"
LANES = "B[T.Ramp(0, 1, 8)] = T.Broadcast(7, 8) // A[T.Ramp(0, 1, 8)]"
VALUES = [
    SUM,
    LANES,
    "for i in range(8): B[i] = T.if_then_else(A[i] > 0, 7 // A[i], T.Cast('int32', X[i]))",
    "for i in range(8): B[i] = T.Select(A[i] > 0, 7 >> A[i], 3 // (n + 2))",
    "B[T.Ramp(0, 1, 8)] = T.Cast('int32x8', X[T.Ramp(0, 1, 8)] + T.Broadcast(T.float32(1), 8))",
]


@pytest.mark.parametrize("statement", VALUES)
def test_a_model_has_the_operations_of_its_store(statement: str) -> None:
    """Lanes told apart, and loads as variables: the operations are those of the text, and no other value's."""
    values = []
    for text in (statement, *VALUES):
        func = loads(PROGRAM.format(statement=text))
        (stored,), (model,) = stores_in(func.body), read_statements(read_program(func, None)).statements
        values.append((stored.value, model.value))
    (stored_value, said), *others = values
    assert has_operations_of(said, stored_value)
    same = [has_operations_of(other, stored_value) for _, other in others]
    assert same == [text == statement for text in VALUES]


@pytest.mark.parametrize(
    "other",
    [
        "for i in range(8): B[i] = A[i] // n + A[i] // n",
        "for i in range(8): B[i] = A[i] % n + A[i] // n",
        "for i in range(8): B[i] = A[i] // n + T.truncmod(A[i], n)",
        "for i in range(8): B[i] = A[i] // n",
    ],
)
def test_as_many_operations_are_not_the_same(other: str) -> None:
    """What is evaluated is compared, not how often something is."""
    stored, model = (loads(PROGRAM.format(statement=text)) for text in (SUM, other))
    (statement,) = read_statements(read_program(model, None)).statements
    assert not has_operations_of(statement.value, next(stores_in(stored.body)).value)
