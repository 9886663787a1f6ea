"""Runs a study: cells in worker processes or on a Dask cluster, in shards, resumed from journals.

Dask is imported here only, when a cluster is asked for.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.lowering.proof_cache.store import ProofStore
from layoutproof.lowering.proof_cache.versions import digest_of
from layoutproof.studies import codes
from layoutproof.studies.cells import Cell
from layoutproof.studies.journal import Journal, read_journal
from layoutproof.studies.study_file import Study
from layoutproof.verify.settings import Settings, within
from layoutproof.verify.workers.endings import Ending, Limits
from layoutproof.verify.workers.pool import run_in_workers

CONNECT_SECONDS = 10.0
WINDOW = 256


def run_on_dask(
    waiting: Sequence[tuple[int, Cell]], work: Callable[[tuple[int, Cell]], dict[str, Any]], address: str
) -> Generator[dict[str, Any], None, None]:
    """The results of cells in the order in which the cluster finishes them, a bounded number in flight.

    Raises LayoutproofError if the library is missing or no scheduler answers.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as problem:
        hint = "pip install 'layoutproof[cluster]'"
        raise error(codes.STUDY_FOLDER, "a study on Dask needs the package distributed", help=hint) from problem
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="layoutproof study")
    except (OSError, ValueError) as problem:
        raise error(codes.STUDY_FOLDER, f"no Dask scheduler answers at {address}: {problem}") from problem
    try:
        left = iter(waiting)
        first = [client.submit(work, item, pure=False) for _, item in zip(range(WINDOW), left, strict=False)]
        running = distributed.as_completed(first)
        for future in running:
            yield future.result()
            following = next(left, None)
            if following is not None:
                running.add(client.submit(work, following, pure=False))
    finally:
        client.close()


ROOMS = ("ir", "verify", "lowering", "studies")
"""The folders of code whose text a journal's digest covers."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `number`, from 1, of `count` equal parts of a study."""

    number: int = 1
    count: int = 1

    @property
    def journal(self) -> str:
        """The name of the shard's journal."""
        return "journal.jsonl" if self.count == 1 else f"journal-{self.number}-of-{self.count}.jsonl"

    def of(self, cells: Sequence[Cell]) -> list[tuple[int, Cell]]:
        """The cells of this part, with their numbers: neighbours go to different parts, which take equal time then."""
        return [(n, cell) for n, cell in enumerate(cells) if n % self.count == self.number - 1]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a study is run. `cache` is the place of the proof cache, None for none; `dask` a scheduler's address."""

    limits: Limits = field(default_factory=Limits)
    shard: Shard = field(default_factory=Shard)
    cache: str | None = ""
    dask: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: cells that are done, all of this part, and seconds left by the rate so far, if known."""

    done: int
    total: int
    cell: Cell
    verdict: str
    left: float | None


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on one cell, in a worker process."""

    study: Study
    cache: str | None

    def __call__(self, item: tuple[int, Cell]) -> dict[str, Any]:
        from layoutproof.studies.measured import measured

        number, cell = item
        begun = time.perf_counter()
        with within(Settings(memory=_store(self.cache))):
            record = measured(self.study.operators[cell.operator], cell, self.study.certificates)
        return {"number": number, "seconds": round(time.perf_counter() - begun, 4), "record": record}


_stores: dict[str | None, ProofStore] = {}


def _store(cache: str | None) -> ProofStore | None:
    """The proof cache of this process; None for none."""
    if cache is None:
        return None
    if cache not in _stores:
        _stores[cache] = ProofStore.open(cache or None)
    return _stores[cache]


def _died(item: tuple[int, Cell], ending: Ending) -> dict[str, Any]:
    """The record of a cell that took its worker too long or too much."""
    from layoutproof.studies.measured import undecided

    limits = {"time": "it took longer than its limit", "memory": "it took more memory than its limit"}
    reason = limits.get(ending.why, f"its worker {ending}")
    return {"number": item[0], "seconds": 0.0, "record": undecided(item[1], reason)}


def digest_of_study(study: Study) -> str:
    """What a run's results depend on: the study, the programs of its operators, and the tool."""
    parts = [study.text, *(operator.text for operator in study.operators.values()), digest_of(ROOMS)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def run_study(
    study: Study, folder: Path, options: RunOptions, told: Callable[[Progress], None] = lambda progress: None
) -> list[dict[str, Any]] | None:
    """Run what is not done yet of a study, or of one shard, and keep its records in the folder.

    Returns the records of all cells in the order of the study, once every shard is there; else None. Raises
    LayoutproofError for a folder that cannot be used.
    """
    cells, digest = study.cells(), digest_of_study(study)
    _make_folder(folder)
    with closing(Journal.open(folder / options.shard.journal, digest)) as journal:
        known = _known(folder, digest)
        waiting = [(number, cell) for number, cell in options.shard.of(cells) if number not in known]
        total = len(options.shard.of(cells))
        _work_on(_Work(study, options.cache), waiting, options, journal, _Clock(total, total - len(waiting), told))
    known = _known(folder, digest)
    return [known[number] for number in range(len(cells))] if len(known) == len(cells) else None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error(codes.STUDY_FOLDER, f"{folder} cannot be a folder of results: {problem.strerror}") from problem


def _known(folder: Path, digest: str) -> dict[int, dict[str, Any]]:
    """The records of all journals of this study in a folder, by number."""
    found: dict[int, dict[str, Any]] = {}
    for path in sorted(folder.glob("journal*.jsonl")):
        for line in read_journal(path, digest):
            found.setdefault(line["number"], line["record"])
    return found


@dataclass(slots=True)
class _Clock:
    """Tells of progress, with the time that is left by the rate of this run."""

    total: int
    done: int
    told: Callable[[Progress], None]
    begun: float = field(default_factory=time.monotonic)
    counted: int = 0

    def tick(self, record: dict[str, Any]) -> None:
        self.done, self.counted = self.done + 1, self.counted + 1
        rate = (time.monotonic() - self.begun) / self.counted
        self.told(Progress(self.done, self.total, Cell.of(record), record["verdict"], rate * (self.total - self.done)))


def _work_on(
    work: _Work, waiting: Sequence[tuple[int, Cell]], options: RunOptions, journal: Journal, clock: _Clock
) -> None:
    timings = journal.path.with_name(journal.path.name.replace("journal", "timings")).with_suffix(".tsv")
    with closing(_results(work, waiting, options)) as results, timings.open("a", encoding="utf-8") as times:
        for result in results:
            journal.add({"number": result["number"], "record": result["record"]})
            times.write(f"{result['number']}\t{result['seconds']}\n")
            times.flush()
            clock.tick(result["record"])


def _results(
    work: _Work, waiting: Sequence[tuple[int, Cell]], options: RunOptions
) -> Generator[dict[str, Any], None, None]:
    if options.dask is not None:
        return run_on_dask(waiting, work, options.dask)
    return run_in_workers(waiting, work, _died, options.limits, quiet=True)
