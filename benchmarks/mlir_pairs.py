"""Judge the pairs of a folder, each in a process of its own, and count the verdicts against those that are wanted.

    python -m benchmarks.mlir_pairs FOLDER [--only SUBSTRING] [--limit SECONDS] [--list]
    python -m benchmarks.mlir_pairs --nests

The folder has NAME.before.mlir, NAME.after.mlir and manifest.json: a list of objects with `id`, `wanted` ("proved",
"refuted" or "any") and perhaps `wanted_reassoc`. Exit code 1 if a verdict is wrong.

With `--confirm` a refutation where "proved" is wanted is right if LLVM's runs of both functions differ on the
counterexample's input: what is wanted is known from runs on other inputs (docs/wild-mlir.md has such pairs).

With `--nests` nests are judged that were tiled, and unrolled to more and more copies of their body, in one process:
lines of both functions a minute, processor time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.values.fast_math import ALL


def judge(folder: Path, fast_math: frozenset[str], questions: Connection) -> None:
    """Answer names of pairs with the verdict and a reason, until there are no more."""
    from layoutproof.importers.mlir.validation import compare_files
    from layoutproof.verify.settings import Settings, within

    while (name := questions.recv()) is not None:
        try:
            with within(Settings(allowed=fast_math)):
                ((_, found),) = compare_files(folder / f"{name}.before.mlir", folder / f"{name}.after.mlir")
            questions.send((found.status.value, " | ".join(str(found.verdicts[0].reason).splitlines()[:3])))
        except LayoutproofError as problem:
            questions.send(("error", problem.diagnostics[0].message))


class Judge:
    """A process that judges one pair after the other; a new one after one that took too long or died."""

    def __init__(self, folder: Path, fast_math: frozenset[str], limit: float) -> None:
        self._given = folder, fast_math
        self._limit = limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._job = context.Process(target=judge, args=(*self._given, theirs))
        self._job.start()
        theirs.close()

    def __call__(self, name: str) -> tuple[str, str]:
        """The verdict on a pair."""
        self._pipe.send(name)
        try:
            found: tuple[str, str] = self._pipe.recv() if self._pipe.poll(self._limit) else ("time", "")
        except EOFError:
            found = ("died", "")
        if found[0] in ("time", "died"):
            self.end()
            self._start()
        return found

    def end(self) -> None:
        """End the process."""
        self._job.kill()
        self._job.join()


def nest(rows: int, columns: int, copies: tuple[int, int], tiles: int = 0) -> str:
    """A function that smooths rows of a matrix, its loops unrolled to so many copies, or tiled."""
    return _nest(_smoothing(f"memref<{rows}x{columns}xf32>"), (rows, columns), copies, tiles)


Statement = Callable[[str, str, str], list[str]]  # of the indices, and a suffix of names


def _smoothing(kind: str) -> Statement:
    def at(i: str, j: str, name: str) -> list[str]:
        return [
            f"  %x{name} = affine.load %a[{i}, {j}] : {kind}",
            f"  %y{name} = affine.load %b[{i}, {j}] : {kind}",
            f"  %s{name} = arith.addf %x{name}, %y{name} : f32",
            f"  %m{name} = arith.mulf %s{name}, %half : f32",
            f"  affine.store %m{name}, %b[{i}, {j}] : {kind}",
        ]

    return at


def _stencil(kind: str) -> Statement:
    """Each element from its neighbours, in place: one copy reads what another one wrote."""

    def at(i: str, j: str, name: str) -> list[str]:
        return [
            f"  %w{name} = affine.load %a[({i}) mod 400, {j}] : {kind}",
            f"  %x{name} = affine.load %b[{i}, ({j} + 399) mod 400] : {kind}",
            f"  %y{name} = affine.load %b[({i} + 399) mod 400, {j}] : {kind}",
            f"  %s{name} = arith.addf %x{name}, %y{name} : f32",
            f"  %t{name} = arith.addf %s{name}, %w{name} : f32",
            f"  %m{name} = arith.mulf %t{name}, %half : f32",
            f"  affine.store %m{name}, %b[{i}, {j}] : {kind}",
        ]

    return at


def _nest(statement: Statement, extents: tuple[int, int], copies: tuple[int, int], tiles: int = 0) -> str:
    rows, columns = extents
    kind = f"memref<{rows}x{columns}xf32>"
    lines = [f"func.func @f(%a: {kind}, %b: {kind}) {{", "  %half = arith.constant 5.0e-01 : f32"]
    if tiles:
        for name, extent in (("i", rows), ("j", columns)):
            lines.append(f"affine.for %{name}o = 0 to {extent} step {tiles} {{")
        for name in "ij":
            end = f"affine_map<(d0) -> (d0 + {tiles})>(%{name}o)"
            lines.append(f"affine.for %{name} = affine_map<(d0) -> (d0)>(%{name}o) to {end} {{")
    else:
        lines.append(f"affine.for %i = 0 to {rows} step {copies[0]} {{")
        lines.append(f"affine.for %j = 0 to {columns} step {copies[1]} {{")
    for row in range(copies[0]):
        for column in range(copies[1]):
            lines += statement(f"%i + {row}", f"%j + {column}", f"{row}_{column}")
    return "\n".join([*lines, *(["}"] * (4 if tiles else 2)), "return", "}", ""])


def measure_nests() -> None:
    """A table of nests, with lines a minute."""
    from layoutproof.importers.mlir.validation import pair_of_texts
    from layoutproof.verify.settings import Settings, within

    kind, extents = "memref<400x400xf32>", (400, 400)
    print("| nest | copies | lines | verdict | seconds | lines a minute |")
    print("|---|---:|---:|---|---:|---:|")
    for called, statement in (("smoothing", _smoothing(kind)), ("stencil in place", _stencil(kind))):
        before = _nest(statement, extents, (1, 1))
        sides = [("tiled by 20 x 20", 1, _nest(statement, extents, (1, 1), 20))] if called == "smoothing" else []
        for rows, columns in ((1, 1), (2, 2), (4, 4), (8, 8), (10, 10), (16, 16), (20, 20)):
            unrolled = _nest(statement, extents, (rows, columns))
            sides.append((f"unrolled {rows} x {columns}", rows * columns, unrolled))
        for name, copies, after in sides:
            start = time.process_time()
            with within(Settings(allowed=frozenset())):
                found = pair_of_texts((("before.mlir", before), ("after.mlir", after)), ("f", "f")).compared()
            seconds = time.process_time() - start
            lines = before.count("\n") + after.count("\n")
            rate = 60 * lines / seconds
            row = f"| {called}, {name} | {copies} | {lines:,} | {found.status.value} | {seconds:.2f} | {rate:,.0f} |"
            print(row, flush=True)


def selected(folder: Path, only: str, key: str) -> list[tuple[str, str]]:
    """The pairs of a folder whose names contain `only`, and the verdict that is wanted of each."""
    pairs = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [(pair["id"], pair.get(key, pair["wanted"])) for pair in pairs if only in pair["id"]]


def confirmed(folder: Path, name: str) -> str:
    """The verdict on a pair that is refuted, with what LLVM's runs on the counterexample's input say."""
    from tests.oracle.mlir_confirm import NotRun, confirm

    try:
        return "refuted, which LLVM's runs confirm" if confirm(folder / f"{name}.before.mlir")[1] else "refuted"
    except NotRun:
        return "refuted"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--nests", action="store_true", help="measure nests that are tiled and unrolled")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--confirm", action="store_true", help="have LLVM run what is refuted against what is wanted")
    parser.add_argument("--reals", action="store_true", help="allow all fast-math assumptions; wanted_reassoc counts")
    given = parser.parse_args()
    if given.nests:
        measure_nests()
        return 0
    if given.folder is None:
        parser.error("the folder of the pairs is missing")
    fast_math = frozenset(ALL) if given.reals else frozenset()
    import layoutproof.importers.mlir.validation  # loaded once, for all forks
    import layoutproof.importers.mlir.xdsl_reader  # noqa: F401  # loaded once, for all forks

    count: Counter[tuple[str, str]] = Counter()
    wrong = []
    ask = Judge(given.folder, fast_math, given.limit)
    for name, wanted in selected(given.folder, given.only, "wanted_reassoc" if given.reals else "wanted"):
        start = time.monotonic()
        got, why = ask(name)
        if given.confirm and (wanted, got) == ("proved", "refuted"):
            got = confirmed(given.folder, name)
        count[wanted, got] += 1
        if (wanted, got) in (("proved", "refuted"), ("refuted", "proved")):
            wrong.append(name)
        if given.list:
            print(f"{got:9} wanted {wanted:8} {time.monotonic() - start:6.2f} s  {name}  {why[:200]}", flush=True)
    ask.end()
    for (want, got), number in sorted(count.items()):
        print(f"wanted {want}, got {got}: {number}")
    for name in wrong:
        print("WRONG:", name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
