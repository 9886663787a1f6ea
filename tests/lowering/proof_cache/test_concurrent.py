"""Many processes at one cache, and killed processes: nothing is lost or torn, no process waits for a dead one."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.lowering.proof_cache.caches import PLACES, check_right, filled, key, opened, run, start, value
from tests.shares import one_in, some

from layoutproof.lowering import codes
from layoutproof.lowering.proof_cache import sqlite_backend

# Puts the values from `first` on, `count` of them, one at a time; says each number when it is there.
WRITER = """
import sys
place, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
said = []
store = ProofStore.open(place, said.append)
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    store.put("proof", key(number), value(number))
    print(number, flush=True)
    assert store.get("proof", key(number)) in (value(number), None) and said == [], said
store.close()
assert said == [], said
"""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A place of each kind, with nothing there yet."""
    return tmp_path / str(request.param)


def ready(process: subprocess.Popen[str]) -> None:
    """Wait until a process says that it is ready. Fails where it ends before."""
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == "ready\n", (said, process.communicate()[1])


def go(process: subprocess.Popen[str]) -> None:
    """Let a process that is ready go on."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> str:
    """What a process printed, once it ended well."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


@one_in(14)
@pytest.mark.parametrize("overlap", [False, True], ids=["apart", "same"])
def test_many_writers_at_once(place: Path, overlap: bool) -> None:
    """Processes that begin a cache together and write at once lose no entry, whether the same or different ones."""
    processes, count = 6, 40
    writers = [start(WRITER, place, 0 if overlap else n * count, count) for n in range(processes)]
    for writer in writers:
        ready(writer)
    for writer in writers:
        go(writer)
    for writer in writers:
        ended(writer)
    total = count if overlap else processes * count
    store, heard = opened(place)
    assert check_right(store, total) == total and heard.said == []
    assert len(list(store.entries("proof"))) == total


@one_in(21)
@pytest.mark.parametrize("seed", some(range(20), 3))
def test_killed_while_writing(place: Path, seed: int) -> None:
    """Writers are killed at random moments: every entry that was said to be there is there, and none is torn; others go
    on at once.
    """
    wait, confirmed = random.Random(seed), set[int]()
    for turn in range(3):
        writers = [start(WRITER, place, 1000 * (2 * turn + n), 400) for n in range(2)]
        for writer in writers:
            ready(writer)
            go(writer)
        time.sleep(wait.uniform(0.005, 0.15))
        for writer in writers:
            writer.kill()
            out, _ = writer.communicate()
            # The last line may be cut off by the kill.
            confirmed |= {
                int(line) for line in out.splitlines(keepends=True) if line.endswith("\n") and line.strip().isdigit()
            }
    store, heard = opened(place)
    found = dict(store.entries("proof"))
    assert all(each == value(each["number"]) for each in found.values())
    assert {key(n) for n in confirmed} <= set(found) and heard.said == []
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1)
    store.clear()
    if place.is_dir():
        assert list(place.rglob("*.part")) == []


def test_a_writer_that_is_stopped_holds_up_no_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped in the middle of a write: others read on; they wait for it a while, then keep nothing,
    and say so.
    """
    place = filled(tmp_path / "proofs.sqlite")
    code = """
import sys
store = ProofStore.open(sys.argv[1])
connection = store._backend._connected()
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM proof")
print("ready", flush=True)
sys.stdin.readline()
"""
    writer = start(code, place)
    try:
        ready(writer)
        writer.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(sqlite_backend, "BUSY_SECONDS", 0.2)
        store, heard = opened(place)
        assert check_right(store) == 60 and heard.said == []
        store.put("proof", key(100), value(100))
        store.put("proof", key(101), value(101))
        assert heard.codes == [codes.CACHE_UNUSABLE] and "locked" in heard.said[0].message and not store.storing
        assert check_right(store) == 60
        store.close()
    finally:
        writer.kill()
        writer.communicate()
    again, heard = opened(place)
    assert check_right(again) == 60 and heard.said == []
    again.put("proof", key(100), value(100))
    assert again.get("proof", key(100)) == value(100)


def test_an_opener_that_is_stopped_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds the lock under which files are opened, and does not go on, costs the others the cache, and nothing
    else.
    """
    place = filled(tmp_path / "proofs.sqlite")
    monkeypatch.setattr(sqlite_backend, "OPEN_SECONDS", 0.1)
    with open(tmp_path / "proofs.sqlite.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store, heard = opened(place)
        assert heard.codes == [codes.CACHE_UNUSABLE] and store.get("proof", key(1)) is None
    assert check_right(opened(place)[0]) == 60


@one_in(4)
def test_damage_that_many_find_at_once(tmp_path: Path) -> None:
    """Processes that find a damaged file together set it aside once, and all their entries are in the new one."""
    place = tmp_path / "proofs.sqlite"
    place.write_bytes(b"no database" * 1000)
    code = WRITER.replace("said == [], said", f"all(d.code == {codes.CACHE_DAMAGED!r} for d in said), said")
    writers = [start(code, place, n * 20, 20) for n in range(5)]
    for writer in writers:
        ready(writer)
        go(writer)
    for writer in writers:
        ended(writer)
    assert len(list(tmp_path.glob("proofs.sqlite.damaged-*"))) == 1
    assert check_right(opened(place)[0], 100) == 100


@one_in(4)
def test_clearing_while_others_write(place: Path) -> None:
    """Clearing does not disturb writers: each entry is gone or whole, and the last ones are there."""
    writers = [start(WRITER, place, n * 60, 60) for n in range(2)]
    for writer in writers:
        ready(writer)
        go(writer)
    store, heard = opened(place)
    while any(writer.poll() is None for writer in writers):
        store.clear()
        for found in dict(store.entries("proof")).values():
            assert found == value(found["number"])
        time.sleep(0.005)
    for writer in writers:
        ended(writer)
    assert heard.said == []
    store.put("proof", key(1), value(1))
    assert store.get("proof", key(1)) == value(1)


def test_threads(place: Path) -> None:
    """One store may be used by several threads."""
    store, heard = opened(place)
    problems: list[str] = []

    def work(first: int) -> None:
        for number in range(first, first + 30):
            store.put("proof", key(number), value(number))
            if store.get("proof", key(number)) != value(number):
                problems.append(f"{number} is not there")

    threads = [threading.Thread(target=work, args=(30 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] and heard.said == [] and check_right(store, 120) == 120


def test_forks(place: Path) -> None:
    """A store that is open before a fork serves both processes; a child that is killed takes nothing with it."""
    code = """
import os, signal, sys
said = []
store = ProofStore.open(sys.argv[1], said.append)
store.put("proof", key(0), value(0))
children = []
for n in range(1, 5):
    child = os.fork()
    if child == 0:
        ok = store.get("proof", key(0)) == value(0)
        for k in range(20):
            store.put("proof", key(100 * n + k), value(100 * n + k))
        if n % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0 if ok and said == [] else 1)
    children.append(child)
    store.put("proof", key(n), value(n))
print([os.waitpid(child, 0)[1] for child in children])
numbers = [*range(5), *(100 * n + k for n in range(1, 5) for k in range(20))]
print(all(store.get("proof", key(n)) == value(n) for n in numbers), said)
"""
    assert run(code, place) == "[9, 0, 9, 0]\nTrue []\n"
    store, heard = opened(place)
    assert len(dict(store.entries("proof"))) == 85 and heard.said == []


def test_unfinished_files_of_the_dead_are_swept(tmp_path: Path) -> None:
    """What a killed process left unfinished is never read, and goes after an hour, or when all is cleared."""
    place = filled(tmp_path / "proofs")
    old, new = place / "unfinished" / "a.part", place / "unfinished" / "b.part"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store, heard = opened(place)
    store.put("proof", key(1), value(1))
    assert (old.exists(), new.exists()) == (False, True) and heard.said == []
    store.clear()
    assert not new.exists()
