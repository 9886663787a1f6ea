"""Random index maps against brute force: every claim of every report, on maps with and without mistakes in them."""

import copy
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from tests.judging import judge
from tests.oracle import maps as oracle
from tests.random.index_maps import RandomMap, draw_map, index_maps
from tests.random.map_campaign import DEFAULT_RUN, examine, examine_map
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.verify.maps.check_map import check_map

CHUNK = 100


@one_in(10)
@pytest.mark.parametrize("first", some(range(0, DEFAULT_RUN, CHUNK), 3))
def test_reports_are_true(first: int) -> None:
    """Verdicts, shape, padding, inverse and counterexamples of a hundred random maps are what brute force finds."""
    outcomes = [examine(seed) for seed in range(first, first + CHUNK)]
    wrong = ["\n    ".join([f"seed {o.seed}: {o.title}", *o.complaints]) for o in outcomes if o.complaints]
    assert not wrong, f"{len(wrong)} of {CHUNK} maps:\n" + "\n".join(wrong)


@one_in(4)
@given(index_maps())
@settings(max_examples=60)
def test_smallest_map_with_a_wrong_report(drawn: RandomMap) -> None:
    """No map has a wrong report; a failure here is shrunk to a small one."""
    complaints, _, _ = examine_map(drawn)
    assert not complaints, f"{drawn}: " + "; ".join(map(str, complaints))


@pytest.mark.campaign
@given(index_maps())
def test_more_maps_with_shrinking(drawn: RandomMap) -> None:
    """As above, with fresh examples on every run."""
    complaints, _, _ = examine_map(drawn)
    assert not complaints, f"{drawn}: " + "; ".join(map(str, complaints))


@one_in(10)
@pytest.mark.parametrize("first", some(range(0, 400, CHUNK), 2))
def test_other_boxes(first: int) -> None:
    """With the tight box, and with a box that was asked for, every claim is true of that box; a box that is too small
    is refused.
    """
    for seed in range(first, first + CHUNK):
        drawn, rng = draw_map(seed), Random(seed)
        true = oracle.truth(drawn.text, drawn.shape)
        if true.negative is not None or drawn.category == "midsize":
            continue
        tight = tuple(int(top) + 1 for top in true.image.max(axis=0))
        given = tuple(extent + rng.randint(0, 2) for extent in tight)
        reports = {
            tight: check_map(drawn.text, drawn.shape, box="tight"),
            given: check_map(drawn.text, drawn.shape, physical_shape=given),
        }
        for box, report in reports.items():
            assert judge(report.to_dict(), replace(true, shape=box)) == [], f"{drawn} in {box}"
        small = [extent - (axis == seed % len(tight)) for axis, extent in enumerate(tight)]
        with pytest.raises(LayoutproofError):
            check_map(drawn.text, drawn.shape, physical_shape=small)


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(report)
    for claim in ("injective", "bijective"):
        plain[claim].pop("seconds")
    return plain


@given(index_maps())
@settings(max_examples=20)
def test_reports_repeat(drawn: RandomMap) -> None:
    """Asking twice gives the same report, times aside."""
    if oracle.truth(drawn.text, drawn.shape).negative is None:
        first, second = (without_times(check_map(parse_index_map(drawn.text), drawn.shape).to_dict()) for _ in range(2))
        assert first == second


def truthful() -> dict[str, Any]:
    return {
        "index_map": "lambda i: [(i + 1) // 4, (i + 1) % 4]",
        "shape": [10],
        "injective": {"status": "proved", "engine": "isl", "reason": None, "counterexample": None},
        "bijective": {"status": "refuted", "engine": "isl", "reason": None, "counterexample": {"unreached": [2, 3]}},
        "physical_shape": [3, 4],
        "axis_separators": [0],
        "flattened_shape": [3, 4],
        "inverse": "lambda p0, p1: [4 * p0 + p1 - 1]",
        "padding": {"predicate": "4 * p0 + p1 < 1 or 4 * p0 + p1 >= 11", "cells": 2, "fraction": 2 / 12},
    }


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "FALSE PROOF bijective": lambda r: r["bijective"].update(status="proved"),
    "false refutation injective": lambda r: r["injective"].update(
        status="refuted", counterexample={"first": [0], "second": [1], "image": [0, 1]}
    ),
    "unknown injective": lambda r: r["injective"].update(status="unknown", reason="budget"),
    "vacuous injective": lambda r: r["injective"].update(status="vacuous", reason="no instance"),
    "counterexample bijective": lambda r: r["bijective"].update(counterexample={"unreached": [2, 2]}),
    "shape": lambda r: r.update(physical_shape=[4, 4]),
    "flattening": lambda r: r.update(flattened_shape=[12]),
    "cells": lambda r: r["padding"].update(cells=3),
    "fraction": lambda r: r["padding"].update(fraction=0.2),
    "no predicate": lambda r: r["padding"].update(predicate=None),
    "predicate": lambda r: r["padding"].update(predicate="4 * p0 + p1 < 1"),
    "predicate traps": lambda r: r["padding"].update(predicate="p0 // p1 == 7"),
    "grammar": lambda r: r["padding"].update(predicate="max(p0, p1) == 0"),
    "no inverse": lambda r: r.update(inverse=None),
    "inverse": lambda r: r.update(inverse="lambda p0, p1: [4 * p0 + p1]"),
    "inverse traps": lambda r: r.update(inverse="lambda p0, p1: [4 * p0 + p1 - 1 + 0 // (p0 - 2)]"),
    "text": lambda r: r.update(index_map="lambda i: [(i + 1) // 4, i % 4]"),
}


def test_the_truth_is_not_complained_of() -> None:
    """A report that is right in everything gives no complaint."""
    true = oracle.truth("lambda i: [(i + 1) // 4, AXIS_SEPARATOR, (i + 1) % 4]", (10,))
    assert judge(truthful(), true) == []


@pytest.mark.parametrize("kind", LIES)
def test_every_lie_is_noticed(kind: str) -> None:
    """A report with one thing wrong in it gives a complaint of that kind."""
    report = truthful()
    LIES[kind](report)
    true = oracle.truth("lambda i: [(i + 1) // 4, AXIS_SEPARATOR, (i + 1) % 4]", (10,))
    assert kind in [complaint.kind for complaint in judge(report, true)]
