"""One step under judgement: two programs, the witness, and the evidence. Everything that is proved passes through
`refuse`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from layoutproof.verify.kernel.encoding import (
    COMPARISONS,
    Cases,
    Context,
    Env,
    is_affine_condition,
    is_integer,
    loads_of,
)
from layoutproof.verify.kernel.integers import Case, Question, check_refutation
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Buffer, Cells, Expr, Program, Rewrite, has, integer_bounds, parts, walk
from layoutproof.verify.kernel.rejected import Rejected


@dataclass(frozen=True, slots=True)
class Map:
    """`lambda names: outputs where condition`."""

    names: tuple[str, ...]
    outputs: tuple[Expr, ...]
    where: Expr | None = None

    def inputs(self, values: Sequence[Poly], symbols: Env) -> Env:
        """The names with these values."""
        if len(values) != len(self.names):
            raise Rejected(f"a map takes {len(self.names)} indices, and {len(values)} are there")
        return {**symbols, **dict(zip(self.names, values, strict=True))}


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


Access = tuple[str, Sequence[Expr]]


@dataclass(frozen=True, slots=True)
class Copies:
    """What `copies` is given.

    `memories`: for temporaries of the new program whose cells they hold; None: of no old memory, whatever their name.
    `origins`: by program ("old" or "new") and store, for its loads by their places, where their values come from.
    `covers`: for a new store the one that stores to the cell after it.
    """

    memories: Mapping[str, Cells | None] = field(default_factory=dict)
    origins: Mapping[tuple[str, int], Mapping[int, Sequence[Source]]] = field(default_factory=dict)
    covers: Mapping[int, Source] = field(default_factory=dict)


@dataclass(slots=True)
class Step:
    """What the rules ask. `allowed` are the fast-math assumptions under which claims are accepted.

    `refutation` has the proof of a question, or raises Rejected where there is none.
    """

    rewrite: Rewrite
    refutation: Callable[[Question], object]
    inverses: Mapping[int, Sequence[Inverse]]
    sources: Mapping[tuple[int, int], Source]
    fills: Mapping[str, Source]
    backs: Mapping[str, Map]
    allowed: frozenset[str] = frozenset()
    copies: Copies = field(default_factory=Copies)
    assumed: tuple[Expr, ...] = ()
    sizes: tuple[tuple[Expr, ...], tuple[Expr, ...]] = ((), ())  # of the old program, and of the new one
    viewed: frozenset[str] = frozenset()
    _known: set[Question] = field(default_factory=set)

    def __post_init__(self) -> None:
        old = self.rewrite.old
        conditions = [*old.assumed, *([self.rewrite.where] if self.rewrite.where is not None else [])]
        # A caller's arrays have no negative extents.
        shapes = [extent for buffer in old.buffers.values() if buffer.is_parameter for extent in buffer.shape]
        conditions += [(">=", "bool", e, ("const", e[1], 0)) for e in shapes if e[0] != "const"]
        self.assumed = tuple(conditions)
        self.sizes = (
            _sizes(_evaluated_always(old), {("var", dtype, name) for name, dtype in old.symbols}),
            _sizes(_index_texts(self.new), {("var", dtype, name) for name, dtype in self.new.symbols}),
        )
        self.viewed = frozenset(data for p in (old, self.rewrite.new) for data in _viewed(p))
        for data, (_, _, outputs) in self.rewrite.cells.items():
            owner = self.owner(self.new, data)
            if owner is not None and len(owner.shape) != len(outputs):
                raise Rejected(f"the map of the cells of {data} has not as many outputs as there are axes")

    @property
    def old(self) -> Program:
        """The program before."""
        return self.rewrite.old

    @property
    def new(self) -> Program:
        """The program after."""
        return self.rewrite.new

    def context(self) -> Context:
        """What is known of the symbols, in every question: what the old program assumes, and that its index arithmetic
        of symbols alone fits its types: where it does not, the old program has a fault.
        """
        context = Context(self.old.symbols, self.assumed)
        _add_sizes(context, self.sizes[0])
        return context

    def inverse(self, number: int) -> Sequence[Inverse]:
        """The given inverse of theta at an old store."""
        if number not in self.inverses:
            raise Rejected(f"no inverse of theta is given for old store {number}")
        return self.inverses[number]

    def source(self, number: int, load: Expr) -> Source:
        """What is given about a load of a new store, by its place among the loads of the value; -1: the cell itself."""
        store = self.new.stores[number]
        loads = list(dict.fromkeys(loads_of(store.value)))
        key = number, loads.index(load) if load in loads else -1
        if key not in self.sources:
            raise Rejected(f"nothing is known of the load of {load[2]} in line {store.line}")
        return self.sources[key]

    def refuse(self, context: Context, cases: Cases) -> None:
        """None of the cases can hold where the context does. Raises Rejected where that is not proved."""
        for case in cases:
            if _is_plainly_false(case):
                continue
            question = context.question(case)
            if question not in self._known:
                check_refutation(question, self.refutation(question))
                self._known.add(question)

    def is_impossible(self, context: Context) -> bool:
        """Whether a proof is given that the context never holds."""
        try:
            self.refuse(context, (Case(),))
        except Rejected:
            return False
        return True

    def prove_fits(self, context: Context, e: Expr, env: Env) -> None:
        """No integer operation in an expression wraps, if the index arithmetic of the new program of symbols alone does
        not: that is a condition on calls. It is no fact of other questions, as it may be false of all symbols.
        """
        known = context.copy()
        _add_sizes(known, self.sizes[1])
        for part in walk(e):
            if is_integer(part[1]) and part[0] in ("+", "-", "*", "//", "truncdiv", "<<"):
                value = known.number(part, env)
                low, high = integer_bounds(part[1])
                self.refuse(known, (Case((Poly.const(low - 1) - value,)), Case((value - high - 1,))))

    # ---- memories

    def owner(self, program: Program, data: str) -> Buffer | None:
        """The parameter or allocation that a memory belongs to."""
        return program.buffers.get(data.removesuffix("_data"))

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
        owner = self.owner(program, buffer.data)
        if owner is None or owner.dtype != buffer.dtype or owner.strides or owner.offset[2:] != (0,):
            raise Rejected(f"{buffer.name} is a view of elements of another type, or of ones with strides")
        if len(index) != len(buffer.shape):
            raise Rejected(f"{buffer.name} has {len(buffer.shape)} axes")
        number = Poly.const(0)
        for axis, value in enumerate(index):
            if buffer.strides:
                number += value * context.number(buffer.strides[axis], context.symbols)
            else:
                number = number * context.number(buffer.shape[axis], context.symbols) + value
        return number + context.number(buffer.offset, context.symbols)

    def size(self, context: Context, buffer: Buffer) -> Poly:
        """The number of elements of a buffer without strides."""
        size = Poly.const(1)
        for extent in buffer.shape:
            size *= context.number(extent, context.symbols)
        return size

    def apart(
        self, context: Context, a: tuple[Access, Env], b: tuple[Access, Env], *, is_old: bool = False
    ) -> list[Poly]:
        """Numbers that are all 0 where two accesses of one memory, of the new program or the old, are of one cell."""
        program = self.old if is_old else self.new
        cells = [self.cell(context, program, *access) for access in (a, b)]
        if len({program.buffers[access[0][0]].data for access in (a, b)}) != 1 or len(cells[0]) != len(cells[1]):
            raise Rejected(f"{a[0][0]} and {b[0][0]} are of two memories")
        return [x - y for x, y in zip(*cells, strict=True)]

    def is_fresh(self, new: Buffer) -> bool:
        """Whether a temporary is allocated in loops, before or after: then no map says where its cells are, and the
        accesses do (`prove_paired`).
        """
        source = None if new.depth == 0 and not any(b.depth for b in self.old.buffers.values()) else self.source_of(new)
        return source is not None and not new.is_parameter and (new.depth > 0 or source[0].depth > 0)

    def cell_map(self, old: Buffer, new: Buffer) -> Map | None:
        """How f takes cells of one buffer to another; None: they keep their indices. Raises Rejected where it does
        not.
        """
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
            owner = self.owner(self.new, new.data)
            if cells is not None or owner is None or owner.is_parameter:
                raise Rejected(f"the cells of {new.name} are said otherwise")
            cells = self.copies.memories[new.data]
            if cells is None:
                return None
        data = new.data if cells is None else cells[0]
        moved = {entry[0] for entry in self.rewrite.cells.values()}
        if cells is not None and {data, new.data} & self.viewed:
            raise Rejected(f"the cells of {data} move, and it has views")
        old = self.owner(self.old, data)
        if old is None or (cells is None and data in moved):
            return None
        return old, None if cells is None else Map(cells[1], cells[2])

    def homes(self, old: Buffer) -> int:
        """How many memories of the new program hold the cells of an old one."""
        found = {b.data: self.source_of(b) for b in self.new.buffers.values()}
        return sum(source is not None and source[0].data == old.data for source in found.values())

    def is_beside(self, name: str) -> bool:
        """Whether a new memory holds cells of a parameter that the parameter itself holds, too."""
        owner = self.owner(self.new, self.new.buffers[name].data)
        source = None if owner is None or owner.is_parameter else self.source_of(owner)
        return source is not None and source[0].is_parameter

    def is_moved(self, new: int, old: int) -> bool:
        """Whether the loads of a pair of stores are paired by `copies`."""
        return ("new", new) in self.copies.origins or ("old", old) in self.copies.origins


def _viewed(program: Program) -> set[str]:
    """The memories that are used under another name than that of the parameter or allocation."""
    return {b.data for b in map(program.buffers.__getitem__, program.touched()) if b.data != f"{b.name}_data"}


def _is_plainly_false(case: Case) -> bool:
    return any(f.is_constant and f.constant < 0 for f in case.facts) or any(
        z.is_constant and z.constant != 0 for z in case.zeros
    )


def _add_sizes(context: Context, sizes: Sequence[Expr]) -> None:
    for size in sizes:
        low, high = integer_bounds(size[1])
        value = context.number(size, context.symbols)
        context.facts += [value - low, Poly.const(high) - value]


def _sizes(texts: Iterator[Expr], symbols: Set[Expr]) -> tuple[Expr, ...]:
    """The sums and products of symbols and numbers alone in index arithmetic: that of values may wrap."""
    found: dict[Expr, None] = {}
    for text in texts:
        for e in walk(text):
            if e[0] in ("+", "-", "*") and is_integer(e[1]):
                leaves = [part for part in walk(e) if part[0] in ("var", "load", "call", "undef")]
                if leaves and all(leaf in symbols for leaf in leaves):
                    found[e] = None
    return tuple(found)


def _evaluated_always(program: Program) -> Iterator[Expr]:
    """The index arithmetic of a program that is evaluated in each call, or states what a caller gives."""
    for buffer in program.buffers.values():
        if buffer.is_parameter:
            yield from buffer.shape
    for s in program.statements:
        if s.loops and not any(has(e, "if") for loop in s.loops[:1] for e in (loop.start, loop.extent)):
            yield from (s.loops[0].start, s.loops[0].extent) if not s.guards else ()


def _index_texts(program: Program) -> Iterator[Expr]:
    """The index arithmetic of a program: shapes, bounds of loops, indices, and what conditions compare."""
    for buffer in program.buffers.values():
        yield from (*buffer.shape, *buffer.strides, buffer.offset)
    for s in program.statements:
        yield from (*s.indices, *(e for loop in s.loops for e in (loop.start, loop.extent)))
        for text in (*s.guards, s.value, s.condition):
            for part in walk(text):
                if part[0] == "load" or (part[0] in COMPARISONS and is_affine_condition(part)):
                    yield from parts(part)
