"""Slices of the campaigns against comparisons, and the judge by itself."""

from __future__ import annotations

from random import Random

import pytest

from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status
from tests.attack.compare_campaign import Tally, attack, judged, laid_out, report
from tests.attack.compare_judge import Laid, case_of, difference
from tests.attack.compare_mutants import KINDS, mutants, smaller
from tests.attack.compare_schedules import again, share
from tests.attack.compare_schedules import report as schedules_report
from tests.lowering.compare.pairs import Pair, case_name, named, pairs, told, upstream
from tests.shares import one_in

COLLECTED = [pair for folder in ("hand", "must", "kinds") for pair in pairs(folder)]
EVERY = [pair for pair in COLLECTED if pair.expect != "refuted"]
DEFECTS = [*pairs("defects"), *(pair for pair in COLLECTED if pair.expect == "refuted")]
SLOW = {"matmul_packed", "matmul_tiled", "conv2d_nchw8c", "conv2d_as_im2col_and_matmul", "24_depthwise_conv2d_nchw"}


@one_in(28)
@pytest.mark.parametrize("pair", [*EVERY, *upstream()], ids=case_name)
def test_no_run_tells_a_pair_apart(pair: Pair) -> None:
    """Every pair that is called right is judged right by runs, so that what is proved of it is no accident."""
    small = smaller(pair)
    chosen = pair if small is None else small
    trials = 1 if pair.name in SLOW else 4
    assert judged(chosen, chosen.after, laid_out(chosen), 1, frozenset(pair.strictness), trials) is None


@pytest.mark.parametrize("pair", DEFECTS, ids=case_name)
def test_runs_tell_defects_apart(pair: Pair) -> None:
    """Every defect is one for the judge too."""
    assert judged(pair, pair.after, laid_out(pair), 1, frozenset()) is not None


def test_the_judge_looks_at_padding() -> None:
    """Padding that is owed a value and holds another is a difference; where its contract is open, it is none; and hands
    off is meant.
    """
    pair = named(pairs("hand"), "padding_filled_in_an_epilogue")
    found = {}
    for contract in ("T.float32(0)", "T.float32(1)", "T.undef()", None):
        laid = {"B": Laid(pair.layouts["B"], contract)}
        found[contract] = difference(case_of(pair.before, pair.after, {}, laid), Random(0))
    assert found["T.float32(0)"] is None and found["T.undef()"] is None
    assert "contract" in str(found["T.float32(1)"]) and "padding" in str(found[None])


@one_in(9)
def test_every_kind_of_mutant_is_made() -> None:
    """Each kind of mutant comes from some pair, and no two mutants of a pair are the same text."""
    chosen = [
        named(upstream(), "00_row_sum"),
        named(pairs("must"), "softmax_by_rows"),
        named(pairs("hand"), "block_predicate_against_else"),
    ]
    made = [[(mutant.kind, print_func(mutant.func)) for mutant, _ in mutants(pair.after, 1, 40)] for pair in chosen]
    assert set(KINDS) == {kind for some in made for kind, _ in some}
    assert all(len({text for _, text in some}) == len(some) >= 20 for some in made)


GROSS = (
    "guard constant,predicate side,index swap,pad value,dropped init,moved init,lost store,wrong axis,loop bound".split(
        ","
    )
)
QUICK = ("00_row_sum", "14_exp1d", "16_double_int")


@one_in(4)
@pytest.mark.parametrize("name", QUICK)
def test_mutants_of_upstream_s_pairs(name: str) -> None:
    """Some mutants: none that changes results is proved, none that does not is refuted, and all that do are refuted."""
    slice_of(named(upstream(), name), 5)


@one_in(7)
@pytest.mark.parametrize("name", ["average_pooling_channels_last", "matmul_of_packed_weights"])
def test_mutants_of_operators(name: str) -> None:
    """The same for operators that were scheduled by hand."""
    slice_of(named(pairs("must"), name), 3)


def slice_of(pair: Pair, count: int) -> None:
    """Some mutants of a pair, asked about and judged."""
    tally = Tally(attack(pair, count, seed=5, among=GROSS))
    assert len(tally.outcomes) == count and tally.wrong == [] and tally.gaps == [], report(tally)
    assert tally.counts()["changed and refuted"] > 0, report(tally)


def test_padding_with_a_zero_of_the_other_sign() -> None:
    """Padding that ends as -0.0 does not hold its pad value 0.0, whatever is excused of floats."""
    pair = named(upstream(), "14_exp1d")
    after = loads(print_func(pair.after).replace("2 <= v_axis1, T.float32(0.0)", "2 <= v_axis1, T.float32(-0.0)"))
    assert (
        judged(pair, after, laid_out(pair), 0, frozenset())
        == "padding of compute is np.float32(-0.0), its contract says 0.0"
    )
    found = pair.with_after(after).compared()
    assert found.status is Status.REFUTED and "satisfies its contract" in told(found)


@pytest.mark.campaign
@pytest.mark.parametrize("given", [True, False], ids=case_name)
@pytest.mark.parametrize("pair", [*upstream(), *pairs("must")], ids=case_name)
def test_thirty_mutants_of_each(pair: Pair, given: bool) -> None:
    """Thirty mutants of every real and every hand-scheduled operator, with layouts given and found; the table says what
    is open.
    """
    tally = Tally(attack(pair, 30, seed=0, given=given))
    print(f"\n{pair.name}\n{report(tally)}")
    assert tally.wrong == [], report(tally)


@one_in(10)
def test_random_schedules_are_proved_again() -> None:
    """Some random schedules, from their first and their last program alone."""
    found = [again(seed, 4, True, False) for seed in range(3)]
    assert not any(each.wrong for each in found) and share(found) >= 0.9, schedules_report(found)


@pytest.mark.campaign
@pytest.mark.parametrize("is_bare", [False, True], ids=["records", "bare"])
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_schedules_campaign(first: int, is_bare: bool) -> None:
    """Two hundred schedules of up to eight steps: nine of ten are proved again where their layouts are recorded."""
    found = [again(seed, 8, True, is_bare) for seed in range(first, first + 20)]
    print(f"\n{schedules_report(found)}")
    assert not any(each.wrong for each in found)
    assert share(found) >= 0.8, schedules_report(found)
