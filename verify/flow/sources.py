"""Where a read of the new program finds what a read of the old one found: both lead to one source, up to theta and f;
and reductions whose updates are done in another order, with the fast-math assumptions that this needs. Part of the
trust base.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from layoutproof.ir.expr import Binary, Expr, Var
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables
from layoutproof.verify.flow.copies import SumFound, resolved, stepped, sums_found
from layoutproof.verify.flow.kept_order import KeptOrder
from layoutproof.verify.flow.models import NEW, OLD, Counterpart, Key, RewriteModel, key_of
from layoutproof.verify.isl.dataflow import Dataflow, Reduced
from layoutproof.verify.isl.instance_sets import (
    Points,
    Region,
    Relation,
    Sources,
    agreement,
    function_between,
    no_points,
    only,
    part_of,
    relations,
    without_dim,
)
from layoutproof.verify.isl.isl_evidence import note_agreement, note_contributions
from layoutproof.verify.isl.operations import coalesced
from layoutproof.verify.program.instances import Dim
from layoutproof.verify.program.statement import NotModelled, Read, Statement
from layoutproof.verify.values.fast_math import IEEE, FastMath, FastMathSet

_CARRIED = 8


@dataclass(frozen=True, slots=True)
class Regrouped:
    """A reduction that the new program does in another order: the statement numbers of its updates in both programs."""

    data: Var
    old_chain: frozenset[int]
    new_chain: frozenset[int]


@dataclass(frozen=True, slots=True)
class Carrying:
    """An update that adds what another accumulator holds: `read` is the load of it, or of a copy, which `copy` made."""

    statement: Statement
    read: Read
    copy: tuple[Statement, Read] | None = None

    @property
    def data(self) -> Var:
        """The memory of the other accumulator."""
        return self.read.data if self.copy is None else self.copy[1].data

    def reduced(self, flow: Dataflow, chain: frozenset[int]) -> Reduced:
        """From updates to what the other accumulator began with, and to the updates in `chain` that made it. Nothing of
        updates that find no copy.
        """
        if self.copy is None:
            return flow.reduced(self.statement, self.read, chain)
        return stepped(flow.sources(self.statement, self.read), flow.reduced(*self.copy, chain))

    def sources(self, flow: Dataflow) -> Relation:
        """From updates to the last writers of the other accumulator."""
        found = flow.sources(self.statement, self.read)
        return found if self.copy is None else found.apply_range(flow.sources(*self.copy))


@dataclass(frozen=True, slots=True)
class Sums:
    """The accumulators of one reduction in one program. `chains` has the numbers of their updates, by memory; `carried`
    leads from an update that carries a partial result to the updates that made it. `keeps_zeros`: what partial results
    begin with makes no difference to the sign of a zero.
    """

    chains: Mapping[Var, frozenset[int]]
    carrying: tuple[Carrying, ...]
    carried: Relation | None
    keeps_zeros: bool = True

    def spread(self, flow: Dataflow, found: Relation) -> Relation:
        """A relation to updates, the carrying ones replaced by what they carry."""
        if self.carried is None:
            return found
        carriers = only(flow.domain(self.carrying[0].statement))
        for each in self.carrying[1:]:
            carriers = carriers.union(only(flow.domain(each.statement)))
        for _ in range(_CARRIED):
            moved = found.intersect_range(carriers)
            if moved.is_empty():
                return found
            found = coalesced(found.subtract_range(carriers).union(moved.apply_range(self.carried)))
        raise NotModelled("partial results are carried on too often", None)


@dataclass(slots=True)
class Agreement:
    """Sources in both programs, compared. `after` is the flow of the new program without its no-ops.

    `regrouped` is by the names of the memories in the old and the new program. What single updates of such a reduction
    store in the new program is not what they stored before: nothing agrees because it leads to one of them.
    """

    rewrite_model: RewriteModel
    after: Dataflow
    regrouped: Mapping[tuple[str, str], Regrouped] = field(default_factory=dict)
    new_sums: Sums | None = None
    old_sums: Sums | None = None
    _moved: Sources | None = None
    _found: dict[tuple[Key, Var, Var], Points] = field(default_factory=dict)
    _kept: KeptOrder = field(init=False)

    def __post_init__(self) -> None:
        self._kept = KeptOrder(self.rewrite_model, self.after)

    def of_reads(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        """The instances of a new statement in which its read finds what its counterpart's read finds."""
        key = (key_of(claim), new.var, old.var)
        if key not in self._found:
            self._found[key] = self._of_reads(claim, new, old, region)
        return self._found[key]

    def _of_reads(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        step = self.rewrite_model.step(claim)
        if new.anywhere or old.anywhere:
            return self._anywhere(claim, new, old, region)
        return self._compared(claim, new, old, step, region)

    def _compared(self, claim: Counterpart, new: Read, old: Read, step: Relation, region: Region) -> Points:
        """Where a read finds its counterpart's source, or, of a regrouped reduction, the same contributions."""
        name = f"{NEW}{claim.new.number}"
        group = self.regrouped.get((old.data.name, new.data.name))
        if group is not None:
            mine = self._spread(self.after.reduced(claim.new, new, group.new_chain), self.new_sums)
            theirs = self._spread(
                self.rewrite_model.before.reduced(claim.old, old, group.old_chain), self.old_sums, old=True
            )
            return self._regrouped(mine, (step.apply_range(theirs[0]), step.apply_range(theirs[1])), name, region)
        kept = None if self.regrouped or new.anywhere else self._kept.of_read(claim, new, old, region)
        if kept is not None:
            return kept
        found = self.after.sources(claim.new, new)
        wanted = self.rewrite_model.before.sources(claim.old, old)
        points = self.of_flows(found, step.apply_range(wanted), name, region)
        if not self.regrouped or region.outside(points).is_empty:
            return points
        sums = sums_found(self.after, new.data, found, lambda chain: self.after.reduced(claim.new, new, chain))
        before = self.rewrite_model.before
        others = sums_found(before, old.data, wanted, lambda chain: before.reduced(claim.old, old, chain))
        return self._any_sum(sums, others, (None, step), name, region, points)

    def of_flows(self, found: Relation, wanted: Relation, name: str, region: Region) -> Points:
        """Where two relations from one tuple, to sources of the new and of the old program, lead to one source."""
        found = found.subtract_range(self.moved)
        points = agreement(found.apply_range(self.rewrite_model.theta), wanted, name, region.points)
        missing = region.outside(points)
        gathered = self.rewrite_model.workspace.gathered
        note_agreement(
            gathered, f"that what {name} finds is what it found", found, self.rewrite_model.theta, wanted, points
        )
        if missing.is_empty:
            return points
        mine = resolved(self.after, self.rewrite_model.new, found, frozenset(name for _, name in self.regrouped))
        mine = mine.subtract_range(self.moved)
        theirs = resolved(
            self.rewrite_model.before, self.rewrite_model.old, wanted, frozenset(name for name, _ in self.regrouped)
        )
        if mine is found and theirs is wanted:
            return points
        more = agreement(mine.apply_range(self.rewrite_model.theta), theirs, name, region.points)
        note_agreement(
            gathered, f"that what {name} finds is a copy of what it found", mine, self.rewrite_model.theta, theirs, more
        )
        return coalesced(points.union(more))

    def of_ends(self, data: Var, new_data: Var, step: Relation, region: Region, name: str) -> Points:
        """The cells (old names) of a memory that end with what their counterparts end with; `step` is f on them."""
        group = self.regrouped.get((data.name, new_data.name))
        if group is not None:
            owner, parts = self._spread(self.after.reduced_final(new_data, group.new_chain), self.new_sums)
            theirs = self._spread(
                self.rewrite_model.before.reduced_final(data, group.old_chain), self.old_sums, old=True
            )
            return self._regrouped((step.apply_range(owner), step.apply_range(parts)), theirs, name, region)
        if not self.regrouped and self._kept.of_ends(data, new_data):
            return region.named(name)
        found, wanted = self.after.final(new_data), self.rewrite_model.before.final(data)
        points = self.of_flows(step.apply_range(found), wanted, name, region)
        if not self.regrouped or region.outside(points).is_empty:
            return points
        sums = sums_found(self.after, new_data, found, lambda chain: self.after.reduced_final(new_data, chain))
        before = self.rewrite_model.before
        others = sums_found(before, data, wanted, lambda chain: before.reduced_final(data, chain))
        return self._any_sum(sums, others, (step, None), name, region, points)

    def _any_sum(
        self,
        mine: Sequence[SumFound],
        theirs: Sequence[SumFound],
        steps: tuple[Relation | None, Relation | None],
        name: str,
        region: Region,
        points: Points,
    ) -> Points:
        """`points`, and where a sum of the new program is one of the old program; `steps` lead from the tuple `name` to
        the readers, if these are others.
        """
        for data, found in mine:
            for other, wanted in theirs:
                group = self.regrouped.get((other.name, data.name))
                if group is None:
                    continue
                first = self._spread(found(group.new_chain), self.new_sums)
                second = self._spread(wanted(group.old_chain), self.old_sums, old=True)
                points = points.union(
                    self._regrouped(stepped(steps[0], first), stepped(steps[1], second), name, region)
                )
        return coalesced(points)

    def _spread(
        self, found: tuple[Relation, Relation], sums: Sums | None, *, old: bool = False
    ) -> tuple[Relation, Relation]:
        """Owner and contributions, partial results followed to what contributed to them."""
        flow = self.rewrite_model.before if old else self.after
        return (found[0], sums.spread(flow, found[1])) if sums is not None else found

    def reached(self) -> frozenset[int]:
        """The numbers of the old statements of which some instance has a counterpart."""
        return frozenset(claim.old.number for pairs in self.rewrite_model.matched.values() for claim, _ in pairs)

    def _regrouped(
        self, found: tuple[Relation, Relation], wanted: tuple[Relation, Relation], name: str, region: Region
    ) -> Points:
        """Where owner and contributions agree: theta is one to one, so equal relations are equal multisets."""
        theta = self.rewrite_model.theta
        points = self.of_flows(found[0], wanted[0], name, region)
        carried = found[1].apply_range(theta)
        lost = found[1].subtract_range(theta.domain()).domain()
        differ = carried.subtract(wanted[1]).domain().union(wanted[1].subtract(carried).domain()).union(lost)
        points = coalesced(points.subtract(part_of(differ, name, region.points)))
        note_contributions(
            self.rewrite_model.workspace.gathered,
            f"that {name} finds the same contributions",
            found[1],
            theta,
            wanted[1],
            points,
        )
        return points

    @property
    def moved(self) -> Sources:
        """The new updates of regrouped reductions."""
        if self._moved is None:
            updates = no_points(self.rewrite_model.encoder(()).space.universe())
            numbers = {number for group in self.regrouped.values() for number in group.new_chain}
            for statement in self.rewrite_model.new.statements:
                if statement.number in numbers:
                    updates = updates.union(only(self.rewrite_model.after.domain(statement)))
            self._moved = updates
        return self._moved

    def _anywhere(self, claim: Counterpart, new: Read, old: Read, region: Region) -> Points:
        """The instances in which every cell of a memory, one to one, has the source that it had."""
        name = f"{NEW}{claim.new.number}"
        nowhere = region.named(name).subtract(region.named(name))
        more, rest = new.access.domain.dims[len(claim.new.dims) :], old.access.domain.dims[len(claim.old.dims) :]
        moved = self.rewrite_model.moved(old.data.name)
        if not (new.anywhere and old.anywhere) or len(more) != len(rest) or moved:
            return nowhere
        encoder = self.rewrite_model.encoder_of(new.access.domain.dims)
        outputs = (*claim.outputs, *(dim.var for dim in more))
        step = relations(
            [function_between(encoder, name, outputs, f"{OLD}{claim.old.number}", claim.where)], region.points
        )
        everywhere = Region(encoder, encoder.space.universe()).within(self.after.access(new, claim.new).domain())
        agreeing = self._compared(claim, new, old, step, everywhere)
        differ = everywhere.outside(agreeing).points
        for position in reversed(range(len(claim.new.dims), len(new.access.domain.dims))):
            differ = without_dim(differ, position)
        return coalesced(region.named(name).subtract(differ.set_tuple_name(name)))


# `acc - e` adds the opposite of `e`.
_SUMS = frozenset((BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL))
_EXTREMES = frozenset((BinaryOp.MIN, BinaryOp.MAX))
_BITS = frozenset((BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR))


@dataclass(frozen=True, slots=True)
class Reordered:
    """A regrouped reduction with its operator and what regrouping it takes."""

    chains: Regrouped
    operator: BinaryOp
    fast_math: FastMathSet


def find_reordered(
    rewrite_model: RewriteModel, agreement: Agreement, allowed: FastMathSet, partial: Collection[Var] = ()
) -> Iterator[Reordered]:
    """The reductions whose accumulator does not find, update by update, what it found before; also those of memories in
    `partial`, which hold a part of a result, or are made from parts.
    """
    updates: dict[Var, list[Counterpart]] = {}
    for claims in rewrite_model.matched.values():
        for claim, _ in claims:
            updates.setdefault(claim.new.data, []).append(claim)
    for data in rewrite_model.new.cells:
        pairs = updates.get(data, [])
        if not any(
            _out_of_order(rewrite_model, agreement, claim) or {data, claim.old.data} & set(partial) for claim in pairs
        ):
            continue
        found = _chain(rewrite_model, agreement, pairs, data, allowed)
        if found is not None:
            yield found


def _out_of_order(rewrite_model: RewriteModel, agreement: Agreement, claim: Counterpart) -> bool:
    """Whether an update's load of its own accumulator finds another update's result than before."""
    mine, theirs = accumulator(agreement.after, claim.new), accumulator(rewrite_model.before, claim.old)
    if mine is None or theirs is None:
        return False
    region = rewrite_model.of_points(claim.new, rewrite_model.matched_points(claim))
    return not region.outside(agreement.of_reads(claim, mine, theirs, region)).is_empty


def _chain(
    rewrite_model: RewriteModel, agreement: Agreement, pairs: list[Counterpart], data: Var, allowed: FastMathSet
) -> Reordered | None:
    operators = {op for claim in pairs if (op := update_operator(agreement.after, claim.new)) is not None}
    for operator in sorted(operators):
        fast_math = _fast_math(operator, rewrite_model.new.dtypes[data].is_float)
        if fast_math is None or not fast_math <= allowed:
            continue
        chain = [
            claim
            for claim in pairs
            if update_operator(agreement.after, claim.new) is operator
            and update_operator(rewrite_model.before, claim.old) is operator
        ]
        old_data = {claim.old.data for claim in chain}
        if len(old_data) != 1 or not _one_to_one(rewrite_model, chain):
            continue
        numbers = frozenset(c.new.number for c in chain), frozenset(c.old.number for c in chain)
        return Reordered(Regrouped(data, numbers[1], numbers[0]), operator, fast_math)
    return None


def _fast_math(operator: BinaryOp, is_float: bool) -> FastMathSet | None:
    if not is_float:
        return IEEE if operator in _SUMS | _EXTREMES | _BITS else None
    if operator in _SUMS:
        return frozenset((FastMath.REASSOC,))
    return frozenset((FastMath.NNAN, FastMath.NSZ)) if operator in _EXTREMES else None


def _one_to_one(rewrite_model: RewriteModel, chain: list[Counterpart]) -> bool:
    """Whether theta takes no two updates to one."""
    steps = rewrite_model.nothing
    for claim in chain:
        steps = steps.union(rewrite_model.step(claim))
    return bool(steps.is_injective())


def update_operator(flow: Dataflow, statement: Statement) -> BinaryOp | None:
    """The operator of a statement that updates the cell that it writes, `acc (+) e`; None for any other."""
    match statement.value:
        case Binary(op=op) if accumulator(flow, statement) is not None:
            return op
        case _:
            return None


def accumulator(flow: Dataflow, statement: Statement) -> Read | None:
    """The load of the written cell that is one operand of the value, of what is there at the moment of the store."""
    value = statement.value
    if not isinstance(value, Binary):
        return None
    for read in statement.reads:
        if read.var not in (value.lhs, value.rhs) or read.data != statement.data or read.anywhere:
            continue
        if _is_undisturbed(flow, statement, read) and _same_cell(flow, statement, read):
            return read
    return None


def _is_undisturbed(flow: Dataflow, statement: Statement, read: Read) -> bool:
    """Whether no other store to its memory comes between a load and the store of which it is a part: the load is of the
    same moment, or of a let around, of the same iteration of all loops.
    """
    loaded, stored = read.access.domain.time, statement.domain.time
    if loaded[: len(stored) - 1] == stored[:-1]:
        return True
    pairs = zip(loaded, stored, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if any(isinstance(part, Dim) for part in (*loaded[shared:], *stored[shared:])):
        return False
    others = (s for s in flow.statements.writers(statement.data) if s.number != statement.number)
    return not any(other.domain.time[:shared] == stored[:shared] for other in others)


def _same_cell(flow: Dataflow, statement: Statement, read: Read) -> bool:
    own = flow.access(statement).intersect_domain(flow.domain(statement))
    return bool(own.is_subset(flow.access(read, statement)))


def contribution(value: Expr, op: BinaryOp, acc: Var) -> Expr | None:
    """`e` of an update `acc (+) e` or `e (+) acc` (`acc - e` only), if independent of `acc`; else None."""
    match value:
        case Binary(op=found, lhs=lhs, rhs=rhs) if found is op:
            for operand, e in ((lhs, rhs),) if op is BinaryOp.SUB else ((lhs, rhs), (rhs, lhs)):
                if operand == acc and acc not in free_variables(e):
                    return e
        case _:
            pass
    return None
