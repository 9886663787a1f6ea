"""Questions with proofs as plain JSON, which both implementations read: `[facts, zeros, choices, proof]`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layoutproof.lowering.runtime.compiler import find_compiler
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Poly, list_of, pair_of
from layoutproof.verify.kernel.rejected import Rejected

Item = list[Any]

SOURCE = Path(__file__).parent / "refutations.c"
_FLAGS = ("-std=c99", "-O2")
# What makes the kernel give up. The description of proofs has no such limits: a second answer is neither right nor
# wrong there.
_GIVEN_UP = ("the proof is too large", "a product of polynomials is too large")


def item_of(question: Question, proof: object) -> Item:
    """The question and its proof, as they would be read from a file."""
    choices = [[_case(case) for case in cases] for cases in question.choices]
    item: Item = json.loads(json.dumps([*_case(Case(question.facts, question.zeros)), choices, proof]))
    return item


def _case(case: Case) -> list[object]:
    return [[p.to_json() for p in case.facts], [p.to_json() for p in case.zeros]]


def question_of(item: Item) -> Question:
    """The question of an item. Raises Rejected for one that is damaged."""
    facts, zeros, choices, _ = item
    given = _case_of([facts, zeros])
    return Question(
        given.facts,
        given.zeros,
        tuple(tuple(map(_case_of, _list(cases, "the cases"))) for cases in _list(choices, "the choices")),
    )


def _case_of(data: object) -> Case:
    facts, zeros = pair_of(data, "a case")
    return Case(*(tuple(map(Poly.from_json, _list(part, "the facts of a case"))) for part in (facts, zeros)))


def _list(data: object, what: str) -> list[object]:
    return list_of(data, 10_000, what)


def first_answer(item: Item) -> str:
    """What the kernel says: accept, or reject or limit with the reason."""
    try:
        check_refutation(question_of(item), item[3])
    except Rejected as problem:
        return f"{'limit' if str(problem) in _GIVEN_UP else 'reject'} {problem}"
    return "accept"


def build(folder: Path, flags: Sequence[str] = _FLAGS) -> Path:
    """The second implementation, built with the compiler that kernels are built with."""
    program = folder / "refutations"
    subprocess.run([*find_compiler().command, *flags, "-o", str(program), str(SOURCE)], check=True)
    assert shutil.which(program) is not None
    return program


def second_answers(program: Path, items: Sequence[Item]) -> list[str]:
    """What the second implementation says of each."""
    lines = "".join(f"{json.dumps(item)}\n" for item in items)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(items)
    return answers


def word(answer: str) -> str:
    """`accept`, `reject` or `limit`."""
    return answer.split(" ", 1)[0]
