"""Expressions as index arithmetic over loops, symbols and unknowns; data-dependent values are unknowns of their type.

Two loads of a cell that never changes are the same unknown. Arithmetic on data may wrap, so a guard with such
arithmetic is dropped. Part of the trusted computing base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Broadcast, Cast, Compare, Expr, IntImm, Ramp, Var
from layoutproof.ir.interval import interval_of
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, OpaqueCall, PointerCast, StringImm, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, For, ForKind, Let
from layoutproof.ir.visit import children, free_variables, fresh, map_children, take_fresh, walk
from layoutproof.verify.program.instances import (
    Dim,
    Guard,
    IterationDomain,
    Unknown,
    conjuncts,
    domain_ranges,
    keeps_range,
)

Env = dict[Var, Expr]


class Inexpressible(Exception):
    """An expression that is no index arithmetic."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A function's symbols, all its names, and which memory changes while it runs."""

    symbols: tuple[Var, ...]
    names: frozenset[str]
    changing: frozenset[Var]
    all_change: bool


_SURVEYS: Kept[Survey] = Kept(64)


def survey_of(function: PrimFunc) -> Survey:
    """One walk over a function: symbols are scalar parameters, names in shapes, and what the body does not bind."""
    return _SURVEYS.get(function, (), lambda: _surveyed(function))


def _surveyed(function: PrimFunc) -> Survey:
    symbols: dict[Var, None] = {p: None for p in function.params if p.dtype.is_integer}
    for buffer in function.buffers:
        for extent in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            symbols.update(dict.fromkeys(free_variables(extent)))
    bound, used, stored, hidden = set[Var](), dict[Var, None](), set[Var](), False
    seen: set[int] = set()
    stack: list[Node] = [function.body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case Var():
                used.setdefault(node)
            case For(var=var) | Let(var=var):
                bound.add(var)
                # Stores through another pointer name are not seen.
                hidden = hidden or var.dtype == HANDLE
            case Block(iter_vars=iter_vars):
                bound |= {iter_var.var for iter_var in iter_vars}
            case BufferStore(buffer=buffer):
                stored.add(buffer.data)
            case OpaqueCall():
                hidden = True
            case _:
                pass
        stack += children(node)[::-1]
    parameters = {buffer.data for buffer in function.buffers}
    overlap = not function.noalias and bool(stored & parameters)
    symbols.update({v: None for v in used if v.dtype.is_integer and v not in bound})
    names = frozenset(v.name for v in (*used, *bound, *symbols, *function.params))
    return Survey(tuple(symbols), names, frozenset(stored | parameters if overlap else stored), hidden)


class Abstraction:
    """The unknowns of one function, and its expressions over them."""

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self._known: dict[Expr, Unknown] = {}
        self._groups = 0
        self._names = set(survey.names)

    def fresh(self, name: str) -> str:
        """A new name like `name`."""
        return take_fresh(name, self._names)

    def unknown(self, source: Expr, domain: IterationDomain, name: str) -> tuple[Var, IterationDomain]:
        """A new unknown for `source`, and the iteration domain in which it is there."""
        unknown = Unknown(Var(self.fresh(name), source.dtype.element), source)
        return unknown.var, replace(domain, unknowns=(*domain.unknowns, unknown))

    def abstract(self, expr: Expr, domain: IterationDomain, env: Env) -> tuple[Expr, IterationDomain]:
        """`expr` with block variables and lets replaced, data by unknowns. Raises Inexpressible."""
        current = domain

        def visit(node: Node) -> Node:
            nonlocal current
            match node:
                case Var():
                    value = env.get(node, node)
                    if not value.dtype.is_integer:
                        raise Inexpressible
                    return value
                case Limit(kind=kind, dtype=dtype) if dtype.is_integer:
                    return IntImm(dtype.max_int if kind is LimitKind.MAX else dtype.min_int, dtype)
                case BufferLoad() | OpaqueCall() | Undef() | PointerCast() | StringImm():
                    assert isinstance(node, Expr)
                    result, current = self._data(node, current, env)
                    return result
                case Cast(value=value) if not value.dtype.is_integer and not value.dtype.is_bool:
                    assert isinstance(node, Expr)
                    result, current = self._data(node, current, env)
                    return result
                case Compare(lhs=lhs) if not lhs.dtype.is_integer:
                    raise Inexpressible
                case Ramp() | Broadcast():
                    raise Inexpressible
                case _:
                    pass
            return map_children(node, visit)

        result = visit(expr)
        assert isinstance(result, Expr)
        return result, current

    def _data(self, node: Expr, domain: IterationDomain, env: Env) -> tuple[Var, IterationDomain]:
        """The unknown for a value that data decides: the same one for two loads of a cell that never changes."""
        if not node.dtype.is_integer or node.dtype.lanes > 1:
            raise Inexpressible
        if not (isinstance(node, BufferLoad) and self._is_stable(node.buffer)):
            return self.unknown(node, domain, _name_of(node))
        indices, current = [], domain
        for index in node.indices:
            result, current = self.abstract(index, current, env)
            indices.append(result)
        key = BufferLoad(node.buffer, tuple(indices))
        known = self._known.get(key)
        if known is None:
            var, current = self.unknown(key, current, _name_of(node))
            self._known[key] = Unknown(var, key)
            return var, current
        if known not in current.unknowns:
            current = replace(current, unknowns=(*current.unknowns, known))
        return known.var, current

    def _is_stable(self, buffer: Buffer) -> bool:
        """Whether two loads of a cell agree, because nothing writes the memory."""
        return not self._survey.all_change and buffer.data not in self._survey.changing

    def under(self, condition: Expr, holds: bool, domain: IterationDomain, env: Env) -> IterationDomain:
        """The domain with a condition's conjuncts added; those that have no exact expression are in `dropped`."""
        guards, dropped, current = list(domain.guards), list(domain.dropped), domain
        self._groups += 1
        for guard in conjuncts(condition, holds):
            try:
                result, current = self.abstract(guard.condition, current, env)
            except Inexpressible:
                dropped.append(guard.condition)
                continue
            if _may_wrap(result, current):
                dropped.append(guard.condition)
            elif result != IntImm(int(guard.holds), result.dtype):
                guards.append(Guard(result, guard.holds, self._groups))
        return replace(current, guards=tuple(guards), dropped=tuple(dropped), time=domain.time)

    def lane(self, expr: Expr) -> Dim:
        """The coordinate that counts the lanes of a vector."""
        dtype = expr.dtype.element if expr.dtype.is_integer else IntImm(0).dtype
        return Dim(
            Var(fresh("lane", self._names), dtype),
            IntImm(0, dtype),
            IntImm(expr.dtype.lanes, dtype),
            ForKind.VECTORIZED,
            lane=True,
        )


def _name_of(node: Expr) -> str:
    return f"{node.buffer.name}_value" if isinstance(node, BufferLoad) else "value"


def in_lane(expr: Expr, lane: Var) -> Expr:
    """One lane of a vector of integers. Raises Inexpressible for lanes not made of ramps, broadcasts and arithmetic."""
    match expr:
        case Ramp(base=base, stride=stride):
            return base + lane * stride if base.dtype == lane.dtype else base + Cast(base.dtype, lane) * stride
        case Broadcast(value=value):
            return value
        case Cast(dtype=dtype, value=value) if value.dtype.is_integer:
            return Cast(dtype.element, in_lane(value, lane))
        case BufferLoad() | OpaqueCall() | Call() | Undef():
            raise Inexpressible
        case _:
            pass
    if expr.dtype.lanes == 1:
        return expr

    def visit(node: Node) -> Node:
        return in_lane(node, lane) if isinstance(node, Expr) else node

    return map_children(expr, visit)


def _may_wrap(expr: Expr, domain: IterationDomain) -> bool:
    """Whether a condition on data has arithmetic that could leave its type, so that it is no condition on integers.

    Beside data, arithmetic on loops wraps too: only a condition without data is index arithmetic.
    """
    if not {u.var for u in domain.unknowns} & set(free_variables(expr)):
        return False
    ranges = domain_ranges(domain, {})
    parts = [node for node in walk(expr) if isinstance(node, Expr) and node.dtype.is_integer]
    return any(not keeps_range(part) and not interval_of(part, ranges).fits(part.dtype) for part in parts)
