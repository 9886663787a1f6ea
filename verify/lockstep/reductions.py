"""The init of a block's reduction as statements: once for each spatial instance before the reduction, or in its first iteration.

These say where an init may stand in a program without blocks; that it may stand there is proved in `inits.py`. Meaning:
`ir/interp/walker.py`, `pending`. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from layoutproof.ir.expr import Expr, IntImm, Not, Var, equal, logical_and
from layoutproof.ir.interp.facts import InitScope
from layoutproof.ir.stmt import Block, For, IfThenElse, IterKind, Let, Stmt
from layoutproof.ir.visit import free_variables
from layoutproof.verify.integers import at_least, below
from layoutproof.verify.lockstep.refusal import Mismatch
from layoutproof.verify.lockstep.scenes import reads_nothing


@dataclass(frozen=True, slots=True)
class Step:
    """A statement on the way from a reduction's outermost loop to its block. `told`: what it says needs no variable that is left out
    when the init runs for instances without an update. `then`: of a branch, which side the way takes.
    """

    stmt: Stmt
    told: bool
    then: bool = True


def block_of(scope: InitScope) -> tuple[Block, Stmt]:
    """The block of a reduction and its init."""
    block = scope.path[-1]
    if not isinstance(block, Block) or block.init is None:
        raise Mismatch("a reduction without a block that has an init")
    return block, block.init


def steps(scope: InitScope) -> tuple[list[Step], frozenset[Var]]:
    """The way from the outermost loop to the block, both included, and the variables that are left out."""
    found: list[Step] = []
    gone: set[Var] = set()

    def told(*exprs: Expr) -> bool:
        return all(reads_nothing(e) and not gone & set(free_variables(e)) for e in exprs)

    for position, stmt in enumerate(scope.path):
        inner = scope.path[position + 1] if position + 1 < len(scope.path) else None
        match stmt:
            case For(var=var, start=start, extent=extent):
                spatial = var.name in scope.spatial
                found.append(Step(stmt, spatial and told(start, extent)))
                if not spatial:
                    gone.add(var)
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                if then is otherwise:
                    raise Mismatch("both sides of a branch are one statement, with a reduction in it")
                found.append(Step(stmt, told(condition), then is inner))
            case Let(var=var, value=value):
                found.append(Step(stmt, var.dtype.is_integer and told(value)))
                if not found[-1].told:
                    gone.add(var)
            case Block(iter_vars=iter_vars, where=where, init=init):
                if init is inner and inner is not None:
                    raise Mismatch(f"a reduction stands in the init of block {stmt.name}")
                for iter_var in iter_vars:
                    if not told(iter_var.binding) or (inner is None and iter_var.kind is IterKind.REDUCE):
                        gone.add(iter_var.var)
                found.append(Step(stmt, told(where)))
            case _:
                pass
    return found, frozenset(gone)


def hoisted_init(scope: InitScope) -> Stmt:
    """The init for every spatial instance of one run of the reduction: what is left out leaves no trace.

    Raises Mismatch where the spatial instances cannot be told without the loops that are left out.
    """
    block, init = block_of(scope)
    way, gone = steps(scope)
    missing = [v.name for v in free_variables(init) if v in gone]
    if missing:
        raise Mismatch(f"the init of block {block.name} needs {missing[0]}, which changes in the course of the reduction")
    if not all(reads_nothing(condition) for condition in domains(block)):
        raise Mismatch(f"the domain of a variable of block {block.name} depends on data")
    result: Stmt = IfThenElse(logical_and(*domains(block)), init) if domains(block) else init
    for iter_var in reversed([v for v in block.iter_vars if v.kind is not IterKind.REDUCE]):
        if iter_var.var in gone:
            raise Mismatch(f"{iter_var.var.name} of block {block.name} depends on the loops of its reduction")
        result = Let(iter_var.var, iter_var.binding, result)
    for step in reversed(way[:-1]):
        result = _around(step, result, scope, gone)
    return result


def _around(step: Step, result: Stmt, scope: InitScope, gone: frozenset[Var]) -> Stmt:
    match step.stmt:
        case For(var=var) as loop if var.name in scope.spatial:
            if not step.told:
                raise Mismatch(f"the range of loop {var.name} depends on the loops of its reduction")
            return replace(loop, body=result)
        case IfThenElse(condition=condition) if step.told:
            return IfThenElse(condition if step.then else Not(condition), result)
        case Let(var=var, value=value) if step.told:
            return Let(var, value, result)
        case Block(iter_vars=iter_vars, where=where):
            guarded = IfThenElse(where, result) if step.told else result
            for iter_var in reversed([v for v in iter_vars if v.var not in gone]):
                guarded = Let(iter_var.var, iter_var.binding, guarded)
            return guarded
        case _:
            return result


def guarded_init(scope: InitScope) -> Stmt:
    """The init at the block, in the first iteration of every loop that repeats."""
    block, init = block_of(scope)
    inside: Stmt = IfThenElse(logical_and(*domains(block)), init) if domains(block) else init
    first = [equal(loop.var, loop.start) for loop in repeating(scope)]
    return IfThenElse(logical_and(*first), inside) if first else inside


def repeating(scope: InitScope) -> list[For]:
    """The loops of a reduction that no spatial variable uses."""
    return [s for s in scope.path if isinstance(s, For) and s.var.name not in scope.spatial]


def domains(block: Block) -> list[Expr]:
    """That the block's spatial variables lie in their domains: elsewhere there is no instance."""
    return list(_domains(block))


def _domains(block: Block) -> Iterator[Expr]:
    for iter_var in block.iter_vars:
        if iter_var.kind is not IterKind.REDUCE:
            start, extent = iter_var.domain.start, iter_var.domain.extent
            zero = isinstance(start, IntImm) and start.value == 0
            yield at_least(iter_var.var, start)
            yield below(iter_var.var, extent if zero else start + extent)
