"""Element-wise ONNX operators in terms of the operator library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layoutproof.graph.model.graph import Array, Value
from layoutproof.graph.operators.elementwise import binary, cast, choose, predicate, unary
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.optional_packages import library
from layoutproof.importers.onnx.translate import (
    Made,
    Operand,
    Translate,
    Translation,
    axis_of,
    called,
    has,
    only,
    refused,
    require,
    same_type,
    shape,
    type_of,
)
from layoutproof.ir.dtype import DType, numpy_dtype


def _unary(kind: str, kinds: str = "f") -> Translate:

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node, consumed_inputs=())
        dtype = same_type(into, node, node.operands, kinds)
        return (called(into, unary(kind, into.shape(node.operands[0]), dtype), node.operands[0]),)

    return translate


def _activation(kind: str, **numbers: float) -> Translate:
    """An activation, with what its numbers are where they are not given."""

    def translate(into: Translation, node: ModelNode) -> Made:
        given = only(node, consumed_inputs=(), **numbers)
        dtype = same_type(into, node, node.operands, "f")
        held = tuple(float(np.float32(given[name])) for name in numbers)
        return (called(into, unary(kind, into.shape(node.operands[0]), dtype, held), node.operands[0]),)

    return translate


def _hard_swish(into: Translation, node: ModelNode) -> Made:
    only(node)
    func = unary("hard_swish", into.shape(node.operands[0]), same_type(into, node, node.operands, "f"), (1 / 6, 0.5))
    return (called(into, func, node.operands[0]),)


def _gelu(into: Translation, node: ModelNode) -> Made:
    how = only(node, approximate="none")["approximate"]
    require(how in ("none", "tanh"), node, f"approximate is none or tanh, not {how}")
    dtype = same_type(into, node, node.operands, "f")
    return (
        called(
            into, unary("gelu" if how == "none" else "gelu_tanh", into.shape(node.operands[0]), dtype), node.operands[0]
        ),
    )


def _abs(into: Translation, node: ModelNode) -> Made:
    unsigned = str(type_of(into, node, node.operands[0])).startswith("u")
    return (into.known_as(node.operands[0]),) if unsigned else _unary("abs", "fi")(into, node)


def _bitwise_not(into: Translation, node: ModelNode) -> Made:
    dtype = same_type(into, node, node.operands, "iu")
    ones = np.array(-1).astype(dtype)
    return (called(into, binary("bitwise_xor", into.shape(node.operands[0]), (), dtype), node.operands[0], ones),)


def _binary(kind: str, kinds: str = "fiu") -> Translate:

    def translate(into: Translation, node: ModelNode) -> Made:
        first, second = _two(into, node)
        return (_both(into, node, kind, first, second, kinds),)

    return translate


def _two(into: Translation, node: ModelNode) -> tuple[Operand, Operand]:
    """Both operands. Up to version 6 the second is broadcast only on request, from a given axis."""
    given = only(node, consumed_inputs=(), broadcast=0, axis=None) if node.opset < 7 else only(node)
    first, second = node.operands
    if node.opset >= 7:
        return first, second
    whole, part = into.shape(first), into.shape(second)
    require(
        given["broadcast"] == 1 or whole == part,
        node,
        f"{second} is not repeated, so it has the shape {list(whole)}, not {list(part)}",
    )
    if given["axis"] is None or given["broadcast"] != 1:
        return first, second
    after = len(whole) - axis_of(node, given["axis"], len(whole) - 1) - len(part)
    require(after >= 0, node, f"from axis {given['axis']} on there are no {len(part)} axes")
    longer = (*part, *(1,) * after)
    return first, into.array(node, second).reshape(longer) if into.is_known(second) else into.value(second, longer)


def _both(
    into: Translation, node: ModelNode, kind: str, first: Operand, second: Operand, kinds: str = "fiu"
) -> Value | Array:
    dtype = same_type(into, node, (first, second), kinds)
    return called(into, binary(kind, shape(into, first), shape(into, second), dtype), first, second)


def _chain(kind: str, kinds: str = "fiu") -> Translate:
    """An operator of two operands, of more one after the other; of one that operand."""

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node, consumed_inputs=())
        return (_folded(into, node, kind, kinds),)

    return translate


def _folded(into: Translation, node: ModelNode, kind: str, kinds: str) -> Value | Array:
    require(len(node.operands) >= 1 and all(node.operands), node, "it has at least one operand, and none is left out")
    same_type(into, node, node.operands, kinds)
    made: Operand = node.operands[0]
    for operand in node.operands[1:]:
        made = _both(into, node, kind, made, operand, kinds)
    return into.known_as(made) if isinstance(made, str) else made


def _mean(into: Translation, node: ModelNode) -> Made:
    only(node, consumed_inputs=())
    total = _folded(into, node, "add", "f")
    count = np.array(len(node.operands)).astype(str(type_of(into, node, total)))
    return (_both(into, node, "divide", total, count),)


def _power(into: Translation, node: ModelNode) -> Made:
    base, exponent = _two(into, node)
    dtype = same_type(into, node, (base,), "fiu")
    known = (
        exponent
        if isinstance(exponent, np.ndarray)
        else into.known_as(exponent)
        if isinstance(exponent, str)
        else exponent
    )
    if (
        isinstance(known, np.ndarray)
        and known.size == 1
        and known.ndim <= len(shape(into, base))
        and known.reshape(-1)[0] == 2
    ):
        return (called(into, unary("square", shape(into, base), dtype), base),)
    require(type_of(into, node, base).is_float, node, "powers of integers are translated with the exponent 2 alone")
    other = str(type_of(into, node, exponent))
    if other != dtype and isinstance(known, np.ndarray):
        made = known.astype(numpy_dtype(DType.parse(dtype)))
        if (made.astype(known.dtype) == known).all():
            exponent, other = made, dtype
    if other == dtype:
        return (_both(into, node, "power", base, exponent),)
    # An exponent that is rounded may be even where it was odd; float64 has all that are not huge.
    exponent = known.astype(np.float64) if isinstance(known, np.ndarray) else exponent
    base, exponent = (_as_type(into, node, "float64", operand) for operand in (base, exponent))
    return (_as_type(into, node, dtype, _both(into, node, "power", base, exponent)),)


def _mod(into: Translation, node: ModelNode) -> Made:
    kind = "remainder" if only(node, fmod=0)["fmod"] else "modulo"
    return (_both(into, node, kind, node.operands[0], node.operands[1], "iu"),)


def _shift(into: Translation, node: ModelNode) -> Made:
    direction = only(node, direction="")["direction"]
    require(direction in ("LEFT", "RIGHT"), node, f"direction is LEFT or RIGHT, not {direction}")
    return (_both(into, node, f"shift_{direction.lower()}", node.operands[0], node.operands[1], "u"),)


def _prelu(into: Translation, node: ModelNode) -> Made:
    only(node, consumed_inputs=())
    data, slope = node.operands
    whole, part = into.shape(data), into.shape(slope)
    # Up to version 6 the slopes are those of channels.
    wanted = (*part, *(1,) * (len(whole) - 2)) if node.opset < 7 and len(part) == 1 and len(whole) > 2 else part
    longer = (1,) * (len(whole) - len(wanted)) + wanted
    fits = len(wanted) <= len(whole) and all(extent in (1, size) for extent, size in zip(longer, whole, strict=True))
    require(fits, node, f"slopes of {list(part)} are not repeated to {list(whole)}")
    slopes = into.array(node, slope).reshape(wanted) if into.is_known(slope) else into.value(slope, wanted)
    return (_both(into, node, "leaky_multiply", data, slopes),)


def _clip(into: Translation, node: ModelNode) -> Made:
    """Up to version 10 the bounds are attributes, from then on operands."""
    if node.opset < 11:
        given = only(node, min=None, max=None, consumed_inputs=())
        same_type(into, node, node.operands, "f")
        bounds: list[Operand | None] = [
            None if given[name] is None else np.array(given[name], np.float32) for name in ("min", "max")
        ]
    else:
        only(node)
        bounds = [node.operands[k] if has(node, k) else None for k in (1, 2)]
    data = node.operands[0]
    dtype = same_type(into, node, [data, *(bound for bound in bounds if isinstance(bound, str))], "fiu")
    known = [into.known_as(bound) if isinstance(bound, str) else bound for bound in bounds]
    require(all(each is None or int(np.prod(each.shape)) == 1 for each in known), node, "its bounds are single numbers")
    if all(each is None or isinstance(each, np.ndarray) for each in known):
        limits = _limits(DType.parse(dtype), known)
        return (called(into, unary("clip", into.shape(data), dtype, limits), data),)
    made: Operand = data
    # A bound comes first, so that NaN stays.
    for kind, bound in zip(("not_below", "not_above"), bounds, strict=True):
        if bound is not None:
            one = into.value(bound, ()) if isinstance(bound, str) else bound
            made = _both(into, node, kind, one, made)
    return (into.known_as(made) if isinstance(made, str) else made,)


def _limits(dtype: DType, known: Sequence[Value | Array | None]) -> tuple[float, float]:
    """Both bounds as numbers of the type, those that are missing as what bounds nothing."""
    real = dtype.is_float
    ends = (-np.inf, np.inf) if real else (dtype.min_int, dtype.max_int)
    found = [end if each is None else np.asarray(each).reshape(-1)[0] for each, end in zip(known, ends, strict=True)]
    low, high = (float(each) if real else int(each) for each in found)
    return low, high


def _where(into: Translation, node: ModelNode) -> Made:
    only(node)
    condition, first, second = node.operands
    same_type(into, node, (condition,), "b")
    dtype = same_type(into, node, (first, second))
    return (called(into, choose(*(into.shape(name) for name in node.operands), dtype=dtype), *node.operands),)


def _cast(into: Translation, node: ModelNode) -> Made:
    # Up to version 5 a type is given by its name. What is said of values that do not fit is for types that no graph
    # has.
    given = only(node, to=None, saturate=1, round_mode="up")
    return (_as_type(into, node, _dtype(node, given["to"])),)


def _cast_like(into: Translation, node: ModelNode) -> Made:
    only(node, saturate=1, round_mode="up")
    return (_as_type(into, node, str(type_of(into, node, node.operands[1]))),)


def _as_type(into: Translation, node: ModelNode, target: str, operand: Operand | None = None) -> Value | Array:
    data = operand if operand is not None else node.operands[0]
    source = str(type_of(into, node, data))
    if source == target:
        return into.known_as(data) if isinstance(data, str) else data
    return called(into, cast(shape(into, data), source, target), data)


def _dtype(node: ModelNode, given: int | str) -> str:
    """A type that a model gives by its number, or by its name."""
    onnx = library()
    try:
        number = onnx.TensorProto.DataType.Value(given) if isinstance(given, str) else given
        name = str(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).name)
        return str(DType.parse(name))
    except (KeyError, ValueError, TypeError) as problem:
        raise refused(node, f"the type {given} is none that a graph has") from problem


def _tested(kind: str, kinds: str = "f") -> Translate:
    """A truth value for each element."""

    def translate(into: Translation, node: ModelNode) -> Made:
        only(node)
        dtype = same_type(into, node, node.operands, kinds)
        return (called(into, predicate(kind, into.shape(node.operands[0]), dtype), node.operands[0]),)

    return translate


def _is_inf(into: Translation, node: ModelNode) -> Made:
    given = only(node, detect_negative=1, detect_positive=1)
    kinds = {(1, 1): "is_inf", (0, 1): "is_positive_inf", (1, 0): "is_negative_inf"}
    kind = kinds.get((int(given["detect_negative"]), int(given["detect_positive"])))
    if kind is None:
        raise refused(node, "neither infinity is looked for")
    return _tested(kind)(into, replace(node, attributes={}))


ELEMENTWISE: Mapping[str, Translate] = {
    "Abs": _abs,
    "Add": _binary("add"),
    "And": _binary("logical_and", "b"),
    "Atan": _unary("atan"),
    "BitShift": _shift,
    "BitwiseAnd": _binary("bitwise_and", "iu"),
    "BitwiseNot": _bitwise_not,
    "BitwiseOr": _binary("bitwise_or", "iu"),
    "BitwiseXor": _binary("bitwise_xor", "iu"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _unary("ceil"),
    "Celu": _activation("celu", alpha=1.0),
    "Clip": _clip,
    "Cos": _unary("cos"),
    "Cosh": _unary("cosh"),
    "Div": _binary("divide"),
    "Elu": _activation("elu", alpha=1.0),
    "Equal": _binary("equal", "fiub"),
    "Erf": _unary("erf"),
    "Exp": _unary("exp"),
    "Floor": _unary("floor"),
    "Gelu": _gelu,
    "Greater": _binary("greater"),
    "GreaterOrEqual": _binary("greater_equal"),
    "HardSigmoid": _activation("hard_sigmoid", alpha=0.2, beta=0.5),
    "HardSwish": _hard_swish,
    "IsInf": _is_inf,
    "IsNaN": _tested("is_nan"),
    "LeakyRelu": _activation("leaky_relu", alpha=0.01),
    "Less": _binary("less"),
    "LessOrEqual": _binary("less_equal"),
    "Log": _unary("log"),
    "Max": _chain("maximum"),
    "Mean": _mean,
    "Min": _chain("minimum"),
    "Mish": _activation("mish"),
    "Mod": _mod,
    "Mul": _binary("multiply"),
    "Neg": _unary("negative", "fi"),
    "Not": _tested("logical_not", "b"),
    "Or": _binary("logical_or", "b"),
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": _unary("reciprocal"),
    "Relu": _unary("relu", "fi"),
    "Round": _unary("round"),
    "Selu": _activation("selu", alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _activation("shrink", lambd=0.5, bias=0.0),
    "Sigmoid": _unary("sigmoid"),
    "Sign": _unary("sign", "fi"),
    "Sin": _unary("sin"),
    "Sinh": _unary("sinh"),
    "Softplus": _activation("softplus"),
    "Softsign": _activation("softsign"),
    "Sqrt": _unary("sqrt"),
    "Sub": _binary("subtract"),
    "Sum": _chain("add", "f"),
    "Swish": _activation("swish", alpha=1.0),
    "Tan": _unary("tan"),
    "Tanh": _unary("tanh"),
    "ThresholdedRelu": _activation("thresholded_relu", alpha=1.0),
    "Where": _where,
    "Xor": _binary("logical_xor", "b"),
}
