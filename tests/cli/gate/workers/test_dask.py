"""A run on a fleet: the outcomes of one machine, whatever dies, and clear words where there is no fleet."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.gate.judges import OPTIONS, item, judge, telling
from tests.cli.gate.workers.fleet import Cluster, cluster
from tests.cli.render.gate.marked import marked, new_mark, wait_until
from tests.shares import one_in, some
from tests.tree import ROOT

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers import dask_fleet
from layoutproof.cli.gate.workers.fleet_worker import difference, versions
from layoutproof.cli.gate.workers.item_limits import Limits
from layoutproof.cli.gate.workers.pool import run_items
from layoutproof.ir.diagnostic import LayoutproofError

HERE = Limits(workers=2, seconds=2.0)


def two_workers(folder: Path) -> Iterator[Cluster]:
    """A cluster of two workers, of which no process is left at the end."""
    mark = new_mark()
    with cluster(folder / "fleet", mark) as found:
        yield found
    assert wait_until(lambda: marked(mark) == set())


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of a test's own, which may kill it."""
    yield from two_workers(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests that leave it as it is: starting one takes seconds."""
    yield from two_workers(tmp_path_factory.mktemp("shared"))


def run(address: str, texts: dict[int, str], count: int = 60) -> list[Outcome]:
    """Items of which some do what their text says, on a fleet."""
    limits = Limits(workers=7, seconds=HERE.seconds, dask=address)
    return list(run_items((item(n, texts.get(n, "")) for n in range(count)), judge, OPTIONS, limits))


@one_in(7)
@pytest.mark.parametrize(
    "texts", some(({3: "hang_in_c", 5: "exit 7", 9: "raise boo"}, {20: "hang_deaf", 34: "crash", 59: "stop 3"}), 1)
)
def test_outcomes_are_those_of_one_machine(shared: Cluster, texts: dict[int, str]) -> None:
    """Items that are proved, hang, crash and raise have the same outcomes, in the same order, as without a fleet."""
    expected = list(run_items((item(n, texts.get(n, "")) for n in range(60)), judge, OPTIONS, HERE))
    assert run(shared.address, texts) == expected


@one_in(4)
def test_memory_is_limited_there(shared: Cluster) -> None:
    """An item that allocates without end is ended on a fleet as well."""
    limits = Limits(memory=400 << 20, dask=shared.address)
    outcomes = list(run_items((item(n, "allocate" if n == 3 else "") for n in range(9)), judge, OPTIONS, limits))
    assert [[finding.code for finding in outcome.findings] for outcome in outcomes] == [[]] * 3 + [
        [codes.WORKER_MEMORY]
    ] + [[]] * 5


@pytest.mark.campaign
def test_items_are_taken_as_needed(fleet: Cluster) -> None:
    """No more items are taken than the fleet has work for, and none before the first outcome is asked for."""
    taken = 0

    def counted() -> Iterator[Item]:
        nonlocal taken
        for number in range(800):
            taken += 1
            yield item(number)

    outcomes = run_items(counted(), judge, OPTIONS, Limits(dask=fleet.address))
    assert taken == 0
    furthest = max(taken - number for number, _ in enumerate(outcomes))
    assert taken == 800 and furthest <= dask_fleet.CHUNK * dask_fleet.LEAST_WINDOW


@one_in(10)
def test_a_worker_that_is_killed_half_way(fleet: Cluster) -> None:
    """One of two workers is killed in the middle: the other judges everything, and all outcomes are there, in order."""
    limits = Limits(seconds=60.0, dask=fleet.address)
    outcomes = run_items((item(n, "sleep 0.02") for n in range(200)), telling, OPTIONS, limits)
    names = []
    for number, outcome in enumerate(outcomes):
        names.append(outcome.name)
        if number == 60:
            fleet.workers[0].kill()
    assert names == [item(n).name for n in range(200)]


@pytest.mark.campaign
def test_a_worker_that_joins_half_way(fleet: Cluster) -> None:
    """All workers are killed in the middle and another one comes: the run goes on."""
    outcomes = run_items(
        (item(n, "sleep 0.02") for n in range(100)), judge, OPTIONS, Limits(seconds=60.0, dask=fleet.address)
    )
    names = []
    for number, outcome in enumerate(outcomes):
        names.append(outcome.name)
        if number == 30:
            for worker in fleet.workers:
                worker.kill()
            fleet.add_worker()
    assert names == [item(n).name for n in range(100)]


@pytest.mark.campaign
def test_an_item_that_kills_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An item with which one worker of the fleet after the other dies becomes unknown; its neighbours are judged."""
    # So that three machines are enough: Dask itself gives a task up when more than three died with it.
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    with cluster(tmp_path / "fleet", new_mark(), workers=3) as fleet:
        outcomes = run(fleet.address, {5: "kill_fleet"}, 12)
    assert [outcome.name for outcome in outcomes if outcome.verdict != "proved"] == [item(5).name]
    (finding,) = outcomes[5].findings
    assert (finding.code, finding.message) == (
        codes.WORKER_DIED,
        "the fleet's workers died with it, one after the other",
    )


@pytest.mark.campaign
@pytest.mark.parametrize(
    "number, code, word", [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_a_run_that_is_interrupted(fleet: Cluster, number: signal.Signals, code: int, word: str) -> None:
    """Ctrl-C and SIGTERM end what the fleet does for a run, of which some hangs there: only Dask's own processes are
    left.
    """
    command = [sys.executable, "-m", "tests.cli.gate.driver", fleet.address, "-", *["hang_deaf"] * 30]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, process_group=0
    ) as process:
        assert wait_until(lambda: len(marked(fleet.mark)) == 3 + 4)  # a supervisor and its worker for each thread
        os.killpg(process.pid, number)
        os.killpg(process.pid, number)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (code, "", f"{word}\n")
    assert wait_until(lambda: marked(fleet.mark) == dask_only(fleet))


@pytest.mark.campaign
def test_a_run_that_is_killed(fleet: Cluster) -> None:
    """When the asking process is killed outright, what the fleet does for it ends with the limit of time at the
    latest.
    """
    command = [sys.executable, "-m", "tests.cli.gate.driver", fleet.address, "1", *["hang_deaf"] * 3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        assert wait_until(lambda: len(marked(fleet.mark)) > 3)
        process.kill()
    assert wait_until(lambda: marked(fleet.mark) == dask_only(fleet))


@pytest.mark.campaign
def test_finished_runs_leave_nothing(fleet: Cluster) -> None:
    """After a run only Dask's own three processes are left."""
    assert len(run(fleet.address, {}, 30)) == 30
    assert marked(fleet.mark) == dask_only(fleet)


def dask_only(fleet: Cluster) -> set[int]:
    """Dask's own processes."""
    return {process.pid for process in (*fleet.workers, fleet.scheduler) if process is not None}


@pytest.mark.campaign
def test_the_scheduler_dies(fleet: Cluster) -> None:
    """A run whose scheduler dies in the middle ends with an error that says so."""
    outcomes = run_items((item(n, "sleep 0.02") for n in range(500)), judge, OPTIONS, Limits(dask=fleet.address))
    assert next(outcomes).verdict == "proved"
    assert fleet.scheduler is not None
    fleet.scheduler.kill()
    with pytest.raises(LayoutproofError, match="the Dask scheduler is gone") as problem:
        list(outcomes)
    assert problem.value.diagnostics[0].code == codes.CLUSTER_ADDRESS


def test_another_version(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet whose workers have another version of the tool is refused before anything is judged, with the worker's
    address.
    """
    assert run(shared.address, {}, 1)[0].verdict == "proved"
    monkeypatch.setattr(dask_fleet, "versions", versions_by_process)
    with pytest.raises(
        LayoutproofError, match=r"the worker tcp://127.0.0.1:\d+ has another state of the sources of layoutproof"
    ) as problem:
        run(shared.address, {}, 1)
    assert problem.value.diagnostics[0].code == codes.OTHER_TOOL


def versions_by_process() -> dict[str, str]:
    """Versions of which the sources' differ from process to process."""
    return {**versions(), "digest": str(os.getpid())}


def test_a_worker_that_joins_with_another_version(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was not there when versions were compared compares them itself."""
    monkeypatch.setattr(dask_fleet, "check_versions", lambda client: None)
    monkeypatch.setattr(dask_fleet, "versions", versions_by_process)
    with pytest.raises(
        LayoutproofError, match="a worker that joined the fleet has another state of the sources"
    ) as problem:
        run(shared.address, {}, 1)
    assert problem.value.diagnostics[0].code == codes.OTHER_TOOL


def test_versions_that_differ_are_named() -> None:
    """The message names what is different, there and here, and what is missing."""
    mine = versions()
    theirs = {**mine, "z3-solver": "4.13.0", "digest": "x"}
    del theirs["bitwuzla"]
    assert (
        difference(mine, theirs)
        == f"z3-solver 4.13.0 (here {mine['z3-solver']}), bitwuzla None (here {mine['bitwuzla']})"
    )


@pytest.mark.parametrize("listens", [True, False])
def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, listens: bool) -> None:
    """An address at which no scheduler listens, or where a listener never answers, is an error."""
    monkeypatch.setattr(dask_fleet, "CONNECT_SECONDS", 0.5)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if listens:
            listener.listen()
        with pytest.raises(LayoutproofError, match=r"no Dask scheduler answers at tcp://127.0.0.1:") as problem:
            run(f"tcp://127.0.0.1:{listener.getsockname()[1]}", {}, 1)
    assert problem.value.diagnostics[0].code == codes.CLUSTER_ADDRESS


@pytest.mark.parametrize("address", ["", "tcp://", "no such thing", "tcp://host", "127.0.0.1", "8786"])
def test_no_address(address: str) -> None:
    """Text that is no address is an error that shows one."""
    with pytest.raises(LayoutproofError, match=f"--dask {address}: expected an address") as problem:
        run(address, {}, 1)
    assert problem.value.diagnostics[0].code == codes.CLUSTER_ADDRESS


def test_another_protocol() -> None:
    """A protocol that the library does not have is an error, told at once: the library's own client would wait before
    it gives up.
    """
    with pytest.raises(LayoutproofError, match=r"--dask ftp://127.0.0.1:1: expected an address"):
        run("ftp://127.0.0.1:1", {}, 1)


@one_in(4)
def test_nobody_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that has no worker for a while is an error."""
    monkeypatch.setattr(dask_fleet, "NOBODY_SECONDS", 0.5)
    with cluster(tmp_path / "fleet", new_mark(), workers=0) as no_operand:
        with pytest.raises(LayoutproofError, match=r"has had no worker for 0\.5 seconds"):
            run(no_operand.address, {}, 1)


def test_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library the error names the extra that brings it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(LayoutproofError) as problem:
        run("tcp://127.0.0.1:8786", {}, 1)
    (diagnostic,) = problem.value.diagnostics
    assert diagnostic.code == codes.NO_CLUSTER and diagnostic.help == "pip install 'layoutproof[cluster]'"


@one_in(7)
def test_the_library_is_loaded_for_a_fleet_only() -> None:
    """No module of the gate imports it at its top."""
    for name in ("pool", "dask_fleet", "fleet_worker"):
        module = importlib.import_module(f"layoutproof.cli.gate.workers.{name}")
        assert "distributed" not in vars(module)
