"""One question under one set of licences put to the solvers of a budget, in their order. What they say is checked: a model counts only when
it was run.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from layoutproof.ir.dtype import BFLOAT16
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.search import Because
from layoutproof.verify.settings import scaled
from layoutproof.verify.smt.encode_values import NotValue, ValueEncoder
from layoutproof.verify.smt.query import SmtQuery
from layoutproof.verify.smt.session import Answer
from layoutproof.verify.smt.worker import Worker, WorkerAnswer, shared_worker
from layoutproof.verify.values.budget import ValueBudget
from layoutproof.verify.values.claims import Claim, choices_are_complete
from layoutproof.verify.values.formula import Formula, values_of
from layoutproof.verify.values.licences import Licences, names_of
from layoutproof.verify.values.question import Question
from layoutproof.verify.verdict import Status

BFLOAT16_SORT = ValueEncoder().sort(BFLOAT16)


@dataclass(frozen=True, slots=True)
class Decision:
    """What solvers made of a question under one set of licences. `claim` is the refuting point, evaluated."""

    status: Status
    engine: str
    query: SmtQuery | None = None
    reason: str | None = None
    claim: Claim | None = None
    axioms: tuple[str, ...] = ()
    because: frozenset[Because] = frozenset()


class Solving:
    """Solvers in a worker process, with the budget of one question. `spent` is what its queries did, in z3's units.

    With `closed` no solver is asked; engines of `hung` are not either: one that did not answer before is not waited for again.
    """

    def __init__(
        self, budget: ValueBudget, worker: Worker | None = None, *, closed: bool = False, hung: Container[str] = frozenset()
    ) -> None:
        self.budget = budget
        self.worker = shared_worker() if worker is None else worker
        self.closed = closed
        self.hung = set[str]()
        self.spent = 0
        self._avoided = hung

    def ask(self, engine: str, text: str, logic: str) -> WorkerAnswer:
        """One query to one engine, if the budget has room for it."""
        if self.closed:
            return WorkerAnswer(Answer.UNKNOWN, reason="the budget of this check is spent", stopped=True)
        if engine in self._avoided or engine in self.hung:
            return WorkerAnswer(Answer.UNKNOWN, reason=f"wall: {engine} gave no answer before", wall=True)
        if self.spent >= scaled(self.budget.question):
            return WorkerAnswer(Answer.UNKNOWN, reason="the budget of this question is spent", stopped=True)
        said = self.worker.ask(engine, text, logic, units=scaled(self.budget.units_of(engine)), seconds=self.budget.seconds)
        self.spent += self.budget.cost_of(engine, said.spent)
        if said.hung:
            self.hung.add(engine)
        return said

    def decide(self, question: Question, licences: Licences) -> Decision:
        """Proved, refuted or unknown."""
        try:
            formula = Formula(question, licences)
        except NotValue as problem:
            return Decision(Status.UNKNOWN, "encoder", reason=f"{expr_text(problem.expr, Style.PLAIN)}: {problem.reason}")
        text, logic = formula.text(describe(question, licences)), formula.encoder.logic
        because, reasons = set[Because](), list[str]()
        for engine in self.budget.solvers:
            if engine == "bitwuzla" and BFLOAT16_SORT in text:
                continue  # it refuses the format
            said = self.ask(engine, text, logic)
            if said.missing:
                continue
            because |= {mark for mark, held in ((Because.CLOCK, said.wall), (Because.BUDGET, said.stopped)) if held}
            if said.answer is Answer.UNSAT:
                query = SmtQuery(text, logic, engine=engine)
                return Decision(Status.PROVED, engine, query, axioms=formula.axioms, because=frozenset(because))
            if said.answer is Answer.SAT:
                if not choices_are_complete(question, licences):
                    reasons.append("too many operations of the old value may choose a zero's sign")
                    break
                claim = Claim(question, values_of(question, said.model), 1)
                if claim.fails(licences)[0]:
                    return Decision(Status.REFUTED, engine, SmtQuery(text, logic, "sat", engine), claim=claim, because=frozenset(because))
                reasons.append(f"the case that {engine} gives does not replay{_because(formula)}")
                break
            reasons.append(said.reason if said.reason is not None else f"{engine} does not know")
        return Decision(Status.UNKNOWN, "solvers", reason="; ".join(reasons) or "no solver was asked", because=frozenset(because))


def _because(formula: Formula) -> str:
    functions = sorted(formula.encoder.uninterpreted)
    return f": nothing else is known of {', '.join(functions)}" if functions else ""


def describe(question: Question, licences: Licences) -> str:
    """The claim in words, for the head of a query."""
    new, old = (expr_text(e, Style.PLAIN) for e in (question.new, question.old))
    what = f"{new} is {old}" if question.goal is None else f"{new} {question.goal}"
    lines = [what, *(f"where {g}" for g in question.given), *(f"where {expr_text(c, Style.PLAIN)}" for c in question.conditions)]
    if licences:
        who = sorted(v.name for v in question.computed) + (["what the old side computes"] if question.old_is_computed else [])
        lines.append(f"under {' '.join(names_of(licences))} of {', '.join(who) or 'nothing'}")
    lines += [f"{twin.name} is {var.name} up to the sign of zero" for var, twin in question.twins]
    return "\n".join(lines)
