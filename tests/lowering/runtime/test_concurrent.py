"""Many builds at once: each kernel is compiled by one builder, the others find it, and a dead one blocks none."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.runtime.test_native import copy, script
from tests.shares import one_in, some
from tests.tree import ROOT

from layoutproof.lowering import lock
from layoutproof.lowering.lock import Hold, locked
from layoutproof.lowering.runtime.build_c import build_c

# Builds kernels 0 to KINDS - 1 over and over, in as many threads as builds, all let go at once; prints how many were
# compiled here.
MANY_BUILDS = """
import sys, threading
import numpy as np
from tests.lowering.runtime.test_native import copy
from layoutproof.lowering.runtime.build_c import build_c
builds, kinds, offset = map(int, sys.argv[1:])
barrier, reports, problems = threading.Barrier(builds), [], []
def work(number):
    extent = 1 + (number + offset) % kinds
    x = np.arange(extent, dtype=np.float32) + number
    barrier.wait()
    try:
        kernel = build_c(copy(extent), check=False)
        assert np.array_equal(kernel(x), x)
        reports.append(kernel.report)
    except BaseException as problem:
        problems.append(repr(problem))
threads = [threading.Thread(target=work, args=(number,)) for number in range(builds)]
print("ready", flush=True)
sys.stdin.readline()
[t.start() for t in threads]
[t.join() for t in threads]
print(len(reports), sum(not r.reused for r in reports), [r.notes for r in reports if r.notes], problems)
"""
BUILD = """
from tests.lowering.runtime.test_native import copy
from layoutproof.lowering.runtime.build_c import build_c
build_c(copy(), check=False)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LAYOUTPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def start(code: str, *arguments: object, **environment: str) -> "subprocess.Popen[str]":
    """Another Python."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment}, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def wait_for(path: Path, process: "subprocess.Popen[str]") -> None:
    """Until a file is there. Fails where the process ends before."""
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit and process.poll() is None, process.communicate()
        time.sleep(0.02)


def counting(folder: Path) -> tuple[Path, Path]:
    """A compiler that writes down each kernel that it is given, and where it does."""
    log = folder / "log"
    return script(folder, "counting", f'case "$*" in *copy.c*) echo "$*" >> {log};; esac; exec cc "$@"'), log


def many_builds(folder: Path, processes: int, builds: int, kinds: int) -> Counter[str]:
    """Let processes build at once; how often each kernel's source was compiled. Fails unless all builds went well."""
    compiler, log = counting(folder)
    workers = [start(MANY_BUILDS, builds, kinds, number * builds, CC=str(compiler)) for number in range(processes)]
    for worker in workers:
        assert worker.stdout is not None
        said = worker.stdout.readline()
        assert said == "ready\n", worker.communicate()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    ends = [worker.communicate(timeout=500) for worker in workers]
    found = [out.split(maxsplit=2) for out, _ in ends]
    assert [(f[0], f[2].strip()) for f in found] == [(str(builds), "[] []")] * processes, ends
    assert sum(int(f[1]) for f in found) == kinds
    return Counter(
        next(word for word in line.split() if word.endswith("copy.c")) for line in log.read_text().splitlines()
    )


def assert_tidy(cache: Path, kinds: int) -> None:
    """One library and one source for each kernel, and nothing unfinished."""
    assert len(list(cache.rglob("*.so"))) == len(list(cache.rglob("*.c"))) == kinds
    assert list(cache.rglob("*.part")) == []


@one_in(10)
@pytest.mark.parametrize("how", some(((10, 4), (10, 8), (1, 8), (200, 8)), 1))
def test_many_builds_at_once(how: tuple[int, int], cache: Path, tmp_path: Path) -> None:
    """25 builds at once in each of 4 or 8 processes, of the same kernel, of ten, or of as many as builds: one
    compilation each.
    """
    kinds, processes = how
    assert sorted(many_builds(tmp_path, processes, 25, kinds).values()) == [1] * kinds
    assert_tidy(cache, kinds)


@one_in(42)
@pytest.mark.parametrize(
    "delay", [0.1, 0.3, *(pytest.param(s, marks=pytest.mark.campaign) for s in (0.0, 0.05, 0.2, 0.6))]
)
def test_builders_killed_at_any_moment(delay: float, cache: Path) -> None:
    """Whatever many builders were doing when they were killed, those that come afterwards have all kernels right, each
    compiled once.
    """
    victims = [start(MANY_BUILDS, 6, 12, 6 * number) for number in range(2)]  # kernels 0 to 5, and 6 to 11
    for victim in victims:
        assert victim.stdin is not None and victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        victim.stdin.write("go\n")
        victim.stdin.flush()
    time.sleep(delay)
    for victim in victims:
        victim.kill()
        victim.communicate()
    whole = len(list(cache.rglob("*.so")))
    out, err = start(MANY_BUILDS, 12, 12, 0).communicate("go\n", timeout=200)
    assert out.splitlines()[-1] == f"12 {12 - whole} [] []", (out, err)
    assert len(list(cache.rglob("*.so"))) == len(list(cache.rglob("*.c"))) == 12


@one_in(4)
def test_a_killed_holder_lets_go(cache: Path, tmp_path: Path) -> None:
    """A builder that is killed while it compiles frees the others, who wait for it, at once."""
    slow = script(
        tmp_path, "slow", f'case "$*" in *copy.c*) touch {tmp_path}/compiling; exec sleep 60;; esac; exec cc "$@"'
    )
    process = start(BUILD, CC=str(slow))
    wait_for(tmp_path / "compiling", process)
    (held,) = cache.rglob("lock")
    with held.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    found: list[Hold] = []

    def wait() -> None:
        with locked(held, 60) as hold:
            found.append(hold)

    waiting = threading.Thread(target=wait)
    waiting.start()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    waiting.join(60)
    assert found == [Hold.HELD]


@one_in(4)
def test_a_stopped_holder_is_given_up(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that stands still while it holds a kernel's lock is not waited for without end; the report says so."""
    cc = script(
        tmp_path,
        "halting",
        f'case "$*" in *copy.c*) if mkdir {tmp_path}/once 2>/dev/null; then exec sleep 60; fi;; esac; exec cc "$@"',
    )
    process = start(BUILD, CC=str(cc))
    try:
        wait_for(tmp_path / "once", process)
        monkeypatch.setattr(lock, "PATIENCE_SECONDS", 0.1)
        monkeypatch.setenv("CC", str(cc))
        kernel = build_c(copy(), check=False)
    finally:
        process.kill()
        process.communicate()
    assert np.array_equal(np.asarray(kernel(np.arange(4, dtype=np.float32))), np.arange(4))
    assert any("was not waited for" in note for note in kernel.report.notes)
    assert not kernel.report.reused and len(list(cache.rglob("*.so"))) == 1


def test_locks_without_a_place(tmp_path: Path) -> None:
    """Where no lock can be had the builder goes on without, and where two ask for one the second waits or is told."""
    (tmp_path / "file").write_bytes(b"")
    with locked(tmp_path / "file" / "lock") as hold:
        assert hold is Hold.NOT_OFFERED
    with (
        locked(tmp_path / "a" / "lock") as hold,
        locked(tmp_path / "a" / "lock", 0.01) as second,
        locked(tmp_path / "b" / "lock") as other,
    ):
        assert (hold, second, other) == (Hold.HELD, Hold.GIVEN_UP, Hold.HELD)
    with locked(tmp_path / "a" / "lock") as hold:
        assert hold is Hold.HELD


def test_a_problem_frees_the_lock(tmp_path: Path) -> None:
    """What is raised inside passes through, and the lock is free afterwards."""
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "lock"):
        raise KeyboardInterrupt
    with locked(tmp_path / "lock", 0.0) as hold:
        assert hold is Hold.HELD
