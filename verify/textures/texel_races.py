"""No two work items get into each other's way at a texel: the channels of one are written, and read, together.

A store of fewer channels than a texel has is a read of the others and a write of all, so it clobbers what another work
item stores to the same texel at the same time, though the two touch different elements. Work items are the iterations
of parallel loops, each loop by itself: what is proved holds whichever of them become work items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.expr import FALSE, TRUE, Expr
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import ForKind
from layoutproof.verify.faults.bounds import Place
from layoutproof.verify.faults.facts import (
    STRUCTURE,
    Facts,
    Stopwatch,
    check_transparent,
    left_open,
    proved,
    refuted,
    unknown,
    values_text,
)
from layoutproof.verify.faults.races import MARK, joined, same_cell
from layoutproof.verify.program.instances import Access, AccessKind, Dim, IterationDomain, Loop
from layoutproof.verify.program.questions import Search, below, differ
from layoutproof.verify.textures.texel_places import (
    Texel,
    Texture,
    channels_written,
    partial_where,
    texels_at,
)
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Proved, Verdict

_CONCURRENT = frozenset((ForKind.PARALLEL, ForKind.THREAD_BINDING))
_THREADS = (
    "a loop that is bound to threads does not enclose its whole kernel, and what synchronises them is not looked into"
)


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two accesses to one texel, the second in another iteration of a loop: the search and its domain."""

    first: Place
    second: Place
    position: int
    domain: IterationDomain
    found: Search


def prove_texel_writes(facts: Facts, texture: Texture, places: Sequence[Place]) -> tuple[Verdict, ...]:
    """One verdict a write: it covers every texel that it touches, or no other work item writes that texel.

    `places` are those of all accesses of the texture, in their order, as `texel_places` gives them.
    """
    writes = [place for place in places if place.access.kind is AccessKind.WRITE]
    pairs = zip(texture.accesses, places, strict=True)
    return tuple(_prove_write(facts, texture, a, place, writes) for a, place in pairs if a.kind is AccessKind.WRITE)


def prove_texel_races(facts: Facts, texture: Texture, places: Sequence[Place]) -> tuple[Verdict, ...]:
    """One verdict per parallel loop that reads and writes the texture: no read-write race on a texel."""
    verdicts = []
    for loop in facts.program.loops:
        if loop.dim.kind not in _CONCURRENT:
            continue
        inside = [place for place in places if _prefix(place.access, loop.dim) == _moment(loop)]
        kinds = {place.access.kind for place in inside}
        if {AccessKind.READ, AccessKind.WRITE} <= kinds:
            verdicts.append(_prove_loop(facts, texture, loop, inside))
    return tuple(verdicts)


def _prove_write(facts: Facts, texture: Texture, access: Access, place: Place, writes: Sequence[Place]) -> Verdict:
    watch = facts.watch()
    what = f"write {access.text} covers its texel or is the only writer of it"
    claim = Claim(ClaimKind.OTHER, what, access.place, about=("whole-texel", access.text))
    partial = partial_where(access, texture)
    if partial != TRUE:
        covering = None if partial == FALSE else facts.search(access.domain, partial)
        if covering is None or covering.is_empty:
            engine = STRUCTURE if covering is None else covering.engine
            what = f"it writes all {texture.channels} channels" if texture.channels > 1 else "a texel has one channel"
            return proved(claim, engine, watch, what)
    transparent = check_transparent(facts.program)
    if isinstance(transparent, Open):
        return unknown(claim, STRUCTURE, transparent.reason, watch)
    if any(_prefix(access, loop.dim) == _moment(loop) for loop in _stray_threads(facts)):
        return unknown(claim, STRUCTURE, _THREADS, watch)
    engine, undecided = STRUCTURE, None
    for meeting in _meetings(facts, place, writes, (partial,)):
        if meeting.found.is_empty:
            engine = meeting.found.engine
            continue
        verdict = _clobbered(facts, texture, meeting, claim, watch)
        if verdict.counterexample is not None:
            return verdict
        undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, engine, watch, "no other work item writes it")


def _prove_loop(facts: Facts, texture: Texture, loop: Loop, inside: Sequence[Place]) -> Verdict:
    watch = facts.watch()
    of = f"of the {loop.dim.kind.value} loop {loop.dim.var.name}"
    what = f"no texel of {texture.name} that one iteration {of} writes is read by another"
    about = ("texel-race", texture.name, loop.dim.var.name)
    claim = Claim(ClaimKind.OTHER, what, loop.spot.place_of(loop.node), about=about)
    transparent = check_transparent(facts.program)
    if isinstance(transparent, Open):
        return unknown(claim, STRUCTURE, transparent.reason, watch)
    strays = _stray_threads(facts)
    if any(_prefix(each.access, stray.dim) == _moment(stray) for stray in strays for each in inside):
        return unknown(claim, STRUCTURE, _THREADS, watch)
    engine, undecided = STRUCTURE, None
    position = len(loop.domain.dims)
    reads = [each for each in inside if each.access.kind is AccessKind.READ]
    for write in inside:
        for read in reads if write.access.kind is AccessKind.WRITE else ():
            meeting = _meet(facts, write, read, position, ())
            if isinstance(meeting, Proved):
                continue
            if meeting.found.is_empty:
                engine = meeting.found.engine
                continue
            verdict = _raced(facts, texture, meeting, claim, watch)
            if verdict.counterexample is not None:
                return verdict
            undecided = undecided if undecided is not None else verdict
    return undecided if undecided is not None else proved(claim, engine, watch)


def _moment(loop: Loop) -> tuple[int | Dim, ...]:
    """The moment at which the body of a loop is run."""
    return (*loop.domain.time, 1, loop.dim)


def _stray_threads(facts: Facts) -> list[Loop]:
    """Thread loops that are inside a serial loop, or do not enclose all of the outermost loop's body."""
    strays = []
    for loop in facts.program.loops:
        if loop.dim.kind is not ForKind.THREAD_BINDING:
            continue
        timestamp = _moment(loop)
        outermost = loop.domain.dims[0] if loop.domain.dims else loop.dim
        kernel = timestamp[: timestamp.index(outermost) + 1]
        within = [access for access in facts.program.accesses if _prefix(access, outermost) == kernel]
        whole = all(_prefix(access, loop.dim) == timestamp for access in within)
        if not whole or any(dim.kind not in _CONCURRENT for dim in loop.domain.dims):
            strays.append(loop)
    return strays


def _prefix(access: Access, dim: Dim) -> tuple[int | Dim, ...] | None:
    """The moment at which an access is in a loop; None where the loop is not around it."""
    time = access.domain.time
    return time[: time.index(dim) + 1] if dim in time else None


def _meetings(facts: Facts, place: Place, others: Sequence[Place], conditions: tuple[Expr, ...]) -> Iterator[_Meeting]:
    """Where another iteration of a loop around `place` touches its texel by one of `others`, itself among them."""
    for position, dim in enumerate(place.access.domain.dims):
        if dim.kind not in _CONCURRENT:
            continue
        timestamp = _prefix(place.access, dim)
        for other in others:
            if _prefix(other.access, dim) == timestamp:
                meeting = _meet(facts, place, other, position, conditions)
                if isinstance(meeting, _Meeting):
                    yield meeting


def _meet(facts: Facts, first: Place, second: Place, position: int, conditions: tuple[Expr, ...]) -> _Meeting | Proved:
    """Two instances at one texel, equal up to loop `position`, or that the coordinates exclude them."""
    mine, theirs = first.access.domain.dims[position].var, second.access.domain.dims[position].var
    if any(a == b == mine for a, b in zip(first.coordinates, second.coordinates, strict=True)):
        return Proved()
    domain, values = joined(first, second, position)
    domain = replace(domain, guards=(*first.access.domain.guards, *domain.guards))
    # One access against itself under no condition: the two are interchangeable, so one order stands for both.
    variants = first is second and conditions in ((), (TRUE,))
    apart = below(mine, values[theirs]) if variants else differ(mine, values[theirs])
    asked = [condition for condition in conditions if condition != TRUE]
    return _Meeting(
        first, second, position, domain, facts.search(domain, *same_cell(first, second, values), apart, *asked)
    )


def _clobbered(facts: Facts, texture: Texture, meeting: _Meeting, claim: Claim, watch: Stopwatch) -> Verdict:
    first, second, found = meeting.first.access, meeting.second.access, meeting.found
    told = _replayed(facts, texture, meeting)
    if told is None:
        return left_open(claim, found, watch)
    here, there, texel = told
    lanes = channels_written(first, texture, here, texel)
    if len(lanes) == texture.channels:
        return unknown(claim, found.engine, "the point that was found does not replay", watch)
    text = (
        f"at {_loops(first, here)} it writes channels {lanes} of texel {list(texel)}, "
        f"which {second.text} ({second.place}) writes too, "
        f"at {_loops(second, there)}: one of the two is lost"
    )
    if first.data_dependent or second.data_dependent:
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, {**_shown(facts, texture, meeting, told), "channels": lanes}, text, watch)


def _raced(facts: Facts, texture: Texture, meeting: _Meeting, claim: Claim, watch: Stopwatch) -> Verdict:
    first, second, found = meeting.first.access, meeting.second.access, meeting.found
    told = _replayed(facts, texture, meeting)
    if told is None:
        return left_open(claim, found, watch)
    here, there, texel = told
    text = (
        f"write {first.text} ({first.place}) at {_loops(first, here)} "
        f"and read {second.text} ({second.place}) at {_loops(second, there)} "
        f"touch texel {list(texel)}"
    )
    if first.data_dependent or second.data_dependent:
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, _shown(facts, texture, meeting, told), text, watch)


_Told = tuple[dict[str, int], dict[str, int], Texel]


def _replayed(facts: Facts, texture: Texture, meeting: _Meeting) -> _Told | None:
    """Both instances and a texel that both touch, evaluated again; None if that fails."""
    point = meeting.found.point
    if point is None:
        return None
    dims = meeting.first.access.domain.dims, meeting.second.access.domain.dims
    unknowns = meeting.first.access.domain.unknowns, meeting.second.access.domain.unknowns
    symbols = {v.name: point[v.name] for v in facts.program.symbols}
    here = (
        symbols
        | {dim.var.name: point[dim.var.name] for dim in dims[0]}
        | {u.var.name: point[u.var.name] for u in unknowns[0]}
    )
    there = symbols | {dim.var.name: point[dim.var.name + MARK] for dim in dims[1][meeting.position :]}
    there |= {u.var.name: point[u.var.name + MARK] for u in unknowns[1]}
    there |= {dim.var.name: here[dims[0][k].var.name] for k, dim in enumerate(dims[1][: meeting.position])}
    if here[dims[0][meeting.position].var.name] == there[dims[1][meeting.position].var.name]:
        return None
    if not facts.happens(meeting.first.access.domain, here) or not facts.happens(meeting.second.access.domain, there):
        return None
    try:
        common = _touched(meeting.first, texture, here) & _touched(meeting.second, texture, there)
    except (Trap, KeyError, TypeError):
        return None
    return (here, there, min(common)) if common else None


def _touched(place: Place, texture: Texture, point: Mapping[str, int]) -> set[Texel]:
    return texels_at(place.access, texture, point)


def _shown(facts: Facts, texture: Texture, meeting: _Meeting, told: _Told) -> dict[str, object]:
    here, there, texel = told
    return {
        "buffer": texture.name,
        "texel": list(texel),
        "first": _of_loops(meeting.first.access, here),
        "second": _of_loops(meeting.second.access, there),
        "symbols": {v.name: here[v.name] for v in facts.program.symbols},
    }


def _of_loops(access: Access, point: Mapping[str, int]) -> dict[str, int]:
    return {dim.var.name: point[dim.var.name] for dim in access.domain.dims if not dim.lane}


def _loops(access: Access, point: Mapping[str, int]) -> str:
    return values_text(_of_loops(access, point))
