"""A slice of the attack on the kernel: no rewrite that a run tells apart is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.kernel_campaign import attack, main
from tests.attack.kernel_damage import damage_many
from tests.shares import one_in, some


@one_in(4)
@pytest.mark.parametrize("wrong", some((8, 600), 1))
def test_no_wrong_rewrite_is_accepted(wrong: int) -> None:
    """Programs, witnesses and evidence with something wrong in them."""
    tally = attack(21, wrong)
    assert tally.wrong == []
    assert tally.counts["wrong"] >= wrong


@one_in(10)
@pytest.mark.parametrize("count", some((60, 2000), 1))
def test_no_damaged_certificate_states_something_false(count: int, tmp_path: Path) -> None:
    """Real certificates with something else in one place; a run that was stopped goes on where it was."""
    log = tmp_path / "log.jsonl"
    tally = damage_many(21, count, log=log, many=count > 60)
    assert tally.wrong == []
    assert tally.counts["damaged"] == count
    assert min(tally.counts["rejected"], tally.counts["accepted"]) > 0
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:-1], ""]))
    assert damage_many(21, count, log=log, many=count > 60).counts == tally.counts
    assert sorted(log.read_text().splitlines()) == sorted(lines)


def test_the_attack_may_end_by_the_clock(capsys: pytest.CaptureFixture[str]) -> None:
    """No rewrite is tried after the time that is given."""
    assert main(["--seconds", "0"]) == 0
    assert "wrong" not in capsys.readouterr().out
