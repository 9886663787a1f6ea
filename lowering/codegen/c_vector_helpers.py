"""C types of several lanes and small functions on them, as compiler vectors or as plain loops.

GCC and Clang have vector types (`__attribute__((vector_size))`); the text uses them unless `LP_NO_VECTORS` is defined,
and arrays of lanes elsewhere. Both compute the same: each lane is the scalar operation, rounded by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from layoutproof.ir.dtype import DType, Kind
from layoutproof.lowering.codegen.c_arithmetic import emit_call
from layoutproof.lowering.codegen.c_types import Binding, Fragment, storage_type, value_type
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
        return _choice(action, dtype)
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


def _choice(action: str, dtype: DType) -> Helper:
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


def _load(dtype: DType) -> Helper:
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
    "load": _load,
    "store": _store,
    "set": _set,
    "gather": _gather,
    "select": _select,
}
ACTIONS = (*ARITHMETIC, *CHOICES, *COMPARISONS, *MATH, *_OTHERS)
