"""`compute` makes a tensor of a formula, which may be a reduction."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.expr import Expr, ExprLike, binary, const
from layoutproof.ir.node import comparisons_refused
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import IterKind
from layoutproof.ir.visit import walk
from layoutproof.lowering import codes
from layoutproof.lowering.te.tensor import (
    Axis,
    Combiner,
    Computed,
    Reduction,
    Scheduled,
    Tensor,
    TensorRead,
    checked_name,
    checked_shape,
)


def compute(shape: object, function: Callable[..., Any], name: str = "compute") -> Tensor:
    """The tensor whose element at `i, j, ...` is `function(i, j, ...)`; `*indices` is accepted too.

    The axes are named as the function's arguments are (`i0`, `i1`, ... for `*indices`). The value is an expression, a
    number, or one reduction. Raises LayoutproofError for anything else.
    """
    known = checked_name(name, "a compute")
    extents = checked_shape(shape, known)
    names = _argument_names(function, len(extents), known)
    axes = tuple(Axis(n, e.dtype, const(0, e.dtype), e) for n, e in zip(names, extents, strict=True))
    value = _value(function, axes, known)
    _check_axes(value, axes, known)
    return Tensor(Computed(known, extents, value.dtype, axes, value))


def _value(function: Callable[..., Any], axes: Sequence[Axis], name: str) -> Expr:
    try:
        with comparisons_refused():
            result = function(*axes)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as problem:
        raise error(codes.TE_VALUE, f"the value of {name} cannot be made: {problem}") from problem
    if isinstance(result, bool | np.bool_):
        message = f"the value of {name} is Python's {result}: `==` and `!=` compare expressions, and make none"
        raise error(codes.TE_VALUE, message, help="write te.equal(a, b), and a truth value as te.const(True, 'bool')")
    if isinstance(result, int | float | np.integer | np.floating):
        number = result.item() if isinstance(result, np.generic) else result
        return const(number, FLOAT32 if isinstance(number, float) else None)
    if not isinstance(result, Expr):
        what = type(result).__name__
        help = (
            "index it"
            if isinstance(result, Tensor)
            else "make one compute for each"
            if isinstance(result, tuple | list)
            else None
        )
        raise error(codes.TE_VALUE, f"the value of {name} is a {what}, an expression is expected", help=help)
    return result


def _check_axes(value: Expr, axes: Sequence[Axis], name: str) -> None:
    """Raise LayoutproofError for a reduction inside the value, and for axes that are neither the tensor's nor reduced
    over.
    """
    reduced = value.axes if isinstance(value, Reduction) else ()
    body = value.value if isinstance(value, Reduction) else value
    for node in walk(body):
        if isinstance(node, Reduction):
            raise error(
                codes.TE_REDUCTION,
                f"the value of {name} has a reduction inside another expression",
                help="make a compute of the reduction, and read it in this one",
            )
        if isinstance(node, TensorRead) and isinstance(node.tensor.op, Scheduled):
            raise error(
                codes.TE_VALUE,
                f"{name} reads {node.tensor.name} as a schedule stores it; read the tensor that was defined",
            )
        if isinstance(node, Axis) and node not in axes and node not in reduced:
            whose = (
                f"reduce over it: sum(..., axis={node.name})"
                if node.kind is IterKind.REDUCE
                else "it belongs to another tensor"
            )
            raise error(
                codes.TE_REDUCTION, f"{name} uses the axis {node.name}, which is not one of its own", help=whose
            )


def _argument_names(function: Callable[..., Any], rank: int, name: str) -> list[str]:
    """A name for each axis. Raises LayoutproofError for a function of another number of arguments."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as problem:
        raise error(
            codes.TE_FUNCTION, f"the function of {name} is {function!r}: its arguments are not known"
        ) from problem
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    # Arguments with a default that stand behind the indices are the caller's own.
    named = [p.name for n, p in enumerate(positional) if n < rank or p.default is p.empty]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters) and len(named) <= rank:
        named += [f"i{axis}" for axis in range(len(named), rank)]
    keyword = next((p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty), None)
    if keyword is not None:
        raise error(
            codes.TE_FUNCTION, f"the function of {name} has a keyword argument {keyword}; it takes positional indices"
        )
    if len(named) != rank:
        takes, has = counted(len(named), "index", "indices"), counted(rank, "axis", "axes")
        raise error(codes.TE_FUNCTION, f"the function of {name} takes {takes}, its shape has {has}")
    return named


# ---- reductions; min and max of two values are those values' own


def sum(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The sum of `value` over reduction axes. Raises LayoutproofError for axes that are none."""
    return _reduction(Combiner.SUM, value, axis)


def prod(value: ExprLike, axis: Axis | Sequence[Axis]) -> Expr:
    """The product of `value` over reduction axes. Raises LayoutproofError for axes that are none."""
    return _reduction(Combiner.PROD, value, axis)


def min(value: ExprLike, axis: Any) -> Expr:
    """The least `value` over reduction axes, or the lesser of two values. Raises LayoutproofError for axes that are
    none.
    """
    return _reduction(Combiner.MIN, value, axis) if _is_axes(axis) else _both(BinaryOp.MIN, value, axis)


def max(value: ExprLike, axis: Any) -> Expr:
    """The greatest `value` over reduction axes, or the greater of two values. Raises LayoutproofError for axes that are
    none.
    """
    return _reduction(Combiner.MAX, value, axis) if _is_axes(axis) else _both(BinaryOp.MAX, value, axis)


def _is_axes(given: object) -> bool:
    return isinstance(given, list | tuple) or (isinstance(given, Axis) and given.kind is IterKind.REDUCE)


def _reduction(combiner: Combiner, value: ExprLike, axis: object) -> Expr:
    axes: list[Axis] = []
    for each in axis if isinstance(axis, list | tuple) else [axis]:
        if not isinstance(each, Axis) or each.kind is not IterKind.REDUCE:
            raise error(codes.TE_REDUCTION, f"{combiner} over {each!r}, an axis made by reduce_axis is expected")
        axes.append(each)
    if not axes or len(set(axes)) != len(axes):
        raise error(codes.TE_REDUCTION, f"{combiner} over {'no axis' if not axes else 'one axis twice'}")
    if not isinstance(value, Expr) or not (value.dtype.is_integer or value.dtype.is_float) or value.dtype.lanes != 1:
        shown = f"a {value.dtype}" if isinstance(value, Expr) else repr(value)
        raise error(codes.TE_REDUCTION, f"{combiner} of {shown}, an expression with a numeric value is expected")
    return Reduction(combiner, value, tuple(axes))


def _both(op: BinaryOp, a: ExprLike, b: ExprLike) -> Expr:
    with_words = "two values, or a value and reduction axes, are expected"
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        raise error(codes.TE_VALUE, f"{op} of {a!r} and {b!r}: {with_words}")
    try:
        return binary(op, a, b)
    except (TypeError, ValueError) as problem:
        raise error(codes.TE_VALUE, f"{op}: {problem}; {with_words}") from problem
