"""Two implementations of the kernel's arithmetic give one answer, and what they accept has no solution."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from layoutproof.verify.certificate.finder.integer_refutations import find_refutation
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text
from layoutproof.verify.kernel.integers import Case, Question
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.rejected import Rejected
from tests.oracle.integers.campaign import compare, judged_by_z3
from tests.oracle.integers.damage import damaged
from tests.oracle.integers.items import Item, build, first_answer, question_of, second_answers, word
from tests.oracle.integers.recorded import ACCEPTED, recording
from tests.oracle.integers.samples import samples
from tests.oracle.integers.truth import solution
from tests.shares import one_in
from tests.verify.kernel.questions import has_point, random_question

x, y = Poly.var("x"), Poly.var("y")
EMPTY = [[[[1, ["x"]], [-1, []]], [[-1, ["x"]]]], [], []]  # 1 <= x <= 0
SUM = ["sum", [[1, [0]], [1, [1]]], []]
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second implementation."""
    return build(tmp_path_factory.mktemp("second"), STRICT)


@one_in(4)
def test_both_accept_what_is_recorded(program: Path) -> None:
    """Of the proofs that the kernel checks while it judges, sums, branches, splits and products among them."""
    found = compare(program, samples())
    assert dict(found.answers) == {("accept", "accept"): len(samples())}
    text = json.dumps(samples())
    assert len(samples()) > 150 and '"branch"' in text and '"split"' in text


@one_in(4)
def test_both_answer_alike_of_damaged_proofs(program: Path) -> None:
    """With one field of a question or a proof changed; and z3 finds no solution of what both accept."""
    random = Random("damaged")
    broken = [damaged(random, random.choice(samples())) for _ in range(1500)]
    found = compare(program, [each.item for each in broken])
    assert found.differences == []
    assert found.answers["accept", "accept"] > 300 < found.answers["reject", "reject"]
    assert len({each.role for each in broken}) > 20
    answers, false = judged_by_z3(found.accepted[:150])
    assert false == [] and answers["unknown"] < 5


@one_in(4)
def test_nothing_is_accepted_that_has_a_point(program: Path) -> None:
    """Brute force finds no point of a damaged question over a small box that both accept."""
    random = Random("points")
    items: list[Item] = []
    while len(items) < 40:
        question = random_question(random, 2, products=True)
        proof = find_refutation(question, 300)
        if proof is not None:
            items.append([*_plain(question), proof])
    broken = [damaged(random, random.choice(items)).item for _ in range(1500)]
    found = compare(program, broken)
    assert found.differences == []
    boxed = [item for item in found.accepted if _is_boxed(question_of(item))]
    assert len(boxed) > 100
    assert not any(has_point(question_of(item), 2) for item in boxed)


def _is_boxed(question: Question) -> bool:
    """Whether there are still three names, between -2 and 2, so that brute force sees each point."""
    cases = [Case(question.facts, question.zeros), *(case for cases in question.choices for case in cases)]
    if not {n for each in cases for p in (*each.facts, *each.zeros) for n in p.names()} <= set("abc"):
        return False
    sides = [side for name in "abc" for side in (Poly.var(name) + 2, 2 - Poly.var(name))]
    return all(any(side in question.facts for side in (wide, wide - 2)) for wide in sides)


def _plain(question: Question) -> list[object]:
    def case(each: Case) -> list[object]:
        return [[p.to_json() for p in each.facts], [p.to_json() for p in each.zeros]]

    return [*case(Case(question.facts, question.zeros)), [[case(each) for each in c] for c in question.choices]]


@pytest.mark.parametrize(
    ("proof", "answer"),
    [
        (SUM, "accept"),
        (["sum", [[1, [0, 0]], [1, [1, 0]], [1, [1]]], []], "reject"),
        (["sum", [[10**60, [0]], [10**60, [1]]], []], "accept"),
        (["sum", [[10**60, [0]], [10**60 - 1, [1]]], []], "reject"),
        (["sum", [[2**4096 - 1, [0]], [2**4096 - 1, [1]]], []], "accept"),
        (["sum", [[2**4096, [0]], [2**4096, [1]]], []], "reject"),
        (["sum", [[2**2000, [0]], [2**1000, [1]], [2**2000 - 2**1000, [1]]], []], "accept"),
        (["sum", [[1, []], *SUM[1]], []], "reject"),
        (["sum", [[-1, [0]], [-1, [1]]], []], "reject"),
        (["sum", [[True, [0]], [1, [1]]], []], "reject"),
        (["sum", [[1.0, [0]], [1, [1]]], []], "reject"),
        (["sum", [["1", [0]], [1, [1]]], []], "reject"),
        (["sum", [[1, [0]], [1, [2**32 + 1]]], []], "reject"),
        (["sum", [[1, [0]], [1, [-1]]], []], "reject"),
        (["sum", *SUM[1:], []], "reject"),
        (["branch", [], SUM, SUM], "accept"),
        (["branch", [[1, ["y"]], [-1, ["y"]]], SUM, ["sum", [[1, [2]]], []]], "accept"),
        (["branch", [[1, ["y"] * 32]], SUM, SUM], "accept"),
        (["branch", [[1, ["y"] * 33]], SUM, SUM], "reject"),
        (["branch", [[1, ['\u00e9\ud800"\\\n']]], SUM, SUM], "accept"),
        (["branch", [[2**4095, ["y"]], [-(2**4095), ["y"]]], SUM, ["sum", [[1, [2]]], []]], "accept"),
        (["split", 0, []], "reject"),
        ([], "reject"),
        ({}, "reject"),
        (None, "reject"),
    ],
)
def test_answers_by_hand(program: Path, proof: object, answer: str) -> None:
    """Of `1 <= x <= 0`: both give the right answer at the edges of what a proof may hold."""
    item = [*EMPTY, proof]
    assert (word(first_answer(item)), word(second_answers(program, [item])[0])) == (answer, answer)


def test_numbers_are_exact(program: Path) -> None:
    """Products of facts with large factors, which neither rounds nor cuts off: expected values by Python."""
    random = Random("large")
    items, expected = [], []
    for _ in range(300):
        a, b, c = (random.randint(1, 1 << random.choice((3, 31, 32, 33, 64, 200, 1000))) for _ in range(3))
        off = random.choice((0, 0, 1, -1))
        # (a x - b) (c x - b) >= 0 and its expansion, with a constant that is off by at most one.
        facts = [a * x - b, c * x - b, Poly.const(-b * b - off) + (a * b + c * b) * x - a * c * x * x]
        items.append([*_plain(Question(tuple(facts))), ["sum", [[1, [0, 1]], [1, [2]]], []]])
        expected.append("accept" if off > 0 else "reject")
    assert [word(first_answer(item)) for item in items] == expected
    assert [word(answer) for answer in second_answers(program, items)] == expected
    assert expected.count("accept") > 50


def test_what_is_too_much_work_is_not_decided(program: Path) -> None:
    """A product of two long facts is neither accepted nor rejected for a wrong reason, by either."""
    long = [[1, [f"x{k}"]] for k in range(2500)]
    item = [[long], [], [], ["sum", [[1, [0, 0]]], []]]
    assert (word(first_answer(item)), word(second_answers(program, [item])[0])) == ("limit", "limit")


def test_z3_finds_solutions() -> None:
    """Where there is one, by brute force, z3 finds it too; where there is none, it says so or does not know."""
    random = Random("z3")
    said = [(has_point(q, 2), solution(_plain(q))) for q in (random_question(random, 2) for _ in range(40))]
    assert all(answer not in ("none", "unknown") if has else answer in ("none", "unknown") for has, answer in said)
    assert 5 < sum(has for has, _ in said) < 35


def test_recording_changes_nothing() -> None:
    """While questions are recorded, the kernel checks them as before; each is recorded once."""
    text = (ACCEPTED / "swizzle_is_onto.py").read_text(encoding="utf-8")
    with recording() as found:
        recorded = judge_text(text)
    assert recorded == judge_text(text) and len(found) > 5
    assert len({json.dumps(item) for item in found}) == len(found)


def test_damaged_questions_are_rejected_as_such() -> None:
    """What is no question is rejected before its proof is looked at."""
    with pytest.raises(Rejected):
        question_of([{}, [], [], SUM])
