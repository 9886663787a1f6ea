"""Coq accepts what the kernel accepts: of each refutation it checks a proof of its own."""

from __future__ import annotations

from pathlib import Path
from random import Random

from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly
from tests.oracle.integers import coq
from tests.oracle.integers.campaign import judged_by_coq
from tests.oracle.integers.items import Item, item_of
from tests.oracle.integers.samples import samples
from tests.shares import one_in

x, y = Poly.var("x"), Poly.var("y")
SUM: Item = ["sum", [[1, [0]], [1, [1]]], []]


@one_in(7)
def test_coq_accepts_what_the_kernel_accepts(tmp_path: Path) -> None:
    """Forty of the recorded proofs, as theorems."""
    leaves, refused = judged_by_coq(Random("coq").sample(samples(), 40), tmp_path)
    assert refused == [] and leaves >= 40


@one_in(4)
def test_each_rule_becomes_a_proof(tmp_path: Path) -> None:
    """Products, multiples of zeros, branches, and splits of no, one, two and three cases."""
    wide = tuple(Case((x - k,)) for k in (3, 4, 5))
    low = Question((2 - x,), (), (wide,))
    items = [
        item_of(Question((x - 2, y - 2, 3 - x * y)), ["sum", [[1, [0, 1]], [2, [0]], [2, [1]], [1, [2]]], []]),
        item_of(Question((x * y - 1,), (x,)), ["sum", [[1, [0]]], [[(-y).to_json(), 0]]]),
        item_of(Question((x, x, x, -(x * x * x) - 1)), ["sum", [[1, [0, 1, 2]], [1, [3]]], []]),
        item_of(Question((x,), (), ((),)), ["split", 0, []]),
        item_of(Question((-x,), (), ((Case((x - 1,)),),)), ["split", 0, [SUM]]),
        item_of(low, ["split", 0, [SUM, SUM, SUM]]),
        item_of(Question(low.facts, (), (wide[:2],)), ["split", 0, [SUM, SUM]]),
    ]
    assert judged_by_coq(items, tmp_path) == (9, [])


@one_in(7)
def test_coq_refuses_what_is_false(tmp_path: Path) -> None:
    """Of questions with a solution each proof is refused, and those between them are accepted."""
    right = item_of(Question((x - 1, -x)), SUM)
    wrong = item_of(Question((x - 1, 1 - x)), SUM)
    half = item_of(Question((2 * x - 1, 1 - x)), ["branch", (x - 1).to_json(), SUM, ["sum", [[1, [0]], [2, [2]]], []]])
    scripts = {str(k): coq.Script(item).lines for k, item in enumerate((wrong, right, half, right))}
    assert set(coq.refused(scripts, tmp_path)) == {"0", "2"}
