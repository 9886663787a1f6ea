"""Statements of several lanes as vector code: whole vectors loaded, computed with and stored; the C types of several
lanes, and small functions on them, as compiler vectors or as plain loops.

What has no vector form (scattered lanes, half precision, a number of lanes that is no power of two) is left to the
loops over lanes of `c_stmt`. All lanes are computed before one is stored, as the program's vector store requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.ir import interval
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Broadcast, Compare, Expr, IfThenElseExpr, IntImm, Ramp, Select, Var
from layoutproof.ir.intrinsics import Call
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.stmt import BufferStore
from layoutproof.lowering.codegen.c_arithmetic import emit_call
from layoutproof.lowering.codegen.c_expr import Expressions
from layoutproof.lowering.codegen.c_types import Binding, CType, Fragment, storage_type, value_type, variable_type
from layoutproof.lowering.codegen.c_types import storage_type as element_type
from layoutproof.lowering.codegen.writer import Helper

MAX_BYTES = 64
"""The widest vector that is made: that of the widest registers there are."""

ARITHMETIC: Mapping[str, str] = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
CHOICES: Mapping[str, str] = {"min": "<", "max": ">"}
COMPARISONS: Mapping[str, str] = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
MATH: Mapping[str, int] = {"fma": 3, "sqrt": 1, "abs": 1, "floor": 1, "ceil": 1, "trunc": 1}
"""Math functions that have lanes, with their numbers of arguments: those that IEEE 754 defines."""

_LETTERS: Mapping[Kind, str] = {Kind.INT: "i", Kind.UINT: "u", Kind.FLOAT: "f"}
_NAME = re.compile(r"lp_(?:([a-z]+)_)?([iuf])(8|16|32|64)x(\d+)")


def has_vectors(dtype: DType) -> bool:
    """Whether values of a type of several lanes can be vectors of C: plain numbers, a power of two of them, not wider
    than a register.
    """
    element = dtype.element
    if element.is_bool or element.kind not in _LETTERS or (element.is_float and element.bits < 32):
        return False
    lanes = dtype.lanes
    return lanes > 1 and lanes & (lanes - 1) == 0 and dtype.bytes <= MAX_BYTES


def vector_suffix(dtype: DType) -> str:
    """`f32x8` for `float32x8`."""
    return f"{_LETTERS[dtype.kind]}{dtype.bits}x{dtype.lanes}"


def vector_helper(name: str) -> Helper:
    """The type or function of a name like `lp_f32x8` or `lp_add_f32x8`. Raises KeyError for an unknown one."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise KeyError(name)
    action, letter, bits, lanes = found.groups()
    kind = {letter: kind for kind, letter in _LETTERS.items()}[letter]
    dtype = DType(kind, int(bits), int(lanes))
    if not has_vectors(dtype):
        raise KeyError(name)
    if action is None:
        return _type(dtype)
    if action in ARITHMETIC:
        return _arithmetic(action, dtype)
    if action in CHOICES:
        return _choice_helper(action, dtype)
    if action in COMPARISONS:
        return _comparison(action, dtype)
    if action in MATH:
        return _math(action, dtype)
    return _OTHERS[action](dtype)


def _type(dtype: DType) -> Helper:
    """Vectors in memory are aligned as their elements, and may alias them."""
    element, name = storage_type(dtype), f"lp_{vector_suffix(dtype)}"
    attributes = f"vector_size({dtype.bytes}), aligned({dtype.element.bytes}), may_alias"
    return Helper(
        f"""#if LP_VECTORS
typedef {element} {name} __attribute__(({attributes}));
#else
typedef struct {{
    {element} lane[{dtype.lanes}];
}} {name};
#endif""",
        ("LP_VECTORS",),
    )


SWITCH = Helper(
    """/* Vectors: those of the compiler, or arrays of lanes where it has none or LP_NO_VECTORS is defined. */
#if defined(__GNUC__) && !defined(LP_NO_VECTORS)
#define LP_VECTORS 1
#define LP_INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi"
#else
#define LP_VECTORS 0
#define LP_INLINE static inline
#endif"""
)


def _helper(dtype: DType, signature: str, vector: str, lanes: str, needs: Sequence[str] = ()) -> Helper:
    """A function with one body for vectors and one for lanes."""
    text = f"""LP_INLINE {signature} {{
#if LP_VECTORS
    {vector}
#else
    {lanes}
#endif
}}"""
    return Helper(text, (_kind(dtype), *needs))


def _function(action: str, dtype: DType, parameters: str, vector: str, each: str, needs: Sequence[str] = ()) -> Helper:
    """A function that gives a vector; `each` is the statement for lane `k` of the result `r`."""
    kind = _kind(dtype)
    lanes = f"{kind} r;\n    {_each_lane(dtype, each)}\n    return r;"
    return _helper(dtype, f"{kind} lp_{action}_{vector_suffix(dtype)}({parameters})", vector, lanes, needs)


def _each_lane(dtype: DType, statement: str) -> str:
    return f"for (int k = 0; k < {dtype.lanes}; ++k) {{\n        {statement}\n    }}"


def _kind(dtype: DType) -> str:
    return f"lp_{vector_suffix(dtype)}"


def _arithmetic(action: str, dtype: DType) -> Helper:
    kind, symbol = _kind(dtype), ARITHMETIC[action]
    parameters = f"{kind} a, {kind} b"
    if dtype.is_float:
        each = f"r.lane[k] = a.lane[k] {symbol} b.lane[k];"
        return _function(action, dtype, parameters, f"return a {symbol} b;", each)
    if action == "div":
        raise KeyError(action)
    # Integers wrap; C says so of unsigned ones alone, and of those only where they are not narrower than int.
    bits = _kind(DType(Kind.UINT, dtype.bits, dtype.lanes))
    element, wide = storage_type(dtype), f"uint{max(dtype.bits, 32)}_t"
    vector = f"return ({kind})(({bits})a {symbol} ({bits})b);"
    each = f"r.lane[k] = ({element})(({wide})a.lane[k] {symbol} ({wide})b.lane[k]);"
    return _function(action, dtype, parameters, vector, each, (bits,))


def _choice_helper(action: str, dtype: DType) -> Helper:
    kind, symbol, mask = _kind(dtype), CHOICES[action], _mask(dtype)
    vector = f"{mask} first = ({mask})(a {symbol} b);\n    return ({kind})((first & ({mask})a) | (~first & ({mask})b));"
    each = f"r.lane[k] = a.lane[k] {symbol} b.lane[k] ? a.lane[k] : b.lane[k];"
    return _function(action, dtype, f"{kind} a, {kind} b", vector, each, (mask,))


def _mask(dtype: DType) -> str:
    """The type of truth values for lanes of a type: all bits of a lane set, or none."""
    return _kind(DType(Kind.INT, dtype.bits, dtype.lanes))


def _comparison(action: str, dtype: DType) -> Helper:
    kind, symbol, mask = _kind(dtype), COMPARISONS[action], _mask(dtype)
    each = f"r.lane[k] = a.lane[k] {symbol} b.lane[k] ? -1 : 0;"
    return _helper(
        dtype,
        f"{mask} lp_{action}_{vector_suffix(dtype)}({kind} a, {kind} b)",
        f"return ({mask})(a {symbol} b);",
        f"{mask} r;\n    {_each_lane(dtype, each)}\n    return r;",
        (mask,),
    )


def _select(dtype: DType) -> Helper:
    """Lanes of `a` where a mask has all bits set, lanes of `b` where it has none."""
    kind, mask = _kind(dtype), _mask(dtype)
    vector = f"return ({kind})((mask & ({mask})a) | (~mask & ({mask})b));"
    each = "r.lane[k] = mask.lane[k] != 0 ? a.lane[k] : b.lane[k];"
    return _function("select", dtype, f"{mask} mask, {kind} a, {kind} b", vector, each, (mask,))


def _math(action: str, dtype: DType) -> Helper:
    """Lane by lane in the text; compilers make one instruction of it where there is one."""
    if not dtype.is_float:
        raise KeyError(action)
    kind, letters = _kind(dtype), "abc"[: MATH[action]]
    needs: set[str] = set()

    def lane(form: str) -> str:
        arguments = [Fragment(form.format(letter), Binding.PRIMARY, value_type(dtype.element)) for letter in letters]
        return emit_call(action, arguments, dtype.element, needs).text

    lanes = ", ".join(lane(f"{{}}[{k}]") for k in range(dtype.lanes))
    parameters = ", ".join(f"{kind} {letter}" for letter in letters)
    each = f"r.lane[k] = {lane('{}.lane[k]')};"
    return _function(action, dtype, parameters, f"return ({kind}){{{lanes}}};", each, sorted(needs))


def _load_helper(dtype: DType) -> Helper:
    vector = f"return *(const {_kind(dtype)} *)p;"
    return _function("load", dtype, f"const {storage_type(dtype)} *p", vector, "r.lane[k] = p[k];")


def _store(dtype: DType) -> Helper:
    kind = _kind(dtype)
    signature = f"void lp_store_{vector_suffix(dtype)}({storage_type(dtype)} *p, {kind} a)"
    return _helper(dtype, signature, f"*({kind} *)p = a;", _each_lane(dtype, "p[k] = a.lane[k];"))


def _set(dtype: DType) -> Helper:
    vector = f"return ({_kind(dtype)}){{{', '.join(['x'] * dtype.lanes)}}};"
    return _function("set", dtype, f"{storage_type(dtype)} x", vector, "r.lane[k] = x;")


def _gather(dtype: DType) -> Helper:
    """Elements at a constant distance."""
    lanes = ", ".join(f"p[{k} * step]" for k in range(dtype.lanes))
    parameters = f"const {storage_type(dtype)} *p, ptrdiff_t step"
    return _function("gather", dtype, parameters, f"return ({_kind(dtype)}){{{lanes}}};", "r.lane[k] = p[k * step];")


_OTHERS: Mapping[str, Callable[[DType], Helper]] = {
    "load": _load_helper,
    "store": _store,
    "set": _set,
    "gather": _gather,
    "select": _select,
}
ACTIONS = (*ARITHMETIC, *CHOICES, *COMPARISONS, *MATH, *_OTHERS)


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
