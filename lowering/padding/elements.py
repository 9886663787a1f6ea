"""Which cells of a buffer hold elements and which are padding: from its layout record, or from assumptions and stores.

What is found here proposes a guard; the checker proves the result.

Source: TVM's RFC `layout-transformation-padding-roadmap`, the padding predicate of a transformed buffer. What is found
here proposes a guard; the checker proves what follows from it.
Source: TVM's RFC `layout-transformation-padding-roadmap`, whose examples have their padding's values inferred from
such stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Compare,
    Expr,
    Logical,
    Not,
    Var,
    const,
    equal,
    logical_and,
    logical_or,
    negated,
)
from layoutproof.ir.index_map import IndexMap, retype
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.layout_record import LayoutRecord, layout_records
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Seq,
    Stmt,
)
from layoutproof.ir.visit import free_variables, substitute, walk
from layoutproof.lowering.arith.index_simplify import IndexSimplifier
from layoutproof.lowering.arith.known_facts import Scope, assumed_of_constants, constants_of, symbol_scope
from layoutproof.lowering.loops.access import components_of, turn_around
from layoutproof.lowering.loops.nest import parts_of
from layoutproof.lowering.passes.effects import is_pure
from layoutproof.verify.maps.check_map import check_map


@dataclass(frozen=True, slots=True)
class _Said:
    """That `buffer[index]` holds one value if `padding` holds, for all values of `loops`; `stored` if the program
    stores it.
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    padding: Expr
    loops: tuple[For, ...]
    stored: bool


def stated_elements(func: PrimFunc, buffer: Buffer, cells: Sequence[Var]) -> Expr | None:
    """Where, over `cells`, a buffer is not stated to be padding; None if there is no statement about it.

    Assumptions count before stores; of several stages that fill a buffer, the last.
    """
    said = [s for s in _stages(func.body, (), {}, TRUE) if s.buffer == buffer]
    chosen = [s for s in said if not s.stored] or [s for s in said if s.stored][-1:]
    found = [condition for s in chosen if (condition := _over_cells(s, cells)) is not None]
    return logical_and(*map(negated, found)) if found else None


def _over_cells(said: _Said, cells: Sequence[Var]) -> Expr | None:
    """The padding over the cells; None if the stage does not go through the whole buffer, cell by cell."""
    loops = {loop.var: loop for loop in said.loops}
    names: dict[Var, Expr] = {}
    for index, extent, cell in zip(said.index, said.buffer.shape, cells, strict=True):
        loop = loops.get(index) if isinstance(index, Var) else None
        if loop is None or loop.start != const(0, loop.start.dtype) or loop.extent != extent or loop.var in names:
            return None
        names[loop.var] = cell
    if not set(free_variables(said.padding)) & set(loops) <= set(names):
        return None
    return substitute(said.padding, names)


def _stages(stmt: Stmt, loops: tuple[For, ...], known: Mapping[Var, Expr], held: Expr) -> Iterator[_Said]:
    """The padding assumptions below a statement; `known`: block variables over loops, `held`: conditions around it."""
    match stmt:
        case For(body=body):
            yield from _stages(body, (*loops, stmt), known, held)
        case Block(body=body):
            inner = {**known, **{i.var: substitute(i.binding, known) for i in stmt.iter_vars}}
            yield from _stages(body, loops, inner, _both(held, substitute(stmt.where, inner)))
        case IfThenElse(condition=condition, then=then, otherwise=None):
            yield from _stages(then, loops, known, _both(held, substitute(condition, known)))
        case Seq(body=parts):
            for part in parts:
                yield from _stages(part, loops, known, held)
        case Evaluate(value=Assume(condition=condition)) if held == TRUE:
            yield from _assumed(substitute(condition, known), loops)
        case BufferStore(buffer=buffer, indices=indices, value=value) if held != TRUE and is_pure(
            held, value, *indices
        ):
            yield _Said(buffer, tuple(substitute(i, known) for i in indices), held, loops, stored=True)
        case Allocate(body=body) | DeclBuffer(body=body) | AttrStmt(body=body):
            yield from _stages(body, loops, known, held)
        case _:
            return


def _both(first: Expr, second: Expr) -> Expr:
    return second if first == TRUE else first if second == TRUE else logical_and(first, second)


def _assumed(condition: Expr, loops: tuple[For, ...]) -> Iterator[_Said]:
    """`element(cell) or A[cell] == v` states that all other cells are padding."""
    parts = _disjuncts(condition)
    equations = [
        part
        for part in parts
        if isinstance(part, Compare) and part.op is CompareOp.EQ and isinstance(part.lhs, BufferLoad)
    ]
    others = [part for part in parts if part not in equations]
    if (
        len(equations) != 1
        or not others
        or not is_pure(*others)
        or any(isinstance(n, BufferLoad) for n in walk(equations[0].rhs))
    ):
        return
    load = equations[0].lhs
    assert isinstance(load, BufferLoad)
    yield _Said(load.buffer, load.indices, negated(logical_or(*others)), loops, stored=False)


def _disjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Logical) and condition.op is LogicalOp.OR:
        return (*_disjuncts(condition.lhs), *_disjuncts(condition.rhs))
    return (condition,)


class Elements:
    """The cells with elements of one function's transformed buffers, cached by buffer."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.records = layout_records(func)
        self._found: dict[Buffer, tuple[Expr, ...] | None] = {}

    def conditions(self, buffer: Buffer) -> tuple[Expr, ...] | None:
        """Conditions over `cell0, cell1, ...` whose conjunction is that an element is there; empty if every cell has
        one.

        None if nothing is known of the buffer's padding, or no formula is found. A layout record counts before the
        text.
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
        """The conditions at an index; none if nothing is known."""
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
        loops = [
            For(v, const(0, v.dtype), extent, ForKind.SERIAL, nothing) for v, extent in zip(axes, shape, strict=True)
        ]
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
        """The box without the padding that the map's report names."""
        try:
            report = check_map(index_map, shape, assumed_of_constants(self.func), physical_shape=buffer.shape)
        except LayoutproofError:
            # A record may be written by hand; a map that does not fit its box has no formula.
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
    """The index variables of a cell of a buffer, one for each axis."""
    return tuple(Var(f"cell{axis}'", extent.dtype) for axis, extent in enumerate(buffer.shape))


def composed_map(record: LayoutRecord, symbols: Sequence[Var]) -> IndexMap | None:
    """All steps of a record as one map, from elements to cells of the last box; None if there is no step."""
    composed: IndexMap | None = None
    for step in record.steps:
        index_map = step.index_map.with_symbols(symbols)
        composed = index_map if composed is None else index_map.compose(composed)
    return composed
