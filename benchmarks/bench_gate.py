"""How fast an autotuner's log is checked, cold and warm, and how much memory that takes: `layoutproof check DIR
--workers N` in processes of its own, first with an empty proof cache, then with the one that it left.

    python -m benchmarks.bench_gate --count 10000 --workers 2 [--format json] [-o TABLE.md]

The logs are those of `benchmarks.gate_traces`. Both runs must report the same, byte for byte. A report in JSON has
every step with all that was proved of it, some twelve kilobytes a schedule, which a warm run has to read and write.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gate_traces import write_logs
from benchmarks.process_memory import Run, watched

_MIB = 1 << 20
# The line of a text report that counts: `9,520 items: 52 refuted, 9,468 proved; 12 from the cache`.
_COUNT = re.compile(r"^[0-9,]+ items: (.+)$", re.MULTILINE)
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: its name, what `watched` saw, and its report."""

    name: str
    run: Run
    report: Path


def measure(name: str, logs: Path, folder: Path, workers: int, form: str) -> Measured:
    """Check the logs, with the proof cache in `folder`."""
    report = folder / f"{name}.report"
    options = [
        "--workers",
        str(workers),
        "--cache",
        str(folder / "proofs.sqlite"),
        "--stable",
        "--format",
        form,
        "-o",
        str(report),
    ]
    # Bytecode is kept, as it is where people install it.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    log = folder / f"{name}.log"
    run = watched([sys.executable, "-m", "layoutproof", "check", str(logs), *options], environment, log)
    if not report.exists():
        raise RuntimeError(
            f"the {name} run ended with {run.code} and wrote no report:\n{log.read_text(encoding='utf-8')[-2000:]}"
        )
    return Measured(name, run, report)


def verdicts(report: Path) -> Counter[str]:
    """How many outcomes there are of each verdict; `error` for schedules that do not apply."""
    text = report.read_text(encoding="utf-8")
    told = _COUNT.search(text)
    if told is None:
        return Counter(
            "error" if verdict is None else str(verdict)
            for verdict in (json.loads(line)["verdict"] for line in text.splitlines())
        )
    pairs = (part.split() for part in told[1].split(";")[0].split(", "))
    return Counter(
        {"error" if verdict == "errors" else verdict: int(count.replace(",", "")) for count, verdict in pairs}
    )


def table(measured: Sequence[Measured]) -> str:
    """The figures as Markdown."""
    return "\n".join(_lines(measured)) + "\n"


def _lines(measured: Sequence[Measured]) -> Iterator[str]:
    counts = verdicts(measured[0].report)
    total = sum(counts.values())
    yield f"{total:,} schedules: " + ", ".join(
        f"{count:,} {verdict}" for verdict, count in sorted(counts.items(), key=lambda c: -c[1])
    )
    yield ""
    yield (
        "| run | seconds | schedules a second | main process, peak MiB | largest worker, peak MiB | all workers, "
        "peak MiB |"
    )
    yield "|---|---|---|---|---|---|"
    for each in measured:
        samples = each.run.samples
        peaks = (max(s.main for s in samples), max(s.largest for s in samples), max(s.below for s in samples))
        # A run of a fifth of a second ends before it is looked at.
        numbers = " | ".join(f"{peak / _MIB:.0f}" if peak else "none seen" for peak in peaks)
        yield f"| {each.name} | {each.run.seconds:.1f} | {total / each.run.seconds:,.0f} | {numbers} |"
    yield ""
    yield f"warm over cold: {measured[0].run.seconds / measured[-1].run.seconds:.0f} times as fast"
    yield (
        "memory over time, MiB, main process and largest worker, when "
        + ", ".join(f"{share:.0%}" for share in _SHARES)
        + " had passed:"
    )
    for each in measured:
        pairs = ((each.run.main_at(share) / _MIB, each.run.largest_at(share) / _MIB) for share in _SHARES)
        yield f"{each.name}: " + ", ".join(f"{main:.0f} and {worker:.0f}" for main, worker in pairs)


def both(folder: Path, logs: Path, workers: int = 2, form: str = "text") -> tuple[str, bool]:
    """Logs checked cold and warm: the table, and whether the two runs report the same."""
    measured = [measure(run, logs, folder, workers, form) for run in ("cold", "warm")]
    same = measured[0].report.read_bytes() == measured[1].report.read_bytes()
    return table(measured) + ("" if same else "The two reports are not the same.\n"), same


def measured_table(count: int, seed: int = 0) -> str:
    """The table of `count` schedules, which are made for it."""
    with tempfile.TemporaryDirectory() as name:
        logs = Path(name) / "logs"
        write_logs(logs, count, seed)
        return both(Path(name), logs)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print or write the table; 1 where the two runs do not report the same."""
    parser = argparse.ArgumentParser(description="time the checking of an autotuner's log, cold and warm")
    parser.add_argument("--count", type=int, default=1_000, help="schedules, over all operators")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--format", dest="form", choices=("text", "json"), default="text", help="the form of the reports"
    )
    parser.add_argument("--logs", type=Path, help="a folder of logs that is there already")
    parser.add_argument("-o", "--output", type=Path, help="write the table there instead of printing it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = options.logs
        if logs is None:
            logs = folder / "logs"
            write_logs(logs, options.count, options.seed)
        text, same = both(folder, logs, options.workers, options.form)
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
