"""Rewording a message changes no behaviour: nothing reads a sentence back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.shares import one_in
from tests.tree import ROOT
from tests.verify.rewording import ASKED, hashed


def answers(*arguments: str) -> Any:
    """What comes of a question, asked in a process of its own."""
    command = [sys.executable, "-m", "tests.verify.rewording", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_of_all_kinds(found: Any) -> bool:
    """Whether checks of files came to every kind of verdict, and fail."""
    code, outcomes = found
    return code == 1 and {verdict for _, verdict, *_ in outcomes} >= {"proved", "refuted", "vacuous"}


def is_kept(found: Any) -> bool:
    """Whether kept proofs are confirmed in other words, indices were wrapped, and a refusal names lines."""
    confirmed, searched, refused = found
    same = confirmed[: len(confirmed) // 2] == confirmed[len(confirmed) // 2 :]
    return same and any(wrapped for _, _, wrapped in searched) and any(related for _, _, related, _ in refused)


def is_confirmed(found: Any) -> bool:
    """Whether certificates are confirmed as they were made and with other words, and know statements by name."""
    said = [(identity, said) for said, *_ in found for identity, *_ in said]
    return bool(said) and all(
        as_made == reworded == ["proved", len(said), []] and any("store" in identity for identity, *_ in said)
        for said, _, (as_made, reworded) in found
    )


SHOWS: dict[str, Callable[[Any], bool]] = {
    "checked": is_of_all_kinds,
    "told": all,
    "compared": lambda found: "proved" in {status for _, _, status, *_ in found},
    "scheduled": is_kept,
    "certified": is_confirmed,
}
"""By question, whether its answers show what they are asked for."""


@one_in(18)
@pytest.mark.parametrize("question", ASKED)
def test_hashes_in_place_of_sentences_change_nothing(question: str) -> None:
    """Verdicts, codes, places, hints and exit codes are the same where each claim, reason and message is a hash, and so
    is what baselines, certificates and kept proofs know claims by.
    """
    with ThreadPoolExecutor(2) as pool:
        plain, other = pool.map(lambda arguments: answers(question, *arguments), ((), ("hashed",)))
    assert plain == other
    assert SHOWS[question](plain)


def test_a_hash_stays() -> None:
    """A sentence that was hashed is not hashed again, so that what is read back is what was written."""
    once = hashed("no two iterations meet")
    assert once != "no two iterations meet" and hashed(once) == once
