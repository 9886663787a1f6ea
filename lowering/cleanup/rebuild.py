"""Programs rebuilt after a removal: empty statements go, and the witness traces each new store to its old one.
Conditions of branches: negated, taken apart, and whether they can hold together at their place.

The integer sets that also prove answer this. The model over-approximates the instances, so `never` is sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer, BufferRegion
from layoutproof.ir.expr import FALSE, TRUE, Binary, Compare, Expr, IntImm, Logical, Not, Var, const, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import NOTHING, Allocate, Block, BufferStore, DeclBuffer, For, ForKind, IfThenElse, Let, Stmt
from layoutproof.ir.visit import free_variables, loads_in, loops_of_stores, mapped, stores_in, substitute, walk
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.arith.affine import affine_of
from layoutproof.lowering.arith.known_facts import is_index_like
from layoutproof.lowering.passes.witness_maps import count_stores
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, Unknown
from layoutproof.verify.values.fast_math import IEEE
from layoutproof.verify.verdict.verdict import Status

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


def negated(condition: Expr) -> Expr:
    """The negation of a condition; integer comparisons are mirrored."""
    match condition:
        case IntImm(value=truth):
            return const(not truth)
        case Not(operand=operand):
            return operand
        case Compare(op=op, lhs=left, rhs=right) if left.dtype.is_integer:
            return Compare(op.negated, left, right)
        case Logical(op=op, lhs=left, rhs=right):
            return Logical(LogicalOp.OR if op is LogicalOp.AND else LogicalOp.AND, negated(left), negated(right))
        case _:
            return Not(condition)


def is_total(expr: Expr) -> bool:
    """Whether an expression is index arithmetic that always has a value: no load, no division that may trap."""
    return is_index_like(expr) and not any(isinstance(node, Binary) and _may_trap(node) for node in walk(expr))


def _may_trap(node: Binary) -> bool:
    if node.op in _SHIFTS:
        return True
    return node.op in _DIVISIONS and not (isinstance(node.rhs, IntImm) and node.rhs.value > 0)


def conjuncts_of(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction, from left to right."""
    if isinstance(condition, Logical) and condition.op is LogicalOp.AND:
        return (*conjuncts_of(condition.lhs), *conjuncts_of(condition.rhs))
    return (condition,)


def truths_of(condition: Expr, holds: bool) -> dict[Expr, bool]:
    """The truth values that follow from one: of the condition, of its parts, and of what they are the contrary of."""
    found = {condition: holds, negated(condition): not holds}
    match condition:
        case Not(operand=operand):
            found |= truths_of(operand, not holds)
        case Logical(op=op, lhs=left, rhs=right) if (op is LogicalOp.AND) == holds:
            found |= truths_of(left, holds) | truths_of(right, holds)
        case _:
            pass
    return found


MAX_QUESTIONS = 4096
"""Questions that one pass puts to integer sets; what is asked after that is not known."""


@dataclass(frozen=True, slots=True)
class Here:
    """The loops, conditions and bindings around a statement. `values` gives block variables and lets over loops and
    symbols.

    `named` are the variables in scope: inside a block its own, not the loops around it.
    """

    dims: tuple[Dim, ...] = ()
    guards: tuple[Guard, ...] = ()
    values: Mapping[Var, Expr] = field(default_factory=dict[Var, Expr])
    hidden: frozenset[Var] = frozenset()

    def inside(self, loop: For) -> Here:
        """In the body of a loop."""
        start, extent = self.over_loops(loop.start), self.over_loops(loop.extent)
        if not (is_total(start) and is_total(extent)):
            return self
        return replace(self, dims=(*self.dims, Dim(loop.var, start, extent, ForKind.SERIAL)))

    def under(self, condition: Expr, holds: bool = True) -> Here:
        """Under a condition or its negation, as far as that is over loops and symbols."""
        said = self.over_loops(condition)
        return replace(self, guards=(*self.guards, Guard(said, holds))) if is_total(said) else self

    def bound(self, var: Var, value: Expr) -> Here:
        """With a let's value."""
        said = self.over_loops(value)
        return replace(self, values={**self.values, var: said}) if is_total(said) else self

    def in_block(self, block: Block) -> Here:
        """In a block: its variables are bound, its guard holds."""
        values = {i.var: self.over_loops(i.binding) for i in block.iter_vars}
        inner = replace(self, values={**self.values, **values}, hidden=self.hidden | {dim.var for dim in self.dims})
        return inner.under(block.where)

    def over_loops(self, expr: Expr) -> Expr:
        """An expression with block variables and lets replaced by their values."""
        return substitute(expr, self.values)


def _truth(condition: Expr) -> bool | None:
    """The truth of a comparison of index arithmetic whose two sides differ by a constant; None for others."""
    if isinstance(condition, Not):
        inner = _truth(condition.operand)
        return None if inner is None else not inner
    if not isinstance(condition, Compare) or not (is_total(condition.lhs) and is_total(condition.rhs)):
        return None
    difference = affine_of(condition.lhs) - affine_of(condition.rhs)
    return bool(COMPARISONS[condition.op](difference.constant, 0)) if difference.is_constant else None


@dataclass(slots=True)
class Deciding:
    """Answers about one function; nothing is set up before the first question."""

    func: PrimFunc
    _facts: Facts | None = None
    _asked: int = 0

    def never(self, here: Here, *conditions: Expr, also: tuple[Dim, ...] = ()) -> bool:
        """Whether the conditions, over loops, symbols and the dims `also`, never all hold there; False if unknown."""
        decided = [_truth(condition) for condition in conditions]
        if False in decided:
            return True
        if self._asked >= MAX_QUESTIONS or not all(map(is_total, conditions)):
            return False
        self._asked += 1
        if self._facts is None:
            self._facts = Facts.of(self.func)
        dims = (*here.dims, *also)
        return self._facts.model.search(
            IterationDomain(dims, here.guards, unknowns=tuple(self._unknowns(dims, here, conditions))), *conditions
        ).is_empty

    def _unknowns(self, dims: tuple[Dim, ...], here: Here, conditions: tuple[Expr, ...]) -> Iterator[Unknown]:
        """The integers of unknown value; conditions on floats and truth values are of no use to the search."""
        assert self._facts is not None
        known = {dim.var for dim in dims} | set(self._facts.program.symbols)
        said = (*conditions, *(g.condition for g in here.guards), *(e for d in dims for e in (d.start, d.extent)))
        for variable in dict.fromkeys(v for e in said for v in free_variables(e)):
            if variable.dtype.is_integer and variable not in known:
                yield Unknown(variable, variable)


@dataclass(frozen=True, slots=True)
class Origin:
    """That a store computes old store `number`, in those of its instances where all `conditions` over loops hold."""

    number: int
    conditions: tuple[Expr, ...] = ()

    def under(self, *conditions: Expr) -> Origin:
        """The same where more conditions hold."""
        return Origin(self.number, (*self.conditions, *conditions))


@dataclass(slots=True)
class Origins:
    """The old stores of each store object. `body` is the old body with a distinct object for every store; rebuild that
    one.

    A rewriting that makes a new store object declares it with `same`; copies of an object need no declaration.
    """

    old: PrimFunc
    body: Stmt = field(init=False)
    known: dict[int, tuple[BufferStore, tuple[Origin, ...]]] = field(
        default_factory=dict[int, tuple[BufferStore, tuple[Origin, ...]]]
    )

    def __post_init__(self) -> None:
        self.body = _own_objects(self.old.body)
        for number, store in enumerate(stores_in(self.body)):
            self.set(store, (Origin(number),))

    def set(self, store: BufferStore, origins: Sequence[Origin]) -> None:
        """State what a store object computes."""
        # The object is kept as well, so that no other gets its identity.
        self.known[id(store)] = (store, tuple(origins))

    def of(self, store: BufferStore) -> tuple[Origin, ...]:
        """What a store object computes."""
        return self.known[id(store)][1]

    def same(self, new: BufferStore, old: BufferStore) -> BufferStore:
        """`new`, noted as computing what `old` does."""
        self.set(new, self.of(old))
        return new

    def rewrite(self, body: Stmt) -> Rewrite:
        """The rewrite that makes `body` of the old one; loops correspond by variable, or are taken at their start."""
        # What stands in two arms now is two statements.
        new = self.old.with_body(_own_objects(body))
        old_loops, new_loops = loops_of_stores(self.old.body), loops_of_stores(body)
        maps: list[InstanceMap] = []
        for number, (store, loops) in enumerate(zip(stores_in(body), new_loops, strict=True)):
            inputs = tuple(loop.var for loop in loops)
            for origin in self.of(store):
                outputs: tuple[Expr, ...] = tuple(
                    loop.var if loop.var in inputs else loop.start for loop in old_loops[origin.number]
                )
                where = logical_and(*origin.conditions) if origin.conditions else None
                maps.append(InstanceMap(number, origin.number, IndexMap(inputs, outputs), where))
        return Rewrite(self.old, new, Witness(tuple(maps)))


def _own_objects(stmt: Stmt) -> Stmt:
    def visit(node: Node) -> Node | Steps[Node, Node]:
        if isinstance(node, BufferStore):
            return replace(node)
        return mapped(node) if isinstance(node, Stmt) else node

    result = trampoline(visit, stmt)
    assert isinstance(result, Stmt)
    return result


def tidied(new: Stmt, old: Stmt) -> Stmt:
    """`new`, made from `old` by replacing parts: nothing if it does nothing, one arm if the condition is decided."""
    match new:
        case For() | Let() | Allocate() | DeclBuffer():
            return NOTHING if new.body == NOTHING else new
        case IfThenElse():
            return branch(new)
        case Block():
            return new if new is old else _block(new)
        case _:
            return new


def branch(stmt: IfThenElse) -> Stmt:
    """A branch whose arms may be empty or whose condition may be decided, without what never runs."""
    if stmt.condition == TRUE:
        return stmt.then
    if stmt.condition == FALSE:
        return NOTHING if stmt.otherwise is None else stmt.otherwise
    if stmt.otherwise is None or stmt.otherwise == NOTHING:
        return NOTHING if stmt.then == NOTHING else replace(stmt, otherwise=None)
    if stmt.then == NOTHING:
        return IfThenElse(negated(stmt.condition), stmt.otherwise)
    return stmt


def _block(new: Block) -> Stmt:
    """A block after a removal, with region annotations for the rest."""
    init = None if new.init == NOTHING else new.init
    if new.where == FALSE or (init is None and new.body == NOTHING):
        return NOTHING
    parts = [part for part in (init, new.body) if part is not None]
    loaded = {load.buffer for part in parts for load in loads_in(part)} | {load.buffer for load in loads_in(new.where)}
    stored = {store.buffer for part in parts for store in stores_in(part)}
    opaque = any(isinstance(node, OpaqueCall) for part in parts for node in walk(part))
    reads, writes = (new.reads, new.writes) if opaque else (_about(new.reads, loaded), _about(new.writes, stored))
    return replace(new, init=init, reads=reads, writes=writes)


def _about(regions: Sequence[BufferRegion] | None, buffers: AbstractSet[Buffer]) -> tuple[BufferRegion, ...] | None:
    return None if regions is None else tuple(region for region in regions if region.buffer in buffers)


MAX_WORK = 2048
"""Stores of all programs that one pass asks about, together: a large program is asked about less often."""


def tries_for(func: PrimFunc) -> int:
    """How many rewrites of a function a pass asks about, at most."""
    return MAX_WORK // max(1, count_stores(func.body))


def is_proved(rewrite: Rewrite) -> bool:
    """Whether the checker accepts a rewrite bit for bit, without other assumptions; also of an empty program."""
    if rewrite.new == rewrite.old:
        return True
    if check_wellformed(rewrite.new):
        return False
    return all(v.status in (Status.PROVED, Status.VACUOUS) for v in prove_rewrite(rewrite, allowed=IEEE).verdicts)
