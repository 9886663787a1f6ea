"""What only one of the programs has: assumptions of the new one about padding that this step introduces, with the
contract that states it, and steps without a counterpart. What the new program adds does no harm, what the old one had
is not missed. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Compare, Expr, Logical, Not, Var, logical_and
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.stmt import BufferStore, Evaluate, For, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, loads_in, substitute
from layoutproof.verify.lockstep.domains import (
    Asking,
    Mismatch,
    bind,
    enter,
    has_calls,
    is_plain,
    is_speakable,
    shared_name,
    where,
    with_unknown,
)
from layoutproof.verify.lockstep.equal_values import may_be_anything
from layoutproof.verify.lockstep.items import Flattener, Fresh, Item
from layoutproof.verify.lockstep.memories import Cells, Memories, say_buffer
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.traps import traps_in
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Proved


def is_contract(contract: Contract, value: Expr, cell: Sequence[Var], symbols: Iterable[Var]) -> bool:
    """Whether a contract says that the cell whose index is `cell` holds `value`."""
    if isinstance(value, Undef) or contract.is_undef:
        return isinstance(value, Undef) and contract.is_undef
    if any(v not in {*cell, *symbols} for v in free_variables(value)):
        return False
    body = expr_text(contract.value)
    if not set(contract.inputs) & set(free_variables(contract.value)):
        return not set(cell) & set(free_variables(value)) and expr_text(value) == body
    names = [v.name for v in contract.inputs]
    if len(names) != len(cell) or len(set(names)) != len(names) or {v.name for v in symbols} & set(names):
        return False
    return expr_text(substitute(value, {v: Var(name, v.dtype) for v, name in zip(cell, names, strict=True)})) == body


def new_steps(old: LayoutRecord | None, new: LayoutRecord | None) -> tuple[LayoutStep, ...]:
    """The steps by which a record grew."""
    if new is None:
        return ()
    return new.steps[len(old.steps) if old is not None else 0 :]


def loads_of(value: Expr) -> list[BufferLoad]:
    """What a contract's value loads."""
    return list(loads_in(value))


@dataclass(slots=True)
class Assumptions:
    """`grown` are the layout steps that the new program's records have more, by data variable; `made` the parameters
    whose padding is assumed something of, once each.
    """

    memories: Memories
    asking: Asking
    grown: Mapping[str, tuple[LayoutStep, ...]]
    made: set[str] = field(default_factory=set)

    def added(self, item: Item, condition: Expr, domain: IterationDomain) -> Proved:
        """That a new assumption holds anyway, or what it claims of padding. Raises Mismatch for any other."""
        said = item.say(condition)
        parts = list(alternatives(said))
        outside = domain
        for part in parts:
            if is_speakable(part):
                outside = where(outside, part, False)
        if self.asking.is_empty(outside):
            return Proved()
        rest = [part for part in parts if not is_speakable(part)]
        answer = (
            self._of_padding(rest[0], item.place, domain, outside, parts)
            if len(rest) == 1
            else Open("it speaks of more than one thing")
        )
        if isinstance(answer, Open):
            text, why = expr_text(condition, Style.PLAIN), answer.reason
            raise Mismatch(f"the new program assumes `{text}` ({item.place}), which the old one does not: {why}")
        return answer

    def _of_padding(
        self, identity: Expr, place: Place, domain: IterationDomain, outside: IterationDomain, parts: Sequence[Expr]
    ) -> Proved | Open:
        """Whether `load == value` says of each padding cell that this step introduces what its contract says."""
        load, value = _identity(identity)
        if load is None:
            return Open("it does not say what one cell holds")
        memories = self.memories
        data, name = memories.new.root(load.buffer), load.buffer.name
        steps = self.grown.get(data.name, ())
        if data not in memories.new.parameters or len(steps) != 1 or steps[0].contract is None:
            return Open(f"this step gives the padding of {name} no contract")
        if data in stored(memories):
            return Open(f"{name} is written, so its padding is the program's own")
        if not is_whole(memories, load.buffer):
            return Open(f"{name} is another view, whose indices are not those of the contract")
        loops = [dim.var for dim in domain.dims]
        cell = [i for i in load.indices if isinstance(i, Var)]
        if (
            sorted(v.name for v in cell) != sorted(v.name for v in loops)
            or len(cell) != len(load.indices)
            or data.name in self.made
        ):
            return Open("it does not speak of each cell once")
        if not is_contract(steps[0].contract, value, cell, memories.old.facts.program.symbols):
            return Open(f"the contract in the layout record is {steps[0].contract}")
        if not memories.outside_image(Cells(load.buffer, load.indices), outside):
            return Open(f"it may speak of elements of {name}, not of padding alone")
        spoken = [part for part in parts if is_speakable(part)]
        for inner in loads_of(value):
            if not is_element(memories, inner, cell, outside, [Not(part) for part in spoken], data):
                return Open("what it says of one cell depends on others of the padding")
        self.made.add(data.name)
        text = expr_text(value, Style.PLAIN)
        what, about = f"precondition: padding of `{load.buffer.name}` is {text}", ("padding", load.buffer.name, text)
        return Proved((Claim(ClaimKind.ASSUMPTION, what, place, about=about),))


def is_element(
    memories: Memories,
    load: BufferLoad,
    cell: Sequence[Var],
    outside: IterationDomain,
    padding: Sequence[Expr],
    data: Var,
) -> bool:
    """Whether a load in a pad value is certainly of no padding cell; `padding` are conditions over `cell`."""
    if memories.new.root(load.buffer) != data or not is_whole(memories, load.buffer):
        return False
    there = dict(zip(cell, load.indices, strict=True))
    return bool(padding) and memories.asking.never(outside, substitute(logical_and(*padding), there))


def is_whole(memories: Memories, buffer: Buffer) -> bool:
    """Whether a buffer of the new program is a memory as it came into being, of whose indices its contract speaks."""
    was = memories.was(memories.new.root(buffer))
    return was is not None and was in memories.relaid and memories.relaid[was].after == buffer


def stored(memories: Memories) -> frozenset[Var]:
    """The memories that the new program stores to."""
    return memories.new.touched(memories.new.func.body).stored


def alternatives(condition: Expr) -> Iterator[Expr]:
    """The parts of which one must hold."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.OR:
        yield from alternatives(condition.lhs)
        yield from alternatives(condition.rhs)
    else:
        yield condition


def _identity(condition: Expr) -> tuple[BufferLoad | None, Expr]:
    """The load and the value of `load == value`."""
    if isinstance(condition, Compare) and condition.op is CompareOp.EQ:
        for one, other in ((condition.lhs, condition.rhs), (condition.rhs, condition.lhs)):
            if isinstance(one, BufferLoad):
                return one, other
    return None, condition


@dataclass(frozen=True, slots=True)
class Leaf:
    """A store or an effect in its iteration domain. `alone`: whether it happens does not depend on data."""

    item: Item
    domain: IterationDomain
    alone: bool


def leaves(item: Item, flattener: Flattener, domain: IterationDomain, alone: bool = True) -> Iterator[Leaf]:
    """Everything that a step does, in order.

    Raises Mismatch for opaque calls.
    """
    domain = facts_at(domain, item.known)
    if isinstance(item.node, Fresh | BufferStore | Evaluate):
        yield Leaf(item, domain, alone)
        return
    for body, inside, exact in _bodies(item, flattener, domain):
        for part in flattener.items(body):
            yield from leaves(part, flattener, inside, alone and exact)


def _bodies(item: Item, flattener: Flattener, domain: IterationDomain) -> Iterator[tuple[Item, IterationDomain, bool]]:
    """The bodies of a step with their domains, and whether these are exact: no data decides."""
    node = item.node
    match node:
        case Seq():
            yield item, domain, True
        case For():
            var, inside, exact = _entered(node, item, domain, flattener)
            yield replace(item.inside(node.body), env=bind(item.env, node.var, var)), inside, exact
        case IfThenElse(condition=condition, then=then, otherwise=otherwise):
            said = item.say(condition)
            exact = is_speakable(said)
            yield item.inside(then, (*item.known, *item.within)), where(domain, said), exact
            if otherwise is not None:
                yield item.inside(otherwise), where(domain, said, False), exact
        case Let(var=var, body=body):
            shared = Var(shared_name(var.name, domain, flattener.side.facts), var.dtype)
            scalar = var.dtype.is_integer and var.dtype.lanes == 1
            inside = with_unknown(domain, shared, shared) if scalar else domain
            yield replace(item.inside(body), env=bind(item.env, var, shared)), inside, True
        case _:
            raise Mismatch(f"a statement that the walk does not know stands {item.place}")


def _entered(loop: For, item: Item, domain: IterationDomain, flattener: Flattener) -> tuple[Var, IterationDomain, bool]:
    start, extent = item.say(loop.start), item.say(loop.extent)
    if is_speakable(start) and is_speakable(extent):
        return (*enter(loop, start, extent, domain, flattener.side.facts), True)
    shared = Var(shared_name(loop.var.name, domain, flattener.side.facts), loop.var.dtype)
    return shared, with_unknown(domain, shared, shared), False


def facts_at(domain: IterationDomain, known: tuple[Expr, ...]) -> IterationDomain:
    """The iteration domain with facts that are not plain there."""
    for condition in known:
        if not is_plain(domain, condition):
            domain = where(domain, condition)
    return domain


def cells_of(item: Item, access: BufferStore | BufferLoad) -> Cells:
    """The place of an access of a step, over the shared names."""
    return Cells(say_buffer(access.buffer, item.env), tuple(item.say(i) for i in access.indices))


@dataclass(slots=True)
class UnmatchedSteps:
    """Judges steps that have no counterpart. `traps`: the new program has to have a result where the old one has."""

    memories: Memories
    asking: Asking
    assumptions: Assumptions
    traps: bool = False

    # What the old program had

    def check_dropped(self, item: Item, flattener: Flattener, domain: IterationDomain) -> Proved:
        """That nothing is missed without this step of the old program. Raises Mismatch."""
        return Proved.all(self._dropped(leaf) for leaf in leaves(item, flattener, domain))

    def _dropped(self, leaf: Leaf) -> Proved:
        node = leaf.item.node
        match node:
            case BufferStore(buffer=buffer, value=value):
                if self._not_missed(leaf, node):
                    return Proved()
                text = f"the store of {expr_text(value, Style.PLAIN)} to {buffer.name} ({leaf.item.place})"
                raise Mismatch(f"{text} has no counterpart in the new program")
            case Evaluate(value=value) if has_calls(value) and not self.asking.is_empty(leaf.domain):
                raise Mismatch(f"the call {leaf.item.place} has no counterpart in the new program")
            case _:
                return Proved()

    def _not_missed(self, leaf: Leaf, store: BufferStore) -> bool:
        if has_calls(store.value):
            return False
        said = leaf.item.say(store.value)
        if may_be_anything(said) or self.memories.old.root(store.buffer) in self.memories.missed:
            return True
        return self._is_no_op(leaf, store) or self.asking.is_empty(leaf.domain)

    def _is_no_op(self, leaf: Leaf, store: BufferStore) -> bool:
        """Whether a store puts back what it has just loaded from its own cell."""
        value = leaf.item.say(store.value)
        # Loading and storing a truth value makes any byte 0 or 1.
        if not isinstance(value, BufferLoad) or value.dtype.is_bool:
            return False
        cells = cells_of(leaf.item, store)
        if value.buffer != cells.buffer:
            return False
        scalar = all(i.dtype.lanes == 1 for i in (*value.indices, *cells.indices))
        pairs = zip(value.indices, cells.indices, strict=True)
        return all(a == b or (scalar and self.asking.equal(leaf.domain, a, b)) for a, b in pairs)

    # What the new program adds

    def check_added(self, item: Item, flattener: Flattener, domain: IterationDomain) -> Proved:
        """That an added step does no harm, with what it is. Raises Mismatch."""
        if self.traps and isinstance(item.node, Stmt) and traps_in(item.node):
            raise Mismatch(f"a step without a counterpart may have no result ({item.place})")
        return Proved.all(self._added(leaf) for leaf in leaves(item, flattener, domain))

    def _added(self, leaf: Leaf) -> Proved:
        node = leaf.item.node
        match node:
            case BufferStore():
                return self._added_store(leaf, node)
            case Fresh(buffer=buffer):
                if not self.memories.is_harmless(buffer.data):
                    raise Mismatch(
                        f"{buffer.name} comes into being {leaf.item.place}, where the old program goes on using it"
                    )
                return Proved()
            case Evaluate(value=Assume(condition=condition)):
                return self.assumptions.added(leaf.item, condition, leaf.domain)
            case Evaluate(value=value) if has_calls(value):
                raise Mismatch(f"the call {leaf.item.place} has no counterpart in the old program")
            case _:
                return Proved()

    def _added_store(self, leaf: Leaf, store: BufferStore) -> Proved:
        memories, item = self.memories, leaf.item
        if has_calls(store.value) or any(has_calls(i) for i in store.indices):
            raise Mismatch(f"the call {item.place} has no counterpart in the old program")
        data, head = memories.new.root(store.buffer), f"the store to {store.buffer.name}"
        if memories.is_harmless(data):
            tail, about = " reaches no memory of the old program", ("unread", store.buffer.name)
            return Proved((Claim(ClaimKind.SAME_VALUE, head, item.place, tail, about=about),))
        cells = cells_of(item, store)
        if memories.outside_image(cells, leaf.domain):
            tail, about = " writes only padding of the new layout", ("padding", store.buffer.name)
            return Proved((Claim(ClaimKind.SAME_VALUE, head, item.place, tail, about=about),))
        if self._is_no_op(leaf, store) or self.asking.is_empty(leaf.domain):
            return Proved()
        raise Mismatch(f"{head} ({item.place}) has no counterpart in the old program")
