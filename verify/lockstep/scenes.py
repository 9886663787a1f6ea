"""What both programs' expressions are said in: the loops that they share, under one name, and what is known there.

A variable of either program is replaced by what it stands for (`Env`): a shared loop, an expression over shared loops. Part of the
trust base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import Call, Limit, OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import For, ForKind
from layoutproof.ir.subst import fresh, substitute
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.facts import Facts
from layoutproof.verify.instances import Dim, Guard, Scene, Unknown, conjuncts, keeps_range

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


def shared_name(name: str, scene: Scene, facts: Facts) -> str:
    """A name like `name` that nothing at the scene has."""
    taken = {dim.var.name for dim in scene.dims} | {u.var.name for u in scene.unknowns} | {v.name for v in facts.program.symbols}
    taken |= {p.name for p in facts.program.function.params}
    return fresh(name, taken)


def enter(loop: For, start: Expr, extent: Expr, scene: Scene, facts: Facts) -> tuple[Var, Scene]:
    """The shared variable of a loop, and the scene inside it."""
    var = Var(shared_name(loop.var.name, scene, facts), loop.var.dtype)
    return var, scene.inside(Dim(var, start, extent, ForKind.SERIAL))


def with_unknown(scene: Scene, var: Var, source: Expr) -> Scene:
    """The scene with a number of which only the type is known."""
    return replace(scene, unknowns=(*scene.unknowns, Unknown(var, source)))


def where(scene: Scene, condition: Expr, holds: bool = True) -> Scene:
    """The scene with what a condition over the shared names says there; what no index arithmetic says is left out."""
    told = {u.var for u in scene.unknowns}

    def is_said(expr: Expr) -> bool:
        return is_speakable(expr) and all("@" not in v.name or v in told for v in free_variables(expr))

    added = tuple(g for g in conjuncts(condition, holds) if is_said(g.condition) and not _is_plain(g))
    return replace(scene, guards=(*scene.guards, *added)) if added else scene


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


def is_exact(expr: Expr, scene: Scene, facts: Facts, data: frozenset[Var]) -> bool:
    """Whether an integer expression in a place where arithmetic wraps has the value that it has over the integers.

    `data` are variables that stand for what was loaded.
    """
    unknowns = tuple(Unknown(v, v) for v in free_variables(expr) if v in data and v not in {u.var for u in scene.unknowns})
    inside = replace(scene, unknowns=(*scene.unknowns, *unknowns))
    for node in walk(expr):
        if isinstance(node, Expr) and node.dtype.is_integer and not keeps_range(node):
            if not facts.interval(node, inside).fits(node.dtype):
                return False
    return True


def is_exact_condition(expr: Expr, scene: Scene, facts: Facts, data: frozenset[Var]) -> bool:
    """The same for a condition: comparisons without data are index arithmetic, which fits its types wherever it stands."""
    for node in walk(expr):
        if isinstance(node, Compare) and data & set(free_variables(node)):
            if not (is_exact(node.lhs, scene, facts, data) and is_exact(node.rhs, scene, facts, data)):
                return False
    return True


def reads_nothing(expr: Node) -> bool:
    """Whether an expression is a function of its variables alone: nothing loaded, undefined or called."""
    return not any(isinstance(node, BufferLoad | Undef | OpaqueCall) for node in walk(expr))


def has_calls(expr: Node) -> bool:
    """Whether something that nobody looks into is called."""
    return any(isinstance(node, OpaqueCall) for node in walk(expr))


def zero(dtype: DType) -> Expr:
    """The zero of a type."""
    return const(False if dtype.is_bool else 0, dtype)
