"""Passes on long programs: a pass that names blocks sees the statements around these only, and what it makes of them is
put back. Nothing is trusted: the rewrite is one of the whole program, and is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import LAYOUT, Kept, PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import Allocate, Attributes, Block, DeclBuffer, Stmt, seq
from layoutproof.ir.visit import names_in
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.passes.base import ArgumentKind, Pass, kind_of
from layoutproof.verify.program.touched import Touched, touched_by
from layoutproof.verify.program.window import FEWEST, Part, Text, try_part


def try_in_part(transform: Pass, func: PrimFunc) -> Rewrite | None:
    """The well-formed rewrite of a long program of which the pass saw a part; None where it has to see the whole: where
    it names no block, does not apply to the part, or changes what is around the statements.
    """
    text = Text.of(func)
    if text is None or len(text.statements) <= FEWEST:
        return None
    part = _part_for(transform, text)
    if part is None:
        return None
    try:
        found = transform.propose(part.function)
    except LayoutproofError:  # which the whole program tells better
        return None
    new = Text.of(found.new)
    if new is None or check_wellformed(found.new):
        return None
    return _Back(text, part, found, new).rewrite()


def _part_for(transform: Pass, text: Text) -> Part | None:
    """The statements with the blocks that the pass names, and all that touch the buffers that it names."""
    names = set(_names(transform))
    positions = list[int]()
    blocks = list[str]()
    for position, stmt in enumerate(text.statements):
        touched = touched_by(stmt)
        if touched is None:
            return None
        if not names.isdisjoint(touched.blocks):
            positions.append(position)
            blocks += [name for name in touched.blocks if name in names]
    if len(blocks) != len(set(blocks)):
        return None
    buffers = [buffer for buffer in text.memories.values() if buffer.name in names]
    return try_part(text, positions, [buffer.data.name for buffer in buffers])


def _names(transform: Pass) -> Iterator[str]:
    for option in transform.options():
        value = getattr(transform, option.name)
        if kind_of(option) is ArgumentKind.NAME and isinstance(value, str):
            yield value
        elif kind_of(option) is ArgumentKind.NAMES and isinstance(value, tuple):
            yield from value


class _Back:
    """A rewrite of a part, put back into the whole."""

    def __init__(self, text: Text, part: Part, found: Rewrite, new: Text) -> None:
        self.text, self.part, self.found, self.new = text, part, found, new

    def rewrite(self) -> Rewrite | None:
        """The rewrite of the whole; None where the parts around the statements do not go together."""
        func, small = self.text.function, self.found.new
        lifted = len(self.part.lifted)
        interface = len(small.params) - lifted
        if (
            small.params != self.found.old.params
            or small.buffer_map[len(small.buffer_map) - lifted :]
            != (self.found.old.buffer_map[len(self.found.old.buffer_map) - lifted :])
        ):
            return None
        body = self._body()
        attrs = self._attributes()
        if body is None or attrs is None or not self._names_are_free():
            return None
        buffer_map = small.buffer_map[: len(small.buffer_map) - lifted]
        new = replace(func, params=small.params[:interface], buffer_map=buffer_map, body=body, attrs=attrs)
        return Rewrite(func, new, replace(self.found.witness, instances=self._instances(new)))

    def _body(self) -> Stmt | None:
        """The statements, in what the program declares around them, changed as the part's was."""
        count = len(self.text.statements)
        body = seq(
            *self.text.statements[: self.part.first],
            *self.new.statements,
            *self.text.statements[count - self.part.last :],
        )
        before = Text.of(self.part.function)
        if before is None or [type(p) for p in before.frame] != [type(p) for p in self.new.frame]:
            return None
        changed = dict(zip(map(_key, before.frame), self.new.frame, strict=True))
        if len(changed) != len(before.frame):
            return None
        for frame in reversed(self.text.frame):
            small = changed.get(_key(frame))
            if small is None:
                body = replace(frame, body=body)
            elif isinstance(frame, Block) and isinstance(small, Block):
                own = self._allocated(frame.alloc_buffers, small.alloc_buffers)
                body = replace(small, body=body, alloc_buffers=own)
            else:
                body = replace(small, body=body)
        return body

    def _allocated(self, whole: Sequence[Buffer], small: Sequence[Buffer]) -> tuple[Buffer, ...]:
        """The allocations of a block: those that the part had as it has them now, and those that it added."""
        now, had = {buffer.data.name: buffer for buffer in small}, self.part.inside
        kept = [now.pop(buffer.data.name, None) if buffer.data.name in had else buffer for buffer in whole]
        return (*(buffer for buffer in kept if buffer is not None), *now.values())

    def _attributes(self) -> Attributes | None:
        old, new = self.found.old.attrs, self.found.new.attrs
        if any(key not in new for key in old if key != LAYOUT):
            return None
        attrs = self.text.function.attrs
        for key, value in new.items():
            if key != LAYOUT and old.get(key) != value:
                attrs = attrs.with_value(key, value)
        records, inside = layout_records(self.text.function), self.part.inside
        outside = {name: record for name, record in records.items() if name not in inside}
        both = {**outside, **layout_records(self.found.new)}
        if both:
            return attrs.with_value(LAYOUT, both) if both != records else attrs
        return attrs.without(LAYOUT) if records else attrs

    def _names_are_free(self) -> bool:
        """Whether what is new in the part has no name that the rest of the program has around it, nor a block's."""
        old, new = (_names_of(self._touched(text.statements)) for text in (_text(self.found.old), self.new))
        fresh = names_in(self.found.new.body) - names_in(self.found.old.body)
        if fresh and any(b.name in fresh or b.data.name in fresh for b in self.text.memories.values()):
            return False
        if new <= old:
            return True
        count = len(self.text.statements)
        outside = (*self.text.statements[: self.part.first], *self.text.statements[count - self.part.last :])
        return not (new - old) & _names_of(self._touched(outside))

    @staticmethod
    def _touched(statements: Iterable[Stmt]) -> Iterator[Touched]:
        for stmt in statements:
            touched = touched_by(stmt)
            if touched is not None:
                yield touched

    def _instances(self, whole: PrimFunc) -> tuple[InstanceMap, ...]:
        """The instance maps of all stores: outside of the part each store computes itself. Those of the statements that
        keep their numbers are the objects that the step before had.
        """
        count = len(self.text.statements)
        first, last = self.part.first, count - self.part.last
        old = _UNCHANGED.get(self.text.function, (), lambda: tuple(_unchanged(self.text.statements)))
        skipped, within = (_stores(self.text.statements[start:end]) for start, end in ((0, first), (first, last)))
        now = _stores(self.new.statements)
        before, after = old[:skipped], old[skipped + within :]
        moved = now - within
        shifted = after if not moved else tuple(replace(each, new_store=each.new_store + moved) for each in after)
        same = shifted if not moved else tuple(replace(each, old_store=each.new_store) for each in shifted)
        between = tuple(_unchanged(self.new.statements, skipped))
        _UNCHANGED.get(whole, (), lambda: (*before, *between, *same))
        claims = [
            replace(
                claim,
                new_store=claim.new_store + skipped,
                old_store=None if claim.old_store is None else claim.old_store + skipped,
            )
            for claim in self.found.witness.instances
        ]
        return (*before, *claims, *shifted)


_UNCHANGED: Kept[tuple[InstanceMap, ...]] = Kept(4)
"""Of a program the instance maps that say that each store computes itself."""


def _unchanged(statements: Iterable[Stmt], number: int = 0) -> Iterator[InstanceMap]:
    """That each store computes itself, counted from a number on."""
    kept = (each for touched in map(touched_by, statements) if touched is not None for each in touched.stores)
    return (InstanceMap(place, place, each) for place, each in enumerate(kept, number))


def _stores(statements: Iterable[Stmt]) -> int:
    return sum(len(touched.stores) for touched in map(touched_by, statements) if touched is not None)


def _text(function: PrimFunc) -> Text:
    found = Text.of(function)
    assert found is not None
    return found


def _key(part: Allocate | DeclBuffer | Block) -> str:
    return part.name if isinstance(part, Block) else f"{type(part).__name__} {part.buffer.name}"


def _names_of(touched: Iterable[Touched]) -> set[str]:
    return {name for each in touched for name in each.blocks}
