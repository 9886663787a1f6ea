"""Where the parameters of the two programs of a rewrite have the same element, by logical meaning, as their layout
records state it, and what padding holds: the contract's text, evaluated by the reference interpreter cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import HANDLE, INT8, DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, compare, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp import run
from layoutproof.ir.interp.analysis import find_memories
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.interp.layout_cells import extents_for
from layoutproof.ir.layout_record import Cell, Contract, LayoutRecord, LayoutStep, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from layoutproof.ir.visit import free_variables, rewrite_bottom_up, substitute, walk

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Contracts:
    """Evaluates the contracts of a function's layout records for these symbols. Programs are kept."""

    symbols: Mapping[str, int]
    _programs: dict[tuple[str, Contract, DType, tuple[int, ...]], _Filler] = field(default_factory=dict)

    def fill(self, name: str, contract: Contract, dtype: DType, box: Array, padding: Mask) -> None:
        """Write the contract's value to the cells of `box` (elements in their shape, lanes last) where `padding` is
        true.

        `name` is the buffer's, as the contract's own loads call it. Raises LayoutproofError for what is no contract of
        it, Fault where the value has none.
        """
        if not padding.any():
            return
        program = self._program(name, contract, dtype, padding.shape)
        if program.is_constant:
            box[padding] = program.value(name, dtype)
            return
        values = run(program.func, {name: box, "mask'": padding.astype(np.int8), "value'": np.zeros_like(box)})[
            "value'"
        ]
        chosen = padding if dtype.lanes == 1 else np.broadcast_to(padding[..., np.newaxis], box.shape)
        box[chosen] = values[chosen]

    def constant(self, name: str, contract: Contract, dtype: DType, shape: tuple[int, ...]) -> Array | None:
        """The contract's value, a row of lanes, if it is the same in all cells of the box. Raises as `fill`."""
        program = self._program(name, contract, dtype, shape)
        return program.value(name, dtype) if program.is_constant else None

    def _program(self, name: str, contract: Contract, dtype: DType, shape: tuple[int, ...]) -> _Filler:
        key = (name, contract, dtype, shape)
        if key not in self._programs:
            self._programs[key] = _program(name, contract, dtype, shape, self.symbols)
        return self._programs[key]


@dataclass(frozen=True, slots=True)
class _Filler:
    """`for p in grid(shape): if mask[p] != 0: value[p] = contract(p)`; of one cell for a constant contract."""

    func: PrimFunc
    is_constant: bool

    def value(self, name: str, dtype: DType) -> Array:
        """What one cell gets, a row of lanes."""
        box = (1,) * self.func.buffers[0].rank
        blank = np.zeros(box if dtype.lanes == 1 else (*box, dtype.lanes), dtype=numpy_dtype(dtype.element))
        mask = np.ones(box, dtype=np.int8)
        return run(self.func, {name: blank, "mask'": mask, "value'": blank})["value'"].reshape(-1)


def _program(
    name: str, contract: Contract, dtype: DType, shape: tuple[int, ...], symbols: Mapping[str, int]
) -> _Filler:
    box = make_buffer(name, shape, dtype)
    value = _on(contract.value, box)
    numbers = {
        v: const(symbols[v.name], v.dtype)
        for v in free_variables(value)
        if v not in contract.inputs and v.name in symbols
    }
    value = substitute(value, numbers)
    unknown = [v.name for v in free_variables(value) if v not in contract.inputs]
    cell = (
        contract.inputs if len(contract.inputs) == len(shape) else tuple(Var(f"p{axis}") for axis in range(len(shape)))
    )
    if unknown or value.dtype != dtype or not set(free_variables(value)) <= set(cell):
        raise error(
            codes.LAYOUT_RECORD,
            f"`{contract}` is no pad value of {name}, whose elements are {dtype} on {len(shape)} axes",
        )
    is_constant = not any(isinstance(node, Var | BufferLoad) for node in walk(value))
    if is_constant:
        shape = (1,) * len(shape)
        box = make_buffer(name, shape, dtype)
    mask, result = make_buffer("mask'", shape, INT8), make_buffer("value'", shape, dtype)
    body: Stmt = IfThenElse(
        compare(CompareOp.NE, BufferLoad(mask, cell), const(0, INT8)), BufferStore(result, cell, value)
    )
    for v, extent in zip(reversed(cell), reversed(shape), strict=True):
        body = For(v, const(0, v.dtype), const(extent, v.dtype), ForKind.SERIAL, body)
    buffers = (box, mask, result)
    handles = tuple(Var(f"{buffer.name}_handle", HANDLE) for buffer in buffers)
    return _Filler(PrimFunc("contract", handles, tuple(zip(handles, buffers, strict=True)), body), is_constant)


def _on(value: Expr, box: Buffer) -> Expr:
    """A contract's value with its loads from `box`. Raises LayoutproofError for a load from another buffer."""

    def visit(node: Node) -> Node:
        if not isinstance(node, Buffer):
            return node
        if node.name != box.name:
            raise error(codes.LAYOUT_RECORD, f"a contract of the padding of {box.name} loads {node.name}")
        return box

    return rewrite_bottom_up(value, visit)


def other_values(dtype: DType, held: Array) -> Array:
    """An array of ordinary values, each another one than `held` has there."""
    element = numpy_dtype(dtype.element)
    if dtype.is_bool:
        return np.logical_not(held)
    first, second = np.array(77, dtype=element), np.array(78, dtype=element)
    return np.where(held == first, second, first).astype(element)


Shape = tuple[int, ...]
Positions = NDArray[np.int64]
Kinds = NDArray[np.uint8]


class NotComparable(Exception):
    """The two programs cannot be run side by side; the text says why."""


@dataclass(frozen=True, slots=True)
class Move:
    """One re-laying in numbers: the row-major place in a box of shape `after` of every element of one of shape
    `before`.

    `contract` is what the padding holds (as in a layout record), and `padding` what kind of cell it is. `shared`: some
    elements have one place, as they have in a rewrite that is wrong about its layout.
    """

    before: Shape
    after: Shape
    positions: Positions
    contract: Contract | None
    padding: Cell
    shared: bool

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which cells of the box are padding of this re-laying, in the box's shape."""
        result = np.ones(prod(self.after), dtype=np.bool_)
        result[self.positions] = False
        return result.reshape(self.after)


@dataclass(frozen=True, slots=True)
class Place:
    """One parameter with numbers for its symbols: `first` lead from the logical shape to the old program's box, `then`
    from there to the new one's. `old_shape` and `new_shape` are those of the arrays, without lanes.

    `recorded` is false where only the witness says how the parameter is stored: its padding then has no known
    contract.
    """

    name: str
    dtype: DType
    logical_shape: Shape
    first: tuple[Move, ...]
    then: tuple[Move, ...]
    old_shape: Shape
    new_shape: Shape
    recorded: bool
    written: bool

    @property
    def array_shape(self) -> Shape:
        """Of the logical array, lanes last."""
        return self.logical_shape if self.dtype.lanes == 1 else (*self.logical_shape, self.dtype.lanes)

    def elements(self, array: Array) -> Array:
        """The elements of an array, one row of lanes each."""
        return array.reshape(-1, self.dtype.lanes)

    def array(self, elements: Array, shape: Shape) -> Array:
        """Elements as an array of a shape, lanes last."""
        return elements.reshape(shape if self.dtype.lanes == 1 else (*shape, self.dtype.lanes))

    @property
    def observed(self) -> NDArray[np.bool_]:
        """The observable elements of the old box: the logical ones, and padding whose contract is a value."""
        kinds = np.full(prod(self.logical_shape), Cell.LOGICAL, dtype=np.uint8)
        for move in self.first:
            moved = np.full(prod(move.after), move.padding, dtype=np.uint8)
            moved[move.positions] = kinds
            kinds = moved
        return np.asarray((kinds == Cell.LOGICAL) | (kinds == Cell.PAD_VALUE))

    @property
    def new_places(self) -> Positions:
        """The place in the new array of every element of the old one."""
        return _through(self.then, prod(self.old_shape))

    @property
    def logical_places(self) -> Positions:
        """The place in the old array of every logical element."""
        return _through(self.first, prod(self.logical_shape))

    @property
    def shared(self) -> bool:
        """Whether the rewrite puts some elements in one place."""
        return any(move.shared for move in self.then)

    def new_padding(self) -> NDArray[np.bool_]:
        """Which elements of the new array the rewrite added."""
        result = np.ones(prod(self.new_shape), dtype=np.bool_)
        result[self.new_places] = False
        return result

    def padding_postcondition(self) -> NDArray[np.bool_]:
        """Which elements of the new array are padding that the rewrite added, with a value for a contract."""
        result = np.zeros(prod(self.new_shape), dtype=np.bool_)
        for number, move in enumerate(self.then):
            if move.padding is Cell.PAD_VALUE:
                result[_through(self.then[number + 1 :], prod(move.after))[move.mask.reshape(-1)]] = True
        return result

    def free_padding(self) -> NDArray[np.bool_]:
        """The new elements that callers may fill: unwritten padding without a contract value."""
        return self.new_padding() if self.written else self.new_padding() & ~self.padding_postcondition()


def _through(moves: tuple[Move, ...], count: int) -> Positions:
    places = np.arange(count, dtype=np.int64)
    for move in moves:
        places = move.positions[places]
    return places


@dataclass(frozen=True, slots=True)
class Placement:
    """All parameters that are arrays, and the evaluation of contracts, for one choice of symbols."""

    places: tuple[Place, ...]
    symbols: Mapping[str, int]
    contracts: Contracts

    def lay(self, place: Place, array: Array, moves: tuple[Move, ...], other: bool) -> Array:
        """An array in the new layout, its padding filled as the contracts say, or with other values where `other`.

        Padding that a run marks itself (`undef`, no contract) holds zeros.
        """
        box = place.elements(array)
        for move in moves:
            moved = np.zeros((prod(move.after), place.dtype.lanes), dtype=box.dtype)
            moved[move.positions] = box
            if move.padding is Cell.PAD_VALUE and move.contract is not None:
                shaped = place.array(moved, move.after)
                self.contracts.fill(place.name, move.contract, place.dtype, shaped, move.mask)
                if other:
                    mask = move.mask.reshape(-1)
                    moved[mask] = other_values(place.dtype, moved[mask])
            box = moved
        return box

    def to_old(self, place: Place, logical: Array, other: bool) -> Array:
        """The old program's array for a logical one; `other` where the caller may have left anything in the padding."""
        return place.array(self.lay(place, logical, place.first, other and place.written), place.old_shape)

    def to_new(self, place: Place, old: Array, other: bool) -> Array:
        """The new program's array for the old one's."""
        return place.array(self.lay(place, old, place.then, other and place.written), place.new_shape)

    def to_logical(self, place: Place, old: Array) -> Array:
        """The logical array in the old program's."""
        return place.array(place.elements(old)[place.logical_places], place.logical_shape)

    def required(self, place: Place, new: Array) -> Iterator[tuple[Positions, Array, Contract]]:
        """For each contract of the rewrite's own that is a value: the places of its padding in the new array, what they
        should hold given the other elements of that array, and the contract.
        """
        for number, move in enumerate(place.then):
            if move.padding is not Cell.PAD_VALUE or move.contract is None:
                continue
            later = _through(place.then[number + 1 :], prod(move.after))
            box = place.elements(new)[later].copy()
            self.contracts.fill(place.name, move.contract, place.dtype, place.array(box, move.after), move.mask)
            mask = move.mask.reshape(-1)
            yield later[mask], box[mask], move.contract

    def postcondition_at(self, place: Place, cell: int) -> tuple[Array, Contract] | None:
        """The value of a cell of added padding (a row of lanes), and the contract; None if it is not constant."""
        for move in reversed(place.then):
            before = np.flatnonzero(move.positions == cell)
            if before.size:
                cell = int(before[0])
                continue
            if move.padding is not Cell.PAD_VALUE or move.contract is None:
                return None
            value = self.contracts.constant(place.name, move.contract, place.dtype, move.after)
            return None if value is None else (value, move.contract)
        return None


def place_parameters(rewrite: Rewrite, symbols: Mapping[str, int]) -> Placement:
    """The parameters of a rewrite's programs for numbers of their symbols.

    Raises NotComparable where the parameters are others, where records do not go on, or where an element would get no
    place.
    """
    old, new = rewrite.old, rewrite.new
    if [p.name for p in old.params] != [p.name for p in new.params] or len(old.buffers) != len(new.buffers):
        raise NotComparable("the two programs take different parameters")
    mapped = dict(old.buffer_map)
    if any(p.dtype.kind == "handle" and p not in mapped for p in old.params):
        raise NotComparable("a parameter is a bare pointer")
    records = layout_records(old), layout_records(new)
    written = find_memories(new).written
    places = []
    for before, after in zip(old.buffers, new.buffers, strict=True):
        if (before.name, before.dtype) != (after.name, after.dtype):
            raise NotComparable(f"{before.name} became {after.name} of another name or type")
        try:
            both = records[0].get(before.data.name), records[1].get(after.data.name)
            place = _place(rewrite, before, after, both, symbols)
        except (LayoutproofError, Trap, KeyError) as problem:
            raise NotComparable(f"the layout of {before.name} cannot be followed: {problem}") from problem
        places.append(replace(place, written=after.data.name in written))
    return Placement(tuple(places), symbols, Contracts(symbols))


def _place(
    rewrite: Rewrite,
    old: Buffer,
    new: Buffer,
    records: tuple[LayoutRecord | None, LayoutRecord | None],
    symbols: Mapping[str, int],
) -> Place:
    before, after = (tuple(int(evaluate(e, symbols)) for e in buffer.shape) for buffer in (old, new))
    if any(extent < 0 for extent in (*before, *after)):
        raise NotComparable(f"a shape of {old.name} is negative")
    kept, longer = records
    steps = kept.steps if kept is not None else ()
    logical = extents_for(kept.logical_shape, symbols) if kept is not None else before
    first = tuple(_moves(logical, steps, symbols))
    if any(move.shared for move in first):
        raise NotComparable(f"elements of {old.name} share a cell in the old program")
    box = first[-1].after if first else logical
    if prod(box) != prod(before):
        raise NotComparable(f"the record of {old.name} ends in another number of cells")
    then = _then(rewrite, old, new, records, box, symbols)
    end = then[-1].after if then else before
    if (then and prod(end) != prod(after)) or (not then and before != after):
        raise NotComparable(f"{new.name} has another shape than its layout says")
    return Place(old.name, old.dtype, logical, first, then, before, after, longer is not None or not then, False)


def _then(
    rewrite: Rewrite,
    old: Buffer,
    new: Buffer,
    records: tuple[LayoutRecord | None, LayoutRecord | None],
    box: Shape,
    symbols: Mapping[str, int],
) -> tuple[Move, ...]:
    """How the rewrite changes a parameter's layout: the steps that its record gained, or else the witness."""
    kept, longer = records
    steps = kept.steps if kept is not None else ()
    declared = old.name in rewrite.witness.changes_interface
    if longer is not None:
        same = kept is None or kept.logical_shape == longer.logical_shape
        if (
            not same
            or longer.steps[: len(steps)] != steps
            or (kept is None and extents_for(longer.logical_shape, symbols) != box)
        ):
            raise NotComparable(f"the layout record of {old.name} does not go on where it was")
        then = tuple(_moves(box, longer.steps[len(steps) :], symbols))
        if then and not declared:
            raise NotComparable(f"the layout of {old.name} changes without a record")
        return then
    cells = next((c for c in rewrite.witness.cells if c.old_data == old.data.name), None)
    if kept is None and declared and cells is not None and cells.new_data == new.data.name:
        after = tuple(int(evaluate(e, symbols)) for e in new.shape)
        return (_move(cells.cells, box, after, None, Cell.PAD_UNDEF, symbols),)
    if kept is not None and steps:
        raise NotComparable(f"the layout record of {old.name} is gone")
    return ()


def _moves(shape: Shape, steps: tuple[LayoutStep, ...], symbols: Mapping[str, int]) -> Iterator[Move]:
    for step in steps:
        after = extents_for(step.shape, symbols)
        yield _move(step.index_map, shape, after, step.contract, step.padding, symbols)
        shape = after


def _move(
    cells: IndexMap, before: Shape, after: Shape, contract: Contract | None, padding: Cell, symbols: Mapping[str, int]
) -> Move:
    """One re-laying, once it is seen to give every element a place."""
    if len(cells.inputs) != len(before) or cells.rank != len(after):
        raise NotComparable("an index map of another rank")
    if any(extent < 0 for extent in (*before, *after)):
        raise NotComparable("a box of a layout record is negative")
    values = cells.output_values(before, symbols)
    positions = np.zeros(0, dtype=np.int64)
    if prod(before):
        if any(int(v.min()) < 0 or int(v.max()) >= extent for v, extent in zip(values, after, strict=True)):
            raise NotComparable("an element is moved out of its box")
        positions = np.ascontiguousarray(cells.flat_positions(before, after, symbols)).reshape(-1)
    taken = np.zeros(prod(after), dtype=np.bool_)
    taken[positions] = True
    return Move(before, after, positions, contract, padding, int(np.count_nonzero(taken)) != positions.size)
