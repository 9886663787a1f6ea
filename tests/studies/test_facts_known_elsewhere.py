"""What is known of padding from elsewhere comes out of studies."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.shares import one_in

from layoutproof.studies.cells import Cell
from layoutproof.studies.judge import judge, record_of
from layoutproof.studies.operators import library

KNOWN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sum-from-first/float32/fixed/block4/producer-writes/-0/finite": ("proved", ()),
    "sum-from-first/float32/fixed/block4/producer-writes/0/finite": ("proved", ("nsz",)),
    "sum-from-first/float32/fixed/block4/producer-writes/0/ieee": ("refuted", ()),
    "sum/float32/symbolic/block4/producer-writes/0/ieee": ("proved", ()),
    "sum/float32/fixed/block4/producer-writes/1/finite": ("refuted", ()),
    "product/float32/fixed/block4/producer-writes/0/finite": ("refuted", ()),
    "max-acc-first/float32/fixed/block4/producer-writes/-inf/finite": ("proved", ("nnan",)),
    "max-acc-first/float32/fixed/block4/producer-writes/lowest/finite": ("proved", ("nnan", "ninf")),
    "max-new-first/float32/fixed/block4/producer-writes/-inf/ieee": ("proved", ()),
    "max-new-first/float32/fixed/block4/producer-writes/0/finite": ("refuted", ()),
    "max-new-first/int8/fixed/block4/producer-writes/lowest/ieee": ("proved", ()),
    "max-c/float32/fixed/block4/producer-writes/-inf/ieee": ("proved", ()),
    "weighted-shared/float32/fixed/block4/producer-writes/0/ieee": ("refuted", ()),
    "weighted-finite/float32/fixed/block4/producer-writes/0/ieee": ("proved", ()),
    "weighted-both/float32/fixed/block4/producer-writes/0/ieee": ("proved", ()),
    "zero-point/int8/fixed/block4/producer-writes/0/ieee": ("refuted", ()),
    "zero-point/int8/fixed/block4/producer-writes/7/ieee": ("proved", ()),
    "variance/float32/fixed/block4/producer-writes/0/ieee": ("refuted", ()),
    "argmax-last/int32/fixed/block4/producer-writes/lowest/ieee": ("refuted", ()),
    "argmax-first/int32/fixed/block4/producer-writes/lowest/ieee": ("proved", ()),
    "relu/float32/fixed/block4/zero/0/ieee": ("proved", ()),
    "exp/float32/fixed/block4/zero/0/ieee": ("refuted", ()),
    "self-difference/int32/fixed/block4/undef-once/-/ieee": ("proved", ()),
    "self-difference/int32/fixed/block4/undef-each-use/-/ieee": ("refuted", ()),
    "times-zero/int32/fixed/block4/undef-each-use/-/ieee": ("proved", ()),
    "times-zero/int32/fixed/block4/poison/-/ieee": ("refuted", ()),
    "relu/float32/fixed/block4/poison/-/ieee": ("proved", ()),
    "sum/float32/fixed/block4/masked/0/ieee": ("proved", ()),
    "sum/float32/fixed/block4/masked/1/ieee": ("refuted", ()),
    "sum/float32/fixed/block4/internal-copy/0/ieee": ("proved", ()),
    "sum/float32/fixed/block4/never-read/-/finite": ("refuted", ()),
    "max-new-first/float32/fixed/block4/canary/nan/ieee": ("proved", ()),
    "convolution-halo/float32/fixed/block4/producer-writes/0/finite": ("refuted", ()),
    "sum/float32/fixed/swizzle/producer-writes/0/ieee": ("proved", ()),
    "sum/float32/fixed/texture/producer-writes/0/ieee": ("proved", ()),
    "sum/float32/fixed/two-axes/several-contracts/0/ieee": ("proved", ()),
}


@one_in(61)
@pytest.mark.parametrize("key", KNOWN)
def test_a_known_fact(key: str) -> None:
    """The verdict of a cell, and the least fast-math assumptions, are those that are known."""
    cell = Cell(*key.split("/"))
    record = record_of(judge(library()[cell.operator], cell))
    assert (record["verdict"], tuple(record["licences"])) == KNOWN[key]
    assert (record["counterexample"] is not None) == (record["verdict"] == "refuted")
    assert set(record["breaks"]) == set(record["licences"])


def test_what_breaks_without_an_assumption_is_a_run() -> None:
    """Without `nnan` a maximum loses a NaN, and a run on one shows it."""
    cell = Cell("max-acc-first", "float32", "fixed", "block4", "producer-writes", "-inf", "finite")
    record = record_of(judge(library()[cell.operator], cell))
    assert "expected nan, got -inf" in record["breaks"]["nnan"]
