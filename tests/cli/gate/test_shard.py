"""Parts of a run: together exactly the whole."""

from __future__ import annotations

from itertools import chain, count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Shard, parse_shard
from layoutproof.ir.diagnostic import LayoutproofError


@given(st.integers(0, 200), st.integers(1, 40))
def test_parts_are_the_whole(total: int, parts: int) -> None:
    """All parts together hold each item once, each part in order, and no part is more than one item longer than
    another.
    """
    shards = [list(parse_shard(f"{number}/{parts}").of(range(total))) for number in range(1, parts + 1)]
    assert sorted(chain.from_iterable(shards)) == list(range(total))
    assert all(shard == sorted(shard) for shard in shards)
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    assert [len(shard) for shard in shards] == [Shard(number, parts).count(total) for number in range(1, parts + 1)]


def test_items_are_taken_as_needed() -> None:
    """A part of something without end can be begun."""
    assert list(islice(parse_shard("3/10").of(count()), 3)) == [2, 12, 22]
    assert str(parse_shard(" 3/10 ")) == "3/10"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "expected I/N"),
        ("3", "expected I/N"),
        ("3/", "expected I/N"),
        ("3 / 10", "expected I/N"),
        ("-1/10", "expected I/N"),
        ("1.5/10", "expected I/N"),
        ("\u0663/\u0661\u0660", "expected I/N"),
        ("1/10/2", "expected I/N"),
        ("1/" + "9" * 5000, "expected I/N"),
        ("0/10", "a number from 1 to 10, not 0"),
        ("11/10", "a number from 1 to 10, not 11"),
        ("0/0", "1 to 1000000 parts, not 0"),
        ("1/9999999", "1 to 1000000 parts, not 9999999"),
    ],
)
def test_bad_text(text: str, expected: str) -> None:
    """Anything that names no part is an error that says what was expected."""
    with pytest.raises(LayoutproofError) as problem:
        parse_shard(text)
    (diagnostic,) = problem.value.diagnostics
    assert (
        diagnostic.code == codes.SHARD
        and diagnostic.message.startswith(f"--shard {text}: ")
        and expected in diagnostic.message
    )
