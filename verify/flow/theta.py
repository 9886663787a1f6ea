"""Which old instance each new instance computes: the witness's theta, said over the dims of the statements.

A witness speaks of the loops around a store, outermost first, and of its lanes after them where it says so. A statement has a dim for
each of them, and further ones (the cells of a scatter, large lets).
Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.rewrite import InstanceMap, Rewrite
from layoutproof.ir.stmt import For
from layoutproof.ir.subst import substitute
from layoutproof.ir.visit import loops_of_stores
from layoutproof.verify.instances import Dim
from layoutproof.verify.statements import NotModelled, Statement, Statements


@dataclass(frozen=True, slots=True)
class Counterpart:
    """The claim that instance `d` of `new` (where `where` holds) computes instance `outputs(d)` of `old`, one output for each of its
    dims; both are claims about instances that exist.
    """

    new: Statement
    old: Statement
    outputs: tuple[Expr, ...]
    where: Expr | None


def counterparts(rewrite: Rewrite, old: Statements, new: Statements) -> dict[int, tuple[Counterpart, ...]]:
    """The counterparts of each new statement by its number. Raises NotModelled for a witness that does not fit its programs."""
    old_loops, new_loops = loops_of_stores(rewrite.old.body), loops_of_stores(rewrite.new.body)
    olds, news = _by_number(old), _by_number(new)
    found: dict[int, list[Counterpart]] = {}
    for claim in rewrite.witness.instances:
        if claim.old_store is None or claim.instances is None:
            continue
        mine, theirs = news.get(claim.new_store), olds.get(claim.old_store)
        if mine is None or theirs is None:
            # A store that is never executed has no statement, and a store that computes one that never was computes nothing.
            continue
        found.setdefault(claim.new_store, []).append(
            _counterpart(claim, mine, theirs, new_loops[claim.new_store], old_loops[claim.old_store])
        )
    return {number: tuple(claims) for number, claims in found.items()}


def _by_number(statements: Statements) -> Mapping[int, Statement]:
    return {statement.number: statement for statement in statements.statements}


def _counterpart(claim: InstanceMap, new: Statement, old: Statement, new_loops: Sequence[For], old_loops: Sequence[For]) -> Counterpart:
    assert claim.instances is not None
    inputs, outputs = claim.instances.inputs, claim.instances.outputs
    mine, theirs = _lane_said(new, len(inputs) - len(new_loops)), _lane_said(old, len(outputs) - len(old_loops))
    if len(inputs) != len(new_loops) + len(mine) or len(outputs) != len(old_loops) + len(theirs):
        raise NotModelled(
            f"the witness takes {len(inputs)} loops to {len(outputs)}, the stores stand in {len(new_loops)} and {len(old_loops)}", None
        )
    values: dict[Var, Expr] = {variable: dim.var for variable, dim in zip(inputs[len(new_loops) :], mine, strict=True)}
    for variable, loop in zip(inputs[: len(new_loops)], new_loops, strict=True):
        dim = _dim_of(new, loop)
        values[variable] = dim.var if dim is not None else loop.start
    said: dict[str, Expr] = {dim.var.name: substitute(o, values) for dim, o in zip(theirs, outputs[len(old_loops) :], strict=True)}
    for loop, output in zip(old_loops, outputs[: len(old_loops)], strict=True):
        dim = _dim_of(old, loop)
        if dim is not None:
            said[dim.var.name] = substitute(output, values)
    loops = [_dim_of(new, loop) for loop in new_loops]
    rest = [dim for dim in new.dims if dim not in (*loops, *mine) and not _is_single(dim)]
    result: list[Expr] = []
    known: dict[Var, Expr] = {}
    for dim in old.dims:
        if dim.var.name in said:
            value = said[dim.var.name]
        elif _is_single(dim):
            value = substitute(dim.start, known)
        elif rest:
            value = rest.pop(0).var
        else:
            raise NotModelled(f"the witness says nothing of {dim.var.name}, a coordinate of the old store {claim.old_store}", None)
        known[dim.var] = value
        result.append(value)
    where = substitute(claim.where, values) if claim.where is not None else None
    return Counterpart(new, old, tuple(result), where)


def _lane_said(statement: Statement, further: int) -> tuple[Dim, ...]:
    """The statement's lanes, where a witness has one coordinate more than there are loops."""
    return tuple(dim for dim in statement.dims if dim.lane)[:1] if further == 1 else ()


def _dim_of(statement: Statement, loop: For) -> Dim | None:
    return next((dim for dim in statement.dims if dim.var.name == loop.var.name), None)


def _is_single(dim: Dim) -> bool:
    """Whether the dim stands for a let: it has one value, its start."""
    return not dim.lane and dim.extent == IntImm(1, dim.extent.dtype)
