"""Why loops could not be reordered: a dependence that the new order would reverse. For messages only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import loops_of_stores, stores_in, substitute, walk
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.faults.bounds import Place, places_of
from layoutproof.verify.faults.facts import Facts, values_text
from layoutproof.verify.faults.races import MARK, pairs_before
from layoutproof.verify.program.instances import AccessKind
from layoutproof.verify.program.questions import below, same

_VERBS: Mapping[AccessKind, str] = {AccessKind.READ: "the load of", AccessKind.WRITE: "the store to"}


def broken_order(rewrite: Rewrite) -> str | None:
    """Two accesses of one cell, one of them a store, whose order changes, in words; None if none are found.

    An accumulator that is only updated in another order is named last: such sums may be regrouped.
    """
    search = _Search(rewrite)
    pairs = sorted(search.pairs(), key=lambda pair: _is_accumulator(pair[0]) and _is_accumulator(pair[1]))
    return next((found for later, earlier in pairs if (found := search.crossing(later, earlier)) is not None), None)


def with_broken_order(problem: IllegalTransform, rewrite: Rewrite | None) -> IllegalTransform:
    """The refusal of a rewrite, with the dependence that it breaks as its help, if one is asked for and found."""
    found = broken_order(rewrite) if rewrite is not None else None
    if found is None:
        return problem
    head, *rest = problem.diagnostics
    return IllegalTransform((replace(head, help=found), *rest), problem.verdicts)


@dataclass(frozen=True, slots=True)
class _Side:
    """An access in the new program: its place, its store's number and what that store computes."""

    place: Place
    store: BufferStore
    claim: InstanceMap


class _Search:
    """The accesses of the new program, by store, with the old instances of their witness."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.rewrite = rewrite
        self.facts = Facts.of(rewrite.new)
        self.old_loops = loops_of_stores(rewrite.old.body)
        self.new_loops = loops_of_stores(rewrite.new.body)
        self.sides = list(self._sides())

    def _sides(self) -> Iterator[_Side]:
        claims = {c.new_store: c for c in self.rewrite.witness.instances if c.instances is not None}
        for number, store in enumerate(stores_in(self.rewrite.new.body)):
            nodes = {id(node) for node in walk(store)}
            for data in dict.fromkeys(access.data for access in self.facts.program.accesses):
                for place in places_of(self.facts, data):
                    touches = place.access.kind is not AccessKind.ASSUME
                    if touches and id(place.access.node) in nodes and number in claims:
                        yield _Side(place, store, claims[number])

    def pairs(self) -> Iterator[tuple[_Side, _Side]]:
        """What may have changed places: accesses of one memory, one of them a store."""
        for later in self.sides:
            for earlier in self.sides:
                kinds = (later.place.access.kind, earlier.place.access.kind)
                if later.place.access.data == earlier.place.access.data and AccessKind.WRITE in kinds:
                    yield later, earlier

    def crossing(self, later: _Side, earlier: _Side) -> str | None:
        """An instance of each, of one cell, in this order now and in the other one before."""
        for cover in pairs_before(later.place, earlier.place):
            dims = {dim.var for dim in cover.domain.dims}
            mine = {dim.var: dim.var for dim in later.place.access.domain.dims}
            own = {dim.var: Var(dim.var.name + MARK, dim.var.dtype) for dim in earlier.place.access.domain.dims}
            theirs = {var: marked if marked in dims else var for var, marked in own.items()}
            before, after = self.instance(later, mine), self.instance(earlier, theirs)
            domain = replace(cover.domain, guards=(*later.place.access.domain.guards, *cover.domain.guards))
            for order in self.orders(later.claim, earlier.claim, before, after):
                point = self.facts.search(domain, *cover.conditions, *order).point
                if point is not None:
                    return self.text(later, earlier, before, after, point)
        return None

    def instance(self, side: _Side, names: Mapping[Var, Var]) -> list[Expr]:
        """The old loops of an access over the variables of a iteration domain."""
        assert side.claim.instances is not None
        values: dict[Var, Expr] = {
            loop.var: names.get(loop.var, loop.start) for loop in self.new_loops[side.claim.new_store]
        }
        return [substitute(output, values) for output in side.claim.instances.outputs]

    def orders(
        self, first: InstanceMap, second: InstanceMap, before: Sequence[Expr], after: Sequence[Expr]
    ) -> Iterator[tuple[Expr, ...]]:
        """The cases in which the old instance `before` precedes `after`, by the outermost loop in which they differ."""
        assert first.old_store is not None and second.old_store is not None
        pairs = zip(self.old_loops[first.old_store], self.old_loops[second.old_store], strict=False)
        common = next((n for n, (a, b) in enumerate(pairs) if a is not b), None)
        depth = min(len(before), len(after)) if common is None else common
        for level in range(depth):
            equal = [same(a, b) for a, b in zip(before[:level], after[:level], strict=True)]
            yield (*equal, below(before[level], after[level]))
        if first.old_store < second.old_store:
            yield tuple(same(a, b) for a, b in zip(before[:depth], after[:depth], strict=True))

    def text(
        self, later: _Side, earlier: _Side, before: Sequence[Expr], after: Sequence[Expr], point: Mapping[str, int]
    ) -> str:
        # Both touch this cell; the later one's indices speak of variables that the point has.
        cell = ", ".join(str(int(evaluate(index, point))) for index in later.place.access.indices)
        shown = [self.one(side, cell, instance, point) for side, instance in ((later, before), (earlier, after))]
        return f"{shown[0]} came before {shown[1]}, and would come after it"

    def one(self, side: _Side, cell: str, instance: Sequence[Expr], point: Mapping[str, int]) -> str:
        assert side.claim.old_store is not None
        access, loops = side.place.access, self.old_loops[side.claim.old_store]
        values = {loop.var.name: int(evaluate(e, point)) for loop, e in zip(loops, instance, strict=True)}
        return f"{_VERBS[access.kind]} {access.buffer.name}[{cell}] ({access.place}) at {values_text(values)}"


def _is_accumulator(side: _Side) -> bool:
    """Whether an access is of the cell that its own store updates."""
    node, store = side.place.access.node, side.store
    return node is store or (
        isinstance(node, BufferLoad) and node.buffer == store.buffer and node.indices == store.indices
    )
