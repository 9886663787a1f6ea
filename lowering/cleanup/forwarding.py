"""Store-to-load forwarding: loads replaced by values known from an assumption or an earlier store.

A value is known until something may have written the cell. A loop's own stores count before its first iteration, so
that a value holds in later ones too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Compare, Expr, IfThenElseExpr, Logical, Not, Var, const, logical_and, widen
from layoutproof.ir.intrinsics import Assume, OpaqueCall
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.visit import children, map_children, substitute, walk
from layoutproof.lowering.cleanup.known_cells import Cells, Fact, assumed_facts, is_plain_value
from layoutproof.lowering.cleanup.rebuild import Here, Origins, is_total, tidied

Facts = tuple[Fact, ...]
MAX_FACTS = 64
"""Facts that are followed at once; more are forgotten, the oldest first."""


_After = tuple[Stmt, Facts]
_Steps = Steps[tuple[Stmt, Here, Facts], _After]


@dataclass(slots=True)
class Contents:
    """Replaces loads by known values, in a body whose stores `origins` knows. `may` is asked about each change."""

    func: PrimFunc
    origins: Origins
    may: Callable[[], bool]
    cells: Cells = field(init=False)

    def __post_init__(self) -> None:
        self.cells = Cells(self.func)

    def run(self, body: Stmt) -> Stmt:
        """The body with known values put in."""
        if not _may_know_something(body):
            return body
        self.cells = Cells(self.func.with_body(body))
        start: tuple[Stmt, Here, Facts] = (body, Here(), ())
        return trampoline(lambda given: self.statement(*given), start)[0]

    def statement(self, stmt: Stmt, here: Here, known: Facts) -> _After | _Steps:
        """`stmt` where `known` holds, and what is known after it."""
        match stmt:
            case BufferStore():
                return self.store(stmt, here, known)
            case Evaluate(value=Assume(condition=condition)):
                return stmt, (*known, *assumed_facts(condition, here))[-MAX_FACTS:]
            case Seq():
                return self.sequence(stmt, here, known)
            case For():
                return self.loop(stmt, here, known)
            case IfThenElse():
                return self.branch(stmt, here, known)
            case Block():
                return self.block(stmt, here, known)
            case Let():
                return self.let(stmt, here, known)
            case Allocate() | DeclBuffer():
                return self.memory(stmt, here, known)
            case _:
                # Other statements may change anything, and stay as they are.
                return stmt, known if isinstance(stmt, Evaluate) and not _is_opaque(stmt) else ()

    def sequence(self, stmt: Seq, here: Here, known: Facts) -> _Steps:
        parts: list[Stmt] = []
        for part in stmt.body:
            new, known = yield part, here, known
            parts.append(new)
        return (stmt if all(a is b for a, b in zip(parts, stmt.body, strict=True)) else seq(*parts)), known

    def let(self, stmt: Let, here: Here, known: Facts) -> _Steps:
        value = self.value(stmt.value, here, known)
        body, known = yield stmt.body, here.bound(stmt.var, stmt.value), self._after_calls(stmt.value, known)
        left = tuple(fact for fact in known if not fact.mentions(stmt.var))
        return (stmt if value is stmt.value and body is stmt.body else replace(stmt, value=value, body=body)), left

    def memory(self, stmt: Allocate | DeclBuffer, here: Here, known: Facts) -> _Steps:
        body, known = yield stmt.body, here, known
        ended = {stmt.buffer.data} if isinstance(stmt, Allocate) else set[Var]()
        left = tuple(fact for fact in known if fact.buffer.data not in ended)
        return (stmt if body is stmt.body else replace(stmt, body=body)), left

    def store(self, stmt: BufferStore, here: Here, known: Facts) -> tuple[Stmt, Facts]:
        value = self.value(stmt.value, here, known)
        indices = tuple(self.value(i, here, known) for i in stmt.indices)
        new = stmt
        if value is not stmt.value or any(a is not b for a, b in zip(indices, stmt.indices, strict=True)):
            new = self.origins.same(replace(stmt, value=value, indices=indices), stmt)
        cell = tuple(here.over_loops(i) for i in stmt.indices)
        left = tuple(
            f
            for f in (self.elsewhere(fact, stmt, cell, here) for fact in self._after_calls(stmt.value, known))
            if f is not None
        )
        stored = here.over_loops(value)
        if is_plain_value(stored) and all(map(is_total, cell)) and stmt.buffer.dtype == stored.dtype:
            left = (*left, Fact(stmt.buffer, cell, stored, source=stmt))
        return new, left[-MAX_FACTS:]

    def elsewhere(self, fact: Fact, store: BufferStore, cell: tuple[Expr, ...], here: Here) -> Fact | None:
        """What is left of a fact when a store has run: all of it, or what it says of other cells."""
        if not self.cells.may_be_one(store.buffer, fact.buffer) or self.cells.apart(fact, store, here):
            return fact
        if fact.buffer != store.buffer or not fact.over or not all(map(is_total, cell)):
            return None
        equal = [Compare(CompareOp.EQ, a, widen(b, a.dtype)) for a, b in zip(fact.indices, cell, strict=True)]
        return fact.under(Not(logical_and(*equal)))

    def loop(self, loop: For, here: Here, known: Facts) -> _Steps:
        inner = here.inside(loop)
        for store, there in _stores(loop.body, inner):
            known = self.cells.without(known, store, there)
        if _is_opaque(loop.body):
            known = ()
        body, after = yield loop.body, inner, known
        new = loop if body is loop.body else replace(loop, body=body)
        if inner is here:
            return new, tuple(fact for fact in known if any(fact is f for f in after))
        dim = inner.dims[-1]
        left = [fact for fact in known if any(fact is f for f in after)]
        for fact in after:
            if any(fact is f for f in known) or not self.is_left_by_others(fact, loop, inner):
                continue
            ended = fact.after(dim, self.cells.fresh(dim.var.name, dim.var))
            if ended is not None:
                left.append(ended)
        return new, tuple(left)[-MAX_FACTS:]

    def is_left_by_others(self, fact: Fact, loop: For, inner: Here) -> bool:
        """Whether no iteration of a loop writes what another one made known, the store that did so aside."""
        return all(
            store is fact.source
            for store, _ in _stores(loop.body, inner)
            if self.cells.may_be_one(store.buffer, fact.buffer)
        )

    def branch(self, stmt: IfThenElse, here: Here, known: Facts) -> _Steps:
        known = self._after_calls(stmt.condition, known)
        condition = self.value(stmt.condition, here, known)
        said = here.over_loops(stmt.condition)
        then, first = yield stmt.then, here.under(stmt.condition), known
        otherwise, second = stmt.otherwise, known
        if stmt.otherwise is not None:
            otherwise, second = yield stmt.otherwise, here.under(stmt.condition, False), known
        left = [fact for fact in known if any(fact is f for f in first) and any(fact is f for f in second)]
        if is_total(said):
            left += [fact.under(said) for fact in first if not any(fact is f for f in known)]
            left += [fact.under(Not(said)) for fact in second if not any(fact is f for f in known)]
        same = condition is stmt.condition and then is stmt.then and otherwise is stmt.otherwise
        return (stmt if same else replace(stmt, condition=condition, then=then, otherwise=otherwise)), tuple(left)[
            -MAX_FACTS:
        ]

    def block(self, block: Block, here: Here, known: Facts) -> _Steps:
        if block.match_buffers:
            return block, ()
        inner = here.in_block(block)
        if block.init is not None:
            for store, there in _stores(block.init, inner):
                known = self.cells.without(known, store, there)
        body, after = yield block.body, inner, known
        where = here.over_loops(substitute(block.where, inner.values))
        left = [fact for fact in known if any(fact is f for f in after)]
        if is_total(where):
            left += [fact.under(where) for fact in after if not any(fact is f for f in known)]
        ended = {buffer.data for buffer in block.alloc_buffers}
        left = [f for f in left if f.buffer.data not in ended and not any(f.mentions(i.var) for i in block.iter_vars)]
        return (block if body is block.body else tidied(replace(block, body=body), block)), tuple(left)

    def value(self, expr: Expr, here: Here, known: Facts) -> Expr:
        """An expression with known values in the place of loads."""
        if not known or isinstance(expr, Assume):
            return expr
        match expr:
            case BufferLoad():
                found = self.cells.found(expr, here, known)
                if found is not None and self.may():
                    return found
            case Compare():
                truth = self.cells.decided(expr, here, known)
                if truth is not None and self.may():
                    return const(truth)
            case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
                new = (
                    self.value(condition, here, known),
                    self.value(then, here.under(condition), known),
                    self.value(otherwise, here.under(condition, False), known),
                )
                same = all(a is b for a, b in zip(new, (condition, then, otherwise), strict=True))
                return expr if same else replace(expr, condition=new[0], then=new[1], otherwise=new[2])
            case Logical(op=op, lhs=left, rhs=right):
                one, two = (
                    self.value(left, here, known),
                    self.value(right, here.under(left, op is LogicalOp.AND), known),
                )
                return expr if one is left and two is right else replace(expr, lhs=one, rhs=two)
            case _:
                pass
        return map_children(expr, lambda node: self.value(node, here, known) if isinstance(node, Expr) else node)

    @staticmethod
    def _after_calls(expr: Expr, known: Facts) -> Facts:
        return () if _is_opaque(expr) else known


def _stores(root: Stmt, around: Here) -> Iterator[tuple[BufferStore, Here]]:
    """Every store below, with its scope."""
    stack = [(root, around)]
    while stack:
        stmt, here = stack.pop()
        match stmt:
            case BufferStore():
                yield stmt, here
            case For():
                stack.append((stmt.body, here.inside(stmt)))
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                if otherwise is not None:
                    stack.append((otherwise, here.under(condition, False)))
                stack.append((then, here.under(condition)))
            case Let(var=var, value=value):
                stack.append((stmt.body, here.bound(var, value)))
            case Block(init=init):
                inner = here.in_block(stmt)
                stack.append((stmt.body, inner))
                if init is not None:
                    stack.append((init, inner))
            case _:
                stack += [(child, here) for child in children(stmt)[::-1] if isinstance(child, Stmt)]


def _is_opaque(node: Node) -> bool:
    return any(isinstance(n, OpaqueCall) for n in walk(node))


def _may_know_something(body: Stmt) -> bool:
    """A quick test whether any load could be known, since in most programs none is."""
    assumed = {n.buffer for e in walk(body) if isinstance(e, Assume) for n in walk(e) if isinstance(n, BufferLoad)}
    stored = {n.buffer for n in walk(body) if isinstance(n, BufferStore) and is_plain_value(n.value)}
    loads = (
        n
        for e in walk(body)
        if isinstance(e, BufferStore | IfThenElse | Let)
        for n in walk(e)
        if isinstance(n, BufferLoad)
    )
    return any(load.buffer in assumed | stored for load in loads)
