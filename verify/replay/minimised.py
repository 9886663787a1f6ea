"""A counterexample made small and explained: smaller sizes and plainer numbers as long as the run fails in the same
way, then which store wrote the cell last, and from what. The order is fixed, so the result is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT64, HANDLE, INT64
from layoutproof.ir.expr import Cast, Expr, IfThenElseExpr, Logical, Not, Var, binary, const, equal, logical_and, widen
from layoutproof.ir.interp import Fault, slice_inputs
from layoutproof.ir.interp.analysis import find_memories
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, map_children
from layoutproof.verify.replay.counterexample import Counterexample, Failure, Number, Sample, Written
from layoutproof.verify.replay.placement import NotComparable, Positions
from layoutproof.verify.replay.trial import Pair, element_of, index_of, numbers_of

Telling = Mapping[str, Positions]

_PLAIN = (0, 1, -1)
_HUGE, _HALVINGS = 1 << 20, 6
_LONG = 8  # times as long as usual that a run may take
_SINGLE = 64  # elements up to which each is tried alone
_LARGE, _PIECES = 4_096, 32  # arrays of more elements are tried in few pieces


def minimised(pair: Pair, failure: Failure, runs: int, limit: int, telling: Telling | None = None) -> Failure:
    """A failure of the same kind on a smaller input, found with at most `runs` runs, of about `limit` iterations all
    together, fewer of programs that take long to watch; the failure itself where they take too long.

    `telling` names, by array, the scalars on which the failure may depend, where that is known: the others become plain
    together.
    """
    if pair.strictness.weight > _LONG:
        return failure
    search = _Search(pair, failure, runs, limit, pair.spent + limit // pair.strictness.weight)
    if telling is None:
        search.sizes()
    for name, array in failure.sample.arrays.items():
        if array.size > _HUGE:
            search.halves(name)
    search.padding()
    if telling is not None:
        search.others(telling)
    for name in failure.sample.arrays:
        search.values(name, np.arange(search.best.sample.arrays[name].size) if telling is None else telling[name])
    return search.best


@dataclass(slots=True)
class _Search:
    pair: Pair
    best: Failure
    runs: int
    limit: int
    most_spent: int

    def keep(self, sample: Sample) -> bool:
        """Try a sample; keep it if it fails in the same way."""
        if self.runs <= 0 or self.pair.spent >= self.most_spent:
            return False
        self.runs -= 1
        try:
            settled = self.pair.settle(sample, self.limit)
            outcome = self.pair.judge(settled, self.limit)
        except NotComparable:
            return False
        if not isinstance(outcome, Failure) or outcome.kind != self.best.kind:
            return False
        self.best = outcome
        return True

    def sizes(self) -> None:
        """Each number smaller, arrays cut to fit, as long as that helps."""
        again = True
        while again and self.runs > 0:
            again = False
            for name, value in self.best.sample.numbers.items():
                if (
                    isinstance(value, int)
                    and value > 1
                    and self.keep_numbers({**self.best.sample.numbers, name: value - 1})
                ):
                    again = True

    def keep_numbers(self, numbers: Mapping[str, Number]) -> bool:
        try:
            placement = self.pair.placement(numbers)
        except NotComparable:
            return False
        arrays = {}
        for place in placement.places:
            arrays[place.name] = _cut(self.best.sample.arrays[place.name], place.array_shape)
        return self.keep(Sample(numbers, arrays, self.best.sample.other_padding))

    def padding(self) -> None:
        """Padding as its contract has it, if that does."""
        sample = self.best.sample
        if sample.other_padding:
            self.keep(Sample(sample.numbers, sample.arrays, False))

    def others(self, telling: Telling) -> None:
        """Everything that does not matter plain."""
        for plain in _PLAIN[:2]:
            arrays = {}
            for name, array in self.best.sample.arrays.items():
                filled = np.full_like(array, plain)
                filled.reshape(-1)[telling[name]] = array.reshape(-1)[telling[name]]
                arrays[name] = filled
            if self.keep(Sample(self.best.sample.numbers, arrays, self.best.sample.other_padding)):
                return

    def halves(self, name: str) -> None:
        """An array zero but for a part: what it costs to find that is less than what it costs to write it down."""
        low, high = 0, self.best.sample.arrays[name].size
        self.most_spent += _HALVINGS * 8 * high
        for _ in range(_HALVINGS):
            middle = (low + high) // 2
            for start, end in ((low, middle), (middle, high)):
                array = self.best.sample.arrays[name].copy()
                array.reshape(-1)[start:end] = 0
                if self.keep(self.with_array(name, array)):
                    low, high = (middle, high) if start == low else (low, middle)
                    break
            else:
                return

    def values(self, name: str, positions: Positions) -> None:
        """One array, as far as it matters: all of it plain, then halves, quarters, ..., then single elements."""
        for piece in _parts(positions.size):
            if self.runs <= 0:
                return
            part = positions[piece]
            for plain in _PLAIN:
                present = self.best.sample.arrays[name].reshape(-1)[part]
                if _are(present, plain):
                    break
                if plain < 0 and (present.dtype.kind in "ub" or _are_signs(present)):
                    continue
                array = self.best.sample.arrays[name].copy()
                array.reshape(-1)[part] = plain
                if self.keep(self.with_array(name, array)):
                    break

    def with_array(self, name: str, array: Array) -> Sample:
        sample = self.best.sample
        return Sample(sample.numbers, {**sample.arrays, name: array}, sample.other_padding)


def _parts(size: int) -> Iterator[slice]:
    if size == 0:
        return
    length = size
    while length >= 1:
        if length == 1 and size > _SINGLE:
            return
        yield from (slice(start, start + length) for start in range(0, size, length))
        if size > _LARGE and length * _PIECES < size:
            return
        length = 0 if length == 1 else -(-length // 2)


def _are(values: Array, plain: int) -> bool:
    """Whether all are +0, or all are 1."""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64)
    return bool(np.all((numbers == plain) & ~np.signbit(numbers)))


def _are_signs(values: Array) -> bool:
    """Whether all are small already: -1, 0 or 1."""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64)
    return bool(np.all(np.isin(numbers, (-1.0, 0.0, 1.0)) & ~((numbers == 0) & np.signbit(numbers))))


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The front of an array, or an array with repeated elements where it is too small."""
    if array.ndim == len(shape) and all(have >= want for have, want in zip(array.shape, shape, strict=True)):
        return array[tuple(slice(0, extent) for extent in shape)].copy()
    if array.size == 0 or prod(shape) == 0:
        return np.zeros(shape, dtype=array.dtype)
    return np.resize(array.reshape(-1), prod(shape)).reshape(shape)


_LOADS = 8
_RANK = 8


def explain(pair: Pair, failure: Failure, limit: int) -> Counterexample:
    """The counterexample that a failure is, with the stores behind a difference where they can be found."""
    sample, difference = failure.sample, failure.difference
    name = pair.rewrite.old.name
    placement = pair.placement(sample.numbers)
    if difference is None:
        cells = pair.looked_at(placement)
        return Counterexample(
            name, sample.numbers, sample.arrays, sample.other_padding, fault=str(failure.fault), cells=cells
        )
    place = next(p for p in placement.places if p.name == difference.buffer)
    old = pair.old_arrays(placement, sample)
    variants = pair.new_arguments(placement, sample, old, limit)
    before = None
    if difference.old_index is not None:
        element = element_of(difference.old_index, place.old_shape)
        before = last_store(
            pair, pair.rewrite.old, {**numbers_of(pair.rewrite.old, sample.numbers), **old}, place.name, element, limit
        )
    element = element_of(difference.new_index, place.new_shape)
    arguments = {**numbers_of(pair.rewrite.new, sample.numbers), **variants[0][1]}
    after = last_store(pair, pair.rewrite.new, arguments, place.name, element, limit)
    return Counterexample(
        name,
        sample.numbers,
        sample.arrays,
        sample.other_padding,
        difference=difference,
        before=before,
        after=after,
        padding=_padding_read(pair, failure, old, variants[0][1]),
    )


def _padding_read(
    pair: Pair, failure: Failure, old: Mapping[str, Array], new: Mapping[str, Array]
) -> tuple[tuple[str, Number], ...]:
    """Cells of padding on which the differing element depends in the new program and not in the old one, with what
    they hold; none where a slice cannot tell.
    """
    difference, placement = failure.difference, pair.placement(failure.sample.numbers)
    buffers = (*pair.rewrite.old.buffers, *pair.rewrite.new.buffers)
    if difference is None or any(b.strides or b.dtype.lanes > 1 for b in buffers):
        return ()
    name, numbers = difference.buffer, failure.sample.numbers
    before: Mapping[str, Positions] = {}
    try:
        if difference.old_index is not None:
            given = {**numbers_of(pair.rewrite.old, numbers), **old}
            before = slice_inputs(pair.rewrite.old, given, {name: [difference.old_index]})
        given = {**numbers_of(pair.rewrite.new, numbers), **new}
        after = slice_inputs(pair.rewrite.new, given, {name: [difference.new_index]})
    except (Fault, LayoutproofError):
        return ()
    found: list[tuple[str, Number]] = []
    for place in placement.places:
        padding = np.ones(prod(place.new_shape), dtype=np.bool_)
        padding[place.new_places[place.logical_places]] = False
        if place.name in before:
            padding[place.new_places[before[place.name]]] = False
        held = new[place.name].reshape(-1)
        for element in after[place.name][padding[after[place.name]]].tolist():
            value = held[element]
            access = ", ".join(map(str, index_of(element, place.new_shape)))
            found.append((f"{place.name}[{access}]", float(value) if place.dtype.is_float else int(value)))
    return tuple(found)


def last_store(
    pair: Pair, func: PrimFunc, arguments: Mapping[str, Number | Array], parameter: str, element: int, limit: int
) -> Written | None:
    """The store that wrote an element of a parameter last; None where none did or it cannot be told (vectors,
    pointers).

    `element` counts the elements of the parameter's array row-major.
    """
    buffer = next(b for b in func.buffers if b.name == parameter)
    if buffer.strides or buffer.dtype.lanes > 1:
        return None
    notes = _Notes(buffer, element, dict(find_memories(func).root))
    body = notes.statement(func.body, ())
    handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in notes.buffers)
    noted = replace(
        func,
        params=(*func.params, *handles),
        buffer_map=(*func.buffer_map, *zip(handles, notes.buffers, strict=True)),
        body=body,
    )
    blank = {notes.which.name: np.zeros(1 + notes.most, np.int64), notes.taken.name: np.zeros(_LOADS, np.int64)}
    blank |= {notes.cells.name: np.zeros(_LOADS * _RANK, np.int64), notes.whole.name: np.zeros(_LOADS, np.int64)}
    floats = {notes.floats.name: np.zeros(_LOADS, np.float64)}
    try:
        after = pair.noted(noted, {**arguments, **blank, **floats}, [*blank, *floats], limit)
    except (Fault, LayoutproofError):
        return None
    return notes.read(after)


@dataclass(slots=True)
class _Notes:
    """The notes: `which` holds the number of the store (from 1) and its variables, the others one entry a load."""

    target: Buffer
    element: int
    roots: Mapping[str, str]
    most: int = 64
    stores: list[tuple[BufferStore, tuple[Var, ...], tuple[BufferLoad, ...]]] = field(default_factory=list)
    which: Buffer = field(init=False)
    taken: Buffer = field(init=False)
    cells: Buffer = field(init=False)
    whole: Buffer = field(init=False)
    floats: Buffer = field(init=False)

    def __post_init__(self) -> None:
        self.which, self.taken = make_buffer("which'", (1 + self.most,), INT64), make_buffer("taken'", (_LOADS,), INT64)
        self.cells = make_buffer("cells'", (_LOADS * _RANK,), INT64)
        self.whole = make_buffer("whole'", (_LOADS,), INT64)
        self.floats = make_buffer("floats'", (_LOADS,), FLOAT64)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return self.which, self.taken, self.cells, self.whole, self.floats

    def statement(self, stmt: Stmt, scope: tuple[Var, ...]) -> Stmt:
        if isinstance(stmt, BufferStore):
            return self.store(stmt, scope)
        if isinstance(stmt, Seq):
            return seq(*(self.statement(part, scope) for part in stmt.body))
        if isinstance(stmt, For | Let) and stmt.var.dtype.is_integer:
            scope = (*scope, stmt.var)
        elif isinstance(stmt, Block):
            scope = (*scope, *(v.var for v in stmt.iter_vars))

        def visit(node: Node) -> Node:
            return self.statement(node, scope) if isinstance(node, Stmt) else node

        return map_children(stmt, visit)

    def store(self, stmt: BufferStore, scope: tuple[Var, ...]) -> Stmt:
        """The store with its notes in front, if it may be the one."""
        buffer = stmt.buffer
        root = self.roots.get(buffer.data.name, buffer.data.name)
        same = root == self.target.data.name and buffer.dtype.bits == self.target.dtype.bits
        if not same or buffer.dtype.lanes > 1 or any(i.dtype.lanes > 1 for i in stmt.indices):
            return stmt
        loads = tuple(dict.fromkeys(_scalar_loads(stmt.value, ())))[:_LOADS]
        variables = scope[: self.most]
        self.stores.append((stmt, variables, tuple(load for load, _ in loads)))
        notes: list[Stmt] = [_note(self.which, 0, const(len(self.stores), INT64))]
        notes += [_note(self.which, 1 + k, Cast(INT64, v) if v.dtype != INT64 else v) for k, v in enumerate(variables)]
        for number, (load, path) in enumerate(loads):
            notes.append(_note(self.taken, number, const(0, INT64)))
            inner = self.load(number, load)
            notes.append(IfThenElse(logical_and(*path), inner) if path else inner)
        return seq(IfThenElse(equal(_flat(buffer, stmt.indices), const(self.element, INT64)), seq(*notes)), stmt)

    def load(self, number: int, load: BufferLoad) -> Stmt:
        notes = [_note(self.taken, number, const(1, INT64))]
        notes += [_note(self.cells, number * _RANK + k, widen(i, INT64)) for k, i in enumerate(load.indices[:_RANK])]
        if load.dtype.is_float:
            return seq(*notes, _note(self.floats, number, load if load.dtype == FLOAT64 else Cast(FLOAT64, load)))
        return seq(*notes, _note(self.whole, number, load if load.dtype == INT64 else Cast(INT64, load)))

    def read(self, arrays: Mapping[str, Array]) -> Written | None:
        """What was noted last."""
        which = arrays[self.which.name]
        if which[0] == 0:
            return None
        stmt, variables, loads = self.stores[int(which[0]) - 1]
        found: list[tuple[str, Number]] = []
        for number, load in enumerate(loads):
            if arrays[self.taken.name][number]:
                index = arrays[self.cells.name][number * _RANK :][: len(load.indices)]
                source = self.floats if load.dtype.is_float else self.whole
                found.append(
                    (f"{load.buffer.name}[{', '.join(map(str, index.tolist()))}]", arrays[source.name][number].item())
                )
        values = {v.name: int(which[1 + k]) for k, v in enumerate(variables)}
        return Written(stmt.span.line if stmt.span is not None else None, _text_of(stmt), values, tuple(found))


def _text_of(stmt: BufferStore) -> str:
    """The store as the source has it, else as it would be written."""
    if stmt.span is not None and stmt.span.line == stmt.span.end_line and stmt.span.text:
        return stmt.span.text
    target = f"{stmt.buffer.name}[{', '.join(expr_text(i, 'plain') for i in stmt.indices)}]"
    return f"{target} = {expr_text(stmt.value, 'plain')}"


def _note(buffer: Buffer, position: int, value: Expr) -> BufferStore:
    return BufferStore(buffer, (const(position),), value)


def _flat(buffer: Buffer, indices: Sequence[Expr]) -> Expr:
    """The element number of an access within its memory."""
    result: Expr = widen(buffer.elem_offset, INT64)
    for axis, index in enumerate(indices):
        step: Expr = const(1, INT64)
        if buffer.strides:
            step = widen(buffer.strides[axis], INT64)
        else:
            for extent in buffer.shape[axis + 1 :]:
                step = binary(BinaryOp.MUL, step, widen(extent, INT64))
        result = binary(BinaryOp.ADD, result, binary(BinaryOp.MUL, widen(index, INT64), step))
    return result


def _scalar_loads(expr: Expr, path: tuple[Expr, ...]) -> Iterator[tuple[BufferLoad, tuple[Expr, ...]]]:
    """The loads of a value, inner ones first, each with the conditions under which it happens."""
    match expr:
        case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
            yield from _scalar_loads(condition, path)
            yield from _scalar_loads(then, (*path, condition))
            yield from _scalar_loads(otherwise, (*path, Not(condition)))
        case Logical(op=op, lhs=lhs, rhs=rhs):
            yield from _scalar_loads(lhs, path)
            yield from _scalar_loads(rhs, (*path, lhs if op is LogicalOp.AND else Not(lhs)))
        case _:
            for child in children(expr):
                if isinstance(child, Expr):
                    yield from _scalar_loads(child, path)
            if isinstance(expr, BufferLoad) and expr.dtype.lanes == 1 and len(expr.indices) <= _RANK:
                yield expr, path
