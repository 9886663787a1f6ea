"""`remove_store_undef` and `remove_assume`: compile-time statements go, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.programs import copy, program

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import run
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.visit import stores_in, walk
from layoutproof.lowering.layout.transform_layout import TransformLayout
from layoutproof.lowering.lower.undef import RemoveAssume, RemoveStoreUndef
from layoutproof.lowering.schedule.schedule import Schedule


def single(body: str) -> PrimFunc:
    """A function over an int32 buffer of 4 and a float32 buffer of 4."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return program(f'def main(A: T.Buffer((4,), "int32"), F: T.Buffer((4,), "float32")):\n{lines}\n')


@pytest.mark.parametrize(
    "body",
    [
        'A[0] = T.undef(dtype="int32")',
        'A[0] = 1 + T.undef(dtype="int32")',
        'A[0] = 3 * (T.undef(dtype="int32") - A[1])',
        'A[0] = T.if_then_else(A[1] > 0, T.undef(dtype="int32"), T.undef(dtype="int32"))',
        'x: T.int32 = T.undef(dtype="int32")\nA[0] = x',
        'x: T.int32 = T.undef(dtype="int32")\ny: T.int32 = x + 2\nA[0] = y',
        'F[0] = T.undef(dtype="float32")',
    ],
)
def test_stores_of_undefined_values_go(body: str) -> None:
    """Fact 92: a value that may be anything need not be stored, lets included."""
    new = RemoveStoreUndef().propose(single(f"{body}\nA[1] = 5")).new
    assert len(list(stores_in(new.body))) == 1
    assert not any(isinstance(n, Undef) for n in walk(new.body))


@pytest.mark.parametrize(
    "body, left",
    [
        ('A[0] = 0 * T.undef(dtype="int32")', "A[0] = 0 * 0"),
        ('A[0] = 2 * T.undef(dtype="int32")', "A[0] = 2 * 0"),
        ('A[0] = T.if_then_else(A[1] > 0, T.undef(dtype="int32"), 7)', "A[0] = T.if_then_else(A[1] > 0, 0, 7)"),
        ('x: T.int32 = T.undef(dtype="int32")\nA[0] = x - x', "A[0] = x - x"),
        ('x: T.int32 = T.undef(dtype="int32")\ny: T.int32 = x * 2\nA[0] = x + y', "A[0] = x + y"),
        ('F[0] = T.float32(1) + T.undef(dtype="float32")', "F[0] = T.float32(1.0) + T.float32(0.0)"),
        ('F[0] = T.exp(T.undef(dtype="float32"))', "F[0] = T.exp(T.float32(0.0))"),
        ('A[0] = T.Cast("int32", T.undef(dtype="int8"))', 'A[0] = T.Cast("int32", T.int8(0))'),
    ],
)
def test_stores_of_partly_undefined_values_stay(body: str, left: str) -> None:
    """A value that cannot be just anything is stored, with zero for what is undefined: leaving the old value there
    would be wrong.
    """
    new = RemoveStoreUndef().propose(single(body)).new
    assert left in print_func(new)
    assert not any(isinstance(n, Undef) for n in walk(new.body))


@pytest.mark.parametrize(
    "body, words",
    [
        ('A[T.undef(dtype="int32")] = 5', "an index of A"),
        ('A[0] = A[T.undef(dtype="int32")]', "an index of A"),
        ('x: T.int32 = T.undef(dtype="int32")\nA[x] = 5', "an index of A"),
        ('if T.undef(dtype="int32") > 0:\n    A[0] = 5', "the condition of a branch"),
        ('A[0] = T.if_then_else(T.undef(dtype="int32") > 0, 1, 2)', "the condition of a choice"),
        ('for i in range(T.undef(dtype="int32")):\n    A[0] = 5', "the range of loop i"),
    ],
)
def test_undefined_control_is_an_error(body: str, words: str) -> None:
    """Fact 92: an undefined value in an index, a range or a condition is refused, with the place."""
    with pytest.raises(LayoutproofError) as caught:
        RemoveStoreUndef().propose(single(body))
    message = caught.value.diagnostics[0]
    assert message.code == "LP351" and words in message.message and message.span is not None


def test_temporaries_that_are_read_are_written() -> None:
    """An undefined cell of a temporary holds one value, whichever: leaving out its store would leave the read without
    any.
    """
    func = program("""def main(A: T.Buffer((4,), "int32")):
    B = T.alloc_buffer((4,), "int32")
    C = T.alloc_buffer((4,), "int32")
    for i in range(4):
        B[i] = T.undef(dtype="int32")
        C[i] = T.undef(dtype="int32")
    for i in range(4):
        A[i] = B[i]
""")
    schedule = Schedule(func)
    text = print_func(schedule.lower())
    assert "B[i] = 0" in text and "C[i]" not in text


def test_the_witness_knows_which_stores_are_left() -> None:
    """Removed stores leave a gap in the numbering of the old ones."""
    func = single('A[0] = 1\nA[1] = T.undef(dtype="int32")\nA[2] = 3')
    assert [m.old_store for m in RemoveStoreUndef().propose(func).witness.instances] == [0, 2]


def test_assumptions_and_what_held_only_them_go() -> None:
    """The stage that assumes padding disappears with its loops; the computation stays."""
    func = TransformLayout("root", "A", "lambda i: [i//4, i%4]", 0.0).propose(copy()).new
    new = RemoveAssume().propose(func).new
    assert not any(isinstance(n, Assume) for n in walk(new.body))
    assert print_func(new).count("for ") == 1
    given = {"A": np.ones((4, 4), np.float32), "B": np.zeros(14, np.float32)}
    assert run(new, given)["B"].tolist() == [1.0] * 14
    assert RemoveAssume().propose(new).new == new


def test_branches_with_only_an_assumption_go() -> None:
    """An emptied branch goes; the other side of it stays."""
    func = single("if A[0] > 0:\n    T.assume(A[1] == 0)\nelse:\n    A[2] = 1\nif A[0] > 1:\n    T.assume(A[1] == 1)")
    assert print_func(RemoveAssume().propose(func).new).count("if ") == 1
