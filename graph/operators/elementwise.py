"""Operators that compute each element from the elements at one place, with broadcasting as in numpy, activations
included. NaN stays NaN where ONNX keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import pi, sqrt
from typing import Final

from layoutproof.graph.model.graph import Shape
from layoutproof.graph.operators.operator_text import (
    Nest,
    access,
    cached_by_number,
    function,
    highest,
    lowest,
    number,
    refused,
    require,
    variables,
)
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc

Numbers = tuple[float, ...]
"""The numbers of an activation, in the order of its text."""

# log(1 + exp(a)), with a power of no positive number, which could be infinite.
_SOFTPLUS = "T.max(T.{dtype}(0), {a}) + T.log(T.{dtype}(1) + T.exp(T.{dtype}(0) - T.abs({a})))"
_HARD_SIGMOID = "T.max(T.{dtype}(0), T.min(T.{dtype}(1), {0} * {a} + {1}))"
_CUBIC = "{a} + T.{dtype}(0.044715) * {a} * {a} * {a}"

ACTIVATIONS: Final[Mapping[str, tuple[int, str]]] = {
    "leaky_relu": (1, "T.Select({a} < T.{dtype}(0), {0} * {a}, {a})"),
    "elu": (1, "T.Select({a} < T.{dtype}(0), {0} * (T.exp({a}) - T.{dtype}(1)), {a})"),
    "selu": (2, "{1} * T.Select({a} < T.{dtype}(0), {0} * T.exp({a}) - {0}, {a})"),
    "celu": (1, "T.max(T.{dtype}(0), {a}) + T.min(T.{dtype}(0), {0} * (T.exp({a} / {0}) - T.{dtype}(1)))"),
    "hard_sigmoid": (2, _HARD_SIGMOID),
    "hard_swish": (2, f"{{a}} * {_HARD_SIGMOID}"),
    "softplus": (0, _SOFTPLUS),
    "softsign": (0, "{a} / (T.{dtype}(1) + T.abs({a}))"),
    "mish": (0, f"{{a}} * T.tanh({_SOFTPLUS})"),
    "gelu": (0, f"T.{{dtype}}(0.5) * {{a}} * (T.{{dtype}}(1) + T.erf({{a}} * T.{{dtype}}({sqrt(0.5)!r})))"),
    "gelu_tanh": (
        0,
        f"T.{{dtype}}(0.5) * {{a}} * (T.{{dtype}}(1) + T.tanh(T.{{dtype}}({sqrt(2 / pi)!r}) * ({_CUBIC})))",
    ),
    "swish": (1, "{a} * T.sigmoid({0} * {a})"),
    "thresholded_relu": (1, "T.Select({a} > {0}, {a}, T.{dtype}(0))"),
    "shrink": (2, "T.Select({a} < T.{dtype}(0) - {0}, {a} + {1}, T.Select({a} > {0}, {a} - {1}, T.{dtype}(0)))"),
}
"""By names, how many numbers each takes, and its text."""

CLIP: Final = "clip"
"""Between two numbers; of those that are the wrong way round, the upper one."""


def activation(kind: str, numbers: Numbers, dtype: str) -> str:
    """The text of an activation of `{X}`. Raises LayoutproofError for other numbers than it takes."""
    count, text = ACTIVATIONS.get(kind, (2, ""))
    require(len(numbers) == count, kind, f"it takes {count} numbers, not {len(numbers)}")
    found = [number(each, dtype) for each in numbers]
    if kind != CLIP:
        return text.format(*found, a="{X}", dtype=dtype)
    value = "{X}" if found[0] == lowest(dtype) else f"T.max({found[0]}, {{X}})"
    return value if found[1] == highest(dtype) else f"T.min({found[1]}, {value})"


UNARY: Final[Mapping[str, str]] = {
    "relu": "T.max(T.{dtype}(0), {a})",
    "sigmoid": "T.sigmoid({a})",
    "tanh": "T.tanh({a})",
    "exp": "T.exp({a})",
    "log": "T.log({a})",
    "sqrt": "T.sqrt({a})",
    "abs": "T.abs({a})",
    "negative": "{minus} - {a}",
    "erf": "T.erf({a})",
    "floor": "T.floor({a})",
    "ceil": "T.ceil({a})",
    "sin": "T.sin({a})",
    "cos": "T.cos({a})",
    "tan": "T.tan({a})",
    "sinh": "T.sinh({a})",
    "cosh": "T.cosh({a})",
    "atan": "T.atan({a})",
    "reciprocal": "T.{dtype}(1) / {a}",
    "square": "{a} * {a}",
    "round": "T.round({a})",
    # NaN is its own sign, and a sum makes one zero of both.
    "sign": "T.Select({a} > T.{dtype}(0), T.{dtype}(1), T.Select({a} < T.{dtype}(0), T.{dtype}(-1), {a} + "
    "T.{dtype}(0)))",
}
BINARY: Final[Mapping[str, str]] = {
    "add": "{a} + {b}",
    "subtract": "{a} - {b}",
    "multiply": "{a} * {b}",
    "divide": "{a} / {b}",
    "maximum": "T.maximum({a}, {b})",
    "minimum": "T.minimum({a}, {b})",
    "not_below": "T.max({a}, {b})",
    "not_above": "T.min({a}, {b})",
    "leaky_multiply": "T.Select({a} < T.{dtype}(0), {b} * {a}, {a})",
    "power": "T.pow({a}, {b})",
}
"""`leaky_multiply` is the product where the first operand is below zero, and that one elsewhere; `not_below` and
`not_above` are the second one unless the first is larger, or smaller.
"""
_NONE: Final = "T.if_then_else({b} == T.{dtype}(0), T.{dtype}(0), "
_LEAST: Final = "T.if_then_else({b} == T.{dtype}(-1), "
UNSIGNED: Final[Mapping[str, str]] = {
    **{kind: text for kind, text in BINARY.items() if kind not in ("power", "leaky_multiply")},
    "divide": f"{_NONE}T.truncdiv({{a}}, {{b}}))",
    "maximum": "T.max({a}, {b})",
    "minimum": "T.min({a}, {b})",
    "modulo": f"{_NONE}T.floormod({{a}}, {{b}}))",
    "remainder": f"{_NONE}T.truncmod({{a}}, {{b}}))",
    "bitwise_and": "{a} & {b}",
    "bitwise_or": "{a} | {b}",
    "bitwise_xor": "{a} ^ {b}",
    "shift_left": "T.if_then_else({b} < T.{dtype}({bits}), {a} << {b}, T.{dtype}(0))",
    "shift_right": "T.if_then_else({b} < T.{dtype}({bits}), {a} >> {b}, T.{dtype}(0))",
}
"""What there is of integers without a sign. All of it has a result whatever the operands are: what is divided by zero
is zero.
"""
SIGNED: Final[Mapping[str, str]] = {
    **{kind: text for kind, text in UNSIGNED.items() if not kind.startswith("shift")},
    "leaky_multiply": BINARY["leaky_multiply"],
    "divide": f"{_LEAST}T.{{dtype}}(0) - {{a}}, {UNSIGNED['divide']})",
    "modulo": f"{_LEAST}T.{{dtype}}(0), {UNSIGNED['modulo']})",
    "remainder": f"{_LEAST}T.{{dtype}}(0), {UNSIGNED['remainder']})",
}
"""What there is of integers with a sign; `modulo` has the sign of the second operand, `remainder` that of the first.
The least number divided by -1 is that number again.
"""
COMPARISONS: Final[Mapping[str, str]] = {
    "equal": "{a} == {b}",
    "not_equal": "{a} != {b}",
    "less": "{a} < {b}",
    "less_equal": "{a} <= {b}",
    "greater": "{a} > {b}",
    "greater_equal": "{a} >= {b}",
}
LOGICAL: Final[Mapping[str, str]] = {
    "logical_and": "{a} and {b}",
    "logical_or": "{a} or {b}",
    "logical_xor": "({a} and not {b}) or ({b} and not {a})",
    "equal": "({a} and {b}) or (not {a} and not {b})",
    "not_equal": "({a} and not {b}) or ({b} and not {a})",
}
"""Operators on truth values."""


@cached_by_number
def unary(kind: str, shape: Shape, dtype: str = "float32", numbers: Numbers = ()) -> PrimFunc:
    """`Y[i] = kind(X[i])` for `UNARY`, `ACTIVATIONS`, or `clip` with numbers. Raises LayoutproofError for others."""
    if kind in ACTIVATIONS or kind == CLIP:
        return pointwise(kind, {"X": shape}, activation(kind, numbers, dtype), dtype=dtype)
    if kind not in UNARY:
        raise refused(
            kind, f"there is no such operator of one operand; available: {', '.join((*UNARY, *ACTIVATIONS, CLIP))}"
        )
    require(not numbers, kind, f"it takes no numbers, not {list(numbers)}")
    # What is taken from -0.0 changes the sign of 0.0 as well.
    minus = number(-0.0 if DType.parse(dtype).is_float else 0, dtype)
    value = UNARY[kind].format(a="{X}", dtype=dtype, minus=minus)
    return pointwise(kind, {"X": shape}, value, dtype=dtype)


@cache
def binary(kind: str, first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y = kind(A, B)` for a kind of `BINARY`, or of those that make truth values; axes of extent 1, and axes that are
    missing in front, are repeated.

    Raises LayoutproofError for another kind, and for shapes that do not go together.
    """
    element = DType.parse(dtype)
    numbers = BINARY if element.is_float else UNSIGNED if dtype.startswith("u") else SIGNED
    known = LOGICAL if element.is_bool else {**numbers, **COMPARISONS}
    if kind not in known:
        raise refused(kind, f"there is no such operator of two operands of type {dtype}; available: {', '.join(known)}")
    value = known[kind].format(a="{A}", b="{B}", dtype=dtype, bits=element.bits)
    return pointwise(
        kind, {"A": first, "B": second}, value, dtype=dtype, result="bool" if kind in COMPARISONS else dtype
    )


@cache
def choose(condition: Shape, first: Shape, second: Shape, dtype: str = "float32") -> PrimFunc:
    """`Y` is `A` where `C` holds, else `B`, with broadcasting. Raises LayoutproofError for shapes that do not fit."""
    return pointwise(
        "where", {"C": condition, "A": first, "B": second}, "T.Select({C}, {A}, {B})", dtype=dtype, dtypes={"C": "bool"}
    )


@cache
def cast(shape: Shape, source: str, target: str) -> PrimFunc:
    """The elements in another type; what is not zero is true. Raises LayoutproofError for what is no type."""
    old, new = DType.parse(source), DType.parse(target)
    value = "{X}" if old == new else f'T.Cast("{target}", {{X}})'
    if new.is_bool and not old.is_bool:
        value = f"{{X}} != {number(0, source)}"
    elif old.is_bool and not new.is_bool:
        value = f"T.Select({{X}}, {number(1, target)}, {number(0, target)})"
    return pointwise("cast", {"X": shape}, value, dtype=source, result=target)


@cache
def predicate(kind: str, shape: Shape, dtype: str = "float32") -> PrimFunc:
    """A truth value for each element: `is_nan`, `is_inf`, `is_positive_inf`, `is_negative_inf`; of truth values
    `logical_not`.

    Raises LayoutproofError for others.
    """
    infinite, below = (f'{{X}} == T.{dtype}("{sign}inf")' for sign in ("", "-"))
    tests = {
        "is_nan": "{X} != {X}",
        "is_inf": f"{infinite} or {below}",
        "is_positive_inf": infinite,
        "is_negative_inf": below,
    }
    if DType.parse(dtype).is_bool:
        tests = {"logical_not": "not {X}"}
    if kind not in tests:
        raise refused(kind, f"there is no such test of type {dtype}; available: {', '.join(tests)}")
    return pointwise(kind, {"X": shape}, tests[kind], dtype=dtype, result="bool")


def pointwise(
    name: str,
    operands: Mapping[str, Shape],
    value: str,
    *,
    dtype: str = "float32",
    result: str | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> PrimFunc:
    """`Y` is a value of the elements of operands at its place, which stand in it as `{X}`; with broadcasting.

    `result` is the type of `Y`, `dtypes` are those of operands of another type than `dtype`.
    Raises LayoutproofError for shapes that do not go together.
    """
    shape = broadcast(name, *operands.values())
    axes = variables(shape)
    elements = {array: repeated(array, each, shape) for array, each in operands.items()}
    store = f"{access('Y', list(axes))} = {value.format(**elements)}"
    others = {**(dtypes if dtypes is not None else {}), "Y": result if result is not None else dtype}
    return function(name, {**operands, "Y": shape}, Nest(name, axes, store), dtype=dtype, dtypes=others)


def broadcast(operator: str, *shapes: Shape) -> Shape:
    """The common shape. Raises LayoutproofError where there is none."""
    rank = max(len(shape) for shape in shapes)
    longer = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    extents: Sequence[set[int]] = [set(axis) - {1} for axis in zip(*longer, strict=True)]
    if any(len(found) > 1 for found in extents):
        raise refused(operator, f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
    return tuple(max(found, default=1) for found in extents)


def repeated(array: str, shape: Shape, whole: Shape) -> str:
    """The element of an array that is repeated over a larger shape."""
    missing = len(whole) - len(shape)
    indices = ["0" if extent == 1 and whole[missing + k] != 1 else f"v{missing + k}" for k, extent in enumerate(shape)]
    return access(array, indices)
