"""The plain evaluator's expressions: one visit a node, a list of lanes, each a value and whether an undefined value
went into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from layoutproof.ir import semantics
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
)
from layoutproof.ir.interp import runtime
from layoutproof.ir.interp.analysis import is_index_like
from layoutproof.ir.interp.generator import Facts
from layoutproof.ir.interp.memory import (
    ARBITRARY,
    DEFINED,
    FORBIDDEN,
    POISON,
    READABLE,
    Storage,
    cannot_interpret,
    worst_state,
)
from layoutproof.ir.interp.runtime import RaceTable
from layoutproof.ir.intrinsics import (
    Assume,
    Call,
    Limit,
    LimitKind,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
)
from layoutproof.ir.operators import COMPARISONS, BinaryOp, LogicalOp

Lane = tuple[int | float, bool]


@dataclass(slots=True)
class WalkLevel:
    """One concurrent loop being run: its present iteration, and a table for each memory that existed before it."""

    iteration: object
    tables: dict[int, RaceTable]


@dataclass(slots=True)
class State:
    """Where a run stands."""

    facts: Facts
    memory: dict[str, Storage]
    floats: Mapping[str, float]
    undef: Callable[[DType], int | float]
    env: dict[str, tuple[Lane, ...]] = field(default_factory=dict)
    levels: list[WalkLevel] = field(default_factory=list)


def evaluate_lanes(s: State, e: Expr, index: bool = False) -> list[Lane]:
    """The lanes of an expression; `index` says that its integers must fit their types instead of wrapping."""
    return _EVALUATORS[type(e)](s, e, index)


def evaluate_one(s: State, e: Expr, index: bool = False) -> Lane:
    """The one lane of a scalar expression."""
    (lane,) = evaluate_lanes(s, e, index)
    return lane


def controlling(s: State, e: Expr, what: str, index: bool = False) -> int:
    """A value that control depends on. Raises Fault when it is undefined."""
    value, tainted = evaluate_one(s, e, index)
    if tainted:
        runtime.undefined(what)
    return int(value)


def settle(value: int, dtype: DType, index: bool) -> int:
    """An exact integer result in its type: wrapped, or refused where it is index arithmetic."""
    if not index:
        return semantics.wrap(value, dtype)
    if not dtype.min_int <= value <= dtype.max_int:
        runtime.overflow(value, str(dtype))
    return value


_EXACT: Mapping[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.MIN: lambda a, b: a if a < b else b,
    BinaryOp.MAX: lambda a, b: a if a > b else b,
    BinaryOp.BITAND: lambda a, b: a & b,
    BinaryOp.BITOR: lambda a, b: a | b,
    BinaryOp.BITXOR: lambda a, b: a ^ b,
}
_DIVISIONS = {
    BinaryOp.FLOORDIV: "floordiv",
    BinaryOp.FLOORMOD: "floormod",
    BinaryOp.TRUNCDIV: "truncdiv",
    BinaryOp.TRUNCMOD: "truncmod",
}
_FLOATS: Mapping[BinaryOp, Callable[[float, float], float]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.DIV: runtime.float_div,
    BinaryOp.MIN: semantics.select_min,
    BinaryOp.MAX: semantics.select_max,
}


def binary_value(op: BinaryOp, a: int | float, b: int | float, dtype: DType, index: bool) -> int | float:
    """`a op b` on one lane of a type."""
    if dtype.is_float:
        return semantics.round_float(_FLOATS[op](float(a), float(b)), dtype)
    x, y = int(a), int(b)
    division = _DIVISIONS.get(op)
    if division is not None:
        return semantics.divide(division, x, y, dtype)
    if op is BinaryOp.SHR:
        return semantics.shift_right(x, y, dtype)
    if op is BinaryOp.SHL:
        wrapped = semantics.shift_left(x, y, dtype)
        return settle(x << y, dtype, True) if index else wrapped
    return settle(_EXACT[op](x, y), dtype, index)


def _binary(s: State, e: Binary, index: bool) -> list[Lane]:
    left, right = evaluate_lanes(s, e.lhs, index), evaluate_lanes(s, e.rhs, index)
    dtype = e.dtype.element
    return [(binary_value(e.op, a, b, dtype, index), p or q) for (a, p), (b, q) in zip(left, right, strict=True)]


def _compare(s: State, e: Compare, index: bool) -> list[Lane]:
    exact = index or (is_index_like(e.lhs) and is_index_like(e.rhs))
    left, right = evaluate_lanes(s, e.lhs, exact), evaluate_lanes(s, e.rhs, exact)
    return [(int(COMPARISONS[e.op](a, b)), p or q) for (a, p), (b, q) in zip(left, right, strict=True)]


def _logical(s: State, e: Logical, index: bool) -> list[Lane]:
    left = evaluate_lanes(s, e.lhs, index)
    if len(left) == 1 and bool(left[0][0]) == (e.op is LogicalOp.OR):
        return left
    right = evaluate_lanes(s, e.rhs, index)
    both = e.op is LogicalOp.AND
    return [(int(bool((a and b) if both else (a or b))), p or q) for (a, p), (b, q) in zip(left, right, strict=True)]


def _not(s: State, e: Not, index: bool) -> list[Lane]:
    return [(int(not a), p) for a, p in evaluate_lanes(s, e.operand, index)]


def _select(s: State, e: Select, index: bool) -> list[Lane]:
    conditions = evaluate_lanes(s, e.condition, index)
    then, otherwise = evaluate_lanes(s, e.then, index), evaluate_lanes(s, e.otherwise, index)
    if len(conditions) == 1:
        conditions = conditions * len(then)
    chosen = []
    for (c, r), (a, p), (b, q) in zip(conditions, then, otherwise, strict=True):
        chosen.append((a if c else b, r or (p if c else q)))
    return chosen


def _choice(s: State, e: IfThenElseExpr, index: bool) -> list[Lane]:
    taken = controlling(s, e.condition, "the condition of if_then_else", index)
    return evaluate_lanes(s, e.then if taken else e.otherwise, index)


def _cast(s: State, e: Cast, index: bool) -> list[Lane]:
    source, target = e.value.dtype.element, e.dtype.element
    exact = index and source.is_integer
    result: list[Lane] = []
    for value, tainted in evaluate_lanes(s, e.value, exact):
        if index and source.is_integer and target.is_integer:
            result.append((settle(int(value), target, True), tainted))
        else:
            result.append((semantics.cast_value(value, source, target), tainted))
    return result


def _reinterpret(s: State, e: Reinterpret, index: bool) -> list[Lane]:
    lanes = evaluate_lanes(s, e.value, False)
    return [(semantics.float_of_bits(int(value), e.dtype.element), tainted) for value, tainted in lanes]


def _ramp(s: State, e: Ramp, index: bool) -> list[Lane]:
    (base, p), (stride, q) = evaluate_one(s, e.base, index), evaluate_one(s, e.stride, index)
    return [(settle(int(base) + k * int(stride), e.dtype.element, index), p or q) for k in range(e.lanes)]


def _variable(s: State, e: Var, index: bool) -> list[Lane]:
    if e.name in s.env:
        return list(s.env[e.name])
    if e.name in s.facts.symbols:
        return [(s.facts.symbols[e.name], False)]
    if e.name in s.floats:
        return [(s.floats[e.name], False)]
    raise cannot_interpret(f"the variable {e.name}, which is bound nowhere,", e.span)


def _call(s: State, e: Call, index: bool) -> list[Lane]:
    lanes = zip(*(evaluate_lanes(s, a, index) for a in e.arguments), strict=True)
    dtype = e.dtype.element
    result: list[Lane] = []
    for lane in lanes:
        values = tuple(v for v, _ in lane)
        value = (
            settle(abs(int(values[0])), dtype, index)
            if dtype.is_integer
            else runtime.call_math(e.function, values, dtype)
        )
        result.append((value, any(t for _, t in lane)))
    return result


def _limit(s: State, e: Limit, index: bool) -> list[Lane]:
    if e.dtype.is_integer:
        return [(e.dtype.min_int if e.kind is LimitKind.MIN else e.dtype.max_int, False)]
    match e.kind:
        case LimitKind.INFINITY:
            return [(math.inf, False)]
        case LimitKind.MIN:
            return [(-semantics.max_finite(e.dtype), False)]
        case LimitKind.MAX:
            return [(semantics.max_finite(e.dtype), False)]


def _load(s: State, e: BufferLoad, index: bool) -> list[Lane]:
    dtype = e.buffer.dtype.element
    result: list[Lane] = []
    for storage, address, element in cells_of(s, e.buffer, e.indices):
        state = worst_state(storage.states(dtype.bits // 8, address))
        if not state & READABLE:
            runtime.unreadable(state, e.buffer.name, element)
        track(s, "reads", dtype, e.buffer, (storage, address, element))
        value = storage.read(dtype, address)
        result.append((int(value != 0) if dtype.is_bool else value, bool(state & ARBITRARY)))
    return result


Cell = tuple[Storage, int, tuple[int, ...]]
"""One scalar of an access: its memory, its number there, and the element's indices."""


def cells_of(s: State, buffer: Buffer, indices: tuple[Expr, ...]) -> list[Cell]:
    """The scalars of an access. Raises Fault outside any bound."""
    storage = s.memory.get(s.facts.memories.of(buffer))
    if storage is None:
        raise cannot_interpret(
            f"buffer {buffer.name}, whose data {buffer.data.name} is not allocated here,", buffer.span
        )
    lanes = [evaluate_lanes(s, i, True) for i in indices]
    extents = [controlling(s, e, "a shape", True) for e in buffer.shape]
    strides = [controlling(s, e, "a stride", True) for e in buffer.strides]
    if not buffer.strides:
        strides = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
    offset = controlling(s, buffer.elem_offset, "an offset", True)
    size = storage.size // buffer.dtype.bytes
    cells = []
    for lane in range(max((len(x) for x in lanes), default=1)):
        chosen = [x[lane] if len(x) > 1 else x[0] for x in lanes]
        element = tuple(int(value) for value, _ in chosen)
        for axis, ((value, tainted), extent) in enumerate(zip(chosen, extents, strict=True)):
            if tainted:
                runtime.undefined(f"index {axis} of {buffer.name}")
            if not 0 <= value < extent:
                runtime.out_of_bounds(buffer.name, element, axis, extent)
        place = offset + sum(i * k for i, k in zip(element, strides, strict=True))
        if not 0 <= place < size:
            runtime.past_end(buffer.name, element, place, size)
        cells += [(storage, place * buffer.dtype.lanes + k, element) for k in range(buffer.dtype.lanes)]
    return cells


def track(s: State, what: str, dtype: DType, buffer: Buffer, cell: Cell) -> None:
    """Tell the concurrent loops around that this iteration reads or writes a cell."""
    storage, address, element = cell
    units = dtype.bits // 8 // storage.unit
    for level in s.levels:
        table = level.tables.get(id(storage))
        for unit in range(address * units, (address + 1) * units) if table is not None else ():
            assert table is not None
            (table.reads if what == "reads" else table.writes)(unit, level.iteration, buffer.name, element)


def store_lanes(s: State, buffer: Buffer, indices: tuple[Expr, ...], lanes: list[Lane], assumed: bool = False) -> None:
    """Store values that are all evaluated. Raises Fault for bounds, forbidden cells, races, and lanes that meet.

    `assumed`: nothing is stored in truth, the cells are only said to hold these values; that cannot race.
    """
    cells = cells_of(s, buffer, indices)
    dtype = buffer.dtype.element
    if not assumed and len({address for _, address, _ in cells}) != len(cells):
        runtime.lanes_collide(buffer.name, cells[0][2])
    for (storage, address, element), (value, tainted) in zip(cells, lanes, strict=True):
        if FORBIDDEN in storage.states(dtype.bits // 8, address):
            runtime.unwritable(buffer.name, element)
        if not assumed:
            track(s, "writes", dtype, buffer, (storage, address, element))
        storage.write(dtype, address, value)
        storage.set_states(dtype.bits // 8, address, POISON if tainted else DEFINED)


def _refuse(s: State, e: Expr, index: bool) -> list[Lane]:
    what = f"the call of {e.function}" if isinstance(e, OpaqueCall) else f"{type(e).__name__} as a value"
    raise cannot_interpret(what, e.span)


_EVALUATORS: Mapping[type, Callable[..., list[Lane]]] = {
    IntImm: lambda s, e, index: [(e.value, False)],
    FloatImm: lambda s, e, index: [(e.value, False)],
    Limit: _limit,
    Var: _variable,
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: _not,
    Select: _select,
    IfThenElseExpr: _choice,
    Cast: _cast,
    Reinterpret: _reinterpret,
    Ramp: _ramp,
    Broadcast: lambda s, e, index: [evaluate_one(s, e.value, index)] * e.lanes,
    Call: _call,
    Undef: lambda s, e, index: [(s.undef(e.dtype.element), True) for _ in range(e.dtype.lanes)],
    BufferLoad: _load,
    OpaqueCall: _refuse,
    Assume: _refuse,
    PointerCast: _refuse,
    StringImm: _refuse,
    Reducer: _refuse,
}

EVALUATED = frozenset(_EVALUATORS)
"""The node types that the plain evaluator knows."""
