"""The plain program of a layout change: one block that stores each element of the destination once.

To the physical layout, with the pad value; or back, without padding. Making it fast is the schedule's task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import HANDLE, INT32, INT64, DType
from layoutproof.ir.expr import FALSE, TRUE, Expr, IfThenElseExpr, IntImm, Var, const, negated
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.notations.map_text import parse_condition
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Attributes, Block, BufferStore, Evaluate, For, ForKind, IterKind, IterVar, Stmt, seq
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.ir.wellformed import require_wellformed
from layoutproof.lowering import codes
from layoutproof.lowering.layout.pad_value import pad_text, read_pad_value
from layoutproof.lowering.loops.access import renamed
from layoutproof.verify.maps.check_map import MapLike, ShapeLike, check_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status

BLOCK = "relayout"
LOGICAL, PHYSICAL = "A", "B"


@dataclass(frozen=True, slots=True)
class Relayout:
    """A layout change: the map with its report, the elements' type, the direction, the pad value."""

    report: MapReport
    dtype: DType
    inverse: bool
    pad_value: Any
    where: Expr

    @property
    def physical_shape(self) -> tuple[Expr, ...]:
        """The extents of the physical box."""
        return tuple(extent for extent in self.report.physical_shape if extent is not None)


def read_relayout(
    index_map: MapLike, shape: ShapeLike, dtype: object, inverse: object, pad_value: Any, where: Expr | str | None
) -> Relayout:
    """The layout change with its map proved. Raises LayoutproofError for arguments unlike those of `relayout`."""
    element = _read_dtype(dtype)
    if not isinstance(inverse, bool):
        raise error(codes.ARGUMENT_TYPE, f"relayout, argument 'inverse' is {inverse!r}, true or false is expected")
    report = check_map(index_map, shape, where)
    _check_report(report)
    condition = TRUE if where is None else where if isinstance(where, Expr) else _condition(where, report)
    return Relayout(report, element, inverse, pad_value, condition)


def _read_dtype(dtype: object) -> DType:
    try:
        element = DType.parse(dtype) if isinstance(dtype, str) else dtype
    except ValueError as problem:
        raise _no_dtype(dtype) from problem
    if not isinstance(element, DType) or element.lanes > 1 or element == HANDLE:
        raise _no_dtype(dtype)
    return element


def _no_dtype(dtype: object) -> LayoutproofError:
    message = f"relayout, argument 'dtype' is {dtype!r}, the type of one element is expected"
    return error(
        codes.ARGUMENT_TYPE,
        message,
        help="types are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64",
    )


def _condition(where: str, report: MapReport) -> Expr:
    return parse_condition(where, {v.name: v for extent in report.shape for v in free_variables(extent)})


def _check_report(report: MapReport) -> None:
    text = index_map_text(report.index_map)
    verdict = report.injective
    if verdict.status is not Status.PROVED:
        why = verdict.counterexample if verdict.counterexample is not None else verdict.reason
        raise error(
            codes.NOT_INJECTIVE,
            f"{text} is not shown to store every element in a place of its own ({verdict.status.value})"
            + (f": {why}" if why not in (None, "") else ""),
            help="a layout change keeps every element: each needs a physical index that no other one has",
        )
    if None in report.physical_shape:
        raise error(
            codes.PADDING_UNKNOWN,
            f"no formula was found for the physical shape of {text}",
            help="give the extents as numbers",
        )


def plain_program(change: Relayout, *, by_inverse: bool = False) -> PrimFunc:
    """The function that makes the layout change, with parameters A (logical) and B (physical), the destination last.

    Back to the logical layout it loops over the destination, by the map; `by_inverse` over the source, by the map's
    inverse. Raises LayoutproofError for a pad value of another type.
    """
    report = change.report
    logical, physical = _typed(report.shape), _typed(change.physical_shape)
    a, b = make_buffer(LOGICAL, logical, change.dtype), make_buffer(PHYSICAL, physical, change.dtype)
    if change.inverse:
        predicate, inverse = report.padding.predicate, report.inverse
        if by_inverse and inverse is not None and predicate is not None:
            outside = FALSE if report.padding.cells == 0 else predicate
            body = _scatter(a, b, inverse, _not(outside))
        else:
            body = _gather(a, b, report.index_map, None, TRUE)
        order = (b, a)
    else:
        body = _to_physical(change, a, b)
        order = (a, b)
    if change.where != TRUE:
        body = seq(Evaluate(Assume(change.where)), body)
    handles = {buffer: Var(f"{buffer.name}_handle", HANDLE) for buffer in order}
    symbols = tuple(dict.fromkeys(v for buffer in order for extent in buffer.shape for v in free_variables(extent)))
    plain = {extent for buffer in order for extent in buffer.shape if isinstance(extent, Var)}
    scalars = tuple(v for v in symbols if v not in plain)
    params = (*(handles[buffer] for buffer in order), *scalars)
    mapped = tuple((handle, buffer) for buffer, handle in handles.items())
    return require_wellformed(PrimFunc("relayout", params, mapped, body, Attributes({"tirx.noalias": True})))


def _typed(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Extents in a type wide enough for the number of cells."""
    numbers = [extent.value for extent in shape if isinstance(extent, IntImm)]
    if len(numbers) == len(shape) and prod(numbers) <= INT32.max_int:
        return tuple(const(value) for value in numbers)
    if len(numbers) == len(shape):
        return tuple(const(value, INT64) for value in numbers)
    return tuple(shape)


def _to_physical(change: Relayout, a: Buffer, b: Buffer) -> Stmt:
    """Every cell of the box gets its element or the pad value; without an inverse, each element is scattered."""
    report = change.report
    given = change.pad_value
    if b.dtype.is_bool and given in (0, 1):
        given = bool(given)
    pad = read_pad_value(pad_text(given, b.rank, b.dtype), b, (b,), ())
    value = None if pad is None else const(0, b.dtype) if isinstance(pad.value, Undef) else pad.value
    predicate = report.padding.predicate
    if report.inverse is not None and predicate is not None:
        outside = FALSE if report.padding.cells == 0 else predicate
        if value is None or outside == FALSE:
            return _gather(b, a, report.inverse, None, _not(outside))
        assert pad is not None
        return _gather(b, a, report.inverse, (pad.inputs, value), _not(outside))
    spread = _scatter(b, a, report.index_map)
    if value is None:
        return spread
    assert pad is not None
    axes = tuple(Var(f"f{k}", extent.dtype) for k, extent in enumerate(b.shape))
    fill = BufferStore(b, axes, substitute(value, dict(zip(pad.inputs, axes, strict=True))))
    return seq(_nest(fill, axes, b.shape, "fill", "f"), spread)


def _not(condition: Expr) -> Expr:
    return TRUE if condition == FALSE else negated(condition)


def _gather(
    target: Buffer, source: Buffer, index: IndexMap, pad: tuple[tuple[Var, ...], Expr] | None, inside: Expr
) -> Stmt:
    """Loops over the destination; `index` gives the source of each cell, `inside` which cells have an element."""
    axes = tuple(Var(f"v{k}", extent.dtype) for k, extent in enumerate(target.shape))
    value: Expr = BufferLoad(source, index.map_indices(axes))
    condition = _renamed(inside, index.inputs, axes)
    if pad is not None:
        inputs, filling = pad
        given: dict[Var, Expr] = dict(zip(inputs, axes, strict=True))
        value = IfThenElseExpr(condition, value, substitute(filling, given))
        condition = TRUE
    return _nest(BufferStore(target, axes, value), axes, target.shape, BLOCK, "i", condition)


def _renamed(condition: Expr, inputs: Sequence[Var], axes: Sequence[Var]) -> Expr:
    """A predicate over a map's inputs, or over `p0, p1, ...`, as one over the block's variables."""
    named = {v.name: axis for v, axis in zip(inputs, axes, strict=True)}
    return renamed(condition, {**named, **{f"p{k}": axis for k, axis in enumerate(axes)}})


def _scatter(target: Buffer, source: Buffer, index: IndexMap, inside: Expr = TRUE) -> Stmt:
    """Loops over the source, where `inside` holds."""
    axes = tuple(Var(f"v{k}", extent.dtype) for k, extent in enumerate(source.shape))
    store = BufferStore(target, index.map_indices(axes), BufferLoad(source, axes))
    return _nest(store, axes, source.shape, BLOCK, "i", _renamed(inside, index.inputs, axes))


def _nest(
    store: BufferStore, axes: Sequence[Var], shape: Sequence[Expr], block: str, loop: str, where: Expr = TRUE
) -> Stmt:
    loops = tuple(Var(f"{loop}{k}", axis.dtype) for k, axis in enumerate(axes))
    zeros = tuple(const(0, axis.dtype) for axis in axes)
    iters = tuple(
        IterVar(axis, IterKind.SPATIAL, Range(zero, extent), each)
        for axis, zero, extent, each in zip(axes, zeros, shape, loops, strict=True)
    )
    body: Stmt = Block(block, iters, store, where=where, writes=(BufferRegion.cell(store.buffer, store.indices),))
    for each, zero, extent in zip(reversed(loops), reversed(zeros), reversed(shape), strict=True):
        body = For(each, zero, extent, ForKind.SERIAL, body)
    return body
