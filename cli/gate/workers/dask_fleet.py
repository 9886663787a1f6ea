"""Items judged by the workers of a Dask cluster, each in processes of its own with the run's limits.

Outcomes and their order are those of one machine. If a worker dies, Dask gives its items to others. The library is
imported here only, when a fleet is requested.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from layoutproof.cli import codes
from layoutproof.cli.gate.check_items import Item, Options
from layoutproof.cli.gate.outcomes import Outcome
from layoutproof.cli.gate.workers.fleet_worker import Done, Parcel, Task, difference, do_task, end_run, pack, versions
from layoutproof.cli.gate.workers.item_limits import Judge, Limits, ended
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.verify.workers.endings import Ending

CONNECT_SECONDS = 10.0
# So long a fleet may have no worker at all: one that grows with its work starts them when there is some.
NOBODY_SECONDS = 60.0
CHUNK = 8
_LOOK_SECONDS = 1.0
_CLOSE_SECONDS = 5.0
_ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?[^\s/]+:[0-9]+")
_CHUNKS_PER_THREAD = 4
LEAST_WINDOW = 16


def run_on_fleet(
    items: Iterable[Item], judge: Judge, options: Options, limits: Limits
) -> Generator[Outcome, None, None]:
    """As `run_items`, on the fleet whose scheduler is at `limits.dask`.

    Raises LayoutproofError if the library is missing, the scheduler does not answer, or a worker has another version of
    the tool.
    """
    client = _connected(str(limits.dask))
    fleet = _Fleet(client, judge, _for_elsewhere(options), replace(limits, workers=1, dask=None))
    try:
        check_versions(client)
        yield from fleet.run(iter(items))
    finally:
        fleet.close()


def check_versions(client: Any) -> None:
    """Raise LayoutproofError unless every present worker has this version of the tool."""
    mine = versions()
    found: Mapping[str, Any] = client.run(versions, on_error="return")
    for worker, theirs in found.items():
        if isinstance(theirs, OSError):
            continue  # it is gone; later workers compare for themselves
        if isinstance(theirs, BaseException):
            raise error(
                codes.OTHER_TOOL,
                f"the worker {worker} cannot run layoutproof: {type(theirs).__name__}: {theirs}",
                help=_SAME,
            )
        if theirs["digest"] != mine["digest"]:
            raise error(codes.OTHER_TOOL, f"the worker {worker} has {difference(mine, theirs)}", help=_SAME)


_SAME = "install the same version of layoutproof, with the same solvers and the same Python, on all of them"


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError as problem:
        hint = "pip install 'layoutproof[cluster]'"
        raise error(
            codes.NO_CLUSTER, f"--dask {address} needs the package distributed, which is not installed", help=hint
        ) from problem
    # The errors here report lost connections instead of the library.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    hint = "the address is what `dask scheduler` prints, such as tcp://host:8786"
    if _ADDRESS.fullmatch(address) is None:
        raise error(codes.CLUSTER_ADDRESS, f"--dask {address}: expected an address", help=hint)
    found = _within(2 * CONNECT_SECONDS, lambda: _client(distributed.Client, address))
    if found is None or isinstance(found, BaseException):
        why = f" ({found})" if found is not None else ""
        raise error(codes.CLUSTER_ADDRESS, f"no Dask scheduler answers at {address}", help=f"{hint}{why}")
    return found


def _client(client: Any, address: str) -> Any:
    try:
        return client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="layoutproof")
    except (OSError, ValueError) as problem:
        return problem


def _within(seconds: float, call: Callable[[], Any]) -> Any:
    """The result of a call, None on a timeout: the library waits forever for a peer that accepts and stays silent."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else None


def _for_elsewhere(options: Options) -> Options:
    """The options with each machine's own default place of the cache."""
    from layoutproof.lowering.proof_cache.store import place_of

    return replace(options, cache="") if options.cache == str(place_of(None)) else options


@dataclass(slots=True)
class _Sent:
    """A task in flight: some neighbouring items."""

    parcels: tuple[Parcel, ...]
    future: Any


class _Fleet:
    def __init__(self, client: Any, judge: Judge, options: Options, limits: Limits) -> None:
        self._client = client
        self._judge, self._options, self._limits = judge, options, limits
        self._run = uuid.uuid4().hex
        self._home = os.getcwd()
        self._versions = versions()
        self._sent: deque[_Sent] = deque()
        self._seen = time.monotonic()
        self._threads = 0

    def run(self, items: Iterator[Item]) -> Generator[Outcome, None, None]:
        """See `run_on_fleet`."""
        self._look()
        while True:
            while len(self._sent) < max(_CHUNKS_PER_THREAD * self._threads, LEAST_WINDOW):
                parcels = tuple(pack(item, self._home) for item in islice(items, CHUNK))
                if not parcels:
                    break
                self._sent.append(_Sent(parcels, self._submit(parcels)))
            if not self._sent:
                return
            head = self._sent[0]
            yield from self._outcomes(head.parcels, head.future)
            self._sent.popleft()

    def _submit(self, parcels: tuple[Parcel, ...]) -> Any:
        task = Task(self._run, parcels, self._judge, self._options, self._limits, self._versions)
        return self._client.submit(do_task, task, pure=False, key=f"layoutproof-{uuid.uuid4().hex}")

    def _outcomes(self, parcels: tuple[Parcel, ...], future: Any) -> Iterator[Outcome]:
        """The outcomes of a task; if workers died repeatedly with it, those of its items one by one."""
        done = self._awaited(future)
        if done is None:
            if len(parcels) == 1:
                yield ended(self._limits, parcels[0].item, Ending("fleet"))
                return
            for parcel in parcels:
                yield from self._outcomes((parcel,), self._submit((parcel,)))
            return
        if done.code:
            raise error(done.code, done.message)
        yield from done.outcomes

    def _awaited(self, future: Any) -> Done | None:
        """A task's result; None if its workers died. Raises LayoutproofError if there will be none."""
        from distributed import CancelledError, KilledWorker
        from distributed import TimeoutError as NotYet
        from distributed.comm.core import CommClosedError

        while True:
            try:
                problem = future.exception(timeout=_LOOK_SECONDS)
                if problem is None:
                    done: Done = future.result()
                    return done
            except NotYet:
                self._look()
                continue
            except (CancelledError, CommClosedError) as lost:
                raise self._gone() from lost
            if isinstance(problem, KilledWorker):
                return None
            raise error(
                codes.CLUSTER_ADDRESS, f"a worker of the fleet failed: {type(problem).__name__}: {problem}"
            ) from problem

    def _look(self) -> None:
        """Count the workers. Raises LayoutproofError if there have been none for a while."""
        if self._client.status != "running":
            raise self._gone()
        self._threads = sum(self._client.ncores().values())
        now = time.monotonic()
        if self._threads > 0:
            self._seen = now
        elif now - self._seen > NOBODY_SECONDS:
            message = f"the Dask scheduler at {self._limits.dask} has had no worker for {NOBODY_SECONDS:g} seconds"
            raise error(codes.CLUSTER_ADDRESS, message, help="start some: dask worker ADDRESS")

    def _gone(self) -> LayoutproofError:
        return error(
            codes.CLUSTER_ADDRESS, "the Dask scheduler is gone", help="what was proved is in the caches; run it again"
        )

    def close(self) -> None:
        """Cancel what is not done yet."""
        if self._client.status == "running":
            self._client.cancel([sent.future for sent in self._sent])
            # A worker that died a moment ago is waited for long; its processes have ended with it.
            _within(_CLOSE_SECONDS, lambda: self._client.run(end_run, self._run, on_error="ignore"))
        self._client.close(timeout=_LOOK_SECONDS)
