"""Makes `proofs/laws`: the assumptions of the value provers, as lemmas with queries that other solvers answer.

    python -m layoutproof.verify.certificate.lawbook proofs/laws

* `rules`: every law of `verify/values/laws.json` for each of its types; and that each side condition is needed.
* `kinds`: the tables of kinds (`verify/values/class_tables.json`) in every float type.
* `padding`: which pad value is neutral for which reduction, both ways, with the least fast-math assumptions.

Raises SystemExit where a claim does not come out as expected: nothing is written then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from layoutproof.ir.dtype import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DType
from layoutproof.verify.certificate.lemmas import Lemma, LemmaFile
from layoutproof.verify.program.questions import SAT, UNSAT, SmtQuery
from layoutproof.verify.values.fast_math import IEEE, FastMathSet, names_of
from layoutproof.verify.values.fast_math_search import search_fast_math
from layoutproof.verify.values.formula import Formula
from layoutproof.verify.values.kind_tables import kinds_script
from layoutproof.verify.values.knowledge import KIND_NAMES, KINDS, tabled_operations
from layoutproof.verify.values.law_table import Law, laws
from layoutproof.verify.values.padding_rows import FLOATS, rows
from layoutproof.verify.values.question import Question, ValueAnswer
from layoutproof.verify.values.solving import Solving, ValueBudget, describe
from layoutproof.verify.verdict.verdict import Status

INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
_BUDGET = ValueBudget(rlimit=200_000_000, polls=400_000, question=1_000_000_000, seconds=600.0)


Ask = Callable[[str, SmtQuery], None]


class Unexpected(Exception):
    """A claim without the expected status."""


def rule_lemmas(ask: Ask) -> Iterator[Lemma]:
    """Every law, and every side condition of it left out."""
    for law in laws():
        for dtype in (*FLOATS, *INTEGERS):
            if law.holds_for(dtype):
                yield _rule(law, dtype, ask)
                if dtype.is_float:
                    yield from _needs(law, dtype, ask)


def _question(law: Law, dtype: DType) -> Question:
    given, conditions = law.conditions(dtype)
    return Question(law.left(dtype), law.right(dtype), given, conditions)


def _rule(law: Law, dtype: DType, ask: Ask) -> Lemma:
    query = _decided(f"{law.name} ({dtype})", _question(law, dtype), Status.PROVED, ask)
    claim = f"{law.pattern} is {law.result}{_where(law)}, in {dtype}"
    return Lemma(f"{law.name} ({dtype})", claim, Status.PROVED, (query,), source="verify/values/laws.json")


def _where(law: Law) -> str:
    parts = [f"{letter} is {name}" for letter, name in law.where]
    if law.not_above:
        parts.append(f"{law.not_above[0]} is not above {law.not_above[1]}")
    if law.apart:
        parts.append(f"{' and '.join(law.apart)} are not both zero")
    return f" where {' and '.join(parts)}" if parts else ""


def without_each(law: Law) -> Iterator[tuple[str, Law]]:
    """The law with one side condition left out, and which."""
    for letter, name in law.where:
        rest = tuple(pair for pair in law.where if pair != (letter, name))
        yield f"{letter} {name}", replace(law, where=rest)
    if law.not_above:
        yield "the order", replace(law, not_above=())
    if law.apart:
        yield "zeros apart", replace(law, apart=())


def _needs(law: Law, dtype: DType, ask: Ask) -> Iterator[Lemma]:
    for what, weaker in without_each(law):
        name = f"{law.name} ({dtype}) without: {what}"
        question = _question(weaker, dtype)
        query = _decided(name, question, Status.REFUTED, ask)
        answer = search_fast_math(question, IEEE, _BUDGET)
        yield Lemma(
            name,
            f"{law.pattern} is {law.result}{_where(weaker)}, in {dtype}",
            Status.REFUTED,
            (query,),
            counterexample=_model(answer),
        )


def kind_lemmas(ask: Ask) -> Iterator[Lemma]:
    """The tables of kinds, one lemma for each operation and type."""
    for operation, table in tabled_operations().items():
        for dtype in FLOATS:
            for script in kinds_script(operation, dtype, table):
                query = SmtQuery(script.text, script.logic)
                ask(script.name, query)
                claim = (
                    f"the kinds of {script.words}, by those of the operands ({', '.join(KIND_NAMES[k] for k in KINDS)})"
                )
                yield Lemma(script.name, claim, Status.PROVED, (query,), source="verify/values/class_tables.json")


def padding_lemmas(ask: Ask) -> Iterator[Lemma]:
    """The table of pad values."""
    for row in rows():
        answer = search_fast_math(row.question, row.allowed, _BUDGET)
        if answer.status is not row.expected or (answer.is_proved and answer.fast_math != row.allowed):
            raise Unexpected(f"{row.name}: {answer}")
        query = _decided(row.name, row.question, row.expected, ask, row.allowed)
        claim = _claim(row.question)
        yield Lemma(
            row.name,
            claim,
            row.expected,
            (query,),
            names_of(row.allowed),
            counterexample=_model(answer) if not answer.is_proved else None,
        )


def _claim(question: Question) -> str:
    return describe(question, IEEE).replace("\n", ", ")


def _decided(name: str, question: Question, expected: Status, ask: Ask, fast_math: FastMathSet = IEEE) -> SmtQuery:
    """The query of a claim that a solver has confirmed. Raises Unexpected."""
    formula = Formula(question, fast_math)
    query = SmtQuery(
        formula.text(describe(question, fast_math)), formula.encoder.logic, UNSAT if expected is Status.PROVED else SAT
    )
    ask(name, query)
    return query


def ask_z3(name: str, query: SmtQuery) -> None:
    """Raise Unexpected unless z3 gives the expected answer."""
    reply = Solving(_BUDGET).ask("z3", query.text, query.logic)
    if reply.answer.value != query.expected:
        raise Unexpected(f"{name}: z3 says {reply.answer} ({reply.reason})")


def _model(answer: ValueAnswer) -> dict[str, object]:
    if answer.model is None:
        raise Unexpected("a refutation without values")
    return {
        name: value.hex() if isinstance(value, float) and value == value else str(value)
        for name, value in answer.model.items()
    }


FILES = {
    "rules.lplemmas.json": (
        "the laws by which values are compared without a solver, and that each needs its conditions",
        rule_lemmas,
    ),
    "kinds.lplemmas.json": ("which kinds of floats an operation yields, by the kinds of its operands", kind_lemmas),
    "padding.lplemmas.json": (
        "which pad value is neutral for which reduction, bit for bit or under which fast-math assumptions",
        padding_lemmas,
    ),
}


def lemma_file(name: str, ask: Ask = ask_z3) -> LemmaFile:
    """One file of `proofs/laws`; each of its queries is put to `ask`. Raises Unexpected."""
    about, make = FILES[name]
    return LemmaFile(about, tuple(make(ask)))


def write(folder: Path, names: Sequence[str] = tuple(FILES)) -> None:
    """Make files of `proofs/laws`, all of them when none are named. Raises Unexpected."""
    for name in names:
        lemma_file(name).save(folder / name)


def main() -> None:
    """Write the files into the folder that is named."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m layoutproof.verify.certificate.lawbook FOLDER [FILE...]")
    try:
        write(Path(sys.argv[1]), sys.argv[2:] or tuple(FILES))
    except Unexpected as problem:
        raise SystemExit(str(problem)) from problem


if __name__ == "__main__":
    main()
