"""Layouts of parameters as stated by the caller, by layout records or by shapes, and the new program's symbols in terms
of the old one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, counted, error
from layoutproof.ir.dtype import HANDLE, Kind
from layoutproof.ir.expr import FALSE, Cast, Expr, IntImm, Var
from layoutproof.ir.index_map import IndexMap, index_map_text, retype
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, layout_records, plain_shape
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.parsing import did_you_mean
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.layout.pad_value import pad_text, read_pad_value
from layoutproof.lowering.layout.transform_layout import check_injective, physical_shape
from layoutproof.lowering.passes.find import all_buffers
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.layout_text import read_layout, total_map
from layoutproof.verify.verdict.verdict import Status

Shape = tuple[Expr, ...]
Pairs = Sequence[tuple[Buffer, Buffer]]


def symbols_of(func: PrimFunc) -> tuple[Var, ...]:
    """The variables in shapes, strides and offsets of the parameters that are not parameters, in order of
    appearance.
    """
    sizes = (size for b in func.buffers for size in (*b.shape, *b.strides, b.elem_offset))
    found = dict.fromkeys(v for size in sizes for v in free_variables(size) if v not in func.params)
    return tuple(v for v in found if v.dtype != HANDLE)


def symbol_values(
    old: PrimFunc, new: PrimFunc, buffers: Pairs, boxes: Mapping[str, Shape], params: Mapping[Var, Var]
) -> dict[Var, Expr]:
    """The value in `old` of each symbol of `new`.

    `buffers` are the parameters, old and new; `boxes` the shapes in `new` of some of `old`, by name; `params` pairs
    parameters, new to old. A symbol is the extent at its position in a parameter of equal rank. If two positions
    differ, or one has a number, it is the symbol of the old program with its name. Raises LayoutproofError if nothing
    determines it.
    """
    told: dict[Var, dict[Expr, str]] = {}
    for before, after in buffers:
        for place, theirs, mine in _places(old, new, before, after, boxes):
            if isinstance(mine, Var) and mine not in params:
                told.setdefault(mine, {}).setdefault(theirs, place)
    symbols = symbols_of(new)
    named = {v.name: v for v in (*symbols_of(old), *(p for p in old.params if p.dtype.is_integer))}
    clash = any(len(told.get(symbol, ())) > 1 for symbol in symbols)
    return {symbol: _value(symbol, told.get(symbol, {}), named, clash) for symbol in symbols}


def _value(symbol: Var, told: Mapping[Expr, str], named: Mapping[str, Var], clash: bool) -> Expr:
    same = named.get(symbol.name)
    by_place = next(iter(told)) if len(told) == 1 else None
    if by_place is not None and (same is None or not (clash or isinstance(by_place, IntImm))):
        return by_place
    if same is not None:
        return same
    if told:
        places = " and ".join(f"{expr_text(value, Style.PLAIN)} ({place})" for value, place in told.items())
        raise error(
            codes.COMPARED_SYMBOL,
            f"the symbol {symbol.name} of the program after would be {places}",
            symbol.span,
            help=_HELP,
        )
    message = f"nothing tells what the symbol {symbol.name} of the program after is in the program before"
    raise error(codes.COMPARED_SYMBOL, message, symbol.span, help=_HELP)


_HELP = (
    "a symbol is told by its place in a parameter of as many axes, by its name, or by the layout given for a parameter "
    "that has it"
)


def _places(
    old: PrimFunc, new: PrimFunc, before: Buffer, after: Buffer, boxes: Mapping[str, Shape]
) -> Iterator[tuple[str, Expr, Expr]]:
    """The sizes of a parameter that correspond, each with its place in words: the old one, the new one."""
    record = layout_records(new).get(after.data.name)
    theirs: Sequence[Expr]
    if before.name in boxes:
        what, theirs, mine = f"{before.name} as it is stored", boxes[before.name], after.shape
    elif record is not None and record.steps:
        kept = layout_records(old).get(before.data.name)
        what = f"{before.name} as it was stored first"
        theirs, mine = before.shape if kept is None else logical_shape(old, kept), logical_shape(new, record)
    else:
        what, theirs, mine = before.name, before.shape, after.shape
    if len(theirs) == len(mine):
        yield from ((f"axis {axis} of {what}", a, b) for axis, (a, b) in enumerate(zip(theirs, mine, strict=True)))
    if len(before.strides) == len(after.strides):
        strides = zip(before.strides, after.strides, strict=True)
        yield from ((f"stride {axis} of {before.name}", a, b) for axis, (a, b) in enumerate(strides))
    yield f"the offset of {before.name}", before.elem_offset, after.elem_offset


def logical_shape(func: PrimFunc, record: LayoutRecord) -> tuple[Expr, ...]:
    """The shape that a record begins with, over the function's own symbols."""
    types = {v.name: v.dtype for v in (*symbols_of(func), *func.params)}
    return tuple(retype(extent, types) for extent in record.logical_shape)


def same_extents(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
    """Whether sizes are written alike, whatever integer types they are of."""
    return len(first) == len(second) and all(size_text(a) == size_text(b) for a, b in zip(first, second, strict=True))


def size_text(size: Expr) -> str:
    """A size as text, a cast around it that changes no value left out."""
    inner = size
    while (
        isinstance(inner, Cast)
        and inner.dtype.kind is inner.value.dtype.kind is Kind.INT
        and inner.dtype.bits >= inner.value.dtype.bits
    ):
        inner = inner.value
    return expr_text(inner, Style.PLAIN)


def shape_text(shape: Sequence[Expr]) -> str:
    """`[n, 4]`."""
    return f"[{', '.join(map(size_text, shape))}]"


MapLike = IndexMap | Callable[..., Any] | str


class Source(Enum):
    """The origin of a parameter's layout in the new program."""

    KEPT = "kept"  # by default: it has the same shape
    GIVEN = "given"
    RECORDED = "recorded"  # the new program, in its layout record
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Term:
    """The layout of one parameter in the new program. `old` and `new` are its buffer in both, over the same names.

    `index_map` leads from the old cells to the new ones; None if they are kept, or not known. `steps` are those of the
    new program's record beyond the old one's. `pad` is the contract that was given, if `pad_given`.
    """

    old: Buffer
    new: Buffer
    source: Source
    index_map: IndexMap | None = None
    steps: tuple[LayoutStep, ...] = ()
    pad: Contract | None = None
    pad_given: bool = False


def read_layouts(old: PrimFunc, layouts: Mapping[str, MapLike]) -> dict[str, IndexMap]:
    """The maps that the caller gave, by the names of the old program's parameters. Raises LayoutproofError for any
    other name.
    """
    found: dict[str, IndexMap] = {}
    for name, given in layouts.items():
        buffer = parameter(old, name, "layouts")
        index_map = _read_map(given, buffer, old)
        if len(index_map.inputs) != buffer.rank:
            takes, axes = counted(len(index_map.inputs), "index", "indices"), counted(buffer.rank, "axis", "axes")
            raise error(
                codes.MAP_ARITY, f"layouts: `{index_map_text(index_map)}` takes {takes}, {name} has {axes}", buffer.span
            )
        found[name] = index_map
    return found


def _read_map(given: object, buffer: Buffer, old: PrimFunc) -> IndexMap:
    if isinstance(given, IndexMap):
        return given
    if isinstance(given, str):
        return total_map(read_layout(given, buffer.shape, symbols=constants_of(old), name="<index map>"), "<index map>")
    if not callable(given):
        what = f"layouts: that of {buffer.name} is {type(given).__name__}"
        raise error(
            codes.ARGUMENT_TYPE, f"{what}; an IndexMap, a function of its indices, or the text of one is expected"
        )
    return IndexMap.from_func(given, buffer.rank)


def parameter(func: PrimFunc, name: str, argument: str) -> Buffer:
    """The buffer parameter of a name. Raises LayoutproofError, which lists the parameters, for other names."""
    found = next((b for b in func.buffers if b.name == name), None)
    if found is not None:
        return found
    names = [b.name for b in func.buffers]
    hint = did_you_mean(str(name), names)
    there = hint if hint is not None else f"the buffers that callers pass are {', '.join(names)}"
    if any(b.name == name for b in all_buffers(func)):
        message = f"{argument}: {name} is a temporary of {func.name}, and only parameters have layouts that callers see"
        raise error(codes.COMPARED_LAYOUT, message, help=there)
    raise error(
        codes.COMPARED_LAYOUT, f"{argument}: {func.name} has no parameter {name!r} that is a buffer", help=there
    )


def boxes_of(old: PrimFunc, maps: Mapping[str, IndexMap], where: Expr | None) -> dict[str, Shape]:
    """The physical shapes of the given layouts, if a formula is known. Raises IllegalTransform for a map that is not
    injective.
    """
    found: dict[str, Shape] = {}
    types = {v.name: v.dtype for v in constants_of(old)}
    for name, index_map in maps.items():
        buffer = parameter(old, name, "layouts")
        report = check_map(index_map, buffer.shape, where)
        if report.injective.status is not Status.VACUOUS:
            check_injective(buffer, index_map, report)
        if None not in report.physical_shape:
            found[name] = physical_shape(buffer, report, types)
    return found


def padding_under(term: Term, index_map: IndexMap, where: Expr | None) -> Expr | None:
    """The padding of a parameter under a map, in the new program's shape: a condition over `p0, p1, ...`, FALSE if
    there is none, None if that is not known.

    Raises LayoutproofError if the shape does not contain the map's image; for symbolic shapes the checker decides that.
    """
    axes = counted(index_map.rank, "axis", "axes")
    why = f"the map has {axes}, the shape {term.new.rank}"
    try:
        if index_map.rank == term.new.rank:
            padding = check_map(index_map, term.old.shape, where, physical_shape=term.new.shape).padding
            return FALSE if padding.cells == 0 else padding.predicate
    except LayoutproofError as problem:
        if any(free_variables(extent) for extent in (*term.old.shape, *term.new.shape)):
            return None
        why = "; ".join(d.message for d in problem.diagnostics)
    stored = f"{term.old.name} of shape {shape_text(term.old.shape)}, stored as `{index_map_text(index_map)}`,"
    fits = f"does not fit its shape {shape_text(term.new.shape)} in the program after"
    raise error(codes.COMPARED_LAYOUT, f"{stored} {fits}: {why}", term.new.span)


def terms_of(
    old: PrimFunc, new: PrimFunc, maps: Mapping[str, IndexMap], pads: Mapping[str, Any], where: Expr | None
) -> tuple[Term, ...]:
    """The layout of each buffer parameter in `new`, which is over the names of `old`.

    Raises LayoutproofError for a layout that does not fit its shapes or contradicts a record, for a record that does
    not continue the old program's, and for a pad value that the buffer cannot have.
    """
    for name in pads:
        parameter(old, name, "pads")
    records = layout_records(old), layout_records(new)
    found: list[Term] = []
    for before, after in zip(old.buffers, new.buffers, strict=True):
        kept, longer = (kind.get(before.data.name) for kind in records)
        term = _placed(before, after, kept, longer, maps.get(before.name), old)
        if term.source is Source.GIVEN and term.index_map is not None:
            padding_under(term, term.index_map, where)
        found.append(_padded(old, new, term, pads))
    return tuple(found)


def _placed(
    before: Buffer,
    after: Buffer,
    kept: LayoutRecord | None,
    longer: LayoutRecord | None,
    given: IndexMap | None,
    old: PrimFunc,
) -> Term:
    steps = _added(before, kept, longer)
    if steps:
        composed = _composed(before, steps, old)
        if given is not None and [index_map_text(given)] != [step.map_text for step in steps]:
            stated = " and then ".join(f"`{step.map_text}`" for step in steps)
            message = (
                f"layouts: the program after says itself how {before.name} lies, {stated}, which is not "
                f"`{index_map_text(given)}`"
            )
            raise error(codes.COMPARED_RECORD, message, after.span, help="leave one of the two out")
        return Term(before, after, Source.RECORDED, composed, steps)
    same = same_extents(before.shape, after.shape)
    if given is None:
        return Term(before, after, Source.KEPT if same else Source.UNKNOWN)
    if same and given.outputs == given.inputs:
        return Term(before, after, Source.KEPT)
    return Term(before, after, Source.GIVEN, given)


def _added(before: Buffer, kept: LayoutRecord | None, longer: LayoutRecord | None) -> tuple[LayoutStep, ...]:
    """The additional steps of the new program's record of a parameter. Raises LayoutproofError if it does not continue
    the old one.
    """
    if longer is None or not longer.steps or longer == kept:
        return ()
    done = kept.steps if kept is not None else ()
    logical = kept.logical_shape if kept is not None else LayoutRecord(before.shape).shape
    if longer.logical_shape == logical and longer.steps[: len(done)] == done:
        return longer.steps[len(done) :]
    began = f"[{', '.join(map(str, plain_shape(longer.logical_shape)))}]"
    message = f"the layout record of {before.name} in the program after begins with shape {began}"
    raise error(
        codes.COMPARED_RECORD,
        f"{message}, and does not go on from what it was before, {shape_text(before.shape)}",
        before.span,
    )


def _composed(before: Buffer, steps: Sequence[LayoutStep], old: PrimFunc) -> IndexMap:
    maps = [step.index_map.with_symbols(constants_of(old)) for step in steps]
    first, *others = maps
    if len(first.inputs) != before.rank:
        takes = counted(len(first.inputs), "index", "indices")
        raise error(
            codes.COMPARED_RECORD,
            f"the layout record of {before.name} states a map of {takes}, of {before.rank} before",
        )
    outputs: Sequence[Expr] = first.outputs
    for index_map in others:
        outputs = index_map.map_indices(outputs)
    return IndexMap(first.inputs, tuple(outputs), maps[-1].separators)


def _padded(old: PrimFunc, new: PrimFunc, term: Term, pads: Mapping[str, Any]) -> Term:
    """The term with the pad value that the caller gave for it."""
    name = term.old.name
    if name not in pads:
        return term
    if term.source is Source.KEPT:
        message = (
            f"pads: {name} has the same shape {shape_text(term.old.shape)} in both programs and keeps its layout, so "
            "it has no padding"
        )
        raise error(
            codes.COMPARED_LAYOUT,
            message,
            help=f"where its cells do move, give its layout too: layouts={{{name!r}: ...}}",
        )
    pad = pad_text(pads[name], term.new.rank, term.new.dtype)
    value = read_pad_value(pad, term.new, all_buffers(new), constants_of(old))
    if term.source is Source.RECORDED and any(step.contract != value for step in term.steps[-1:]):
        stated = term.steps[-1].contract
        message = f"pads: the program after says itself that padding of {name} holds {stated}, which is not {value}"
        raise error(codes.COMPARED_RECORD, message, term.new.span, help="leave one of the two out")
    return Term(term.old, term.new, term.source, term.index_map, term.steps, value, True)
