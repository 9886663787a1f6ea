"""Proof entries checked again: derived by the checker from their texts, run by the interpreter, and asked of two solvers.

What an entry says of itself is not believed. One that the checker does not say again is wrong; one that only a clock, or a solver that is
missing, keeps from being said again is not confirmed.
"""

from __future__ import annotations

import json
import re
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
from layoutproof.verify.certificate.obligations import derive
from layoutproof.verify.certificate.reading import CERTIFICATE_ENDING, Kind, Reading, broken, read_file
from layoutproof.verify.certificate.recheck import SECONDS, EngineReport, FileReport, Told, recheck, unwatched
from layoutproof.verify.settings import settings, within
from layoutproof.verify.values.licences import Licence
from layoutproof.verify.verdict import Status

Entry = tuple[str, Mapping[str, Any]]
_LINE = re.compile(r"\bline \d+\b")
# As `verify.spot` names places.
_SOMEWHERE = "(?:line [0-9]+|in block .+|in the store to .+|at the loop .+|at `if .+`|where .+|in `.+`|in the body of the function)"
# A claim, its status and its licences.
_Said = tuple[str, str, tuple[str, ...]]


class Found(StrEnum):
    """What became of an entry."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCONFIRMED = "unconfirmed"


@dataclass(frozen=True, slots=True)
class Checked:
    """One entry, checked again. `questions` counts what solvers were asked of it, `confirmed` what two of them said again."""

    key: str
    found: Found
    claims: int
    questions: int
    confirmed: int
    problems: tuple[str, ...]
    exceptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """All entries, in order, and what each solver made of the questions."""

    entries: tuple[Checked, ...]
    engines: tuple[EngineReport, ...]

    def of(self, found: Found) -> tuple[Checked, ...]:
        """The entries of which that was found."""
        return tuple(entry for entry in self.entries if entry.found is found)


def verify_entries(
    entries: Iterable[Entry],
    engines: dict[str, str],
    *,
    jobs: int = 1,
    seconds: float = SECONDS,
    watched: Callable[[int], AbstractContextManager[Told]] = unwatched,
) -> Verification:
    """Check proof entries again, with solvers by name and version: two, or none, which leaves the checker and the interpreter."""
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
    problems, exceptions = ([text.replace(f"{file.path}: ", "") for text in texts] for texts in (file.problems, file.exceptions))
    return Checked(key, found, file.claims, file.questions, file.confirmed, tuple(problems), tuple(exceptions))


def read_entry(path: Path, asking: bool = True) -> Reading:
    """An entry's file, derived again; without `asking` no questions are left for solvers."""
    entry = json.loads(path.read_bytes())
    clock = Clock()
    try:
        proof = ProofEntry.of(entry)
        if not is_storable((*entry.get("obligations", ()), *entry.get("refused", ()))):
            return broken(str(path), ["the clock had a part in it, or a solver's death; such an entry is not to be kept"])
        if proof.key not in (None, path.stem):
            return broken(str(path), [f"it is an answer to another question, whose key is {proof.key}"])
        with within(replace(settings(), effort=proof.effort)):
            reading = _certain(path, entry, proof) if proof.is_certain else _open(path, proof)
    except LayoutproofError as problem:
        return broken(str(path), [diagnostic.render() for diagnostic in problem.diagnostics])
    except ValueError as problem:
        return broken(str(path), [f"it is of another form: {problem}"])
    if (reading.is_broken or reading.status is Status.REFUTED) and clock.struck:
        reading.kind, reading.status = Kind.REWRITE, Status.UNKNOWN
        reading.problems.append("a solver was stopped by the clock, or died; another time it may come out as it was stored")
    if not asking:
        reading.questions.clear()
    return reading


def _certain(path: Path, entry: Mapping[str, Any], proof: ProofEntry) -> Reading:
    """What is proved, as a certificate that is read as any other one is."""
    certificate = certificate_of(entry)
    (step,) = certificate.steps
    difference = _difference(proof, [(o["claim"], o["status"], tuple(o["strictness"])) for o in step["obligations"]])
    if difference is not None:
        return broken(str(path), [difference])
    place = path.with_name(path.stem + CERTIFICATE_ENDING)
    certificate.save(place)
    reading = read_file(place)
    reading.path = str(path)
    reading.problems[:] = [text.replace(f"{place}, step 1", "the entry").replace(f"{place}: ", "") for text in reading.problems]
    return reading


def _open(path: Path, proof: ProofEntry) -> Reading:
    """What is refuted or not decided: the checker, which runs each counterexample, must say so again."""
    derived = derive(proof.text, "the entry", frozenset(Licence(word) for word in proof.licences))
    difference = _difference(proof, [obligation.identity for obligation in derived.obligations])
    if difference is not None:
        return broken(str(path), [difference])
    return Reading(str(path), Kind.REWRITE, claims=len(proof.verdicts))


def _difference(proof: ProofEntry, derived: Sequence[_Said]) -> str | None:
    """What the checker says now and the entry does not, or the other way round; None where they say the same.

    How often a claim stands in either does not count: one claim of several places on one line of the user's file stands once there.
    """
    stored = [(verdict.claim, verdict.status.value, verdict.strictness) for verdict in proof.verdicts]
    confirmed = set[int]()
    for said in derived:
        same = [k for k, each in enumerate(stored) if _is_same(each, said, proof.searched)]
        if not same:
            return f"an obligation is missing, or is another one: {said[0]} ({said[1]} when derived again)"
        confirmed.update(same)
    extra = next((each for k, each in enumerate(stored) if k not in confirmed), None)
    return None if extra is None else f"the checker does not say so: {extra[0]} ({extra[1]})"


def _is_same(stored: _Said, derived: _Said, searched: bool) -> bool:
    status, now = stored[1], derived[1]
    # Where no counterexample was looked for, one may have been found now.
    same = status == now or (not searched and (status, now) == (Status.UNKNOWN.value, Status.REFUTED.value))
    return same and tuple(stored[2]) == tuple(derived[2]) and _is_same_claim(stored[0], derived[0])


def _is_same_claim(stored: str, derived: str) -> bool:
    """Whether two claims differ in nothing but how they name places: by a line of the entry's text, or of the user's file, or in words
    where the program was not read from a file.
    """
    if stored == derived:
        return True
    first, *rest = _LINE.split(derived)
    return stored.startswith(first) and re.fullmatch(_SOMEWHERE.join(map(re.escape, (first, *rest))), stored) is not None
