"""A schedule's certificate: every step as text, with what it obliges to and the questions whose `unsat` says so.

The form is described in `proofs/README.md` and, for machines, in `proofs/certificate.schema.json`; a change of it changes VERSION.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.verify import codes
from layoutproof.verify.certificate.files import read_whole, write_whole
from layoutproof.verify.certificate.obligations import Derived, derive, query_dict, query_id, text_of
from layoutproof.verify.certificate.record import StepRecord
from layoutproof.verify.certificate.sealing import HASH, Document, chained, check_chain, from_bytes, sealed, to_bytes
from layoutproof.verify.smt.query import SAT, UNSAT, SmtQuery
from layoutproof.verify.values.licences import Licence, Licences
from layoutproof.verify.verdict import Status, worst

FORMAT = "layoutproof-certificate"
VERSION = 1
_ENGINES = {"islpy": "islpy", "z3": "z3-solver", "bitwuzla": "bitwuzla"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A sealed document, checked when it was read: its form, its hashes, and that every step begins where the one before ended."""

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
        check_form(document, name, FORMAT, VERSION)
        try:
            _check_steps(document, name)
            check_table(document["queries"], {q for s in document["steps"] for o in s["obligations"] for q in o["queries"]}, name)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise error(codes.CERTIFICATE_FORM, f"{name}: a part is missing or is of another kind: {problem}") from problem
        return Certificate(document)


def certify(steps: Sequence[StepRecord], function: str) -> Certificate:
    """The certificate of a schedule of the function of that name: each step's text is checked anew, with its questions written down."""
    table: dict[str, SmtQuery] = {}
    written: list[Document] = []
    for record in steps:
        text = text_of(record.rewrite, record.where)
        derived = derive(text, "<certificate>", record.allowed)
        written.append(_step(record, text, derived))
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
            }
        )
    )


def _step(record: StepRecord, text: str, derived: Derived) -> Document:
    return {
        "primitive": record.primitive,
        "arguments": dict(record.arguments),
        "licences": sorted(record.allowed),
        "rewrite": text.split("\n"),
        "assumptions": [assumption.to_dict() for assumption in derived.assumptions],
        "obligations": chained([obligation.to_dict() for obligation in derived.obligations]),
    }


def versions() -> dict[str, str]:
    """What the obligations were derived with."""
    found = {"layoutproof": metadata.version("layoutproof"), "python": platform.python_version()}
    for name, package in _ENGINES.items():
        try:
            found[name] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def check_form(document: Document, name: str, form: str, version: int) -> None:
    """Raise LayoutproofError for a document of another form or version."""
    if document.get("format") != form:
        raise error(codes.CERTIFICATE_FORM, f"{name} is of the form {document.get('format')!r}, {form!r} is expected")
    if document.get("version") != version:
        raise error(codes.CERTIFICATE_FORM, f"{name} is of version {document.get('version')!r} of its form; this program reads {version}")


def _check_steps(document: Document, name: str) -> None:
    check_chain(document["steps"], f"{name}: steps")
    for number, step in enumerate(document["steps"], start=1):
        check_chain(step["obligations"], f"{name}: obligations of step {number}")
        text_of_lines(step["rewrite"])
        licences_of(step)
        for obligation in step["obligations"]:
            Status(obligation["status"])


def licences_of(step: Document) -> Licences:
    """The licences that a step's proofs may use. Raises ValueError, TypeError or KeyError for a malformed step."""
    return frozenset(Licence(word) for word in step["licences"])


def check_table(table: Document, used: set[str], name: str) -> None:
    """Raise LayoutproofError unless each query has the hash under which it stands, and exactly those that are used are there."""
    queries = queries_of_table(table)
    for key, query in queries.items():
        if query_id(query) != key:
            raise error(codes.CERTIFICATE_CHANGED, f"{name}: the query {key[:12]} was changed")
        if query.expected not in (SAT, UNSAT):
            raise error(codes.CERTIFICATE_FORM, f"{name}: the query {key[:12]} expects {query.expected!r}")
    if set(queries) != used:
        stray = sorted(set(queries) ^ used)[0]
        raise error(codes.CERTIFICATE_CHANGED, f"{name}: the query {stray[:12]} is {'of no use' if stray in queries else 'missing'}")


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


__all__ = ["FORMAT", "HASH", "VERSION", "Certificate", "StepRecord", "certify"]
