"""The wrong rewrites under proofs/refuted are wrong: both programs run in the interpreter, and the runs differ."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pytest

from layoutproof.ir.notations.rewrite_text import parse_litmus, rewrite_text
from layoutproof.ir.wellformed import check_wellformed
from tests.attack.judge import illegal, judge
from tests.clauses import Clause
from tests.proof.litmus import REFUTED, allowed, litmus, name_of

# Wrong by definition: no run shows it, since what is wrong is what the program asks of others, or does to them.
BY_DEFINITION = {
    "assumptions_of_an_undefined_step",
    "cells_inside_no_place",
    "inputs_kept_same_value",
    "interface_order",
    "opaque_called_twice",
    "opaque_other_argument",
    "records_change_invented",
    "records_contract_invented",
    "records_missing",
}
# Proved of nothing: no run says anything, or shows anything.
OF_NOTHING = [path for path in REFUTED if path.stem.startswith("vacuity")]


@pytest.mark.parametrize("path", OF_NOTHING, ids=name_of)
def test_what_is_vacuous_has_no_run_that_tells_anything(path: Path) -> None:
    """Of a file whose clause is vacuity the interpreter finds no input to run on, or the runs show no difference."""
    case = litmus(path)
    found = judge(case.rewrite, Random(path.stem), trials=50, where=case.header.where)
    assert case.header.expect == "vacuous" and found.difference is None
    assert found.valid == 0 or path.stem == "vacuity_of_no_output"


@pytest.mark.parametrize("path", REFUTED, ids=name_of)
def test_a_litmus_file_reads_back_equal(path: Path) -> None:
    """Header, witness and both programs survive printing; the programs are well-formed and the header says what the
    case is about.
    """
    case = litmus(path)
    assert parse_litmus(rewrite_text(case.rewrite, case.header)) == case
    assert [*check_wellformed(case.rewrite.old), *check_wellformed(case.rewrite.new)] == []
    assert case.header.about is not None and len(case.header.about.split()) >= 5
    assert path.stem.startswith(str(case.header.clause).replace("-", "_"))


# What tells these apart is an infinity or a NaN that the old program never looks at: fast-math assumptions do not rule
# it out. Or it is one NaN that is not another, among integers.
LEFT_ALONE = {
    "fast_math_scope_branch_not_taken": {
        "A": np.full(8, np.inf, "float32"),
        "D": np.zeros(8, "int32"),
        "B": np.ones(8, "float32"),
    },
    "fast_math_scope_kept_value": {
        "A": np.ones(8, "float32"),
        "D": np.zeros(8, "int32"),
        "B": np.full(8, np.nan, "float32"),
    },
    **{
        name: {"A": np.full(4, 0x7F800001, "int32"), "B": np.zeros(4, "int32")}
        for name in ("values_bits_of_a_name", "values_bits_of_a_parameter")
    },
}


@pytest.mark.parametrize("name", sorted(LEFT_ALONE))
def test_what_is_left_alone_tells_programs_apart(name: str) -> None:
    """On inputs that random ones seldom are like, the two programs differ."""
    case = litmus(next(p for p in REFUTED if p.stem == name))
    assert judge(case.rewrite, Random(name), trials=1, given=LEFT_ALONE[name]).difference is not None


@pytest.mark.parametrize(
    "path", [p for p in REFUTED if p.stem not in BY_DEFINITION | set(LEFT_ALONE) and p not in OF_NOTHING], ids=name_of
)
def test_a_litmus_file_is_really_wrong(path: Path) -> None:
    """The interpreter tells its two programs apart, under the fast-math assumptions that the case allows."""
    case = litmus(path)
    found = judge(
        case.rewrite,
        Random(path.stem),
        trials=200,
        where=case.header.where,
        fast_math=frozenset(map(str, allowed(case))),
    )
    assert found.difference is not None, f"{found.valid} runs agree"


@pytest.mark.parametrize("name", sorted(BY_DEFINITION))
def test_what_is_wrong_by_definition_is_not_expected_to_be_refuted(name: str) -> None:
    """A case that no run shows to be wrong is one that must not be proved, no more."""
    case = litmus(next(p for p in REFUTED if p.stem == name))
    assert case.header.expect == "unknown"
    clauses = (Clause.ASSUMPTIONS, Clause.CELLS_INSIDE, Clause.OPAQUE, Clause.RECORDS)
    assert illegal(case.rewrite) is not None or case.header.clause in clauses


def test_every_clause_has_a_litmus_file() -> None:
    """No clause of the checker is without a program that is refused because of it."""
    clauses = Counter(litmus(path).header.clause for path in REFUTED)
    assert set(clauses) == {clause.value for clause in Clause}
