"""Caches that the tests make, values to put into them, and other processes that use them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.tree import ROOT

from layoutproof.ir.diagnostic import Diagnostic
from layoutproof.lowering.proof_cache.store import ProofStore

PLACES = ("proofs.sqlite", "proofs")
"""One place of each kind, below a folder of the test."""

# What other processes begin with: `value(n)` is the value under `key(n)`, large enough to take several pages of a
# database.
PRELUDE = (
    "from tests.lowering.proof_cache.caches import key, value\n"
    "from layoutproof.lowering.proof_cache.store import ProofStore\n"
)


def key(number: int) -> str:
    """The key of a number."""
    return hashlib.sha256(str(number).encode()).hexdigest()


def value(number: int, size: int = 40) -> dict[str, Any]:
    """A value that does not compress well and contains its number."""
    noise = [hashlib.sha256(f"{number} {k}".encode()).hexdigest() for k in range(size)]
    return {"tool": key(-1), "number": number, "noise": noise}


class Heard:
    """What a store told."""

    def __init__(self) -> None:
        self.said: list[Diagnostic] = []

    def __call__(self, diagnostic: Diagnostic) -> None:
        self.said.append(diagnostic)

    @property
    def codes(self) -> list[str]:
        """The codes, in the order in which they were told."""
        return [diagnostic.code for diagnostic in self.said]


def opened(place: Path) -> tuple[ProofStore, Heard]:
    """The store at a place, and its warnings."""
    heard = Heard()
    return ProofStore.open(str(place), heard), heard


def filled(place: Path, count: int = 60) -> Path:
    """A cache with values 0 to count - 1, closed."""
    store, heard = opened(place)
    store.put_many("proof", [(key(n), value(n)) for n in range(count)])
    store.close()
    assert heard.said == []
    return place


def check_right(store: ProofStore, count: int = 60) -> int:
    """Fail unless every value that is there is the one that was put; how many are there."""
    found = {n: store.get("proof", key(n)) for n in range(count)}
    assert all(each in (None, value(n)) for n, each in found.items())
    listed = dict(store.entries("proof"))
    assert all(listed[key(n)] == value(n) for n in range(count) if key(n) in listed)
    return sum(each is not None for each in found.values())


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another Python, that runs `code` after the prelude."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def run(code: str, *arguments: object) -> str:
    """What another Python prints."""
    process = start(code, *arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
