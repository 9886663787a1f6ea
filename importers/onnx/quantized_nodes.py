"""ONNX operators on integers with a scale and a zero point, in terms of casts, sums and products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from layoutproof.graph.model.graph import Array, Value
from layoutproof.graph.operators.elementwise import binary, cast, unary
from layoutproof.importers.onnx.onnx_model import ModelNode
from layoutproof.importers.onnx.translate import (
    Made,
    Operand,
    Translate,
    Translation,
    axis_of,
    called,
    entered,
    has,
    only,
    require,
    shape,
    type_of,
)
from layoutproof.ir.dtype import DType, numpy_dtype

KEPT: Final = ("int8", "uint8", "int16", "uint16")
"""Types in which numbers are kept."""


def _both(into: Translation, kind: str, first: Operand, second: Operand, dtype: str) -> Value:
    return called(into, binary(kind, shape(into, first), shape(into, second), dtype), first, second)


def _as(into: Translation, node: ModelNode, operand: Operand, dtype: str) -> Operand:
    found = into.known_as(operand) if isinstance(operand, str) else operand
    if not isinstance(found, Value):
        return found.astype(numpy_dtype(DType.parse(dtype)))
    return (
        found
        if str(found.dtype) == dtype
        else called(into, cast(found.shape, str(type_of(into, node, found)), dtype), found)
    )


def _beside(into: Translation, node: ModelNode, name: str, given: Mapping[str, Any]) -> Operand:
    """A scale or zero point for the first operand: one number, or one for each index or block of an axis."""
    whole, held = into.shape(node.operands[0]), into.shape(name)
    if len(held) == 0 or (held == (1,) and not given["block_size"]):
        return into.array(node, name).reshape(()) if into.is_known(name) else into.value(name, ())
    along = axis_of(node, given["axis"], len(whole) - 1)
    if given["block_size"]:
        blocks = into.array(node, name)
        fits = blocks.ndim == len(whole) and -(-whole[along] // given["block_size"]) == blocks.shape[along]
        require(
            fits,
            node,
            f"{name} of shape {list(held)} has no number for each {given['block_size']} of axis {along} of "
            f"{list(whole)}",
        )
        into.make_room(node, whole, blocks.itemsize)
        return np.take(np.repeat(blocks, given["block_size"], axis=along), range(whole[along]), axis=along)
    require(
        held == (whole[along],),
        node,
        f"{name} of shape {list(held)} has no number for each place of axis {along} of {list(whole)}",
    )
    beside = (whole[along], *(1,) * (len(whole) - along - 1))
    return into.array(node, name).reshape(beside) if into.is_known(name) else into.value(name, beside)


def _dequantize(into: Translation, node: ModelNode) -> Made:
    given = only(node, axis=1, block_size=0, output_dtype=0)
    dtype = str(type_of(into, node, node.operands[1]))
    same = not given["output_dtype"] or into.type_of(node, given["output_dtype"]).name == dtype
    require(same, node, "it makes numbers of its scale's type alone")
    wide = _wide(dtype, str(type_of(into, node, node.operands[0])))
    scale = _as(into, node, _beside(into, node, node.operands[1], given), wide)
    zero = _as(into, node, _beside(into, node, node.operands[2], given), wide) if has(node, 2) else None
    data = _as(into, node, node.operands[0], wide)
    if not any(isinstance(operand, Value) for operand in (data, scale, zero)):
        found = _dequantized_array(into, node, np.asarray(data), np.asarray(scale), zero)
        return (found.astype(numpy_dtype(DType.parse(dtype))),)
    apart = data if zero is None else _both(into, "subtract", data, zero, wide)
    made = _as(into, node, _both(into, "multiply", apart, scale, wide), dtype)
    return (entered(into, made),)


def _wide(dtype: str, kept: str) -> str:
    """The float type in which numbers that are kept as integers are computed with: half precision has not all of more
    than 8 bits.
    """
    return "float32" if DType.parse(dtype).bits < 32 and DType.parse(kept).bits > 8 else dtype


def _dequantized_array(into: Translation, node: ModelNode, data: Array, scale: Array, zero: Operand | None) -> Array:
    into.make_room(node, data.shape, data.itemsize)
    return ((data if zero is None else data - np.asarray(zero)) * scale).astype(data.dtype)


def _quantize(into: Translation, node: ModelNode) -> Made:
    given = only(node, axis=1, block_size=0, output_dtype=0, saturate=1, precision=0)
    require(given["precision"] in (0, 1), node, "it divides in the type of its scale")
    dtype = str(type_of(into, node, node.operands[0]))
    if has(node, 2):
        kept = str(type_of(into, node, node.operands[2]))
    else:
        kept = into.type_of(node, given["output_dtype"]).name if given["output_dtype"] else "uint8"
    require(kept in KEPT, node, f"numbers are kept as {', '.join(KEPT)}, not as {kept}")
    scale = _as(into, node, _beside(into, node, node.operands[1], given), dtype)
    ratio = _both(into, "divide", node.operands[0], scale, dtype)
    wide = _wide(dtype, kept)
    rounded = entered(into, _as(into, node, called(into, unary("round", ratio.shape, dtype), ratio), wide))
    if has(node, 2):
        rounded = _both(into, "add", rounded, _as(into, node, _beside(into, node, node.operands[2], given), wide), wide)
    ends = np.iinfo(kept)
    inside = called(into, unary("clip", rounded.shape, wide, (float(ends.min), float(ends.max))), rounded)
    return (called(into, cast(inside.shape, wide, kept), inside),)


def _matmul_integer(into: Translation, node: ModelNode) -> Made:
    only(node)
    sides = list[Value]()
    for place, name in enumerate(node.operands[:2]):
        operand = _as(into, node, name, "int32")
        if has(node, 2 + place):
            held = into.shape(node.operands[2 + place])
            # One zero for each row of the first, for each column of the second.
            beside = () if held == (1,) else (*held, 1) if place == 0 and len(held) == 1 else held
            name = node.operands[2 + place]
            zero = _as(
                into,
                node,
                into.array(node, name).reshape(beside) if into.is_known(name) else into.value(name, beside),
                "int32",
            )
            operand = _both(into, "subtract", operand, zero, "int32")
        sides.append(operand if isinstance(operand, Value) else into.builder.constant(operand))
    return (into.builder.matmul(*sides),)


QUANTIZED: Mapping[str, Translate] = {
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize,
}
