"""Questions about integers that the kernel asks while it judges, each with the proof that it checks."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest.mock import patch

from layoutproof.verify.certificate.finder.integer_refutations import find_refutation
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text
from layoutproof.verify.kernel import step
from layoutproof.verify.kernel.evidence import judge_certificate
from layoutproof.verify.kernel.integers import Question, check_refutation
from tests.oracle.integers.items import Item, item_of
from tests.tree import ROOT
from tests.verify.kernel.questions import random_question

ACCEPTED = ROOT / "proofs" / "accepted"
SCHEDULED = ("row_sum", "conv2d")


@contextmanager
def recording() -> Iterator[list[Item]]:
    """Each question that the kernel puts to its arithmetic, with its proof, once."""
    found: list[Item] = []
    known: set[str] = set()

    def recorded(question: Question, proof: object) -> None:
        item = item_of(question, proof)
        text = json.dumps(item)
        if text not in known:
            known.add(text)
            found.append(item)
        check_refutation(question, proof)

    with patch.object(step, "check_refutation", recorded):
        yield found


def of_rewrites(paths: Iterable[Path]) -> list[Item]:
    """What is asked of rewrites, by evidence that is searched for."""
    with recording() as found:
        for path in paths:
            judge_text(path.read_text(encoding="utf-8"))
    return found


def of_examples() -> list[Item]:
    """What is asked of the certificates of the examples, which `make recheck` looks at too."""
    with tempfile.TemporaryDirectory() as folder, recording() as found:
        for path in _certificates(Path(folder)):
            judge_certificate(json.loads(path.read_text(encoding="utf-8")))
    return found


def _certificates(folder: Path) -> Iterator[Path]:
    for name in SCHEDULED:
        path = folder / f"{name}.json"
        arguments = ["check", f"examples/programs/{name}.py", "--trace", f"examples/{name}.json", "--certificate", path]
        _run("-m", "layoutproof", *map(str, arguments))
        yield path
    path = folder / "matmul_tiles.json"
    _run("examples/matmul_tiles.py", str(path))
    yield path


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def of_random_questions(seed: str, count: int) -> list[Item]:
    """Random questions over small boxes, with choices, zeros and products, as far as a proof is found."""
    random = Random(seed)
    found: list[Item] = []
    while len(found) < count:
        question = random_question(random, 2, products=random.random() < 0.5)
        proof = find_refutation(question, 600)
        if proof is not None:
            found.append(item_of(question, proof))
    return found
