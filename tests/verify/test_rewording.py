"""Rewording a message changes no behaviour: nothing reads a sentence back."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.tree import ROOT
from tests.verify.rewording import hashed


def answers(*arguments: str) -> dict[str, Any]:
    """What comes of the questions, asked in a process of their own."""
    command = [sys.executable, "-m", "tests.verify.rewording", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_hashes_in_place_of_sentences_change_nothing() -> None:
    """Verdicts, codes, places, hints and exit codes are the same where each claim, reason and message is a hash, and so
    is what baselines, certificates and kept proofs know claims by.
    """
    with ThreadPoolExecutor(2) as pool:
        plain, other = pool.map(lambda arguments: answers(*arguments), ((), ("hashed",)))
    assert plain == other
    code, outcomes = plain["checked"]
    assert code == 1 and {verdict for _, verdict, *_ in outcomes} >= {"proved", "refuted", "vacuous"}
    assert any(related for _, _, related, _ in plain["scheduled"][2])
    assert {status for _, _, status, *_ in plain["compared"]} >= {"proved"} and all(plain["told"])
    assert any(wrapped for _, _, wrapped in plain["scheduled"][1])
    confirmed = plain["scheduled"][0]
    assert confirmed[: len(confirmed) // 2] == confirmed[len(confirmed) // 2 :]
    for said, _, (as_made, reworded) in plain["certified"]:
        assert as_made == reworded == ["proved", len(said), []]
        assert any("store" in identity for identity, *_ in said)


def test_a_hash_stays() -> None:
    """A sentence that was hashed is not hashed again, so that what is read back is what was written."""
    once = hashed("no two iterations meet")
    assert once != "no two iterations meet" and hashed(once) == once
