"""`python -m tests.oracle.mlir_campaign`: random functions of MLIR, run here and by LLVM, which also runs each of them
as it is printed by `build --target mlir`.
"""

from __future__ import annotations

import argparse
import sys
from random import Random

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import Fault
from tests.oracle.mlir import arguments_for, differences, printed, run_by_llvm, run_by_us
from tests.random.mlir_nests import random_nests
from tests.random.mlir_programs import Program, random_program
from tests.random.mlir_structured import random_structured

BATCH = 20


def random_function(random: Random, name: str) -> tuple[Program, int | None]:
    """A function of one of the generators, and its size, None where it is the call's."""
    kind = random.choice(("programs", "programs", "programs", "nests", "structured"))
    if kind == "nests":
        return random_nests(random, name)
    if kind == "structured":
        return random_structured(random, name)
    return random_program(random, name), None


def compare_batch(seed: int, count: int = BATCH) -> list[str]:
    """What differs in a batch of programs, a text each."""
    random = Random(seed)
    programs, sizes = [], []
    for number in range(count):
        program, size = random_function(random, f"f{number}")
        programs.append(program)
        sizes.append(random.randint(0, 6) if size is None else size)
    calls = [
        (size, random.randint(0, size), arguments_for(random, program, size))
        for program, size in zip(programs, sizes, strict=True)
    ]
    again = [printed(program) for program in programs]
    theirs = run_by_llvm([*programs, *again], [*calls, *calls])
    found = []
    for program, call, result, second in zip(programs, calls, theirs[:count], theirs[count:], strict=True):
        try:
            different = differences(run_by_us(program, call), result)
        except (Fault, LayoutproofError) as problem:
            different = [str(problem)]
        different += [f"printed again: {text}" for text in differences(second, result)]
        if different:
            found.append(f"seed {seed}, size {call[0]}, index {call[1]}\n{program.text}\n" + "\n".join(different))
    return found


def main() -> int:
    """Run from the command line; exit code 1 for a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong, done = 0, 0
    for seed in range(given.seed, given.seed + -(-given.programs // BATCH)):
        for text in compare_batch(seed):
            wrong += 1
            print(text, flush=True)
        done += BATCH
    print(f"{done} programs, {wrong} different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
