"""Proof entries checked again: derived by the checker from their texts, run by the interpreter, and asked of two
solvers.

An entry's own claims are not trusted. One that the checker does not confirm is wrong; one that only a time limit or a
missing solver prevents from being confirmed is unconfirmed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.lowering.proof_cache.entries import Clock, ProofEntry, certificate_of, is_storable
from layoutproof.verify.certificate.certificate import Certificate, Derived, Obligation, derive
from layoutproof.verify.certificate.reading import Kind, Reading, broken, read_certificate
from layoutproof.verify.certificate.recheck import SECONDS, EngineReport, FileReport, Told, recheck, unwatched
from layoutproof.verify.settings import settings, within
from layoutproof.verify.values.fast_math import FastMath
from layoutproof.verify.verdict.verdict import Status, Verdict

Entry = tuple[str, Mapping[str, Any]]


class Found(StrEnum):
    """The result for an entry."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True, slots=True)
class Checked:
    """One entry, checked again. `questions` counts its queries, `confirmed` those that two solvers confirmed."""

    key: str
    found: Found
    claims: int
    questions: int
    confirmed: int
    problems: tuple[str, ...]
    exceptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """All entries, in order, and the results of each solver."""

    entries: tuple[Checked, ...]
    engines: tuple[EngineReport, ...]

    def of(self, found: Found) -> tuple[Checked, ...]:
        """The entries with that result."""
        return tuple(entry for entry in self.entries if entry.found is found)


def verify_entries(
    entries: Iterable[Entry],
    engines: dict[str, str],
    *,
    jobs: int = 1,
    seconds: float = SECONDS,
    watched: Callable[[int], AbstractContextManager[Told]] = unwatched,
) -> Verification:
    """Check proof entries again, with two solvers by name and version, or none: checker and interpreter only."""
    with tempfile.TemporaryDirectory(prefix="layoutproof-") as folder:
        paths = [_written(Path(folder), key, entry) for key, entry in entries]
        read = partial(read_entry, asking=bool(engines))
        report = recheck(paths, engines, jobs=jobs, seconds=seconds, watched=watched, read=read)
    return Verification(tuple(map(_checked, report.files)), report.engines)


def _written(folder: Path, key: str, entry: Mapping[str, Any]) -> Path:
    path = folder / f"{key}.json"
    path.write_text(json.dumps(entry), encoding="ascii")
    return path


def _checked(file: FileReport) -> Checked:
    wrong = file.is_broken or file.status is Status.REFUTED
    found = Found.WRONG if wrong else Found.UNCONFIRMED if file.status is Status.UNKNOWN else Found.RIGHT
    key = Path(file.path).stem
    problems, exceptions = (
        [text.replace(f"{file.path}: ", "") for text in texts] for texts in (file.problems, file.exceptions)
    )
    return Checked(key, found, file.claims, file.questions, file.confirmed, tuple(problems), tuple(exceptions))


def read_entry(path: Path, asking: bool = True) -> Reading:
    """An entry's file, derived again; without `asking` there are no queries for solvers."""
    entry = json.loads(path.read_bytes())
    clock = Clock()
    try:
        proof = ProofEntry.of(entry)
        if not is_storable((*entry.get("obligations", ()), *entry.get("refused", ()))):
            return broken(
                str(path), ["the clock had a part in it, or a solver's death; such an entry is not to be kept"]
            )
        if proof.key not in (None, path.stem):
            return broken(str(path), [f"it is an answer to another question, whose key is {proof.key}"])
        with within(replace(settings(), budget_scale=proof.budget_scale)):
            reading = _certain(path, entry, proof) if proof.is_certain else _open(path, proof)
    except LayoutproofError as problem:
        return broken(str(path), [diagnostic.render() for diagnostic in problem.diagnostics])
    except ValueError as problem:
        return broken(str(path), [f"it is of another form: {problem}"])
    if (reading.is_broken or reading.status is Status.REFUTED) and clock.struck:
        reading.kind, reading.status = Kind.REWRITE, Status.UNKNOWN
        reading.problems.append(
            "a solver was stopped by the clock, or died; another time it may come out as it was stored"
        )
    if not asking:
        reading.questions.clear()
    return reading


def _certain(path: Path, entry: Mapping[str, Any], proof: ProofEntry) -> Reading:
    """A proved entry, read as a certificate."""
    derived: list[Derived] = []
    reading = read_certificate(str(path), Certificate.of_document(certificate_of(entry).document, str(path)), derived)
    (step,) = derived
    difference = _difference(proof, step.obligations)
    return reading if difference is None else broken(str(path), [difference])


def _open(path: Path, proof: ProofEntry) -> Reading:
    """A refuted or undecided entry: the checker, which runs each counterexample, must confirm it."""
    derived = derive(proof.text, "the entry", frozenset(FastMath(word) for word in proof.fast_math))
    difference = _difference(proof, derived.obligations)
    if difference is not None:
        return broken(str(path), [difference])
    return Reading(str(path), Kind.REWRITE, claims=len(proof.verdicts))


def _difference(proof: ProofEntry, derived: Sequence[Obligation]) -> str | None:
    """The first claim on which the checker and the entry differ; None if there is none.

    The number of times that a claim occurs does not count: one claim of several places on one line of the user's file
    occurs once there.
    """
    confirmed = set[int]()
    for now in derived:
        same = [k for k, stored in enumerate(proof.verdicts) if _is_same(stored, now, proof.searched)]
        if not same:
            return f"an obligation is missing, or is another one: {now.claim} ({now.status.value} when derived again)"
        confirmed.update(same)
    extra = next((stored for k, stored in enumerate(proof.verdicts) if k not in confirmed), None)
    return None if extra is None else f"the checker does not say so: {extra.claim} ({extra.status.value})"


def _is_same(stored: Verdict, now: Obligation, searched: bool) -> bool:
    """Whether two verdicts differ in nothing but the positions that their claims name."""
    # Where no counterexample was looked for, one may have been found now.
    same = stored.status is now.status or (
        not searched and (stored.status, now.status) == (Status.UNKNOWN, Status.REFUTED)
    )
    return same and stored.strictness == now.strictness and stored.claim.key == now.claim.key
