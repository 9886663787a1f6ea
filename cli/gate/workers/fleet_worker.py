"""The part of a run on the workers of a Dask cluster: items judged by worker processes with the limits of one machine.

An item is sent with the files that it names.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import select
import shutil
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from layoutproof import __version__
from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.loading import use_copies
from layoutproof.cli.gate.outcomes import Kind, Outcome
from layoutproof.cli.gate.workers.item_limits import Judge, Limits, ended, judge_one
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.proof_cache.versions import ENGINES, ROOMS, digest_of, version_of
from layoutproof.verify.certificate.sealed_files import replacing
from layoutproof.verify.workers.endings import NoWorker
from layoutproof.verify.workers.worker import Worker

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Parcel:
    """An item, the working directory at home, and its files' contents; None for a file that cannot be read there, which
    judging reports.
    """

    item: Item
    home: str
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The folder to judge an item in, copies of files by their paths, and the folder that stands for the root of the
    file system at home, if any.
    """

    folder: str
    root: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)


def pack(item: Item, home: str) -> Parcel:
    """The parcel of an item; `home` is the working directory."""
    path = os.path.join(home, _file_of(item))
    try:
        status = os.stat(path)
        return Parcel(item, home, _content(path, status.st_mtime_ns, status.st_size))
    except OSError:
        return Parcel(item, home, None)


def unpack(parcel: Parcel, folder: Path) -> Unpacked:
    """How to judge a parcel's item here; copies go below `folder`. Raises OSError if they cannot be written."""
    path = os.path.normpath(os.path.join(parcel.home, _file_of(parcel.item)))
    if parcel.content is not None and _content_here(path) == parcel.content and os.path.isdir(parcel.home):
        return Unpacked(parcel.home)
    name = hashlib.sha256(b"\0".join((parcel.home.encode(), path.encode(), parcel.content or b""))).hexdigest()[:16]
    root = str(folder.resolve() / name)
    home, copy = Path(root + parcel.home), Path(root + path)
    # As it is written, too: in `a/../b.py` the folder `a` must be there.
    for inside in (home, copy.parent, Path(root + os.path.join(parcel.home, _file_of(parcel.item))).parent):
        inside.mkdir(parents=True, exist_ok=True)
    if parcel.content is not None and not copy.exists():
        with replacing(copy) as part:  # whole or not at all: another thread may be about to read it
            part.write_bytes(parcel.content)
    named = _file_of(parcel.item)
    return Unpacked(str(home), root, {named: str(copy)} if os.path.isabs(named) else {})


def as_at_home(outcome: Outcome, unpacked: Unpacked) -> Outcome:
    """An outcome with the paths that it has at home."""
    if not unpacked.root:
        return outcome
    return Outcome.from_dict(_without(outcome.to_dict(), unpacked.root))


def _file_of(item: Item) -> str:
    return item.program if item.kind is Kind.TRACE else item.path


@lru_cache(maxsize=_KEPT)
def _content(path: str, changed: int, size: int) -> bytes:
    return Path(path).read_bytes()


def _content_here(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _without(value: Any, root: str) -> Any:
    """JSON data with a text removed from all its texts."""
    if isinstance(value, str):
        return value.replace(root, "")
    if isinstance(value, Mapping):
        return {key: _without(inner, root) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without(inner, root) for inner in value]
    return value


IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    """Items of one run, to be judged in order. `versions`: of the requesting machine."""

    run: str
    parcels: tuple[Parcel, ...]
    judge: Judge
    options: Options
    limits: Limits
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """The outcomes of a task; if it could not be done, the code and message of the error."""

    outcomes: tuple[Outcome, ...] = ()
    code: str = ""
    message: str = ""


def versions() -> dict[str, str]:
    """The versions of everything that outcomes depend on, by name; `digest` is a hash of them and of layoutproof's
    sources.
    """
    named = {
        "Python": platform.python_version(),
        "layoutproof": __version__,
        **{name: version_of(name) for name in ENGINES},
    }
    return {**named, "digest": digest_of((*ROOMS, "importers", "cli"))}


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """How a machine's versions differ, in words."""
    names = [name for name in mine if name != "digest" and theirs.get(name) != mine[name]]
    if not names:
        return f"another state of the sources of layoutproof {__version__}"
    return ", ".join(f"{name} {theirs.get(name)} (here {mine[name]})" for name in names)


def do_task(task: Task) -> Done:
    """Judge the items of a task."""
    if task.versions["digest"] != versions()["digest"]:
        return Done((), codes.OTHER_TOOL, f"a worker that joined the fleet has {difference(task.versions, versions())}")
    try:
        return Done(tuple(_STAFF.outcomes(task)))
    except NoWorker as problem:
        return Done((), codes.WORKER_DIED, str(problem))
    except LayoutproofError as problem:
        return Done((), problem.diagnostics[0].code, problem.diagnostics[0].message)
    except OSError as problem:
        return Done((), codes.FILE_ACCESS, f"a worker of the fleet cannot keep files: {problem}")


def end_run(run: str) -> None:
    """End everything of a run that was given up."""
    _STAFF.end(run)


class _Ended(Exception):
    """The run has ended."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """An item with the folder to judge it in, if not this one, and with copies of missing files."""

    item: Item
    folder: str
    copies: Mapping[str, str]


def _judge_placed(judge: Judge, options: Options, home: str, placed: _Placed) -> Outcome:
    def judge_there(item: Item, options: Options) -> Outcome:
        os.chdir(placed.folder if placed.folder else home)
        use_copies(placed.copies)
        return judge(item, options)

    return judge_one(judge_there, options, placed.item)


@dataclass(slots=True)
class _Place:
    """A worker process and its run; `used`: when it was last busy."""

    key: tuple[str, Judge, Options, Limits]
    worker: Worker[_Placed, Outcome]
    used: float = field(default_factory=time.monotonic)


class _Staff:
    """The worker processes of this process, idle and busy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Place] = []
        self._busy: list[_Place] = []
        self._over: set[str] = set()
        self._cleaner: threading.Timer | None = None

    def outcomes(self, task: Task) -> Sequence[Outcome]:
        """The outcomes of a task's items; none if its run has ended. Raises NoWorker if no process can be started."""
        place: _Place | None = None
        found: list[Outcome] = []
        try:
            for number, parcel in enumerate(task.parcels):
                unpacked = unpack(parcel, _folder())
                outcome, place = self._judged(task, place, number, parcel.item, unpacked)
                found.append(as_at_home(outcome, unpacked))
        except _Ended:
            return ()
        finally:
            if place is not None:
                self._give_back(place)
        return found

    def _judged(
        self, task: Task, place: _Place | None, number: int, item: Item, unpacked: Unpacked
    ) -> tuple[Outcome, _Place | None]:
        """An item's outcome, and the worker to continue with."""
        for alone in (False, True):
            if place is None:
                place = self._get(task, fresh=alone)
            fresh = place.worker.served == 0
            place.worker.give(number, _Placed(item, unpacked.folder, unpacked.copies))
            outcome = _answer(place.worker)
            if outcome is not None:
                if place.worker.is_spent:
                    self._let_go(place)
                    place.worker.no_more_items()
                    place.worker.wait_for_end()
                    place = None
                return outcome, place
            self._let_go(place)
            ending = place.worker.wait_for_end()
            if alone and not place.worker.began:
                raise NoWorker.at_start(ending)
            place = None
            if task.run in self._over:
                raise _Ended
            if alone or ending.why == "time" or (ending.why == "memory" and fresh):
                return ended(task.limits, item, ending), None
        raise AssertionError("the second trial has an outcome")

    def _get(self, task: Task, *, fresh: bool) -> _Place:
        key = (task.run, task.judge, task.options, task.limits)
        with self._lock:
            if task.run in self._over:
                raise _Ended
            for place in reversed(self._idle):
                if place.key == key and not fresh:
                    self._idle.remove(place)
                    break
            else:
                place = _Place(key, Worker(partial(_judge_placed, task.judge, task.options, os.getcwd()), task.limits))
            self._busy.append(place)
        return place

    def _let_go(self, place: _Place) -> None:
        with self._lock:
            self._busy.remove(place)

    def _give_back(self, place: _Place) -> None:
        with self._lock:
            self._busy.remove(place)
            place.used = time.monotonic()
            self._idle.append(place)
            if self._cleaner is None:
                self._clean_later()

    def _clean_later(self) -> None:
        self._cleaner = threading.Timer(IDLE_SECONDS, self._clean)
        self._cleaner.daemon = True
        self._cleaner.start()

    def _clean(self) -> None:
        """End processes that have been idle for a while."""
        with self._lock:
            old = [place for place in self._idle if place.used < time.monotonic() - IDLE_SECONDS]
            self._idle = [place for place in self._idle if place not in old]
            self._cleaner = None
            if self._idle:
                self._clean_later()
        for place in old:
            place.worker.close()

    def end(self, run: str) -> None:
        """End the processes of a run, busy ones included."""
        with self._lock:
            self._over.add(run)
            idle = [place for place in self._idle if place.key[0] == run]
            self._idle = [place for place in self._idle if place.key[0] != run]
            for place in self._busy:
                if place.key[0] == run:
                    place.worker.tell_to_end()
        for place in idle:
            place.worker.close()


def _answer(worker: Worker[_Placed, Outcome]) -> Outcome | None:
    """A worker's answer to its item; None if it ended instead."""
    while True:
        select.select([worker], [worker] if worker.wants_to_write else [], [])
        worker.flush()
        replies, alive = worker.replies()
        if replies:
            return replies[0].result
        if not alive:
            return None


@cache
def _folder() -> Path:
    """The folder of this process's copies."""
    from distributed import get_worker

    folder = tempfile.mkdtemp(prefix="layoutproof-", dir=get_worker().local_directory)
    # Dask removes what a worker that was killed left there.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


_STAFF = _Staff()
