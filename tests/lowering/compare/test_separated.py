"""Epilogues that are fused into the start of a sum: sums that other stores use are separated, in proved steps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite, Witness
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.compare.separated import separated
from layoutproof.verify.certificate.recheck import recheck
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.lockstep.memories import ASKED
from layoutproof.verify.verdict.verdict import Status

ROWS, TERMS = 3, 5


def function(lines: list[str], kind: str = "float32", *, apart: bool = True) -> PrimFunc:
    """A function of a matrix `A`, vectors `C` and `E`, with a result `D` and a temporary `S`."""
    vector = f'T.Buffer(({ROWS},), "{kind}")'
    head = [
        "@T.prim_func",
        f'def f(A: T.Buffer(({ROWS}, {TERMS}), "{kind}"), C: {vector}, E: {vector}, D: {vector}):',
        *(['    T.func_attr({"tirx.noalias": True})'] if apart else []),
        f'    S = T.alloc_buffer(({ROWS},), "{kind}")',
    ]
    return lp.loads("\n".join([*head, *(f"    {line}" for line in lines)]) + "\n")


def unfused(value: str, start: str = "0", update: str = "S[i] + A[i, k]", kind: str = "float32") -> PrimFunc:
    """A sum, and then a value with it."""
    loops = [f"for i, k in T.grid({ROWS}, {TERMS}):", "    if k == 0:", f"        S[i] = T.{kind}({start})"]
    return function([*loops, f"    S[i] = {update}", f"for i in range({ROWS}):", f"    D[i] = {value}"], kind)


def fused(start: str, update: str = "D[i] + A[i, k]", after: str | None = None, kind: str = "float32") -> PrimFunc:
    """An accumulator in the result, which begins with something."""
    inner = [f"    D[i] = {start}", f"    for k in range({TERMS}):", f"        D[i] = {update}"]
    return function([f"for i in range({ROWS}):", *inner, *([f"    D[i] = {after}"] if after else [])], kind)


RIGHT = {
    "sum and another": (unfused("S[i] + C[i]"), fused("C[i]")),
    "another and sum": (unfused("C[i] + S[i]"), fused("C[i]")),
    "less a number": (unfused("S[i] - T.float32(3)"), fused("T.float32(-3)")),
    "less another": (unfused("S[i] - C[i]"), fused("C[i] * T.float32(-1)")),
    "cut off below": (unfused("T.max(S[i] + C[i], T.float32(0))"), fused("C[i]", after="T.max(D[i], T.float32(0))")),
    "largest": (
        unfused("T.max(S[i], C[i])", "'-inf'", "T.max(S[i], A[i, k])"),
        fused("C[i]", "T.max(D[i], A[i, k])"),
    ),
    "integers": (unfused("S[i] - 7", kind="int32"), fused("T.int32(-7)", kind="int32")),
}
ONE_WAY = {"cut off below"}
WRONG = {
    "twice": (unfused("S[i] + C[i]"), fused("C[i]", after="D[i] + C[i]")),
    "in each term": (unfused("S[i] + C[i]"), fused("T.float32(0)", "D[i] + (A[i, k] + C[i])")),
    "another one": (unfused("S[i] + C[i]"), fused("E[i]")),
    "the other sign": (unfused("S[i] - C[i]"), fused("C[i]")),
    "from the other side": (unfused("C[i] - S[i]"), fused("C[i]")),
    "a sum that begins with one": (unfused("S[i] + C[i]", "1"), fused("C[i]")),
    "cut off in between": (
        unfused("T.max(S[i] + C[i], T.float32(0))"),
        fused("C[i]", "T.max(D[i] + A[i, k], T.float32(0))"),
    ),
    "a product for a sum": (unfused("S[i] * C[i]"), fused("C[i]")),
    "a term too few": (unfused("S[i] + C[i]"), fused("C[i]", "D[i] + A[i, T.max(k, 1)]")),
    "integers": (unfused("S[i] - 7", kind="int32"), fused("T.int32(7)", kind="int32")),
}


def told(found: Comparison) -> str:
    return "\n".join(f"{v.status.value}: {v.claim.text}: {v.reason}" for v in found.verdicts)


@one_in(7)
@pytest.mark.parametrize("name", RIGHT)
def test_fused_epilogues_are_proved(name: str) -> None:
    """Both ways; the certificate is a chain from the one program to the other, and holds."""
    for before, after in (RIGHT[name], RIGHT[name][::-1])[: 1 if name in ONE_WAY else 2]:
        found = compare(before, after)
        assert found.status is Status.PROVED, told(found)
        records = found.records
        assert len(records) > 1 and records[0].rewrite.old == found.before
        assert all(one.rewrite.new == other.rewrite.old for one, other in pairwise(records))
        assert not any(record.allowed for record in records if record.rewrite in found.around)


@one_in(9)
def test_the_certificate_is_checked_again(tmp_path: Path) -> None:
    """By two solvers, where they are asked."""
    path = tmp_path / "fused.lpcert.json"
    compare(*RIGHT["sum and another"]).certificate.save(path)
    assert recheck([path], {"z3": "1", "cvc5": "2"}, seconds=20).status is Status.PROVED


@one_in(4)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_epilogues_are_refuted(name: str) -> None:
    """Also the other way round."""
    for before, after in (WRONG[name], WRONG[name][::-1]):
        found = compare(before, after)
        assert found.status is Status.REFUTED, told(found)


def test_parameters_are_asked_to_be_apart() -> None:
    """Where the program does not say so, what is stored in between may be seen."""
    before, after = (
        function(lines, apart=False)
        for lines in (
            ["S[0] = T.float32(0)", f"for k in range({TERMS}):", "    S[0] = S[0] + A[0, k]", "D[0] = S[0] + C[0]"],
            ["D[0] = C[0]", f"for k in range({TERMS}):", "    D[0] = D[0] + A[0, k]"],
        )
    )
    found = compare(before, after)
    assert found.status is Status.PROVED and "do not overlap" in str(found.verdicts[0].reason), told(found)


def random_value(random: Random) -> str:
    """A value with the sum somewhere in it."""
    value = "S[i]"
    for _ in range(random.randrange(1, 4)):
        other = random.choice(["C[i]", "E[i]", "T.float32(2)", "C[i] * E[i]", "A[i, 0]"])
        value = random.choice(
            [
                f"({value} + {other})",
                f"({other} + {value})",
                f"({value} - {other})",
                f"({other} - {value})",
                f"({value} * {other})",
                f"T.max({value}, {other})",
                f"T.min({other}, {value})",
                f"T.exp({value})",
                f"T.if_then_else(C[i] > T.float32(0), {value}, {other})",
            ]
        )
    return value


@one_in(4)
@pytest.mark.parametrize("seed", range(24))
def test_separated_stores_compute_the_same_bits(seed: int) -> None:
    """The interpreter finds no difference, and the checker proves that there is none, both ways."""
    random = Random(seed)
    given = unfused(random_value(random), random.choice(["0", "1"]))
    found = separated(given)
    if found is None:
        return
    data = np.random.default_rng(seed)
    pool = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 3e38, 1e-45], np.float32)
    for _ in range(8):
        arguments = {n: data.choice(pool, s) for n, s in (("A", (ROWS, TERMS)), ("C", ROWS), ("E", ROWS), ("D", ROWS))}
        one, other = (run(func, arguments)["D"] for func in (given, found.func))
        np.testing.assert_array_equal(one.view(np.uint32)[~np.isnan(one)], other.view(np.uint32)[~np.isnan(one)])
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
    steps = Rewrite(given, found.func, Witness(found.there)), found.last_step(found.func, given)
    assert steps[1].new == given
    for step in steps:
        assert all(v.status is Status.PROVED for v in prove_rewrite(step, None, allowed=frozenset()).verdicts)


@pytest.mark.parametrize(
    "value",
    [
        "S[i]",
        "C[i] + E[i]",
        "C[i] - S[i]",
        "S[i] + D[i]",
        "T.exp(S[i])",
        "T.if_then_else(C[i] > C[0], S[i] + C[i], E[i])",
    ],
)
def test_other_values_stay(value: str) -> None:
    """Copies, values without a sum, what reads the cell itself, what is computed in one case only."""
    assert separated(unfused(value)) is None


def test_parameters_that_may_overlap() -> None:
    """The sum that is added to the cell as it goes reads other inputs than one that is stored at the end, where the
    result overlaps an input: both ways it is a precondition that it does not.
    """
    vector = 'T.Buffer((14,), "int32")'
    head = f'@T.prim_func\ndef f(A: T.Buffer((14, 8), "int32"), C: {vector}, D: {vector}):\n'
    fused = (
        "    for i in range(14):\n        D[i] = C[i]\n        for k in range(8):\n            D[i] = D[i] + A[i, k]\n"
    )
    apart = (
        '    S = T.alloc_buffer((14,), "int32")\n'
        "    for i in range(14):\n        S[i] = 0\n        for k in range(8):\n            S[i] = S[i] + A[i, k]\n"
        "    for i in range(14):\n        D[i] = S[i] + C[i]\n"
    )
    for before, after in ((fused, apart), (apart, fused)):
        found = compare(lp.loads(head + before), lp.loads(head + after))
        assert found.status is Status.PROVED
        assert found.verdicts[0].reason == ASKED.text
        assert ASKED in [verdict.claim for verdict in found.verdicts]
