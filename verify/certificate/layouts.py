"""What is true of a layout for all shapes, as lemmas: one place to each index, one index to each place that is no padding.

The map, its box, its padding and its inverse come from `check_map`; the questions here are about what it says, not how it came to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import FALSE, Expr, Not, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.verify.certificate.lemmas import Lemma
from layoutproof.verify.evidence import Evidence, NoInstance, OneToOne, Setting
from layoutproof.verify.instances import Dim, Scene
from layoutproof.verify.integers import at_least, below, differ, same
from layoutproof.verify.map_report import report_on
from layoutproof.verify.problem import make_problem
from layoutproof.verify.questions import read_question
from layoutproof.verify.smt.claims import queries_of
from layoutproof.verify.verdict import Status


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout by name: its map as lambda text, its logical shape as text, and what is known of the names in it."""

    name: str
    index_map: str
    shape: str
    where: str | None = None


def layout_lemmas(layout: Layout) -> tuple[Lemma, ...]:
    """The lemmas of one layout; a claim that `check_map` does not prove is a lemma without a question, `unknown`."""
    question = read_question(layout.index_map, layout.shape, layout.where)
    report, problem = report_on(*question), make_problem(*question)
    given, known = problem.given, report.physical_shape
    where = (problem.where,)
    source = f"{index_map_text(given)} on [{layout.shape}]"
    if report.injective.status is not Status.PROVED or None in known:
        return (Lemma(f"{layout.name}: one place to each index", report.injective.claim.text, report.injective.status, (), source=source),)
    box = [extent for extent in known if extent is not None]
    symbols = dict.fromkeys(v for e in (*problem.shape, *box) for v in free_variables(e))
    setting = Setting(where, tuple((v.name, 0, None) for v in symbols))
    engine = report.injective.engine
    inside = Scene(_dims(given.inputs, problem.shape))
    found: list[tuple[str, str, Evidence]] = [
        (
            "one place to each index",
            report.injective.claim.text,
            OneToOne(given.inputs, problem.shape, given.outputs, problem.where, engine),
        ),
        ("inside the box", f"every place lies within [{_listed(box)}]", NoInstance(setting, inside, _outside(given.outputs, box), engine)),
    ]
    if report.inverse is not None and report.padding.predicate is not None:
        found += _about_inverse(setting, problem.shape, given, box, report.inverse, report.padding.predicate, engine)
    return tuple(_layout_lemma(f"{layout.name}: {name}", claim, evidence, source) for name, claim, evidence in found)


def _about_inverse(
    setting: Setting, shape: Sequence[Expr], given: IndexMap, box: Sequence[Expr], inverse: IndexMap, padding: Expr, engine: str
) -> Iterator[tuple[str, str, Evidence]]:
    text, where = index_map_text(inverse), expr_text(padding, "plain")
    back = inverse.map_indices(given.outputs)
    inside = Scene(_dims(given.inputs, shape))
    each = tuple((differ(b, v),) for b, v in zip(back, given.inputs, strict=True))
    if each:
        yield "the inverse leads back", f"{text} leads from each place to its index", NoInstance(setting, inside, each, engine)
    cells = tuple(inverse.inputs)
    places = Scene(_dims(cells, box))
    index = list(inverse.outputs)
    there = given.map_indices(index)
    wrong = [*_outside(index, shape), *((differ(a, c),) for a, c in zip(there, cells, strict=True))]
    kept = tuple((Not(padding), *conditions) for conditions in wrong)
    yield (
        "no other places",
        f"every place of the box where not ({where}) is that of its index by the inverse",
        NoInstance(setting, places, kept, engine),
    )
    if padding != FALSE:
        both = Scene((*_dims(given.inputs, shape), *_dims(cells, box)))
        reached = (padding, *(same(o, c) for o, c in zip(given.outputs, cells, strict=True)))
        yield "padding is no place", f"where {where} there is no index", NoInstance(setting, both, (reached,), engine)


def _dims(variables: Sequence[Var], extents: Sequence[Expr]) -> tuple[Dim, ...]:
    return tuple(Dim(v, const(0, v.dtype), extent, ForKind.SERIAL) for v, extent in zip(variables, extents, strict=True))


def _outside(index: Sequence[Expr], box: Sequence[Expr]) -> tuple[tuple[Expr, ...], ...]:
    return tuple((condition,) for part, extent in zip(index, box, strict=True) for condition in (below(part, 0), at_least(part, extent)))


def _listed(exprs: Sequence[Expr]) -> str:
    return ", ".join(expr_text(e, "plain") for e in exprs)


def _layout_lemma(name: str, claim: str, evidence: Evidence, source: str) -> Lemma:
    queries, missing = queries_of([evidence])
    return Lemma(name, claim, Status.PROVED, queries, source=source, exceptions=tuple((m.what, m.reason) for m in missing))
