"""What translations of operators share: the type of an operand, and a function called on operands."""

from __future__ import annotations

from collections.abc import Sequence

from layoutproof.graph.model import Array, Value
from layoutproof.importers.onnx.model import ModelNode
from layoutproof.importers.onnx.translate import Translation, refused, require
from layoutproof.ir.dtype import DType
from layoutproof.ir.primfunc import PrimFunc

Operand = str | Value | Array
"""The name of an operand in the model, or what was made of one."""


def type_of(into: Translation, node: ModelNode, operand: Operand) -> DType:
    """The type of an operand's elements. Raises LayoutproofError for one that no graph has."""
    found = into.known_as(operand) if isinstance(operand, str) else operand
    if isinstance(found, Value):
        return found.dtype
    try:
        return DType.parse(found.dtype.name)
    except ValueError as problem:
        raise refused(
            node, f"{operand if isinstance(operand, str) else 'an operand'} holds {found.dtype.name}, which is not known"
        ) from problem


def same_type(into: Translation, node: ModelNode, operands: Sequence[Operand], kinds: str = "fiub") -> str:
    """The name of the one type of some operands: of floats (`f`), integers with and without sign (`i`, `u`) or truth values (`b`).

    Raises LayoutproofError where they differ, or are of another kind than these.
    """
    found = {type_of(into, node, operand) for operand in operands}
    require(len(found) == 1, node, f"its operands are of one type, not of {' and '.join(sorted(map(str, found)))}")
    (dtype,) = found
    kind = "f" if dtype.is_float else "b" if dtype.is_bool else "u" if str(dtype).startswith("u") else "i"
    words = {"f": "floats", "i": "integers with a sign", "u": "integers without a sign", "b": "truth values"}
    require(kind in kinds, node, f"it is translated for {' and '.join(words[each] for each in kinds)}, not for {dtype}")
    return str(dtype)


def shape(into: Translation, operand: Operand) -> tuple[int, ...]:
    """The shape of an operand. Raises LayoutproofError for an unknown name."""
    return into.shape(operand) if isinstance(operand, str) else tuple(operand.shape)


def called(into: Translation, func: PrimFunc, *operands: Operand) -> Value:
    """The one result of a function."""
    return into.builder.call(func, *(entered(into, operand) for operand in operands))[0]


def entered(into: Translation, operand: Operand) -> Value:
    """An operand as a value of the graph."""
    if isinstance(operand, str):
        return into.value(operand)
    return operand if isinstance(operand, Value) else into.builder.constant(operand)
