"""Whether the results of a reduction block keep out of each other's way: no cell that one of them writes is touched by another.

Where they do, it makes no difference when each is initialised; where they do not, or nobody can tell, the order counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Broadcast, Expr, Ramp, Var, const
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, IterKind, IterVar, Let, Stmt
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import bound_variables, children, free_variables, loads_in, walk
from layoutproof.verify.instances import Dim, Guard, Scene
from layoutproof.verify.integers import at_least, below, differ, same
from layoutproof.verify.isl.model import Model

Values = Mapping[Var, Expr]


@dataclass(frozen=True, slots=True)
class _Touch:
    """A load or store: its indices as written, and over loops alone; the loops around it inside the block."""

    buffer: Buffer
    raw: tuple[Expr, ...]
    indices: tuple[Expr, ...]
    dims: tuple[Dim, ...]
    writes: bool


def obstacle_to_apartness(
    path: Sequence[Stmt], block: Block, values: Values, data: frozenset[Var], overlapping: frozenset[Var]
) -> str | None:
    """Why two instances of `block` in one run of its reduction may touch a common cell of `data`, one writing it; None: they do not.

    `path` leads from the reduction's outermost loop to the block, `values` gives iteration variables over loops, `overlapping` are
    data variables that may share memory with one another.
    """
    known = {**values, **_lets(path, values)}
    spatial = [v for v in block.iter_vars if v.kind is not IterKind.REDUCE]
    inner = {s.var.name for s in path if isinstance(s, For | Let)}
    varying = [v for v in spatial if any(n.name in inner for n in free_variables(substitute(v.binding, known)))]
    if not varying or not data:
        return None
    if any(isinstance(node, OpaqueCall) for node in walk(block)):
        return "the block calls what nobody looks into"
    every = [t for part in (block.init, block.body) if part is not None for t in _touches(part, known, ())]
    touches = [t for t in every if t.buffer.data in data]
    if data & overlapping:
        other = next((t for t in every if t.buffer.data in overlapping - data), None)
        if other is not None:
            return f"{other.buffer.name} may overlap what the init writes: the function does not say that parameters do not (noalias)"
    for root in dict.fromkeys(t.buffer.data for t in touches):
        here = [t for t in touches if t.buffer.data == root]
        first = here[0].buffer
        if any((t.buffer.shape, t.buffer.strides, t.buffer.elem_offset) != (first.shape, first.strides, first.elem_offset) for t in here):
            return f"{first.name} is used through several views"
        if first.strides:
            return f"{first.name} has strides of its own"
        if not _plainly_apart(here, varying) and not _Question(path, block, known, spatial, inner).apart(here, varying):
            return f"two results of block {block.name} may share a cell of {first.name}"
    return None


def _lets(path: Sequence[Stmt], values: Values) -> dict[Var, Expr]:
    found: dict[Var, Expr] = {}
    for stmt in path:
        if isinstance(stmt, Let) and _is_index(stmt.value):
            found[stmt.var] = substitute(stmt.value, {**values, **found})
    return found


def _is_index(expr: Expr) -> bool:
    return expr.dtype.is_integer and not any(isinstance(node, BufferLoad | OpaqueCall) for node in walk(expr))


def _touches(stmt: Stmt, values: Values, dims: tuple[Dim, ...]) -> Iterator[_Touch]:
    """Every load and store of a statement."""
    if isinstance(stmt, For):
        dims = (*dims, _dim(stmt, values))
    elif isinstance(stmt, Let) and _is_index(stmt.value):
        values = {**values, stmt.var: substitute(stmt.value, values)}
    elif isinstance(stmt, Block):
        values = {**values, **{v.var: substitute(v.binding, values) for v in stmt.iter_vars}}
    if isinstance(stmt, BufferStore):
        yield _touch(stmt, values, dims)
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _touches(child, values, dims)
        else:
            yield from (_touch(load, values, dims) for load in loads_in(child))


def _touch(access: BufferLoad | BufferStore, values: Values, dims: tuple[Dim, ...]) -> _Touch:
    indices = tuple(substitute(index, values) for index in access.indices)
    if indices and indices[-1].dtype.lanes > 1:
        lane = Var(f"lane'{len(dims)}", INT32)
        dims = (*dims, Dim(lane, const(0), const(indices[-1].dtype.lanes), ForKind.SERIAL, lane=True))
        indices = (*indices[:-1], _at_lane(indices[-1], lane))
    return _Touch(access.buffer, access.indices, indices, dims, isinstance(access, BufferStore))


def _at_lane(index: Expr, lane: Var) -> Expr:
    """One lane of an index; itself, which no question can be asked of, where it is of another form."""
    if isinstance(index, Ramp) and index.base.dtype == lane.dtype:
        return index.base + index.stride * lane
    return index.value if isinstance(index, Broadcast) else index


def _dim(loop: For, values: Values) -> Dim:
    return Dim(loop.var, substitute(loop.start, values), substitute(loop.extent, values), ForKind.SERIAL)


def _plainly_apart(touches: Sequence[_Touch], varying: Sequence[IterVar]) -> bool:
    """Whether each variable that tells instances apart is an index by itself, on one axis in every access."""
    axes = range(min(len(t.raw) for t in touches))
    shared = [touches[0].raw[axis] for axis in axes if all(t.raw[axis] == touches[0].raw[axis] for t in touches)]
    return all(v.var in shared for v in varying)


@dataclass(frozen=True, slots=True)
class _Question:
    """Two instances that share what is outside the reduction, as integer sets see them."""

    path: Sequence[Stmt]
    block: Block
    values: Values
    spatial: Sequence[IterVar]
    inner: set[str]

    def apart(self, touches: Sequence[_Touch], varying: Sequence[IterVar]) -> bool:
        """Whether there are certainly no two different instances with a cell in common that one of them writes."""
        # An init and an update that touch one cell ask the same.
        every = {(t.indices, t.dims): t for t in touches}
        writing = {(t.indices, t.dims): t for t in touches if t.writes}
        pairs = [(t, other) for t in writing.values() for other in every.values()]
        return all(self._never(one, other, variable) for one, other in pairs for variable in varying)

    def _never(self, one: _Touch, other: _Touch, variable: IterVar) -> bool:
        outer = tuple(_dim(s, self.values) for s in self.path if isinstance(s, For))
        binding = substitute(variable.binding, self.values)
        dims: list[Dim] = []
        guards: list[Guard] = []
        sides: list[tuple[tuple[Expr, ...], Expr]] = []
        for number, touch in enumerate((one, other)):
            own = (*outer, *touch.dims)
            names: dict[Var, Expr] = {d.var: Var(f"{d.var.name}'{number}", d.var.dtype) for d in own}
            for d in own:
                renamed = names[d.var]
                assert isinstance(renamed, Var)
                dims.append(Dim(renamed, substitute(d.start, names), substitute(d.extent, names), d.kind))
            guards += [Guard(substitute(c, names)) for c in self._domain()]
            sides.append((tuple(substitute(i, names) for i in touch.indices), substitute(binding, names)))
        (left, a), (right, b) = sides
        if any(e.dtype.lanes > 1 for e in (*left, *right)):
            return False
        conditions = [*(same(x, y) for x, y in zip(left, right, strict=True)), differ(a, b)]
        scene = Scene(tuple(dims), tuple(guards))
        told = {d.var.name for d in dims}
        free = dict.fromkeys(
            v
            for e in (*conditions, *(g.condition for g in guards), *(e for d in dims for e in (d.start, d.extent)))
            for v in free_variables(e)
            if v.name not in told
        )
        hidden = self.inner | {v.name for v in bound_variables(self.block)}
        if any(v.name in hidden for v in free):  # lets that depend on data
            return False
        return Model(tuple(free), (), {}).search(scene, *conditions).is_empty

    def _domain(self) -> Iterator[Expr]:
        """That the spatial variables lie in their domains: elsewhere there is no instance."""
        for v in self.spatial:
            value = substitute(v.binding, self.values)
            start, extent = (substitute(e, self.values) for e in (v.domain.start, v.domain.extent))
            yield at_least(value, start)
            yield below(value, start + extent)
