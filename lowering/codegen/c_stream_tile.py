"""Which loop nests are tiles that may be written past the cache: one store, strides in every index, contiguous runs.

The guard of a padded copy is evaluated once per piece. A nest that is not shown to be a tile is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Var,
    binary,
    const,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, LogicalOp
from layoutproof.ir.stmt import Attributes, BufferStore, For, ForKind, Stmt
from layoutproof.ir.visit import free_variables, loads_in, rewrite_bottom_up, substitute, walk
from layoutproof.lowering.arith.affine import (
    Polynomial,
    Steps,
    added,
    expression,
    fold_constants,
    number,
    polynomial,
    steps_of,
)
from layoutproof.lowering.codegen.c_stmt import Statements

MOST = 32
"""The most elements of a piece for which its condition is written out."""
_PARTIAL = frozenset(BinaryOp) - {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX}
"""Operations that are undefined for some operands."""

CAPACITY = 40 * 1024
"""The largest tile in bytes; it is on the stack, and should stay in the nearest cache."""
SHORTEST = 32
"""The shortest run in bytes for streaming stores."""
LINE = 64


def read_where(value: Expr) -> tuple[BufferLoad, Expr] | None:
    """The load of a value and its condition; None for a value other than a load or a choice of one and a constant."""
    if isinstance(value, BufferLoad):
        return value, TRUE
    if isinstance(value, IfThenElseExpr) and not any(True for _ in loads_in(value.condition)):
        if isinstance(value.then, BufferLoad) and not any(True for _ in loads_in(value.otherwise)):
            return value.then, value.condition
        if isinstance(value.otherwise, BufferLoad) and not any(True for _ in loads_in(value.then)):
            return value.otherwise, Not(value.condition)
    return None


def is_total(expr: Expr, beyond: Collection[Var]) -> bool:
    """Whether index arithmetic has a value, without memory reads, even where some variables exceed their ranges."""
    for node in walk(expr):
        if not isinstance(node, Var | IntImm | Cast | Binary | Compare | Logical | Not):
            return False
        if isinstance(node, Binary) and node.op in _PARTIAL and set(free_variables(node.rhs)) & set(beyond):
            return False
    return True


def all_hold(condition: Expr, loops: Sequence[tuple[Var, int]]) -> tuple[Expr, ...] | None:
    """A condition that implies another in all iterations of loops from 0 to their sizes; None where it would be too
    large.
    """
    if not is_total(condition, [variable for variable, _ in loops]):
        return None
    used = set(free_variables(condition))
    asked = [(variable, size) for variable, size in loops if variable in used]
    total = 1
    for _, size in asked:
        total *= size
    if total > MOST:
        return None
    found = dict.fromkeys(_instances(condition, asked))
    found.pop(TRUE, None)
    return tuple(found)


def _instances(condition: Expr, loops: Sequence[tuple[Var, int]]) -> Iterator[Expr]:
    for values in product(*(range(size) for _, size in loops)):
        given: dict[Var, Expr] = {v: const(value, v.dtype) for (v, _), value in zip(loops, values, strict=True)}
        folded = rewrite_bottom_up(substitute(condition, given), _folded)
        assert isinstance(folded, Expr)
        yield folded


def _folded(node: Node) -> Node:
    if isinstance(node, Not):
        operand = node.operand
        if operand in (TRUE, FALSE):
            return FALSE if operand == TRUE else TRUE
        return operand.operand if isinstance(operand, Not) else node
    if isinstance(node, Logical):
        decides, other = (FALSE, TRUE) if node.op is LogicalOp.AND else (TRUE, FALSE)
        if decides in (node.lhs, node.rhs):
            return decides
        return node.rhs if node.lhs == other else node.lhs if node.rhs == other else node
    return fold_constants(node) if isinstance(node, Expr) else node


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a tile. `size` is its largest number of iterations; `is_free`: they do not depend on the tile's other
    loops.
    """

    loop: For
    size: int
    is_free: bool

    @property
    def var(self) -> Var:
        """The loop's variable."""
        return self.loop.var

    @property
    def is_constant(self) -> bool:
        """Whether its number of iterations is constant."""
        return isinstance(self.loop.extent, IntImm)

    @property
    def plain(self) -> For:
        """The loop as a sequential one that is no tile."""
        return replace(self.loop, kind=ForKind.SERIAL, annotations=Attributes())


@dataclass(frozen=True, slots=True)
class Tile:
    """A nest whose `store` writes runs of `run_length` elements, one per iteration of the `outer` axes.

    `target`, `local` and `source` are the positions in the destination, in the tile and in the source; `load` is the
    read where `condition` holds, None with `source` for any other value.
    """

    store: BufferStore
    axes: tuple[Axis, ...]
    outer: tuple[Axis, ...]
    run_length: Expr
    target: Steps
    local: Steps
    capacity: int
    width: int
    load: BufferLoad | None
    source: Steps | None
    condition: Expr


def find_tile(statements: Statements, stmt: For) -> Tile | None:
    """The tile that a nest is; None where it is not shown to be one."""
    loops, body = _nest(stmt)
    if not isinstance(body, BufferStore) or body.value.dtype.lanes > 1 or not statements.is_independent(body):
        return None
    memory = statements.expressions.memory.of(body.buffer)
    variables = {loop.var for loop in loops}
    target = steps_of(body.indices[-1], variables) if body.indices else None
    if memory is None or memory.mixed or target is None or set(target.by_loop) != variables:
        return None
    axes = [_axis(statements, loop, variables) for loop in loops]
    if any(axis is None for axis in axes):
        return None
    return _laid_out(statements, body, tuple(axis for axis in axes if axis is not None), target)


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _axis(statements: Statements, loop: For, variables: set[Var]) -> Axis | None:
    if loop.start != const(0, loop.var.dtype) or any(True for _ in loads_in(loop.extent)):
        return None
    inside = variables & set(free_variables(loop.extent))
    if not inside:
        size = statements.expressions.emit_index(loop.extent).range.high
    else:
        full = _rest_of(loop)
        size = full[0] if full is not None else 0
    return Axis(loop, size, not inside) if 0 < size <= CAPACITY else None


def _rest_of(loop: For) -> tuple[int, Polynomial] | None:
    """`(q, rest)` of a loop that runs `min(q, rest)` times, which may be written `max(min(q, rest), 0)`."""
    extent = loop.extent
    if isinstance(extent, Binary) and extent.op is BinaryOp.MAX and const(0, extent.dtype) in (extent.lhs, extent.rhs):
        extent = extent.rhs if extent.lhs == const(0, extent.dtype) else extent.lhs
    if isinstance(extent, Binary) and extent.op is BinaryOp.MIN:
        for known, rest in ((extent.lhs, extent.rhs), (extent.rhs, extent.lhs)):
            if isinstance(known, IntImm):
                return known.value, polynomial(rest)
    return None


def _laid_out(statements: Statements, store: BufferStore, axes: tuple[Axis, ...], target: Steps) -> Tile | None:
    width = store.buffer.dtype.element.bytes
    found = _run(axes, target)
    if found is None:
        return None
    run, length, capacity = found
    outer = tuple(axis for axis in axes if axis not in run)
    if not all(axis.is_free for axis in outer) or capacity * width < SHORTEST:
        return None
    if not _apart(axes, outer, target, capacity):
        return None
    per_line = max(LINE // width, 1)
    stride = -(-capacity // per_line) * per_line if outer else capacity
    local: dict[Var, Polynomial] = {axis.var: target.by_loop[axis.var] for axis in run}
    total = stride
    for axis in reversed(outer):
        local[axis.var] = {(): total}
        total *= axis.size
    if total * width > CAPACITY:
        return None
    load, condition = read_where(store.value) or (None, TRUE)
    source = None
    if load is not None and _is_plain(statements, load, store):
        source = steps_of(load.indices[-1], {axis.var for axis in axes})
    if source is None:
        load = None
    return Tile(store, axes, outer, length, target, Steps({}, local), total, width, load, source, condition)


def _is_plain(statements: Statements, load: BufferLoad, store: BufferStore) -> bool:
    """Whether a load gives the bytes that are stored."""
    memory = statements.expressions.memory.of(load.buffer)
    if memory is None or memory.mixed or load.buffer.dtype != store.buffer.dtype or not load.indices:
        return False
    return all(offset == const(0, offset.dtype) for offset in (load.buffer.elem_offset, store.buffer.elem_offset))


def _run(axes: Sequence[Axis], target: Steps) -> tuple[tuple[Axis, ...], Expr, int] | None:
    """The axes that make one contiguous run, innermost first; its length, and its largest length. None where no axis
    steps by one.
    """
    run: list[Axis] = []
    length: Expr = const(1)
    size = 1
    while True:
        following = next((axis for axis in axes if axis not in run and target.of(axis.var) == size), None)
        if following is None or not isinstance(length, IntImm):
            break
        if following.is_free:
            run.append(following)
            length, size = _times(following.loop.extent, size), size * following.size
            continue
        outer = _counted_by(following, axes, target, size)
        if outer is None:
            break
        axis, rest = outer
        run += [following, axis]
        length, size = _cut(following, axis, rest, size)
    return (tuple(run), length, size) if run else None


def _times(extent: Expr, factor: int) -> Expr:
    if isinstance(extent, IntImm):
        return const(extent.value * factor, extent.dtype)
    return extent * const(factor, extent.dtype) if factor != 1 else extent


def _counted_by(inner: Axis, axes: Sequence[Axis], target: Steps, size: int) -> tuple[Axis, Polynomial] | None:
    """The axis `a` and `X` where the inner axis runs `min(q, X - q*a)` times: together they count to X, the last q cut
    short.
    """
    found = _rest_of(inner.loop)
    if found is None:
        return None
    whole, rest = found
    for axis in axes:
        if axis.is_free and target.of(axis.var) == whole * size and size == 1:
            total = added(rest, {(axis.var,): whole})
            used = {v for monomial in total for term in monomial for v in free_variables(term)}
            if used.isdisjoint(other.var for other in axes):
                return axis, total
    return None


def _cut(inner: Axis, outer: Axis, rest: Polynomial, size: int) -> tuple[Expr, int]:
    """The length of the run that a whole count makes, and its largest."""
    whole = _times(outer.loop.extent, inner.size)
    known = number(rest)
    if known is not None and isinstance(whole, IntImm):
        least = min(known, whole.value)
        return const(least, whole.dtype), least * size
    largest = inner.size * outer.size
    return binary(BinaryOp.MIN, whole, expression(rest)), min(largest, known if known is not None else largest) * size


def _apart(axes: Sequence[Axis], outer: Sequence[Axis], target: Steps, length: int) -> bool:
    """Whether writing run after run leaves what the nest leaves: no two of its iterations write one cell, or it writes
    in this order.
    """
    steps = [target.of(axis.var) for axis in outer]
    if all(step is not None and step > 0 for step in steps):
        reach = length - 1
        for step, axis in sorted(
            zip((s for s in steps if s is not None), outer, strict=True), key=lambda pair: pair[0]
        ):
            if step <= reach:
                break
            reach += step * (axis.size - 1)
        else:
            return True
    return tuple(axes[: len(outer)]) == tuple(outer)


def dense_prefix(axes: Sequence[Axis], steps: Steps) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes along which the source is contiguous, innermost first, and the others unchanged."""
    run: list[Axis] = []
    size = 1
    while True:
        following = next((axis for axis in axes if axis not in run and steps.of(axis.var) == size), None)
        if following is None or (run and not run[-1].is_constant):
            break
        run.append(following)
        size *= following.size
    return tuple(run), tuple(axis for axis in axes if axis not in run)


def contiguous(tile: Tile, source: Steps) -> bool:
    """Whether each run is contiguous in the source as well."""
    inside = [axis for axis in tile.axes if axis not in tile.outer]
    straight = tile.condition == TRUE and all(source.of(axis.var) == tile.target.of(axis.var) for axis in inside)
    return straight and prod(axis.size for axis in inside) > 1
