"""Expressions as values over loops, symbols and loaded values: lanes told apart, lets and block variables replaced,
each load a variable of its own with the moment and the conditions of its evaluation. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import (
    Assume,
    OpaqueCall,
    PointerCast,
    Reinterpret,
    StringImm,
    Undef,
    assumed_undef,
    is_identity,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.visit import free_variables, holds_any, map_children, take_fresh, walk
from layoutproof.verify.program.instances import Dim, Guard, conjuncts, is_larger
from layoutproof.verify.program.location import Spot
from layoutproof.verify.program.statement import NotModelled

_LARGEST = 2000
_BY_CONSTANT = frozenset(
    (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR)
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition around a statement: conjuncts over indices, and those on data. `depth` dims are around it."""

    depth: int
    guards: tuple[Guard, ...]
    data: tuple[Expr, ...]

    @property
    def variables(self) -> frozenset[Var]:
        """What it speaks of."""
        said = (*(g.condition for g in self.guards), *self.data)
        return frozenset(v for expr in said for v in free_variables(expr))


@dataclass(frozen=True, slots=True)
class Where:
    """What is around an expression, and its timestamp. `truths` dims are around the innermost boolean let, or -1."""

    dims: tuple[Dim, ...] = ()
    conditions: tuple[Condition, ...] = ()
    time: tuple[int | Dim, ...] = ()
    env: Mapping[Var, Expr | Later] = field(default_factory=dict)
    truths: int = -1

    @property
    def guards(self) -> tuple[Guard, ...]:
        """All conjuncts over indices."""
        return tuple(g for c in self.conditions for g in c.guards)

    @property
    def data(self) -> tuple[Expr, ...]:
        """All conjuncts that depend on data."""
        return tuple(e for c in self.conditions for e in c.data)

    def at(self, *timestamps: int | Dim) -> Where:
        """The same, later or nested."""
        return Where(self.dims, self.conditions, (*self.time, *timestamps), self.env, self.truths)

    def inside(self, dim: Dim) -> Where:
        """With one more loop around."""
        return Where((*self.dims, dim), self.conditions, (*self.time, dim), self.env, self.truths)

    def binding(self, values: Mapping[Var, Expr | Later]) -> Where:
        """With more variables that stand for values."""
        return replace(self, env={**self.env, **values})

    def under(self, condition: Condition) -> Where:
        """With one more condition."""
        return replace(self, conditions=(*self.conditions, condition)) if condition.guards or condition.data else self


@dataclass(frozen=True, slots=True)
class Later:
    """A let of a vector: its lanes are said where they are used, as of where it was bound."""

    value: Expr
    where: Where


@dataclass(frozen=True, slots=True)
class Load:
    """A load that a value speaks of as `var`. `sub_lane` tells the lane of an element that has lanes."""

    var: Var
    node: BufferLoad
    indices: tuple[Expr, ...]
    sub_lane: Expr | None
    where: Where
    spot: Spot


class Values:
    """The values and loads of one function."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = set(names)
        self.loads: dict[Var, Load] = {}
        self._known: dict[tuple[object, ...], Load] = {}
        self.spot: Spot | None = None

    def fresh(self, name: str) -> str:
        """A name like `name` that nothing else has."""
        return take_fresh(name, self._names)

    def loads_of(self, *exprs: Expr) -> dict[Var, Load]:
        """The loads that expressions speak of, and those that decide where these go."""
        found: dict[Var, Load] = {}
        stack = [v for expr in exprs for v in free_variables(expr)]
        while stack:
            load = self.loads.get(stack.pop())
            if load is not None and load.var not in found:
                found[load.var] = load
                stack += [v for index in load.indices for v in free_variables(index)]
        return {v: load for v, load in self.loads.items() if v in found}

    def depends_on_data(self, expr: Expr) -> bool:
        """Whether an expression that was said speaks of a loaded value."""
        return any(v in self.loads for v in free_variables(expr))

    def is_index(self, expr: Expr) -> bool:
        """Whether an expression that was said is index arithmetic: integers over loops and symbols."""
        if not expr.dtype.is_integer or expr.dtype.lanes != 1 or self.depends_on_data(expr):
            return False
        return not any(
            isinstance(node, Undef | BufferLoad) or (isinstance(node, Expr) and node.dtype.is_float)
            for node in walk(expr)
        )

    def condition(self, expr: Expr, holds: bool, depth: int) -> Condition:
        """A condition that was said, taken apart. Raises NotModelled for one on an undefined value."""
        if holds_any(expr, Undef):
            raise NotModelled("a condition on an undefined value", expr)
        guards, data = list[Guard](), list[Expr]()
        for guard in conjuncts(expr, holds):
            if guard.condition == IntImm(int(guard.holds), guard.condition.dtype):
                continue
            if self._is_index_condition(guard.condition):
                guards.append(guard)
            else:
                data.append(guard.as_expr)
        return Condition(depth, tuple(guards), tuple(data))

    def _is_index_condition(self, expr: Expr) -> bool:
        """Whether integer sets can be expected to express it; other conditions become part of values."""
        match expr:
            case IntImm():
                return True
            case Compare(lhs=lhs, rhs=rhs) if lhs.dtype.is_integer:
                return self.is_index(lhs) and self.is_index(rhs) and _is_affine(lhs) and _is_affine(rhs)
            case Compare(lhs=lhs, rhs=rhs) if lhs.dtype.is_bool:
                return self._is_index_condition(lhs) and self._is_index_condition(rhs)
            case Logical(lhs=lhs, rhs=rhs):
                return self._is_index_condition(lhs) and self._is_index_condition(rhs)
            case Not(operand=operand):
                return self._is_index_condition(operand)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return all(self._is_index_condition(part) for part in (condition, then, otherwise))
            case _:
                return False

    # Saying

    def say(self, expr: Expr, where: Where, lane: Expr | None = None) -> Expr:
        """One lane of an expression evaluated at `where`. Raises NotModelled for opaque or too large values."""
        said = self._say(expr, where, lane if expr.dtype.lanes > 1 else None)
        if is_larger(said, _LARGEST):
            raise NotModelled("a value that grows too large when lets are replaced", expr)
        return said

    def _say(self, expr: Expr, where: Where, lane: Expr | None) -> Expr:
        match expr:
            case Var():
                return self._variable(expr, where, lane)
            case BufferLoad():
                return self._load(expr, where, lane)
            case Ramp(base=base, stride=stride):
                assert lane is not None
                step = lane if lane.dtype == base.dtype else Cast(base.dtype, lane)
                return self._say(base, where, None) + step * self._say(stride, where, None)
            case Broadcast(value=value):
                return self._say(value, where, None)
            case Undef(dtype=dtype):
                return replace(expr, dtype=dtype.element)
            case Cast(dtype=dtype, value=value) | Reinterpret(dtype=dtype, value=value):
                return replace(expr, dtype=dtype.element, value=self._say(value, where, lane))
            case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
                test = self._say(condition, where, None)
                sides = [
                    self._say(e, self.under(test, holds, where), lane)
                    for e, holds in ((then, True), (otherwise, False))
                ]
                return IfThenElseExpr(test, *sides)
            case Logical(op=op, lhs=lhs, rhs=rhs):
                first = self._say(lhs, where, lane)
                return Logical(
                    op,
                    first,
                    self._say(rhs, self.under(first, op is LogicalOp.AND, where) if lane is None else where, lane),
                )
            case OpaqueCall() | PointerCast() | StringImm() | Assume():
                raise NotModelled(f"{type(expr).__name__} as a value", expr)
            case _:
                return self._generic(expr, where, lane)

    def _generic(self, expr: Expr, where: Where, lane: Expr | None) -> Expr:
        def visit(node: Node) -> Node:
            return self._say(node, where, lane if node.dtype.lanes > 1 else None) if isinstance(node, Expr) else node

        return map_children(expr, visit)

    def under(self, said: Expr, holds: bool, where: Where) -> Where:
        """`where` under a condition that was said."""
        return where.under(self.condition(said, holds, len(where.dims)))

    def _variable(self, expr: Var, where: Where, lane: Expr | None) -> Expr:
        value = where.env.get(expr, expr)
        if isinstance(value, Later):
            return self._say(value.value, value.where, lane)
        if value.dtype.lanes > 1:
            raise NotModelled(f"the vector {expr.name}", expr)
        return value

    def indices(
        self, indices: tuple[Expr, ...], element_lanes: int, where: Where, lane: Expr | None
    ) -> tuple[list[Expr], Expr | None]:
        """The indices of one lane of an access, and the lane within its element where elements have lanes."""
        inner, outer = None, lane
        if element_lanes > 1:
            assert lane is not None
            lanes_of_index = indices[-1].dtype.lanes if indices else 1
            size = const(element_lanes, lane.dtype)
            inner, outer = (lane % size, lane // size) if lanes_of_index > 1 else (lane, None)
        said = [self.say(index, where, outer) for index in indices]
        for index in said:
            if holds_any(index, Undef):
                raise NotModelled("an index that is undefined", index)
        return said, inner

    def _load(self, expr: BufferLoad, where: Where, lane: Expr | None) -> Expr:
        indices, inner = self.indices(expr.indices, expr.buffer.dtype.lanes, where, lane)
        key = (expr.buffer, tuple(indices), inner, where.time, where.dims, where.guards, where.data)
        load = self._known.get(key)
        if load is None:
            assert self.spot is not None
            var = Var(self.fresh(f"{expr.buffer.name}_value"), expr.buffer.dtype.element)
            load = self._known[key] = self.loads[var] = Load(var, expr, tuple(indices), inner, where, self.spot)
        return load.var


def with_plain_equality(condition: Expr, said: Expr) -> Expr:
    """`said`, which is an assumption's `condition` over loaded values, where `==` between a loaded value and another
    one means value identity. In the text it means that only of a load that stands there, under no operator but `and`
    and `or`: any other `x == y` of floats becomes `not x != y`.
    """
    match condition, said:
        case Logical(), Logical():
            lhs, rhs = with_plain_equality(condition.lhs, said.lhs), with_plain_equality(condition.rhs, said.rhs)
            return replace(said, lhs=lhs, rhs=rhs)
        case _ if is_identity(condition) or assumed_undef(condition) is not None:
            return said
        case _:
            return _plain(said)


def _plain(expr: Expr) -> Expr:
    made = map_children(expr, lambda node: _plain(node) if isinstance(node, Expr) else node)
    match made:
        case Compare(op=CompareOp.EQ, lhs=lhs, rhs=rhs) if lhs.dtype.is_float or holds_any(made, Undef):
            return Not(Compare(CompareOp.NE, lhs, rhs))
        case _:
            return made


def _is_affine(expr: Expr) -> bool:
    """Whether nothing is multiplied or divided by something that varies."""
    for node in walk(expr):
        if not isinstance(node, Binary):
            continue
        if node.op is BinaryOp.MUL and free_variables(node.lhs) and free_variables(node.rhs):
            return False
        if node.op in _BY_CONSTANT and free_variables(node.rhs):
            return False
    return True
