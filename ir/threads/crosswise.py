"""Reductions over threads: each thread along an axis adds its part to one cell, in an order that is not fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import isfinite

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT32
from layoutproof.ir.evaluate import Overflow, evaluate, foreign_part
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Logical,
    Var,
    binary,
    const,
    negated,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    Let,
    Seq,
    Stmt,
    at_first_update,
    seq,
)
from layoutproof.ir.threads.kernel_text import Across, NotSequential, is_sync
from layoutproof.ir.visit import children, free_variables, loads_in, map_children, stores_in, substitute, walk

_EXTREMES = frozenset((BinaryOp.MIN, BinaryOp.MAX))
_JOINS = frozenset((BinaryOp.ADD, BinaryOp.MUL)) | _EXTREMES


@dataclass(frozen=True, slots=True)
class Joins:
    """How a reduction over threads joins values: the operators that join floats, and the memories of which several hold
    one value together (`tuples`), whose joining may depend on the order. `bounded`: whether a least or greatest float
    starts from a finite number. Threads may leave out what they start from, and what they join may be infinite.
    """

    floats: frozenset[BinaryOp]
    tuples: frozenset[Var]
    bounded: bool


def joins_of(across: Across, axes: AbstractSet[Var]) -> Joins:
    """What threads join.

    Raises NotSequential where the order in which threads run could be seen in another way: what starts the memories
    comes first, and after it each store joins the thread's part to its cell, by one commutative operator for each
    memory, or joins what several cells hold together. Nothing else depends on what was joined before.
    """
    written = {store.buffer.data for store in stores_in(across)}
    _check_lets(across.body, written)
    start, body = _parted(across, axes)
    if any(load.buffer.data in written for node in walk(body) for e in _control(node) for load in loads_in(e)):
        raise NotSequential("whether threads join a part depends on what they have joined", across)
    joined: dict[Var, BinaryOp] = {}
    tuples: set[Var] = set()
    for store in (*stores_in(start), *stores_in(body)):
        if not _is_simple(store, written, axes):
            tuples |= {store.buffer.data, *(_seen(*store.indices, store.value) & written)}
        elif (part := _part(store)) is not None and joined.setdefault(store.buffer.data, part[0]) is not part[0]:
            raise NotSequential(f"a reduction over threads by several operators on {store.buffer.name}", store)
    _check_tuples(across, tuples, set(joined))
    if axes and any(_part(store) is None and store.buffer.data not in tuples for store in stores_in(body)):
        raise NotSequential("a reduction over threads that starts anew on its way", across)
    of_floats = {store.buffer.data for store in stores_in(across) if store.buffer.dtype.is_float}
    starts = (s for s in stores_in(start) if s.buffer.data in of_floats and joined.get(s.buffer.data) in _EXTREMES)
    bounded = any(not isinstance(s.value, FloatImm) or isfinite(s.value.value) for s in starts)
    return Joins(frozenset(op for data, op in joined.items() if data in of_floats), frozenset(tuples), bounded)


def _is_simple(store: BufferStore, written: AbstractSet[Var], axes: AbstractSet[Var]) -> bool:
    """Whether a store joins a part to its cell, or stores what is the same for all threads: else it is of a tuple."""
    part = _part(store)
    value = store.value if part is None else part[1]
    seen = _seen(*store.indices, value) & written
    elsewhere = _varies(axes, *store.indices)
    if not elsewhere and not seen and (part is not None or not _varies(axes, value)):
        return True
    if elsewhere or not _is_of_tuple(store, written):
        raise NotSequential(f"a reduction over threads that is not one operator on {store.buffer.name}", store)
    return False


def _check_tuples(across: Across, tuples: AbstractSet[Var], joined: AbstractSet[Var]) -> None:
    if tuples & joined or len(tuples) == 1:
        name = next(store.buffer.name for store in stores_in(across) if store.buffer.data in tuples)
        raise NotSequential(f"a reduction over threads that is not one operator on {name}", across)


def _seen(*expressions: Expr) -> set[Var]:
    return {load.buffer.data for expression in expressions for load in loads_in(expression)}


def _parted(across: Across, axes: AbstractSet[Var]) -> tuple[Stmt, Stmt]:
    """What starts a reduction, and what each thread joins to it. Raises NotSequential where another thread than the
    first may start it: what was joined before would be lost, and the order be seen.
    """
    if any(isinstance(node, Across) or is_sync(node) for node in walk(across.body)):
        raise NotSequential("threads that wait for one another in a reduction over threads", across)
    body, guards = _plain(across.body), tuple[Expr, ...]()
    if isinstance(body, IfThenElse) and body.otherwise is None:
        guards, body = tuple(_terms(body.condition)), body.then
    if not axes or not isinstance(body, Seq):
        return NOTHING, _plain(across.body)
    start, *others = body.body
    known = {_normal(part.lhs) for part in _conditions(start) if isinstance(part, Compare) and part.op is CompareOp.EQ}
    if not all(_is_first(known, axis) for axis in axes):
        raise NotSequential("a reduction that another thread than the first may start", across)
    along = {v for value in known for v in free_variables(value)}
    if not all(_keeps_first(guard, along) for guard in guards):
        raise NotSequential("a reduction in which the first thread may not take part, and start it", across)
    return start, seq(*others)


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    """What has to hold for what stands in branches."""
    while isinstance(stmt, IfThenElse) and stmt.otherwise is None:
        yield from _terms(stmt.condition)
        stmt = stmt.then


def _terms(condition: Expr) -> Iterator[Expr]:
    """What a conjunction says."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        yield from _terms(condition.lhs)
        yield from _terms(condition.rhs)
    else:
        yield condition


def _keeps_first(guard: Expr, along: AbstractSet[Var]) -> bool:
    """Whether the first thread, in the first iteration of loops, takes part where any does: a bound on what does not
    shrink `along` variables. TVM starts a reduction also where the first does not take part, and results differ there.
    """
    if next(loads_in(guard), None) is not None:
        return False
    used = along & set(free_variables(guard))
    match guard:
        case Compare(op=CompareOp.LT | CompareOp.LE, lhs=lhs, rhs=rhs):
            while isinstance(lhs, Binary) and lhs.op is BinaryOp.FLOORDIV and _is_positive(lhs.rhs):
                lhs = lhs.lhs
            return not used & set(free_variables(rhs)) and all(_grows(lhs, axis) for axis in used)
        case _:
            return not used


def _is_positive(number: Expr) -> bool:
    return isinstance(number, IntImm) and number.value > 0


def _is_first(values: AbstractSet[Expr], axis: Var) -> bool:
    """Whether values, none of which is ever below where it has to be, are all there for the first thread on an axis
    only: one of them grows along it, or the quotient and the remainder of one that does are among them.
    """
    found = set(values)
    while not any(_grows(value, axis) for value in found):
        pairs = ((whole, part) for whole in found for part in found)
        wholes = {divided for whole, part in pairs if (divided := _divided(whole, part)) is not None}
        if wholes <= found:
            return False
        found |= wholes
    return True


def wholes(values: Iterable[Expr]) -> set[Expr]:
    """Values, and what any two of them are the quotient and the remainder of."""
    found = set(map(_normal, values))
    while more := {w for a in found for b in found if (w := _divided(a, b)) is not None} - found:
        found |= more
    return found


def _divided(quotient: Expr, remainder: Expr) -> Expr | None:
    """What two values are the quotient and the remainder of, by a positive number; None if of nothing."""
    match quotient, remainder:
        case (
            Binary(op=BinaryOp.FLOORDIV, lhs=whole, rhs=IntImm(value=by)),
            Binary(op=BinaryOp.FLOORMOD, lhs=part, rhs=IntImm(value=also)),
        ) if by == also > 0:
            if whole == part:
                return whole
            match whole:  # a multiple of the number may be taken away first
                case Binary(op=BinaryOp.FLOORMOD, lhs=inner, rhs=IntImm(value=most)) if inner == part:
                    return whole if most > 0 and most % by == 0 else None
                case _:
                    return None
        case _:
            return None


def _grows(value: Expr, axis: Var) -> bool:
    """Whether a value is seen to be larger for each next thread on an axis."""
    match value:
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB as op, lhs=lhs, rhs=rhs):
            if axis not in free_variables(rhs):
                return _grows(lhs, axis)
            rest = axis not in free_variables(lhs) or _grows(lhs, axis)
            return op is BinaryOp.ADD and rest and _grows(rhs, axis)
        case Binary(op=BinaryOp.MUL, lhs=lhs, rhs=IntImm(value=number)):
            return number > 0 and _grows(lhs, axis)
        case Binary(op=BinaryOp.MUL, lhs=IntImm(value=number), rhs=rhs):
            return number > 0 and _grows(rhs, axis)
        case Cast(value=inner):
            return inner.dtype.is_integer and inner.dtype.bits <= value.dtype.bits and _grows(inner, axis)
        case _:
            return value == axis


def _normal(value: Expr) -> Expr:
    """A value, the remainder of a quotient by literals as the quotient of a remainder."""
    match value:
        case Binary(
            op=BinaryOp.FLOORMOD, lhs=Binary(op=BinaryOp.FLOORDIV, lhs=inner, rhs=IntImm(value=c)), rhs=IntImm(value=d)
        ) if c > 0 and d > 0:
            return binary(
                BinaryOp.FLOORDIV, binary(BinaryOp.FLOORMOD, inner, const(c * d, value.dtype)), const(c, value.dtype)
            )
        case _:
            return value


def _control(node: Node) -> tuple[Expr, ...]:
    """What decides whether, and how often, the statements in a statement run."""
    match node:
        case IfThenElse(condition=condition):
            return (condition,)
        case For(start=start, extent=extent):
            return start, extent
        case _:
            return ()


def _is_of_tuple(store: BufferStore, written: AbstractSet[Var]) -> bool:
    """Whether a store is of something made from what cells at its own place hold."""
    mine = [load for load in loads_in(store.value) if load.buffer.data in written]
    return bool(mine) and all(load.indices == store.indices for load in mine)


def _check_lets(stmt: Stmt, written: AbstractSet[Var]) -> None:
    """That what lets bind may be written into the values of stores: what was there when the let was evaluated is what
    is there when the one store to that memory runs. Raises NotSequential.
    """
    for node in walk(stmt):
        if isinstance(node, Let):
            seen = {load.buffer.data for load in loads_in(node.value)} & written
            stores = list(stores_in(node.body))
            if any(sum(store.buffer.data == data for store in stores) > 1 for data in seen):
                raise NotSequential("a reduction over threads that stores twice to what it loads first", node)


def _plain(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Let):
        return _plain(substitute(stmt.body, {stmt.var: stmt.value}))
    if isinstance(stmt, Seq):
        return seq(*map(_plain, stmt.body))
    return map_children(stmt, lambda child: _plain(child) if isinstance(child, Stmt) else child)


def _varies(axes: AbstractSet[Var], *expressions: Expr) -> bool:
    return any(v in axes for expression in expressions for v in free_variables(expression)) or any(
        next(loads_in(expression), None) is not None for expression in expressions
    )


def _part(store: BufferStore) -> tuple[BinaryOp, Expr] | None:
    """The operator and the other operand, where a store joins something to its own cell."""
    value = store.value
    if not isinstance(value, Binary) or value.op not in _JOINS:
        return None
    cell = BufferLoad(store.buffer, store.indices)
    if value.lhs == cell:
        return value.op, value.rhs
    return (value.op, value.lhs) if value.rhs == cell else None


NONE = Buffer("none", INT32, (), Var("none", HANDLE))
"""Where a store stands for a reduction over threads without parts."""

_Around = tuple[Stmt, ...]


def not_begun(body: Stmt) -> Stmt:
    """A store to `NONE` wherever a block reduces over threads, and the first of them has nothing to join in the first
    iteration of the loops along which it reduces. TVM stores the start before these loops, hence also there, and with
    one thread; a loop stores nothing.
    """
    return _decided(seq(*(_missed(*found) for found in _reductions(body, (), {}))))


def _reductions(stmt: Stmt, around: _Around, values: Mapping[Var, Expr]) -> Iterator[tuple[Expr, _Around, set[Var]]]:
    """What starts each reduction over threads, the loops, branches and memory around it, and what it reduces along;
    `values` are those of variables of lets and blocks, which are written out.
    """
    match stmt:
        case IfThenElse(condition=condition, then=then, otherwise=otherwise):
            known = substitute(condition, values)
            yield from _reductions(then, (*around, IfThenElse(known, NOTHING)), values)
            if otherwise is not None:
                yield from _reductions(otherwise, (*around, IfThenElse(negated(known), NOTHING)), values)
        case Let(var=var, value=value, body=body):
            yield from _reductions(body, around, {**values, var: substitute(value, values)})
        case Block():
            yield from _in_block(stmt, around, values)
        case For(start=start, extent=extent, body=body):
            loop = replace(stmt, start=substitute(start, values), extent=substitute(extent, values))
            yield from _reductions(body, (*around, loop), values)
        case Allocate(body=body) | DeclBuffer(body=body):
            yield from _reductions(body, (*around, stmt), values)
        case _:
            for child in children(stmt):
                if isinstance(child, Stmt):
                    yield from _reductions(child, around, values)


def _in_block(block: Block, around: _Around, values: Mapping[Var, Expr]) -> Iterator[tuple[Expr, _Around, set[Var]]]:
    inside = {**values, **{v.var: substitute(v.binding, values) for v in block.iter_vars}}
    guard = IfThenElse(substitute(block.where, inside), NOTHING)
    around = (*around, guard, *(Allocate(buffer, NOTHING) for buffer in block.alloc_buffers))
    reduced = [inside[v.var] for v in block.iter_vars if v.kind is IterKind.REDUCE]
    along = {v for value in reduced for v in free_variables(value)}
    threads = {loop.var for loop in around if isinstance(loop, For) and loop.kind is ForKind.THREAD_BINDING}
    if block.init is not None and along & threads:
        yield substitute(at_first_update(block), inside), around, along
    yield from _reductions(block.body, around, inside)


def _missed(first: Expr, around: _Around, along: set[Var]) -> Stmt:
    """Where a reduction has no part: conditions on what it reduces along have to hold at first, and such loops have an
    iteration; others say where that is asked.
    """
    missed = seq(*map(_where_not, _terms(first)))
    for stmt in reversed(around):
        match stmt:
            case For(var=var, start=start, extent=extent, kind=kind) if var in along:
                some = const(0, extent.dtype) < extent
                missed = substitute(missed, {var: start})
                is_axis = kind is ForKind.THREAD_BINDING  # without threads no kernel runs
                missed = IfThenElse(some, missed) if is_axis else seq(_where_not(some), missed)
            case IfThenElse(condition=condition):
                for term in _terms(condition):
                    at_first = along & set(free_variables(term))
                    missed = seq(_where_not(term), missed) if at_first else IfThenElse(term, missed)
            case For():
                missed = replace(stmt, kind=ForKind.SERIAL, thread=None, body=missed)
            case Allocate() | DeclBuffer():
                missed = replace(stmt, body=missed)
            case _:
                pass
    return missed


def _where_not(term: Expr) -> Stmt:
    return IfThenElse(negated(term), BufferStore(NONE, (), IntImm(0)))


def _decided(stmt: Stmt) -> Stmt:
    """Without branches that are never taken, as far as numbers alone say so."""
    match stmt:
        case Seq(body=body):
            return seq(*map(_decided, body))
        case IfThenElse(condition=condition, then=then):
            inner = NOTHING if _is_false(condition) else _decided(then)
            return NOTHING if inner == NOTHING else replace(stmt, then=inner)
        case For(body=body) | Allocate(body=body) | DeclBuffer(body=body):
            inner = _decided(body)
            return NOTHING if inner == NOTHING else replace(stmt, body=inner)
        case _:
            return stmt


def _is_false(condition: Expr) -> bool:
    if foreign_part(condition) is not None or next(iter(free_variables(condition)), None) is not None:
        return False
    try:
        return not evaluate(condition, {})
    except (Trap, Overflow):
        return False  # it has no value, and is left to the question
