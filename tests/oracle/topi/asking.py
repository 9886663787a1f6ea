"""What `compare` says of pairs that TVM made, each in a process of its own with a limit of time.

`python -m tests.oracle.topi.asking FILE --limit 60` reads lines of JSON as `pairs` prints them, and prints counts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare

Answer = tuple[str, str]
"""A verdict (`unread` is one, and `time`), and its reason."""


def ask(pair: Mapping[str, Any]) -> Answer:
    """What is said of a pair."""
    try:
        before, after = loads(pair["before"]), loads(pair["after"])
    except LayoutproofError as problem:
        return "unread", str(problem)
    try:
        found = compare(before, after)
    except LayoutproofError as problem:
        return "refused", str(problem)
    return found.status.value, str(found)


def ask_all(
    pairs: Sequence[Mapping[str, Any]], limit: float, workers: int
) -> Iterator[tuple[Mapping[str, Any], Answer, float]]:
    """The answers as they come."""
    context = multiprocessing.get_context("fork")
    waiting = list(reversed(pairs))
    running: list[tuple[Mapping[str, Any], ForkProcess, Connection, float]] = []
    while waiting or running:
        while waiting and len(running) < workers:
            pair = waiting.pop()
            ours, theirs = context.Pipe(False)
            process = context.Process(target=_answer, args=(pair, theirs))
            process.start()
            theirs.close()
            running.append((pair, process, ours, time.monotonic()))
        for each in list(running):
            pair, process, ours, start = each
            spent = time.monotonic() - start
            if not ours.poll(0.05) and spent < limit:
                continue
            try:
                answer: Answer = ours.recv() if ours.poll() else ("time", f"{limit:g} s")
            except EOFError:
                answer = "died", ""
            process.kill()
            process.join()
            ours.close()
            running.remove(each)
            yield pair, answer, spent


def _answer(pair: Mapping[str, Any], out: Connection) -> None:
    out.send(ask(pair))


def tables(answered: Sequence[tuple[Mapping[str, Any], str]]) -> str:
    """Counts of verdicts by family, and by step that the pair has."""
    lines, verdicts = [], sorted({verdict for _, verdict in answered})
    for title, keys in (
        ("family", lambda p: [p["family"]]),
        ("step", lambda p: sorted(set(p["steps"]))),
        ("sizes", lambda p: ["symbolic" if p["symbolic"] else "numbers"]),
    ):
        counts: dict[str, Counter[str]] = {}
        for pair, verdict in answered:
            for key in keys(pair):
                counts.setdefault(key, Counter())[verdict] += 1
        lines.append(f"{title:40}" + "".join(f"{v:>10}" for v in verdicts))
        lines += [f"{key:40}" + "".join(f"{counts[key][v]:>10}" for v in verdicts) for key in sorted(counts)]
    total = Counter(verdict for _, verdict in answered)
    lines.append(f"{'all':40}" + "".join(f"{total[v]:>10}" for v in verdicts))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask about the pairs of a file; 1 if any is refuted."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.topi.asking")
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--answers", type=Path, help="where each answer goes, as a line of JSON")
    options = parser.parse_args(arguments)
    pairs = [json.loads(line) for line in options.file.read_text().splitlines()]
    answered = []
    for pair, (verdict, why), spent in ask_all(pairs, options.limit, options.workers):
        answered.append((pair, verdict))
        if options.answers is not None:
            with options.answers.open("a") as out:
                out.write(json.dumps({**pair, "verdict": verdict, "why": why, "seconds": round(spent, 2)}) + "\n")
    print(tables(answered))
    return 1 if any(verdict == "refuted" for _, verdict in answered) else 0


if __name__ == "__main__":
    sys.exit(main())
