"""What a difference proves under fast-math assumptions: all that no choice of the old program explains, and nothing
else.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from tests.attack.campaign import assumed_of, attempts
from tests.attack.nests import rewrite_of
from tests.attack.programs import Generator
from tests.attack.rewrites import reverse_sum
from tests.shares import one_in
from tests.verify.replay.excused import excused_rewrite
from tests.verify.replay.rewrites import func, pair, relaid

from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.verify.replay.refute import Budget, find_counterexample, replays
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMath, FastMathSet

NNAN, NINF, NSZ, REASSOC = (frozenset({flag}) for flag in FastMath)
QUICK = Budget(instances=300_000, runs=40, minimising_runs=40)
NAN, INF, LEAST = 'T.float32("nan")', 'T.float32("inf")', 'T.float32("-inf")'


def two(before: str, after: str, parameters: str = "A: f32[3]; D: i32[1]; B: f32[1]") -> Rewrite:
    """Two programs over the same parameters."""
    return pair(func(parameters, before), func(parameters, after))


def is_refuted(rewrite: Rewrite, fast_math: FastMathSet) -> bool:
    """Whether there is a counterexample, which then replays."""
    found = find_counterexample(rewrite, fast_math=fast_math, budget=Budget(runs=200))
    return found is not None and replays(rewrite, found.to_dict(), fast_math=fast_math)


@one_in(4)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("B[0] = A[0]", "B[0] = A[0] / (A[1] - A[1])"),
        ("B[0] = A[0] + A[1]", f"B[0] = A[0] + A[1] + {NAN} * T.float32(0)"),
        ("B[0] = A[0] + A[1]", f"B[0] = A[0] + A[1] + {INF}"),
        ("B[0] = A[0]", "B[0] = A[0] + T.undef(dtype='float32')"),
        ("B[0] = A[0] * A[1]", "B[0] = A[0] * A[1] + T.float32(0) * T.undef(dtype='float32')"),
        ("B[0] = T.exp(A[0])", "B[0] = T.exp(A[1])"),
        ("B[0] = T.exp(A[0] - A[1])", "B[0] = T.exp(A[0] - A[1]) + T.float32(1)"),
        ("B[0] = (A[0] + A[1] + A[2]) / T.float32(3)", "B[0] = (A[0] + A[1] + A[2]) / T.float32(4)"),
        ("B[0] = T.float32(1) / T.float32(7)", "B[0] = T.float32(1) / T.float32(9)"),
        ("B[0] = T.exp(A[0] - A[0]) / T.float32(7)", "B[0] = T.float32(0)"),
        ("B[0] = A[0] * T.float32(0.1)", "B[0] = A[0] * T.float32(0.2)"),
        (f"B[0] = {LEAST}\nB[0] = T.max(B[0], A[0])", f"B[0] = {LEAST}\nB[0] = T.max(B[0], T.max(A[0], T.float32(0)))"),
        (f"if D[0] > 0:\n    B[0] = A[0]\nelse:\n    B[0] = {LEAST}", "B[0] = A[0]"),
        ("if D[0] > 0:\n    B[0] = A[0]", "B[0] = B[0] + A[0] * T.float32(0)\nif D[0] > 0:\n    B[0] = A[0]"),
    ],
)
def test_no_fast_math_explains_it(before: str, after: str) -> None:
    """NaN that only the new program has, functions, means, literal infinities and inputs that the old program never
    reads.
    """
    assert is_refuted(two(before, after), ALL)
    assert is_refuted(two(before, after), IEEE)


@one_in(23)
@pytest.mark.parametrize(
    ("before", "after", "fast_math"),
    [
        ("B[0] = A[0] * A[1]", "B[0] = A[0] * A[1] / A[2] * A[2]", None),  # A[2] = 0 gives NaN, and nothing excludes it
        ("B[0] = A[0] / A[2]", "B[0] = A[0] * A[1] / (A[1] * A[2])", None),
        ("B[0] = A[0] * A[1] / A[1]", "B[0] = A[0]", NNAN | NINF | NSZ | REASSOC),
        ("B[0] = A[0] + A[1] - A[1]", "B[0] = A[0]", ALL),
        ("B[0] = A[0] / T.float32(3)", "B[0] = A[0] * T.float32(2) / T.float32(6)", ALL),
        ("B[0] = A[0] - A[0]", "B[0] = T.float32(0)", NNAN),
        ("B[0] = A[0] * T.float32(0)", "B[0] = T.float32(0)", NNAN | NSZ),
        ("B[0] = T.max(A[0], A[1])", "B[0] = T.max(A[1], A[0])", NNAN | NSZ),
        ("B[0] = T.exp(A[0]) + A[1] + A[2]", "B[0] = A[2] + A[1] + T.exp(A[0])", REASSOC),
        ("B[0] = T.tanh(A[0] * A[1] * A[2])", "B[0] = T.tanh(A[2] * A[1] * A[0])", REASSOC),
        ("if A[0] + A[1] + A[2] == A[0] + (A[1] + A[2]):\n    B[0] = A[0]", "B[0] = A[0]", REASSOC | NNAN | NINF),
        ("B[0] = T.float32(1) / (A[0] * T.float32(0))", "B[0] = T.float32(1) / (A[1] * T.float32(0))", NINF | NNAN),
        ("B[0] = A[0] - A[0] + T.float32(1)", "B[0] = T.float32(1)", NNAN),
    ],
)  # fmt: skip
def test_it_takes_the_fast_math_to_explain_it(before: str, after: str, fast_math: FastMathSet | None) -> None:
    """Under the fast-math assumptions named there is no counterexample, without them there is one; None: there always
    is one.
    """
    rewrite = two(before, after)
    assert is_refuted(rewrite, IEEE)
    if fast_math is None:
        assert is_refuted(rewrite, ALL)
        return
    for allowed in (fast_math, ALL):
        assert not is_refuted(rewrite, allowed)
    assert any(is_refuted(rewrite, fast_math - {each}) for each in fast_math)


@one_in(4)
def test_an_overflow_of_the_new_program_is_rounding() -> None:
    """In half floats the square of a sum overflows early: rounding under `reassoc`, a difference without."""
    parameters = "A: f16[3]; B: f16[1]"
    before = "B[0] = A[0] / T.float16(256)"
    after = "B[0] = A[0] * T.float16(512) * T.float16(512) / T.float16(256) / T.float16(512) / T.float16(512)"
    rewrite = two(before, after, parameters)
    assert is_refuted(rewrite, NNAN | NINF | NSZ)
    assert not is_refuted(rewrite, ALL)


def test_fast_math_that_cannot_explain_anything_change_nothing() -> None:
    """Integers, also undefined ones that cancel out: every fast-math assumption is as good as none."""
    old = func("A: i32[3]; B: i32[1]", "B[0] = A[0] + A[1] + T.undef(dtype='int32') * 0")
    new = func("A: i32[3]; B: i32[1]", "B[0] = A[0] - A[1]")
    found = [find_counterexample(pair(old, new), fast_math=fast_math) for fast_math in (ALL, IEEE)]
    assert found[0] is not None and found[1] is not None
    assert found[0].to_dict() == found[1].to_dict()


@one_in(4)
def test_undefined_padding_that_is_added_up_is_seen() -> None:
    """Whatever fast-math assumptions there are, padding that may hold NaN must not arrive in a sum; a stage between
    makes no difference.
    """
    body = """
for i in range(14):
    C[i] = A[i] * T.float32(2)
B[0] = T.float32(0)
for jo in range(4):
    for ji in range(4):
        if jo * 4 + ji < 14:
            B[0] = B[0] + C[jo * 4 + ji]
"""
    old = func("A: f32[14]; C: f32[14]; B: f32[1]", body)
    tiles, change = "lambda i: [i//4, i%4]", ("if jo * 4 + ji < 14:", "if 0 <= jo:")
    for pad, differs in (("T.undef()", True), (0.0, False), (3.0, True)):
        assert is_refuted(relaid(old, "C", tiles, pad, change=change), ALL) is differs


def test_a_vector_of_floats_is_watched() -> None:
    """Fast-math assumptions know vectors too: one lane that is NaN leaves the execution out."""
    parameters = "A: f32[8]; B: f32[8]"
    before = "B[T.ramp(0, 1, 4)] = A[T.ramp(0, 1, 4)] / A[T.ramp(4, 1, 4)]"
    rewrite = two(before, before.replace("/", "/ T.broadcast(T.float32(2), 4) /"), parameters)
    assert is_refuted(rewrite, ALL)
    swapped = two(f"{before}\nB[4] = T.max(B[0], B[1])", f"{before}\nB[4] = T.max(B[1], B[0])", parameters)
    assert is_refuted(swapped, IEEE) and not is_refuted(swapped, NNAN | NINF | NSZ)


def excused_cases(seed: int, count: int) -> int:
    """Random programs with values written otherwise, under the fast-math assumptions that this takes and more: nothing
    is refuted. How many.
    """
    rng, tried = Random(seed), 0
    generator = Generator(rng)
    while tried < count:
        program = generator.program()
        if rng.random() < 0.2:
            turned = reverse_sum(program, rng)
            made = None if turned is None else (rewrite_of(program, turned), ALL, "a sum reversed")
        else:
            made = excused_rewrite(rewrite_of(program, program).old, rng, rng.choice([1, 1, 2, 3]))
        if made is None or check_wellformed(made[0].new):
            continue
        rewrite, least, what = made
        for fast_math in (least, least | frozenset(rng.sample(sorted(ALL), 2))):
            tried += 1
            found = find_counterexample(rewrite, where=assumed_of(rewrite), fast_math=fast_math, budget=QUICK)
            assert found is None, (what, sorted(fast_math), found.text())
    return tried


def legal_cases(seed: int, count: int) -> int:
    """Rewrites that are right bit for bit, under any fast-math assumptions: nothing is refuted, whatever the proof
    would say. How many.
    """
    rng, tried = Random(seed), 0
    for attempt in attempts(rng):
        if tried >= count:
            break
        if attempt.legal and not attempt.what.startswith("padded"):
            fast_math = rng.choice([ALL, NNAN | NINF, NSZ, REASSOC, IEEE])
            tried += 1
            found = find_counterexample(
                attempt.rewrite, where=assumed_of(attempt.rewrite), fast_math=fast_math, budget=QUICK
            )
            assert found is None, (attempt.what, sorted(fast_math), found.text())
    return tried


@one_in(9)
def test_what_fast_math_allow_is_not_refuted() -> None:
    """Sums and values written otherwise in some random programs."""
    assert excused_cases(1, 15) >= 15


@one_in(4)
def test_what_is_right_bit_for_bit_is_not_refuted() -> None:
    """Loops, stages and layouts of some random programs changed, under all kinds of fast-math assumptions."""
    assert legal_cases(1, 12) >= 12


@pytest.mark.campaign
def test_thousands_of_right_rewrites_are_not_refuted() -> None:
    """The same over many random programs."""
    assert excused_cases(2, 2_000) + legal_cases(2, 2_000) >= 4_000


def test_a_witness_that_is_wrong_does_not_refute() -> None:
    """What a witness says of instances plays no part: only runs count."""
    rewrite = two("B[0] = A[0] + A[1]", "B[0] = A[1] + A[0]")
    assert not is_refuted(replace(rewrite, witness=replace(rewrite.witness, instances=())), IEEE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A[0]", "T.Cast('float32', T.Cast('float16', A[0]))"),
        ("T.Cast('float32', T.Cast('bfloat16', A[0]))", "A[0]"),
        ("T.max(A[0], T.float32(0))", "T.max(T.Cast('float32', T.Cast('bfloat16', A[0])), T.float32(0))"),
        ("T.exp(A[0])", "T.exp(T.Cast('float32', T.Cast('float16', A[0])))"),
    ],
)
def test_a_conversion_is_nothing_to_regroup(before: str, after: str) -> None:
    """Where neither program has a sum or a product, no fast-math assumption explains a narrower type."""
    rewrite = two(f"B[0] = {before}", f"B[0] = {after}")
    assert is_refuted(rewrite, ALL) and is_refuted(rewrite, IEEE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A[0] + A[1]", "T.Cast('float32', T.Cast('float16', A[0])) + A[1]"),
        ("A[0] * A[1]", "T.Cast('float32', T.Cast('bfloat16', A[0] * A[1]))"),
        ("T.Cast('float32', T.Cast('float16', A[0] + A[1]))", "A[0] + A[1]"),
    ],
)
def test_a_conversion_beside_a_sum_is_not_excused(before: str, after: str) -> None:
    """Regrouping does not leave conversions out, nor makes them."""
    rewrite = two(f"B[0] = {before}", f"B[0] = {after}")
    assert is_refuted(rewrite, ALL) and is_refuted(rewrite, IEEE)


def chain(random: Random, depth: int) -> tuple[str, str]:
    """Sums and products with conversions in between, and the same with each chain in another order and grouping."""
    if depth == 0:
        leaf = random.choice(["A[0]", "A[1]", "A[2]", "T.float32(3)"])
        return leaf, leaf
    operator = random.choice("+*")
    parts = [chain(random, depth - 1) for _ in range(random.randrange(2, 4))]
    kind = random.choice(["float16", "bfloat16"])
    first, second = [one for one, _ in parts], [other for _, other in random.sample(parts, len(parts))]
    one = f" {operator} ".join(first)
    other = second[0] if len(second) == 1 else f"{second[0]} {operator} ({f' {operator} '.join(second[1:])})"
    return f"T.Cast('float32', T.Cast('{kind}', {one}))", f"T.Cast('float32', T.Cast('{kind}', {other}))"


@one_in(4)
@pytest.mark.parametrize("seed", range(12))
def test_sums_around_conversions_are_regrouped(seed: int) -> None:
    """What is converted is the same there, whatever is regrouped inside and around."""
    before, after = chain(Random(seed), 2)
    rewrite = two(f"B[0] = {before}", f"B[0] = {after}")
    assert find_counterexample(rewrite, fast_math=ALL, budget=Budget(runs=80)) is None


def test_integers_that_a_smaller_type_does_not_hold_are_tried() -> None:
    """Small ones fit, and the largest comes out the same."""
    before, after = "B[0] = A[0] * 2", "B[0] = T.Cast('int32', T.Cast('int8', A[0])) * 2"
    assert is_refuted(two(before, after, "A: i32[1]; B: i32[1]"), IEEE)
