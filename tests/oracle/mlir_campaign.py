"""`python -m tests.oracle.mlir_campaign`: random functions of MLIR, run here and by LLVM, which also runs each of them
as it is printed by `build --target mlir`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import Fault
from layoutproof.ir.primfunc import PrimFunc
from tests.oracle.mlir import Arrays, arguments_for, differences, printed, read, run_by_llvm, run_by_us
from tests.random.mlir_nests import random_nests
from tests.random.mlir_programs import Program, random_program
from tests.random.mlir_structured import random_structured

BATCH = 25  # functions that LLVM compiles and runs in one process


def random_function(random: Random, name: str) -> tuple[Program, int | None]:
    """A function of one of the generators, and its size, None where it is the call's."""
    kind = random.choice(("programs", "programs", "programs", "nests", "structured"))
    if kind == "nests":
        return random_nests(random, name)
    if kind == "structured":
        return random_structured(random, name)
    return random_program(random, name), None


@dataclass
class Case:
    """A function, as it was read and as it is printed again, and a call of it: size, index and memories."""

    program: Program
    call: tuple[int, int, Arrays]
    function: PrimFunc
    again: Program

    def text(self, seed: int, different: list[str]) -> str:
        """What differs, with the function."""
        return f"seed {seed}, size {self.call[0]}, index {self.call[1]}\n{self.program.text}\n" + "\n".join(different)


def compare_batch(seed: int, count: int = BATCH) -> list[str]:
    """What differs in a batch of programs, a text each."""
    random = Random(seed)
    cases, found = [], []
    for number in range(count):
        program, given = random_function(random, f"f{number}")
        size = random.randint(0, 6) if given is None else given
        call = (size, random.randint(0, size), arguments_for(random, program, size))
        try:
            function = read(program)
            cases.append(Case(program, call, function, printed(program, function)))
        except LayoutproofError as problem:
            found.append(f"seed {seed}\n{program.text}\n{problem}")
    return found + [text for case, different in _compared(cases) if different for text in [case.text(seed, different)]]


def _compared(cases: list[Case]) -> Iterator[tuple[Case, list[str]]]:
    """The cases with what differs; one by one where LLVM does not take them all."""
    try:
        theirs = run_by_llvm(
            [case.program for case in cases] + [case.again for case in cases], [case.call for case in cases] * 2
        )
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        if len(cases) == 1:
            yield cases[0], [f"LLVM's run failed: {str(problem)[:1000]}"]
            return
        for case in cases:
            yield from _compared([case])
        return
    for case, result, second in zip(cases, theirs[: len(cases)], theirs[len(cases) :], strict=True):
        try:
            different = differences(run_by_us(case.program, case.call, case.function), result)
        except (Fault, LayoutproofError) as problem:
            different = [str(problem)]
        yield case, different + [f"printed again: {text}" for text in differences(second, result)]


def main() -> int:
    """Run from the command line; exit code 1 for a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    wrong, done, start = 0, 0, time.monotonic()
    seeds = range(given.seed, given.seed + -(-given.programs // BATCH))
    with ProcessPoolExecutor(given.jobs) as pool:
        for number, texts in enumerate(pool.map(compare_batch, seeds), 1):
            for text in texts:
                wrong += 1
                print(text, flush=True)
            done += BATCH
            if number % 20 == 0 or number == len(seeds):
                rate = 60 * done / (time.monotonic() - start)
                print(f"{done} of {given.programs} programs, {wrong} different, {rate:.0f} a minute", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
