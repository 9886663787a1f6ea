"""One file under `proofs/`, or elsewhere, read and derived again: a certificate, lemmas, or a rewrite with its expected
verdict. The result has its claims, its problems, and its questions to solvers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.certificate import certificate as certificates
from layoutproof.verify.certificate import lemmas
from layoutproof.verify.certificate.certificate import (
    Certificate,
    Derived,
    Obligation,
    asked,
    derive,
    fast_math_of,
    identity_of,
    query_id,
    text_of_lines,
    versions,
)
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text
from layoutproof.verify.certificate.kernel_reading import judge_document
from layoutproof.verify.certificate.lemmas import LemmaFile
from layoutproof.verify.certificate.sealed_files import Document, from_bytes, read_whole
from layoutproof.verify.flow.simulate import ENGINE as DATAFLOW
from layoutproof.verify.kernel.evidence import JudgedStep
from layoutproof.verify.lockstep.identity import prove_identity
from layoutproof.verify.program.questions import SmtQuery
from layoutproof.verify.replay.refute import Budget, check_rewrite, find_counterexample
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Status, Verdict


def check_expectation(text: str, name: str) -> Iterator[tuple[Status, str]]:
    """What is not as the text says, with its status. Raises LayoutproofError for a text that is no rewrite.

    A wrong program that is proved is as bad as a right one that is refuted.
    """
    litmus = parse_litmus(text, name)
    header = litmus.header
    verdicts = check_rewrite(litmus.rewrite, header.where, allowed=allowed_by(header.strictness))
    found = worst(verdict.status for verdict in verdicts)
    if found is not Status.PROVED and prove_identity(litmus.rewrite) is not None:
        found = Status.PROVED
    if header.expect is None:
        if found is not Status.PROVED:
            yield found, f"{name} is {found.value}: {_why(verdicts, found)}"
        return
    if found.value != header.expect:
        decided = {Status.PROVED, Status.REFUTED}
        bad = Status.REFUTED if found in decided and header.expect in {s.value for s in decided} else Status.UNKNOWN
        yield bad, f"{header.expect} is expected, the checker says {found.value}: {_why(verdicts, found)}"
        return
    needed = sorted({flag for verdict in verdicts for flag in verdict.strictness})
    if found is Status.PROVED and header.strictness is not None and needed != sorted(header.strictness):
        yield (
            Status.UNKNOWN,
            f"a proof under {_words(header.strictness)} is expected, the one found needs {_words(needed)}",
        )


def allowed_by(strictness: Sequence[str] | None) -> FastMathSet:
    """The fast-math assumptions that a header allows, all by default."""
    return ALL if strictness is None else frozenset(FastMath(word) for word in strictness)


def _words(fast_math: Sequence[str]) -> str:
    return " ".join(fast_math) if fast_math else "no fast-math assumptions"


def _why(verdicts: Sequence[Verdict], status: Status) -> str:
    first = next((verdict for verdict in verdicts if verdict.status is status), None)
    if first is None or status is Status.PROVED:
        return f"all {len(verdicts)} obligations hold"
    return first.claim.text if first.reason is None else f"{first.claim}: {first.reason.splitlines()[0]}"


_TRIES = Budget(instances=200_000, runs=30)


class Kind(StrEnum):
    """The kinds of files."""

    CERTIFICATE = "certificate"
    BY_SENTENCES = "certificate of version 1"  # its claims are derived again, and not compared with those written
    LEMMAS = "lemmas"
    REWRITE = "rewrite"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class StepReading:
    """One step, or one rewrite: its `queries`, whether it has claims without one, and what the kernel says of it; none
    if it was not asked.
    """

    name: str
    status: Status
    queries: tuple[SmtQuery, ...]
    has_exceptions: bool
    judged: JudgedStep


@dataclass(slots=True)
class Reading:
    """A file, its claims and its `questions` (claim and query); `status` is what is known before solvers are asked.

    `problems` are sentences, `exceptions` what rests on one engine by name.
    """

    path: str
    kind: Kind
    status: Status = Status.PROVED
    claims: int = 0
    problems: list[str] = field(default_factory=list)
    exceptions: list[str] = field(default_factory=list)
    questions: list[tuple[str, SmtQuery]] = field(default_factory=list)
    steps: list[StepReading] = field(default_factory=list)

    @property
    def is_broken(self) -> bool:
        """Whether the file is not what it should be, so that nothing in it counts."""
        return self.kind is Kind.BROKEN

    def fail(self, status: Status, problem: str) -> None:
        """Something is not as it should be."""
        self.status = worst((self.status, status))
        self.problems.append(problem)


def read_file(path: Path) -> Reading:
    """Read one file and derive again what can be derived; problems are in the result."""
    try:
        data = read_whole(path)
        if data.lstrip()[:1] == b"{" or path.suffix == ".json":
            return _sealed(str(path), from_bytes(data, str(path)))
        return check_expectation_file(str(path), data)
    except LayoutproofError as problem:
        return broken(str(path), [diagnostic.render() for diagnostic in problem.diagnostics])


def broken(path: str, problems: Sequence[str]) -> Reading:
    """A file that is not what it should be."""
    return Reading(path, Kind.BROKEN, problems=list(problems))


def _sealed(path: str, document: Document) -> Reading:
    if document.get("format") == lemmas.FORMAT:
        return _not_empty(_lemmas(path, LemmaFile.of_document(document, path)))
    if document.get("format") == certificates.FORMAT:
        return _not_empty(read_certificate(path, Certificate.of_document(document, path)))
    return broken(path, [f"{path} is of the form {document.get('format')!r}, which is not known"])


def _not_empty(reading: Reading) -> Reading:
    """The reading; one of nothing proves nothing, though nothing in it is wrong."""
    if not reading.claims and not reading.is_broken:
        reading.fail(Status.VACUOUS, f"{reading.path} claims nothing")
    return reading


def _lemmas(path: str, file: LemmaFile) -> Reading:
    reading = Reading(path, Kind.LEMMAS, claims=len(file.lemmas))
    for lemma in file.lemmas:
        reading.questions += [(f"{lemma.name}: {lemma.claim}", query) for query in lemma.queries]
        reading.exceptions += [f"{lemma.name}: {what}: {reason}" for what, reason in lemma.exceptions]
        if lemma.status not in (Status.PROVED, Status.REFUTED):
            reading.fail(lemma.status, f"{lemma.name} is {lemma.status.value}")
        if not lemma.queries and not lemma.exceptions:
            reading.fail(Status.UNKNOWN, f"{lemma.name}: {lemma.claim}: nothing is asked, and no reason given")
    return reading


def read_certificate(path: str, certificate: Certificate, steps: list[Derived] | None = None) -> Reading:
    """A certificate derived again; the results of each step are appended to `steps`.

    Raises LayoutproofError where the checker does not agree with it.
    """
    kind = Kind.BY_SENTENCES if certificate.knows_by_sentences else Kind.CERTIFICATE
    reading = Reading(path, kind, certificate.status)
    judged = judge_document(certificate.document)
    last = None
    for number, step in enumerate(certificate.steps, start=1):
        derived = derive(text_of_lines(step["rewrite"]), f"{path}, step {number}", fast_math_of(step))
        if last is not None and derived.rewrite.old != last:
            raise _differs(path, f"step {number} does not begin with the program that the one before ends with")
        last = derived.rewrite.new
        if steps is not None:
            steps.append(derived)
        before = len(reading.questions), len(reading.exceptions)
        _compare(reading, certificate, number, derived)
        if derived.status is Status.PROVED:
            _run(reading, number, derived)
        asked_here = tuple(query for _, query in reading.questions[before[0] :])
        name, alone = f"step {number}, {step['primitive']}", len(reading.exceptions) > before[1]
        reading.steps.append(
            StepReading(name, derived.status, asked_here, alone, judged[number - 1] if judged else JudgedStep(()))
        )
    return reading


def _compare(reading: Reading, certificate: Certificate, number: int, derived: Derived) -> None:
    """The claims and questions of a step, as written and as derived. Raises LayoutproofError where they differ."""
    path, step = reading.path, certificate.steps[number - 1]
    queries, same_tools = certificate.queries, made_here(certificate.document)
    name = f"step {number}, {step['primitive']}"
    if certificate.knows_by_sentences:
        reading.claims += len(derived.obligations)
        every = {q: queries[q] for entry in step["obligations"] for q in entry["queries"]}
        every.update({query_id(query): query for obligation in derived.obligations for query in obligation.queries})
        reading.questions += [(name, query) for query in every.values()]
        reading.exceptions += [f"{name}: {o.claim}: {w}: {r}" for o in derived.obligations for w, r in o.unwritten]
        if derived.status is not Status.PROVED:
            reading.fail(derived.status, f"{name} is {derived.status.value}")
        return
    if [assumption.to_dict() for assumption in derived.assumptions] != step["assumptions"]:
        raise _differs(path, f"{name}: what it rests on is not what it says")
    difference = _difference(step["obligations"], derived.obligations)
    if difference is not None:
        raise _differs(path, f"{name}: {difference}")
    for entry, obligation in zip(
        sorted(step["obligations"], key=identity_of),
        sorted(derived.obligations, key=lambda o: o.identity),
        strict=True,
    ):
        claim = f"step {number}: {obligation.claim}"
        written = {q: queries[q] for q in entry["queries"]}
        # The pieces of a dataflow may differ for another build of isl; then both are asked.
        if (
            [*map(asked, written.values())] != [*map(asked, obligation.queries)]
            and same_tools
            and not (obligation.engine == DATAFLOW and entry["queries"])
        ):
            raise _differs(path, f"{claim}: its questions are not those that the checker asks")
        reading.claims += 1
        every = {**written, **{query_id(query): query for query in obligation.queries}}
        reading.questions += [(claim, query) for query in every.values()]
        reading.exceptions += [f"{claim}: {what}: {reason}" for what, reason in obligation.unwritten]


def made_here(document: Document) -> bool:
    """Whether a document was made with the tools that are here, so that the same questions are derived."""
    there, here = ({k: v for k, v in tools.items() if k != "python"} for tools in (document["tools"], versions()))
    return there == here


def _differs(path: str, what: str) -> LayoutproofError:
    return error(codes.CERTIFICATE_DIFFERS, f"{path}: {what}")


def _run(reading: Reading, number: int, derived: Derived) -> None:
    """Search for a counterexample of a proved step by runs on small and adversarial inputs."""
    fast_math = frozenset(FastMath(word) for obligation in derived.obligations for word in obligation.strictness)
    found = find_counterexample(derived.rewrite, where=derived.where, fast_math=fast_math, budget=_TRIES)
    if found is not None:
        reading.fail(Status.REFUTED, f"step {number} is proved, but a run shows a difference: {found.text()}")


def _difference(written: Sequence[Document], derived: Sequence[Obligation]) -> str | None:
    theirs, ours = Counter(map(identity_of, written)), Counter(each.identity for each in derived)
    for each in derived:
        if ours[each.identity] > theirs[each.identity]:
            status = each.status.value
            return f"an obligation is missing, or is another one: {each.claim} ({status} when derived again)"
    for entry in written:
        if theirs[identity_of(entry)] > ours[identity_of(entry)]:
            return f"the checker has no such obligation: {entry['claim']} ({entry['status']})"
    return None


def check_expectation_file(path: str, data: bytes) -> Reading:
    """A rewrite with the verdict that it expects: the checker is run on it again."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as found:
        return broken(path, [f"{path} is no text: byte {found.start} is not UTF-8"])
    reading = Reading(path, Kind.REWRITE, claims=1)
    for status, what in check_expectation(text, path):
        reading.fail(status, what)
    header = parse_litmus(text, path).header
    if header.expect == Status.PROVED.value:
        allowed = allowed_by(header.strictness)
        reading.steps.append(StepReading("rewrite", reading.status, (), True, judge_text(text, allowed)))
    return reading
