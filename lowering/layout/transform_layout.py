"""Changing the layout of a buffer, as a primitive and for the transforms in a function's attribute.

Every access, allocation, region and the calling convention change at once; loops keep their order.

Source: TVM's RFC `buffer-physical-layout`, ApplyBufferTransforms.
Sources: TVM's RFCs `buffer-physical-layout` (transform_layout, ApplyBufferTransforms), `layout-transformation-padding-
roadmap` (pad values, their stages) and `clarifying-buffer-declaration-and-access` (aliases).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import Diagnostic, counted, error
from layoutproof.ir.dtype import HANDLE, INT32, INT64, DType, Kind
from layoutproof.ir.expr import FALSE, Expr, IntImm, Var, const, widen
from layoutproof.ir.index_map import IndexMap, index_map_text, retype
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, layout_records, with_record
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.notations.detect import notation_of
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.notation import Notation
from layoutproof.ir.primfunc import APART, LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.ir.stmt import Allocate, Attributes, Block, BufferStore, MatchBuffer, Stmt
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import children, free_variables, map_children, mapped, nodes_of, stores_in, substitute, walk
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import assumed_of_constants, constants_of, symbol_scope
from layoutproof.lowering.layout.pad_value import (
    Padding,
    PadText,
    check_self_loads,
    pad_text,
    read_pad_value,
    with_assume_stage,
    with_padding_stage,
)
from layoutproof.lowering.layout.separators import stated_separators, with_attribute
from layoutproof.lowering.passes.base import ArgumentKind, Pass, from_json, map_text, option
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.find import aliases_of, all_buffers, find_block, find_buffer
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.verify.maps.check_map import check_map
from layoutproof.verify.maps.layout_text import read_layout, total_map
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.report import counterexample_text
from layoutproof.verify.verdict.verdict import Status

ROOT = "root"
_MAP = "<index map>"


@dataclass(frozen=True)
class TransformLayout(Pass):
    """Store a buffer by an index map: an `IndexMap`, a function of its indices, or text in any notation of layouts.

    `block` is one that reads or writes the buffer, or `root`; the layout changes everywhere. `pad_value` is None
    (padding must not be touched), `undef`, a number, an expression, text in the script syntax, or a function of the
    physical indices that returns one of these. Any but None is a contract: a producer writes it after its last write, a
    consumer assumes it at its start.
    """

    primitive: ClassVar[str] = "transform_layout"
    block: str = field(metadata=option(ArgumentKind.NAME))
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    index_map: str = field(metadata=option(ArgumentKind.INDEX_MAP))
    pad_value: PadText = field(default=None, metadata=option(ArgumentKind.PAD_VALUE))

    @classmethod
    def tries(cls, func: PrimFunc, arguments: dict[str, Any]) -> Sequence[Pass]:
        """The pass, with its map and its pad value as text: functions are called with the indices of the buffer."""
        for name in ("block", "buffer"):
            from_json(ArgumentKind.NAME, arguments[name], f"{cls.primitive}, argument {name!r}")
        buffer = arguments["buffer"]
        text = map_text(arguments["index_map"], lambda: find_buffer(func, buffer).rank)
        if notation_of(text) is not Notation.LAMBDA:
            text = index_map_text(total_map(read_layout(text, find_buffer(func, buffer).shape, name=_MAP), _MAP))
        rank = parse_index_map(text, symbols=constants_of(func)).rank
        pad = pad_text(arguments["pad_value"], rank, find_buffer(func, buffer).dtype)
        return (cls(arguments["block"], buffer, text, pad),)

    def propose(self, func: PrimFunc) -> Rewrite:
        """The transformed function.

        Raises IllegalTransform for a map that is not injective, LayoutproofError for unknown names, aliases that would
        keep the old layout, vector accesses that would be split, and pad values that the buffer cannot have.
        """
        buffer = find_buffer(func, self.buffer)
        if self.block != ROOT:
            block = find_block(func, self.block)
            if buffer.data not in data_read(block) | data_written(block):
                raise error(
                    codes.NOT_IN_BLOCK, f"block {self.block} neither reads nor writes {self.buffer}", block.span
                )
        index_map = parse_index_map(self.index_map, symbols=constants_of(func))
        return relay(func, buffer, index_map, self.pad_value)


def relay(func: PrimFunc, buffer: Buffer, index_map: IndexMap, pad: PadText = None) -> Rewrite:
    """The function with `buffer` stored by `index_map`; the errors are those of `TransformLayout.propose`.

    Aliases of the same shape and type are other names for the same elements: they move with it.
    """
    buffer, *variants = views_together(func, buffer)
    _check_seen(func, buffer)
    if len(index_map.inputs) != buffer.rank:
        takes, axes = counted(len(index_map.inputs), "index", "indices"), counted(buffer.rank, "axis", "axes")
        message = f"`{index_map_text(index_map)}` takes {takes}, {buffer.name} has {axes}"
        raise error(codes.MAP_ARITY, message, buffer.span)
    report = check_map(index_map, buffer.shape, assumed_of_constants(func))
    check_injective(buffer, index_map, report)
    physical = _physical(func, buffer, index_map, report)
    if _symbols(func.buffers) - _symbols([physical if b == buffer else b for b in func.buffers]):
        # Assumptions may determine a symbol by others; but only a shape binds it.
        report = check_map(index_map, buffer.shape)
        physical = _physical(func, buffer, index_map, report)
    views = {
        buffer: physical,
        **{variant: replace(physical, name=variant.name, align=variant.align) for variant in variants},
    }
    moved = _Relaying(views, _typed(index_map, buffer)).function(func)
    pad_value = read_pad_value(pad, physical, all_buffers(moved), constants_of(func))
    predicate = padding_predicate(buffer, report) if pad_value is not None else FALSE
    if pad_value is not None:
        check_self_loads(pad_value, predicate, physical)
    contract = pad_value if predicate != FALSE else None
    moved = _with_attributes(moved, buffer, physical, index_map, contract)
    result = moved
    if pad_value is not None and predicate != FALSE:
        result = _with_stage(moved, padding_of(moved, physical, predicate, pad_value))
    cells = (CellMap(buffer.data.name, buffer.data.name, index_map),)
    interface = (buffer.name,) if buffer in func.buffers else ()
    if interface and not func.noalias and len(func.buffers) > 1:
        # Two parameters in one memory cannot have different layouts.
        result = replace(result, attrs=result.attrs.with_value(APART, True))
    return rewrite_of(func, result, _origins(moved, result), cells, interface)


def _physical(func: PrimFunc, buffer: Buffer, index_map: IndexMap, report: MapReport) -> Buffer:
    types = {v.name: v.dtype for v in constants_of(func)}
    return replace(
        buffer, shape=physical_shape(buffer, report, types), strides=(), axis_separators=index_map.separators
    )


def _symbols(buffers: Sequence[Buffer]) -> set[Var]:
    """The variables that the shapes of parameters bind."""
    return {v for buffer in buffers for extent in buffer.shape for v in free_variables(extent)}


def physical_shape(buffer: Buffer, report: MapReport, types: Mapping[str, DType]) -> tuple[Expr, ...]:
    """The box, with constants as wide as the buffer's widest extent and symbols of the function's types.

    Raises LayoutproofError if an extent is not known.
    """
    wide = max((extent.dtype for extent in buffer.shape), key=lambda dtype: dtype.bits, default=INT32)
    extents: list[Expr] = []
    for axis, extent in enumerate(report.physical_shape):
        if extent is None:
            raise error(
                codes.PADDING_UNKNOWN, f"the extent of physical axis {axis} of {buffer.name} is not known", buffer.span
            )
        if isinstance(extent, IntImm) and extent.value > wide.max_int:
            raise error(
                codes.INDEX_TYPE,
                f"physical axis {axis} of {buffer.name} has {extent.value} cells, past {wide}",
                buffer.span,
            )
        extents.append(const(extent.value, wide) if isinstance(extent, IntImm) else retype(extent, types))
    return tuple(extents)


def _typed(index_map: IndexMap, buffer: Buffer) -> IndexMap:
    """The map with inputs as wide as the extents that they run over."""
    types = {v.name: extent.dtype for v, extent in zip(index_map.inputs, buffer.shape, strict=True)}
    inputs = tuple(Var(name, dtype) for name, dtype in types.items())
    return replace(index_map, inputs=inputs, outputs=tuple(retype(output, types) for output in index_map.outputs))


def _with_attributes(
    func: PrimFunc, buffer: Buffer, physical: Buffer, index_map: IndexMap, contract: Contract | None
) -> PrimFunc:
    """The function with the buffer's layout record one step longer, and its axis separators stated."""
    name = buffer.data.name
    record = layout_records(func).get(name, LayoutRecord(buffer.shape))
    func = replace(
        func, attrs=with_record(func, name, record.with_step(LayoutStep(index_map, physical.shape, contract)))
    )
    stated = bool(index_map.separators) or name in stated_separators(func)
    return with_attribute(func, {name: index_map.separators}) if stated else func


def padding_of(func: PrimFunc, physical: Buffer, predicate: Expr, value: Contract) -> Padding:
    """The padding, its predicate in 64 bits where bounds do not show that 32 will do."""
    variables = tuple(Var(f"p{axis}", extent.dtype) for axis, extent in enumerate(physical.shape))
    typed = retype(predicate, {v.name: v.dtype for v in (*constants_of(func), *variables)})
    scope = symbol_scope(func)
    for variable, extent in zip(variables, physical.shape, strict=True):
        scope = scope.with_range(variable, const(0, extent.dtype), extent)
    parts = (n for n in walk(typed) if isinstance(n, Expr) and n.dtype.is_integer)
    if not all(scope.bounds(part).fits(part.dtype) for part in parts):
        names = free_variables(typed)
        wide = retype(typed, {v.name: INT64 for v in names})
        typed = substitute(wide, {Var(v.name, INT64): widen(v, INT64) for v in names})
    return Padding(physical, variables, typed, value)


def _with_stage(func: PrimFunc, padding: Padding) -> PrimFunc:
    """The contract as program text: an assumption for a parameter that is only read, else a stage."""
    buffer = padding.buffer
    if buffer not in func.buffers or buffer.data in data_written(func.body):
        return with_padding_stage(func, padding)
    if buffer.dtype.lanes > 1:
        raise error(
            codes.PAD_OF_VECTORS, f"{buffer.name} holds vectors: what its padding holds cannot be assumed", buffer.span
        )
    return with_assume_stage(func, padding)


def _origins(moved: PrimFunc, result: PrimFunc) -> list[int | None]:
    """The old numbers of the new stores; None for those of the stage that was added."""
    before, after = list(stores_in(moved.body)), list(stores_in(result.body))
    added = len(after) - len(before)
    position = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a is not b), len(before))
    numbers: list[int | None] = list(range(len(before)))
    return [*numbers[:position], *([None] * added), *numbers[position:]]


def padding_predicate(buffer: Buffer, report: MapReport) -> Expr:
    """The predicate of padding, over `p0, p1, ...`. Raises LayoutproofError if it is not known."""
    padding = report.padding
    if padding.predicate is None:
        what = f"which cells of {buffer.name} are padding"
        message = f"a pad value needs to know {what}, and that is not known: {padding.reason}"
        raise error(codes.PADDING_UNKNOWN, message, buffer.span)
    return padding.predicate


def check_injective(buffer: Buffer, index_map: IndexMap, report: MapReport) -> None:
    """Raise IllegalTransform unless the map is proved to be injective on the buffer's shape."""
    verdict = report.injective
    if verdict.status is Status.PROVED:
        return
    shape = ", ".join(expr_text(e, "plain") for e in buffer.shape)
    word = "is not" if verdict.status is Status.REFUTED else "is not known to be"
    what = f"`{index_map_text(index_map)}` {word} injective on {buffer.name} of shape [{shape}]"
    message = f"{what}: {counterexample_text(verdict)}"
    raise IllegalTransform(Diagnostic(codes.NOT_INJECTIVE, message, buffer.span), (verdict,))


def views_together(func: PrimFunc, buffer: Buffer) -> tuple[Buffer, ...]:
    """The views of a buffer's memory that are transformed with it, itself included, the one that has the memory first.

    Raises LayoutproofError, which lists them, if other views see the memory in another shape or type.
    """
    views = (buffer, *aliases_of(func, buffer))
    others = [view for view in views if _element_by_element(view) != _element_by_element(buffer)]
    if others:
        raise error(
            codes.ALIASES,
            f"{buffer.name} has aliases that would be left behind: {', '.join(b.name for b in others)}",
            others[0].span,
            help="an alias moves along where its shape and type are the same: all together or none",
        )
    owners = {*func.buffers, *(b for n in nodes_of(func.body, Allocate, Block) for b in _allocated(n))}
    return tuple(sorted(views, key=lambda view: view not in owners))


def _element_by_element(view: Buffer) -> tuple[object, ...]:
    return view.dtype, view.shape, view.strides, view.elem_offset, view.scope


def _allocated(node: Node) -> tuple[Buffer, ...]:
    return (node.buffer,) if isinstance(node, Allocate) else node.alloc_buffers if isinstance(node, Block) else ()


def check_alone(func: PrimFunc, buffer: Buffer) -> None:
    """Raise LayoutproofError if something else sees the buffer's memory and would be left behind."""
    others = aliases_of(func, buffer)
    if others:
        names = ", ".join(b.name for b in others)
        message = f"{buffer.name} has aliases that would be left behind: {names}"
        raise error(codes.ALIASES, message, others[0].span, help="transform all of them together")
    _check_seen(func, buffer)


def _check_seen(func: PrimFunc, buffer: Buffer) -> None:
    """Raise LayoutproofError if the buffer's memory is used other than by accesses to a plain buffer."""
    if buffer.strides or buffer.elem_offset != const(0, buffer.elem_offset.dtype):
        raise error(
            codes.STRIDES,
            f"{buffer.name} has strides or an offset; its cells lie where they say, not where an index map does",
            buffer.span,
        )
    for node in nodes_of(func.body, MatchBuffer, OpaqueCall):
        if isinstance(node, MatchBuffer) and node.source.buffer == buffer:
            raise error(
                codes.ALIASES,
                f"{node.buffer.name} is a view of a region of {buffer.name} and would be left behind",
                node.span,
            )
        if isinstance(node, OpaqueCall) and _touches(node, buffer):
            raise error(
                codes.POINTER_USE,
                f"{buffer.name} is handed to {node.function}, which would see it in its old layout",
                node.span,
            )
    if _pointer_used(func.body, buffer.data):
        raise error(
            codes.POINTER_USE,
            f"the pointer of {buffer.name} is used by itself, where its layout is not visible",
            buffer.span,
        )


def _touches(call: OpaqueCall, buffer: Buffer) -> bool:
    loads = call.dtype == HANDLE
    return any(n == buffer.data or (loads and isinstance(n, BufferLoad) and n.buffer == buffer) for n in walk(call))


def _pointer_used(node: Node, data: Var) -> bool:
    """Whether the data variable occurs anywhere but in a buffer."""
    nodes = [node]
    for each in nodes:  # which grows meanwhile
        nodes += () if isinstance(each, Buffer) else children(each)
    return data in nodes


@dataclass(frozen=True, slots=True)
class _Relaying:
    """Replaces old views by new ones, mapping the indices of every access."""

    views: Mapping[Buffer, Buffer]
    index_map: IndexMap

    def function(self, func: PrimFunc) -> PrimFunc:
        buffer_map = tuple((param, self.views.get(buffer, buffer)) for param, buffer in func.buffer_map)
        body = trampoline(self.step, func.body)
        assert isinstance(body, Stmt)
        return replace(func, buffer_map=buffer_map, body=body)

    def step(self, node: Node) -> Node | Steps[Node, Node]:
        return mapped(node) if isinstance(node, Stmt) and not isinstance(node, BufferStore) else self.visit(node)

    def visit(self, node: Node) -> Node:
        if isinstance(node, Buffer):
            return self.views.get(node, node)
        if isinstance(node, BufferRegion) and node.buffer in self.views:
            return self.region(node)
        if isinstance(node, BufferLoad | BufferStore) and node.buffer in self.views:
            inner = tuple(self.visit(index) for index in node.indices)
            indices = self.indices(node, [i for i in inner if isinstance(i, Expr)])
            if isinstance(node, BufferLoad):
                return replace(node, buffer=self.views[node.buffer], indices=indices)
            value = self.visit(node.value)
            assert isinstance(value, Expr)
            return replace(node, buffer=self.views[node.buffer], indices=indices, value=value)
        return map_children(node, self.visit)

    def indices(self, node: BufferLoad | BufferStore, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        if indices and indices[-1].dtype.lanes > 1:
            message = f"{node.buffer.name} is accessed with a vector index, which the index map would tear apart"
            raise error(codes.VECTOR_INDEX, message, node.span)
        odd = next((i.dtype for i in indices if i.dtype.kind is not Kind.INT), None)
        if odd is not None:
            message = f"{node.buffer.name} is accessed by an index of type {odd}; cast it to int32 or int64"
            raise error(codes.INDEX_TYPE, message, node.span)
        return self.index_map.map_indices(indices)

    def region(self, region: BufferRegion) -> BufferRegion:
        """The least box by axes: a point where every index it depends on is one, else the whole axis."""
        new = self.views[region.buffer]
        starts = [r.start for r in region.ranges]
        loose = {
            v for v, r in zip(self.index_map.inputs, region.ranges, strict=True) if r.extent != const(1, r.extent.dtype)
        }
        mapped = self.index_map.map_indices(starts)
        ranges: list[Range] = []
        for output, point, extent in zip(self.index_map.outputs, mapped, new.shape, strict=True):
            whole = bool(loose & set(free_variables(output)))
            ranges.append(Range(const(0, extent.dtype), extent) if whole else Range(point, const(1, point.dtype)))
        return replace(region, buffer=new, ranges=tuple(ranges))


@dataclass(frozen=True)
class ApplyBufferTransforms(Pass):
    """Apply the attribute `buffer_layout_transformations` (data variable to index maps, in order), and remove it."""

    primitive: ClassVar[str] = "apply_buffer_transforms"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The transformed function. Raises LayoutproofError for a malformed attribute, or as `transform_layout`."""
        current, cells, interface = func, list[CellMap](), list[str]()
        for data, texts in stated_transforms(func).items():
            composed: IndexMap | None = None
            for text in texts:
                buffer = _only_view(current, data)
                index_map = parse_index_map(text, symbols=constants_of(current))
                current = relay(current, buffer, index_map).new
                composed = index_map if composed is None else index_map.compose(composed)
                if buffer in current.buffers or any(b.name == buffer.name for b in current.buffers):
                    interface.append(buffer.name)
            if composed is not None:
                cells.append(CellMap(data, data, composed))
        new = replace(current, attrs=current.attrs.without(LAYOUT_TRANSFORMATIONS))
        return rewrite_of(func, new, cells=tuple(cells), changes_interface=tuple(dict.fromkeys(interface)))


def stated_transforms(func: PrimFunc) -> dict[str, tuple[str, ...]]:
    """The attribute's entries: data variable -> texts of index maps. Raises LayoutproofError for anything else."""
    value = func.attrs.get(LAYOUT_TRANSFORMATIONS)
    if value is None:
        return {}
    wrong = error(
        codes.TRANSFORM_ATTRIBUTE,
        f"the attribute {LAYOUT_TRANSFORMATIONS} is a dictionary from data variables to lists of index maps as text",
        func.span,
    )
    if not isinstance(value, Attributes):
        raise wrong
    found: dict[str, tuple[str, ...]] = {}
    for data, texts in value.items():
        if not isinstance(texts, tuple):
            raise wrong
        maps = tuple(text for text in texts if isinstance(text, str))
        if len(maps) != len(texts):
            raise wrong
        found[data] = maps
    return found


def _only_view(func: PrimFunc, data: str) -> Buffer:
    views = [b for b in all_buffers(func) if b.data.name == data]
    if not views:
        known = ", ".join(dict.fromkeys(b.data.name for b in all_buffers(func)))
        raise error(
            codes.TRANSFORM_ATTRIBUTE,
            f"the attribute {LAYOUT_TRANSFORMATIONS} names {data!r}, which is no data variable; available: {known}",
            func.span,
        )
    return views[0]
