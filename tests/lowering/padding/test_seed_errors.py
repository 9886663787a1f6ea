"""Where the roadmap's text is wrong, found by the checker; its padding of 18, its wrapped pad value and its `+ 2` are
in tests/proof.
"""

from __future__ import annotations

from itertools import product

import pytest
from tests.proof.litmus import ROWS, litmus
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status

MAP = "lambda i: [(i + 2)//8, (i + 2)%8]"
# The guards of the first and of the last row of eight, as they are, and as the document simplifies them "for
# readability".
RIGHT = ("not ii < 2 and not ii + fi < 2", "not ii >= 2 and not ii + fi >= 4")
DOCUMENT = ("ii >= 2 or ii + fi >= 2", "ii < 2 or ii + fi < 4")


def rows(name: str, first: str, last: str, contract: str, held: str) -> str:
    """The convolution over rows of 8, with a guard of its own in the first and in the last row."""
    steps = f'[{{"index_map": "{MAP}", "shape": [3, 8], "contract": "{contract}"}}]'
    update = "B[io + (ii + fi) // 8, (ii + fi) % 8] = B[io + (ii + fi) // 8, (ii + fi) % 8] + F[fi] * A[io, ii]"
    return f"""@T.prim_func(s_tir=True)
def {name}(A: T.Buffer((3, 8), "int32"), F: T.Buffer((3,), "int32"), B: T.Buffer((4, 8), "int32")):
    T.func_attr({{
        "tirx.noalias": True, "layoutproof.layout": {{"A_data": {{"logical_shape": [16], "steps": {steps}}}}}
    }})
    for p, q in T.grid(3, 8):
        T.evaluate(T.assume((p == 0 and q >= 2) or p == 1 or (p == 2 and q < 2) or A[p, q] == {held}))
    for io, ii, fi in T.grid(3, 8, 3):
        if (io != 0 or {first}) and (io != 2 or {last}):
            {update}
"""


def rewritten(contract: str, held: str) -> str:
    """Both forms, as a rewrite whose witness pairs what both do."""
    where = f"(io != 0 or {RIGHT[0]}) and (io != 2 or {RIGHT[1]})"
    right, document = (
        rows(name, f"({first})", f"({last})", contract, held)
        for name, (first, last) in (("before", RIGHT), ("after", DOCUMENT))
    )
    return (
        f"# theta: 0 -> 0: lambda io, ii, fi: [io, ii, fi] where {where}\n# from tvm.script import tirx as T\n\n"
        f"{right}\n\n{document}"
    )


def test_negations_that_become_a_disjunction_change_six_points() -> None:
    """`not a and not b` is not `a or b`: of the 72 iterations three of the first row and three of the last would run
    besides.
    """
    added = []
    for io, ii, fi in product(range(3), range(8), range(3)):
        names = {"ii": ii, "fi": fi}
        right, document = (io == 1 or bool(eval(texts[io // 2], {}, names)) for texts in (RIGHT, DOCUMENT))
        assert document or not right
        if document != right:
            added.append((io, ii, fi))
    assert added == [(0, 0, 2), (0, 1, 1), (0, 1, 2), (2, 2, 0), (2, 2, 1), (2, 3, 0)]


@one_in(4)
@pytest.mark.parametrize(
    "contract, held, status", [("undef", 'T.undef(dtype="int32")', Status.REFUTED), ("0", "0", Status.PROVED)]
)
def test_the_disjunction_needs_padding_of_zeros(contract: str, held: str, status: Status) -> None:
    """As a rewriting of conditions the document's step is wrong; that all six points read padding, which holds zeros,
    is what saves it.
    """
    verdicts = check_rewrite(parse_rewrite(rewritten(contract, held)), allowed=IEEE)
    assert worst(v.status for v in verdicts) is status, [
        (v.claim.text, v.reason) for v in verdicts if v.status is not Status.PROVED
    ]


def test_the_flagship_reads_out_of_bounds_at_three_points() -> None:
    """The branch that the document removes prevents exactly three reads of a fifth row; the refusal names one."""
    outside = [(io, ii, f) for io, ii, f in product(range(4), range(4), range(3)) if io + (ii + f) // 4 >= 4]
    assert outside == [(3, 2, 2), (3, 3, 1), (3, 3, 2)]
    (path,) = (path for path in ROWS if path.stem == "roadmap_convolution")
    refuted = [v for v in check_rewrite(litmus(path).rewrite) if v.status is Status.REFUTED]
    (found,) = (v for v in refuted if v.claim.text.startswith("read A["))
    assert found.counterexample is not None
    assert tuple(found.counterexample["values"][name] for name in ("io", "ii", "f")) in outside
