"""Judge the pairs of a folder, each in a process of its own, and count the verdicts against those that are wanted.

    python -m benchmarks.mlir_pairs FOLDER [--only SUBSTRING] [--limit SECONDS] [--list]

The folder has NAME.before.mlir, NAME.after.mlir and manifest.json: a list of objects with `id`, `wanted` ("proved",
"refuted" or "any") and perhaps `wanted_reassoc`. Exit code 1 if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.values.fast_math import ALL


def judge(folder: Path, name: str, licences: frozenset[str], answer: Connection) -> None:
    """Send the verdict and a reason."""
    from layoutproof.importers.mlir.validation import compare_files
    from layoutproof.verify.settings import Settings, within

    try:
        with within(Settings(allowed=licences)):
            ((_, found),) = compare_files(folder / f"{name}.before.mlir", folder / f"{name}.after.mlir")
        answer.send((found.status.value, " | ".join(str(found.verdicts[0].reason).splitlines()[:3])))
    except LayoutproofError as problem:
        answer.send(("error", problem.diagnostics[0].message))


def _one(folder: Path, name: str, licences: frozenset[str], limit: float) -> tuple[str, str]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)
    job = context.Process(target=judge, args=(folder, name, licences, theirs))
    job.start()
    theirs.close()
    try:
        found: tuple[str, str] = ours.recv() if ours.poll(limit) else ("time", "")
    except EOFError:
        found = ("died", "")
    job.kill()
    job.join()
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--reals", action="store_true", help="allow all fast-math assumptions; wanted_reassoc counts")
    given = parser.parse_args()
    licences = frozenset(ALL) if given.reals else frozenset()
    import layoutproof.importers.mlir.validation  # loaded once, for all forks
    import layoutproof.importers.mlir.xdsl_reader  # noqa: F401

    count: Counter[tuple[str, str]] = Counter()
    wrong = []
    for pair in json.loads((given.folder / "manifest.json").read_text(encoding="utf-8")):
        name, wanted = pair["id"], pair["wanted"]
        if given.reals:
            wanted = pair.get("wanted_reassoc", wanted)
        if given.only not in name:
            continue
        start = time.monotonic()
        got, why = _one(given.folder, name, licences, given.limit)
        count[wanted, got] += 1
        if (wanted, got) in (("proved", "refuted"), ("refuted", "proved")):
            wrong.append(name)
        if given.list:
            print(f"{got:9} wanted {wanted:8} {time.monotonic() - start:6.2f} s  {name}  {why[:200]}", flush=True)
    for (want, got), number in sorted(count.items()):
        print(f"wanted {want}, got {got}: {number}")
    for name in wrong:
        print("WRONG:", name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
