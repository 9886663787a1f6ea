"""What was asked of index maps while a graph was proved, as questions to other solvers: texts whose `unsat` is the claim.

Equal places, no two elements in one place, every place within its box. The questions say the claims themselves, not how they were proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from layoutproof.graph.maps import MapFact
from layoutproof.graph.model import Shape
from layoutproof.ir.expr import Var, const
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.certificate.lemmas import Layout, layout_lemmas
from layoutproof.verify.program.evidence import NoInstance, Setting
from layoutproof.verify.program.instances import Dim, Scene
from layoutproof.verify.program.questions import SmtQuery, differ
from layoutproof.verify.smt.smtlib import queries_of
from layoutproof.verify.verdict.verdict import Status


@dataclass(frozen=True, slots=True)
class MapClaim:
    """A claim about maps, the questions that confirm it, and what no question was found for, with the reason."""

    claim: str
    queries: tuple[SmtQuery, ...]
    exceptions: tuple[tuple[str, str], ...] = ()


def claims_of(facts: Iterable[MapFact]) -> tuple[MapClaim, ...]:
    """The claims that rest on such facts, each once."""
    found: dict[str, MapClaim] = {}
    for first, second, shape in facts:
        for claim in _of_one(first, shape) if second is None else _of_two(first, second, shape):
            found.setdefault(claim.claim, claim)
    return tuple(found.values())


def _of_one(text: str, shape: Shape) -> Iterator[MapClaim]:
    """One place for each index, within the box; where it is a bijection, one index for each place."""
    if not shape:
        return
    listed = ", ".join(map(str, shape))
    for lemma in layout_lemmas(Layout(f"`{text}` on [{listed}]", text, listed)):
        if lemma.status is Status.PROVED:
            yield MapClaim(lemma.name, lemma.queries, lemma.exceptions)


def _of_two(first: str, second: str, shape: Shape) -> Iterator[MapClaim]:
    """No index of the box is taken to two places."""
    a, b = parse_index_map(first), parse_index_map(second)
    if a.rank != b.rank or first == second:
        return
    variables = tuple(Var(f"i{axis}", v.dtype) for axis, v in enumerate(a.inputs))
    pairs = zip(a.map_indices(variables), b.map_indices(variables), strict=True)
    unequal = tuple((differ(one, other),) for one, other in pairs if one != other)
    if not unequal:
        return
    dims = tuple(Dim(v, const(0, v.dtype), const(extent, v.dtype), ForKind.SERIAL) for v, extent in zip(variables, shape, strict=True))
    queries, missing = queries_of([NoInstance(Setting(), Scene(dims), unequal, "isl")])
    claim = f"`{first}` and `{second}` take each index of [{', '.join(map(str, shape))}] to one place"
    yield MapClaim(claim, queries, tuple((each.what, each.reason) for each in missing))
