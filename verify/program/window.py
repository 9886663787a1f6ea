"""The part of a rewrite in which its two programs differ, as a rewrite of its own: the statements that both have at
their start and at their end are left out. Part of the trusted computing base.

Both programs run statements one after the other at the top: `before; old; after` and `before; new; after`. A window is
`old` and `new` with as many of the shared statements beside them as it takes for the following to hold. Then, if the
new window refines the old one for every content of its parameters, bit for bit, the new program refines the old one:
`before` leaves both in one state, the windows lead from there to one state, in all that `after` looks at.

* Statements are of the kinds listed here: no opaque calls, no pointers, no threads. What they do follows from the
  contents of the memories that they name.
* A memory that is declared, stored or recorded differently in the two programs is in the window whole: no statement
  outside touches it. So is each temporary that a differing statement touches: whether its cells were written is asked
  within the window.
* Other temporaries that the window touches become parameters there. Only statements that both share touch them, and
  which of their cells these touch does not depend on data; so whether the cells may be read is the same in both. Their
  extents are numbers, or those of a parameter, so that nothing more is assumed of symbols.
* Every cell of such a temporary, and of a parameter, is observable in the window: layout records of memories that are
  not in it whole are left out.
* Preconditions outside the window are left out, which proves more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import (
    TRUE,
    IntImm,
    Var,
)
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.primfunc import LAYOUT, Kept, PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    Block,
    DeclBuffer,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import fresh
from layoutproof.verify.program.touched import touched_by

FEWEST = 32  # statements that both programs share, from which on leaving them out pays
_LARGEST = 2**31  # cells of a temporary that becomes a parameter, so that its size fits an index


@dataclass(frozen=True, slots=True)
class Touches:
    """For each memory the numbers of the first and of the last statement that touch it."""

    first: Mapping[str, int]
    last: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Text:
    """A function as what it declares, outermost first, and the statements that it runs one after the other."""

    function: PrimFunc
    frame: tuple[Allocate | DeclBuffer | Block, ...]
    statements: tuple[Stmt, ...]
    memories: Mapping[str, Buffer]
    views: Mapping[str, tuple[Buffer, ...]]
    parameters: frozenset[str]

    @staticmethod
    def of(function: PrimFunc) -> Text | None:
        """None where a memory is declared twice, or the frame has something else in it."""
        return _TEXTS.get(function, (), lambda: Text._read(function))

    @staticmethod
    def _read(function: PrimFunc) -> Text | None:
        frame: list[Allocate | DeclBuffer | Block] = []
        body = function.body
        while isinstance(body, Allocate | DeclBuffer | Block):
            if isinstance(body, Block) and not _is_frame(body):
                return None
            frame.append(body)
            body = body.body
        memories = {buffer.data.name: buffer for buffer in function.buffers}
        parameters = frozenset(memories)
        views: dict[str, tuple[Buffer, ...]] = {}
        count = len(function.buffers)
        for part in frame:
            if isinstance(part, DeclBuffer):
                name = part.buffer.data.name
                views[name] = (*views.get(name, ()), part.buffer)
                continue
            own = part.alloc_buffers if isinstance(part, Block) else (part.buffer,)
            count += len(own)
            memories.update((buffer.data.name, buffer) for buffer in own)
        if len(memories) != count:
            return None
        statements = body.body if isinstance(body, Seq) else (body,)
        return Text(function, tuple(frame), statements, memories, views, parameters)

    def touches(self) -> Touches | None:
        """Where memories are touched; None where a statement is not described, or touches a memory that the function
        does not declare as elements of the type that it is looked at with.
        """
        return _TOUCHES.get(self.function, (), lambda: _touches(self.statements, self))

    def only(self, statements: Sequence[Stmt], kept: frozenset[str], lifted: Sequence[Buffer]) -> PrimFunc:
        """The function with some of its statements; of its temporaries it has those in `kept`, and those that are
        `lifted` as further parameters.
        """
        body = seq(*statements)
        there = kept | self.parameters | {buffer.data.name for buffer in lifted}
        for part in reversed(self.frame):
            if isinstance(part, Block):
                own = tuple(buffer for buffer in part.alloc_buffers if buffer.data.name in kept)
                body = replace(part, body=body, alloc_buffers=own)
            elif part.buffer.data.name in (kept if isinstance(part, Allocate) else there):
                body = replace(part, body=body)
        taken = {param.name for param in self.function.params}
        handles: list[Var] = []
        for buffer in lifted:
            handles.append(Var(fresh(f"{buffer.data.name}_handle", taken), HANDLE))
            taken.add(handles[-1].name)
        return replace(
            self.function,
            params=(*self.function.params, *handles),
            buffer_map=(*self.function.buffer_map, *zip(handles, lifted, strict=True)),
            body=body,
            attrs=self._records_of(kept),
        )

    def _records_of(self, kept: frozenset[str]) -> Attributes:
        records = layout_records(self.function)
        if not records:
            return self.function.attrs
        left = {name: record for name, record in records.items() if name in kept}
        attrs = self.function.attrs
        return attrs.with_value(LAYOUT, left) if left else attrs.without(LAYOUT)


_TEXTS: Kept[Text | None] = Kept(8)  # a step reads both programs, and the next one reads the new one again


_TOUCHES: Kept[Touches | None] = Kept(8)


def _touches(statements: Iterable[Stmt], text: Text) -> Touches | None:
    # Written out: each step asks it once of every statement of the program that it leaves.
    types = {name: buffer.dtype for name, buffer in text.memories.items()}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, touched in enumerate(map(touched_by, statements)):
        if touched is None:
            return None
        for name, dtype in touched.memories:
            declared = types.get(name)
            if declared is not dtype and declared != dtype:
                return None
            if name not in first:
                first[name] = number
            last[name] = number
    return Touches(first, last)


def _is_frame(block: Block) -> bool:
    plain = block.is_root and block.init is None and block.where == TRUE and not block.match_buffers
    return plain and not (block.reads or block.writes)


@dataclass(frozen=True, slots=True)
class Window:
    """A rewrite of the statements in which the two programs differ, and `shared`: those that are left out."""

    rewrite: Rewrite
    shared: tuple[Stmt, ...]
    _whole: Text

    def stores_outside(self) -> Iterator[PrimFunc]:
        """The statements outside that store to a parameter, each as a function."""
        parameters = self._whole.parameters
        for stmt in reversed(self.shared):
            touched = touched_by(stmt)
            if touched is not None and touched.written & parameters:
                yield self._whole.only((stmt,), frozenset(name for name, _ in touched.memories) - parameters, ())


def try_window(rewrite: Rewrite) -> Window | None:
    """The window of a rewrite; None where it would leave few statements out, or the programs are of other forms."""
    old, new = Text.of(rewrite.old), Text.of(rewrite.new)
    least = 0 if old is None or new is None else min(len(old.statements), len(new.statements))
    if old is None or new is None or least < FEWEST:
        return None
    first = _alike(old.statements, new.statements, least)
    last = _alike(reversed(old.statements), reversed(new.statements), least - first)
    return _Search(old, new, first, last).window_of(rewrite)


def try_part(text: Text, positions: Sequence[int], named: Iterable[str]) -> Part | None:
    """A part of a program, with these statements and all that touch memories which are `named`, that may be changed by
    itself; None where it would leave few statements out.
    """
    if not positions:
        return None
    search = _Search(text, text, min(positions), len(text.statements) - 1 - max(positions))
    return search.part_with(named)


@dataclass(frozen=True, slots=True)
class Part:
    """All but the `first` and the `last` statements of a program, as a function whose parameters are also the
    temporaries that are `lifted`. It has the memories that are `inside` whole.
    """

    function: PrimFunc
    first: int
    last: int
    inside: frozenset[str]
    lifted: tuple[Buffer, ...]


class _Search:
    """The search for the bounds of a window: it starts with what differs, and grows until the conditions hold."""

    def __init__(self, old: Text, new: Text, first: int, last: int) -> None:
        self.old, self.new, self.first, self.last = old, new, first, last

    def window_of(self, rewrite: Rewrite) -> Window | None:
        """The window of a rewrite, once it has all that it needs."""
        kept = self._differently_kept(rewrite.witness)
        if kept is None or not self._frames_agree():
            return None
        inside = self._inside(kept)
        if inside is None:
            return None
        parts = self._parts(inside)
        if parts is None:
            return None
        witness = self._witness(rewrite.witness)
        if witness is None:
            return None
        shared = (*self.old.statements[: self.first], *self.old.statements[len(self.old.statements) - self.last :])
        return Window(Rewrite(parts[0].function, parts[1].function, witness), shared, self.new)

    def part_with(self, named: Iterable[str]) -> Part | None:
        """The part of one program that has all that touches the named memories."""
        inside = self._inside(set(named))
        parts = self._parts(inside) if inside is not None else None
        return parts[0] if parts is not None else None

    def _frames_agree(self) -> bool:
        """Whether nothing but temporaries and layouts differs around the statements."""
        roots = [[part for part in text.frame if isinstance(part, Block)] for text in (self.old, self.new)]
        if len(roots[0]) != len(roots[1]):
            return False
        return all(a.annotations == b.annotations and a.name == b.name for a, b in zip(*roots, strict=True))

    def _inside(self, kept: set[str]) -> frozenset[str] | None:
        """The memories that the window has whole, once its bounds include all that touches them: those that are
        `kept` differently, and those that differing statements touch.
        """
        touches = self.old.touches() if self.first + self.last >= FEWEST else None
        differing = self._touched_by_differing() if touches is not None else None
        if touches is None or differing is None:
            return None
        recorded = {name for text in (self.old, self.new) for name in layout_records(text.function)}
        parameters = self.old.parameters | self.new.parameters
        inside = kept | {data for data in differing if data not in parameters or data in recorded}
        self._grow(inside, touches, set(inside))
        return frozenset(inside) if self.first + self.last >= FEWEST else None

    def _differently_kept(self, witness: Witness) -> set[str] | None:
        """The memories that are declared or recorded differently, or of which the witness says something."""
        old, new = self.old, self.new
        found = {data for data, buffer in new.memories.items() if not _is_same(old.memories.get(data), buffer)}
        found |= old.memories.keys() - new.memories.keys()
        views = old.views.keys() | new.views.keys()
        found |= {data for data in views if old.views.get(data) != new.views.get(data)}
        names = {name for cells in witness.cells for name in (cells.old_data, cells.new_data)}
        records = layout_records(old.function), layout_records(new.function)
        names |= {name for name in {**records[0], **records[1]} if records[0].get(name) != records[1].get(name)}
        return found | names if names <= old.memories.keys() | new.memories.keys() else None

    def _touched_by_differing(self) -> set[str] | None:
        """The memories that statements touch which are not in both programs; None where one is not described, or
        touches what is not declared as it looks at it.
        """
        found = [_touches(self._between(text), text) for text in (self.old, self.new)]
        old, new = found
        return None if old is None or new is None else {*old.first, *new.first}

    def _grow(self, inside: set[str], touches: Touches, todo: set[str]) -> None:
        """Take in every shared statement that touches a memory which is inside, and what that asks for."""
        count = len(self.old.statements)
        recorded = layout_records(self.old.function)
        while todo:
            bounds = [(touches.first[data], touches.last[data]) for data in todo if data in touches.first]
            first = min([self.first, *(before for before, _ in bounds)])
            last = min([self.last, *(count - 1 - after for _, after in bounds)])
            taken = (*self.old.statements[first : self.first], *self.old.statements[count - self.last : count - last])
            self.first, self.last = first, last
            todo = {data for stmt in taken for data in self._asked_for(stmt, recorded)} - inside
            inside |= todo

    def _asked_for(self, stmt: Stmt, recorded: Mapping[str, LayoutRecord]) -> Iterator[str]:
        """The memories that have to be inside because of a shared statement that is."""
        touched = touched_by(stmt)
        assert touched is not None
        for name, _ in touched.memories:
            if name in self.old.parameters:
                if not touched.fixed and name in recorded:
                    yield name
            elif not (touched.fixed and self._can_be_lifted(name)):
                yield name

    def _can_be_lifted(self, data: str) -> bool:
        """Whether a temporary as a parameter assumes nothing more of symbols."""
        buffer = self.old.memories.get(data)
        if buffer is None or buffer.strides or buffer.elem_offset != IntImm(0) or buffer.scope != "global":
            return False
        if data in self.old.views:
            return False
        if all(isinstance(extent, IntImm) for extent in buffer.shape):
            extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
            return min(extents, default=1) > 0 and prod(extents) * buffer.dtype.lanes < _LARGEST
        return any(buffer.shape == other.shape for other in self.old.function.buffers)

    def _parts(self, inside: frozenset[str]) -> tuple[Part, Part] | None:
        """What is between the bounds in both programs, with what it touches besides as parameters."""
        between = [self._between(text) for text in (self.old, self.new)]
        if not all(between):
            return None
        seen = {name for stmts in between for stmt in stmts for name in _memories(stmt)}
        lifted = [data for data in self.old.memories if data in seen and data not in inside | self.old.parameters]
        if any(data not in self.new.memories for data in lifted):
            return None
        buffers = tuple(self.old.memories[data] for data in lifted)
        old, new = (
            Part(text.only(stmts, inside & text.memories.keys(), buffers), self.first, self.last, inside, buffers)
            for text, stmts in zip((self.old, self.new), between, strict=True)
        )
        return old, new

    def _between(self, text: Text) -> Sequence[Stmt]:
        return text.statements[self.first : len(text.statements) - self.last]

    def _witness(self, witness: Witness) -> Witness | None:
        """The witness, with stores counted from the start of the window; None where it leads out of it."""
        skipped = sum(map(_stores, self.old.statements[: self.first]))
        old, new = (sum(map(_stores, self._between(text))) for text in (self.old, self.new))
        maps: list[InstanceMap] = []
        for claim in [each for each in witness.instances if skipped <= each.new_store < skipped + new]:
            store = claim.new_store - skipped
            origin = None if claim.old_store is None else claim.old_store - skipped
            if origin is not None and not 0 <= origin < old:
                return None
            maps.append(replace(claim, new_store=store, old_store=origin))
        return replace(witness, instances=tuple(maps))


def _alike(old: Iterable[Stmt], new: Iterable[Stmt], most: int) -> int:
    """How many statements both begin with, at most `most`. Nearly all are one object: that is looked at first."""
    count = 0
    for a, b in islice(zip(old, new, strict=False), most):
        if a is not b and a != b:
            break
        count += 1
    return count


def _is_same(old: Buffer | None, new: Buffer | None) -> bool:
    return old is new or old == new


def _memories(stmt: Stmt) -> Iterator[str]:
    touched = touched_by(stmt)
    yield from (name for name, _ in touched.memories) if touched is not None else ()


def _stores(stmt: Stmt) -> int:
    touched = touched_by(stmt)
    return len(touched.stores) if touched is not None else 0
