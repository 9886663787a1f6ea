"""Assumptions that the new program makes and the old one did not: only about padding of a parameter that this very step re-lays.

Such an assumption is part of the new calling convention: a caller can always make it true, whatever the elements are. Each cell of the
padding is spoken of once, by value identity, in terms of elements and constants, so that nothing follows about elements. Part of the
trust base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Compare, CompareOp, Expr, Logical, LogicalOp, Not, Var, logical_and
from layoutproof.ir.layout_record import LayoutStep
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import Style, expr_text
from layoutproof.verify.claim import Claim, ClaimKind
from layoutproof.verify.instances import Scene
from layoutproof.verify.lockstep.asking import Asking
from layoutproof.verify.lockstep.contracts import is_contract, loads_of
from layoutproof.verify.lockstep.items import Item
from layoutproof.verify.lockstep.memory import Cells, Memories
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import is_speakable, where


@dataclass(slots=True)
class Assumptions:
    """`grown` are the layout steps that the new program's records have more, by data variable; `made` the parameters whose padding is
    assumed something of, once each.
    """

    memories: Memories
    asking: Asking
    grown: Mapping[str, tuple[LayoutStep, ...]]
    made: set[str] = field(default_factory=set)

    def added(self, item: Item, condition: Expr, scene: Scene) -> Claim | None:
        """What a new assumption is; None for one that holds anyway. Raises Mismatch for any other."""
        said = item.say(condition)
        parts = list(alternatives(said))
        outside = scene
        for part in parts:
            if is_speakable(part):
                outside = where(outside, part, False)
        if self.asking.is_empty(outside):
            return None
        rest = [part for part in parts if not is_speakable(part)]
        problem = "it speaks of more than one thing" if len(rest) != 1 else self._problem(rest[0], scene, outside, parts)
        if problem is not None:
            text = expr_text(condition, Style.PLAIN)
            raise Mismatch(f"the new program assumes `{text}` ({item.place}), which the old one does not: {problem}")
        identity = rest[0]
        assert isinstance(identity, Compare)
        load, value = _identity(identity)
        assert load is not None
        text = expr_text(value, Style.PLAIN)
        what = f"what is newly assumed speaks of padding of {load.buffer.name} alone: it holds {text} at every call"
        return Claim(ClaimKind.ASSUMPTION, what, item.place)

    def _problem(self, identity: Expr, scene: Scene, outside: Scene, parts: Sequence[Expr]) -> str | None:
        load, value = _identity(identity)
        if load is None:
            return "it does not say what one cell holds"
        memories = self.memories
        data, name = memories.new.root(load.buffer), load.buffer.name
        steps = self.grown.get(data.name, ())
        if data not in memories.new.parameters or len(steps) != 1 or steps[0].contract is None:
            return f"this step gives the padding of {name} no contract"
        if data in stored(memories):
            return f"{name} is written, so its padding is the program's own"
        loops = [dim.var for dim in scene.dims]
        cell = [i for i in load.indices if isinstance(i, Var)]
        if sorted(v.name for v in cell) != sorted(v.name for v in loops) or len(cell) != len(load.indices) or data.name in self.made:
            return "it does not speak of each cell once"
        if not is_contract(steps[0].contract, value, cell, memories.old.facts.program.symbols):
            return f"the contract in the layout record is {steps[0].contract}"
        if not memories.outside_image(Cells(load.buffer, load.indices), outside):
            return f"it may speak of elements of {name}, not of padding alone"
        spoken = [part for part in parts if is_speakable(part)]
        for inner in loads_of(value):
            if not is_element(memories, self.asking, inner, cell, outside, [Not(part) for part in spoken], data):
                return "what it says of one cell depends on others of the padding"
        self.made.add(data.name)
        return None


def is_element(
    memories: Memories, asking: Asking, load: BufferLoad, cell: Sequence[Var], outside: Scene, padding: Sequence[Expr], data: Var
) -> bool:
    """Whether a load in a pad value is certainly not of a cell that is padding itself. `padding` are the conditions of that over `cell`."""
    if memories.new.root(load.buffer) != data or len(load.indices) != len(cell):
        return False
    there = dict(zip(cell, load.indices, strict=True))
    return bool(padding) and asking.never(outside, substitute(logical_and(*padding), there))


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
