"""Activations: functions of one element, some with numbers of their own, as texts over `{a}`, `{dtype}` and the numbers `{0}`, `{1}`.

Each is said so that NaN stays NaN where ONNX keeps it: `T.max(0, a)` is `a` unless 0 is larger, so it is NaN for NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Final

from layoutproof.graph.operators.page import highest, lowest, number, require

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
    "gelu_tanh": (0, f"T.{{dtype}}(0.5) * {{a}} * (T.{{dtype}}(1) + T.tanh(T.{{dtype}}({sqrt(2 / pi)!r}) * ({_CUBIC})))"),
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
