"""Timestamps of accesses, and the last writer of a cell before it is read, for every instance of the read. Candidates
are visited from the latest to the earliest. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from layoutproof.ir.node import Steps, trampoline
from layoutproof.verify.isl.operations import coalesced, greatest
from layoutproof.verify.isl.space import NamedSpace, isl
from layoutproof.verify.program.instances import Dim
from layoutproof.verify.program.statement import NotModelled

Time = tuple[int | Dim, ...]


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Instances at one `time`, as points over the dims of `space`. No tuple has a name."""

    space: NamedSpace
    time: Time
    instances: isl.Set

    def accessing(self, access: isl.Map) -> isl.Map:
        """Point -> cell, of a relation from points to cells, where they happen."""
        return access.intersect_domain(self.instances)


def suffixes(timestamps: Sequence[Timestamp], position: int) -> list[isl.Map]:
    """Point -> time after `position` in one space, without what all have alike. Raises ValueError for equal times."""
    columns: list[list[int | str]] = [[] for _ in timestamps]
    start = (list(range(len(timestamps))), position)
    trampoline(lambda given: _tell_apart(timestamps, given[0], given[1], columns), start)
    width = max(len(c) for c in columns)
    return [
        _schedule(timestamp.space, [*c, *[0] * (width - len(c))])
        for timestamp, c in zip(timestamps, columns, strict=True)
    ]


def _tell_apart(
    timestamps: Sequence[Timestamp], group: list[int], position: int, columns: list[list[int | str]]
) -> Steps[tuple[list[int], int], None]:
    if len(group) == 1:
        (only,) = group
        columns[only] += [m.var.name for m in timestamps[only].time[position:] if isinstance(m, Dim)]
        return
    if any(len(timestamps[k].time) <= position for k in group):
        raise ValueError("two writes of one memory happen at one time")
    heads = {k: timestamps[k].time[position] for k in group}
    numbers = sorted({h for h in heads.values() if isinstance(h, int)})
    names = {h.var.name for h in heads.values() if isinstance(h, Dim)}
    if len(names) > 1 or (names and numbers):
        raise ValueError("writes of one memory in different loops at one place of the text")
    if names:
        for k in group:
            columns[k].append(*names)
        yield group, position + 1
        return
    for rank, number in enumerate(numbers):
        part = [k for k in group if heads[k] == number]
        for k in part if len(numbers) > 1 else ():
            columns[k].append(rank)
        yield part, position + 1


def _schedule(space: NamedSpace, columns: Sequence[int | str]) -> isl.Map:
    affs = isl.AffList.alloc(space.ctx, len(columns))
    for column in columns:
        affs = affs.add(space.constant(column) if isinstance(column, int) else space.variable(column))
    full = isl.Space.alloc(space.ctx, len(space.params), len(space.dims), len(columns))
    for position, name in enumerate(space.params):
        full = full.set_dim_name(isl.dim_type.param, position, name)
    return isl.Map.from_multi_aff(isl.MultiAff.from_aff_list(full, affs))


_Search = Steps[Callable[[], Any], None]


@dataclass(slots=True)
class LastWrite:
    """One read and the writes of its memory: `read` maps points of `reader` to cells, `writes` those of each writer."""

    reader: Timestamp
    read: isl.Map
    writers: Sequence[Timestamp]
    writes: Sequence[isl.Map]
    todo: isl.Set = field(init=False)
    found: list[tuple[int, isl.Map]] = field(default_factory=list)
    _related: dict[tuple[int, tuple[str, ...]], isl.Map] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.todo = self.read.domain()

    def run(self) -> None:
        """Afterwards `found` has, for writers by number, reader point -> writer point; `todo` is what found nothing."""
        trampoline(lambda step: step(), partial(self._before, 0, list(range(len(self.writers))), ()))

    def _before(self, position: int, group: list[int], shared: tuple[str, ...]) -> _Search:
        """Writers that agree with the reader before `position` in the text, and in the loops `shared`."""
        if not group or self.todo.is_empty():
            return
        if len(self.reader.time) <= position or any(len(self.writers[k].time) <= position for k in group):
            raise ValueError("a read and a write of one cell happen at one time")
        head = self.reader.time[position]
        if isinstance(head, Dim):
            yield partial(self._before, position + 1, group, (*shared, head.var.name))
            yield partial(self._within, position, group, shared, head.var.name)
            return
        parts = self._by_number(group, position)
        yield partial(self._before, position + 1, parts.pop(head, []), shared)
        for number in sorted((number for number in parts if number < head), reverse=True):
            yield partial(self._within, position + 1, parts[number], shared, None)
            if self.todo.is_empty():
                return

    def _by_number(self, group: list[int], position: int) -> dict[int, list[int]]:
        """The writers whose time has a number at `position`, by that number."""
        parts: dict[int, list[int]] = {}
        for k in group:
            number = self.writers[k].time[position]
            if isinstance(number, int):
                parts.setdefault(number, []).append(k)
        return parts

    def _within(self, position: int, group: list[int], shared: tuple[str, ...], below: str | None) -> _Search:
        """The last of some writers that agree before `position`, in an earlier iteration of the loop `below`."""
        while len(group) > 1 and below is None:
            parts = self._by_number(group, position)
            if not parts:
                break
            position += 1
            if len(parts) > 1:
                for number in sorted(parts, reverse=True):
                    yield partial(self._within, position, parts[number], shared, None)
                return
        if not group or self.todo.is_empty():
            return
        candidates = {k: self._candidates(k, shared, below) for k in group}
        candidates = {k: relation for k, relation in candidates.items() if not relation.is_empty()}
        if len(candidates) == 1:
            ((number, relation),) = candidates.items()
            self._take({number: greatest(relation)}, relation, shared)
        elif candidates:
            self._together(position, candidates, shared)

    def _together(self, position: int, candidates: dict[int, isl.Map], shared: tuple[str, ...]) -> None:
        """The last of several writers in one loop: the latest of their times, then whose that is."""
        whole = dict(zip(candidates, suffixes([self.writers[k] for k in candidates], position), strict=True))
        times = {n: time.project_out(isl.dim_type.in_, 0, len(shared)) for n, time in whole.items()}
        every: isl.Map | None = None
        for number, relation in candidates.items():
            timestamps = relation.apply_range(times[number])
            every = timestamps if every is None else every.union(timestamps)
        assert every is not None
        every = coalesced(every)
        latest = greatest(every)
        found = {
            n: coalesced(relation.intersect(latest.apply_range(times[n].reverse())))
            for n, relation in candidates.items()
        }
        self._take(found, every, shared)

    def _take(self, latest: dict[int, isl.Map], candidates: isl.Map, shared: tuple[str, ...]) -> None:
        here = [self.reader.space.position(name)[1] for name in shared]
        for number, relation in latest.items():
            if not relation.is_empty():
                self.found.append((number, _with_coordinates(relation, here)))
        self.todo = coalesced(self.todo.subtract(candidates.domain()))

    def _candidates(self, number: int, shared: tuple[str, ...], below: str | None) -> isl.Map:
        """Reader point -> the coordinates of the writer's points after the shared loops, which agree."""
        relation = self._sharing(number, shared)
        if below is not None:
            reader, writer = self.reader.space.position(below)[1], self.writers[number].space.position(below)[1]
            relation = relation.order_gt(isl.dim_type.in_, reader, isl.dim_type.out, writer - len(shared))
        return relation.intersect_domain(self.todo)

    def _sharing(self, number: int, shared: tuple[str, ...]) -> isl.Map:
        """The writes of the cell that is read, in the same iteration of the outermost loops of reader and writer."""
        known = self._related.get((number, shared))
        if known is None:
            if not shared:
                known = self.read.apply_range(self.writes[number].reverse())
            else:
                if self.writers[number].space.dims[: len(shared)] != shared:
                    raise NotModelled(f"the loops {shared} of a read are not the outermost ones of a write")
                known = self._sharing(number, shared[:-1])
                known = known.equate(isl.dim_type.in_, self.reader.space.position(shared[-1])[1], isl.dim_type.out, 0)
                # It equals the reader's coordinate: without it the sets are half as large.
                known = known.project_out(isl.dim_type.out, 0, 1)
            self._related[number, shared] = known
        return known


def _with_coordinates(relation: isl.Map, positions: Sequence[int]) -> isl.Map:
    """The relation to points with some coordinates of the element put before theirs."""
    relation = relation.insert_dims(isl.dim_type.out, 0, len(positions))
    for axis, position in enumerate(positions):
        relation = relation.equate(isl.dim_type.in_, position, isl.dim_type.out, axis)
    return relation


def preceding(later: Timestamp, earlier: Timestamp, relation: isl.Map) -> isl.Map:
    """The pairs of a relation from `later` to `earlier` in which the second happens before the first."""
    result = relation.subtract(relation)
    for part in preceding_parts(later, earlier, relation):
        result = result.union(part)
    return coalesced(result)


def preceding_parts(later: Timestamp, earlier: Timestamp, relation: isl.Map) -> Iterator[isl.Map]:
    """The same in parts, none of them empty: by the loop in which the second is in an earlier iteration, or earlier in
    the text.
    """
    agreed: tuple[str, ...] = ()
    for shared, below in _ways(later.time, earlier.time):
        for name in shared[len(agreed) :]:
            relation = relation.equate(
                isl.dim_type.in_, later.space.position(name)[1], isl.dim_type.out, earlier.space.position(name)[1]
            )
        agreed = shared
        part = relation
        if below is not None:
            part = part.order_gt(
                isl.dim_type.in_, later.space.position(below)[1], isl.dim_type.out, earlier.space.position(below)[1]
            )
        if not part.is_empty():
            yield part


def _ways(later: Sequence[int | Dim], earlier: Sequence[int | Dim]) -> Iterator[tuple[tuple[str, ...], str | None]]:
    """The loops that agree, and the one in which the second is in an earlier iteration (None: earlier in the text)."""
    shared: tuple[str, ...] = ()
    depth = min(len(later), len(earlier))  # one may be nested deeper than the other
    for a, b in zip(later[:depth], earlier[:depth], strict=True):
        if isinstance(a, Dim):
            yield shared, a.var.name
            shared = (*shared, a.var.name)
        elif a != b:
            if isinstance(b, int) and b < a:
                yield shared, None
            return
