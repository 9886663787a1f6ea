"""Statements as the walk meets them: blocks are guards and bindings, lets are what they stand for, declarations are
nothing, and a fused loop is the two loops that it was made of. Part of the trust base.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferLoad, Range
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import TRUE, Expr, IntImm, Var, const
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
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
    IterVar,
    Let,
    Seq,
    Stmt,
    body_of,
)
from layoutproof.ir.visit import children, free_variables, fresh, holds_any, walk
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.lockstep.domains import Asking, Env, bind, has_calls, is_speakable, say
from layoutproof.verify.lockstep.memories import Side
from layoutproof.verify.program.instances import IterationDomain, is_index_like, is_larger
from layoutproof.verify.program.location import Place, Spot
from layoutproof.verify.program.questions import at_least, below

_LARGEST_LET = 64


@dataclass(frozen=True, slots=True)
class Fresh:
    """Memory comes into being here."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Item:
    """A step, with the values of its variables. `known` holds where it is reached, `within` in a taken branch."""

    node: Stmt | Fresh
    env: Env = field(default_factory=dict)
    known: tuple[Expr, ...] = ()
    within: tuple[Expr, ...] = ()
    block: str | None = None

    @property
    def place(self) -> Place:
        """Where it stands, for a reason."""
        match self.node:
            case Fresh(buffer=buffer):
                return Place(f"where {buffer.name} is allocated", at=buffer.name)
            case _:
                return Spot(self.node, self.block).place_of(self.node)

    def say(self, expr: Expr) -> Expr:
        """An expression of the item over the shared names."""
        return say(expr, self.env)

    def inside(self, node: Stmt, known: tuple[Expr, ...] | None = None) -> Item:
        """A statement within this one."""
        return Item(node, self.env, self.known if known is None else known, (), self.block)


@dataclass(frozen=True, slots=True)
class Flattener:
    """Makes steps of one program's statements."""

    side: Side

    def items(self, item: Item) -> list[Item]:
        """The steps that an item is, transparent ones opened."""
        found: list[Item] = []
        # With a stack of its own: what follows an allocation stands in it, in long programs thousands deep.
        stack = [item]
        while stack:
            item = stack.pop()
            node = item.node
            match node:
                case Seq(body=body):
                    stack += [item.inside(part) for part in reversed(body)]
                case AttrStmt(body=body) | DeclBuffer(body=body):
                    stack.append(item.inside(body))
                case Allocate(buffer=buffer, body=body):
                    found.append(replace(item, node=Fresh(buffer), within=()))
                    stack.append(item.inside(body))
                case Let(var=var, body=body) if var.dtype == HANDLE:
                    stack.append(item.inside(body))
                case Let(var=var, value=value, body=body) if self._stands_for(var, value, body, item.env):
                    stack.append(replace(item.inside(body), env=bind(item.env, var, item.say(value))))
                case Block():
                    steps, rest = self._block(item, node)
                    found += steps
                    stack += [rest] if rest is not None else []
                case Evaluate(value=IntImm()):
                    pass
                case _:
                    found.append(item)
        return found

    def _stands_for(self, var: Var, value: Expr, body: Stmt, env: Env) -> bool:
        """Whether a let's value is the same wherever its variable stands, so that it may be written there."""
        if is_larger(say(value, env), _LARGEST_LET) or has_calls(value) or holds_any(value, Undef):
            return False
        # Arithmetic on data wraps where it stands, and would be exact in an index.
        if _is_number(value) and _wraps(value):
            return False
        if value.dtype.is_bool and _wraps(value) and _is_in_a_place(var, body):
            return False
        return self._is_stable(value, body)

    def _is_stable(self, value: Expr, body: Node) -> bool:
        touched = self.side.touched(body)
        reads = self.side.touched(value).reads
        return not reads or not (touched.calls or self.side.spread(reads) & self.side.spread(touched.writes))

    def _block(self, item: Item, block: Block) -> tuple[list[Item], Item | None]:
        """What a block brings into being or asks for, and its body if that is to be opened."""
        name = item.block if block.is_root else block.name
        inner = replace(item, block=name, within=())
        for position, iter_var in enumerate(block.iter_vars):
            if not self._stands_for(iter_var.var, iter_var.binding, block, inner.env):
                return [replace(inner, node=_as_let(block, position))], None
            inner = replace(inner, env=bind(inner.env, iter_var.var, inner.say(iter_var.binding)))
        fresh = [replace(inner, node=Fresh(buffer)) for buffer in block.alloc_buffers]
        domains = tuple(d for v in block.iter_vars for d in domain_of(v, inner.env))
        if block.where == TRUE:
            return fresh, inner.inside(body_of(block), (*inner.known, *domains))
        guarded = IfThenElse(block.where, body_of(block), span=block.span)
        return [*fresh, replace(inner, node=guarded, within=domains)], None


def _is_number(expr: Expr) -> bool:
    return expr.dtype.is_integer and expr.dtype.lanes == 1


def _wraps(value: Expr) -> bool:
    """Whether integers are computed from data in a value, indices of loads apart."""
    if isinstance(value, BufferLoad):
        return not all(is_index_like(i) for i in value.indices)
    if _is_number(value):
        return not is_index_like(value)
    return any(_wraps(part) for part in children(value) if isinstance(part, Expr))


def _is_in_a_place(var: Var, body: Stmt) -> bool:
    """Whether a variable stands in index arithmetic, or in a value that may."""
    return any(var in free_variables(expr) for node in walk(body) for expr in _places_of(node))


def _places_of(node: Node) -> tuple[Expr, ...]:
    match node:
        case BufferLoad(indices=indices) | BufferStore(indices=indices):
            return indices
        case For(start=start, extent=extent) | Range(start=start, extent=extent):
            return start, extent
        case Buffer(shape=shape, strides=strides, elem_offset=offset):
            return *shape, *strides, offset
        case Let(value=value) | IterVar(binding=value):
            return (value,)
        case _:
            return ()


def _as_let(block: Block, position: int) -> Stmt:
    """A block one of whose variables must be kept as a value: that variable as a let around the rest."""
    iter_var = block.iter_vars[position]
    return Let(
        iter_var.var,
        iter_var.binding,
        replace(block, iter_vars=block.iter_vars[:position] + block.iter_vars[position + 1 :]),
    )


def raw_domain(iter_var: IterVar) -> tuple[Expr, Expr]:
    """That a block variable lies in its domain, in the block's own words."""
    start, extent = iter_var.domain.start, iter_var.domain.extent
    zero = isinstance(start, IntImm) and start.value == 0
    return at_least(iter_var.var, start), below(iter_var.var, extent if zero else start + extent)


def domain_of(iter_var: IterVar, env: Env) -> tuple[Expr, ...]:
    """The same over the shared names."""
    return tuple(say(condition, env) for condition in raw_domain(iter_var))


def try_apart(old: Item, new: Item, domain: IterationDomain, asking: Asking) -> tuple[list[Item], list[Item]] | None:
    """Two loops, the one with more iterations split at the other's end; None where that does not apply."""
    match old.node, new.node:
        case (For() as a, For() as b):
            theirs = _two_of(new, b, old.say(a.extent), domain, asking)
            if theirs is not None:
                return [old], [theirs]
            mine = _two_of(old, a, new.say(b.extent), domain, asking)
            return None if mine is None else ([mine], [new])
        case _:
            return None


def try_cut(old: Item, new: Item, domain: IterationDomain, asking: Asking) -> tuple[list[Item], list[Item]] | None:
    """Two loops, the longer one cut in two where the shorter one ends; None where that does not apply.

    A loop that counts up from its start is one over its first iterations, and then one over the rest, if there are that
    many.
    """
    match old.node, new.node:
        case (For() as a, For() as b):
            starts, extents = (old.say(a.start), new.say(b.start)), (old.say(a.extent), new.say(b.extent))
            if not (all(map(is_speakable, (*starts, *extents))) and asking.equal(domain, *starts)):
                return None
            mine = _cut(old, a, extents[1], domain, asking)
            if mine is not None:
                return mine, [new]
            theirs = _cut(new, b, extents[0], domain, asking)
            return None if theirs is None else ([old], theirs)
        case _:
            return None


_COUNTS_UP = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED)


def _cut(item: Item, loop: For, part: Expr, domain: IterationDomain, asking: Asking) -> list[Item] | None:
    """A loop cut after `part` iterations, as the shared names say it; None if these may be fewer than 0 or more than
    all, or are all.
    """
    start, whole, dtype = item.say(loop.start), item.say(loop.extent), loop.var.dtype
    if loop.kind not in _COUNTS_UP or any(expr.dtype != dtype for expr in (start, whole, part)):
        return None
    if asking.equal(domain, part, whole) or not asking.always(domain, at_least(part, 0)):
        return None
    if not asking.always(domain, at_least(whole, part)):
        return None
    # The new bounds are over the shared names, which the program's own may hide: names that nothing else has stand for
    # them, also where a part is cut again.
    taken = {v.name for v in item.env}
    middle, count, rest = (Var(fresh(f"{loop.var.name}'{mark}", taken), dtype) for mark in ("middle", "count", "rest"))
    env = bind(bind(bind(item.env, middle, start + part), count, part), rest, whole - part)
    first, second = replace(loop, extent=count), replace(loop, start=middle, extent=rest)
    return [replace(item, node=first, env=env), replace(item, node=second, env=env)]


def _two_of(item: Item, loop: For, outer: Expr, domain: IterationDomain, asking: Asking) -> Item | None:
    """A loop from 0 over `outer * inner` iterations, with `inner` found here, as two; None where it is no such loop.

    The loop's variable is `v_outer * inner + v_inner` then, which counts up one by one, as the two go through their
    iterations: as long as one of the two extents is not negative, both ways have none where the other has none.
    """
    start, extent, dtype = item.say(loop.start), item.say(loop.extent), loop.var.dtype
    if loop.kind is ForKind.THREAD_BINDING or not (isinstance(start, IntImm) and start.value == 0):
        return None
    if not all(is_speakable(e) and asking.is_of_symbols(e, dtype) for e in (extent, outer)):
        return None
    quotient, rest = Polynomial.of(extent).divided(Polynomial.of(outer))
    if rest.terms or quotient.constant in (0, 1):
        return None
    inner = quotient.to_expr() if quotient.constant is None else const(quotient.constant, dtype)
    if inner.dtype != dtype or not any(asking.always(domain, at_least(e, 0)) for e in (inner, outer)):
        return None
    # No program's names have such marks, so nothing in the body is captured.
    first, second = (Var(f"{loop.var.name}'{mark}", dtype) for mark in ("outer", "inner"))
    zero = const(0, dtype)
    body = Let(loop.var, first * inner + second, loop.body, span=loop.span)
    inside = replace(loop, var=second, start=zero, extent=inner, body=body)
    return replace(item, node=replace(loop, var=first, start=zero, extent=outer, body=inside))
