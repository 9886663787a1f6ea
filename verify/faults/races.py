"""When one access comes before another, and that no two iterations of a parallel or vectorised loop, and no two lanes
of a store, touch one cell, one of them writing. A conditional store counts as a write. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import BufferStore, ForKind
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.faults.bounds import Place, element_number, places_of
from layoutproof.verify.faults.facts import (
    STRUCTURE,
    Facts,
    Stopwatch,
    left_open,
    proved,
    refuted,
    unknown,
    values_text,
)
from layoutproof.verify.program.instances import Access, AccessKind, Dim, Guard, IterationDomain, Loop, Unknown
from layoutproof.verify.program.questions import Because, Cover, Search, below, differ, same
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Proved, Verdict

MARK = "'"


def same_cell(first: Place, second: Place, values: Mapping[Var, Expr]) -> tuple[Expr, ...]:
    """That both touch one cell, the second with variables replaced."""
    pairs = zip(first.coordinates, second.coordinates, strict=True)
    return tuple(same(a, substitute(b, values)) for a, b in pairs)


def joined(first: Place, second: Place, shared: int) -> tuple[IterationDomain, dict[Var, Expr]]:
    """The instances of both whose first `shared` loops agree, and what the second's variables are called there.

    The first's guards are left out: the caller adds them.
    """
    here, there = first.access.domain, second.access.domain
    values: dict[Var, Expr] = {}
    dims: list[Dim] = list(here.dims)
    for position, dim in enumerate(there.dims):
        if position < shared:
            values[dim.var] = here.dims[position].var
            continue
        marked = Var(dim.var.name + MARK, dim.var.dtype)
        dims.append(
            replace(dim, var=marked, start=substitute(dim.start, values), extent=substitute(dim.extent, values))
        )
        values[dim.var] = marked
    unknowns = list(here.unknowns)
    for other in there.unknowns:
        marked = Var(other.var.name + MARK, other.var.dtype)
        unknowns.append(Unknown(marked, other.source))
        values[other.var] = marked
    guards = tuple(Guard(substitute(g.condition, values), g.holds, g.group) for g in there.guards)
    domain = replace(
        here, dims=tuple(dims), guards=guards, unknowns=tuple(unknowns), dropped=(*here.dropped, *there.dropped)
    )
    return domain, values


def pairs_before(later: Place, earlier: Place) -> Iterator[Cover]:
    """Where `earlier` touches the cell of `later` before it, in the same allocation where the memory is a temporary.

    The cheap case first: the same iteration of all common loops; then earlier iterations, innermost loop first.
    """
    depth = later.access.domain.allocations.get(later.access.data, 0)
    if earlier.access.domain.allocations.get(earlier.access.data, 0) != depth:
        return
    before, common = _common(later.access.domain.time, earlier.access.domain.time)
    if before and common >= depth:
        domain, values = joined(later, earlier, common)
        yield Cover(domain, same_cell(later, earlier, values))
    for position in range(common - 1, depth - 1, -1):
        domain, values = joined(later, earlier, position)
        mine, theirs = later.access.domain.dims[position].var, earlier.access.domain.dims[position].var
        yield Cover(domain, (*same_cell(later, earlier, values), below(values[theirs], mine)))


def _common(later: tuple[int | Dim, ...], earlier: tuple[int | Dim, ...]) -> tuple[bool, int]:
    """Whether the second stands before the first in the text, and how many loops are around both."""
    loops = 0
    shared = min(len(later), len(earlier))  # one may stand deeper than the other
    for a, b in zip(later[:shared], earlier[:shared], strict=True):
        if isinstance(a, Dim) and a == b:
            loops += 1
        elif isinstance(a, int) and isinstance(b, int):
            if a != b:
                return b < a, loops
        else:
            return False, loops
    return False, loops


_CONCURRENT = frozenset((ForKind.PARALLEL, ForKind.VECTORIZED))


def prove_race_free(facts: Facts) -> tuple[Verdict, ...]:
    """One verdict a parallel or vectorised loop, and one a store of several lanes."""
    cells: dict[Var, list[Place]] = {}
    verdicts = []
    for loop in facts.program.loops:
        if loop.dim.kind is ForKind.THREAD_BINDING:
            name, place = loop.dim.var.name, loop.spot.place_of(loop.node)
            what = f"no two threads {name} touch one cell"
            claim = Claim(ClaimKind.NO_RACE, what, place, about=("threads", name))
            verdicts.append(
                unknown(
                    claim, STRUCTURE, "thread bindings, and what synchronises them, are not looked into", facts.watch()
                )
            )
        elif loop.dim.kind in _CONCURRENT:
            verdicts.append(_prove_loop(facts, loop, cells))
    for access in facts.program.accesses:
        lane = next((k for k, dim in enumerate(access.domain.dims) if dim.lane), None)
        if access.kind is AccessKind.WRITE and lane is not None:
            verdicts.append(_prove_lanes(facts, _lanes_place(access), lane))
    return tuple(verdicts)


def _lanes_place(access: Access) -> Place:
    """A store of several lanes with its cell: different indices may be one cell where strides say so."""
    buffer = access.buffer
    return Place(access, (element_number(buffer, access.indices),) if buffer.strides else access.indices)


def _inside(place: Place, dim: Dim, outer: IterationDomain) -> bool:
    around = (*outer.time, 1, dim)
    return place.access.domain.time[: len(around)] == around


def _places(facts: Facts, data: Var, cells: dict[Var, list[Place]]) -> list[Place]:
    if data not in cells:
        cells[data] = places_of(facts, data)
    return cells[data]


def _prove_loop(facts: Facts, loop: Loop, cells: dict[Var, list[Place]]) -> Verdict:
    watch = facts.watch()
    dim, outer = loop.dim, loop.domain
    what = f"no two iterations of the {dim.kind.value} loop {dim.var.name} touch one cell, one writing"
    claim = Claim(ClaimKind.NO_RACE, what, loop.spot.place_of(loop.node), about=(dim.kind.value, dim.var.name))
    depth = len(outer.dims)
    written: dict[Var, list[Place]] = {}
    touched: set[Var] = set()
    for access in facts.program.accesses:
        data = access.data
        if data in written or access.domain.allocations.get(data, 0) > depth:
            continue
        inside = [p for p in _places(facts, data, cells) if _inside(p, dim, outer)]
        if inside:
            touched.add(data)
        if any(p.access.kind is AccessKind.WRITE for p in inside):
            written[data] = inside
    disjoint = _are_disjoint(facts, set(written), touched)
    if isinstance(disjoint, Open):
        return unknown(claim, STRUCTURE, disjoint.reason, watch, *disjoint.because)
    engine = STRUCTURE
    left: list[Verdict] = []
    for first, second in _pairs(written):
        if _apart(first, second, dim.var):
            continue
        conflict = _conflict(facts, first, second, depth)
        if conflict.found.is_empty:
            engine = conflict.found.engine
            continue
        verdict = _collision(facts, conflict, claim, watch)
        if verdict.counterexample is not None and Because.ONE_VALUE not in verdict.because:
            return verdict
        left.append(verdict)
    return max(left, key=lambda verdict: verdict.counterexample is not None) if left else proved(claim, engine, watch)


def _are_disjoint(facts: Facts, written: set[Var], touched: set[Var]) -> Proved | Open:
    """Whether no two different parameters can be one memory, where that matters."""
    if facts.program.obstacles:
        return Open(f"{facts.program.obstacles[0].what} may touch anything")
    function = facts.program.function
    parameters = {buffer.data for buffer in function.buffers}
    if not function.noalias and written & parameters and len(touched & parameters) > 1:
        return Open("parameters may overlap: the function does not assume noalias", frozenset((Because.OVERLAP,)))
    return Proved()


def _pairs(written: dict[Var, list[Place]]) -> Iterator[tuple[Place, Place]]:
    for places in written.values():
        for first, second in combinations_with_replacement(places, 2):
            if AccessKind.WRITE in (first.access.kind, second.access.kind):
                yield first, second


def _apart(first: Place, second: Place, var: Var) -> bool:
    """Whether one coordinate of both cells is the loop's variable, so that different iterations are disjoint."""
    return any(a == b == var for a, b in zip(first.coordinates, second.coordinates, strict=True))


@dataclass(frozen=True, slots=True)
class _Conflict:
    """What a search for two instances that touch one cell found."""

    first: Place
    second: Place
    found: Search


def _conflict(facts: Facts, first: Place, second: Place, position: int) -> _Conflict:
    """Two instances that touch one cell, agree on the loops before `position` and differ in that one."""
    domain, values = joined(first, second, position)
    domain = replace(domain, guards=(*first.access.domain.guards, *domain.guards))
    mine, theirs = first.access.domain.dims[position].var, second.access.domain.dims[position].var
    # One access against itself: the two are interchangeable, so one order stands for both.
    apart = below(mine, values[theirs]) if first is second else differ(mine, values[theirs])
    return _Conflict(first, second, facts.search(domain, *same_cell(first, second, values), apart))


def _collision(facts: Facts, conflict: _Conflict, claim: Claim, watch: Stopwatch) -> Verdict:
    first, second, found = conflict.first, conflict.second, conflict.found
    if found.point is None:
        return left_open(claim, found, watch)
    point = found.point
    here = {dim.var.name: point[dim.var.name] for dim in first.access.domain.dims}
    there = {
        dim.var.name: point.get(dim.var.name + MARK, point.get(dim.var.name, 0)) for dim in second.access.domain.dims
    }
    symbols = {v.name: point[v.name] for v in facts.program.symbols}
    cells = _cell(facts, first, here | symbols), _cell(facts, second, there | symbols)
    if cells[0] is None or cells[0] != cells[1]:
        return left_open(claim, found, watch)
    places = [each.access.place for each in (first, second)]
    names = [f"{each.access.kind.value} {each.access.text}" for each in (first, second)]
    text = (
        f"{names[0]} ({places[0]}) at {values_text(here)} and "
        f"{names[1]} ({places[1]}) at {values_text(there)} touch one cell"
    )
    if first.access.data_dependent or second.access.data_dependent:
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    counterexample = {
        "buffer": first.access.buffer.name,
        "cell": cells[0],
        "first": here,
        "second": there,
        "symbols": symbols,
    }
    related = tuple((place.line, name) for place, name in zip(places, names, strict=True) if place.line is not None)
    verdict = refuted(claim, found.engine, counterexample, text, watch, related)
    if first is second and isinstance(first.access.node, BufferStore):
        used = {v.name for v in free_variables(first.access.node.value)}
        if all(here[name] == there[name] for name in used & set(here)):
            return replace(verdict, because=frozenset((Because.ONE_VALUE,)))
    return verdict


def _cell(facts: Facts, place: Place, values: dict[str, int]) -> list[int] | None:
    if not facts.happens(place.access.domain, values):
        return None
    try:
        return [int(evaluate(part, values)) for part in place.coordinates]
    except (Trap, KeyError, TypeError):
        return None


def _prove_lanes(facts: Facts, place: Place, position: int) -> Verdict:
    watch = facts.watch()
    what = f"no two lanes of the store {place.access.text} meet"
    claim = Claim(ClaimKind.NO_RACE, what, place.access.place, about=("lanes", place.access.text))
    if not place.access.buffer.strides and any(
        _is_ramp(c, place.access.domain.dims[position].var) for c in place.coordinates
    ):
        return proved(claim, STRUCTURE, watch)
    conflict = _conflict(facts, place, place, position)
    if conflict.found.is_empty:
        return proved(claim, conflict.found.engine, watch)
    return _collision(facts, conflict, claim, watch)


def _is_ramp(coordinate: Expr, lane: Var) -> bool:
    terms = Polynomial.of(coordinate).terms
    others = (atom for monomial in terms if monomial != (lane,) for atom in monomial)
    return terms.get((lane,), 0) != 0 and all(lane not in free_variables(atom) for atom in others)
