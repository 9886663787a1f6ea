"""The table of pad values, each row in every type, both ways; with bitwuzla where it is there and with z3 alone."""

from __future__ import annotations

from collections import Counter

import pytest

from layoutproof.verify.values.fast_math import names_of
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.padding_rows import FLOATS, INTEGERS, Row, rows
from layoutproof.verify.values.solving import DEFAULT, ValueBudget
from layoutproof.verify.verdict.verdict import Status

ROWS = list(rows())


def check(row: Row, budget: ValueBudget) -> None:
    """The row comes out as it says."""
    answer = search_fast_math(row.question, row.allowed, budget)
    assert answer.status is row.expected, f"{row.name}: {answer}"
    if row.expected is Status.PROVED:
        assert answer.fast_math == row.allowed, f"{row.name}: {names_of(answer.fast_math)}"
    else:
        assert answer.model is not None


@pytest.mark.parametrize("dtype", ["mixed", *map(str, (*FLOATS, *INTEGERS))])
def test_every_row(dtype: str) -> None:
    """Each row is proved under exactly the fast-math assumptions that it names, or refuted with values."""
    chosen = [
        row for row in ROWS if (row.name.split(":")[0] == dtype) or (dtype == "mixed" and row.name.startswith("int16"))
    ]
    assert len(chosen) > 0
    for row in chosen:
        check(row, DEFAULT)


def test_every_row_with_z3_alone() -> None:
    """Verdicts do not depend on which solvers are installed (a row of each kind; the rest differs in type only)."""
    alone = ValueBudget(solvers=("z3",))
    for row in (r for r in ROWS if r.name.startswith(("float32", "float16", "int8", "int16"))):
        check(row, alone)


def test_the_table_is_whole() -> None:
    """Names are unique, and both outcomes are there for every type."""
    outcomes = Counter((row.name.split(":")[0], row.expected) for row in ROWS)
    for dtype in (*FLOATS, *INTEGERS):
        assert outcomes[str(dtype), Status.PROVED] > 5 and outcomes[str(dtype), Status.REFUTED] > 3
    keys = Counter((row.name, row.expected, row.allowed) for row in ROWS)
    assert max(keys.values()) == 1
