"""Schedules that begin alike: what is known of a beginning is found by keys, whose cost grows with the steps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.lowering.small_operators import small_text

from layoutproof.cli.gate.check_items import Options, find_items
from layoutproof.cli.gate.judging import schedules
from layoutproof.cli.gate.judging.findings import digest
from layoutproof.cli.gate.judging.judge import judge
from layoutproof.ir.script.reader import loads

FUNC = loads('@T.prim_func\ndef f(A: T.Buffer((4, 4), "int32")):\n    for i, j in T.grid(4, 4):\n        A[i, j] = 0\n')
OPTIONS = Options(fast_math=("nnan",))


def steps(count: int) -> list[Any]:
    """Two loops that change places again and again."""
    return [["reorder", {"block": "b", "loops": ["j", "i"] if k % 2 == 0 else ["i", "j"]}] for k in range(count)]


def test_beginnings_that_are_alike_have_one_key() -> None:
    """Up to the first step that differs, and from there on never again."""
    mine, theirs = steps(6), [*steps(3), ["simplify", {}], *steps(2)]
    pairs = list(zip(*(schedules._prefix_keys(FUNC, OPTIONS, trace) for trace in (mine, theirs)), strict=True))
    assert [a == b for a, b in pairs] == [True] * 4 + [False] * 3
    assert len({key for pair in pairs for key in pair}) == 10


@pytest.mark.parametrize(
    "change", [{"fast_math": ()}, {"fast_math": ("ninf",)}, {"budget_scale": 2.0}, {"cache": None}, {"cache": "None"}]
)
def test_other_options_have_other_keys(change: dict[str, Any]) -> None:
    """What is proved under some fast-math assumptions or budgets, or kept in some cache, is not taken for what others
    ask for.
    """
    keys = [set(schedules._prefix_keys(FUNC, options, steps(3))) for options in (OPTIONS, replace(OPTIONS, **change))]
    assert not keys[0] & keys[1]


def test_the_cost_of_keys_grows_with_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many steps: twice as much to hash, and not four times."""
    hashed: list[int] = []

    def counting(*parts: str) -> str:
        hashed.append(sum(map(len, parts)))
        return digest(*parts)

    monkeypatch.setattr("layoutproof.cli.gate.judging.schedules.digest", counting)
    sizes = []
    for count in (200, 400):
        hashed.clear()
        schedules._prefix_keys(FUNC, OPTIONS, steps(count))
        sizes.append(sum(hashed))
    assert 0 < sizes[1] < 2.1 * sizes[0]


def test_the_step_at_work_is_told(tmp_path: Path) -> None:
    """A schedule's progress names the step that is being proved, the last one at the end; the outcome is the same."""
    (tmp_path / "row_sum.py").write_text(small_text("row_sum"))
    trace = [["split", {"block": "A_red", "loop": "ax0", "factors": [None, 4]}], ["simplify", {}]]
    (tmp_path / "row_sum.json").write_text(json.dumps(trace))
    (item,) = find_items([tmp_path / "row_sum.py"], [tmp_path / "row_sum.json"], None)
    told = tmp_path / "step"
    # The second one finds the steps of the first, and tells nothing.
    loud, quiet = (judge(item, replace(OPTIONS, cache=None, doing=doing)) for doing in (str(told), None))
    assert told.read_text() == "step 2 of 2: simplify"
    assert quiet.verdict == loud.verdict == "proved" and len(quiet.steps) == len(loud.steps) == 2


def test_what_was_proved_is_kept_of_the_text_that_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is written again while its schedule is proved does not get the outcome of the one before."""
    program, trace = tmp_path / "row_sum.py", tmp_path / "row_sum.json"
    first, second = small_text("row_sum"), small_text("row_sum").replace("def ", "def other_")
    program.write_text(first)
    trace.write_text('[["simplify", {}]]')
    (item,) = find_items([program], [trace], None)
    options = replace(OPTIONS, cache=str(tmp_path / "proofs"))
    scheduled = schedules._scheduled

    def slow(*given: Any) -> Any:
        outcome = scheduled(*given)
        program.write_text(second)
        return outcome

    monkeypatch.setattr(schedules, "_scheduled", slow)
    assert judge(item, options).verdict == "proved"
    assert schedules.recall(item, options) is None
    program.write_text(first)
    known = schedules.recall(item, options)
    assert known is not None and known.verdict == "proved"


def test_what_was_kept_depends_on_how_programs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule's program may be MLIR: what another reader of it made is not taken."""
    program = tmp_path / "row_sum.py"
    program.write_text(small_text("row_sum"))
    (tmp_path / "row_sum.json").write_text('[["simplify", {}]]')
    (item,) = find_items([program], [tmp_path / "row_sum.json"], None)
    keys = set()
    for version in ("one", "other"):
        monkeypatch.setattr(schedules, "digest_of", lambda rooms, v=version: v if "importers" in rooms else "")
        schedules._hash_of.cache_clear()
        keys.add(schedules._report_key(item, OPTIONS, False, ""))
    schedules._hash_of.cache_clear()
    assert len(keys) == 2
