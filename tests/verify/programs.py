"""Reading small programs for tests of obligations, and picking verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import dedent

from tests.tree import ROOT

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.verdict.verdict import Status, Verdict

OPERATORS = sorted((ROOT / "tests" / "data" / "operators").glob("*.py"))
PAIRS = sorted((ROOT / "tests" / "data" / "pairs").glob("*.after.py"))


def program(text: str) -> PrimFunc:
    """The function that script text states; indentation common to all lines is taken off."""
    return loads(dedent(text).strip() + "\n")


def facts(text: str) -> Facts:
    """The facts of the function that script text states."""
    return Facts.of(program(text))


def statuses(verdicts: Iterable[Verdict]) -> set[Status]:
    """The different answers."""
    return {verdict.status for verdict in verdicts}


def first(verdicts: Iterable[Verdict], status: Status, part: str = "") -> Verdict:
    """The first verdict with this status whose claim contains `part`."""
    return next(v for v in verdicts if v.status is status and part in v.claim.text)
