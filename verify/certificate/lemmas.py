"""Files of lemmas: claims of the tool's own, each with the questions whose answers say so. `proofs/rules`, `proofs/laws` and
`proofs/layouts` hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from layoutproof.ir.diagnostic import error
from layoutproof.verify import codes
from layoutproof.verify.certificate.certificate import check_form, check_table, queries_of_table, versions
from layoutproof.verify.certificate.files import read_whole, write_whole
from layoutproof.verify.certificate.obligations import query_dict, query_id
from layoutproof.verify.certificate.sealing import Document, chained, check_chain, from_bytes, sealed, to_bytes
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.verdict import Status

FORMAT = "layoutproof-lemmas"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Lemma:
    """One claim: `proved` under the licences of `strictness`, or `refuted` with the counterexample's values.

    `queries` are expected `unsat` for what holds, `sat` for what does not. `source` says where the claim is used or comes from;
    `exceptions` name engines, or kinds of questions, that cannot be asked, with the reason.
    """

    name: str
    claim: str
    status: Status
    queries: tuple[SmtQuery, ...]
    strictness: tuple[str, ...] = ()
    source: str | None = None
    counterexample: Mapping[str, Any] | None = None
    exceptions: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> Document:
        """As a file has it."""
        return {
            "name": self.name,
            "claim": self.claim,
            "status": self.status.value,
            "strictness": list(self.strictness),
            "source": self.source,
            "counterexample": dict(self.counterexample) if self.counterexample is not None else None,
            "queries": [query_id(query) for query in self.queries],
            "exceptions": [{"what": what, "reason": reason} for what, reason in self.exceptions],
        }


@dataclass(frozen=True, slots=True)
class LemmaFile:
    """Lemmas that belong together, and what they are about."""

    about: str
    lemmas: tuple[Lemma, ...]
    tools: Mapping[str, str] = field(default_factory=versions)

    def to_document(self) -> Document:
        """The sealed document."""
        table = {query_id(query): query for lemma in self.lemmas for query in lemma.queries}
        return sealed(
            {
                "format": FORMAT,
                "version": VERSION,
                "about": self.about,
                "tools": dict(self.tools),
                "lemmas": chained([lemma.to_dict() for lemma in self.lemmas]),
                "queries": {name: query_dict(query) for name, query in sorted(table.items())},
            }
        )

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all. Raises LayoutproofError."""
        write_whole(Path(path), to_bytes(self.to_document()))

    @staticmethod
    def load(path: str | Path) -> LemmaFile:
        """Read a file of lemmas. Raises LayoutproofError for one that is none, or was changed or cut off."""
        return LemmaFile.of_document(from_bytes(read_whole(Path(path)), str(path)), str(path))

    @staticmethod
    def of_document(document: Document, name: str) -> LemmaFile:
        """A document as lemmas. Raises LayoutproofError for one that is malformed or whose hashes do not fit."""
        check_form(document, name, FORMAT, VERSION)
        try:
            check_chain(document["lemmas"], f"{name}: lemmas")
            check_table(document["queries"], {query for lemma in document["lemmas"] for query in lemma["queries"]}, name)
            queries = queries_of_table(document["queries"])
            lemmas = tuple(_lemma(entry, queries) for entry in document["lemmas"])
            return LemmaFile(str(document["about"]), lemmas, dict(document["tools"]))
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise error(codes.CERTIFICATE_FORM, f"{name}: a part is missing or is of another kind: {problem}") from problem


def _lemma(entry: Document, queries: Mapping[str, SmtQuery]) -> Lemma:
    return Lemma(
        str(entry["name"]),
        str(entry["claim"]),
        Status(entry["status"]),
        tuple(queries[name] for name in _texts(entry["queries"])),
        tuple(_texts(entry["strictness"])),
        entry["source"],
        entry["counterexample"],
        tuple((str(e["what"]), str(e["reason"])) for e in entry["exceptions"]),
    )


def _texts(values: Sequence[Any]) -> list[str]:
    return [str(value) for value in values]
