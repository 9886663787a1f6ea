"""The rules that a graph obeys before anything is done with it: names, operands, shapes, the layout operators' own conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from typing import Any

from layoutproof.graph import codes
from layoutproof.graph.fresh import is_fresh
from layoutproof.graph.maps import box_of, is_bijective
from layoutproof.graph.model import Call, Crop, Graph, LayoutTransform, Pad, Step, Value
from layoutproof.graph.scalars import is_scalar
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, counted
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.text import expr_text

Known = Mapping[str, Value]


def check_graph(graph: Graph) -> tuple[Diagnostic, ...]:
    """Every rule that the graph breaks; empty for a well-formed one. A step whose operands are missing is not looked at further."""
    return tuple(dict.fromkeys(_check(graph)))


def require_graph(graph: Graph) -> Graph:
    """The graph itself. Raises LayoutproofError with all that `check_graph` finds."""
    found = check_graph(graph)
    if found:
        raise LayoutproofError(found)
    return graph


def _check(graph: Graph) -> Iterator[Diagnostic]:
    known: dict[str, Value] = {}
    if not graph.name.isidentifier() or iskeyword(graph.name):
        yield Diagnostic(codes.VALUE_NAME, f"{graph.name!r} is no name in a text", graph.span)
    for value in graph.inputs:
        yield from _entered(known, value, graph)
    for constant in graph.constants:
        yield from _entered(known, constant.value, constant)
        wanted = (constant.value.shape, numpy_dtype(constant.value.dtype))
        if (constant.data.shape, constant.data.dtype) != wanted:
            held = f"an array of shape {list(constant.data.shape)} and type {constant.data.dtype}"
            yield Diagnostic(codes.CONSTANT_DATA, f"the constant {constant.value} holds {held}", constant.span)
        elif constant.sha256 is not None and constant.data.any():
            message = f"of the constant {constant.value} only the SHA-256 is to be known, and it holds elements"
            yield Diagnostic(codes.CONSTANT_DATA, message, constant.span)
    names: dict[str, Any] = {}
    for step in graph.steps:
        missing = [name for name in step.operands if name not in known]
        for name in missing:
            yield Diagnostic(codes.NO_VALUE, f"{_told(step)} uses {name}, which nothing before it makes", step.span)
        if not missing:
            yield from _CHECKS[type(step)](step, known)
        if isinstance(step, Call) and names.setdefault(step.function.name, step.function) != step.function:
            yield Diagnostic(codes.TWO_FUNCTIONS, f"two functions that differ are called {step.function.name}", step.span)
        for value in step.results:
            yield from _entered(known, value, step)
    if not graph.outputs:
        yield Diagnostic(codes.NO_OUTPUT, f"the graph {graph.name} has no output", graph.span)
    for name in graph.outputs:
        if name not in known:
            yield Diagnostic(codes.NO_OUTPUT, f"the graph {graph.name} gives {name}, which it does not make", graph.span)


def _entered(known: dict[str, Value], value: Value, place: Any) -> Iterator[Diagnostic]:
    if not value.name.isidentifier() or iskeyword(value.name):
        yield Diagnostic(codes.VALUE_NAME, f"{value.name!r} is no name in a text", place.span)
    if value.name in known:
        yield Diagnostic(codes.TWO_VALUES, f"two values are called {value.name}", place.span)
    numbers = value.dtype.lanes == 1 and (value.dtype.is_float or value.dtype.is_integer or value.dtype.is_bool)
    if any(extent < 1 for extent in value.shape) or not numbers:
        message = f"{value} is no array: extents are at least 1, elements are numbers, with one lane"
        yield Diagnostic(codes.RESULT_TYPE, message, place.span)
    known[value.name] = value


def _told(step: Step) -> str:
    made = ", ".join(value.name for value in step.results)
    return f"{made} = {step.function.name}(...)" if isinstance(step, Call) else f"{made} = {_WORDS[type(step)]}(...)"


def _check_call(step: Call, known: Known) -> Iterator[Diagnostic]:
    try:
        signature = signature_of(step.function)
    except LayoutproofError as problem:
        yield from problem.diagnostics
        return
    if not is_fresh(step.function):
        message = f"the function {step.function.name} is not proved to write its results before it reads them"
        yield Diagnostic(codes.FUNCTION_FORM, message, step.span, help="a call gives results fresh memory, which holds anything")
    for word, wanted, given in (
        ("operand", signature.operands, tuple(known[name] for name in step.operands)),
        ("result", signature.results, step.results),
    ):
        if len(wanted) != len(given):
            count = counted(len(wanted), word, f"{word}s")
            yield Diagnostic(codes.OPERANDS, f"{step.function.name} has {count}, {_told(step)} has {len(given)}", step.span)
            continue
        code = codes.OPERAND_TYPE if word == "operand" else codes.RESULT_TYPE
        for buffer, value in zip(wanted, given, strict=True):
            if (shape_of(buffer), buffer.dtype) != (value.shape, value.dtype):
                yield Diagnostic(code, f"{_told(step)}: the {word} {buffer.name} is {_typed(buffer)}, given is {value}", step.span)


def _typed(buffer: Buffer) -> str:
    return f"{buffer.dtype}[{', '.join(map(str, shape_of(buffer)))}]"


def _check_transform(step: LayoutTransform, known: Known) -> Iterator[Diagnostic]:
    operand = known[step.operand]
    text = index_map_text(step.index_map)
    try:
        shape, bijective = box_of(step.index_map, operand.shape), is_bijective(step.index_map, operand.shape)
    except LayoutproofError as problem:
        yield Diagnostic(codes.TRANSFORM_MAP, f"{_told(step)}: {problem.diagnostics[0].message}", step.span)
        return
    if not bijective:
        help = "what leaves padding is a pad, then a layout_transform"
        yield Diagnostic(codes.TRANSFORM_MAP, f"{_told(step)}: `{text}` is not proved to be a bijection of {operand}", step.span, help=help)
    yield from _made(step, step.result, shape, operand)


def _check_pad(step: Pad, known: Known) -> Iterator[Diagnostic]:
    operand = known[step.operand]
    if len(step.widths) != len(operand.shape) or any(width < 0 for pair in step.widths for width in pair):
        yield Diagnostic(codes.PAD_WIDTHS, f"{_told(step)}: the widths {list(step.widths)} do not fit {operand}", step.span)
        return
    if not is_scalar(step.value, operand.dtype):
        yield Diagnostic(codes.PAD_SCALAR, f"{_told(step)}: {expr_text(step.value)} is no number of type {operand.dtype}", step.span)
    shape = tuple(extent + before + after for extent, (before, after) in zip(operand.shape, step.widths, strict=True))
    yield from _made(step, step.result, shape, operand)


def _check_crop(step: Crop, known: Known) -> Iterator[Diagnostic]:
    operand = known[step.operand]
    fits = len(step.starts) == len(step.sizes) == len(operand.shape) and all(
        start >= 0 and size >= 1 and start + size <= extent
        for start, size, extent in zip(step.starts, step.sizes, operand.shape, strict=True)
    )
    if not fits:
        box = f"the box of {list(step.sizes)} from {list(step.starts)}"
        yield Diagnostic(codes.CROP_BOX, f"{_told(step)}: {box} does not lie inside {operand}", step.span)
        return
    if step.cropped_value is not None and not is_scalar(step.cropped_value, operand.dtype):
        text = expr_text(step.cropped_value)
        yield Diagnostic(codes.PAD_SCALAR, f"{_told(step)}: {text} is no number of type {operand.dtype}", step.span)
    yield from _made(step, step.result, step.sizes, operand)


def _made(step: Step, result: Value, shape: tuple[int, ...], operand: Value) -> Iterator[Diagnostic]:
    if (result.shape, result.dtype) != (shape, operand.dtype):
        made = Value(result.name, shape, operand.dtype)
        yield Diagnostic(codes.RESULT_TYPE, f"{_told(step)} makes {made}, not {result}", step.span)


_WORDS: Mapping[type[Any], str] = {LayoutTransform: "layout_transform", Pad: "pad", Crop: "crop"}
_CHECKS: Mapping[type[Any], Callable[[Any, Known], Iterator[Diagnostic]]] = {
    Call: _check_call,
    LayoutTransform: _check_transform,
    Pad: _check_pad,
    Crop: _check_crop,
}
