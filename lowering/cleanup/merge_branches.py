"""Redundant branches: neighbours under one condition or its contrary become one, equal arms need no condition.

Two conditions are equal if they are at every instance of the enclosing loops and guards: `4*i + j < 14` is the contrary
of `i == 3 and j >= 2` for i and j below 4. Conditions that read what the first branch writes stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from layoutproof.ir.expr import Expr, Not
from layoutproof.ir.intrinsics import OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import free_variables, map_children, stores_in, walk
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.cleanup.rebuild import Deciding, Here, Origins, is_total, negated
from layoutproof.lowering.passes.effects import data_read, data_written


class Relation(Enum):
    """What one condition is to another."""

    SAME = 1
    CONTRARY = 2


@dataclass(slots=True)
class Merging:
    """Merges branches of a body whose stores `origins` knows. `may` is asked about each change, in textual order."""

    func: PrimFunc
    origins: Origins
    may: Callable[[], bool]

    def run(self, body: Stmt) -> Stmt:
        """The body with branches merged."""
        return self._statement(body, Here(), Deciding(self.func.with_body(body)))

    def _statement(self, stmt: Stmt, here: Here, deciding: Deciding) -> Stmt:
        match stmt:
            case Seq(body=parts):
                done = self._sequence([self._statement(part, here, deciding) for part in parts], here, deciding)
                return (
                    stmt
                    if len(done) == len(parts) and all(a is b for a, b in zip(done, parts, strict=True))
                    else seq(*done)
                )
            case For():
                inner = here.inside(stmt)
            case Let(var=var, value=value):
                inner = here.bound(var, value)
            case Block():
                inner = here.in_block(stmt)
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                first = self._statement(then, here.under(condition), deciding)
                second = (
                    self._statement(otherwise, here.under(condition, False), deciding)
                    if otherwise is not None
                    else None
                )
                return self._one_arm(
                    stmt if first is then and second is otherwise else replace(stmt, then=first, otherwise=second), here
                )
            case _:
                inner = here
        return map_children(stmt, lambda node: self._below(node, inner, deciding))

    def _below(self, node: Node, here: Here, deciding: Deciding) -> Node:
        return self._statement(node, here, deciding) if isinstance(node, Stmt) else node

    def _sequence(self, parts: list[Stmt], here: Here, deciding: Deciding) -> list[Stmt]:
        done: list[Stmt] = []
        for part in parts:
            last = done[-1] if done else None
            if isinstance(last, IfThenElse) and isinstance(part, IfThenElse):
                relation = self._relation(last, part, here, deciding)
                if relation is not None and self.may():
                    done[-1] = self._one_arm(_merged(last, part, relation), here)
                    continue
            done.append(part)
        return done

    def _relation(self, first: IfThenElse, second: IfThenElse, here: Here, deciding: Deciding) -> Relation | None:
        """What the second condition is to the first when its turn comes; None if nothing is known."""
        one, two = first.condition, second.condition
        if any(isinstance(n, OpaqueCall | Undef) for c in (one, two) for n in walk(c)):
            return None
        opaque = any(isinstance(node, OpaqueCall) for node in walk(first))
        read = data_read(two)
        if read and (opaque or read & data_written(first) or (data_written(first) and not self.func.noalias)):
            return None
        if one == two:
            return Relation.SAME
        if negated(one) == two or one == negated(two):
            return Relation.CONTRARY
        a, b = here.over_loops(one), here.over_loops(two)
        if not (is_total(a) and is_total(b)):
            return None
        if deciding.never(here, a, Not(b)) and deciding.never(here, Not(a), b):
            return Relation.SAME
        if deciding.never(here, a, b) and deciding.never(here, Not(a), Not(b)):
            return Relation.CONTRARY
        return None

    def _one_arm(self, stmt: IfThenElse, here: Here) -> Stmt:
        if stmt.otherwise is None or stmt.then != stmt.otherwise:
            return stmt
        condition = here.over_loops(stmt.condition)
        if any(isinstance(node, OpaqueCall) for node in walk(condition)) or not self.may():
            return stmt
        said = {dim.var for dim in here.dims} | set(constants_of(self.func))
        says = is_total(condition) and set(free_variables(condition)) <= said
        return self._joined(stmt.then, stmt.otherwise, condition, says)

    def _joined(self, then: Stmt, otherwise: Stmt, condition: Expr, says: bool) -> Stmt:
        """A copy of an arm whose stores compute, if `says`, those of both arms, each under its condition; else
        its own.
        """
        others = iter(stores_in(otherwise))

        def visit(node: Node) -> Node:
            if not isinstance(node, BufferStore):
                return map_children(node, visit) if isinstance(node, Stmt) else node
            one, two = self.origins.of(node), self.origins.of(next(others))
            new = replace(node)
            both = (*(o.under(condition) for o in one), *(o.under(negated(condition)) for o in two))
            self.origins.set(new, both if says else one)
            return new

        result = visit(then)
        assert isinstance(result, Stmt)
        return result


def _merged(first: IfThenElse, second: IfThenElse, relation: Relation) -> IfThenElse:
    arms: list[Stmt | None] = [second.then, second.otherwise]
    if relation is Relation.CONTRARY:
        arms.reverse()
    then, otherwise = (_after(a, b) for a, b in zip((first.then, first.otherwise), arms, strict=True))
    return replace(first, then=then if then is not None else NOTHING, otherwise=otherwise)


def _after(first: Stmt | None, second: Stmt | None) -> Stmt | None:
    parts = [part for part in (first, second) if part is not None]
    return seq(*parts) if parts else None
