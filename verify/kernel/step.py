"""One step under judgement: two programs, the witness, and the evidence. Everything that is proved passes through
`refute`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.encoding import Context, Env, out_of_type
from layoutproof.verify.kernel.integers import Question, check_refutation
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Access, Buffer, Cells, Expr, Map, Program, Rewrite, loads_of, walk
from layoutproof.verify.kernel.rejected import Rejected


@dataclass(frozen=True, slots=True)
class Inverse:
    """Which part computes the instances of an old store that satisfy the map's condition, and where."""

    part: int
    map: Map


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of a load of a store: by an assumption, by its place among the statements, or by a store, by its
    number, and at which instance.
    """

    kind: str  # "assume" or "store"
    index: int
    map: Map


@dataclass(frozen=True, slots=True)
class Copies:
    """What `copies` is given; see `evidence`. Of `memories` None are of no old memory, whatever their name."""

    memories: Mapping[str, Cells | None] = field(default_factory=dict)
    origins: Mapping[tuple[str, int], Mapping[int, Sequence[Source]]] = field(default_factory=dict)
    covers: Mapping[int, Source] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is given with a step; none of it is believed. See `evidence`. `refutation` has the proof that a question has
    no solution, or raises Rejected.
    """

    refutation: Callable[[Question], object]
    inverses: Mapping[int, Sequence[Inverse]]
    sources: Mapping[tuple[int, int], Source]
    fills: Mapping[str, Source]
    backs: Mapping[str, Map]
    copies: Copies = field(default_factory=Copies)


_MOST_PAIRINGS = 200_000
APART = "layoutproof.apart"  # the attribute by which a step states of calls that no parameters overlap


class Step:
    """What the rules ask. `allowed` are the fast-math assumptions under which claims are accepted."""

    def __init__(self, rewrite: Rewrite, given: Evidence, allowed: frozenset[str]) -> None:
        self.rewrite, self.given, self.allowed, self.copies = rewrite, given, allowed, given.copies
        self.old, self.new = rewrite.old, rewrite.new
        self._known, self._left = set[Question](), _MOST_PAIRINGS
        self.paired: dict[tuple[Access, Access], bool] = {}  # those of temporaries of loops that were taken for one
        # A caller's arrays have no negative extents.
        shapes = [extent for buffer in self.old.buffers.values() if buffer.is_parameter for extent in buffer.shape]
        positive = [(">=", "bool", e, ("const", e[1], 0)) for e in shapes if e[0] != "const"]
        self.assumed = (*self.old.assumed, *([rewrite.where] if rewrite.where != core.TRUE else []), *positive)
        self.sizes = tuple(
            _sizes(texts, {("var", dtype, name) for name, dtype in program.symbols})
            for program, texts in ((self.old, _evaluated_always(self.old)), (self.new, _index_texts(self.new)))
        )
        # The memories that are used under another name than that of the parameter or allocation.
        names = [(p.buffers[name], name) for p in (self.old, self.new) for name in p.touched()]
        self.viewed = frozenset(buffer.data for buffer, name in names if buffer.data != f"{name}_data")
        # Whether a write to a parameter may change another one: then all accesses of both keep their order.
        is_apart = self.old.noalias or self.new.attributes.get(APART) in (True, 1)
        self.overlaps = not is_apart and (self.old.may_overlap() or self.new.may_overlap())
        for data, (_, f) in rewrite.cells.items():
            owner = self.new.owner(data)
            if owner is not None and len(owner.shape) != len(f.outputs):
                raise Rejected(f"the map of the cells of {data} has not as many outputs as there are axes")

    def context(self) -> Context:
        """What is known of the symbols, in every question: what the old program assumes, and that its index arithmetic
        of symbols alone fits its types: where it does not, the old program has a fault.
        """
        context = Context(self.old.symbols, self.assumed, self.refute)
        _add_sizes(context, self.sizes[0])
        return context

    def refute(self, question: Question) -> None:
        """Returns only if the evidence has a proof that nothing satisfies a question."""
        if question not in self._known:
            check_refutation(question, self.given.refutation(question))
            self._known.add(question)

    def spend(self, count: int) -> None:
        """Count work of which a text could ask for too much."""
        self._left -= count
        if self._left < 0:
            raise Rejected("the operands of values can be paired in too many ways")

    def prove_fits(self, context: Context, e: Expr, env: Env, is_old: bool = False) -> None:
        """No integer operation in an expression wraps, if the index arithmetic of the new program of symbols alone does
        not: that is a condition on calls. It is no fact of other questions, as it may be false of all symbols, and none
        of the values of the old program, which may wrap where the new one would have a fault.
        """
        known = context.copy()
        _add_sizes(known, () if is_old else self.sizes[1])
        for part in walk(e):
            if core.is_index(part[1]) and part[0] in ("+", "-", "*", "//", "truncdiv", "<<"):
                known.refuse(out_of_type(known.number(part, env), part[1]))

    def source(self, number: int, load: Expr) -> Source:
        """What is given about a load of a new store, by its place among the loads of the value; -1: the cell itself."""
        store = self.new.stores[number]
        loads = list(dict.fromkeys(loads_of(store.value)))
        key = number, loads.index(load) if load in loads else -1
        if key not in self.given.sources:
            raise Rejected(f"nothing is known of the load of {load[2]} in line {store.line}")
        return self.given.sources[key]

    # ---- memories

    def cell(self, context: Context, program: Program, access: Access, env: Env) -> list[Poly]:
        """What tells the cell of an access from every other cell of its memory.

        A memory that is allocated in loops is another one, and undefined, in each of their iterations: its cells are
        those of a memory with the loops' variables as further axes, allocated once. Where several buffers name a
        memory, a cell is the number of an element, which they count from the same place.
        """
        buffer = program.buffers[access[0]]
        index = [context.number(e, env) for e in access[1]]
        if buffer.data in self.viewed:
            index = [self.element(context, program, buffer, index)]
        return [*(env[loop.var] for loop in buffer.loops), *index]

    def element(self, context: Context, program: Program, buffer: Buffer, index: Sequence[Poly]) -> Poly:
        """The number of an element in its memory: row-major, or by strides. Raises Rejected where types differ."""
        owner = program.owner(buffer.data)
        if owner is None or owner.dtype != buffer.dtype or owner.strides or owner.offset[2:] != (0,):
            raise Rejected(f"{buffer.name} is a view of elements of another type, or of ones with strides")
        if len(index) != len(buffer.shape):
            raise Rejected(f"{buffer.name} has {len(buffer.shape)} axes")
        number = Poly()
        for axis, value in enumerate(index):
            if buffer.strides:
                number += value * context.number(buffer.strides[axis], context.symbols)
            else:
                number = number * context.number(buffer.shape[axis], context.symbols) + value
        return number + context.number(buffer.offset, context.symbols)

    def meets(self, program: Program, first: str, second: str) -> bool:
        """Whether two buffers may share a memory."""
        one, other = program.data(first), program.data(second)
        return one == other or (self.overlaps and not any(map(program.is_temporary, (first, second))))

    def may_change(self, program: Program, name: str) -> bool:
        """Whether something is stored to the memory of a buffer."""
        return any(self.meets(program, store.buffer, name) for store in program.stores)

    def is_open(self, name: str) -> bool:
        """Whether a new memory has padding without a contract, which may not be touched."""
        return any(layout.contract is None for layout in self.new.record(self.new.data(name)).steps)

    def is_undefined(self, name: str) -> bool:
        """Whether the memory of a buffer of the new program may have a value that depends on an undefined one: one that
        is stored, or padding that may hold anything.
        """
        new, before = self.new, None
        loose = [s.condition for s in new.statements if s.kind == "assume" and core.has(s.condition, "undef")]
        found = {load[2] for load in loads_of(*loose)}
        while found != before:
            before = set(found)
            for s in new.stores:
                if core.has(s.value, "undef") or any(
                    self.meets(new, x[2], y) for x in loads_of(s.value) for y in before
                ):
                    found.add(s.buffer)
        return any(self.meets(new, name, each) for each in found)

    def apart(self, context: Context, program: Program, *accesses: tuple[Access, Env]) -> list[Poly]:
        """Numbers that are all 0 where two accesses of one memory of a program are of one cell."""
        names = [access[0] for access, _ in accesses]
        if self.meets(program, *names) and program.data(names[0]) != program.data(names[1]):
            return []  # parameters that overlap in any way
        a, b = (self.cell(context, program, *access) for access in accesses)
        if len({program.data(access[0]) for access, _ in accesses}) != 1 or len(a) != len(b):
            raise Rejected(f"{' and '.join(access[0] for access, _ in accesses)} are of two memories")
        return [x - y for x, y in zip(a, b, strict=True)]

    def is_fresh(self, new: Buffer) -> bool:
        """Whether a temporary is allocated in loops, before or after: then no map says where its cells are, and the
        accesses do (`prove_paired`).
        """
        source = self.source_of(new) if new.loops or any(b.loops for b in self.old.buffers.values()) else None
        return source is not None and not new.is_parameter and bool(new.loops or source[0].loops)

    def cell_map(self, old: Buffer, new: Buffer) -> Map | None:
        """How f takes cells of one buffer to another; None: they keep their indices. Raises Rejected if it does not."""
        source = self.source_of(new)
        if source is None or source[0].data != old.data:
            raise Rejected(f"{new.name} does not hold the cells of {old.name}")
        if old.dtype != new.dtype:
            raise Rejected(f"{old.name} has elements of type {old.dtype}, {new.name} of {new.dtype}")
        return source[1]

    def source_of(self, new: Buffer) -> tuple[Buffer, Map | None] | None:
        """The old memory whose cells f takes to a new one, with the map; None for a memory of the new program alone."""
        cells = self.rewrite.cells.get(new.data)
        if new.data in self.copies.memories:
            if cells is not None or not self.new.is_temporary(new.name):
                raise Rejected(f"the cells of {new.name} are said otherwise")
            cells = self.copies.memories[new.data]
            if cells is None:
                return None
        data, f = (new.data, None) if cells is None else cells
        if cells is not None and {data, new.data} & self.viewed:
            raise Rejected(f"the cells of {data} move, and it has views")
        old, moved = self.old.owner(data), {entry[0] for entry in self.rewrite.cells.values()}
        return None if old is None or (cells is None and data in moved) else (old, f)

    def homes(self, old: Buffer) -> int:
        """How many memories of the new program hold the cells of an old one."""
        found = {b.data: self.source_of(b) for b in self.new.buffers.values()}
        return sum(source is not None and source[0].data == old.data for source in found.values())

    def is_beside(self, name: str) -> bool:
        """Whether a new memory holds cells of a parameter that the parameter itself holds, too."""
        owner = self.new.owner(self.new.data(name))
        source = None if owner is None or owner.is_parameter else self.source_of(owner)
        return source is not None and source[0].is_parameter

    def origins(self, program: Program, number: int) -> Mapping[int, Sequence[Source]] | None:
        """Where the values of a store's loads come from; None where its loads are not followed."""
        return self.copies.origins.get(("old" if program is self.old else "new", number))

    def is_moved(self, new: int, old: int) -> bool:
        """Whether the loads of a pair of stores are paired by `copies`."""
        return self.origins(self.new, new) is not None or self.origins(self.old, old) is not None


def size_of(context: Context, buffer: Buffer) -> Poly:
    """The number of elements of a buffer without strides."""
    size = Poly.const(1)
    for extent in buffer.shape:
        size *= context.number(extent, context.symbols)
    return size


def _add_sizes(context: Context, sizes: Sequence[Expr]) -> None:
    for size in sizes:
        context.has_type(context.number(size, context.symbols), size[1])


def _sizes(texts: Iterator[Expr], symbols: Set[Expr]) -> tuple[Expr, ...]:
    """The sums and products of symbols and numbers alone in index arithmetic: that of values may wrap."""
    found: dict[Expr, None] = {}
    for e in (part for text in texts for part in walk(text) if part[0] in ("+", "-", "*") and core.is_index(part[1])):
        leaves = [part for part in walk(e) if part[0] in ("var", "load", "call", "undef")]
        if leaves and all(leaf in symbols for leaf in leaves):
            found[e] = None
    return tuple(found)


def _evaluated_always(program: Program) -> Iterator[Expr]:
    """The index arithmetic of a program that is evaluated in each call, or states what a caller gives."""
    shapes = (extent for buffer in program.buffers.values() if buffer.is_parameter for extent in buffer.shape)
    bounds = (e for s in program.statements if not s.guards for loop in s.loops[:1] for e in (loop.start, loop.extent))
    return (e for e in (*shapes, *bounds) if not core.has(e, "if"))


def _index_texts(program: Program) -> Iterator[Expr]:
    """The index arithmetic of a program: shapes, bounds of loops, indices, and what conditions compare."""
    for buffer in program.buffers.values():
        yield from (*buffer.shape, *buffer.strides, buffer.offset)
    for s in program.statements:
        yield from (*s.indices, *(e for loop in s.loops for e in (loop.start, loop.extent)))
        for part in (part for text in (*s.guards, s.value, s.condition) for part in walk(text)):
            if part[0] == "load" or (part[0] in core.COMPARISONS and core.is_affine_condition(part)):
                yield from core.parts(part)
