"""`python -m tests.oracle.hunt.mlir_hunt`: random functions through passes of mlir-opt, judged here and run by LLVM.

Each function before and after is run by LLVM on the same inputs, so every verdict has a judge outside: "proved" where
the runs differ is a fault of this tool, "refuted" where they differ is one of mlir-opt. What else is listed has to be
looked at.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random

from benchmarks.mlir_pairs import Judge

from layoutproof.importers.mlir.mlir_opt import find_mlir_opt
from tests.oracle.mlir import Arrays, Rewritten, arguments_for, differences, run_by_llvm
from tests.random.mlir_nests import random_nests
from tests.random.mlir_programs import Program, random_program
from tests.random.mlir_structured import STRUCTURED, library, random_structured

BATCH = 10
FAILED = "LLVM's run failed"
AFFINE = (
    *(f"-affine-loop-tile=tile-size={n}" for n in (2, 3, 4, 5)),
    "-affine-loop-tile=tile-sizes=4,2",
    "-affine-loop-tile=tile-size=4 separate",
    *(f"-affine-loop-unroll=unroll-factor={n}" for n in (2, 3, 4)),
    "-affine-loop-unroll=unroll-factor=4 cleanup-unroll",
    "-affine-loop-unroll=unroll-full",
    "-affine-loop-unroll=unroll-full unroll-full-threshold=12 unroll-num-reps=2",
    *(f"-affine-loop-unroll-jam=unroll-jam-factor={n}" for n in (2, 3)),
    "-affine-loop-fusion=mode=producer",
    "-affine-loop-fusion=mode=sibling",
    "-affine-loop-fusion=fusion-maximal",
    "-affine-loop-fusion=fusion-compute-tolerance=10",
    "-affine-loop-coalescing",
    "-affine-loop-normalize",
    "-affine-loop-normalize=promote-single-iter",
    "-affine-scalrep",
    "-affine-super-vectorize=virtual-vector-size=4",
    "-affine-super-vectorize=virtual-vector-size=4 vectorize-reductions",
    "-affine-super-vectorize=virtual-vector-size=2,4 test-fastest-varying=1,0",
    "-affine-loop-invariant-code-motion",
    "-affine-data-copy-generate=fast-mem-space=0 generate-dma=false",
    "-affine-data-copy-generate=fast-mem-space=0 generate-dma=false skip-non-unit-stride-loops",
    "-affine-parallelize",
    "-affine-parallelize=max-nested=1",
    "-affine-simplify-structures",
    "-affine-expand-index-ops",
    "-test-affine-loop-unswitch",
    "-lower-affine",
    "-loop-invariant-code-motion",
    "-canonicalize",
    "-cse",
    "-sccp",
    "-control-flow-sink",
    "-normalize-memrefs",
    "-fold-memref-alias-ops",
    "-expand-strided-metadata",
    "-buffer-hoisting",
    "-buffer-loop-hoisting",
    "-promote-buffers-to-stack",
    "-mem2reg",
    "-sroa",
    "-int-range-optimizations",
    "-arith-expand",
    "-convert-vector-to-scf",
)
SCF = (
    "-scf-for-loop-peeling",
    "-scf-for-loop-peeling=peel-front",
    "-scf-for-loop-canonicalization",
    "-scf-for-loop-range-folding",
    "-scf-for-loop-specialization",
    "-scf-for-to-while",
    "-scf-parallel-loop-fusion",
    "-scf-parallel-loop-tiling=parallel-loop-tile-sizes=4,2",
    "-scf-parallel-loop-tiling=parallel-loop-tile-sizes=3 no-min-max-bounds",
    "-scf-parallel-loop-specialization",
    "-test-scf-parallel-loop-collapsing",
    "-loop-invariant-code-motion",
    "-int-range-optimizations",
    "-arith-int-narrowing=int-bitwidths-supported=8,16,32",
    "-arith-unsigned-when-equivalent",
    "-canonicalize",
    "-cse",
    "-sccp",
)


@dataclass(frozen=True)
class Attempt:
    """A function, the passes, and what they made of it."""

    seed: int
    before: Program
    passes: tuple[str, ...]
    after: Rewritten
    size: int | None


def passes_for(random: Random, kind: str) -> tuple[str, ...]:
    """One pass most of the time, else a few; passes on `scf` follow the one that makes it."""
    if kind == "structured":
        return random.choice(STRUCTURED)
    if random.random() < 0.3:
        first = random.choice((("-lower-affine",), ("-affine-parallelize", "-lower-affine")))
        return (*first, *random.sample(SCF, random.choice((1, 1, 2))))
    return tuple(random.sample(AFFINE, random.choice((1, 1, 1, 2, 3))))


def attempt(seed: int, number: int, kind: str | None, hunt: Hunt) -> Attempt | None:
    """A random function and what random passes make of it; None where they fail or change nothing."""
    random = Random(seed * 1000 + number)
    name, size = f"f{number}", None
    chosen = kind if kind is not None else random.choice(("nests", "nests", "programs", "structured"))
    if chosen == "nests":
        program, size = random_nests(random, name)
    elif chosen == "structured":
        program, size = random_structured(random, name)
    else:
        program = random_program(random, name)
    passes = passes_for(random, chosen)
    hunt.programs += 1
    hunt.passes.update(passes)
    try:
        text = run_opt(program.text, passes)
    except OptFailed as problem:
        hunt.failed[str(problem)] += 1
        print(f"mlir-opt {problem}: seed {seed}, number {number}, {' '.join(passes)}", flush=True)
        return None
    if text == run_opt(program.text, ("-verify-diagnostics",)):
        hunt.unchanged += 1
        return None
    inner = re.sub(r"\Amodule \{\n|\}\s*\Z", "", text).replace(f"@{name}(", f"@{name}_after(")
    return Attempt(seed, program, passes, Rewritten(f"{name}_after", program.arguments, module=inner), size)


class OptFailed(Exception):
    """mlir-opt gave no module: it refused, crashed, or did not end."""


def run_opt(text: str, passes: tuple[str, ...]) -> str:
    """What mlir-opt prints, without aliases. Raises OptFailed."""
    for group, step in groupby(passes, key=lambda each: each.partition(":")[2] if each[0] == "t" else ""):
        with tempfile.TemporaryDirectory() as folder:
            options = list(step)
            if group:
                path = Path(folder) / "transform.mlir"
                path.write_text(library(group, "0.0 : f32" if "f32" in text else "0 : i32"), encoding="utf-8")
                options = [f"--transform-preload-library=transform-library-paths={path}", "--transform-interpreter"]
            command = [find_mlir_opt(), "--mlir-print-local-scope", *options]
            try:
                done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20, check=False)
            except subprocess.TimeoutExpired as problem:
                raise OptFailed("did not end") from problem
        if done.returncode != 0:
            raise OptFailed("crashed" if "Stack dump" in done.stderr or done.returncode < 0 else "refused")
        text = done.stdout
    return text


def runs_differ(attempts: list[Attempt]) -> dict[int, list[str]]:
    """What LLVM's runs of each attempt say, by its position; a run that fails is said, too."""
    try:
        return _runs(attempts)
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        if len(attempts) == 1:
            return {0: [f"{FAILED}: {str(problem)[:300]}"]}
    found: dict[int, list[str]] = {}
    for position, each in enumerate(attempts):
        found[position] = runs_differ([each])[0]
    return found


def _runs(attempts: list[Attempt]) -> dict[int, list[str]]:
    programs: list[Program] = []
    calls: list[tuple[int, int, Arrays]] = []
    for each in attempts:
        random = Random(each.seed)
        for size in (random.randint(0, 3), random.randint(3, 7), random.randint(5, 13)):
            size = each.size if each.size is not None else size
            given = arguments_for(random, each.before, size)
            call = (size, random.randint(0, size), given)
            programs += [each.before, each.after]
            calls += [call, call]
    results = run_by_llvm(programs, calls)
    found: dict[int, list[str]] = {}
    for position in range(len(attempts)):
        found[position] = []
        for k in range(6 * position, 6 * position + 6, 2):
            different = differences(results[k], results[k + 1])
            found[position] += [f"size {calls[k][0]}, index {calls[k][1]}: {text}" for text in different]
    return found


@dataclass
class Hunt:
    """What was tried and found so far. `verdicts` counts (the verdict, what LLVM's runs say)."""

    programs: int = 0
    unchanged: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    passes: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def where(self, verdict: str | None = None, runs: str | None = None) -> int:
        """How many functions have this verdict and these runs; None for any."""
        return sum(
            number for (one, other), number in self.verdicts.items() if verdict in (None, one) and runs in (None, other)
        )

    def figures(self) -> list[str]:
        """The totals, as the page of findings has them."""
        judged = self.where() - self.where("not judged")
        open_ones = self.where(runs="differs") - self.where("refuted", "differs") - self.where("proved", "differs")
        tools = "".join(f", {what}: {number:,}" for what, number in sorted(self.failed.items()))
        return [
            f"| functions | {self.programs:,} |",
            f"| different passes, with their options | {len(self.passes):,} |",
            f"| runs of a pass | {self.passes.total():,} |",
            f"| functions that the passes left as they were | {self.unchanged:,} |",
            f"| functions of which `mlir-opt` made no module | {self.failed.total():,}{tools} |",
            f"| functions that LLVM could not compile or run afterwards | {self.where(runs='not run'):,} |",
            f"| functions judged | {judged:,}, of them {self.where('proved'):,} proved |",
            f"| findings: LLVM's runs of before and after differ | {self.where(runs='differs'):,} |",
            f"| confirmed: of these refuted here | {self.where('refuted', 'differs'):,} |",
            f"| of these not decided | {open_ones:,} |",
            f"| of these proved, which would be a fault of this tool | {self.where('proved', 'differs'):,} |",
            f"| refuted although LLVM's three runs agree | {self.where('refuted', 'agrees'):,} |",
        ]


BEGIN, END = "<!-- figures of the hunt -->", "<!-- end of the figures -->"


def written(page: str, hunt: Hunt) -> str:
    """The page with the totals between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    assert found, f"the page has no {BEGIN} and {END}"
    return "\n".join([before + BEGIN, "", "| | |", "|---|---|", *hunt.figures(), "", END + after])


def main() -> int:
    """Run from the command line; exit code 1 if something that LLVM's runs contradict was proved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--minutes", type=float, help="end after so long, with the totals so far")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=("nests", "programs", "structured"))
    parser.add_argument("--limit", type=float, default=20, help="seconds for each comparison")
    parser.add_argument("--share", type=float, default=1, help="of the attempts whose runs agree, judge this part")
    parser.add_argument("--keep", type=Path, help="a folder for the pairs that are listed")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the totals into docs/wild-mlir.md")
    given = parser.parse_args()
    import layoutproof.importers.mlir.validation
    import layoutproof.importers.mlir.xdsl_reader  # noqa: F401  # loaded once, for all forks

    hunt = Hunt()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        keep = given.keep if given.keep is not None else Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        judge = Judge(keep, frozenset(), given.limit)
        for seed in range(given.seed, given.seed + -(-given.programs // BATCH)):
            hunt_batch(seed, given, keep, judge, hunt)
            if given.minutes is not None and time.monotonic() - start > 60 * given.minutes:
                break
        judge.end()
    print("\n".join(hunt.figures()))
    print(f"{time.monotonic() - start:.0f} s")
    if given.write is not None:
        given.write.write_text(written(given.write.read_text(encoding="utf-8"), hunt), encoding="utf-8")
    return 1 if hunt.where("proved", "differs") else 0


def hunt_batch(seed: int, given: argparse.Namespace, keep: Path, judge: Judge, hunt: Hunt) -> None:
    """Run some attempts, and judge those that differ and a share of the others; those that are no agreement stay in
    the folder `keep`, and are printed.
    """
    made = [attempt(seed, number, given.kind, hunt) for number in range(BATCH)]
    attempts = [each for each in made if each is not None]
    if not attempts:
        return
    differ = runs_differ(attempts)
    for position, each in enumerate(attempts):
        name = f"{seed}_{position}"
        files = [keep / f"{name}.{side}.mlir" for side in ("before", "after")]
        files[0].write_text(each.before.text, encoding="utf-8")
        files[1].write_text(each.after.text.replace(f"@{each.after.name}(", f"@{each.before.name}("), encoding="utf-8")
        seen = differ[position]
        said = "agrees" if not seen else "not run" if seen[0].startswith(FAILED) else "differs"
        asked = bool(seen) or Random(f"{seed} {position}").random() < given.share
        status, why = judge(name) if asked else ("not judged", "")
        hunt.verdicts[status, said] += 1
        if said == "agrees" and status in ("proved", "not judged"):
            for file in files:
                file.unlink()
            continue
        print(f"{status:8} LLVM {said:8} {name} {' '.join(each.passes)}  {why[:200]}", flush=True)
        for text in seen[:2]:
            print(f"    {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
