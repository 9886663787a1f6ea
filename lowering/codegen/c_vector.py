"""Statements of several lanes as vector code: whole vectors loaded, computed with and stored.

What has no vector form (scattered lanes, half precision, a number of lanes that is no power of two) is left to the
loops over lanes of `c_stmt`. All lanes are computed before one is stored, as the program's vector store requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import Binary, Broadcast, Compare, Expr, IfThenElseExpr, IntImm, Ramp, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.c_types import Binding, CType, Fragment, variable_type
from layoutproof.lowering.codegen.c_types import storage_type as element_type
from layoutproof.lowering.codegen.c_vector_helpers import MATH, has_vectors, vector_suffix

_ACTIONS: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "add",
    BinaryOp.SUB: "sub",
    BinaryOp.MUL: "mul",
    BinaryOp.DIV: "div",
    BinaryOp.MIN: "min",
    BinaryOp.MAX: "max",
}

_COMPARISONS: Mapping[CompareOp, str] = {
    CompareOp.EQ: "eq",
    CompareOp.NE: "ne",
    CompareOp.LT: "lt",
    CompareOp.LE: "le",
    CompareOp.GT: "gt",
    CompareOp.GE: "ge",
}


def vector_store(expressions: Expressions, stmt: BufferStore) -> str | None:
    """A store of all lanes at once as a statement; None where there is no vector form."""
    step = _step(expressions, stmt)
    if step is None or not _is_one(step) or not _fits(expressions, stmt.value):
        return None
    value = _emit(expressions, stmt.value)
    return f"{_name(expressions, 'store', stmt.value.dtype)}({_place(expressions, stmt)}, {value});"


def vector_fill(expressions: Expressions, name: str, value: Expr) -> str | None:
    """All lanes of `value` stored to the array `name` at once; None where there is no vector form."""
    if not _fits(expressions, value) or variable_type(value.dtype.element) != element_type(value.dtype):
        return None
    return f"{_name(expressions, 'store', value.dtype)}({name}, {_emit(expressions, value)});"


# --- what has a form


def _fits(expressions: Expressions, expr: Expr) -> bool:
    test = _TESTS.get(type(expr))
    return test is not None and has_vectors(expr.dtype) and test(expressions, expr)


def _load_fits(expressions: Expressions, expr: BufferLoad) -> bool:
    return _step(expressions, expr) is not None


def _broadcast_fits(expressions: Expressions, expr: Broadcast) -> bool:
    return True


def _binary_fits(expressions: Expressions, expr: Binary) -> bool:
    if expr.op not in _ACTIONS or (expr.op is BinaryOp.DIV and not expr.dtype.is_float):
        return False
    return _fits(expressions, expr.lhs) and _fits(expressions, expr.rhs)


def _call_fits(expressions: Expressions, expr: Call) -> bool:
    return expr.function in MATH and expr.dtype.is_float and all(_fits(expressions, a) for a in expr.arguments)


def _choice_fits(expressions: Expressions, expr: Select | IfThenElseExpr) -> bool:
    """One condition for all lanes, or a comparison of vectors whose lanes are as wide as those of the choice."""
    condition = expr.condition
    if isinstance(condition, Compare) and condition.dtype.lanes > 1:
        alike = condition.lhs.dtype.bits == expr.dtype.bits
        if not (alike and _fits(expressions, condition.lhs) and _fits(expressions, condition.rhs)):
            return False
    elif condition.dtype.lanes > 1 and not isinstance(condition, Broadcast):
        return False
    return _fits(expressions, expr.then) and _fits(expressions, expr.otherwise)


def _variable_fits(expressions: Expressions, expr: Var) -> bool:
    """A name for lanes is an array of them; narrow types and truth values have elements of another type there."""
    return expr.name in expressions.variables and variable_type(expr.dtype.element) == element_type(expr.dtype)


_TESTS: Mapping[type[Expr], Callable[[Expressions, Any], bool]] = {
    BufferLoad: _load_fits,
    Broadcast: _broadcast_fits,
    Binary: _binary_fits,
    Call: _call_fits,
    Select: _choice_fits,
    IfThenElseExpr: _choice_fits,
    Var: _variable_fits,
}


def _step(expressions: Expressions, access: BufferLoad | BufferStore) -> Expr | None:
    """The distance between lanes of an access; None where it is not constant, or memory is seen as several types."""
    memory, buffer = expressions.memory.of(access.buffer), access.buffer
    if memory is None or memory.mixed or len(access.indices) != 1 or not has_vectors(_accessed(access)):
        return None
    (index,) = access.indices
    if buffer.dtype.lanes > 1:
        return IntImm(1, index.dtype.element) if index.dtype.lanes == 1 else None
    return index.stride if isinstance(index, Ramp) and index.stride.dtype.lanes == 1 else None


def _accessed(access: BufferLoad | BufferStore) -> DType:
    return access.value.dtype if isinstance(access, BufferStore) else access.dtype


def _is_one(step: Expr) -> bool:
    return isinstance(step, IntImm) and step.value == 1


# --- what it looks like


def _name(expressions: Expressions, action: str, dtype: DType) -> str:
    name = f"lp_{action}_{vector_suffix(dtype)}"
    expressions.helpers.add(name)
    return name


def _emit(expressions: Expressions, expr: Expr) -> str:
    return _EMITTERS[type(expr)](expressions, expr)


def _load(expressions: Expressions, expr: BufferLoad) -> str:
    step = _step(expressions, expr)
    assert step is not None
    place = _place(expressions, expr)
    if _is_one(step):
        return f"{_name(expressions, 'load', expr.dtype)}({place})"
    return f"{_name(expressions, 'gather', expr.dtype)}({place}, {expressions.emit_index(step).text})"


def _place(expressions: Expressions, access: BufferLoad | BufferStore) -> str:
    buffer, (index,) = access.buffer, access.indices
    pointer = expressions.pointers[buffer.data.name]
    if isinstance(index, Ramp):
        first = (
            replace(access, indices=(index.base,))
            if isinstance(access, BufferLoad)
            else BufferLoad(buffer, (index.base,))
        )
        address = expressions.address(first, None)
    else:
        zero = Fragment("0", Binding.PRIMARY, CType.I32, interval.point(0))
        address = expressions.address(access, zero)
    return f"&{pointer}[{address.text}]"


def _broadcast(expressions: Expressions, expr: Broadcast) -> str:
    return f"{_name(expressions, 'set', expr.dtype)}({expressions.emit(expr.value).text})"


def _binary(expressions: Expressions, expr: Binary) -> str:
    name = _name(expressions, _ACTIONS[expr.op], expr.dtype)
    return f"{name}({_emit(expressions, expr.lhs)}, {_emit(expressions, expr.rhs)})"


def _call(expressions: Expressions, expr: Call) -> str:
    return (
        f"{_name(expressions, expr.function, expr.dtype)}({', '.join(_emit(expressions, a) for a in expr.arguments)})"
    )


def _choice(expressions: Expressions, expr: Select | IfThenElseExpr) -> str:
    condition, (then, otherwise) = expr.condition, (_emit(expressions, side) for side in (expr.then, expr.otherwise))
    if isinstance(condition, Compare) and condition.dtype.lanes > 1:
        compare = _name(expressions, _COMPARISONS[condition.op], condition.lhs.dtype)
        mask = f"{compare}({_emit(expressions, condition.lhs)}, {_emit(expressions, condition.rhs)})"
        return f"{_name(expressions, 'select', expr.dtype)}({mask}, {then}, {otherwise})"
    one = condition.value if isinstance(condition, Broadcast) else condition
    return f"({expressions.emit_condition(one).at(Binding.OR)} ? {then} : {otherwise})"


def _variable(expressions: Expressions, expr: Var) -> str:
    return f"{_name(expressions, 'load', expr.dtype)}({expressions.variables[expr.name].text})"


_EMITTERS: Mapping[type[Expr], Callable[[Expressions, Any], str]] = {
    BufferLoad: _load,
    Broadcast: _broadcast,
    Binary: _binary,
    Call: _call,
    Select: _choice,
    IfThenElseExpr: _choice,
    Var: _variable,
}
HANDLED = frozenset(_EMITTERS)
assert HANDLED == frozenset(_TESTS)
