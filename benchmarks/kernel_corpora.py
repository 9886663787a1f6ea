"""Where the steps come from whose share `kernel_share` tells: rewrites, certificates, pairs of programs, traces beside
their programs, and the schedules that are measured elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lowering.compare.pairs import COMPARE, UPSTREAM, named, pairs, upstream
from tests.lowering.loops.cases import CASES
from tests.tree import ROOT

import layoutproof
from layoutproof.importers.mlir.validation import compare_files
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.lowering.kernels import reference
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.certificate.certificate import FORMAT, fast_math_of, text_of_lines
from layoutproof.verify.certificate.reading import allowed_by
from layoutproof.verify.certificate.sealed_files import read_whole
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.verdict.verdict import Status

ACCEPTED, EXAMPLES = ROOT / "proofs" / "accepted", ROOT / "examples"
_BEFORE = ".before"
_REFERENCES: Mapping[str, Callable[[], Schedule]] = {
    "matmul": lambda: reference.matmul(100, 200, 64),
    "row_sum": lambda: reference.row_sum(100, 70),
    "row_max": lambda: reference.row_max(100, 70),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Something with steps, by where it is: a kind of `_READERS`, and what finds it."""

    corpus: str
    kind: str
    name: str

    def records(self) -> Sequence[StepRecord]:
        """The steps; none where nothing is proved. Raises LayoutproofError for what cannot be read."""
        return _READERS[self.kind](self.name)


def own_subjects() -> Iterator[Subject]:
    """What the repository has: accepted rewrites, examples, the measured schedules and upstream's pairs."""
    yield from subjects_at(ACCEPTED)
    yield from subjects_at(EXAMPLES)
    for name in _REFERENCES:
        yield Subject("schedules", "reference", name)
    for name in CASES:
        for sizes in ("some", "every"):
            yield Subject("schedules", "case", f"{name} {sizes}")
    for pair in upstream():
        yield Subject("pairs", "upstream", pair.name)
    for folder in ("must", "hand", "kinds"):
        for pair in pairs(folder):
            if pair.expect == Status.PROVED.value:
                yield Subject("compared", "compared", f"{folder} {pair.name}")


def subjects_at(path: Path) -> Iterator[Subject]:
    """What a file or folder has: texts of rewrites, certificates, pairs NAME.before.* and NAME.after.*, and traces
    NAME.json with a program programs/NAME.py beside them. Other files are passed over.
    """
    corpus = path.name if path.is_dir() else path.parent.name
    for file in sorted(path.iterdir()) if path.is_dir() else (path,):
        kind = _kind(file) if file.is_file() else None
        if kind is not None:
            yield Subject(corpus, kind, str(file))


def _kind(file: Path) -> str | None:
    if file.stem.endswith(_BEFORE) and _after(file).exists():
        return "pair"
    if file.suffix == ".json":
        if _program(file).exists():
            return "trace"
        return "certificate" if FORMAT in file.read_text(encoding="utf-8", errors="replace")[:4000] else None
    text = file.read_text(encoding="utf-8") if file.suffix == ".py" else ""
    return "rewrite" if "def before(" in text and "def after(" in text else None


def _after(file: Path) -> Path:
    return file.with_name(f"{file.stem.removesuffix(_BEFORE)}.after{file.suffix}")


def _program(file: Path) -> Path:
    return file.parent / "programs" / f"{file.stem}.py"


def _rewrite(name: str) -> Sequence[StepRecord]:
    litmus = parse_litmus(Path(name).read_text(encoding="utf-8"), name)
    if litmus.header.expect not in (None, Status.PROVED.value):
        return ()
    return (StepRecord("rewrite", {}, litmus.rewrite, litmus.header.where, allowed_by(litmus.header.strictness)),)


def _certificate(name: str) -> Sequence[StepRecord]:
    document = json.loads(read_whole(Path(name)))
    found = []
    for number, step in enumerate(document.get("steps", ()), start=1):
        litmus = parse_litmus(text_of_lines(step["rewrite"]), f"{name}, step {number}")
        found.append(
            StepRecord(step["primitive"], step["arguments"], litmus.rewrite, litmus.header.where, fast_math_of(step))
        )
    return found


def _pair(name: str) -> Sequence[StepRecord]:
    if Path(name).suffix == ".mlir":
        return [record for _, found in compare_files(Path(name), _after(Path(name))) for record in found.records]
    return layoutproof.compare(layoutproof.load(name), layoutproof.load(str(_after(Path(name))))).records


def _upstream(name: str) -> Sequence[StepRecord]:
    return named(upstream(), name).compared().records


def _compared(name: str) -> Sequence[StepRecord]:
    folder, _, pair = name.partition(" ")
    assert (COMPARE / folder).is_dir() and UPSTREAM.is_dir()
    return named(pairs(folder), pair).compared().records


def _trace(name: str) -> Sequence[StepRecord]:
    return _lowered(Schedule.replay(layoutproof.load(str(_program(Path(name)))), json.loads(Path(name).read_text())))


def _case(name: str) -> Sequence[StepRecord]:
    case, _, sizes = name.partition(" ")
    return _lowered(CASES[case].schedule(CASES[case].sizes if sizes == "some" else None))


def _lowered(schedule: Schedule) -> Sequence[StepRecord]:
    """The steps of a schedule and of its way to a flat program."""
    return (*schedule.records, *(step.record for step in schedule.lowering_steps))


_READERS: Mapping[str, Callable[[str], Sequence[StepRecord]]] = {
    "rewrite": _rewrite,
    "certificate": _certificate,
    "pair": _pair,
    "upstream": _upstream,
    "compared": _compared,
    "trace": _trace,
    "case": _case,
    "reference": lambda name: _lowered(_REFERENCES[name]()),
}
