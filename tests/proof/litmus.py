"""The litmus files: rewrites with the verdict that is expected of them in their header."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from layoutproof.ir.notations.rewrite_text import Litmus, parse_litmus
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet
from tests.tree import ROOT

REFUTED = sorted((ROOT / "proofs" / "refuted").glob("*.py"))
PROVED = sorted((ROOT / "proofs" / "accepted").glob("*.py"))
ROWS = sorted((ROOT / "tests" / "proof" / "programs").glob("*.py"))


def name_of(path: Path) -> str:
    """The file's name, as a test id."""
    return path.stem


@cache
def litmus(path: Path) -> Litmus:
    """What a file says."""
    return parse_litmus(path.read_text(encoding="utf-8"), path.name)


def allowed(case: Litmus) -> FastMathSet:
    """The fast-math assumptions under which the case is asked: those of its header, all where it names none."""
    names = case.header.strictness
    return ALL if names is None else frozenset(FastMath(name) for name in names)
