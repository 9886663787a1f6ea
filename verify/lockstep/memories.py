"""The memories of each program under the names they go by, whether parameters are assumed not to overlap, which memory
of the old program is which of the new one, and when two accesses touch the same cell of them. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion
from layoutproof.ir.dtype import HANDLE, INT8, DType
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Assume, OpaqueCall, PointerCast
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import APART, NOALIAS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, For, ForKind, Let, Seq, Stmt
from layoutproof.ir.visit import buffers_in, children, free_variables, nodes_of, stores_in
from layoutproof.verify.faults.bounds import element_number
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.lockstep.domains import Asking, Env, Mismatch, reads_nothing, say, shared_name
from layoutproof.verify.program.abstraction import Inexpressible, in_lane
from layoutproof.verify.program.instances import Dim, IterationDomain
from layoutproof.verify.program.questions import same
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Proved

UNSAID = "the new program assumes that parameters do not overlap, and does not say so as a step's own assumption"
ASKED = Claim(ClaimKind.ASSUMPTION, "precondition: parameters do not overlap", about=("apart",))


def _claims(function: PrimFunc) -> set[str]:
    return {key for key in NOALIAS if function.attrs.get(key) in (True, 1)}


def is_unsaid(rewrite: Rewrite) -> bool:
    """Whether the new program assumes it as if it had been assumed before."""
    return not _claims(rewrite.old) and bool(_claims(rewrite.new) - {APART})


def are_apart(rewrite: Rewrite) -> bool:
    """Whether it may be taken for granted, in both programs."""
    return bool(_claims(rewrite.old) | _claims(rewrite.new)) and not is_unsaid(rewrite)


def is_asked(rewrite: Rewrite) -> bool:
    """Whether this step is the one that takes it for granted, and there is something to ask."""
    return are_apart(rewrite) and not _claims(rewrite.old) and len(rewrite.old.buffers) > 1


@dataclass(frozen=True, slots=True)
class Touched:
    """The memories that evaluating or running something loads from and stores to, and the numbers of its stores.

    `writes` are `stored` and those of which something is assumed: that a cell is undefined counts as a store. `calls`:
    something is called whose body is not known; `assumes`: something is assumed.
    """

    reads: frozenset[Var] = frozenset()
    stored: frozenset[Var] = frozenset()
    writes: frozenset[Var] = frozenset()
    numbers: frozenset[int] = frozenset()
    calls: bool = False
    assumes: bool = False

    @property
    def all(self) -> frozenset[Var]:
        """Everything touched."""
        return self.reads | self.writes


@dataclass(slots=True)
class Side:
    """A program as the walk needs it.

    `roots` gives the memory behind a pointer's other names. `numbers` are the numbers of a store, by identity, in the
    order of `visit.stores_in`. `apart`: parameters do not overlap. `shows_bits`: some memory is seen as floats and as
    something else, or the bits of a float are taken: one NaN is not like another there.
    """

    facts: Facts
    apart: bool
    roots: Mapping[Var, Var]
    numbers: Mapping[int, frozenset[int]]
    parameters: frozenset[Var]
    shows_bits: bool
    _touched: dict[int, tuple[Node, Touched]] = field(default_factory=dict)

    @staticmethod
    def of(facts: Facts, *, apart: bool) -> Side:
        """Raises Mismatch for matched regions, thread axes, pointers of unknown origin, memory made twice."""
        func = facts.program.function
        _check_understood(func)
        numbers: dict[int, frozenset[int]] = {}
        for number, store in enumerate(stores_in(func.body)):
            numbers[id(store)] = numbers.get(id(store), frozenset()) | {number}
        parameters = frozenset(buffer.data for buffer in func.buffers)
        roots = _roots(func.body)
        # Parameters that may overlap are one memory here.
        one = dict.fromkeys(parameters, func.buffers[0].data) if func.buffers and not apart else {}
        return Side(facts, apart, roots, numbers, parameters, _shows_bits(func, {**one, **roots}))

    @property
    def func(self) -> PrimFunc:
        """The program itself."""
        return self.facts.program.function

    def root(self, buffer: Buffer) -> Var:
        """The memory of a buffer."""
        return self.roots.get(buffer.data, buffer.data)

    def touched(self, node: Node) -> Touched:
        """What is touched below a node."""
        found = self._touched.get(id(node))
        if found is None:
            # The node stays alive with its entry, so that its identity stays its own.
            found = self._touched[id(node)] = (node, self._touch(node))
        return found[1]

    def _touch(self, node: Node) -> Touched:
        found = Touched()
        match node:
            case BufferLoad(buffer=buffer):
                found = Touched(reads=frozenset((self.root(buffer),)))
            case BufferStore(buffer=buffer):
                memory = frozenset((self.root(buffer),))
                found = Touched(stored=memory, writes=memory, numbers=self.numbers.get(id(node), frozenset()))
            case Assume(condition=condition):
                looked = frozenset(self.root(n.buffer) for n in nodes_of(condition, BufferLoad))
                return Touched(reads=looked, writes=looked, calls=self.touched(condition).calls, assumes=True)
            case OpaqueCall():
                found = Touched(calls=True)
            case _:
                pass
        parts = [found]
        stack = list(children(node))
        while stack:
            child = stack.pop()
            if isinstance(child, _TRANSPARENT):
                # Gone through here, and not remembered: in long programs these stand in one another by thousands.
                stack += children(child)
            elif not isinstance(child, Buffer | Var | BufferRegion):
                parts.append(self.touched(child) if isinstance(child, Stmt) else self._touch(child))
        return _joined([part for part in parts if part != _NOTHING])

    def spread(self, memories: Iterable[Var]) -> frozenset[Var]:
        """The memories, and parameters that may overlap one of them."""
        found = frozenset(memories)
        return found if self.apart or not found & self.parameters else found | self.parameters

    def numbers_in(self, node: Node) -> frozenset[int]:
        """The numbers of the stores below a node."""
        return self.touched(node).numbers


_NOTHING = Touched()
_TRANSPARENT = (Seq, Allocate, DeclBuffer, AttrStmt)


def _joined(parts: Sequence[Touched]) -> Touched:
    """What all of them touch."""
    if len(parts) <= 1:
        return parts[0] if parts else _NOTHING
    none: frozenset[Var] = frozenset()
    return Touched(
        none.union(*(part.reads for part in parts)),
        none.union(*(part.stored for part in parts)),
        none.union(*(part.writes for part in parts)),
        frozenset[int]().union(*(part.numbers for part in parts)),
        any(part.calls for part in parts),
        any(part.assumes for part in parts),
    )


def _shows_bits(func: PrimFunc, roots: Mapping[Var, Var]) -> bool:
    types: dict[Var, set[DType]] = {}
    for each in (*func.buffers, *buffers_in(func.body)):
        root = roots.get(each.data, each.data)
        types.setdefault(roots.get(root, root), set()).add(each.dtype.element)
    views = any(len(seen) > 1 and any(each.is_float for each in seen) for seen in types.values())
    return views or any(sees_bits(node) for node in nodes_of(func.body, OpaqueCall))


def sees_bits(call: OpaqueCall) -> bool:
    """Whether a call gives the bits of a float, in which one NaN is not like another."""
    return call.function == "reinterpret" and any(argument.dtype.is_float for argument in call.arguments)


def _check_understood(func: PrimFunc) -> Proved:
    """That the walk knows what every statement does. Raises Mismatch."""
    born: set[Var] = set()
    for node in nodes_of(func.body, Block, For, Allocate):
        match node:
            case Block(match_buffers=matched, name=name) if matched:
                raise Mismatch(f"block {name} matches a region of another buffer, which the walk does not look into")
            case For(kind=ForKind.THREAD_BINDING, var=var):
                raise Mismatch(f"loop {var.name} is bound to threads, which the walk does not look into")
            case Allocate(buffer=buffer):
                _bear(born, buffer)
            case Block(alloc_buffers=buffers):
                for buffer in buffers:
                    _bear(born, buffer)
            case _:
                pass
    for buffer in func.buffers:
        _bear(born, buffer)
    return Proved()


def _bear(born: set[Var], buffer: Buffer) -> None:
    if buffer.data in born:
        raise Mismatch(f"memory {buffer.data.name} comes into being in two places")
    born.add(buffer.data)


def _roots(body: Stmt) -> dict[Var, Var]:
    found: dict[Var, Var] = {}
    for node in nodes_of(body, Let):
        if node.var.dtype == HANDLE:
            pointer: Expr = node.value
            while isinstance(pointer, PointerCast):
                pointer = pointer.pointer
            if not isinstance(pointer, Var):
                raise Mismatch(f"the pointer {node.var.name} is not a name for memory that has one")
            found[node.var] = found.get(pointer, pointer)
    return found


@dataclass(frozen=True, slots=True)
class Cells:
    """A place of an access over the shared names: its view and indices."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Relaid:
    """A memory whose cells moved: the buffers that it came into being with, and the map between their indices."""

    before: Buffer
    after: Buffer
    cells: IndexMap


def _check_apart(names: Mapping[Var, Var]) -> Proved:
    if len(set(names.values())) != len(names):
        raise Mismatch("two memories of the old program become one")
    return Proved()


@dataclass(slots=True)
class Memories:
    """The pairing. `relaid` is by the old memory. Temporaries that the new program never loads from make no difference,
    whatever they hold: `free` are those of the new program, `missed` those of the old one that became them or are gone.
    """

    old: Side
    new: Side
    asking: Asking
    names: dict[Var, Var]
    relaid: dict[Var, Relaid]
    free: frozenset[Var] = frozenset()
    missed: frozenset[Var] = frozenset()
    fresh: Iterator[int] = field(default_factory=count)
    _back: dict[Var, Var] = field(default_factory=dict)

    @staticmethod
    def of(rewrite: Rewrite, old: Side, new: Side, asking: Asking) -> Memories:
        """Raises Mismatch where a cell map names unknown memory, or where something keeps cells from moving."""
        names: dict[Var, Var] = {}
        relaid: dict[Var, Relaid] = {}
        for cells in rewrite.witness.cells:
            before, after = _born(old, cells.old_data), _born(new, cells.new_data)
            if before is None or after is None or before.data in names:
                raise Mismatch(f"the cells of {cells.old_data} have no place that can be told")
            names[before.data] = after.data
            relaid[before.data] = Relaid(before, after, cells.cells)
        for buffer in old.facts.program.buffers:
            names.setdefault(buffer.data, buffer.data)
        _check_apart(names)
        found = Memories(old, new, asking, names, relaid)
        found._back = {b: a for a, b in names.items()}
        found._check_moves()
        found._find_unread()
        return found

    def _check_moves(self) -> Proved:
        moves = [self._check_move(data, relaid) for data, relaid in self.relaid.items()]
        if len(self.old.func.buffers) != len(self.new.func.buffers):
            raise Mismatch("the parameters differ")
        for before, after in zip(self.old.func.buffers, self.new.func.buffers, strict=True):
            moved = before.data in self.relaid
            if not moved and _box(before) != _box(after):
                raise Mismatch(
                    f"the parameter {before.name} has another shape, and no cell map says where its cells went"
                )
        return Proved.all(moves)

    def _check_move(self, data: Var, relaid: Relaid) -> Proved:
        before, after = relaid.before, relaid.after
        if any(side.touched(side.func.body).calls for side in (self.old, self.new)):
            raise Mismatch(f"{before.name} is stored differently, and a call whose body is not known may see it")
        if data in self.old.parameters and len(self.old.parameters) > 1 and not self.new.apart:
            raise Mismatch(f"{before.name} is stored differently, and parameters may overlap")
        for buffer in (before, after):
            if buffer.strides or buffer.elem_offset != const(0, buffer.elem_offset.dtype):
                raise Mismatch(f"{buffer.name} has strides or an offset, and is stored differently")
        symbols = set(self.old.facts.program.symbols)
        if any(v not in symbols for e in (*before.shape, *after.shape) for v in free_variables(e)):
            raise Mismatch(f"{before.name} is stored differently, and its shape changes in the course of the program")
        if before.dtype != after.dtype or len(relaid.cells.inputs) != before.rank:
            raise Mismatch(f"the cell map of {before.name} does not fit it")
        is_parameter = data in self.old.parameters
        if is_parameter != (after.data in self.new.parameters) or (is_parameter and data != after.data):
            raise Mismatch(f"the cells of {before.name} became those of {after.name}")
        return Proved()

    def _find_unread(self) -> None:
        """Temporaries that the new program never loads from, and those of the old one that became them."""
        touched = self.new.touched(self.new.func.body)
        if touched.calls or self.old.touched(self.old.func.body).calls:
            return
        born = {b.data for b in self.new.facts.program.buffers}
        self.free = frozenset(born - self.new.parameters - touched.reads)
        there = born | touched.reads | touched.writes
        self.missed = frozenset(
            a for a, b in self.names.items() if a not in self.old.parameters and (b in self.free or b not in there)
        )

    def is_harmless(self, data: Var) -> bool:
        """Whether nothing that the old program has can be told from what a memory of the new one holds."""
        return data in self.free or (self.was(data) is None and data not in self.new.parameters)

    def became(self, data: Var) -> Var:
        """The new memory for an old one."""
        return self.names.get(data, data)

    def was(self, data: Var) -> Var | None:
        """The old memory for a new one; None for one that only the new program has."""
        return self._back.get(data)

    # Cells

    def is_same_cell(self, old: Cells, new: Cells, domain: IterationDomain, *, plainly: bool = False) -> bool:
        """Whether the new access touches the images of the old one's cells, lane by lane; `plainly`: as written."""
        data = self.old.root(old.buffer)
        if self.became(data) != self.new.root(new.buffer) or not same_element(old.buffer, new.buffer):
            return False
        if not all(
            reads_nothing(e) for c in (old, new) for e in (*c.buffer.shape, *c.buffer.strides, c.buffer.elem_offset)
        ):
            return False
        relaid = self.relaid.get(data)
        if relaid is None and _box(old.buffer)[1:] == _box(new.buffer)[1:]:
            if old.indices == new.indices:
                return True
        elif relaid is not None and _box(old.buffer) != _box(relaid.before):
            return False
        try:
            old, new, domain = self._in_one_lane(old, new, domain)
        except Inexpressible:
            return False
        if relaid is not None:
            old = Cells(relaid.after, relaid.cells.map_indices(old.indices))
        if plainly:
            return _box(old.buffer)[1:] == _box(new.buffer)[1:] and old.indices == new.indices
        return self._is_one_place(old, new, domain)

    def _is_one_place(self, a: Cells, b: Cells, domain: IterationDomain) -> bool:
        """Whether two accesses without lanes, of elements of one size, count to the same element of their memory."""
        if _box(a.buffer)[1:] == _box(b.buffer)[1:]:
            if all(self.asking.equal(domain, x, y) for x, y in zip(a.indices, b.indices, strict=True)):
                return True
        return self.asking.equal(domain, element_number(a.buffer, a.indices), element_number(b.buffer, b.indices))

    def is_one_cell(self, a: Cells, b: Cells, domain: IterationDomain) -> bool:
        """Whether two accesses of the old program touch one cell."""
        if self.old.root(a.buffer) != self.old.root(b.buffer) or a.buffer.dtype != b.buffer.dtype:
            return False
        plain = all(i.dtype.lanes == 1 for c in (a, b) for i in c.indices)
        return plain and self._is_one_place(a, b, domain)

    def _in_one_lane(self, old: Cells, new: Cells, domain: IterationDomain) -> tuple[Cells, Cells, IterationDomain]:
        """Both accesses in one lane, over all lanes. Raises Inexpressible, also for different numbers of lanes."""
        counts = {index.dtype.lanes for c in (old, new) for index in c.indices[-1:]}
        if len(counts) > 1:
            raise Inexpressible
        lanes = next(iter(counts), 1)
        if lanes == 1:
            return old, new, domain
        dtype = old.indices[-1].dtype.element
        lane = Var(shared_name("lane", domain, self.old.facts), dtype)
        inside = domain.inside(Dim(lane, const(0, dtype), const(lanes, dtype), ForKind.SERIAL, lane=True))

        def one(cells: Cells) -> Cells:
            return Cells(cells.buffer, (*cells.indices[:-1], in_lane(cells.indices[-1], lane)))

        return one(old), one(new), inside

    def outside_image(self, new: Cells, domain: IterationDomain) -> bool:
        """Whether the new access certainly touches no cell that a cell of the old program became."""
        data = self.was(self.new.root(new.buffer))
        relaid = self.relaid.get(data) if data is not None else None
        if relaid is None or new.buffer.dtype != relaid.after.dtype or any(i.dtype.lanes != 1 for i in new.indices):
            return False
        inside, cell = over_cells(relaid.before, domain, "cell'")
        image = Cells(relaid.after, relaid.cells.map_indices(cell))
        return self.asking.never(inside, *meeting(image, new))


def meeting(a: Cells, b: Cells) -> Sequence[Expr]:
    """That two accesses of one memory touch one cell, as conditions."""
    if _box(a.buffer)[1:] == _box(b.buffer)[1:]:
        return [same(x, y) for x, y in zip(a.indices, b.indices, strict=True)]
    return [same(element_number(a.buffer, a.indices), element_number(b.buffer, b.indices))]


def over_cells(buffer: Buffer, domain: IterationDomain, name: str) -> tuple[IterationDomain, tuple[Var, ...]]:
    """The iteration domain with one more coordinate for each axis of a buffer, over all its cells."""
    found: list[Var] = []
    for axis, extent in enumerate(buffer.shape):
        variable = Var(f"{name}{axis}", extent.dtype)
        domain = domain.inside(Dim(variable, const(0, extent.dtype), extent, ForKind.SERIAL))
        found.append(variable)
    return domain, tuple(found)


def same_element(old: Buffer, new: Buffer) -> bool:
    """Whether elements are of one type, or truth values that are stored as bytes now."""
    return old.dtype == new.dtype or (old.dtype.is_bool and new.dtype == INT8.with_lanes(old.dtype.lanes))


def _born(side: Side, name: str) -> Buffer | None:
    return next((buffer for buffer in side.facts.program.buffers if buffer.data.name == name), None)


def _box(buffer: Buffer) -> tuple[object, ...]:
    return (buffer.dtype, buffer.shape, buffer.strides, buffer.elem_offset)


def say_buffer(buffer: Buffer, env: Env) -> Buffer:
    """A buffer with its shape over the shared names."""
    if not env:
        return buffer
    shape, strides = tuple(say(e, env) for e in buffer.shape), tuple(say(e, env) for e in buffer.strides)
    offset = say(buffer.elem_offset, env)
    same = (shape, strides, offset) == (buffer.shape, buffer.strides, buffer.elem_offset)
    return buffer if same else replace(buffer, shape=shape, strides=strides, elem_offset=offset)
