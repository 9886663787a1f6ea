"""The judge without the checker: what the generator calls legal runs the same, and mutants that change results are
seen.
"""

from __future__ import annotations

from random import Random

import pytest

from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.wellformed import check_wellformed
from tests.attack.campaign import nest_rewrite
from tests.attack.judge import judge
from tests.attack.mutants import MUTATORS, mutant
from tests.attack.padded import padded_case
from tests.attack.programs import Generator
from tests.shares import one_in


@one_in(14)
@pytest.mark.parametrize("seed", range(4))
def test_legal_rewrites_run_the_same(seed: int) -> None:
    """Random programs and legal rewrites of them are well-formed, survive their text, and no input tells them apart."""
    rng = Random(seed)
    generator = Generator(rng)
    for _ in range(30):
        made = nest_rewrite(generator, rng)
        if made is None:
            continue
        what, rewrite = made
        assert [*check_wellformed(rewrite.old), *check_wellformed(rewrite.new)] == []
        assert parse_rewrite(rewrite_text(rewrite)) == rewrite
        found = judge(rewrite, rng, trials=12)
        assert found.difference is None, f"{what}: {found.difference}\n{rewrite_text(rewrite)}"
        assert found.valid >= 3


@one_in(4)
def test_pad_values_that_are_neutral_are_neutral() -> None:
    """Guards over neutral padding may go, bit for bit or under fast-math assumptions; most of the others may not."""
    rng = Random(7)
    seen = {True: 0, False: 0}
    for _ in range(24):
        case = padded_case(rng)
        difference = judge(case.rewrite, rng, trials=12).difference
        if difference is not None and case.legal:
            difference = judge(case.rewrite, rng, trials=12, fast_math=frozenset({"nnan", "ninf", "nsz"})).difference
            assert difference is None, f"{case.what}: {difference}"
        seen[difference is not None] += 1
    assert min(seen.values()) > 3


@one_in(9)
def test_every_mutator_changes_some_result() -> None:
    """Each kind of mutant is made and, now and then, tells itself apart."""
    rng = Random(3)
    generator = Generator(rng)
    changed: set[str] = set()
    for _ in range(700):
        made = nest_rewrite(generator, rng) if rng.random() < 0.7 else ("padded", padded_case(rng).rewrite)
        mutated = None if made is None else mutant(made[1], rng)
        if mutated is None:
            continue
        name, rewrite = mutated
        if name not in changed and judge(rewrite, rng, trials=6).difference is not None:
            changed.add(name)
    assert set(MUTATORS) - changed <= {"theta_off"}


def test_the_judge_sees_what_only_special_values_show() -> None:
    """A sum padded with +0.0 that begins at -0.0, and a maximum with its operands exchanged, differ only on special
    values.
    """
    text = """
@T.prim_func
def before(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = %s
@T.prim_func
def after(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        B[i] = %s
"""
    for old, new in (("B[i]", "B[i] + T.float32(0)"), ("T.max(A[i], B[i])", "T.max(B[i], A[i])")):
        rewrite = parse_rewrite(text % (old, new))
        assert judge(rewrite, Random(1), trials=24).difference is not None
        assert judge(rewrite, Random(1), trials=24, fast_math=frozenset({"nnan", "nsz"})).difference is None
