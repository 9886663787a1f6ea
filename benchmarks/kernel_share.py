"""How much the kernel accepts: of each kind of claim the share, what is missing by reason, time and size.

    python -m benchmarks.kernel_share [--json FILE] [--workers N] [--quick] [--sample N] [--save FOLDER] [PATH ...]

Without paths: proofs/accepted, the examples, the schedules that are measured, and the pairs under tests/data. A path is
a rewrite, a certificate, or a folder with them, with pairs NAME.before.* and NAME.after.*, or with traces beside
programs. Evidence is looked for anew, also where a certificate has some. `--save` writes each proved step as a rewrite,
so that it need not be found again. `--quick` takes it from the schedule that a step is proved, and times no check.
`--sample` takes so many subjects of each corpus, the same ones for a seed; `--log` notes what is measured, and
is gone on with.

Of a step that the kernel does not read, the checker's own claims are counted, none of them accepted.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.kernel_corpora import Subject, own_subjects, subjects_at
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.certificate.certificate import Derived, derive, query_dict, query_id, text_of
from layoutproof.verify.certificate.finder.kernel_evidence import find_evidence
from layoutproof.verify.certificate.sealed_files import REFUTATIONS, Document
from layoutproof.verify.kernel.evidence import JudgedStep, judge_certificate
from layoutproof.verify.kernel.judge import Judged
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.verdict.verdict import Status

GROUPS: Mapping[str, str] = {
    "cells": "index map, cell",
    "witness": "index map, cell",
    "within-buffer": "bounds",
    "within-memory": "bounds",
    "within-domain": "bounds",
    "no-race": "race",
    "has-result": "trap",
    "fits": "trap",
    "sizes-fit": "trap",
    "same-end": "dataflow",
    "defined-read": "dataflow",
    "same-value": "value",
    "padding-postcondition": "value",
    "interface": "interface",
    "records": "interface",
    "off-padding": "interface",
    "assumption": "assumption",
    "runs": "assumption",
}
OTHER = "form"
ORDER = (*dict.fromkeys(GROUPS.values()), OTHER)
_BEGINS = "begins"
_UNREAD = "understood"


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim; `reason` says why the kernel rejects it, if it does."""

    group: str
    text: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step that the checker proves."""

    name: str
    is_read: bool
    claims: tuple[Claim, ...]

    @property
    def is_accepted(self) -> bool:
        """Whether the kernel accepts all of it."""
        return all(claim.reason is None for claim in self.claims)


@dataclass(frozen=True, slots=True)
class Measured:
    """All steps of a schedule, seconds of the processor, and bytes: of the certificate, compressed, and of what in it
    is there for the kernel. `problem`: why there are no steps, `open`: steps that the checker does not prove.
    """

    corpus: str
    name: str
    steps: tuple[Step, ...] = ()
    checking: float = 0.0
    finding: float = 0.0
    judging: float = 0.0
    bytes: int = 0
    kernel_bytes: int = 0
    open: int = 0
    problem: str | None = None


def measured(subject: Subject, quick: bool = False) -> Measured:
    """Find the steps of a subject, check them, find evidence, and have the kernel judge it."""
    name = Path(subject.name).name
    try:
        records = subject.records()
    except LayoutproofError as problem:
        return Measured(subject.corpus, name, problem=str(problem).splitlines()[0])
    return judged(subject.corpus, name, records, quick)


def judged(corpus: str, name: str, records: Sequence[StepRecord], quick: bool = False) -> Measured:
    """The steps with the kernel's judgement on what a certificate of them has."""
    start = time.process_time()
    texts = [text_of(record.rewrite, record.where) for record in records]
    pairs = list(zip(texts, records, strict=True))
    derived = [None if quick else derive(text, name, record.allowed) for text, record in pairs]
    checking, start = 0.0 if quick else time.process_time() - start, time.process_time()
    steps, refutations = list[Document](), dict[str, object]()
    for text, record in pairs:
        evidence, proofs = find_evidence(text, record.allowed)
        refutations.update(proofs)
        fast_math = sorted(flag.value for flag in record.allowed)
        steps.append({"rewrite": text.split("\n"), "licences": fast_math, "kernel": evidence})
    finding, start = time.process_time() - start, time.process_time()
    given = {"steps": steps, REFUTATIONS: refutations}
    answers = judge_certificate(given)
    judging = time.process_time() - start
    derived = [
        derive(text, name, record.allowed) if quick and not _is_read(answer) else d
        for (text, record), answer, d in zip(pairs, answers, derived, strict=True)
    ]
    found = [
        _step(f"{name}, step {number}, {record.primitive}", answer, d)
        for number, (record, answer, d) in enumerate(zip(records, answers, derived, strict=True), start=1)
        if d is None or d.status is Status.PROVED
    ]
    known = [d for d in derived if d is not None]
    rest = [[o.to_dict() for o in d.obligations] for d in known], _queries(known)
    sizes = (_size([given, rest]), _size([[step["kernel"] for step in steps], refutations]))
    return Measured(corpus, name, tuple(found), checking, finding, judging, *sizes, len(records) - len(found))


def _queries(derived: Iterable[Derived]) -> Document:
    return {query_id(q): query_dict(q) for d in derived for o in d.obligations for q in o.queries}


def _size(data: object) -> int:
    return len(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9))


def _first(answer: JudgedStep) -> Judged | None:
    return next((claim for claim in answer.claims if claim.kind != _BEGINS), None)


def _is_read(answer: JudgedStep) -> bool:
    first = _first(answer)
    return first is not None and first.kind != _UNREAD


def _step(name: str, answer: JudgedStep, derived: Derived | None) -> Step:
    first = _first(answer)
    if derived is not None and not _is_read(answer):
        reason = f"not read: {first.reason if first is not None else 'nothing was judged'}"
        claims = [Claim(_group(o.claim.kind.value), o.claim.text, reason) for o in derived.obligations]
        return Step(name, False, tuple(claims))
    return Step(name, True, tuple(Claim(_group(c.kind), f"{c.kind}: {c.text}", c.reason) for c in answer.claims))


def _group(kind: str) -> str:
    return GROUPS.get(kind, OTHER)


_NAMES = re.compile(r"(?<=of )\w+(?=$|,| is| has| in| and)|^\w+(?= is | has )|\b\d+\b")


def reason_without_names(reason: str) -> str:
    """A reason without the names and numbers of one program, so that like ones are counted together."""
    first = reason.split("; ")
    return "; ".join(dict.fromkeys(_NAMES.sub("_", part) for part in first))[:200]


@dataclass
class Missing:
    """What a reason costs: claims, steps, and the first step that has it."""

    group: str
    reason: str
    claims: int = 0
    steps: set[str] = field(default_factory=set)
    example: str = ""


def missing(found: Sequence[Measured]) -> list[Missing]:
    """What is not accepted by kind and reason, the most claims first."""
    table: dict[tuple[str, str], Missing] = {}
    for one in found:
        for step in one.steps:
            for claim in step.claims:
                if claim.reason is not None:
                    key = claim.group, reason_without_names(claim.reason)
                    entry = table.setdefault(key, Missing(*key, example=f"{one.corpus}: {step.name}: {claim.text}"))
                    entry.claims += 1
                    entry.steps.add(step.name)
    return sorted(table.values(), key=lambda m: (-m.claims, m.reason))


def shares(found: Iterable[Measured]) -> dict[str, tuple[int, int]]:
    """By kind of claim, how many there are, and how many the kernel accepts."""
    counts, accepted = Counter[str](), Counter[str]()
    for claim in (claim for one in found for step in one.steps for claim in step.claims):
        counts[claim.group] += 1
        accepted[claim.group] += claim.reason is None
    return {group: (counts[group], accepted[group]) for group in ORDER if counts[group]}


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(found: Sequence[Measured], most: int) -> str:
    """The shares, what is missing, times and sizes, as Markdown."""
    corpora: dict[str, list[Measured]] = defaultdict(list)
    for one in found:
        corpora[one.corpus].append(one)
    names = [*corpora, *(["all"] if len(corpora) > 1 else [])]
    corpora["all"] = list(found)
    lines = [f"| claims | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    per_corpus = {name: shares(corpora[name]) for name in names}
    for group in ORDER:
        pairs = [per_corpus[name].get(group, (0, 0)) for name in names]
        lines.append(f"| {group} | {' | '.join(f'{a} of {n}, {_percent(a, n)}' for n, a in pairs)} |")
    sums = [tuple(map(sum, zip(*per_corpus[name].values(), strict=True))) or (0, 0) for name in names]
    lines.append(f"| all | {' | '.join(f'{a} of {n}, {_percent(a, n)}' for n, a in sums)} |")
    for what, count in (("whole steps", _whole_steps), ("steps that are read", _read_steps)):
        lines.append(f"| {what} | {' | '.join(count(corpora[name]) for name in names)} |")
    lines += ["", "| claims | steps | missing | reason | example |", "|---|---|---|---|---|"]
    for entry in missing(found)[:most]:
        lines.append(f"| {entry.claims} | {len(entry.steps)} | {entry.group} | {entry.reason} | {entry.example} |")
    return "\n".join([*lines, "", *_costs(names, corpora), "", *_unusual(found)]) + "\n"


def _whole_steps(of: Sequence[Measured]) -> str:
    steps = [step for one in of for step in one.steps]
    return f"{sum(step.is_accepted for step in steps)} of {len(steps)}"


def _read_steps(of: Sequence[Measured]) -> str:
    steps = [step for one in of for step in one.steps]
    return f"{sum(step.is_read for step in steps)} of {len(steps)}"


def _costs(names: Sequence[str], corpora: Mapping[str, Sequence[Measured]]) -> Iterable[str]:
    yield "| corpus | check s | kernel s | ratio | largest ratio | search s | largest file KB | for the kernel KB |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in names:
        of = [one for one in corpora[name] if one.steps]
        if of:
            checking, judging = sum(o.checking for o in of), sum(o.judging for o in of)
            slowest = max(of, key=_ratio)
            largest = max(of, key=lambda o: o.bytes)
            yield (
                f"| {name} | {checking:.1f} | {judging:.1f} | {judging / checking if checking else 0:.2f} "
                f"| {_ratio(slowest):.2f} ({slowest.name}) | {sum(o.finding for o in of):.1f} "
                f"| {largest.bytes / 1e3:.0f} ({largest.name}) | {largest.kernel_bytes / 1e3:.0f} |"
            )


def _ratio(one: Measured) -> float:
    return one.judging / one.checking if one.checking else 0.0


def _unusual(found: Sequence[Measured]) -> Iterable[str]:
    for one in found:
        if one.problem is not None:
            yield f"{one.corpus}: {one.name}: {one.problem}"
        elif one.open:
            yield f"{one.corpus}: {one.name}: {one.open} steps are not proved by the checker, and not counted"
    without = sum(not one.steps and one.problem is None for one in found)
    if without:
        yield f"without proved steps: {without} of {len(found)}"


def summary(found: Sequence[Measured]) -> Document:
    """The same as plain data."""
    return {
        "shares": {group: {"claims": n, "accepted": a} for group, (n, a) in shares(found).items()},
        "missing": [{**asdict(m), "steps": sorted(m.steps)} for m in missing(found)],
        "ratio": {
            "all": sum(o.judging for o in found) / max(sum(o.checking for o in found), 1e-9),
            "median": median([_ratio(o) for o in found if o.steps] or [0.0]),
        },
        "schedules": [asdict(one) for one in found],
    }


def save(subject: Subject, folder: Path) -> None:
    """Write the steps of a subject, those that are proved, as rewrites."""
    folder = folder / subject.corpus
    folder.mkdir(parents=True, exist_ok=True)
    for number, record in enumerate(subject.records(), start=1):
        name = re.sub(r"[^\w.]+", "_", Path(subject.name).stem)
        text = text_of(record.rewrite, record.where)
        (folder / f"{name}_{number}.py").write_text(text, encoding="utf-8")


def sampled(subjects: Iterable[Subject], most: int, seed: int) -> list[Subject]:
    """At most so many subjects of each corpus, in their order."""
    corpora: dict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        corpora[subject.corpus].append(subject)
    rng = Random(seed)
    return [
        subject
        for of in corpora.values()
        for _, subject in sorted(rng.sample(list(enumerate(of)), min(most, len(of))), key=lambda pair: pair[0])
    ]


def measured_all(subjects: Sequence[Subject], quick: bool, workers: int, log: Path | None) -> list[Measured]:
    """Each subject measured, or taken from the log."""
    done = dict[str, Measured]()
    for line in log.read_text(encoding="utf-8").splitlines() if log is not None and log.exists() else ():
        entry = json.loads(line)
        subject, steps = entry.pop("subject"), entry.pop("steps")
        read = (Step(s["name"], s["is_read"], tuple(Claim(**c) for c in s["claims"])) for s in steps)
        done[subject] = Measured(**entry, steps=tuple(read))
    left = [of for of in subjects if str(of) not in done]
    with ProcessPoolExecutor(workers) as pool:
        for of, found in zip(left, pool.map(partial(measured, quick=quick), left), strict=True):
            done[str(of)] = found
            if log is not None:
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"subject": str(of), **asdict(found)}) + "\n")
    return [done[str(of)] for of in subjects]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="print which share of claims the kernel accepts")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON, too")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--most", type=int, default=40, help="lines of what is missing")
    parser.add_argument("--only", default="", metavar="WORD", help="subjects whose name has this word")
    parser.add_argument("--quick", action="store_true", help="check no step that the kernel reads; no ratio of times")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N subjects of each corpus")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--log", type=Path, metavar="FILE", help="go on with what this file has, and add to it")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="only write the steps there, as rewrites")
    given = parser.parse_args(arguments)
    for path in given.paths:
        if not path.exists():
            parser.error(f"{path} does not exist")
    every = [s for path in given.paths for s in subjects_at(path)] if given.paths else list(own_subjects())
    subjects = [s for s in every if given.only in s.name]
    if given.sample is not None:
        subjects = sampled(subjects, given.sample, given.seed)
    if given.save is not None:
        for subject in subjects:
            save(subject, given.save)
        return 0
    found = measured_all(subjects, given.quick, given.workers, given.log)
    print(table(found, given.most), end="")
    if given.json is not None:
        given.json.write_text(json.dumps(summary(found), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
