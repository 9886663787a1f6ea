"""Which cells of a re-laid buffer hold elements: the condition on an index that keeps away from padding.

Source: the seed `layout-transformation-padding-roadmap`, the padding predicate of a transformed buffer. What is found here proposes a
guard; the checker proves what follows from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import FALSE, TRUE, Expr, Not, Var, const, equal
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Evaluate, For, ForKind
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.lowering.index_simplify import IndexSimplifier
from layoutproof.lowering.known import Scope
from layoutproof.lowering.loops.guards import parts_of
from layoutproof.lowering.loops.invert import components_of, turn_around
from layoutproof.lowering.padding.stated import stated_elements
from layoutproof.lowering.scopes import assumed_of_constants, constants_of, symbol_scope
from layoutproof.verify.maps.check_map import check_map


class Elements:
    """The cells of one function's re-laid buffers that hold elements, each buffer's found once."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.records = layout_records(func)
        self._found: dict[Buffer, tuple[Expr, ...] | None] = {}

    def conditions(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        """Conditions over `cell0, cell1, ...` that hold together exactly where an element is; empty where every cell has one.

        None where the function says nothing of the buffer's padding, or no formula is found. A record of its layout counts before what the
        text says of the values in it.
        """
        if buffer not in self._found:
            record = self.records.get(buffer.data.name)
            if record is None:
                self._found[buffer] = self._stated(buffer)
            else:
                fits = LayoutRecord(buffer.shape).shape == record.shape
                self._found[buffer] = self._of(buffer, record) if fits else None
        return self._found[buffer]

    def _stated(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        said = stated_elements(self.func, buffer, cells_of(buffer))
        return None if said is None else parts_of(said)

    def at(self, buffer: Buffer, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """The conditions at an index; none where nothing is known."""
        conditions = self.conditions(buffer)
        if conditions is None or len(index) != buffer.rank:
            return ()
        values: dict[Var, Expr] = {}
        for cell, place in zip(cells_of(buffer), index, strict=True):
            values[cell] = place
            values[Var(cell.name, place.dtype)] = place
        types = {cell.name: place.dtype for cell, place in zip(cells_of(buffer), index, strict=True)}
        symbols = {v.name: v.dtype for c in conditions for v in free_variables(c) if v.name not in types}
        return tuple(substitute(retype(c, {**types, **symbols}), values) for c in conditions)

    def _of(self, buffer: Buffer, record: LayoutRecord) -> tuple[Expr, ...] | None:
        symbols = constants_of(self.func)
        composed = composed_map(record, symbols)
        if composed is None:
            return ()
        shape = [retype(extent, {v.name: v.dtype for v in symbols}) for extent in record.logical_shape]
        found = self._turned(buffer, composed, shape)
        if found is None:
            found = self._counted_out(buffer, composed, shape)
        return None if found is None else self._plain(buffer, found)

    def _turned(self, buffer: Buffer, index_map: IndexMap, shape: Sequence[Expr]) -> list[Expr] | None:
        """The conditions under which the map's inverse gives an element that lies in this cell: `4*p + q < 14`."""
        axes = [Var(f"element{n}'", extent.dtype) for n, extent in enumerate(shape)]
        nothing = Evaluate(const(0))
        loops = [For(v, const(0, v.dtype), extent, ForKind.SERIAL, nothing) for v, extent in zip(axes, shape, strict=True)]
        outputs = index_map.map_indices(axes)
        cells = dict(enumerate(cells_of(buffer)))
        conditions: list[Expr] = []
        turned: set[int] = set()
        for component in components_of(outputs, loops):
            answer = turn_around(outputs, buffer, component, cells, frozenset(), assumed_of_constants(self.func))
            if isinstance(answer, str) or answer.kept:
                return None
            conditions += answer.guards
            turned |= set(component.axes)
        return [*conditions, *(equal(cells[axis], outputs[axis]) for axis in cells if axis not in turned)]

    def _counted_out(self, buffer: Buffer, index_map: IndexMap, shape: Sequence[Expr]) -> list[Expr] | None:
        """What is left of the box without the padding that the map's report names."""
        try:
            report = check_map(index_map, shape, assumed_of_constants(self.func), physical_shape=buffer.shape)
        except LayoutproofError:
            # A record may be written by hand; of a map that does not fit its box no formula is found.
            return None
        predicate = report.padding.predicate
        if predicate is None:
            return None
        cells = cells_of(buffer)
        types = {cell.name: cell.dtype for cell in cells}
        places: dict[Var, Expr] = {Var(f"p{axis}", cell.dtype): cell for axis, cell in enumerate(cells)}
        named = {f"p{axis}": cell.dtype for axis, cell in enumerate(cells)}
        typed = retype(predicate, {**types, **named, **{v.name: v.dtype for v in constants_of(self.func)}})
        return [] if predicate == FALSE else [Not(substitute(typed, places))]

    def _plain(self, buffer: Buffer, conditions: Sequence[Expr]) -> tuple[Expr, ...]:
        """The conditions that do not hold in the whole box anyway."""
        scope = symbol_scope(self.func)
        for cell, extent in zip(cells_of(buffer), buffer.shape, strict=True):
            scope = scope.with_range(cell, const(0, extent.dtype), extent)
        return left_of(conditions, scope)


def left_of(conditions: Sequence[Expr], scope: Scope) -> tuple[Expr, ...]:
    """The conditions, simplified, without those that hold anyway and without repetitions."""
    simplifier = IndexSimplifier(scope)
    kept: list[Expr] = []
    for condition in conditions:
        for part in parts_of(simplifier.simplify(condition)):
            if part != TRUE and not scope.proves(part) and part not in kept:
                kept.append(part)
    return tuple(kept)


def cells_of(buffer: Buffer) -> tuple[Var, ...]:
    """The variables that stand for a cell of a buffer, one for each axis."""
    return tuple(Var(f"cell{axis}'", extent.dtype) for axis, extent in enumerate(buffer.shape))


def composed_map(record: LayoutRecord, symbols: Sequence[Var]) -> IndexMap | None:
    """All steps of a record as one map, from elements to cells of the last box; None where there is no step."""
    composed: IndexMap | None = None
    for step in record.steps:
        index_map = step.index_map.with_symbols(symbols)
        composed = index_map if composed is None else index_map.compose(composed)
    return composed
