"""Items that hang, allocate, crash or raise: each costs its own outcome only, and leaves no process behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.gate.judges import OPTIONS, item, judge, telling
from tests.cli.render.gate.marked import MARK, marked, new_mark, wait_until
from tests.shares import chosen, one_in

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers.item_limits import Limits
from layoutproof.cli.gate.workers.pool import run_items
from layoutproof.verify.workers import worker
from layoutproof.verify.workers.endings import Ending

MEMORY = 400 << 20
TIME = Limits(workers=2, seconds=1.5)


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark that every process started in the test has; at the end none is left."""
    found = new_mark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, found)
        yield found
        assert marked(found) == set()


def run(texts: dict[int, str], limits: Limits, count: int = 12) -> list[Outcome]:
    """Items of which some do what their text says; there is one outcome each, in order, and all others are proved."""
    outcomes = list(run_items((item(n, texts.get(n, "")) for n in range(count)), judge, OPTIONS, limits))
    assert [outcome.name for outcome in outcomes] == [item(n).name for n in range(count)]
    assert all(outcome.verdict == "proved" for n, outcome in enumerate(outcomes) if n not in texts)
    return outcomes


def told(outcome: Outcome) -> tuple[str, str]:
    """Code and message of the one finding of an outcome that is unknown and stands at its item's place."""
    (finding,) = outcome.findings
    assert outcome.verdict == finding.status == "unknown" and not outcome.passes
    assert outcome.place is not None and finding.place == outcome.place and outcome.place.path == "t.jsonl"
    assert f"t.jsonl:{outcome.place.line - 1}" == outcome.name and outcome.program == "p.py"
    return finding.code, finding.message


HANGING = [(way, workers) for way in ("hang", "hang_in_c", "hang_deaf") for workers in (1, 2)]


@one_in(12)
@pytest.mark.parametrize("how", chosen(HANGING, lambda number: number in (1, 2, 5), lambda how: f"{how[0]}-{how[1]}"))
def test_an_item_past_its_time_is_ended(mark: str, how: tuple[str, int]) -> None:
    """A loop in Python, a call that never comes back, and one that is deaf to signals end after their time, and only
    they.
    """
    way, workers = how
    outcomes = run({3: way}, Limits(workers=workers, seconds=1.5))
    assert told(outcomes[3]) == (codes.TIMEOUT, "ended after 1.5 s (--timeout)")
    assert outcomes[3].seconds == 1.5


@one_in(4)
def test_time_is_an_item_s_own(mark: str) -> None:
    """Many items that take less than the limit each take more than it together."""
    assert run(dict.fromkeys(range(12), "sleep 0.3"), TIME)[11].verdict == "proved"


@one_in(4)
def test_time_holds_while_nobody_asks_for_outcomes(mark: str) -> None:
    """A worker that hangs is ended in time even if its outcomes are not read."""
    outcomes = run_items(
        (item(n, "leave_and_hang /dev/null" if n == 1 else "") for n in range(2)), judge, OPTIONS, TIME
    )
    assert next(outcomes).verdict == "proved"
    assert wait_until(lambda: len(marked(mark)) <= 2)  # of the other worker: supervisor and judging process
    assert told(next(outcomes))[0] == codes.TIMEOUT
    assert list(outcomes) == []


@one_in(7)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_item_past_its_memory_is_ended(mark: str, workers: int) -> None:
    """A worker that allocates without end is ended; the item is unknown and says so."""
    outcomes = run({3: "allocate"}, Limits(workers=workers, memory=MEMORY))
    assert told(outcomes[3]) == (codes.WORKER_MEMORY, "ended because its worker took more than 400 MB (--memory)")


@one_in(9)
def test_memory_of_children_counts(mark: str) -> None:
    """What a process takes that the worker started, as a solver is, counts as the worker's."""
    outcomes = run({3: "child_allocates"}, Limits(workers=2, memory=MEMORY))
    assert told(outcomes[3])[0] == codes.WORKER_MEMORY


@one_in(9)
def test_memory_that_was_another_item_s(mark: str) -> None:
    """An item whose worker is full of what was there before gets a new worker, not a verdict."""
    outcomes = run(dict.fromkeys(range(6), "hoard 150"), Limits(workers=2, memory=MEMORY), 6)
    assert all(outcome.verdict == "proved" for outcome in outcomes)


@one_in(21)
@pytest.mark.parametrize(
    "text, ending",
    [
        ("exit 7", "ended with exit status 7"),
        ("exit 0", "ended with exit status 0"),
        ("crash", "was ended by SIGSEGV"),
        ("kill 9", "was ended by SIGKILL"),
        ("kill 6", "was ended by SIGABRT"),
    ],
)
def test_a_worker_that_dies_costs_its_item_only(mark: str, text: str, ending: str) -> None:
    """A crash is tried once more alone and then told of, by signal or exit status; all other items have their
    outcome.
    """
    outcomes = run({3: text, 4: text}, Limits(workers=2))
    for number in (3, 4):
        code, message = told(outcomes[number])
        assert code == codes.WORKER_DIED and message.startswith(f"its worker process {ending}, twice; ")


@one_in(4)
def test_a_crash_that_does_not_repeat(mark: str, tmp_path: Path) -> None:
    """An item whose worker died of something else is proved when it is tried again."""
    assert (
        run({3: f"crash_once {tmp_path / 'a'}", 5: f"crash_once {tmp_path / 'b'}"}, Limits(workers=2))[3].verdict
        == "proved"
    )


@one_in(4)
def test_the_second_trial_is_alone(mark: str, tmp_path: Path) -> None:
    """An item that ended a worker is judged by a new one that has judged nothing before."""
    texts = {5: f"crash_once {tmp_path / 'a'}"}
    outcomes = list(
        run_items((item(n, texts.get(n, "")) for n in range(10)), telling, OPTIONS, Limits(workers=1, seconds=60.0))
    )
    assert outcomes[4].notes[1:] == (item(3).name, item(4).name)
    assert outcomes[5].notes[1:] == (item(5).name,)


@one_in(4)
@pytest.mark.parametrize("limits", [Limits(), Limits(workers=2)], ids=["here", "two"])
def test_a_judge_that_raises(mark: str, limits: Limits) -> None:
    """An exception, and an attempt to end the process, are told of where they happened, in this process as in a
    worker.
    """
    outcomes = run({3: "raise some\nthing", 4: "raise", 5: "stop 1", 6: "recurse"}, limits)
    code, message = told(outcomes[3])
    assert code == codes.JUDGE_FAILED
    assert message.startswith("judging it failed: ValueError: some\nthing (") and "judges.py:" in message
    assert told(outcomes[4])[1].startswith("judging it failed: ValueError (")
    assert told(outcomes[5])[1].startswith("judging it failed: SystemExit: 1 (")
    assert told(outcomes[6])[1].startswith("judging it failed: RecursionError: ")


@one_in(9)
def test_outcomes_are_the_same_wherever_they_are_judged(mark: str) -> None:
    """The number of workers changes nothing."""
    texts = {3: "raise boo", 7: "sleep 0.2", 8: "hang_in_c", 9: "exit 3"}
    assert run(texts, Limits(workers=3, seconds=1.5)) == run(texts, Limits(workers=1, seconds=1.5))


@one_in(4)
@pytest.mark.parametrize("text, code", [("leave_and_hang", codes.TIMEOUT), ("leave_and_crash", codes.WORKER_DIED)])
def test_what_a_worker_started_ends_with_it(mark: str, tmp_path: Path, text: str, code: str) -> None:
    """A process in a session of its own, deaf to signals, is ended with its worker, however that one ends."""
    file = tmp_path / "started"
    outcomes = run({3: f"{text} {file}"}, TIME)
    assert told(outcomes[3])[0] == code
    assert file.read_text().splitlines() != []  # `mark` sees that none of them is left


@one_in(4)
def test_what_a_worker_started_ends_with_the_run(mark: str, tmp_path: Path) -> None:
    """A process that an item left behind is gone when the run is over."""
    file = tmp_path / "started"
    run({3: f"leave {file}"}, Limits(workers=2))
    assert len(file.read_text().splitlines()) == 1


def test_a_thread_that_an_item_left_behind(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that would not end because of a thread is ended when the run is over."""
    monkeypatch.setattr(worker, "GRACE_SECONDS", 0.5)
    assert run({3: "thread"}, Limits(workers=2))[3].verdict == "proved"


@one_in(10)
def test_many_crashes(mark: str) -> None:
    """Where every item crashes, each is told of and the run ends."""
    outcomes = run(dict.fromkeys(range(6), "exit 3"), Limits(workers=3), 6)
    assert {told(outcome)[0] for outcome in outcomes} == {codes.WORKER_DIED}


def test_a_supervisor_that_is_killed(mark: str) -> None:
    """A supervisor that is killed takes its worker along, and the item is tried again and reported."""
    outcomes = run({3: "kill_supervisor"}, Limits(workers=2))
    assert told(outcomes[3])[1].startswith("its worker process was ended by SIGKILL")
    assert wait_until(lambda: marked(mark) == set())


def test_endings_in_words() -> None:
    """A signal that has no name is told by its number."""
    assert str(Ending("signal", signal.SIGKILL)) == "was ended by SIGKILL"
    assert str(Ending("signal", 77)) == "was ended by signal 77"
    assert str(Ending("exit", os.EX_USAGE)) == "ended with exit status 64"


def lazily(texts: list[str]) -> Iterator[Item]:
    """Items that do what the texts say."""
    return (item(number, text) for number, text in enumerate(texts))


@one_in(10)
def test_everything_at_once(mark: str, tmp_path: Path) -> None:
    """Items of all kinds, mixed, with all limits, on three workers: each has its own outcome, in order."""
    texts = [
        "",
        "hang_in_c",
        "exit 4",
        "",
        "allocate",
        "raise boo",
        "sleep 0.2",
        f"leave {tmp_path / 'a'}",
        "crash",
        "",
    ]
    outcomes = list(run_items(lazily(texts), judge, OPTIONS, Limits(workers=3, seconds=3.0, memory=MEMORY)))
    expected = {
        "hang_in_c": {codes.TIMEOUT},
        "exit": {codes.WORKER_DIED},
        "crash": {codes.WORKER_DIED},
        "raise": {codes.JUDGE_FAILED},
    }
    for text, outcome in zip(texts, outcomes, strict=True):
        # On a slow machine its time may be over before its memory is.
        wanted = expected.get(text.split(" ")[0], {codes.WORKER_MEMORY, codes.TIMEOUT} if text == "allocate" else set())
        assert {finding.code for finding in outcome.findings} <= wanted and bool(outcome.findings) == bool(wanted)
