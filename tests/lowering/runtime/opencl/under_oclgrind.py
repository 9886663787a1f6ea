"""Every operator in Oclgrind, a device that simulates each work item and reports accesses out of bounds and races.

    python -m tests.lowering.runtime.opencl.under_oclgrind

needs the package oclgrind of the system (`apt install oclgrind`), or its liboclgrind-rt-icd.so named by $OCLGRIND_ICD.
Operators run with their memory in buffers and in textures, serial and with the loops in parallel that may be; kernels
of work groups with their barriers, and, as a test of the test, without. The exit code is 0 where Oclgrind has nothing
to say and all results are right, 1 where it has, and 2 where it is not there.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tests.lowering.kernels.gpu_runs import RUNS
from tests.lowering.runtime.opencl.sources import pointer_source, pointwise
from tests.lowering.runtime.opencl.test_operators import SIZES
from tests.lowering.runtime.opencl.textures import Flattening, assert_same, flattenings, scheduled
from tests.lowering.small_operators import NAMES, inputs_of, small
from tests.oracle.thread_kernels import judge
from tests.oracle.thread_mutants import PAIRS
from tests.oracle.thread_targets import in_opencl
from tests.oracle.thread_walker import shape_of

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.runtime.kernel import LoweredFunc
from layoutproof.lowering.runtime.opencl.devices import find_device
from layoutproof.lowering.runtime.opencl.load_opencl import OpenCLKernel, load_opencl
from layoutproof.lowering.schedule.schedule import Schedule

RANDOM = 60
"""Random kernels of work groups that are judged; those without a race are run."""

PLACES = ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/liboclgrind-rt-icd.so")


def in_parallel(schedule: Schedule) -> Schedule:
    """The schedule with the outermost loop of each block in parallel, where that is proved."""
    for block in [node.name for node in walk(schedule.func.body) if isinstance(node, Block) and node.iter_vars]:
        try:
            schedule.parallel(block, 0)
        except IllegalTransform:
            continue
    return schedule


def cases() -> Iterator[tuple[str, Flattening | None, Schedule]]:
    """Every operator, its memory in buffers and then each parameter a texture, serial and in parallel."""
    for name in NAMES:
        for flattening in (None, *flattenings(small(name))):
            for parallel in (False, True):
                schedule = Schedule(small(name)) if flattening is None else scheduled(small(name), flattening)
                yield name, flattening, in_parallel(schedule) if parallel else schedule


def problem_of(name: str, schedule: Schedule, log: Path) -> str | None:
    """What is wrong with one kernel; None where nothing is. Raises LayoutproofError for what the simulator does not
    have.
    """
    before = log.stat().st_size
    kernel = schedule.build("opencl", device="Oclgrind", check=False)
    try:
        for sizes in SIZES.get(name, [{}])[-2:]:
            assert_same(small(name), [kernel], inputs_of(small(name), 5, sizes), sizes)
    except AssertionError:
        return "it computes something else than the interpreter"
    said = log.read_text(errors="replace")[before:].strip()
    return said if said else None


def problems_of_kernels(log: Path) -> Iterator[str]:
    """What is wrong with kernels of work groups: those that are scheduled by hand, and random ones without a race."""
    for name, (_, text) in PAIRS.items():
        kernel = Schedule(loads(text)).build("opencl", device="Oclgrind", check=False)
        assert isinstance(kernel, OpenCLKernel)
        before = log.stat().st_size
        arrays = {b.name: np.arange(prod(shape_of(b)), dtype=np.int32) for b in kernel.lowered.buffers}
        kernel.raw(**arrays)
        said = log.read_text(errors="replace")[before:].strip()
        if said:
            yield f"{name}: {said}"
        if "barrier(" in kernel.source.text and not _misses_barrier(kernel, arrays, log):
            yield f"{name}: nothing is said of it without its barriers"
    accepted = [found for found in map(judge, range(RANDOM)) if found.accepted]
    for each in accepted:
        before = log.stat().st_size
        in_opencl([each], "Oclgrind")
        said = log.read_text(errors="replace")[before:].strip()
        if said:
            yield f"{each.text}\n{said}"
    print(f"{len(PAIRS)} scheduled and {len(accepted)} random kernels of work groups")


def problems_of_schedules(log: Path) -> Iterator[str]:
    """What is wrong with the reference schedules for GPUs."""
    for name, make in RUNS.items():
        case = make()
        before = log.stat().st_size
        kernel = case.schedule().build("opencl", device="Oclgrind", check=False)
        if not case.is_right(kernel(**case.arguments)):
            yield f"{name}: it computes something else than numpy"
        said = log.read_text(errors="replace")[before:].strip()
        if said:
            yield f"{name}: {said}"
    print(f"{len(RUNS)} reference schedules")


def _misses_barrier(kernel: OpenCLKernel, arrays: Mapping[str, npt.NDArray[np.int32]], log: Path) -> bool:
    """Whether a race is seen where the kernel has no barriers."""
    before = log.stat().st_size
    bare = replace(kernel.source, text=re.sub(r"barrier\([^)]*\);", "", kernel.source.text))
    without = load_opencl(LoweredFunc(kernel.lowered), bare, find_device("Oclgrind"), check=False)
    without.raw(**arrays)
    return "race" in log.read_text(errors="replace")[before:]


def notices_faults(log: Path) -> bool:
    """Whether wrong kernels are reported: one reads past the end, one writes one cell from every work item."""
    func = pointwise(8, lambda a: a)
    told = []
    for expression, word in (("A[i + 100000]", "Invalid read"), ("a; B[0] = a", "race")):
        before = log.stat().st_size
        kernel = load_opencl(LoweredFunc(func), pointer_source(func, expression), find_device("Oclgrind"), check=False)
        kernel.raw(np.arange(8, dtype=np.float32), np.zeros(8, dtype=np.float32))
        told.append(word in log.read_text(errors="replace")[before:])
    return all(told)


def main() -> int:
    """Run all, say what was found."""
    library = next(
        (path for path in (os.environ.get("OCLGRIND_ICD", ""), *PLACES) if path and Path(path).is_file()), None
    )
    if library is None:
        print(
            "oclgrind is not installed: apt install oclgrind, or name its liboclgrind-rt-icd.so in OCLGRIND_ICD",
            file=sys.stderr,
        )
        return 2
    count = lacking = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "oclgrind.txt")
        log.touch()
        Path(folder, "oclgrind.icd").write_text(f"{library}\n")
        os.environ.update(OCL_ICD_VENDORS=folder, OCLGRIND_DATA_RACES="1", OCLGRIND_LOG=str(log))
        print(f"on {find_device('Oclgrind').title}")
        if not notices_faults(log):
            print("oclgrind is there, but does not tell of wrong kernels", file=sys.stderr)
            return 2
        for name, flattening, schedule in cases():
            try:
                problem = problem_of(name, schedule, log)
            except LayoutproofError as refusal:
                if refusal.diagnostics[0].code != codes.LACKING:
                    raise
                lacking += 1
                continue
            count += 1
            if problem is not None:
                wrong += 1
                print(f"{name} {flattening if flattening is not None else 'in buffers'}: {problem}")
        for problem in chain(problems_of_kernels(log), problems_of_schedules(log)):
            wrong += 1
            print(problem)
    print(
        f"{count} kernels, {wrong} with something to say; {lacking} need what the simulator has not (images that are "
        "read and written)"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
