"""How long a full verdict on an index map takes: shape, injectivity, bijectivity, padding, count and inverse, from an
IndexMap in process.

`python -m benchmarks.bench_maps [-o TABLE.md]` writes one line per case of tests/data and the figures over all of them.
Nothing is cached between calls; the cold figure is the first call of a fresh process, imports included. Where TVM is
installed (the extra `oracle`), the processor time of its `non_surjective_inverse` is taken beside ours, call by call;
it finds the inverse, the physical shape and the padding's predicate, without a proof.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_condition, parse_index_map, parse_shape
from layoutproof.ir.visit import free_variables
from layoutproof.verify.maps.check_map import check_map

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
LARGE = "lambda i, j: [(i*8192+j)//8 % 128, ((i*8192+j)//1024)*8 + (i*8192+j)%8]"
REPEATS = 51


@dataclass(frozen=True)
class Case:
    """One question, read once before the clock starts."""

    name: str
    group: str
    index_map: IndexMap
    shape: tuple[Any, ...]
    where: Any


@dataclass(frozen=True)
class Timing:
    """Seconds over all repeats of a case."""

    case: Case
    seconds: tuple[float, ...]
    engine: str

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)


def _case(name: str, group: str, text: str, shape: Sequence[int | str], where: str | None) -> Case:
    extents = parse_shape(", ".join(map(str, shape)) + ",")
    symbols = [v for e in extents for v in free_variables(e)]
    condition = None if where is None else parse_condition(where, symbols)
    return Case(name, group, parse_index_map(text, symbols=symbols), extents, condition)


def cases() -> list[Case]:
    """The data files' maps, concrete and symbolic, and the layout of 524,288 points."""
    found = [
        _case(c["name"], "usual", c["index_map"], c["shape"], None)
        for c in json.loads((DATA / "maps.json").read_text("utf-8"))
    ]
    symbolic = json.loads((DATA / "symbolic_maps.json").read_text("utf-8"))
    found += [_case(c["index_map"], "symbolic", c["index_map"], c["shape"], c["where"]) for c in symbolic]
    found.append(_case("524,288 points", "large", LARGE, [64, 8192], None))
    found.append(_case("524,288 points, n rows", "large", LARGE, ["n", 8192], None))
    return found


def measure(case: Case, repeats: int) -> Timing:
    """The full report, `repeats` times after one warm-up."""
    report = check_map(case.index_map, case.shape, case.where)
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        check_map(case.index_map, case.shape, case.where)
        seconds.append(perf_counter() - start)
    return Timing(case, tuple(seconds), report.injective.engine)


def against_tvm(repeats: int = REPEATS) -> str:
    """How many times longer a full verdict takes than TVM's inverse, where that finds one."""
    if find_spec("tvm") is None:
        return "TVM is not installed, so nothing is compared with it."
    from tvm.tirx import IndexMap as TheirMap

    found: list[tuple[float, str]] = []
    without: list[str] = []
    for entry in json.loads((DATA / "maps.json").read_text("utf-8")):
        case = _case(entry["name"], "usual", entry["index_map"], entry["shape"], None)
        try:
            theirs = TheirMap.from_func(eval(entry["index_map"]), index_dtype="int32")
            theirs.non_surjective_inverse(entry["shape"])
        except (RuntimeError, TypeError):
            without.append(case.name)
            continue
        ours, other = [], []
        for _ in range(repeats):
            start = process_time()
            check_map(case.index_map, case.shape, case.where)
            middle = process_time()
            theirs.non_surjective_inverse(entry["shape"])
            ours.append(middle - start)
            other.append(process_time() - middle)
        found.append((statistics.median(ours) / statistics.median(other), case.name))
    ratios = sorted(found)
    return (
        f"processor time over that of TVM's `non_surjective_inverse`, {len(found)} maps that it inverts: median "
        f"{statistics.median(ratio for ratio, _ in ratios):.2f}, least {ratios[0][0]:.2f} ({ratios[0][1]}), most "
        f"{ratios[-1][0]:.2f} ({ratios[-1][1]}). It inverts none of: {', '.join(without)}."
    )


def cold_start() -> float:
    """Seconds of one verdict in a fresh process, imports included, interpreter start excluded."""
    text = (
        "import time; s = time.perf_counter()\n"
        "from layoutproof.verify.maps.check_map import check_map\n"
        "check_map('lambda n, h, w, c: [n, c//4, h, w, c%4]', (2, 3, 5, 10))\n"
        "print(time.perf_counter() - s)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout)
        for _ in range(5)
    ]
    return statistics.median(runs)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(timings: Sequence[Timing]) -> str:
    """The figures as Markdown."""
    lines = ["| case | engine | median ms |", "|---|---|---|"]
    lines += [f"| {t.case.name} | {t.engine} | {1e3 * t.median:.3f} |" for t in timings]
    lines.append("")
    for group in ("usual", "symbolic", "large"):
        chosen = [t for t in timings if t.case.group == group]
        every = [s for t in chosen for s in t.seconds]
        middle = statistics.median(t.median for t in chosen)
        lines.append(
            f"{group}: median over cases {1e3 * middle:.3f} ms, p99 over all calls "
            f"{1e3 * percentile(every, 0.99):.3f} ms"
        )
    lines.append(against_tvm())
    lines.append(f"first verdict of a fresh process, imports included: {1e3 * cold_start():.0f} ms")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print or write the table."""
    parser = argparse.ArgumentParser(description="time full verdicts on index maps")
    parser.add_argument("-o", "--output", type=Path, help="write the table there instead of printing it")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args(arguments)
    text = table([measure(case, options.repeats) for case in cases()])
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
