"""The arguments of a call in a text: bound to parameter names as Python would, with a message for each way it can fail."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from layoutproof.ir.dtype import DType
from layoutproof.ir.script import codes
from layoutproof.ir.script.parsing import Text

Bound = dict[str, ast.expr]


def bind(text: Text, call: ast.Call, name: str, parameters: Sequence[str], required: int) -> Bound:
    """Parameter name -> argument. Raises LayoutproofError unless the first `required` are given and all are known."""
    bound: Bound = {}
    for position, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            raise text.fail(codes.UNSUPPORTED, f"a starred argument of {name}", argument)
        if position >= len(parameters):
            raise text.fail(codes.WRONG_ARGUMENTS, f"{name} takes {_count(parameters, required)}, not {len(call.args)}", argument)
        bound[parameters[position]] = argument
    for keyword in call.keywords:
        if keyword.arg is None:
            raise text.fail(codes.UNSUPPORTED, f"** in a call of {name}", keyword.value)
        if keyword.arg not in parameters:
            raise text.fail(
                codes.WRONG_ARGUMENTS, f"{name} has no argument `{keyword.arg}`", keyword, help=did_you_mean(keyword.arg, parameters)
            )
        if keyword.arg in bound:
            raise text.fail(codes.WRONG_ARGUMENTS, f"{name} is given `{keyword.arg}` twice", keyword)
        bound[keyword.arg] = keyword.value
    missing = [p for p in parameters[:required] if p not in bound]
    if missing:
        words = " and ".join(f"`{m}`" for m in missing)
        raise text.fail(codes.WRONG_ARGUMENTS, f"{name} lacks {words}; it takes {_count(parameters, required)}", call)
    return bound


def _count(parameters: Sequence[str], required: int) -> str:
    most = len(parameters)
    if most == 0:
        return "no arguments"
    number = str(most) if required == most else f"{required} to {most}"
    return f"{number} argument{'s' if most > 1 else ''} ({', '.join(parameters)})"


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """`did you mean ...?` for the closest known name, or None."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"did you mean `{prefix}{close[0]}`?" if close else None


def read_string(text: Text, node: ast.expr, what: str) -> str:
    """A string literal; `what` names it in the message."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be a string in quotes", node)


def read_integer(text: Text, node: ast.expr, what: str) -> int:
    """An integer literal, a minus sign allowed."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    if isinstance(inner, ast.Constant) and isinstance(inner.value, int) and not isinstance(inner.value, bool):
        return sign * inner.value
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be an integer literal", node)


_COMMON_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "bfloat16", "handle",
)  # fmt: skip


def read_dtype(text: Text, node: ast.expr) -> DType:
    """A data type: `"float32"`, or `T.float32` without a call."""
    name = node.attr if isinstance(node, ast.Attribute) else read_string(text, node, "a data type")
    return parse_dtype(text, node, name)


def parse_dtype(text: Text, node: ast.AST, name: str) -> DType:
    """The data type called `name`; raises LayoutproofError at `node` for others."""
    try:
        return DType.parse(name)
    except ValueError as problem:
        raise text.fail(codes.WRONG_TYPE, str(problem), node, help=did_you_mean(name, _COMMON_TYPES)) from problem


def read_list(text: Text, node: ast.expr, what: str) -> list[ast.expr]:
    """The entries of a list or tuple display."""
    if isinstance(node, ast.List | ast.Tuple):
        for entry in node.elts:
            if isinstance(entry, ast.Starred):
                raise text.fail(codes.UNSUPPORTED, f"a starred entry of {what}", entry)
        return list(node.elts)
    raise text.fail(codes.WRONG_ARGUMENTS, f"{what} must be a list or a tuple", node)
