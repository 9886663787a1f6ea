"""Steps of one program that the other does not have: what the new one adds does no harm, what the old one had is not missed.

A store of the new program does no harm where it reaches no cell that a cell of the old program became: padding that the layout brought
along. A store of the old program is not missed where what it stores is undefined. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.stmt import BufferStore, Evaluate, For, IfThenElse, Let, Seq
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.instances import Scene
from layoutproof.verify.lockstep.asking import Asking, is_plain
from layoutproof.verify.lockstep.assumptions import Assumptions
from layoutproof.verify.lockstep.items import Flattener, Fresh, Item
from layoutproof.verify.lockstep.memory import Cells, Memories, say_buffer
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import bind, enter, has_calls, is_speakable, shared_name, where, with_unknown
from layoutproof.verify.lockstep.values import may_be_anything


@dataclass(frozen=True, slots=True)
class Leaf:
    """A store or an effect, in the scene in which it happens. `alone`: nothing that depends on data decides whether it does."""

    item: Item
    scene: Scene
    alone: bool


def leaves(item: Item, flattener: Flattener, scene: Scene, alone: bool = True) -> Iterator[Leaf]:
    """Everything that a step does, in order.

    Raises Mismatch for calls that nobody looks into.
    """
    scene = facts_at(scene, item.known)
    node = item.node
    match node:
        case Fresh() | BufferStore() | Evaluate():
            yield Leaf(item, scene, alone)
        case Seq():
            for part in flattener.items(item):
                yield from leaves(part, flattener, scene, alone)
        case For():
            var, inside, exact = _entered(node, item, scene, flattener)
            body = replace(item.inside(node.body), env=bind(item.env, node.var, var))
            for part in flattener.items(body):
                yield from leaves(part, flattener, inside, alone and exact)
        case IfThenElse(condition=condition, then=then, otherwise=otherwise):
            said = item.say(condition)
            exact = alone and is_speakable(said)
            for part in flattener.items(item.inside(then, (*item.known, *item.within))):
                yield from leaves(part, flattener, where(scene, said), exact)
            if otherwise is not None:
                for part in flattener.items(item.inside(otherwise)):
                    yield from leaves(part, flattener, where(scene, said, False), exact)
        case Let(var=var, body=body):
            shared = Var(shared_name(var.name, scene, flattener.side.facts), var.dtype)
            scalar = var.dtype.is_integer and var.dtype.lanes == 1
            inside = with_unknown(scene, shared, shared) if scalar else scene
            for part in flattener.items(replace(item.inside(body), env=bind(item.env, var, shared))):
                yield from leaves(part, flattener, inside, alone)
        case _:
            raise Mismatch(f"a statement that the walk does not know stands {item.place}")


def _entered(loop: For, item: Item, scene: Scene, flattener: Flattener) -> tuple[Var, Scene, bool]:
    start, extent = item.say(loop.start), item.say(loop.extent)
    if is_speakable(start) and is_speakable(extent):
        return (*enter(loop, start, extent, scene, flattener.side.facts), True)
    shared = Var(shared_name(loop.var.name, scene, flattener.side.facts), loop.var.dtype)
    return shared, with_unknown(scene, shared, shared), False


def facts_at(scene: Scene, known: tuple[Expr, ...]) -> Scene:
    """The scene with facts that are not plain there."""
    for condition in known:
        if not is_plain(scene, condition):
            scene = where(scene, condition)
    return scene


def cells_of(item: Item, access: BufferStore | BufferLoad) -> Cells:
    """The place of an access of a step, over the shared names."""
    return Cells(say_buffer(access.buffer, item.env), tuple(item.say(i) for i in access.indices))


@dataclass(slots=True)
class Extras:
    """Judges steps that have no counterpart."""

    memories: Memories
    asking: Asking
    assumptions: Assumptions

    # -- what the old program had ----------------------------------------------------------------------------------------

    def check_dropped(self, item: Item, flattener: Flattener, scene: Scene) -> None:
        """Raises Mismatch unless nothing is missed without this step of the old program."""
        for leaf in leaves(item, flattener, scene):
            self._check_dropped(leaf)

    def _check_dropped(self, leaf: Leaf) -> None:
        node = leaf.item.node
        match node:
            case BufferStore(buffer=buffer, value=value):
                if self._not_missed(leaf, node):
                    return
                text = f"the store of {expr_text(value, Style.PLAIN)} to {buffer.name} ({leaf.item.place})"
                raise Mismatch(f"{text} has no counterpart in the new program")
            case Evaluate(value=value) if has_calls(value) and not self.asking.is_empty(leaf.scene):
                raise Mismatch(f"the call {leaf.item.place} has no counterpart in the new program")
            case _:
                pass

    def _not_missed(self, leaf: Leaf, store: BufferStore) -> bool:
        if has_calls(store.value):
            return False
        said = leaf.item.say(store.value)
        if may_be_anything(said) or self.memories.old.root(store.buffer) in self.memories.missed:
            return True
        return self._is_no_op(leaf, store) or self.asking.is_empty(leaf.scene)

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
        return all(a == b or (scalar and self.asking.equal(leaf.scene, a, b)) for a, b in pairs)

    # -- what the new program adds ---------------------------------------------------------------------------------------

    def check_added(self, item: Item, flattener: Flattener, scene: Scene) -> list[Claim]:
        """What an added step is. Raises Mismatch unless it does no harm."""
        found = (self._added(leaf) for leaf in leaves(item, flattener, scene))
        return list(dict.fromkeys(claim for claim in found if claim is not None))

    def _added(self, leaf: Leaf) -> Claim | None:
        node = leaf.item.node
        match node:
            case BufferStore():
                return self._added_store(leaf, node)
            case Fresh(buffer=buffer):
                if not self.memories.is_harmless(buffer.data):
                    raise Mismatch(f"{buffer.name} comes into being {leaf.item.place}, where the old program goes on using it")
                return None
            case Evaluate(value=Assume(condition=condition)):
                return self.assumptions.added(leaf.item, condition, leaf.scene)
            case Evaluate(value=value) if has_calls(value):
                raise Mismatch(f"the call {leaf.item.place} has no counterpart in the old program")
            case _:
                return None

    def _added_store(self, leaf: Leaf, store: BufferStore) -> Claim | None:
        memories, item = self.memories, leaf.item
        if has_calls(store.value) or any(has_calls(i) for i in store.indices):
            raise Mismatch(f"the call {item.place} has no counterpart in the old program")
        data, head = memories.new.root(store.buffer), f"the store to {store.buffer.name}"
        if memories.is_harmless(data):
            return Claim(ClaimKind.SAME_VALUE, head, item.place, " reaches nothing that the old program has")
        cells = cells_of(item, store)
        if memories.outside_image(cells, leaf.scene):
            return Claim(ClaimKind.SAME_VALUE, head, item.place, " fills padding that the layout brought along, and nothing else")
        if self._is_no_op(leaf, store) or self.asking.is_empty(leaf.scene):
            return None
        raise Mismatch(f"{head} ({item.place}) has no counterpart in the old program")
