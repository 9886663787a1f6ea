"""The entries of the cache: which verdicts may be kept, and how an entry becomes a certificate.

A proof's entry has the rewrite's text, the fast-math assumptions allowed, its origin (primitive, arguments, function),
the budget scale, the digest of the tool, and its obligations: verdicts as of `to_entry`. Refuted and undecided verdicts
are there too, or under `refused`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import error
from layoutproof.lowering import codes
from layoutproof.verify.verdict.report import of_entry

if TYPE_CHECKING:
    from layoutproof.verify.certificate.certificate import Certificate
    from layoutproof.verify.verdict.verdict import Verdict


class Clock:
    """Whether a time limit, or a solver's death, has affected an answer in this process since."""

    def __init__(self) -> None:
        self._before = _cut_short()

    @property
    def struck(self) -> bool:
        """Whether either ended a query."""
        return _cut_short() != self._before


def _cut_short() -> int:
    from layoutproof.verify.smt.solver import shared_worker

    return shared_worker().cut_short


def is_storable(verdicts: Iterable[Mapping[str, Any]], clock: Clock | None = None) -> bool:
    """Whether verdicts, as of `to_entry`, are reproducible: no time limit affected them.

    Verdicts give a time limit as their reason. One that was reached another way after a solver had been stopped does
    not: `clock`, made before the first query, does.
    """
    if clock is not None and clock.struck:
        return False
    return not any("clock" in verdict["because"] for verdict in verdicts)


@dataclass(frozen=True, slots=True)
class ProofEntry:
    """An entry of the table `proof`, of the right form; `verdicts` are all of them, `key` is the expected key if it is
    known.
    """

    text: str
    fast_math: tuple[str, ...]
    function: str
    primitive: str
    arguments: Mapping[str, Any]
    budget_scale: float
    searched: bool
    verdicts: tuple[Verdict, ...]
    key: str | None

    @property
    def is_certain(self) -> bool:
        """Whether all of it is proved or vacuous: what a certificate can hold."""
        from layoutproof.verify.verdict.verdict import Status

        return all(verdict.status in (Status.PROVED, Status.VACUOUS) for verdict in self.verdicts)

    @staticmethod
    def of(entry: Mapping[str, Any]) -> ProofEntry:
        """Read an entry. Raises LayoutproofError for one of another form."""

        try:
            verdicts = [of_entry(each) for each in (*entry.get("obligations", ()), *entry.get("refused", ()))]
            if not verdicts or not isinstance(entry["rewrite"], str):
                raise ValueError("it has no obligations" if not verdicts else "its rewrite is no text")
            return ProofEntry(
                entry["rewrite"],
                tuple(map(str, entry["licences"])),
                str(entry["function"]),
                str(entry["primitive"]),
                dict(entry["arguments"]),
                float(entry.get("effort", 1.0)),
                bool(entry.get("searched", True)),
                tuple(verdicts),
                _key_of(entry),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise error(codes.CACHE_ENTRY, f"an entry of the proof cache is of another form: {problem}") from problem


def proof_key(
    tool: str, budget_scale: float, fast_math: Iterable[str], text: str, lines: Sequence[Sequence[str]]
) -> str:
    """The key of a proof: of the tool, the budgets, the fast-math assumptions, the rewrite's text, and the positions of
    both programs' nodes, which messages name.
    """
    return hashlib.sha256(
        json.dumps([tool, budget_scale, sorted(fast_math), text, *map(list, lines)]).encode()
    ).hexdigest()


def certificate_of(entry: Mapping[str, Any]) -> Certificate:
    """The certificate of a proved entry: its obligations derived anew from its text, with the queries written down.

    Raises LayoutproofError for an entry of another form, or whose text is no rewrite.
    """
    from layoutproof.ir.notations.rewrite_text import parse_litmus
    from layoutproof.verify.certificate.certificate import certify
    from layoutproof.verify.step_record import StepRecord
    from layoutproof.verify.values.fast_math import FastMath

    proof = ProofEntry.of(entry)
    try:
        allowed = frozenset(FastMath(word) for word in proof.fast_math)
    except ValueError as problem:
        raise error(codes.CACHE_ENTRY, f"an entry of the proof cache is of another form: {problem}") from problem
    litmus = parse_litmus(proof.text, "<proof cache>")
    return certify(
        [StepRecord(proof.primitive, proof.arguments, litmus.rewrite, litmus.header.where, allowed)],
        proof.function,
        None,
    )


def _key_of(entry: Mapping[str, Any]) -> str | None:
    if "lines" not in entry:
        return None
    return proof_key(entry["tool"], entry["effort"], entry["licences"], entry["rewrite"], entry["lines"])
