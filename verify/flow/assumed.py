"""New assumptions about what memory holds follow from old ones, or speak of padding of a parameter that the rewrite re-lays.

The latter change the interface: they are listed, and are for every caller to keep. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.layout_record import Cell, LayoutStep, layout_records
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.flow.ends import contract_value, padding_of
from layoutproof.verify.flow.knowledge import Fact, Knowledge, is_undefined
from layoutproof.verify.flow.world import NEW, OLD, World
from layoutproof.verify.isl.coalesce import coalesced
from layoutproof.verify.isl.pairing import Points, Sources, from_tuple, only, part_of, tuples_of
from layoutproof.verify.statements import AssumedFact
from layoutproof.verify.values.properties import Identical


@dataclass(frozen=True, slots=True)
class Assumed:
    """A new assumption: what it says, why it may be made (None: it may not), and whether callers have to keep it."""

    assumption: AssumedFact
    reason: str | None
    interface: bool = False

    @property
    def claim(self) -> Claim:
        """That it may be made."""
        text = expr_text(_readable(self.assumption), Style.PLAIN)
        accesses = [read.access for read in self.assumption.reads]
        buffers = tuple(name for access in accesses for name in (access.buffer.name, access.data.name))
        return Claim(ClaimKind.ASSUMPTION, f"the assumption {text} may be made", buffers=buffers)


def check_assumptions(world: World, new_facts: Knowledge, old_facts: Knowledge, moved: Sources, *, loose: bool) -> Iterator[Assumed]:
    """One answer for each assumption of the new program that loads, or that speaks of loops. `moved` are the new updates of reductions
    that are regrouped: they do not store what their counterparts did. `loose`: floats that are stored may differ from what they were in
    the sign of a zero, which an assumption tells apart.
    """
    if loose:
        moved = moved.union(_stored_floats(world))
    for number, assumption in enumerate(world.new.assumptions):
        if not assumption.reads:
            yield Assumed(assumption, "it holds wherever the old program's assumptions do" if _holds_anyway(world, assumption) else None)
            continue
        if _was_made(world, number, assumption, moved):
            yield Assumed(assumption, "it was made before")
            continue
        facts = [fact for fact in new_facts.facts if fact.number == number]
        undefined = [fact for fact in new_facts.undefined if fact.number == number]
        whole = number in new_facts.whole
        if (
            whole
            and all(_follows(world, fact, old_facts.facts, moved) for fact in facts)
            and all(_follows(world, fact, old_facts.undefined, moved) for fact in undefined)
        ):
            yield Assumed(assumption, "it follows from what was assumed before")
        elif whole and all(_is_padding(world, fact) for fact in (*facts, *undefined)):
            yield Assumed(assumption, "it speaks of padding of a parameter that is laid out anew", interface=True)
        else:
            yield Assumed(assumption, None)


def _stored_floats(world: World) -> Sources:
    """All instances that store a float."""
    stored = world.nothing.domain()
    for statement in world.new.statements:
        if statement.value.dtype.is_float:
            stored = stored.union(only(world.after.domain(statement)))
    return stored


def _readable(assumption: AssumedFact) -> Expr:
    return substitute(assumption.condition, {r.var: Var(r.access.text, r.var.dtype) for r in assumption.reads})


def _holds_anyway(world: World, assumption: AssumedFact) -> bool:
    """Whether an assumption about loops holds for all values of the symbols for which the old program's assumptions about loops do."""
    broken = _broken(world, assumption)
    for other in world.old.assumptions:
        if not other.reads:
            broken = broken.subtract(_broken(world, other))
    return bool(broken.is_empty())


def _broken(world: World, assumption: AssumedFact) -> Points:
    """The values of the symbols for which an assumption about loops fails somewhere."""
    instances = world.workspace.instances(assumption.scene)
    return instances.points.intersect(instances.encoder.set_of(assumption.condition, False)).params()


def _was_made(world: World, number: int, assumption: AssumedFact, moved: Sources) -> bool:
    """Whether the old program has the same assumption, of the same sources, in the same instances."""
    return any(_is_the_same(world, (number, assumption), (k, other), moved) for k, other in enumerate(world.old.assumptions))


def _is_the_same(world: World, mine: tuple[int, AssumedFact], theirs: tuple[int, AssumedFact], moved: Sources) -> bool:
    (number, new), (old_number, old) = mine, theirs
    if len(new.reads) != len(old.reads) or len(new.dims) != len(old.dims) or any(r.anywhere for r in (*new.reads, *old.reads)):
        return False
    names = {o.var: n.var for n, o in zip(new.reads, old.reads, strict=True) if n.var.dtype == o.var.dtype}
    names |= {o.var: n.var for n, o in zip(new.dims, old.dims, strict=True) if n.var.dtype == o.var.dtype}
    if substitute(old.condition, names) != new.condition:
        return False
    for ours, other in zip(new.reads, old.reads, strict=True):
        found = world.after.assumed_sources(number, ours).subtract_range(moved).apply_range(world.theta)
        wanted = world.before.assumed_sources(old_number, other)
        if not from_tuple(found, f"{NEW}a{number}", "at").is_equal(from_tuple(wanted, f"{OLD}a{old_number}", "at")):
            return False
    return True


def _follows(world: World, fact: Fact, old_facts: Sequence[Fact], moved: Sources) -> bool:
    carried = fact.sources.apply(world.theta)
    lost = fact.sources.subtract(world.theta.domain())
    if not lost.is_empty() or not fact.sources.intersect(moved).is_empty():
        return False
    for other in old_facts:
        if other.property == fact.property:
            carried = coalesced(carried.subtract(other.sources))
    return bool(carried.is_empty())


def _is_padding(world: World, fact: Fact) -> bool:
    """Whether a fact speaks of initial cells only that no old cell became, in parameters whose layout the rewrite declares to change,
    and states of them what the layout record says.
    """
    for origin, _ in tuples_of(fact.sources):
        data = origin.removeprefix(f"{NEW}in_")
        buffer = next((b for b in world.rewrite.new.buffers if b.data.name == data and origin == f"{NEW}in_{data}"), None)
        if buffer is None or buffer.name not in world.rewrite.witness.changes_interface:
            return False
        if not _is_in_contract(world, buffer.data, fact):
            return False
    return bool(fact.sources.intersect(world.theta.domain()).is_empty())


def _is_in_contract(world: World, data: Var, fact: Fact) -> bool:
    """Whether a fact about initial cells of a memory which no old cell became states what the contracts of the layout steps do that the
    rewrite adds: each step's of the padding that came with it.
    """
    record, before = layout_records(world.rewrite.new).get(data.name), layout_records(world.rewrite.old).get(data.name)
    known = len(before.steps) if before is not None else 0
    if record is None or len(record.steps) <= known:
        return False
    others = [k for k in range(known, len(record.steps)) if not _is_contract(world, data, record.steps[k], fact)]
    if not others:
        return True
    box = world.cells_region(world.after, data)
    if len(others) == len(record.steps) - known or len(box.encoder.space.dims) != len(record.shape):
        return False
    told = box.within(part_of(fact.sources, f"{NEW}in_{data.name}", box.points))
    return all(told.within(padding_of(record, k, box.encoder)).is_empty for k in others)


def _is_contract(world: World, data: Var, step: LayoutStep, fact: Fact) -> bool:
    """Whether a fact states what the contract of a layout step does."""
    match step.padding:
        case Cell.PAD_UNDEF:
            return isinstance(fact.property, Identical) and is_undefined(fact.property.value)
        case Cell.PAD_VALUE:
            value = contract_value(world.rewrite.new, data, step.contract)
            return value is not None and fact.property == Identical(value)
        case _:
            return False
