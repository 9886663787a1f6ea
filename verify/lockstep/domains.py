"""What the expressions of both programs are written in: the loops that they share, under one name, what is known there,
and the questions that the walk asks about it. Structure is tried first, polynomials next, the engines last. Part of
the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, IntImm, Logical, Not, Select, Var, const
from layoutproof.ir.intrinsics import Call, Limit, OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.visit import free_variables, fresh, holds_any, substitute, walk
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, Unknown, conjuncts, keeps_range
from layoutproof.verify.program.questions import Search, below, differ


class Mismatch(Exception):
    """The two programs are not known to do the same here; `reason` is a sentence that names the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Env = Mapping[Var, Expr]

_SAID = (IntImm, Var, Binary, Compare, Logical, Not, Select, IfThenElseExpr, Cast, Call, Limit)


def say(expr: Expr, env: Env) -> Expr:
    """An expression of a program over the shared names."""
    return substitute(expr, env) if env else expr


def bind(env: Env, var: Var, value: Expr) -> Env:
    """The environment with one more variable; one that stands for itself needs no entry."""
    found = {v: e for v, e in env.items() if v != var}
    if value != var:
        found[var] = value
    return found


def shared_name(name: str, domain: IterationDomain, facts: Facts) -> str:
    """A name like `name` that nothing at the iteration domain has."""
    taken = (
        {dim.var.name for dim in domain.dims}
        | {u.var.name for u in domain.unknowns}
        | {v.name for v in facts.program.symbols}
    )
    taken |= {p.name for p in facts.program.function.params}
    return fresh(name, taken)


def enter(loop: For, start: Expr, extent: Expr, domain: IterationDomain, facts: Facts) -> tuple[Var, IterationDomain]:
    """The shared variable of a loop, and the iteration domain inside it."""
    var = Var(shared_name(loop.var.name, domain, facts), loop.var.dtype)
    return var, domain.inside(Dim(var, start, extent, ForKind.SERIAL))


def with_unknown(domain: IterationDomain, var: Var, source: Expr) -> IterationDomain:
    """The iteration domain with a number of which only the type is known."""
    return replace(domain, unknowns=(*domain.unknowns, Unknown(var, source)))


def where(domain: IterationDomain, condition: Expr, holds: bool = True) -> IterationDomain:
    """The iteration domain with a condition over the shared names, as far as it is index arithmetic."""
    told = {u.var for u in domain.unknowns}

    def is_said(expr: Expr) -> bool:
        return is_speakable(expr) and all("@" not in v.name or v in told for v in free_variables(expr))

    added = tuple(g for g in conjuncts(condition, holds) if is_said(g.condition) and not _is_plain(g))
    return replace(domain, guards=(*domain.guards, *added)) if added else domain


def _is_plain(guard: Guard) -> bool:
    return isinstance(guard.condition, IntImm) and bool(guard.condition.value) == guard.holds


def is_speakable(expr: Expr) -> bool:
    """Whether an expression is index arithmetic, or a condition on it: what the engines can be asked about.

    Comparisons of numbers that index arithmetic makes are exact; data has no place here.
    """
    for node in walk(expr):
        if isinstance(node, Call) and node.function != "abs":
            return False
        if not isinstance(node, _SAID) or not isinstance(node, Expr):
            return False
        if node.dtype.lanes != 1 or not (node.dtype.is_integer or (node.dtype.is_bool and not isinstance(node, Var))):
            return False
        if isinstance(node, Cast) and node.value.dtype.is_bool != node.dtype.is_bool:
            return False
    return True


def is_exact(expr: Expr, domain: IterationDomain, facts: Facts, data: frozenset[Var]) -> bool:
    """Whether an integer expression in a place where arithmetic wraps has the value that it has over the integers.

    `data` are variables that stand for what was loaded.
    """
    unknowns = tuple(
        Unknown(v, v) for v in free_variables(expr) if v in data and v not in {u.var for u in domain.unknowns}
    )
    inside = replace(domain, unknowns=(*domain.unknowns, *unknowns))
    for node in walk(expr):
        if isinstance(node, Expr) and node.dtype.is_integer and not keeps_range(node):
            if not facts.interval(node, inside).fits(node.dtype):
                return False
    return True


def is_exact_condition(expr: Expr, domain: IterationDomain, facts: Facts, data: frozenset[Var]) -> bool:
    """The same for a condition: comparisons without data are index arithmetic, which fits its types everywhere."""
    for node in walk(expr):
        if isinstance(node, Compare) and data & set(free_variables(node)):
            if not (is_exact(node.lhs, domain, facts, data) and is_exact(node.rhs, domain, facts, data)):
                return False
    return True


def reads_nothing(expr: Node) -> bool:
    """Whether an expression is a function of its variables alone: nothing loaded, undefined or called."""
    return not holds_any(expr, BufferLoad, Undef, OpaqueCall)


def has_calls(expr: Node) -> bool:
    """Whether there are opaque calls."""
    return holds_any(expr, OpaqueCall)


def zero(dtype: DType) -> Expr:
    """The zero of a type."""
    return const(False if dtype.is_bool else 0, dtype)


_Key = tuple[tuple[Dim, ...], tuple[Guard, ...], tuple[Unknown, ...], tuple[Expr, ...]]


class Asking:
    """Questions about iteration domains, answered once each. `engines` are those that proved something."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.engines: dict[str, None] = {}
        self._symbols = set(facts.program.symbols)
        self._known: dict[_Key, bool] = {}

    def never(self, domain: IterationDomain, *conditions: Expr) -> bool:
        """Whether the iteration domain certainly has no instance where all conditions hold."""
        key = (domain.dims, domain.guards, domain.unknowns, conditions)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._never(domain, conditions)
        return known

    def _never(self, domain: IterationDomain, conditions: Sequence[Expr]) -> bool:
        if any(not is_speakable(c) for c in conditions) or not self._is_closed(domain, conditions):
            return False
        found: Search = self.facts.search(domain, *conditions)
        if found.is_empty:
            self.engines.setdefault(found.engine)
        return found.is_empty

    def _is_closed(self, domain: IterationDomain, conditions: Sequence[Expr]) -> bool:
        """Whether every variable means something at the iteration domain."""
        told = self._symbols | {d.var for d in domain.dims} | {u.var for u in domain.unknowns}
        return all(v in told for c in conditions for v in free_variables(c))

    def is_of_symbols(self, expr: Expr, dtype: DType) -> bool:
        """Whether an expression is made of the program's symbols and constants alone, all of one type."""
        variables = free_variables(expr)
        return expr.dtype == dtype and set(variables) <= self._symbols and all(v.dtype == dtype for v in variables)

    def always(self, domain: IterationDomain, condition: Expr) -> bool:
        """Whether the condition holds at every instance of the iteration domain."""
        if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
            return self.always(domain, condition.lhs) and self.always(domain, condition.rhs)
        return is_plain(domain, condition) or self.never(domain, Not(condition))

    def is_empty(self, domain: IterationDomain) -> bool:
        """Whether nothing ever happens there."""
        return bool(domain.dims or domain.guards) and self.never(domain)

    def equal(self, domain: IterationDomain, a: Expr, b: Expr) -> bool:
        """Whether two integers without lanes are the same at every instance, over the integers."""
        if a == b:
            return True
        if not (is_speakable(a) and is_speakable(b)):
            return False
        difference = Polynomial.of(a).plus(Polynomial.of(b), -1)
        number = difference.constant
        if number is not None:
            return number == 0
        return self.never(domain, differ(a, b))

    def is_below(self, domain: IterationDomain, a: Expr, b: Expr | int) -> bool:
        """Whether `a < b` at every instance."""
        return self.always(domain, below(a, b))


def is_plain(domain: IterationDomain, condition: Expr) -> bool:
    """Whether a condition is true as it stands: a constant, or a bound of a loop that is the loop's own."""
    match condition:
        case IntImm(value=value):
            return bool(value)
        case Compare(op=CompareOp.GE, lhs=lhs, rhs=IntImm(value=low)):
            return any(d.var == lhs and isinstance(d.start, IntImm) and d.start.value >= low for d in domain.dims)
        case Compare(op=CompareOp.LT, lhs=lhs, rhs=rhs):
            return any(
                d.var == lhs and isinstance(d.start, IntImm) and d.start.value == 0 and _same(d.extent, rhs)
                for d in domain.dims
            )
        case _:
            return False


def _same(a: Expr, b: Expr) -> bool:
    return a == b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value <= b.value)
