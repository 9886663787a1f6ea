"""The well-formedness of a graph: names, operands, shapes, the conditions of layout operators, and that results depend
on operands alone, since calls get fresh memory for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from keyword import iskeyword
from typing import Any

from layoutproof.graph import codes
from layoutproof.graph.model.graph import (
    Call,
    Constant,
    Crop,
    Graph,
    LayoutTransform,
    Pad,
    Step,
    Value,
    is_scalar,
    shape_of,
    signature_of,
)
from layoutproof.graph.model.layout_maps import box_of, is_bijective
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, counted
from layoutproof.ir.dtype import HANDLE, numpy_dtype
from layoutproof.ir.expr import Var
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.stmt import Block, Let, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import replace_buffers, walk
from layoutproof.lowering.passes.effects import data_read
from layoutproof.verify.faults.facts import Facts, check_transparent
from layoutproof.verify.faults.races import prove_race_free
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Open, Status, Verdict

STRUCTURE = "symbolic"
"""The engine of what the text of a function says by itself."""

_VERDICTS: Kept[Verdict] = Kept(4096)


def is_fresh(func: PrimFunc) -> bool:
    """Whether `prove_fresh` proves it, asked once for a function object."""
    return _VERDICTS.get(func, (), lambda: prove_fresh(func)).status is Status.PROVED


def prove_fresh(func: PrimFunc) -> Verdict:
    """Whether no result is read before it is written. Raises LayoutproofError for a function that a graph cannot call.

    Where the text reads no result, nothing is asked. Else the function is asked about with its own memory in place of
    the results: also a reduction whose init may be late or excluded by a guard. The proof is of calls without a fault.
    """
    what = f"{func.name} reads no result before it is written"
    claim = Claim(ClaimKind.OTHER, what, about=("results", func.name))
    results = signature_of(func).results
    if not _may_read(func, results):
        return Verdict(Status.PROVED, claim, STRUCTURE)
    facts = Facts.of(_with_own_memory(func, results))
    transparent = check_transparent(facts.program)
    if isinstance(transparent, Open):
        return Verdict(Status.UNKNOWN, claim, STRUCTURE, reason=transparent.reason)
    for verdict in (*prove_readable(facts), *prove_race_free(facts)):
        if verdict.status not in (Status.PROVED, Status.VACUOUS):
            return replace(verdict, claim=replace(verdict.claim, head=f"{claim}: {verdict.claim.head}"))
    return Verdict(Status.PROVED, claim, "facts")


def _may_read(func: PrimFunc, results: tuple[Buffer, ...]) -> bool:
    """Whether a result is loaded, or a pointer goes where others load through it."""
    named = any(isinstance(node, Let) and node.var.dtype == HANDLE for node in walk(func.body))
    return named or not data_read(func.body).isdisjoint(buffer.data for buffer in results)


def _with_own_memory(func: PrimFunc, results: tuple[Buffer, ...]) -> PrimFunc:
    """The function with its results in allocations, which are not observable."""
    inner = {
        buffer: replace(buffer, name=f"{buffer.name}_made", data=Var(f"{buffer.name}_made_data", HANDLE))
        for buffer in results
    }
    body: Stmt = replace_buffers(func.body, dict(inner))
    made = tuple(inner.values())
    if isinstance(body, Block) and body.is_root:
        return func.with_body(replace(body, alloc_buffers=(*body.alloc_buffers, *made)))
    return func.with_body(Block("root", (), body, alloc_buffers=made))


Known = Mapping[str, Value]


def check_graph(graph: Graph) -> tuple[Diagnostic, ...]:
    """Every rule that the graph breaks. A step with missing operands is not checked further."""
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
        yield from _check_constant(constant)
    names: dict[str, Any] = {}
    for step in graph.steps:
        missing = [name for name in step.operands if name not in known]
        for name in missing:
            yield Diagnostic(codes.NO_VALUE, f"{_told(step)} uses {name}, which nothing before it makes", step.span)
        if not missing:
            yield from _CHECKS[type(step)](step, known)
        if isinstance(step, Call) and names.setdefault(step.function.name, step.function) != step.function:
            message = f"two functions that differ are called {step.function.name}"
            yield Diagnostic(codes.TWO_FUNCTIONS, message, step.span)
        for value in step.results:
            yield from _entered(known, value, step)
    yield from _check_outputs(graph, known)


def _check_outputs(graph: Graph, known: Mapping[str, Value]) -> Iterator[Diagnostic]:
    if not graph.outputs:
        yield Diagnostic(codes.NO_OUTPUT, f"the graph {graph.name} has no output", graph.span)
    for name in graph.outputs:
        if name not in known:
            message = f"the graph {graph.name} gives {name}, which it does not make"
            yield Diagnostic(codes.NO_OUTPUT, message, graph.span)


def _check_constant(constant: Constant) -> Iterator[Diagnostic]:
    wanted = (constant.value.shape, numpy_dtype(constant.value.dtype))
    if (constant.data.shape, constant.data.dtype) != wanted:
        held = f"an array of shape {list(constant.data.shape)} and type {constant.data.dtype}"
        yield Diagnostic(codes.CONSTANT_DATA, f"the constant {constant.value} holds {held}", constant.span)
    elif constant.sha256 is not None and constant.data.any():
        message = f"of the constant {constant.value} only the SHA-256 is to be known, and it holds elements"
        yield Diagnostic(codes.CONSTANT_DATA, message, constant.span)


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
        yield Diagnostic(
            codes.FUNCTION_FORM, message, step.span, help="a call gives results fresh memory, which holds anything"
        )
    for word, wanted, given in (
        ("operand", signature.operands, tuple(known[name] for name in step.operands)),
        ("result", signature.results, step.results),
    ):
        if len(wanted) != len(given):
            count = counted(len(wanted), word, f"{word}s")
            yield Diagnostic(
                codes.OPERANDS, f"{step.function.name} has {count}, {_told(step)} has {len(given)}", step.span
            )
            continue
        code = codes.OPERAND_TYPE if word == "operand" else codes.RESULT_TYPE
        for buffer, value in zip(wanted, given, strict=True):
            if (shape_of(buffer), buffer.dtype) != (value.shape, value.dtype):
                yield Diagnostic(
                    code, f"{_told(step)}: the {word} {buffer.name} is {_typed(buffer)}, given is {value}", step.span
                )


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
        yield Diagnostic(
            codes.TRANSFORM_MAP,
            f"{_told(step)}: `{text}` is not proved to be a bijection of {operand}",
            step.span,
            help=help,
        )
    yield from _made(step, step.result, shape, operand)


def _check_pad(step: Pad, known: Known) -> Iterator[Diagnostic]:
    operand = known[step.operand]
    if len(step.widths) != len(operand.shape) or any(width < 0 for pair in step.widths for width in pair):
        yield Diagnostic(
            codes.PAD_WIDTHS, f"{_told(step)}: the widths {list(step.widths)} do not fit {operand}", step.span
        )
        return
    if not is_scalar(step.value, operand.dtype):
        yield Diagnostic(
            codes.PAD_SCALAR, f"{_told(step)}: {expr_text(step.value)} is no number of type {operand.dtype}", step.span
        )
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
