"""A schedule's certificate: every step as text, with the checker's obligations and the queries whose `unsat` proves
them. The form is described in `proofs/README.md` and `proofs/certificate.schema.json`; a change of it changes VERSION.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import Expr
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.notations.rewrite_text import LitmusHeader, parse_litmus, rewrite_text
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.verify.certificate.sealed_files import (
    REFUTATIONS,
    Document,
    chained,
    check_chain,
    digest,
    from_bytes,
    read_whole,
    sealed,
    to_bytes,
    write_whole,
)
from layoutproof.verify.faults.arithmetic import call_assumptions
from layoutproof.verify.flow.simulate import ENGINE as DATAFLOW
from layoutproof.verify.lockstep.identity import prove_identity
from layoutproof.verify.program.evidence import Evidence, Gathered
from layoutproof.verify.program.instances import conjuncts
from layoutproof.verify.program.questions import SAT, UNSAT, SmtQuery
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.step_record import StepRecord
from layoutproof.verify.values.fast_math import ALL, FastMath, FastMathSet
from layoutproof.verify.verdict import codes
from layoutproof.verify.verdict.report import worst
from layoutproof.verify.verdict.verdict import Claim, Status, Verdict

# Engines that read the text: deriving the obligation again asks them again. Without a query no interval was needed.
_READING = frozenset(("symbolic", "intervals", "simulation"))
_CARRIED = (
    "solvers checked each case: its source, and where the witness maps it; "
    "that the cases are complete rests on integer sets alone"
)


class Whose(StrEnum):
    """Who is responsible for an assumption."""

    PROGRAM = "program"  # the program states it
    CALLER = "caller"  # it was given with the question
    CALL = "call"  # every call has to satisfy it


Identity = tuple[tuple[str, ...], str, tuple[str, ...]]


def identity_of(obligation: Document) -> Identity:
    """The identity of an obligation in a document. Raises KeyError or TypeError for a malformed one."""
    return tuple(obligation["identity"]), obligation["status"], tuple(obligation["strictness"])


@dataclass(frozen=True, slots=True)
class Obligation:
    """One claim with its verdict; `queries` confirm it, `unwritten` has the evidence without a text, and why."""

    claim: Claim
    status: Status
    engine: str
    strictness: tuple[str, ...]
    reason: str | None
    rests_on: tuple[str, ...]
    queries: tuple[SmtQuery, ...]
    unwritten: tuple[tuple[str, str], ...]

    @property
    def identity(self) -> Identity:
        """What two derivations of one text have in common for all versions of engines and messages."""
        return self.claim.identity, self.status.value, self.strictness

    def to_dict(self) -> Document:
        """As in a certificate: queries by their hashes."""
        return {
            "claim": self.claim.text,
            "identity": list(self.claim.identity),
            "status": self.status.value,
            "engine": self.engine,
            "strictness": list(self.strictness),
            "reason": self.reason,
            "rests_on": list(self.rests_on),
            "queries": [query_id(query) for query in self.queries],
            "exceptions": [{"what": what, "reason": reason} for what, reason in self.unwritten],
        }


@dataclass(frozen=True, slots=True)
class Assumption:
    """A condition that is not proved, or, with `fits`, an expression whose value is of that type, as texts of the
    program; and who is responsible for it.
    """

    condition: str
    whose: Whose
    fits: str | None = None

    def to_dict(self) -> Document:
        """As in a certificate."""
        return {"condition": self.condition, "fits": self.fits, "whose": self.whose.value}


@dataclass(frozen=True, slots=True)
class Derived:
    """Everything that follows from a rewrite's text."""

    rewrite: Rewrite
    where: Expr | None
    assumptions: tuple[Assumption, ...]
    obligations: tuple[Obligation, ...]

    @property
    def status(self) -> Status:
        """The worst verdict."""
        return worst(obligation.status for obligation in self.obligations)


def query_id(query: SmtQuery) -> str:
    """The hash by which a query is known."""
    return digest(query_dict(query))


def asked(query: SmtQuery) -> tuple[str, str, list[str]]:
    """What a query asks, without the claim that stands in its comments."""
    return query.logic, query.expected, [line for line in query.text.split("\n") if not line.startswith(";")]


def query_dict(query: SmtQuery) -> Document:
    """A query as files have it."""
    return {"logic": query.logic, "expected": query.expected, "engine": query.engine, "text": query.text.split("\n")}


def text_of(rewrite: Rewrite, where: Expr | None) -> str:
    """A rewrite as certificates keep it, with the precondition on symbols."""
    return rewrite_text(rewrite, LitmusHeader(where=where) if where is not None else None)


def derive(text: str, name: str, allowed: FastMathSet = ALL) -> Derived:
    """Run the checker on a rewrite's text under fast-math assumptions. Raises LayoutproofError for bad text."""
    litmus = parse_litmus(text, name)
    where = litmus.header.where
    # Without a witness only one program written in two ways can be proved, which may have very many statements.
    same = None if litmus.rewrite.witness.instances else prove_identity(litmus.rewrite)
    verdicts: Sequence[Verdict] = ()
    rest: Sequence[Evidence] = ()
    if same is None:
        gathered = Gathered()
        verdicts = check_rewrite(litmus.rewrite, where, allowed=allowed, gathered=gathered)
        # Evidence that no verdict has taken.
        rest = gathered.taken()
        if any(verdict.status is not Status.PROVED for verdict in verdicts):
            same = prove_identity(litmus.rewrite)
    if same is not None:
        verdicts, rest = (same,), ()
    assumptions = tuple(dict.fromkeys(_assumptions(litmus.rewrite, where)))
    return Derived(litmus.rewrite, where, assumptions, tuple(_obligations(verdicts, rest)))


def _obligations(verdicts: Sequence[Verdict], rest: Sequence[Evidence]) -> Iterator[Obligation]:
    last = next((k for k in reversed(range(len(verdicts))) if verdicts[k].engine not in _READING), len(verdicts) - 1)
    # An engine that proves several claims at once has its queries with the first of them.
    asked: dict[str, Claim] = {}
    for number, verdict in enumerate(verdicts):
        queries, unwritten = queries_of((*verdict.evidence, *(rest if number == last else ())))
        every = tuple({query.text: query for query in (*verdict.queries, *queries)}.values())
        missing, rests_on = [(piece.what, piece.reason) for piece in unwritten], verdict.rests_on
        if verdict.engine == DATAFLOW and verdict.status is Status.PROVED:
            missing.append((DATAFLOW, _CARRIED))
        elif every:
            asked.setdefault(verdict.engine, verdict.claim)
        elif not missing and verdict.engine in asked:
            rests_on = (*rests_on, f"the questions of: {asked[verdict.engine]}")
        elif not missing and not _READING.issuperset(verdict.engine.split("+")):
            missing.append(
                (verdict.engine, "what it answered is not written down as a question; the checker asks it again")
            )
        yield Obligation(
            verdict.claim,
            verdict.status,
            verdict.engine,
            verdict.strictness,
            verdict.reason,
            rests_on,
            every,
            tuple(missing),
        )


def _assumptions(rewrite: Rewrite, where: Expr | None) -> Iterator[Assumption]:
    for condition in _parts(where):
        yield Assumption(condition, Whose.CALLER)
    for function in (rewrite.old, rewrite.new):
        for node in walk(function.body):
            if isinstance(node, Assume):
                yield Assumption(expr_text(node.condition, Style.PLAIN), Whose.PROGRAM)
    for function in (rewrite.old, rewrite.new):
        for expr in call_assumptions(function, where):
            yield Assumption(expr_text(expr, Style.PLAIN), Whose.CALL, str(expr.dtype))


def _parts(where: Expr | None) -> list[str]:
    return [] if where is None else [expr_text(guard.as_expr, Style.PLAIN) for guard in conjuncts(where)]


FORMAT = "layoutproof-certificate"
VERSION, SENTENCES = 2, 1
"""Certificates of version 1, which are still read, know claims by sentences and have no evidence for the kernel."""
_ENGINES = {"islpy": "islpy", "z3": "z3-solver", "bitwuzla": "bitwuzla"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A sealed document, checked when read: its form, its hashes, and that each step starts where the last ended."""

    document: Document

    @property
    def status(self) -> Status:
        """The worst verdict in it."""
        return worst(Status(obligation["status"]) for step in self.steps for obligation in step["obligations"])

    @property
    def steps(self) -> Sequence[Document]:
        """The steps in order."""
        found: list[Document] = self.document["steps"]
        return found

    @property
    def knows_by_sentences(self) -> bool:
        """Whether its claims have no identity and its steps no evidence for the kernel."""
        return bool(self.document["version"] == SENTENCES)

    @property
    def queries(self) -> dict[str, SmtQuery]:
        """Every question, by its hash."""
        return queries_of_table(self.document["queries"])

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all. Raises LayoutproofError."""
        write_whole(Path(path), to_bytes(self.document))

    @staticmethod
    def load(path: str | Path) -> Certificate:
        """Read a certificate. Raises LayoutproofError for a file that is none, or was changed or cut off."""
        return Certificate.of_document(from_bytes(read_whole(Path(path)), str(path)), str(path))

    @staticmethod
    def of_document(document: Document, name: str) -> Certificate:
        """A document as a certificate. Raises LayoutproofError for one that is malformed or whose hashes do not fit."""
        check_form(document, name, FORMAT, VERSION, SENTENCES)
        try:
            _check_steps(document, name)
            check_table(
                document["queries"],
                {q for s in document["steps"] for o in s["obligations"] for q in o["queries"]},
                name,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise error(
                codes.CERTIFICATE_FORM, f"{name}: a part is missing or is of another kind: {problem}"
            ) from problem
        return Certificate(document)


Finder = Callable[[str, FastMathSet], tuple[Document | None, dict[str, object]]]
"""Finds evidence for the kernel, and refutations, for the text of a step and the fast-math assumptions it may use."""


def certify(steps: Sequence[StepRecord], function: str, finder: Finder | None) -> Certificate:
    """The certificate of the named function's schedule: each step is checked anew, with its queries written, and with
    the evidence for the kernel that a finder (`kernel_evidence.find_evidence`) finds, if one is given.
    """
    table: dict[str, SmtQuery] = {}
    written: list[Document] = []
    refutations: dict[str, object] = {}
    for record in steps:
        text = text_of(record.rewrite, record.where)
        derived = derive(text, "<certificate>", record.allowed)
        evidence, proofs = finder(text, record.allowed) if finder is not None else (None, {})
        refutations.update(proofs)
        written.append({**_step(record, text, derived), "kernel": evidence})
        table.update({query_id(query): query for obligation in derived.obligations for query in obligation.queries})
    return Certificate(
        sealed(
            {
                "format": FORMAT,
                "version": VERSION,
                "function": function,
                "tools": versions(),
                "steps": chained(written),
                "queries": {name: query_dict(query) for name, query in sorted(table.items())},
                REFUTATIONS: dict(sorted(refutations.items())),
            }
        )
    )


def _step(record: StepRecord, text: str, derived: Derived) -> Document:
    return {
        "primitive": record.primitive,
        "arguments": dict(record.arguments),
        "licences": sorted(flag.value for flag in record.allowed),
        "rewrite": text.split("\n"),
        "assumptions": [assumption.to_dict() for assumption in derived.assumptions],
        "obligations": chained([obligation.to_dict() for obligation in derived.obligations]),
    }


def versions() -> dict[str, str]:
    """The versions of the tools that derive obligations."""
    found = {"layoutproof": metadata.version("layoutproof"), "python": platform.python_version()}
    for name, package in _ENGINES.items():
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def check_form(document: Document, name: str, form: str, *versions: int) -> None:
    """Raise LayoutproofError for a document of another form, or of none of the versions."""
    if document.get("format") != form:
        raise error(codes.CERTIFICATE_FORM, f"{name} is of the form {document.get('format')!r}, {form!r} is expected")
    if document.get("version") not in versions:
        raise error(
            codes.CERTIFICATE_FORM,
            f"{name} is of version {document.get('version')!r} of its form; this program reads {versions[0]}",
            help="write it anew with this version, such as by `check --certificate` or `plan --certificate`",
        )


def _check_steps(document: Document, name: str) -> None:
    check_chain(document["steps"], f"{name}: steps")
    for number, step in enumerate(document["steps"], start=1):
        check_chain(step["obligations"], f"{name}: obligations of step {number}")
        text_of_lines(step["rewrite"])
        fast_math_of(step)
        for obligation in step["obligations"]:
            Status(obligation["status"])
            identity = () if document["version"] == SENTENCES else identity_of(obligation)[0]
            if not all(isinstance(text, str) for text in (obligation["claim"], *identity)):
                raise TypeError("a claim and its identity are texts")


def fast_math_of(step: Document) -> FastMathSet:
    """The fast-math assumptions that a step's proofs may use. Raises ValueError, TypeError or KeyError for a malformed
    step.
    """
    return frozenset(FastMath(word) for word in step["licences"])


def check_table(table: Document, used: set[str], name: str) -> None:
    """Raise LayoutproofError unless each query has its hash as key, and exactly those that are used are there."""
    queries = queries_of_table(table)
    for key, query in queries.items():
        if query_id(query) != key:
            raise error(codes.CERTIFICATE_CHANGED, f"{name}: the query {key[:12]} was changed")
        if query.expected not in (SAT, UNSAT):
            raise error(codes.CERTIFICATE_FORM, f"{name}: the query {key[:12]} expects {query.expected!r}")
    if set(queries) != used:
        stray = sorted(set(queries) ^ used)[0]
        raise error(
            codes.CERTIFICATE_CHANGED,
            f"{name}: the query {stray[:12]} is {'of no use' if stray in queries else 'missing'}",
        )


def queries_of_table(table: Document) -> dict[str, SmtQuery]:
    """The queries of a document. Raises KeyError or TypeError for a malformed table."""
    return {key: query_of(q) for key, q in table.items()}


def query_of(entry: Document) -> SmtQuery:
    """One query of a document. Raises KeyError or TypeError for a malformed one."""
    return SmtQuery(text_of_lines(entry["text"]), str(entry["logic"]), str(entry["expected"]), str(entry["engine"]))


def text_of_lines(lines: Any) -> str:
    """A text that a document keeps as a list of lines. Raises TypeError for anything else."""
    if not isinstance(lines, list):
        raise TypeError("a text is a list of lines")
    return "\n".join(lines)
