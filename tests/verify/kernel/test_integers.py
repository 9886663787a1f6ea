"""The kernel accepts a proof only where no integers satisfy the question."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from random import Random

import pytest
from tests.shares import one_in
from tests.verify.kernel.questions import damaged, has_point, random_question

from layoutproof.verify.certificate.finder.integer_refutations import find_refutation
from layoutproof.verify.kernel import integers
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.rejected import Rejected

x, y = Poly.var("x"), Poly.var("y")
EMPTY = Question((x - 1, -x))  # 1 <= x <= 0
SUM: list[object] = ["sum", [[1, [0]], [1, [1]]], []]


def is_accepted(question: Question, proof: object) -> bool:
    """Whether the kernel accepts; it raises nothing but Rejected."""
    try:
        check_refutation(question, proof)
    except Rejected:
        return False
    return True


def test_a_sum_of_facts_that_is_negative_is_accepted() -> None:
    """`x - 1 >= 0` and `-x >= 0` add up to -1."""
    check_refutation(EMPTY, SUM)


@pytest.mark.parametrize(
    ("question", "proof"),
    [
        # 2x == 2y + 1, by the side on which x - y is.
        (
            Question((), (2 * x - 2 * y - 1,)),
            [
                "branch",
                (x - y - 1).to_json(),
                ["sum", [[2, [0]]], [[[[-1, []]], 0]]],
                ["sum", [[2, [0]]], [[[[1, []]], 0]]],
            ],
        ),
        # x >= 2, y >= 2 and x * y <= 3: the product of the first two.
        (Question((x - 2, y - 2, 3 - x * y)), ["sum", [[1, [0, 1]], [2, [0]], [2, [1]], [1, [2]]], []]),
        # A zero, times a polynomial: x == 0 and x * y >= 1.
        (Question((x * y - 1,), (x,)), ["sum", [[1, [0]]], [[(-y).to_json(), 0]]]),
        # x is 0, or at least 2; and 1. The facts and zeros of a case come last.
        (
            Question((), (x - 1,), ((Case((), (x,)), Case((x - 2,))),)),
            ["split", 0, [["sum", [], [[[[1, []]], 0], [[[-1, []]], 1]]], ["sum", [[1, [0]]], [[[[-1, []]], 0]]]]],
        ),
        # No case at all holds of a choice without cases.
        (Question((x,), (), ((),)), ["split", 0, []]),
    ],
)
def test_each_rule_accepts_what_it_should(question: Question, proof: object) -> None:
    """Branches, products, multiples of zeros, splits: proofs by hand, which survive being written as JSON."""
    check_refutation(question, json.loads(json.dumps(proof)))


@pytest.mark.parametrize(
    ("question", "proof"),
    [
        (Question((x - 1, 1 - x)), SUM),  # the sum is 0, and x == 1 is a point
        (Question((2 - x, -x)), SUM),  # the sum is no constant
        (EMPTY, ["sum", [[1, [0]], [1, [-1]]], []]),
        (EMPTY, ["sum", [[1, [0]], [1, [2]]], []]),
        (EMPTY, ["sum", [[1, [0]], [1, [True]]], []]),
        (EMPTY, ["sum", [[1, [0]], [1.0, [1]]], []]),
        (EMPTY, ["sum", [[-1, [0]], [-1, [1]]], []]),
        (EMPTY, ["sum", [[1, []]], []]),
        (EMPTY, ["sum", [[0, [0]], [0, [1]]], []]),
        (EMPTY, ["sum", [], []]),
        (EMPTY, ["sum", [], [[[[-1, []]], 0]]]),
        (EMPTY, ["split", 0, []]),
        (EMPTY, ["split", -1, [SUM]]),
        (Question((x - 1, -x), (), ((Case(), Case()),)), ["split", 0, [SUM]]),
        (Question((x - 1, -x), (), ((Case(), Case()),)), ["split", 0, [SUM, SUM, SUM]]),
        (EMPTY, ["branch", [[1, ["x"]]], SUM]),
        (EMPTY, ["branch", [[1, [1]]], SUM, SUM]),
        (EMPTY, ["branch", [[2**5000, ["x"]]], SUM, SUM]),
        (EMPTY, ["branch", [[1, ["x"] * 1000]], SUM, SUM]),
        (EMPTY, ["lemma", SUM]),
        (EMPTY, [SUM]),
        (EMPTY, []),
        (EMPTY, None),
        (EMPTY, "sum"),
        (EMPTY, {"sum": []}),
    ],
)
def test_other_data_is_rejected(question: Question, proof: object) -> None:
    """Wrong numbers, wrong types and missing parts are rejected, and so is a right proof of another question."""
    assert not is_accepted(question, proof)


def test_a_proof_of_any_depth_is_read() -> None:
    """A proof may be far deeper than Python's stack."""
    proof: list[object] = SUM
    for _ in range(2000):
        proof = ["branch", [[1, ["x"]]], proof, SUM]
    check_refutation(EMPTY, proof)


def test_work_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof that takes too many steps is rejected, even one that contains itself."""
    monkeypatch.setattr(integers, "MAX_STEPS", 10_000)
    endless: list[object] = ["branch", [[1, ["x"]]]]
    endless += [endless, endless]
    assert not is_accepted(EMPTY, endless)


@one_in(4)
@pytest.mark.parametrize(("products", "count"), [(False, 1600), (True, 400)])
def test_nothing_is_refuted_that_has_a_point(products: bool, count: int) -> None:
    """On random questions over boxes, brute force finds no point where the kernel accepts a refutation."""
    random = Random(f"points {products}")
    refuted = 0
    for _ in range(count):
        question = random_question(random, 2, products)
        proof = find_refutation(question, 600)
        if proof is not None:
            refuted += 1
            check_refutation(question, json.loads(json.dumps(proof)))
            assert not has_point(question, 2), question
    assert refuted > count // 4


@pytest.mark.parametrize("products", [False, True])
def test_damaged_proofs_prove_nothing_false(products: bool) -> None:
    """With any field changed, a proof is not accepted of a neighbouring question that has a point."""
    random = Random(f"damage {products}")
    rejected = 0
    while rejected < 5_000:
        question = random_question(random, 2, products)
        proof = find_refutation(question, 600)
        if proof is None:
            continue
        for other in _neighbours(question):
            if has_point(other, 2):
                for wrong in (proof, *damaged(proof)):
                    assert not is_accepted(other, wrong), (other, wrong)
                    rejected += 1
                break


def _neighbours(question: Question) -> list[Question]:
    """The question without one of its facts, zeros, choices, or with one fact weaker."""
    facts, zeros, choices = question.facts, question.zeros, question.choices
    return [
        *(Question((*facts[:i], fact + 1, *facts[i + 1 :]), zeros, choices) for i, fact in enumerate(facts)),
        *(Question(facts, (*zeros[:i], *zeros[i + 1 :]), choices) for i in range(len(zeros))),
        *(Question(facts, zeros, (*choices[:i], *choices[i + 1 :])) for i in range(len(choices))),
    ]


def test_the_kernel_imports_the_standard_library_only() -> None:
    """Nothing in the kernel rests on other parts of the project, or on packages."""
    assert integers.__file__ is not None
    for file in Path(integers.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None and node.level == 0
                modules = [node.module]
            for module in modules:
                assert module.split(".")[0] in sys.stdlib_module_names or f"{module}.".startswith(
                    "layoutproof.verify.kernel."
                )
