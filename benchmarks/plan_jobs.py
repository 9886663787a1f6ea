"""Networks measured side by side: each in a process of its own, and in another one with the first one's proof cache.

Reading, planning, proving and compiling are concurrent, one process a core. When all processes are done and wait, with
kernels in memory, runs are timed one after the other. The unplanned network does not depend on blocks: it is run where
blocks are largest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
Job = tuple[str, int]
"""A network, and how many channels a block has."""

HEAVY = ("densenet121", "inception_v2", "inception_v1", "vgg19", "resnet50")
"""What takes longest to prove and to compile, longest first."""
READY = "ready"
SHARED = ("plain seconds", "onnxruntime seconds")
"""What is measured where blocks are largest, and holds for all."""


@dataclass(frozen=True)
class Asked:
    """What is measured besides the plans, for which blocks, and how many networks at a time."""

    prove: bool
    run: bool
    blocks: tuple[int, ...]
    at_once: int


def side_by_side(networks: Sequence[str], asked: Asked) -> Iterator[tuple[Job, Figures]]:
    """The figures of each network in each layout. Raises CalledProcessError where a process fails."""
    order = sorted(networks, key=lambda name: HEAVY.index(name) if name in HEAVY else len(HEAVY))
    jobs = [(name, block) for name in order for block in sorted(asked.blocks, reverse=True)]
    plain: dict[str, Figures] = {}
    with ExitStack() as stack:
        outputs = stack.enter_context(tempfile.TemporaryDirectory())
        folders = {job: stack.enter_context(tempfile.TemporaryDirectory()) for job in jobs}
        with ThreadPoolExecutor(asked.at_once) as pool:
            ready = [
                pool.submit(_prepared, job, [*_command(job, folders[job], asked), "--outputs", outputs], folders[job])
                for job in jobs
            ]
        processes = [stack.enter_context(each.result()) for each in ready]
        for job, process in zip(jobs, processes, strict=True):
            said, _ = process.communicate("\n")
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, f"running {job[0]}")
            figures: Figures = json.loads(said)
            yield job, plain.setdefault(job[0], {key: figures[key] for key in SHARED if key in figures}) | figures


def _prepared(job: Job, command: Sequence[str], folder: str) -> subprocess.Popen[str]:
    """A process that has done all but the runs, and waits; its caches were empty."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_alone(folder))
    assert process.stdout is not None
    if process.stdout.readline().strip() != READY:
        raise subprocess.CalledProcessError(process.wait(), f"measuring {job[0]}")
    return process


def again(job: Job, folder: str, asked: Asked) -> Figures:
    """The figures of a second process, which finds what the first one left."""
    command = [*_command(job, folder, asked), "--again"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, input="\n", text=True, env=_alone(folder))
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def _command(job: Job, folder: str, asked: Asked) -> list[str]:
    wanted = [word for word, given in (("--prove", asked.prove), ("--run", asked.run)) if given]
    plain = ["--plain"] if job[1] == max(asked.blocks) else []
    return [
        sys.executable,
        "-m",
        "benchmarks.bench_plan",
        job[0],
        "--block",
        str(job[1]),
        "--here",
        folder,
        *wanted,
        *plain,
    ]


def _alone(folder: str) -> dict[str, str]:
    """The environment of a process: kernels that store large arrays anew would take more threads than one."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "LAYOUTPROOF_CACHE": os.path.join(folder, "kernels")}
