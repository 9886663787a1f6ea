"""Ask all questions of the cases from the wild, hold the verdicts against the wanted ones, and write the page of them.

    python -m tests.wild [--only TEXT] [--write docs/wild.md]

One line a question, and the totals. The exit code is 1 if a verdict contradicts the wanted one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.wild.cases import Answer, Case, cases

_HEAD = """# Bugs from the wild

{cases} wrong-code, layout and padding bugs that users or maintainers of {projects} public compilers and libraries
reported, restated as questions to `layoutproof`. Most have two: the transformation that went wrong has to be refuted,
and the repaired one proved. The programs, what was left out in restating them, and an evaluation in numpy by hand are
under `tests/data/wild`.

`make wild` asks them all, and writes this page. {right} of {questions} are decided as
wanted, and none otherwise; the others are `unknown`.

| project and issue | what happened | question | verdict | s | counterexample |
|---|---|---|---|---|---|
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names have this text")
    parser.add_argument("--write", type=Path, help="the page to write")
    options = parser.parse_args(arguments)
    chosen = [case for case in cases() if options.only in case.name]
    found: dict[str, Answer] = {}
    wrong = right = 0
    for question in (each for case in chosen for each in case.questions):
        answer = found[question.title] = question.asked()
        agrees = answer.verdict == question.wanted
        right += agrees
        wrong += not agrees and answer.verdict != "unknown"
        mark = "right" if agrees else "unknown" if answer.verdict == "unknown" else "WRONG"
        print(f"{mark:8}{answer.verdict:9}{answer.seconds:6.1f} s  {question.title}", flush=True)
    print(f"{len(found)} questions: {right} right, {wrong} wrong, {len(found) - right - wrong} unknown")
    if options.write is not None:
        options.write.write_text(page(chosen, found), encoding="utf-8")
    return 1 if wrong else 0


def page(chosen: Sequence[Case], found: Mapping[str, Answer]) -> str:
    """The page of cases, questions and answers."""
    right = sum(found[q.title].verdict == q.wanted for case in chosen for q in case.questions)
    head = _HEAD.format(
        cases=len(chosen), projects=len({c.repository for c in chosen}), right=right, questions=len(found)
    )
    return head + "\n".join(line for case in chosen for line in _rows(case, found)) + "\n"


def _rows(case: Case, found: Mapping[str, Answer]) -> Iterator[str]:
    first = f"[{case.thread}]({case.url}) | {case.happened.replace('|', '/')}"
    for question in case.questions:
        answer = found[question.title]
        shown = f"`{answer.counterexample}`" if answer.counterexample else ""
        yield f"| {first} | {question.name} | {answer.verdict} | {answer.seconds:.1f} | {shown} |"
        first = " | "


if __name__ == "__main__":
    sys.exit(main())
