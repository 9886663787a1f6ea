"""Real bugs are refuted, and their repairs proved."""

from __future__ import annotations

import pytest

from tests.shares import one_in
from tests.tree import ROOT
from tests.wild.cases import Question, cases

QUESTIONS = [question for case in cases() for question in case.questions]


@one_in(70)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.title)
def test_questions(question: Question) -> None:
    """The verdict on each question is the wanted one."""
    answer = question.asked()
    assert answer.verdict == question.wanted, answer.text


def test_the_page_has_every_case() -> None:
    """The page of bugs has a row for each question, with a link to each thread."""
    page = (ROOT / "docs" / "wild.md").read_text(encoding="utf-8")
    assert all(case.url in page for case in cases())
    assert sum(line.startswith("| ") for line in page.splitlines()) == len(QUESTIONS) + 1
