"""What other compilers got wrong, written as pairs: each is refuted by a run."""

from __future__ import annotations

import pytest
from tests.lowering.compare.copies import func
from tests.lowering.compare.pairs import Pair, case_name, cases, check, named, pairs
from tests.shares import one_in

import layoutproof as lp
from layoutproof.verify.verdict.verdict import Status


@one_in(4)
@pytest.mark.parametrize(("pair", "given"), cases("defects"), ids=case_name)
def test_defects(pair: Pair, given: bool) -> None:
    """A rotation lost, iterations out of bounds, maxima over zeros, padding filled now and then, transposes that cancel
    by shape.
    """
    check(pair, given)


def test_padding_that_nobody_promised() -> None:
    """The padding that is filled now and then is no defect where no value was promised: the contract that is found says
    so.
    """
    found = named(pairs("defects"), "padding_under_the_producer_s_condition").compared(given=False)
    assert found.status is Status.PROVED
    assert [(layout.pad_value, layout.pad_given) for layout in found.layouts] == [("undef", False)]


_WRAPS = 'A: T.Buffer((1,), "int32"), B: T.Buffer((1,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32'
_EXACT = "B[0] = C[T.max(T.min(A[0] // 32768, 7), 0)]"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x: T.int32 = A[0] * 2\nB[0] = C[T.max(T.min(x // 65536, 7), 0)]", _EXACT),
        (_EXACT, "x: T.int32 = A[0] * 2\nB[0] = C[T.max(T.min(x // 65536, 7), 0)]"),
        ("for i in range(8):\n    C[i] = i * n", "for i in range(8):\n    x: T.int32 = i * n\n    C[i] = x"),
    ],
)
def test_a_let_that_wraps_is_no_index(before: str, after: str) -> None:
    """A product on data wraps in a let, also of one store, and would have to fit in an index; one on loops has to fit
    in a let, and wraps in what is stored.
    """
    assert lp.compare(func(_WRAPS, before), func(_WRAPS, after)).status is Status.REFUTED
