"""Pairs that TVM makes of its operators, by its primitives and passes: what is said of them, and of wrong ones."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from layoutproof.ir.script.reader import loads
from tests.oracle.topi.asking import ask
from tests.oracle.topi.judging import told_apart, wrong_mutants
from tests.shares import one_in

STARTS = range(3000, 3060, 3)


def pairs_of(first: int, count: int) -> list[dict[str, Any]]:
    """The pairs of some seeds, made in a process of their own."""
    command = [sys.executable, "-m", "tests.oracle.topi.pairs", "--seeds", str(first), str(first + count)]
    made = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [json.loads(line) for line in made.stdout.splitlines()]


@one_in(35)
@pytest.mark.parametrize("first", STARTS)
def test_no_pair_is_judged_wrongly(first: int) -> None:
    """What is proved is alike in every run; nothing is left unread but what TVM itself refuses."""
    for pair in pairs_of(first, 3):
        verdict, why = ask(pair)
        assert verdict != "refused", why
        if verdict == "unread":
            assert "strides" in why, why  # cache_index gives a buffer of two axes one stride
            continue
        apart = told_apart(loads(pair["before"]), loads(pair["after"]), 5)
        assert not (verdict == "proved" and apart is not None), (pair["seed"], apart)


@one_in(35)
@pytest.mark.parametrize("first", STARTS)
def test_no_wrong_mutant_is_proved(first: int) -> None:
    """A program with one wrong thing in it, as a run shows, is refuted or left open."""
    for mutant in wrong_mutants(pairs_of(first, 2), 1, 11):
        verdict, why = ask(mutant)
        assert verdict not in ("proved", "vacuous"), (mutant["seed"], mutant["changed"], why)
