"""Random small programs over a texture, and what happens at its texels when every instance is enumerated: an oracle
that knows nothing of how obligations are proved.

A program is one nest of loops around a few stores, each perhaps under a guard and perhaps reading the texture. Two
instances run at once when some parallel loop has them in different iterations and all loops around that one in the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from random import Random

KINDS = ("range", "T.parallel", "T.parallel", "T.vectorized")
LANES = (1, 1, 1, 2, 4, 4, 8)


# Layer, row and column, or row and column.
Place = tuple[int, ...]


def numbers(text: str, values: Mapping[str, int]) -> tuple[int, ...]:
    """The values of Python expressions with commas between them."""
    return tuple(int(value) for value in eval(f"({text},)", {}, dict(values)))


@dataclass(frozen=True)
class Touch:
    """An access of the texture: row (or layer and row) and column as Python text over the loops and symbols, and its
    lanes.
    """

    row: str
    column: str
    lanes: int = 1
    stride: int = 1

    @property
    def text(self) -> str:
        """The access in the script syntax."""
        column = self.column if self.lanes == 1 else f"T.ramp({self.column}, {self.stride}, {self.lanes})"
        return f"B[{self.row}, {column}]"

    def scalars(self, values: Mapping[str, int]) -> set[Place]:
        """The row, or layer and row, and the column of every scalar that is touched."""
        *outer, column = numbers(f"{self.row}, {self.column}", values)
        return {(*outer, column + self.stride * lane) for lane in range(self.lanes)}


@dataclass(frozen=True)
class Store:
    """One store, what it reads of the texture, and its guard; `on_data` says that data decides it besides."""

    write: Touch
    read: Touch | None
    guard: str | None
    on_data: bool


@dataclass(frozen=True)
class TexelProgram:
    """One nest: loops by name with kind and extent, and its stores in order. Extents of the texture are `rows` (or
    layers and rows) by `columns` scalars.
    """

    rows: str
    columns: str
    loops: tuple[tuple[str, str, str], ...]
    stores: tuple[Store, ...]
    symbols: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The program in the script syntax: float32 data A, and the texture B."""
        parts = (part.strip() for part in f"{self.rows}, {self.columns}".split(","))
        shape = f"({', '.join(f'{part!r}' if part in self.symbols else part for part in parts)})"
        lines = [f'def main(A: T.Buffer((8,), "float32"), B: T.Buffer({shape}, "float32", scope="global.texture")):']
        lines += [f"    {name} = T.int32()" for name in self.symbols]
        lines.append('    T.func_attr({"tirx.noalias": True})')
        depth = 1
        for name, kind, extent in self.loops:
            lines.append("    " * depth + f"for {name} in {kind}({extent}):")
            depth += 1
        for store in self.stores:
            lines += ["    " * depth + line for line in _lines(store)]
        return "@T.prim_func\n" + "\n".join(lines) + "\n"

    def line(self, number: int) -> int:
        """The line on which a store stands, from 1."""
        before = 2 + len(self.symbols) + 1 + len(self.loops)
        return before + sum(len(_lines(store)) for store in self.stores[: number + 1])

    def loop_line(self, name: str) -> int:
        """The line on which a loop stands, from 1."""
        return 4 + len(self.symbols) + [loop for loop, _, _ in self.loops].index(name)

    def channels(self) -> int:
        """4 where the last extent is a multiple of 4 for all symbols."""
        tried = (dict.fromkeys(self.symbols, size) for size in (1, 2, 3, 5))
        return 4 if all(eval(self.columns, {}, values) % 4 == 0 for values in tried) else 1

    def instances(self, symbols: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The values of loops and symbols, one dictionary an iteration of the innermost loop."""
        extents = [range(int(eval(extent, {}, dict(symbols)))) for _, _, extent in self.loops]
        for values in product(*extents):
            yield {**symbols, **{name: value for (name, _, _), value in zip(self.loops, values, strict=True)}}


def _lines(store: Store) -> list[str]:
    lanes = store.write.lanes
    constant = "T.float32(1.0)" if lanes == 1 else f"T.broadcast(T.float32(1.0), {lanes})"
    value = constant if store.read is None else f"{store.read.text} + {constant}"
    lines = [f"{store.write.text} = {value}"]
    for guard in (store.guard, "A[0] > T.float32(0.0)" if store.on_data else None):
        if guard is not None:
            lines = [f"if {guard}:", *("    " + line for line in lines)]
    return lines


@dataclass
class Events:
    """What goes wrong somewhere: by the number of the store, or the name of the loop. `certain` leaves out what data
    decides.
    """

    outside: set[tuple[int, str]] = field(default_factory=set)
    clobbered: set[int] = field(default_factory=set)
    raced: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Instance:
    number: int
    values: Mapping[str, int]
    written: frozenset[Place]
    read: frozenset[Place]


def events(program: TexelProgram, symbols: Mapping[str, int], *, certain: bool) -> Events:
    """What goes wrong at these sizes, or, when `certain`, goes wrong whatever data says."""
    box = numbers(f"{program.rows}, {program.columns}", symbols)
    found, happening = Events(), list[_Instance]()
    for values in program.instances(symbols):
        for number, store in enumerate(program.stores):
            if (store.on_data and certain) or (store.guard is not None and not eval(store.guard, {}, dict(values))):
                continue
            read = frozenset(store.read.scalars(values)) if store.read is not None else frozenset()
            happening.append(_Instance(number, values, frozenset(store.write.scalars(values)), read))
            for kind, touched in (("write", happening[-1].written), ("read", read)):
                if any(not 0 <= part < extent for place in touched for part, extent in zip(place, box, strict=True)):
                    found.outside.add((number, kind))
    _meetings(program, happening, found)
    return found


def _meetings(program: TexelProgram, happening: list[_Instance], found: Events) -> None:
    size = program.channels()
    for first, second in product(happening, repeat=2):
        loop = _apart(program, first.values, second.values)
        if loop is None:
            continue
        mine, theirs = _texels(first.written, size), _texels(second.written, size)
        for texel in mine & theirs:
            if sum((*outer, column // size) == texel for *outer, column in first.written) < size:
                found.clobbered.add(first.number)
        if mine & _texels(second.read, size):
            found.raced.add(loop)


def _apart(program: TexelProgram, first: Mapping[str, int], second: Mapping[str, int]) -> str | None:
    """The loop whose iterations the two are, where it is parallel: the outermost in which they differ."""
    differing = next(((name, kind) for name, kind, _ in program.loops if first[name] != second[name]), None)
    return differing[0] if differing is not None and differing[1] == "T.parallel" else None


def _texels(scalars: frozenset[Place], size: int) -> set[Place]:
    return {(*outer, column // size) for *outer, column in scalars}


def random_texel_program(seed: int, *, symbolic: bool = False) -> TexelProgram:
    """A program by its number; about half of them are right."""
    rng = Random(seed)
    symbols = ("n", "m") if symbolic else ()
    rows = "n" if symbolic else str(rng.randint(1, 4))
    layers = rng.choice(("", "", "2, "))
    columns = rng.choice(("4 * m", "4 * m", "m")) if symbolic else str(rng.choice((4, 8, 12, 6)))
    across = columns.removeprefix("4 * ") if symbolic else str(max(1, int(columns) // 4))
    extents = [rows, across, rng.choice(("4", "4", "2"))]
    kinds = [rng.choice(KINDS) for _ in extents]
    loops = tuple((name, kind, extent) for name, kind, extent in zip("ijk", kinds, extents, strict=True))
    # A vectorised loop is the innermost, and takes no vectors inside.
    loops = (*((name, kind.replace("T.vectorized", "range"), extent) for name, kind, extent in loops[:-1]), loops[-1])
    vectors = loops[-1][1] != "T.vectorized"
    stores = tuple(_store(rng, rows, vectors, bool(layers)) for _ in range(rng.choice((1, 1, 2))))
    return TexelProgram(layers + rows, columns, loops, stores, symbols)


def _store(rng: Random, rows: str, vectors: bool, layered: bool) -> Store:
    write = _touch(rng, rows, rng.choice(LANES) if vectors else 1, layered)
    read = _touch(rng, rows, write.lanes, layered) if rng.random() < 0.3 else None
    guard = rng.choice((None, None, None, "k == 0", "i > 0", "j * 4 + k < 6", "i + j < 3"))
    return Store(write, read, guard, rng.random() < 0.1)


def _touch(rng: Random, rows: str, lanes: int, layered: bool) -> Touch:
    layer = rng.choice(("0, ", "1, ", "(i + j) % 2, ", "k % 2, ")) if layered else ""
    row = layer + rng.choice(("i", "i", "i", "i", "j", f"{rows} - 1 - i", "0", "i // 2"))
    single = ("j * 4 + k", "j * 4 + k", "j * 4 + 3 - k", "j * 4", "k * 4 + j", "j + k", "j * 2 + k")
    whole = ("j * 4", "j * 4", "j * 4 + k", "k * 4", "j * 2", "j * 8", "4", "0")
    return Touch(
        row, rng.choice(single if lanes == 1 else whole), lanes, rng.choice((1, 1, 1, 1, 2)) if lanes > 1 else 1
    )
