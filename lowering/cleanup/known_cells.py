"""Facts about cells of buffers, from assumptions and stores: whether one covers a load, or a store may end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Logical,
    Not,
    Ramp,
    Var,
    const,
    widen,
)
from layoutproof.ir.intrinsics import Limit
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, ForKind
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.lowering.arith.affine import Affine, affine_of, expression_of
from layoutproof.lowering.cleanup.rebuild import Deciding, Here, conjuncts_of, is_total, negated
from layoutproof.verify.program.instances import Dim

_PLAIN = (IntImm, FloatImm, Limit, Var, Binary, Cast)


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """`buffer[indices]` is `value` (or compares with it by `op`) if all `guards` hold, for all values of the loops
    `over`.

    Everything is over loops and symbols. Loops that are not in `over` have their values at the use. `source` is the
    store that made it so, None for an assumption.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    guards: tuple[Expr, ...] = ()
    over: tuple[Dim, ...] = ()
    source: BufferStore | None = None
    op: CompareOp = CompareOp.EQ

    def under(self, condition: Expr) -> Fact:
        """The same under a condition over loops."""
        return replace(self, guards=(*self.guards, condition))

    def mentions(self, variable: Var) -> bool:
        """Whether the fact depends on a variable other than its own loops."""
        return any(
            variable in free_variables(e)
            for e in (*self.indices, self.value, *self.guards, *(d.extent for d in self.over))
        )

    def after(self, loop: Dim, fresh: Var) -> Fact | None:
        """The facts after a loop, from those after each iteration; None if later iterations may overwrite them."""
        if not self.mentions(loop.var):
            return self.under(loop.extent > const(0, loop.extent.dtype))
        values: dict[Var, Expr] = {loop.var: fresh}
        over = tuple(
            replace(d, start=substitute(d.start, values), extent=substitute(d.extent, values)) for d in self.over
        )
        moved = Fact(
            self.buffer,
            tuple(substitute(i, values) for i in self.indices),
            substitute(self.value, values),
            tuple(substitute(g, values) for g in self.guards),
            (Dim(fresh, loop.start, loop.extent, loop.kind), *over),
            self.source,
            self.op,
        )
        return moved if self.source is None or moved.is_injective() else None

    def is_injective(self) -> bool:
        """Whether the cell says what its own loops are, so that no two of their iterations store there."""
        places = tuple(Var(f"place{axis}'", i.dtype) for axis, i in enumerate(self.indices))
        return set(self._by_indices(places)) == {dim.var for dim in self.over}

    def at(self, indices: Sequence[Expr]) -> dict[Var, Expr] | None:
        """Values of the fact's own loops for a cell that it covers; None if that is not plain."""
        own = [dim.var for dim in self.over]
        found = self._by_indices(indices)
        # It holds for all values of its loops: those that no index decides get a value from a guard, else the first.
        for dim in self.over:
            if dim.var not in found:
                found[dim.var] = substitute(self._asked_for(dim.var, dim.start), found)
        return None if any(set(free_variables(value)) & set(own) for value in found.values()) else found

    def _by_indices(self, indices: Sequence[Expr]) -> dict[Var, Expr]:
        """The own loops that the indices of a cell decide."""
        own = [dim.var for dim in self.over]
        found: dict[Var, Expr] = {}
        pending = list(zip(self.indices, indices, strict=True))
        while pending and set(own) - set(found):
            progress = False
            for pair in list(pending):
                solved = self._solved(*pair, found)
                if solved is not None:
                    found |= solved
                    pending.remove(pair)
                    progress = True
            if not progress:
                break
        return found

    def _asked_for(self, variable: Var, start: Expr) -> Expr:
        """The value for which a guard asks by an equation; `start` if none does."""
        for guard in (part for each in self.guards for part in conjuncts_of(each)):
            if isinstance(guard, Compare) and guard.op is CompareOp.EQ:
                for left, right in ((guard.lhs, guard.rhs), (guard.rhs, guard.lhs)):
                    if left == variable and variable not in free_variables(right):
                        return right
        return start

    def _solved(self, index: Expr, place: Expr, known: Mapping[Var, Expr]) -> dict[Var, Expr] | None:
        """The own loops in one index, given its value: one loop with factor 1, or the digits of a number."""
        form = affine_of(index)
        open_loops = [d for d in self.over if d.var in free_variables(index) and d.var not in known]
        if not open_loops:
            return {}
        if any(d.var not in form.terms for d in open_loops):
            return None
        rest = Affine({t: c for t, c in form.terms.items() if t not in {d.var for d in open_loops}}, form.constant)
        if any(d.var in free_variables(t) for d in open_loops for t in rest.terms):
            return None
        offset = affine_of(place) - affine_of(substitute(expression_of(rest, index.dtype), known))
        whole = expression_of(offset, index.dtype)
        ordered = sorted(open_loops, key=lambda d: -form.terms[d.var])
        return _digits(ordered, [form.terms[d.var] for d in ordered], whole)


def _digits(loops: Sequence[Dim], factors: Sequence[int], whole: Expr) -> dict[Var, Expr] | None:
    """The loops of `sum(factor * loop)`, of which each factor is the next times its loop's extent, the last 1."""
    if factors[-1] != 1:
        return None
    for k in range(len(loops) - 1):
        start, extent = loops[k + 1].start, loops[k + 1].extent
        if not (isinstance(extent, IntImm) and isinstance(start, IntImm) and start.value == 0):
            return None
        if factors[k] != factors[k + 1] * extent.value:
            return None
    found: dict[Var, Expr] = {}
    for k, (loop, factor) in enumerate(zip(loops, factors, strict=True)):
        quotient = whole if factor == 1 else whole // const(factor, whole.dtype)
        found[loop.var] = widen(quotient if k == 0 else quotient % loop.extent, loop.var.dtype)
    return found


def is_plain_value(value: Expr) -> bool:
    """Whether a value may be written in the place of a load: constants and index arithmetic."""
    return all(isinstance(node, _PLAIN) for node in walk(value)) and value.dtype.lanes == 1 and _cannot_trap(value)


def _cannot_trap(value: Expr) -> bool:
    divisions = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR)
    parts = [node for node in walk(value) if isinstance(node, Binary) and node.op in divisions]
    casts = any(
        isinstance(node, Cast) and node.value.dtype.is_float and not node.dtype.is_float for node in walk(value)
    )
    return not casts and all(isinstance(node.rhs, IntImm) and node.rhs.value > 0 for node in parts)


def assumed_facts(condition: Expr, here: Here) -> Iterator[Fact]:
    """Facts of an assumption: `buffer[...] == value` or another comparison, alone or as one part of a disjunction."""
    for part in conjuncts_of(condition):
        terms = _disjuncts(part)
        found = [(t, said) for t in terms if isinstance(t, Compare) and (said := load_and_value(t)) is not None]
        if len(found) != 1:
            continue
        ((term, (op, load, value)),) = found
        guards = [here.over_loops(negated(t)) for t in terms if t is not term]
        if not all(map(is_total, guards)):
            continue
        indices = tuple(here.over_loops(i) for i in load.indices)
        if all(map(is_total, indices)):
            yield Fact(load.buffer, indices, here.over_loops(value), tuple(guards), op=op)


def load_and_value(comparison: Compare) -> tuple[CompareOp, BufferLoad, Expr] | None:
    """A comparison of a load with a plain value, the load on the left; None for others."""
    turned = comparison.op.mirrored
    for op, load, value in ((comparison.op, comparison.lhs, comparison.rhs), (turned, comparison.rhs, comparison.lhs)):
        if isinstance(load, BufferLoad) and load.dtype.lanes == 1 and is_plain_value(value):
            return op, load, value
    return None


def _disjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Logical) and condition.op is LogicalOp.OR:
        return (*_disjuncts(condition.lhs), *_disjuncts(condition.rhs))
    if isinstance(condition, Not) and isinstance(condition.operand, Logical) and condition.operand.op is LogicalOp.AND:
        return (*_disjuncts(negated(condition.operand.lhs)), *_disjuncts(negated(condition.operand.rhs)))
    return (condition,)


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
        """The value of a load; None if it is not known."""
        for fact in reversed(known):
            if fact.buffer == load.buffer and fact.op is CompareOp.EQ:
                result = self._by(fact, load, here)
                if result is not None:
                    return result
        return None

    def decided(self, comparison: Compare, here: Here, known: Sequence[Fact]) -> bool | None:
        """The truth of a comparison of a load that was assumed, or whose negation was; None if it is not known."""
        said = load_and_value(comparison)
        if said is None:
            return None
        op, load, value = said
        for fact in reversed(known):
            # An equality is used as a value; a comparison of floats is not one (-0.0 == 0.0).
            if fact.buffer == load.buffer and fact.op is not CompareOp.EQ and op in (fact.op, fact.op.negated):
                if self._by(fact, load, here) == value:
                    return op is fact.op
        return None

    def _by(self, fact: Fact, load: BufferLoad, here: Here) -> Expr | None:
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
        """Conditions that must all be false for a fact to cover a cell: another index, a loop out of range, a false
        guard.
        """
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
        """An access's indices without lanes over loops, with coordinates for lanes and data-dependent parts; whether
        there were none.
        """
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
        return tuple(
            fact for fact in known if not self.may_be_one(store.buffer, fact.buffer) or self.apart(fact, store, here)
        )

    def apart(self, fact: Fact, store: BufferStore, here: Here) -> bool:
        """Whether a store never touches the cells of a fact."""
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
