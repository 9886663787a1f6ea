"""A Dask cluster on this machine, its scheduler and its workers as processes of their own, which a test may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.render.gate.marked import MARK, wait_until
from tests.tree import ROOT


@dataclass
class Cluster:
    """A scheduler and workers. `folder` is where they run; `mark` is in the environment of the workers and of all that
    they start.
    """

    folder: Path
    mark: str
    address: str = ""
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start the scheduler, which writes down where it listens."""
        file = self.folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        self.scheduler = self._process("distributed.cli.dask_scheduler", *options)
        assert wait_until(lambda: file.is_file() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker with one thread; it may not be there yet when this returns."""
        options = [
            self.address,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--no-nanny",
            "--local-directory",
            str(self.folder),
        ]
        self.workers.append(self._process("distributed.cli.dask_worker", *options, **environment))
        return self.workers[-1]

    def _process(self, module: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(str(path) for path in (ROOT / "src", ROOT))
        everything = {**os.environ, "PYTHONPATH": paths, MARK: self.mark, **environment}
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", module, *options]
            return subprocess.Popen(command, cwd=self.folder, env=everything, stdout=log, stderr=log)


@contextmanager
def cluster(folder: Path, mark: str, workers: int = 2) -> Iterator[Cluster]:
    """A cluster, gone afterwards."""
    folder.mkdir()
    found = Cluster(folder, mark)
    try:
        found.start()
        for _ in range(workers):
            found.add_worker()
        yield found
    finally:
        for process in (*found.workers, found.scheduler):
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait()
