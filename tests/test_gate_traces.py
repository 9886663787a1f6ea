"""The made-up logs of an autotuner: as many as asked for, all different, the same for one seed, mostly right and some
wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.gate_traces import LONGEST, search, write_logs

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.schedule.schedule import Schedule
from tests.lowering.small_operators import NAMES, small
from tests.shares import one_in


def outcome(name: str, line: str) -> str:
    """Whether a line's schedule is proved."""
    try:
        Schedule.replay(small(name), json.loads(line))
    except LayoutproofError:
        return "refused"
    return "proved"


def test_count(tmp_path: Path) -> None:
    """Each operator has its program and its log; together the logs have exactly as many lines as asked for, none twice
    in one.
    """
    write_logs(tmp_path, 100, 0)
    assert (
        {path.stem for path in tmp_path.glob("*.py")} == {path.stem for path in tmp_path.glob("*.jsonl")} == set(NAMES)
    )
    logs = [path.read_text(encoding="utf-8").splitlines() for path in tmp_path.glob("*.jsonl")]
    assert sum(len(log) for log in logs) == 100
    assert all(len(set(log)) == len(log) for log in logs)


@one_in(4)
def test_seed() -> None:
    """One seed gives the same log again, another seed another one; a shorter log is the beginning of a longer one."""
    log = list(search("matmul", 40, 1))
    assert list(search("matmul", 40, 1)) == log
    assert list(search("matmul", 20, 1)) == log[:20]
    assert list(search("matmul", 40, 2)) != log


def test_many_begin_alike() -> None:
    """Schedules have one to four steps, those made wrong up to two more, and most share their first step with
    others.
    """
    traces = [json.loads(line) for line in search("conv2d_nhwc", 60, 0)]
    assert all(1 <= len(trace) <= LONGEST + 2 for trace in traces)
    first = Counter(json.dumps(trace[0]) for trace in traces)
    assert sum(first[json.dumps(trace[0])] > 1 for trace in traces) > 30


@one_in(9)
def test_most_are_right() -> None:
    """Most schedules are proved, and some are refused: the log is neither all right nor all wrong."""
    counts = Counter(
        outcome(name, line) for name in ("row_sum", "relu_nhwc", "transpose") for line in search(name, 15, 0)
    )
    assert counts["proved"] > 30 and counts["refused"] > 0
