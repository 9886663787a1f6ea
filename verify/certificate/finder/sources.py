"""Where values come from: the stores and assumptions that a load finds, at which instance, and what the kernel's
`copies` is given of values that take another way through memory. For the search only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.verify.certificate.finder.inverses import conjunction, names_of, replaced, solved, variables, within
from layoutproof.verify.kernel.programs import (
    TRUE,
    Buffer,
    Cells,
    Expr,
    Instances,
    Loop,
    Map,
    Program,
    Rewrite,
    Statement,
    is_affine_condition,
    loads_of,
    walk,
)
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.step import Copies, Source


def sources_of(text: str) -> dict[tuple[int, int], Source]:
    """What may be known of the loads of each new store: an assumption whose element it may be, or a store of a constant
    (an init, say) to its memory in the same nest.
    """
    program = read_rewrite(text).new
    found: dict[tuple[int, int], Source] = {}
    for store in program.stores:
        cell = ("load", store.value[1], store.buffer, store.indices)
        loads = list(dict.fromkeys(loads_of(store.value)))
        for k, load in [*enumerate(loads), *([] if cell in loads else [(-1, cell)])]:
            source = _assumption(program, store, load) or _writer(program, store, load)
            if source is not None:
                found[store.number, k] = source
    return found


def _assumption(program: Program, store: Statement, load: Expr) -> Source | None:
    """The assumption of whose element's index a load gives every loop."""
    for index, statement in enumerate(program.statements):
        if statement.kind == "assume":
            for said in loads_of(statement.condition):
                if said[2] == load[2]:
                    given = dict(zip(said[3], load[3], strict=True))
                    loops = variables(statement.loops)
                    if all(loop in given for loop in loops):
                        return Source("assume", index, Map(names_of(store), tuple(given[loop] for loop in loops)))
    return None


def _writer(program: Program, store: Statement, load: Expr) -> Source | None:
    """A store to the memory, of a constant if there is one: its loops have the values of those around the load, or
    start.
    """
    data = program.buffers[load[2]].data
    writers = [s for s in program.stores if s is not store and program.buffers[s.buffer].data == data]
    for writer in sorted(writers, key=lambda s: s.value[0] != "const"):
        outputs, _ = located(writer, load[3], store.loops, is_last=False)
        return Source("store", writer.number, Map(names_of(store), outputs))
    return None


def located(
    writer: Statement, target: Sequence[Expr], loops: Sequence[Loop], *, is_last: bool
) -> tuple[tuple[Expr, ...], Expr]:
    """The instance of a store that writes a cell, and where there is one, in the variables of other
    loops. Loops around both have one value. Of those that the cell does not depend on it is the last iteration or the
    first one, which shared loops have, too, of which the cell does not speak.
    """
    read = {part[2] for index in target for part in walk(index) if part[0] == "var"}
    around = {loop.var for loop in loops if is_last or loop.var in read}
    known = {loop.var: v for loop, v in zip(writer.loops, variables(writer.loops), strict=True) if loop.var in around}
    known |= {loop.var: loop.start for loop in writer.loops if loop.extent[0] == "const" and loop.extent[2] == 1}
    for index, value in zip(writer.indices, target, strict=False):
        if index[0] == "var" and index[2] in {loop.var for loop in writer.loops}:
            known.setdefault(index[2], value)
    rest = [loop for loop in writer.loops if loop.var not in known]
    known |= solved(rest, [replaced(index, known) for index in writer.indices], target)
    for loop in rest:
        end = ("-", loop.dtype, ("+", loop.dtype, loop.start, loop.extent), ("const", loop.dtype, 1))
        known.setdefault(loop.var, end if is_last else loop.start)
    conditions = within([loop for loop in writer.loops if loop.var not in around], known)
    conditions += [replaced(guard, known) for guard in writer.guards if is_affine_condition(guard)]
    for index, value in zip(writer.indices, target, strict=False):
        there = replaced(index, known)
        if there != value:
            conditions.append(("==", "bool", there, value))
    return tuple(known[loop.var] for loop in writer.loops), conjunction(conditions)


def pieces_of(program: Program, reader: Statement, load: Expr) -> Iterator[Source]:
    """The stores before a load in the text that may have written its cell, the last one first."""
    data = program.buffers[load[2]].data
    writers = [s for s in program.stores[: reader.number] if program.buffers[s.buffer].data == data]
    for number, writer in enumerate(reversed(writers)):
        outputs, where = located(writer, load[3], reader.loops, is_last=True)
        is_rest = number == len(writers) - 1 or where == TRUE
        yield Source("store", writer.number, Map(names_of(reader), outputs, TRUE if is_rest else where))
        if is_rest:
            return


def copies_of(rewrite: Rewrite) -> Copies:
    """The memories, origins and covers of a rewrite, as far as they are found."""
    return _Finder(rewrite).found()


class _Finder:
    def __init__(self, rewrite: Rewrite) -> None:
        self.old, self.new, self.rewrite = rewrite.old, rewrite.new, rewrite
        self.memories: dict[str, Cells | None] = {}
        self.origins: dict[tuple[str, int], dict[int, Sequence[Source]]] = {}
        self.covers: dict[int, Source] = {}

    def found(self) -> Copies:
        for buffer in self.new.buffers.values():
            self.find_memory(buffer)
        parts = [(s, self.old.stores[entry[0]]) for s in self.new.stores for entry in self.lines(s)]
        computed = {old.number for _, old in parts}
        lost = {self.old.buffers[s.buffer].data for s in self.old.stores if s.number not in computed}
        beside = {cells[0] for cells in self.memories.values() if cells is not None}
        sourceless = {b.data for b in self.new.buffers.values() if self.is_sourceless(b)}
        for new, old in parts:
            if self.new.buffers[new.buffer].data in self.memories:
                self.find_copy(new, old)
        for new, old in parts:
            if any(self.old.buffers[load[2]].data in beside for load in loads_of(old.value)) or (
                _choices(new.value) != _choices(old.value)
            ):
                self.origins.setdefault(("new", new.number), {})
            self.find_origins("new", new, sourceless)
            self.find_origins("old", old, lost)
        for store in self.new.stores:
            if store.number not in self.covers and not any(entry[1].where == TRUE for entry in self.lines(store)):
                self.find_later(store, {new.number for new, _ in parts})
        return Copies(self.memories, self.origins, self.covers)

    def lines(self, store: Statement) -> Sequence[Instances]:
        """What theta says of a store, none where its memory holds no cells of the old program."""
        data = self.new.buffers[store.buffer].data
        return () if self.memories.get(data, ()) is None else self.rewrite.theta.get(store.number, ())

    def is_sourceless(self, buffer: Buffer) -> bool:
        """Whether a memory holds no cells of the old program."""
        if buffer.data in self.memories:
            return self.memories[buffer.data] is None
        return buffer.data not in self.rewrite.cells and buffer.data not in {b.data for b in self.old.buffers.values()}

    def find_memory(self, new: Buffer) -> None:
        """Whose cells a temporary of the new program holds, if the text does not say it."""
        pairs = [
            (s, self.old.stores[entry[0]], entry)
            for s in self.new.stores
            if s.buffer == new.name
            for entry in self.rewrite.theta.get(s.number, ())
        ]
        if new.is_parameter or new.data in self.rewrite.cells or not pairs:
            return
        targets = {old.buffer for _, old, _ in pairs}
        same = [b for b in self.old.buffers.values() if b.data == new.data]
        if same and targets == {same[0].name} and len(same[0].shape) == len(new.shape):
            return
        store, old, entry = pairs[0]
        at = _image(entry, store, old)
        target = [replaced(index, at) for index in old.indices]
        names = tuple(f"c{axis}" for axis in range(len(target)))
        cell: list[Expr] = [("var", "int32", name) for name in names]
        given = dict(zip(reversed(target), reversed(cell), strict=True))
        # By their places, where each index is one of the old store; else where the loops are as the cell says.
        outputs = [given[e] for e in store.indices if e in given]
        if len(outputs) < len(store.indices) and _loops_in(target, store.loops) == _loops_in(
            store.indices, store.loops
        ):
            unit = {loop.var: loop.start for loop in store.loops if loop.extent[2:] == (1,)}
            inner = unit | solved([loop for loop in store.loops if loop.var not in unit], target, cell)
            outputs = [replaced(e, inner) for e in store.indices if _loops_in([e], store.loops) <= inner.keys()]
        if len(outputs) < len(store.indices) == len(names):
            outputs = [given.get(e, c) for e, c in zip(store.indices, cell, strict=True)]
        is_whole = len(targets) == 1 and not same and len(outputs) == len(store.indices)
        holds = self.old.buffers[old.buffer]
        self.memories[new.data] = (holds.data, Map(names, tuple(outputs))) if is_whole else None
        if (
            is_whole
            and not holds.is_parameter
            and not any(self.lines(s) for s in self.new.stores if s.buffer == old.buffer)
        ):
            # The cells of a temporary are in one place: where its name is, there is a copy.
            self.memories[holds.data] = None

    def find_origins(self, side: str, reader: Statement, memories: set[str]) -> None:
        """Origins of the loads of some memories in a store's value, and in the values of what they come from."""
        program = self.old if side == "old" else self.new
        if self.origins.get((side, reader.number)):
            return
        for k, load in enumerate(dict.fromkeys(loads_of(reader.value))):
            copies = [self.covers[k].index for k in self.covers if side == "new" and self.is_copied(k, load)]
            if program.buffers[load[2]].data in memories or any(k < reader.number for k in copies):
                pieces = tuple(pieces_of(program, reader, load))
                self.origins.setdefault((side, reader.number), {})[k] = pieces
                for piece in pieces:
                    self.find_origins(side, program.stores[piece.index], memories)

    def find_copy(self, new: Statement, old: Statement) -> None:
        """The extra store that copies what a part stores beside a parameter."""
        line = next(entry for entry in self.lines(new) if entry[0] == old.number)
        target = [replaced(index, _image(line, new, old)) for index in old.indices]
        for store in self.new.stores:
            if store.buffer == old.buffer and not self.lines(store) and store.value[0] == "load":
                outputs, _ = located(store, target, new.loops, is_last=True)
                self.covers[new.number] = Source("store", store.number, Map(names_of(new), outputs))

    def is_copied(self, number: int, load: Expr) -> bool:
        """Whether what a store stores is copied to the memory of a load."""
        copy = self.new.stores[self.covers[number].index]
        return bool(copy.buffer == load[2] != self.new.stores[number].buffer)

    def find_later(self, new: Statement, computed: set[int]) -> None:
        """A store of a part that comes later in the text, to the same memory."""
        for store in self.new.stores[new.number + 1 :]:
            if store.buffer == new.buffer and store.number in computed:
                outputs, _ = located(store, new.indices, new.loops, is_last=True)
                self.covers[new.number] = Source("store", store.number, Map(names_of(new), outputs))
                return


def _loops_in(indices: Sequence[Expr], loops: Sequence[Loop]) -> set[str]:
    """The variables of loops that run more than once, in indices."""
    several = {loop.var for loop in loops if loop.extent[2:] != (1,)}
    return {part[2] for e in indices for part in walk(e) if part[0] == "var"} & several


def _choices(e: Expr) -> int:
    return sum(part[0] == "if" for part in walk(e))


def _image(line: Instances, new: Statement, old: Statement) -> dict[str, Expr]:
    """The loops of an old store, in the variables of the new one."""
    inner = dict(zip(line[1].names, variables(new.loops), strict=False))
    return {loop.var: replaced(e, inner) for loop, e in zip(old.loops, line[1].outputs, strict=False)}
