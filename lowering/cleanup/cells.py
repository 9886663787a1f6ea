"""Whether a fact speaks of a cell that is loaded, and whether a store may touch what it speaks of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Compare,
    CompareOp,
    Expr,
    Not,
    Ramp,
    Var,
    const,
    widen,
)
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, ForKind
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering.cleanup.conditions import is_total
from layoutproof.lowering.cleanup.deciding import Deciding, Here
from layoutproof.lowering.cleanup.facts import Fact, load_and_value
from layoutproof.verify.program.instances import Dim


@dataclass(slots=True)
class Cells:
    """Questions about the cells of one function."""

    func: PrimFunc
    deciding: Deciding = field(init=False)
    names: int = 0

    def __post_init__(self) -> None:
        self.deciding = Deciding(self.func)

    def fresh(self, name: str, like: Var) -> Var:
        """A variable that no program has."""
        self.names += 1
        return Var(f"{name}'{self.names}", like.dtype)

    def found(self, load: BufferLoad, here: Here, known: Sequence[Fact]) -> Expr | None:
        """What a load finds; None where that is not known."""
        for fact in reversed(known):
            if fact.buffer == load.buffer and fact.op is CompareOp.EQ:
                result = self._by(fact, load, here)
                if result is not None:
                    return result
        return None

    def decided(self, comparison: Compare, here: Here, known: Sequence[Fact]) -> bool | None:
        """The truth of a comparison of a load that was assumed, or whose contrary was; None where that is not known."""
        said = load_and_value(comparison)
        if said is None:
            return None
        op, load, value = said
        for fact in reversed(known):
            # An equality is used as a value, and between floats it is not the one that programs compute.
            if fact.buffer == load.buffer and fact.op is not CompareOp.EQ and op in (fact.op, fact.op.negated):
                if self._by(fact, load, here) == value:
                    return op is fact.op
        return None

    def _by(self, fact: Fact, load: BufferLoad, here: Here) -> Expr | None:
        """The value that a fact gives a load."""
        lanes, index, plain = self._index_of(load, here)
        own = fact.at(index)
        if own is None:
            return None
        value = substitute(fact.value, own)
        used = set(free_variables(value))
        if used & here.hidden or (used & {d.var for d in lanes}) or (load.dtype.lanes > 1 and used):
            # Written in the block's own variables, where the cell is.
            direct = fact.at(load.indices) if load.dtype.lanes == 1 else None
            if direct is None or not plain:
                return None
            value = substitute(fact.value, direct)
            if set(free_variables(value)) & here.hidden:
                return None
        wrong = self._obligations(fact, own, index)
        if not all(self.deciding.never(here, condition, also=lanes) for condition in wrong):
            return None
        return Broadcast(value, load.dtype.lanes) if load.dtype.lanes > 1 else value

    @staticmethod
    def _obligations(fact: Fact, own: dict[Var, Expr], index: Sequence[Expr]) -> Iterator[Expr]:
        """Conditions of which none may hold for a fact to speak of a cell: an index elsewhere, a loop outside its range, no guard."""
        for said, wanted in zip(fact.indices, index, strict=True):
            there = widen(substitute(said, own), wanted.dtype)
            if there != wanted:
                yield Compare(CompareOp.NE, there, wanted)
        for dim in fact.over:
            start, extent = substitute(dim.start, own), substitute(dim.extent, own)
            yield own[dim.var] < start
            yield own[dim.var] >= start + extent
        for guard in fact.guards:
            yield Not(substitute(guard, own))

    def _index_of(self, access: BufferLoad | BufferStore, here: Here) -> tuple[tuple[Dim, ...], tuple[Expr, ...], bool]:
        """An access's indices without lanes over loops, and coordinates for lanes and for what data decides; whether there were none."""
        dims: list[Dim] = []
        index: list[Expr] = []
        for axis, given in enumerate(access.indices):
            expr = here.over_loops(given)
            if isinstance(expr, Ramp):
                lane = self.fresh("lane", Var("lane", expr.base.dtype))
                dims.append(Dim(lane, const(0, lane.dtype), const(expr.lanes, lane.dtype), ForKind.SERIAL))
                expr = Binary(BinaryOp.ADD, expr.base, Binary(BinaryOp.MUL, lane, expr.stride))
            elif isinstance(expr, Broadcast):
                expr = expr.value
            if not is_total(expr):
                # The access stays in its buffer, wherever data takes it.
                extent = access.buffer.shape[axis]
                place = self.fresh("place", Var("place", extent.dtype))
                dims.append(Dim(place, const(0, extent.dtype), extent, ForKind.SERIAL))
                expr = place
            index.append(expr)
        return tuple(dims), tuple(index), not dims

    def without(self, known: Sequence[Fact], store: BufferStore, here: Here) -> tuple[Fact, ...]:
        """What is left of what is known when a store has run, in any of its instances `here`."""
        return tuple(fact for fact in known if not self.may_be_one(store.buffer, fact.buffer) or self.apart(fact, store, here))

    def apart(self, fact: Fact, store: BufferStore, here: Here) -> bool:
        """Whether a store never touches the cells that a fact speaks of."""
        if fact.buffer != store.buffer:
            return False
        dims, index, _ = self._index_of(store, here)
        equal = [Compare(CompareOp.EQ, a, widen(b, a.dtype)) for a, b in zip(fact.indices, index, strict=True)]
        return self.deciding.never(here, *equal, *fact.guards, also=(*dims, *fact.over))

    def may_be_one(self, first: Buffer, second: Buffer) -> bool:
        """Whether two buffers may share cells."""
        if first.data == second.data:
            return True
        parameters = {buffer.data for buffer in self.func.buffers}
        return not self.func.noalias and first.data in parameters and second.data in parameters
