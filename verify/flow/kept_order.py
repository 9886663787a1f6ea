"""Memories that both programs write in the same way: every read then has the source that it had, and the last writers
need not be searched for. Part of the trust base.

The argument: let theta be one to one between the writes of a memory in both programs, and let it take the cells that
they write to cells that correspond. If of any two writes of one cell the same one comes first in both programs, and if
a read has the same writes of its cell before it, then the last of these is the same; and where there is none, both find
what the cell held at the start. None of that asks for a greatest instance, only whether sets of pairs are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from layoutproof.ir.expr import Var
from layoutproof.verify.flow.models import NEW, OLD, Counterpart, RewriteModel
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.isl.instance_sets import Link, Points, Region
from layoutproof.verify.isl.last_writer import Time, Timestamp, preceding_parts
from layoutproof.verify.isl.space import isl
from layoutproof.verify.program.instances import Dim
from layoutproof.verify.program.statement import Read


@dataclass(frozen=True, slots=True)
class _Doing:
    """Accesses of one statement: points to cells, when they happen."""

    when: Timestamp
    cells: Link

    def together(self, other: _Doing) -> Link:
        """Our points to the other's at the same cell."""
        return self.cells.apply_range(other.cells.reverse())


@dataclass(frozen=True, slots=True)
class _Pair:
    """What a statement and its counterpart do; `step` is theta on the points."""

    new: _Doing
    old: _Doing
    step: Link

    @property
    def is_ordered(self) -> bool:
        """Whether no two points happen at one time."""
        return _names_all(self.new.when) and _names_all(self.old.when)

    @property
    def is_one_to_one(self) -> bool:
        """Whether theta is one to one between all that both do."""
        return bool(
            self.new.cells.domain().is_equal(self.step.domain())
            and self.old.cells.domain().is_equal(self.step.range())
            and self.step.is_injective()
        )

    def corresponds(self, cells: Link) -> bool:
        """Whether counterparts access cells that correspond."""
        wanted = self.step.apply_range(self.old.cells).apply_range(cells)
        return bool(wanted.is_equal(self.new.cells.intersect_domain(self.step.domain())))

    def keeps_order(self, other: _Pair) -> bool:
        """Whether of the other's points at our cells those that came after ours do not come before them now."""
        if self is other:
            if self.new.cells.is_injective():
                return True
        else:
            now, before = (
                _order(self.new.when.time, other.new.when.time),
                _order(self.old.when.time, other.old.when.time),
            )
            if now is None or before is None:
                return False
            if now == before != 0:
                return True
        for part in preceding_parts(self.new.when, other.new.when, self.new.together(other.new)):
            counterparts = part.apply_domain(self.step).apply_range(other.step).reverse()
            if any(True for _ in preceding_parts(other.old.when, self.old.when, counterparts)):
                return False
        return True

    def is_just_before(self, store: _Pair, others: Sequence[_Pair]) -> bool:
        """Whether our points are those of a store, at the same cells and right before it, with none of the others in
        between.
        """
        return (
            _is_just_before(self.new.when.time, store.new.when.time, [other.new.when.time for other in others])
            and _is_just_before(self.old.when.time, store.old.when.time, [other.old.when.time for other in others])
            and bool(self.new.cells.is_equal(store.new.cells))
        )


def _names_all(when: Timestamp) -> bool:
    return set(when.space.dims) <= {part.var.name for part in when.time if isinstance(part, Dim)}


def _order(first: Time, second: Time) -> int | None:
    """Which of two places in the text comes first (-1: the first), if no loop has both in it; 0 where a loop has both;
    None where the times do not tell.
    """
    shared = False
    for a, b in zip(first, second, strict=False):
        if isinstance(a, Dim) and isinstance(b, Dim):
            shared = True
        elif isinstance(a, Dim) or isinstance(b, Dim):
            return None
        elif a != b:
            return 0 if shared else -1 if a < b else 1
    return None


def _is_just_before(load: Time, store: Time, others: Sequence[Time]) -> bool:
    """Whether a load and a store happen at one place of the text, the load first, and no other store there."""
    place, last, first = store[:-1], store[-1], load[-1]
    return (
        load[:-1] == place
        and isinstance(first, int)
        and isinstance(last, int)
        and first < last
        and all(other[: len(place)] != place for other in others)
    )


@dataclass(slots=True)
class KeptOrder:
    """The memories that are written in the same way in the old program and in `after`, the flow of the new one."""

    rewrite_model: RewriteModel
    after: Dataflow
    _written: dict[tuple[Var, Var], dict[int, _Pair] | None] = field(default_factory=dict)
    _maps: dict[Var, Link] = field(default_factory=dict)

    def of_read(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points | None:
        """The instances of a statement where its read finds what its counterpart's finds: all in which it happens; None
        where that is to be found in another way.
        """
        model = self.rewrite_model
        writes = self._writes(old.data, new.data)
        if writes is None or self.after.is_carried(claim.new, new) or model.before.is_carried(claim.old, old):
            return None
        mine, theirs = self.after.loads(claim.new, new), model.before.loads(claim.old, old)
        step = _link(self.rewrite_model, claim)
        if step is None or (mine[0].space.dims, theirs[0].space.dims) != tuple(
            tuple(dim.var.name for dim in statement.dims) for statement in (claim.new, claim.old)
        ):
            return None
        pair = _Pair(_Doing(*mine), _Doing(*theirs), step)
        if not pair.corresponds(self._cells(old.data)):
            return None
        own = writes.get(claim.new.number)
        others = [write for write in writes.values() if write is not own]
        if own is None or not pair.is_just_before(own, others):
            if not all(pair.keeps_order(write) and write.keeps_order(pair) for write in writes.values()):
                return None
        return region.within(mine[1].domain()).named(f"{NEW}{claim.new.number}")

    def of_ends(self, old_data: Var, new_data: Var) -> bool:
        """Whether every cell of a memory ends with what its counterpart ends with."""
        return self._writes(old_data, new_data) is not None

    def _writes(self, old_data: Var, new_data: Var) -> dict[int, _Pair] | None:
        """The writes of a memory in both programs by the new statement's number, if they are the same ones in the same
        order; None where they are not, or that is open.
        """
        key = (old_data, new_data)
        if key not in self._written:
            # Evidence is gathered of the last writers.
            pairs = None if self.rewrite_model.workspace.gathered.is_recording else self._paired(old_data, new_data)
            ordered = pairs is not None and all(a.keeps_order(b) for a, b in product(pairs.values(), repeat=2))
            self._written[key] = pairs if ordered else None
        return self._written[key]

    def _paired(self, old_data: Var, new_data: Var) -> dict[int, _Pair] | None:
        """Each write with its counterpart; None unless all correspond, one to one."""
        model = self.rewrite_model
        # What temporaries hold at the start is nothing that corresponds.
        if old_data in model.old.program.temporaries or model.entry(old_data.name).new_data != new_data.name:
            return None
        cells = self._cells(old_data)
        if not cells.is_injective():
            return None
        olds = {write.statement.number: write for write in model.before.writes(old_data)}
        pairs: dict[int, _Pair] = {}
        for write in self.after.writes(new_data):
            claims = [claim for claim, _ in model.matched.get(write.statement.number, ())]
            other = olds.pop(claims[0].old.number, None) if len(claims) == 1 else None
            step = _link(model, claims[0]) if other is not None else None
            if other is None or step is None:
                return None
            pair = _Pair(_Doing(write.timestamp, write.cells), _Doing(other.timestamp, other.cells), step)
            if not (pair.is_ordered and pair.is_one_to_one and pair.corresponds(cells)):
                return None
            pairs[write.statement.number] = pair
        return None if olds else pairs

    def _cells(self, data: Var) -> Link:
        """The cell map of a memory that both programs touch."""
        known = self._maps.get(data)
        if known is None:
            cells = self.rewrite_model.cells(self.rewrite_model.entry(data.name), f"{OLD}in_", f"{NEW}in_")
            assert cells is not None
            known = self._maps[data] = _unnamed(cells)
        return known


def _link(model: RewriteModel, claim: Counterpart) -> Link | None:
    """Theta on the points of one statement."""
    step = model.step(claim)
    return None if step.is_empty() else _unnamed(isl.Map.from_union_map(step))


def _unnamed(relation: Link) -> Link:
    return relation.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out)
