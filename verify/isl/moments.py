"""When accesses happen: their points in a space whose dims in order are the loops of their time. Part of the trust base.

A time is a sequence of numbers (the order of the text) and loops, compared lexicographically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.verify.instances import Dim
from layoutproof.verify.isl.library import isl
from layoutproof.verify.isl.space import NamedSpace

Time = tuple[int | Dim, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Instances that happen at one `time`, as points over the dims of `space`, of which the time speaks in their order. No tuple has a
    name."""

    space: NamedSpace
    time: Time
    instances: isl.Set

    def accessing(self, access: isl.Map) -> isl.Map:
        """Point -> cell, of a relation from points to cells, where they happen."""
        return access.intersect_domain(self.instances)


def suffixes(moments: Sequence[Moment], position: int) -> list[isl.Map]:
    """Point -> time after `position`, up to which all agree, in one space: what does not tell them apart is left out.

    Raises ValueError where two happen at once.
    """
    columns: list[list[int | str]] = [[] for _ in moments]
    _tell_apart(moments, list(range(len(moments))), position, columns)
    width = max(len(c) for c in columns)
    return [_schedule(moment.space, [*c, *[0] * (width - len(c))]) for moment, c in zip(moments, columns, strict=True)]


def _tell_apart(moments: Sequence[Moment], group: list[int], position: int, columns: list[list[int | str]]) -> None:
    if len(group) == 1:
        (only,) = group
        columns[only] += [m.var.name for m in moments[only].time[position:] if isinstance(m, Dim)]
        return
    if any(len(moments[k].time) <= position for k in group):
        raise ValueError("two writes of one memory happen at one time")
    heads = {k: moments[k].time[position] for k in group}
    numbers = sorted({h for h in heads.values() if isinstance(h, int)})
    names = {h.var.name for h in heads.values() if isinstance(h, Dim)}
    if len(names) > 1 or (names and numbers):
        raise ValueError("writes of one memory in different loops at one place of the text")
    if names:
        for k in group:
            columns[k].append(*names)
        _tell_apart(moments, group, position + 1, columns)
        return
    for rank, number in enumerate(numbers):
        part = [k for k in group if heads[k] == number]
        for k in part if len(numbers) > 1 else ():
            columns[k].append(rank)
        _tell_apart(moments, part, position + 1, columns)


def _schedule(space: NamedSpace, columns: Sequence[int | str]) -> isl.Map:
    affs = isl.AffList.alloc(space.ctx, len(columns))
    for column in columns:
        affs = affs.add(space.constant(column) if isinstance(column, int) else space.variable(column))
    full = isl.Space.alloc(space.ctx, len(space.params), len(space.dims), len(columns))
    for position, name in enumerate(space.params):
        full = full.set_dim_name(isl.dim_type.param, position, name)
    return isl.Map.from_multi_aff(isl.MultiAff.from_aff_list(full, affs))
