"""Loops in a text: the ranges that a `for` may run over, as a table."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Range
from layoutproof.ir.expr import Binary, BinaryOp, Expr, IntImm
from layoutproof.ir.script import codes
from layoutproof.ir.script.arguments import bind, read_integer, read_string
from layoutproof.ir.script.attribute_values import read_attributes
from layoutproof.ir.script.expressions import ExpressionReader
from layoutproof.ir.script.ranges import extent_between
from layoutproof.ir.stmt import ForKind


@dataclass(frozen=True, slots=True)
class LoopHead:
    """What one loop runs over; `T.grid` gives several. With a step, the domain's extent counts iterations."""

    domain: Range
    kind: ForKind
    thread: str | None = None
    annotations: Attributes = Attributes()
    step: int = 1


LOOP_KINDS: Mapping[str, ForKind] = {
    "range": ForKind.SERIAL,
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "thread_binding": ForKind.THREAD_BINDING,
}

LOOP_NAMES = frozenset({*LOOP_KINDS, "grid"})


def read_grid(reader: ExpressionReader, call: ast.Call) -> list[LoopHead]:
    """`T.grid(16, n)`: serial loops from zero, one for each extent."""
    if call.keywords:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "T.grid takes extents only", call.keywords[0])
    if not call.args:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "T.grid needs an extent", call)
    extents = [(node, reader.integer(node, "an extent of a loop")) for node in call.args]
    for node, extent in extents:
        _check_extent(reader, node, extent)
    return [LoopHead(Range(IntImm(0, e.dtype), e, span=reader.text.span(node)), ForKind.SERIAL) for node, e in extents]


def read_loop(reader: ExpressionReader, call: ast.Call, name: str, shown: str) -> LoopHead:
    """`range(n)`, `T.serial(start, stop)`, `T.thread_binding(n, thread="threadIdx.x")`."""
    kind = LOOP_KINDS[name]
    options = ("thread", "annotations") if kind is ForKind.THREAD_BINDING else ("annotations", "step")
    positional = ast.Call(call.func, call.args[:2], [])
    keywords = ast.Call(call.func, [], list(call.keywords))
    for node in (positional, keywords):
        ast.copy_location(node, call)
    if name == "range" and (len(call.args) > 3 or call.keywords):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, "range takes an extent, or a start and a stop, and a step", call)
    if name == "range" and len(call.args) == 3:
        keywords.keywords.append(ast.keyword("step", call.args[2]))
    elif len(call.args) > 2:
        if kind is not ForKind.THREAD_BINDING or len(call.args) > 3:
            raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{shown} takes an extent, or a start and a stop", call.args[2])
        keywords.keywords.append(ast.keyword("thread", call.args[2]))
    bound = bind(reader.text, keywords, shown, ("start", "stop", *options), 0)
    limits = [*positional.args, *(bound[key] for key in ("start", "stop") if key in bound)]
    if kind is ForKind.THREAD_BINDING and len(positional.args) == 2 and "thread" not in bound and _is_text(positional.args[1]):
        bound["thread"] = limits.pop(1)  # T.thread_binding(16, "threadIdx.x")
    if len(limits) not in (1, 2):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{shown} takes an extent, or a start and a stop", call)
    if kind is ForKind.THREAD_BINDING and "thread" not in bound:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f'{shown} lacks its thread, such as thread="threadIdx.x"', call)
    thread = read_string(reader.text, bound["thread"], "a thread") if "thread" in bound else None
    annotations = read_attributes(reader, bound["annotations"], "annotations") if "annotations" in bound else Attributes()
    step = read_integer(reader.text, bound["step"], "the step of a loop") if "step" in bound else 1
    if step < 1:
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"a loop in steps of {step}", bound["step"])
    return LoopHead(_in_steps(reader, _domain(reader, limits, call), step, call), kind, thread, annotations, step)


def _in_steps(reader: ExpressionReader, domain: Range, step: int, call: ast.Call) -> Range:
    """The range with the number of iterations for its extent."""
    dtype, extent = domain.extent.dtype, domain.extent
    if step == 1:
        return domain
    if isinstance(extent, IntImm):
        return Range(domain.start, IntImm(-(-extent.value // step), dtype), span=domain.span)
    most = reader.make(call, Binary, BinaryOp.ADD, extent, reader.constant(call, step - 1, dtype))
    return Range(domain.start, reader.make(call, Binary, BinaryOp.FLOORDIV, most, reader.constant(call, step, dtype)), span=domain.span)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _domain(reader: ExpressionReader, limits: list[ast.expr], call: ast.Call) -> Range:
    if len(limits) == 1:
        extent = reader.integer(limits[0], "the extent of a loop")
        _check_extent(reader, limits[0], extent)
        return Range(IntImm(0, extent.dtype), extent, span=reader.text.span(limits[0]))
    start, stop = reader.matched(call, reader.read(limits[0]), reader.read(limits[1]))
    for node, value in zip(limits, (start, stop), strict=True):
        if not value.dtype.is_integer or value.dtype.lanes > 1:
            raise reader.text.fail(codes.WRONG_TYPE, f"a loop ranges over integers, this has type {value.dtype}", node)
    extent = extent_between(start, stop)
    _check_extent(reader, limits[1], extent)
    return Range(start, extent, span=reader.text.span(call))


def _check_extent(reader: ExpressionReader, node: ast.expr, extent: Expr) -> None:
    if isinstance(extent, IntImm) and extent.value < 0:
        raise reader.text.fail(codes.EXTENT, f"a loop of {extent.value} iterations", node)
