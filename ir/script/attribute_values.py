"""Dictionaries of attributes in a text -> Attributes."""

from __future__ import annotations

import ast
import json
import math

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import FloatImm, IntImm
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.script import codes
from layoutproof.ir.script.arguments import bind
from layoutproof.ir.script.expressions import ExpressionReader, syntax_name

_LIMIT = 1 << 64


def read_attributes(reader: ExpressionReader, node: ast.expr, what: str) -> Attributes:
    """The entries of a dictionary with string keys; `what` names it in messages."""
    if not isinstance(node, ast.Dict):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{what} takes a dictionary, not {syntax_name(node)}", node)
    items: dict[str, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise reader.text.fail(codes.WRONG_ARGUMENTS, f"a key of {what} must be a string", key if key is not None else value)
        if key.value in items:
            raise reader.text.fail(codes.WRONG_ARGUMENTS, f'{what} has the key "{key.value}" twice', key)
        items[key.value] = read_value(reader, value)
    return Attributes(items)


def read_value(reader: ExpressionReader, node: ast.expr) -> object:
    """One attribute's value: plain Python values, lists, dictionaries; anything else is an expression of the program."""
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(read_value(reader, entry) for entry in node.elts)
    if isinstance(node, ast.Dict):
        return read_attributes(reader, node, "an attribute")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "target":
        return _target(reader, node)
    plain = _plain(node)
    if plain is not None:
        value = plain[0]
        if isinstance(value, int) and abs(value) >= _LIMIT:
            raise reader.text.fail(codes.NUMBER_RANGE, "the number does not fit 64 bits", node)
        return value
    expr = reader.expr(node)
    if isinstance(expr, IntImm) and expr.dtype.is_bool:
        return bool(expr.value)  # TVM writes T.bool(True) where it means a flag
    if isinstance(expr, FloatImm) and expr.dtype.bits == 64 and not math.isfinite(expr.value):
        return expr.value
    return expr


def _target(reader: ExpressionReader, node: ast.Call) -> object:
    """`T.target("llvm")`, or a dictionary for the text: kept as a text, since nobody here looks into it."""
    bound = bind(reader.text, node, "T.target", ("target", "host"), 1)
    texts = []
    for part in bound.values():
        try:
            value = ast.literal_eval(part)
        except ValueError as problem:
            raise reader.text.fail(codes.WRONG_ARGUMENTS, "a target is a text or a dictionary", part) from problem
        texts.append(StringImm(value if isinstance(value, str) else json.dumps(value), span=reader.text.span(part)))
    return reader.make(node, OpaqueCall, "target", tuple(texts), HANDLE)


def _plain(node: ast.expr) -> tuple[object] | None:
    """The value of a plain literal, in a tuple so that None can be one."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    if not isinstance(inner, ast.Constant) or isinstance(inner.value, bytes | complex) or inner.value is ...:
        return None
    value = inner.value
    if sign == 1:
        return (value,)
    return (-value,) if isinstance(value, int | float) and not isinstance(value, bool) else None
