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
from itertools import takewhile
from math import prod

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.intrinsics import Assume, Call, Limit, Undef
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterVar,
    Let,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import fresh, walk

FEWEST = 32  # statements that both programs share, from which on leaving them out pays
_LARGEST = 2**31  # cells of a temporary that becomes a parameter, so that its size fits an index
_KNOWN: frozenset[type[Node]] = frozenset(
    {Seq, For, IfThenElse, Let, BufferStore, Allocate, DeclBuffer, Block, IterVar, Evaluate, Buffer, BufferLoad}
    | {BufferRegion, Range, Var, IntImm, FloatImm, Binary, Compare, Logical, Not, Select, IfThenElseExpr, Cast, Ramp}
    | {Broadcast, Call, Undef, Limit, Assume}
)
_LOOPS = frozenset((ForKind.SERIAL, ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.UNROLLED))


@dataclass(frozen=True, slots=True)
class Touched:
    """What a statement does to memories from outside of it.

    `views` are the buffers through which it looks at them, `written` those that it stores to. With `fixed`, data
    decides neither which accesses happen nor where they go. `stores` is how many stores stand in it, in the text.
    """

    views: tuple[Buffer, ...]
    written: frozenset[Var]
    fixed: bool
    stores: int


def touched_by(stmt: Stmt) -> Touched | None:
    """What a statement touches, computed once for each object; None for one with parts of other kinds."""
    if stmt._touched is None:
        object.__setattr__(stmt, "_touched", (_touched(stmt),))
    found: tuple[Touched | None] = stmt._touched  # type: ignore[assignment]  # a slot of every statement, filled here only
    return found[0]


def _touched(stmt: Stmt) -> Touched | None:
    views: dict[Buffer, None] = {}
    written, inner = set[Var](), set[Var]()
    fixed, stores = True, 0
    for node in walk(stmt):
        if type(node) not in _KNOWN or not _is_plain(node):
            return None
        if isinstance(node, Buffer):
            views.setdefault(node)
        elif isinstance(node, BufferStore):
            written.add(node.buffer.data)
            stores += 1
        inner.update(_allocated(node))
        fixed = fixed and not any(isinstance(part, BufferLoad) for told in _deciding(node) for part in walk(told))
    outer = tuple(view for view in views if view.data not in inner)
    return Touched(outer, frozenset(written - inner), fixed, stores)


def _is_plain(node: Node) -> bool:
    match node:
        case For(kind=kind):
            return kind in _LOOPS
        case Block(match_buffers=views):
            return not views
        case Let(var=var):
            return var.dtype != HANDLE
        case Evaluate(value=value):
            return isinstance(value, Assume)
        case _:
            return True


def _allocated(node: Node) -> Iterator[Var]:
    if isinstance(node, Allocate):
        yield node.buffer.data
    elif isinstance(node, Block):
        yield from (buffer.data for buffer in node.alloc_buffers)


def _deciding(node: Node) -> tuple[Node, ...]:
    """The expressions of a node that decide what of the rest is done, and where."""
    match node:
        case For(start=start, extent=extent):
            return start, extent
        case IfThenElse(condition=condition) | IfThenElseExpr(condition=condition):
            return (condition,)
        case Logical(lhs=lhs):
            return (lhs,)
        case Let(value=value):
            return (value,)  # which may stand in a condition
        case Block(where=where):
            return (where,)
        case IterVar(binding=binding):
            return (binding,)
        case BufferStore(indices=indices) | BufferLoad(indices=indices):
            return indices
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class _Text:
    """A function as what it declares, outermost first, and the statements that it runs one after the other."""

    function: PrimFunc
    frame: tuple[Allocate | DeclBuffer | Block, ...]
    statements: tuple[Stmt, ...]
    memories: Mapping[Var, Buffer]
    views: Mapping[Var, tuple[Buffer, ...]]

    @staticmethod
    def of(function: PrimFunc) -> _Text | None:
        """None where a memory is declared twice, or the frame has something else in it."""
        frame: list[Allocate | DeclBuffer | Block] = []
        body = function.body
        while isinstance(body, Allocate | DeclBuffer | Block):
            if isinstance(body, Block) and not _is_frame(body):
                return None
            frame.append(body)
            body = body.body
        memories = {buffer.data: buffer for buffer in function.buffers}
        views: dict[Var, tuple[Buffer, ...]] = {}
        count = len(function.buffers)
        for part in frame:
            if isinstance(part, DeclBuffer):
                views[part.buffer.data] = (*views.get(part.buffer.data, ()), part.buffer)
                continue
            own = part.alloc_buffers if isinstance(part, Block) else (part.buffer,)
            count += len(own)
            memories.update((buffer.data, buffer) for buffer in own)
        if len(memories) != count:
            return None
        return _Text(function, tuple(frame), body.body if isinstance(body, Seq) else (body,), memories, views)

    @property
    def parameters(self) -> frozenset[Var]:
        return frozenset(buffer.data for buffer in self.function.buffers)

    def only(self, statements: Sequence[Stmt], kept: frozenset[Var], lifted: Sequence[Buffer]) -> PrimFunc:
        """The function with some of its statements; of its temporaries it has those in `kept`, and those that are
        `lifted` as further parameters.
        """
        body = seq(*statements)
        there = kept | self.parameters | {buffer.data for buffer in lifted}
        for part in reversed(self.frame):
            if isinstance(part, Block):
                own = tuple(buffer for buffer in part.alloc_buffers if buffer.data in kept)
                body = replace(part, body=body, alloc_buffers=own)
            elif part.buffer.data in (kept if isinstance(part, Allocate) else there):
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

    def _records_of(self, kept: frozenset[Var]) -> Attributes:
        records = layout_records(self.function)
        if not records:
            return self.function.attrs
        names = {variable.name for variable in kept}
        left = {name: record for name, record in records.items() if name in names}
        attrs = self.function.attrs
        return attrs.with_value(LAYOUT, left) if left else attrs.without(LAYOUT)


def _is_frame(block: Block) -> bool:
    plain = block.is_root and block.init is None and block.where == TRUE and not block.match_buffers
    return plain and not (block.reads or block.writes)


@dataclass(frozen=True, slots=True)
class Window:
    """A rewrite of the statements in which the two programs differ, and `shared`: those that are left out."""

    rewrite: Rewrite
    shared: tuple[Stmt, ...]
    _whole: _Text

    def stores_outside(self) -> Iterator[PrimFunc]:
        """The statements outside that store to a parameter, each as a function."""
        parameters = self._whole.parameters
        for stmt in reversed(self.shared):
            touched = touched_by(stmt)
            if touched is not None and touched.written & parameters:
                yield self._whole.only((stmt,), frozenset(view.data for view in touched.views) - parameters, ())


def try_window(rewrite: Rewrite) -> Window | None:
    """The window of a rewrite; None where it would leave few statements out, or the programs are of other forms."""
    old, new = _Text.of(rewrite.old), _Text.of(rewrite.new)
    if old is None or new is None or min(len(old.statements), len(new.statements)) < FEWEST:
        return None
    found = _Search(rewrite, old, new)
    return found.window() if found.is_possible else None


class _Search:
    """The search for the bounds of a window: it starts with what differs, and grows until the conditions hold."""

    def __init__(self, rewrite: Rewrite, old: _Text, new: _Text) -> None:
        self.rewrite, self.old, self.new = rewrite, old, new
        pairs = zip(old.statements, new.statements, strict=False)
        self.first = sum(1 for _ in takewhile(_is_one, pairs))
        left = min(len(old.statements), len(new.statements)) - self.first
        ends = zip(reversed(old.statements), reversed(new.statements), strict=False)
        self.last = sum(1 for _, pair in takewhile(lambda p: p[0] < left and _is_one(p[1]), enumerate(ends)))
        self.is_possible = self.first + self.last >= FEWEST and self._frames_agree()

    def _frames_agree(self) -> bool:
        """Whether nothing but temporaries and layouts differs around the statements."""
        roots = [[part for part in text.frame if isinstance(part, Block)] for text in (self.old, self.new)]
        if len(roots[0]) != len(roots[1]):
            return False
        return all(a.annotations == b.annotations and a.name == b.name for a, b in zip(*roots, strict=True))

    def window(self) -> Window | None:
        """The window, once it has all that it needs."""
        inside = self._differently_kept()
        places = self._places()
        if places is None or inside is None:
            return None
        differing = self._touched_by_differing()
        if differing is None:
            return None
        recorded = {name for text in (self.old, self.new) for name in layout_records(text.function)}
        parameters = self.old.parameters | self.new.parameters
        inside |= {data for data in differing if data not in parameters or data.name in recorded}
        self._grow(inside, places, set(inside))
        if self.first + self.last < FEWEST:
            return None
        return self._cut(frozenset(inside))

    def _differently_kept(self) -> set[Var] | None:
        """The memories that are declared or recorded differently, or of which the witness says something."""
        old, new = self.old, self.new
        found = {
            data
            for data in {**old.memories, **new.memories}
            if old.memories.get(data) != new.memories.get(data) or old.views.get(data) != new.views.get(data)
        }
        names = {cells.old_data for cells in self.rewrite.witness.cells}
        names |= {cells.new_data for cells in self.rewrite.witness.cells}
        records = layout_records(old.function), layout_records(new.function)
        names |= {name for name in {**records[0], **records[1]} if records[0].get(name) != records[1].get(name)}
        if names - {data.name for data in (*old.memories, *new.memories)}:
            return None
        return found | {data for data in (*old.memories, *new.memories) if data.name in names}

    def _places(self) -> dict[Var, tuple[int, int]] | None:
        """For each memory how many of the first shared statements come before all that touch it, and of the last ones
        after all that do.
        """
        found: dict[Var, tuple[int, int]] = {}
        for position in range(self.first):
            touched = touched_by(self.old.statements[position])
            if touched is None or not self._are_declared(touched.views, self.old):
                return None
            for view in touched.views:
                if view.data not in found:
                    found[view.data] = position, self.last
        count = len(self.old.statements)
        for position in range(self.last):
            touched = touched_by(self.old.statements[count - 1 - position])
            if touched is None or not self._are_declared(touched.views, self.old):
                return None
            for view in touched.views:
                before, after = found.get(view.data, (self.first, self.last))
                if after == self.last:
                    found[view.data] = before, min(after, position)
        return found

    def _touched_by_differing(self) -> set[Var] | None:
        """The memories that statements touch which are not in both programs."""
        found: set[Var] = set()
        for text in (self.old, self.new):
            for stmt in text.statements[self.first : len(text.statements) - self.last]:
                touched = touched_by(stmt)
                if touched is None or not self._are_declared(touched.views, text):
                    return None
                found |= {view.data for view in touched.views}
        return found

    @staticmethod
    def _are_declared(views: Iterable[Buffer], text: _Text) -> bool:
        """Whether the function declares each memory, as elements of the type that it is looked at with."""
        return all(view.data in text.memories and text.memories[view.data].dtype == view.dtype for view in views)

    def _grow(self, inside: set[Var], places: Mapping[Var, tuple[int, int]], todo: set[Var]) -> None:
        """Take in every shared statement that touches a memory which is inside, and what that asks for."""
        while todo:
            bounds = [places[data] for data in todo if data in places]
            first = min([self.first, *(before for before, _ in bounds)])
            last = min([self.last, *(after for _, after in bounds)])
            count = len(self.old.statements)
            taken = (*self.old.statements[first : self.first], *self.old.statements[count - self.last : count - last])
            self.first, self.last = first, last
            todo = {data for stmt in taken for data in self._asked_for(stmt)} - inside
            inside |= todo

    def _asked_for(self, stmt: Stmt) -> Iterator[Var]:
        """The memories that have to be inside because of a shared statement that is."""
        touched = touched_by(stmt)
        assert touched is not None
        recorded = layout_records(self.old.function)
        for view in touched.views:
            if view.data in self.old.parameters:
                if not touched.fixed and view.data.name in recorded:
                    yield view.data
            elif not (touched.fixed and self._can_be_lifted(view.data)):
                yield view.data

    def _can_be_lifted(self, data: Var) -> bool:
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

    def _cut(self, inside: frozenset[Var]) -> Window | None:
        """The rewrite between the bounds, with what it touches besides as parameters."""
        bounds = [slice(self.first, len(text.statements) - self.last) for text in (self.old, self.new)]
        parts = [text.statements[bound] for text, bound in zip((self.old, self.new), bounds, strict=True)]
        if not parts[0] or not parts[1]:
            return None
        seen = [{v.data for stmt in part for v in _views(stmt)} for part in parts]
        lifted = [data for data in self.old.memories if data in seen[0] | seen[1] and data not in inside]
        lifted = [data for data in lifted if data not in self.old.parameters]
        if any(data not in self.new.memories for data in lifted):
            return None
        buffers = [self.old.memories[data] for data in lifted]
        functions = [
            text.only(part, inside & text.memories.keys(), buffers)
            for text, part in zip((self.old, self.new), parts, strict=True)
        ]
        witness = self._witness(*parts)
        if witness is None:
            return None
        count = len(self.old.statements)
        shared = (*self.old.statements[: self.first], *self.old.statements[count - self.last :])
        return Window(Rewrite(functions[0], functions[1], witness), shared, self.new)

    def _witness(self, old: Sequence[Stmt], new: Sequence[Stmt]) -> Witness | None:
        """The witness, with stores counted from the start of the window; None where it leads out of it."""
        skipped = sum(map(_stores, self.old.statements[: self.first]))
        counts = sum(map(_stores, old)), sum(map(_stores, new))
        maps: list[InstanceMap] = []
        for claim in self.rewrite.witness.instances:
            store = claim.new_store - skipped
            if not 0 <= store < counts[1]:
                continue
            origin = None if claim.old_store is None else claim.old_store - skipped
            if origin is not None and not 0 <= origin < counts[0]:
                return None
            maps.append(replace(claim, new_store=store, old_store=origin))
        return replace(self.rewrite.witness, instances=tuple(maps))


def _is_one(pair: tuple[Stmt, Stmt]) -> bool:
    return pair[0] is pair[1] or pair[0] == pair[1]


def _views(stmt: Stmt) -> tuple[Buffer, ...]:
    touched = touched_by(stmt)
    return touched.views if touched is not None else ()


def _stores(stmt: Stmt) -> int:
    touched = touched_by(stmt)
    return touched.stores if touched is not None else 0
