"""What a rewrite's text obliges to, derived by running the checker on it: claims with their verdicts, and the questions behind them.

Whoever writes a certificate derives its obligations so, and whoever rechecks one derives them again from the same text: a missing
one, or a question that is not the checker's, shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.rewrite_text import LitmusHeader, parse_litmus, rewrite_text
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import walk
from layoutproof.verify.certificate.sealing import Document, digest
from layoutproof.verify.claim import Claim
from layoutproof.verify.evidence import Evidence, Gathered
from layoutproof.verify.fits import call_assumptions
from layoutproof.verify.flow.simulate import ENGINE as DATAFLOW
from layoutproof.verify.identity import prove_identity
from layoutproof.verify.instances import conjuncts
from layoutproof.verify.replay.checked import check_rewrite
from layoutproof.verify.smt.claims import queries_of
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.values.licences import ALL, Licences
from layoutproof.verify.verdict import Status, Verdict, worst

# Engines that read the text: deriving the obligation again is asking them again. Every interval that is looked at leaves a question;
# where there is none, nothing had to be looked at.
_READING = frozenset(("structure", "intervals", "lockstep"))
_CARRIED = "the sources and how the witness carries them are asked of solvers; that the cases asked are all there are, of integer sets only"
THE_PROGRAM, THE_CALLER, EVERY_CALL = "the program", "whoever asked", "every call"


@dataclass(frozen=True, slots=True)
class Obligation:
    """One claim with its verdict; `queries` are the texts that confirm it, `unwritten` what could not be made one, with the reason."""

    claim: Claim
    status: Status
    engine: str
    strictness: tuple[str, ...]
    reason: str | None
    rests_on: tuple[str, ...]
    queries: tuple[SmtQuery, ...]
    unwritten: tuple[tuple[str, str], ...]

    @property
    def identity(self) -> tuple[str, str, tuple[str, ...]]:
        """What two derivations of one text agree on, whatever the versions of the engines are."""
        return self.claim.text, self.status.value, self.strictness

    def to_dict(self) -> Document:
        """As a certificate has it: queries by the hash under which it keeps their texts."""
        return {
            "claim": self.claim.text,
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
    """A condition that nobody proves, and who answers for it."""

    text: str
    whose: str

    def to_dict(self) -> Document:
        """As a certificate has it."""
        return {"condition": self.text, "whose": self.whose}


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


def query_dict(query: SmtQuery) -> Document:
    """A query as files have it."""
    return {"logic": query.logic, "expected": query.expected, "engine": query.engine, "text": query.text.split("\n")}


def text_of(rewrite: Rewrite, where: Expr | None) -> str:
    """A rewrite as certificates keep it, with the condition on symbols that was vouched for."""
    return rewrite_text(rewrite, LitmusHeader(where=where) if where is not None else None)


def derive(text: str, name: str, allowed: Licences = ALL) -> Derived:
    """Run the checker on a rewrite's text, under licences that may be used. Raises LayoutproofError for a text that is none."""
    litmus = parse_litmus(text, name)
    where = litmus.header.where
    gathered = Gathered()
    verdicts = check_rewrite(litmus.rewrite, where, allowed=allowed, gathered=gathered)
    # What was answered on the way to the last verdicts, which say themselves what they rest on.
    rest = gathered.taken()
    if any(verdict.status is not Status.PROVED for verdict in verdicts):
        same = prove_identity(litmus.rewrite)
        verdicts, rest = ((same,), ()) if same is not None else (verdicts, rest)
    assumptions = tuple(dict.fromkeys(_assumptions(litmus.rewrite, where)))
    return Derived(litmus.rewrite, where, assumptions, tuple(_obligations(verdicts, rest)))


def _obligations(verdicts: Sequence[Verdict], rest: Sequence[Evidence]) -> Iterator[Obligation]:
    last = next((k for k in reversed(range(len(verdicts))) if verdicts[k].engine not in _READING), len(verdicts) - 1)
    # An engine that proves several claims in one go has asked its questions for the first of them.
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
            missing.append((verdict.engine, "what it answered is not written down as a question; the checker asks it again"))
        yield Obligation(verdict.claim, verdict.status, verdict.engine, verdict.strictness, verdict.reason, rests_on, every, tuple(missing))


def _assumptions(rewrite: Rewrite, where: Expr | None) -> Iterator[Assumption]:
    for condition in _parts(where):
        yield Assumption(condition, THE_CALLER)
    for function in (rewrite.old, rewrite.new):
        for node in walk(function.body):
            if isinstance(node, Assume):
                yield Assumption(expr_text(node.condition, Style.PLAIN), THE_PROGRAM)
    for function in (rewrite.old, rewrite.new):
        for expr in call_assumptions(function, where):
            yield Assumption(f"{expr_text(expr, Style.PLAIN)} fits {expr.dtype}", EVERY_CALL)


def _parts(where: Expr | None) -> list[str]:
    return [] if where is None else [expr_text(guard.as_expr, Style.PLAIN) for guard in conjuncts(where)]
