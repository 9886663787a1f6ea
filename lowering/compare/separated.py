"""Sums that are used in the value of another store, as updates of that store's cell: `D[i] = T[i] + C[i]` becomes
`D[i] = C[i]` and `D[i] = T[i] + D[i]`. Then the sum in `T` is a partial result that is added later, which the checker
follows to its contributions: an epilogue that was fused into the start of the sum is this, with `T` left out.

Nothing is taken for granted. The step from a program to the one with separated stores, and back, is a rewrite like any
other, which the checker has to prove bit for bit; that it can rests on this: the value is computed from the same
operands in the same order, the cell holds a part of it in between, in the type in which it was computed, and nothing
else happens between the two stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    Binary,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Select,
    Var,
    binary,
    const,
)
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import Call, OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.stmt import Block, BufferStore, For, Seq, Stmt, seq
from layoutproof.ir.visit import children, loads_in, loops_of_stores, map_children, stores_in, walk

_REGROUPED = frozenset(
    (BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)
)


@dataclass(frozen=True, slots=True)
class Separated:
    """A program with stores in the place of others: `origins` has the number of the given store for each of its stores,
    and whether it is the last of those that took its place.
    """

    func: PrimFunc
    origins: tuple[tuple[int, bool], ...]

    @property
    def count(self) -> int:
        """How many of the given stores are in parts."""
        return sum(not last for _, last in self.origins)

    @property
    def there(self) -> tuple[InstanceMap, ...]:
        """The witness from the given program: the last store of several computes what the given one did."""
        loops = loops_of_stores(self.func.body)
        return tuple(
            _same_instance(number, origin if last else None, loops[number])
            for number, (origin, last) in enumerate(self.origins)
        )

    def last_step(self, found: PrimFunc, given: PrimFunc) -> Rewrite:
        """The rewrite from the program with separated stores, as it was found with layout records and assumptions, to
        the given one with these.
        """
        stores, numbers = list(stores_in(given.body)), {id(s): k for k, s in enumerate(stores_in(found.body))}

        def visit(stmt: Stmt) -> Stmt:
            if isinstance(stmt, BufferStore):
                return stores[self.origins[numbers[id(stmt)]][0]]
            if isinstance(stmt, Seq):
                return seq(
                    *(visit(part) for part in stmt.body if id(part) not in numbers or self._is_last(numbers[id(part)]))
                )
            return map_children(stmt, lambda part: visit(part) if isinstance(part, Stmt) else part)

        new = found.with_body(visit(found.body))
        lasts = [number for number in range(len(self.origins)) if self._is_last(number)]
        loops = loops_of_stores(new.body)
        back = tuple(_same_instance(number, old, loops[number]) for number, old in enumerate(lasts))
        return Rewrite(found, new, Witness(back))

    def _is_last(self, number: int | None) -> bool:
        return number is None or self.origins[number][1]


def _same_instance(new: int, old: int | None, loops: Sequence[For]) -> InstanceMap:
    variables = tuple(loop.var for loop in loops)
    return InstanceMap(new, old, None if old is None else IndexMap(variables, variables))


def separated(func: PrimFunc) -> Separated | None:
    """The program with every such store in parts; None if it has none."""
    sums = _sums(func)
    blocks = (node for node in walk(func.body) if isinstance(node, Block))
    starts = {id(store) for block in blocks if block.init is not None for store in stores_in(block.init)}
    parts = {
        id(store): found
        for store in stores_in(func.body)
        if id(store) not in starts and (found := _parts(store, sums)) is not None
    }
    if not parts:
        return None
    origins: list[tuple[int, bool]] = []
    for number, store in enumerate(stores_in(func.body)):
        count = len(parts.get(id(store), (store,)))
        origins += [(number, k == count - 1) for k in range(count)]

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, BufferStore):
            return seq(*parts[id(stmt)]) if id(stmt) in parts else stmt
        if isinstance(stmt, Seq):
            return seq(*map(visit, stmt.body))
        return map_children(stmt, lambda part: visit(part) if isinstance(part, Stmt) else part)

    return Separated(func.with_body(visit(func.body)), tuple(origins))


def _sums(func: PrimFunc) -> dict[Var, BinaryOp]:
    """The memories that are updated by one operator, with that."""
    found: dict[Var, set[BinaryOp]] = {}
    for store in stores_in(func.body):
        value, data = store.value, store.buffer.data
        if isinstance(value, Binary) and any(
            isinstance(side, BufferLoad) and side.buffer.data == data for side in (value.lhs, value.rhs)
        ):
            found.setdefault(data, set()).add(value.op)
    return {data: next(iter(ops)) for data, ops in found.items() if len(ops) == 1 and ops <= _REGROUPED}


def _parts(store: BufferStore, sums: dict[Var, BinaryOp]) -> tuple[BufferStore, ...] | None:
    """The stores in the place of one; None if its value is not that of a sum and something else."""
    data, dtype = store.buffer.data, store.value.dtype
    if dtype.lanes != 1 or dtype.is_bool or dtype != store.buffer.dtype:
        return None
    if any(load.buffer.data == data for load in loads_in(store)) or any(
        isinstance(node, OpaqueCall | Undef) for node in walk(store.value)
    ):
        return None
    for joined in _certain(store.value):
        if not isinstance(joined, Binary) or joined.dtype != dtype:
            continue
        found = _start_and_update(joined, sums, BufferLoad(store.buffer, store.indices))
        if found is None:
            continue
        start, update = found
        own = BufferLoad(store.buffer, store.indices)
        values = [start, update] if joined is store.value else [start, update, _with(store.value, joined, own)]
        return tuple(replace(store, value=value) for value in values)
    return None


def _certain(value: Expr) -> Iterator[Expr]:
    """The parts of a value that are computed whenever it is, outermost first; not those of indices."""
    stack: list[Node] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, BufferLoad | IfThenElseExpr | Select | Logical | Call) or not isinstance(node, Expr):
            continue
        yield node
        stack.extend(children(node))


def _start_and_update(joined: Binary, sums: dict[Var, BinaryOp], own: BufferLoad) -> tuple[Expr, Expr] | None:
    """What the cell begins with, and how the sum is added to it."""
    for side, other in ((joined.lhs, joined.rhs), (joined.rhs, joined.lhs)):
        if not (isinstance(side, BufferLoad) and side.buffer.data in sums):
            continue
        op = sums[side.buffer.data]
        if joined.op is op:
            return other, binary(op, side, own) if side is joined.lhs else binary(op, own, side)
        if joined.op is BinaryOp.SUB and op is BinaryOp.ADD and side is joined.lhs:
            # Adding the opposite is subtracting, also in floats, and in integers that wrap.
            return _opposite(other), binary(op, side, own)
    return None


def _opposite(value: Expr) -> Expr:
    if isinstance(value, IntImm) and -value.value <= value.dtype.max_int and -value.value >= value.dtype.min_int:
        return IntImm(-value.value, value.dtype)
    if isinstance(value, FloatImm):
        return FloatImm(-value.value, value.dtype)
    return value * const(-1, value.dtype) if value.dtype.is_float else const(0, value.dtype) - value


def _with(root: Expr, target: Expr, by: Expr) -> Expr:
    def visit(node: Node) -> Node:
        return by if node is target else map_children(node, visit)

    made = visit(root)
    assert isinstance(made, Expr)
    return made
