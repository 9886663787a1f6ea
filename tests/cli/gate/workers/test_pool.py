"""Items judged by worker processes: order, laziness, and the workers' own life."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice, pairwise

import pytest
from tests.cli.gate.judges import OPTIONS, item, judge, telling
from tests.cli.render.gate.marked import MARK, marked, new_mark
from tests.shares import one_in

from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers.item_limits import Limits
from layoutproof.cli.gate.workers.pool import run_items
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.workers import worker
from layoutproof.verify.workers.pool import CHUNK, WINDOW_PER_WORKER

TWO = Limits(workers=2)


def items(count: int) -> Iterator[Item]:
    """So many items that are proved at once."""
    return (item(number) for number in range(count))


def names(count: int) -> list[str]:
    """The names of as many items."""
    return [item(number).name for number in range(count)]


@one_in(14)
@pytest.mark.parametrize(
    "limits", [Limits(), TWO, Limits(workers=1, seconds=60.0)], ids=["here", "two", "one with a limit"]
)
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_one_outcome_each_in_order(count: int, limits: Limits) -> None:
    """There is one outcome for each item, in the order of the items, wherever they are judged."""
    assert [outcome.name for outcome in run_items(items(count), judge, OPTIONS, limits)] == names(count)


@one_in(4)
def test_order_holds_when_the_first_is_slowest() -> None:
    """Items that take longer than those behind them come first all the same."""
    slow = (item(number, "sleep 0.3" if number % 10 == 0 else "") for number in range(60))
    assert [outcome.name for outcome in run_items(slow, judge, OPTIONS, Limits(workers=3))] == names(60)


def test_without_limits_one_worker_is_this_process() -> None:
    """One worker without limits starts no process."""
    (outcome,) = run_items(items(1), telling, OPTIONS, Limits())
    assert outcome.notes[0] == str(os.getpid())
    (outcome,) = run_items(items(1), telling, OPTIONS, Limits(memory=1 << 40))
    assert outcome.notes[0] != str(os.getpid())


@one_in(4)
def test_workers_are_used_again_and_neighbours_stay_together() -> None:
    """Two workers judge everything, and most items are judged by the worker that had their neighbour just before."""
    outcomes = list(run_items(items(400), telling, OPTIONS, TWO))
    assert len({outcome.notes[0] for outcome in outcomes}) == 2
    together = sum(outcome.notes[1:] == (before.name, outcome.name) for before, outcome in pairwise(outcomes))
    assert together >= 400 * (CHUNK - 2) // CHUNK


def test_few_items_start_few_workers() -> None:
    """No worker is started for which there is nothing to do."""
    mark = new_mark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        outcomes = run_items(items(1), telling, OPTIONS, Limits(workers=50))
        next(outcomes)
        assert len(marked(mark)) == 2  # a supervisor and its worker
        assert list(outcomes) == []
        assert marked(mark) == set()


@pytest.mark.campaign
def test_items_are_taken_as_needed() -> None:
    """Of fifty thousand items never more than the window is taken beyond what was handed over, and none before the
    first is asked for.
    """
    taken = 0

    def counted() -> Iterator[Item]:
        nonlocal taken
        for number in range(50_000):
            taken += 1
            yield item(number)

    outcomes = run_items(counted(), judge, OPTIONS, TWO)
    assert taken == 0
    furthest = 0
    for number, outcome in enumerate(outcomes):
        furthest = max(furthest, taken - number)
        if number % 1_000 == 0:
            assert outcome.name == item(number).name
    assert taken == 50_000
    assert furthest <= 2 * WINDOW_PER_WORKER + 1


@one_in(7)
def test_a_slow_item_holds_up_nothing_but_itself() -> None:
    """While one item takes long, the other worker judges everything else in the window, the slow one's neighbours
    too.
    """
    outcomes = run_items((item(n, "sleep 3" if n == 0 else "") for n in range(100)), telling, OPTIONS, TWO)
    judged = list(outcomes)
    slow = judged[0].notes[0]
    # One more waits in the slow worker's pipe; all others of its chunk went elsewhere.
    assert [outcome.name for outcome in judged if outcome.notes[0] == slow][:1] == [item(0).name]
    assert sum(outcome.notes[0] == slow for outcome in judged) <= 2


@one_in(4)
def test_a_few_items_go_to_all_workers() -> None:
    """Fewer items than a chunk are shared all the same."""
    outcomes = run_items((item(n, "sleep 0.7") for n in range(4)), telling, OPTIONS, Limits(workers=4))
    assert len({outcome.notes[0] for outcome in outcomes}) >= 3


@one_in(9)
def test_workers_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many items a worker makes room for a new one, and nothing is lost or judged twice."""
    monkeypatch.setattr(worker, "RENEW_ITEMS", 30)
    outcomes = list(run_items(items(200), telling, OPTIONS, TWO))
    assert [outcome.name for outcome in outcomes] == names(200)
    assert len({outcome.notes[0] for outcome in outcomes}) >= 6


def hoard(thing: Item, options: Options) -> Outcome:
    """A judge that keeps ten megabytes of every item."""
    _HOARD.append(os.urandom(1 << 20) * 10)
    return telling(thing, options)


_HOARD: list[bytes] = []


@one_in(10)
def test_workers_that_grow_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that holds much more memory than after its first item makes room for a new one."""
    monkeypatch.setattr(worker, "RENEW_GROWTH", 50 << 20)
    outcomes = list(run_items(items(40), hoard, OPTIONS, TWO))
    assert [outcome.name for outcome in outcomes] == names(40)
    assert len({outcome.notes[0] for outcome in outcomes}) >= 4


def echo(thing: Item, options: Options) -> Outcome:
    """A judge whose outcomes are as large as its items."""
    return Outcome(thing.kind, thing.name, thing.program, None, "proved", notes=(thing.text,))


@one_in(4)
def test_large_items_and_outcomes() -> None:
    """Megabytes in both directions at once do not lock anything up."""
    texts = [chr(97 + n) * (3 << 20) for n in range(12)]
    outcomes = run_items((item(n, text) for n, text in enumerate(texts)), echo, OPTIONS, TWO)
    assert [outcome.notes[0] for outcome in outcomes] == texts


def test_what_is_printed_stays_out_of_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """What checked code prints goes to standard error: standard output is the report's."""
    list(run_items([item(0, "print hello")], judge, OPTIONS, TWO))
    said = capfd.readouterr()
    assert said.out == "" and said.err == "hello\n"


def test_closing_ends_all_processes() -> None:
    """An iterator that is closed in the middle, with workers that hang, leaves no process behind."""
    mark = new_mark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        outcomes = run_items((item(n, "hang_deaf" if n >= 5 else "") for n in range(50)), judge, OPTIONS, TWO)
        assert [outcome.name for outcome in islice(outcomes, 5)] == names(5)
        assert marked(mark) != set()
        outcomes.close()
        assert marked(mark) == set()


def test_items_that_raise() -> None:
    """What the items' own iterator raises comes through, and no process stays behind."""

    def broken() -> Iterator[Item]:
        yield from items(3)
        raise LayoutproofError(())

    mark = new_mark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        with pytest.raises(LayoutproofError):
            list(run_items(broken(), judge, OPTIONS, TWO))
        assert marked(mark) == set()


def test_no_worker_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot be started, or that ends before its first item, is an error with what is known of it."""
    monkeypatch.setattr("sys.executable", "/no/such/python")
    with pytest.raises(LayoutproofError, match="no worker process can be started: No such file"):
        list(run_items(items(3), judge, OPTIONS, TWO))
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(
        LayoutproofError, match="a worker process ended with exit status 1 before it could take an item"
    ):
        list(run_items(items(3), judge, OPTIONS, TWO))
