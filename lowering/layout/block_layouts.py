"""One layout for all buffers that a block touches: the blocks of its axes carried over from index to index; and the
primitive that stores all of them so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import counted, error
from layoutproof.ir.expr import Binary, Expr, IntImm, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.layout_strings import layout_map, parse_layout
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import free_variables, loads_in, stores_in, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.layout.pad_value import PadText
from layoutproof.lowering.layout.transform_layout import relay
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.find import find_block, find_buffer
from layoutproof.lowering.passes.witness_maps import rewrite_of
from layoutproof.verify.maps.layout_text import read_layout, total_map

Layouts = Mapping[str, IndexMap]
"""Index maps by names of buffers, in the order in which they are taken."""

_WORD = re.compile(r"\s*([A-Za-z0-9]*[A-Z][A-Za-z0-9]*)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a block: the buffer, and its index over the block's variables."""

    buffer: Buffer
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """The buffers that a block touches, with the first access of each: those that it writes, then others."""

    block: Block
    written: tuple[Access, ...]
    read: tuple[Access, ...]

    @property
    def all(self) -> tuple[Access, ...]:
        """The first access of each buffer."""
        return (*self.written, *self.read)


def touched_by(func: PrimFunc, block: str) -> Touched:
    """The buffers that a block touches. Raises LayoutproofError if there is no such block."""
    found = find_block(func, block)
    stores = list(stores_in(found.body))
    written = {store.buffer: Access(store.buffer, store.indices) for store in reversed(stores)}
    read = {load.buffer: Access(load.buffer, load.indices) for load in reversed(list(loads_in(found.body)))}
    others = [access for buffer, access in reversed(read.items()) if buffer not in written]
    return Touched(found, tuple(reversed(written.values())), tuple(others))


def layouts_of_block(func: PrimFunc, block: str, layout: str, given: Mapping[str, str] | None = None) -> Layouts:
    """The maps by which all buffers of a block are stored in one layout; `given` has layouts of some by name.

    The layout is for what the block writes, and for the operand that is indexed most like it, where it has as many
    axes. An axis of another buffer is taken apart as the variable is that indexes it: the coarsest part in its place,
    finer ones last. A buffer with none of these variables keeps its layout. Raises LayoutproofError for a text that is
    no layout, and where it is for no buffer.
    """
    touched = touched_by(func, block)
    symbols = constants_of(func)
    found: dict[str, IndexMap] = {}
    for name, text in (given or {}).items():
        buffer = find_buffer(func, name)
        found[name] = layout_of(text, buffer, symbols)
        _check_fits(buffer, found[name], text)
    for access in _meant(touched, layout, symbols):
        if access.buffer.name not in found:
            found[access.buffer.name] = layout_of(layout, access.buffer, symbols)
    parts = parts_in(touched, found)
    for access in touched.all:
        if access.buffer.name in found:
            continue
        same = next(
            (known for known in touched.all if known.buffer.name in found and known.index == access.index), None
        )
        index_map = found[same.buffer.name] if same is not None else _carried(access, parts, _names(touched, access))
        if index_map is not None:
            found[access.buffer.name] = index_map
    order = [access.buffer.name for access in (*touched.read, *touched.written)]
    named = [*(name for name in found if name not in order), *(name for name in order if name in found)]
    return {name: found[name] for name in named}


def layout_of(text: str, buffer: Buffer, symbols: Sequence[Var]) -> IndexMap:
    """The map of a layout for a buffer: `NHWC8c` is made of `NHWC`; any other text is read as a map is.

    Raises LayoutproofError for a text that is neither.
    """
    word = _WORD.fullmatch(text)
    if word is not None:
        parsed = parse_layout(word[1])
        return layout_map(parse_layout("".join(parsed.names)), parsed)
    return total_map(read_layout(text, buffer.shape, symbols=symbols, name="<layout>"), "<layout>")


def _check_fits(buffer: Buffer, index_map: IndexMap, text: str) -> None:
    if len(index_map.inputs) != buffer.rank:
        takes, axes = counted(len(index_map.inputs), "index", "indices"), counted(buffer.rank, "axis", "axes")
        raise error(codes.MAP_ARITY, f"the layout `{text}` takes {takes}, {buffer.name} has {axes}", buffer.span)


def _meant(touched: Touched, layout: str, symbols: Sequence[Var]) -> list[Access]:
    """The buffers that the layout is for: written ones, and the operand that is indexed most like the first of them."""
    fitting = [access for access in touched.all if _fits(layout, access.buffer, symbols)]
    if not fitting:
        has = ", ".join(f"{a.buffer.name} with {counted(a.buffer.rank, 'axis', 'axes')}" for a in touched.all)
        message = f"the layout `{layout}` fits no buffer of block {touched.block.name}, which touches {has}"
        raise error(
            codes.MAP_ARITY, message, touched.block.span, help="a layout has a letter, or an index, for each axis"
        )
    results = [access for access in fitting if access in touched.written]
    operands = [access for access in fitting if access in touched.read]
    like = results[0].index if results else touched.all[0].index
    best = max(operands, key=lambda access: _likeness(access.index, like), default=None)
    return results if best is None else [*results, best]


def _fits(layout: str, buffer: Buffer, symbols: Sequence[Var]) -> bool:
    return len(layout_of(layout, buffer, symbols).inputs) == buffer.rank if buffer.rank else False


def _likeness(index: Sequence[Expr], other: Sequence[Expr]) -> int:
    """On how many axes two indices share a variable."""
    pairs = zip(index, other, strict=False)
    return sum(bool(set(free_variables(one)) & set(free_variables(two))) for one, two in pairs)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a map makes of one of its inputs: several quotients and remainders, in the order of its outputs."""

    variable: Var
    outputs: tuple[Expr, ...]

    def of(self, variable: Var) -> tuple[Expr, ...]:
        """The same of another variable."""
        return tuple(substitute(output, {self.variable: variable}) for output in self.outputs)


def parts_of(index_map: IndexMap, index: Sequence[Expr]) -> dict[Var, Parts]:
    """The variables that are an index by themselves and that the map takes apart."""
    found: dict[Var, Parts] = {}
    for variable, each in zip(index_map.inputs, index, strict=True):
        own = tuple(output for output in index_map.outputs if variable in free_variables(output))
        if isinstance(each, Var) and len(own) > 1 and all(_is_digit(output, variable) for output in own):
            found[each] = Parts(variable, own)
    return found


def parts_in(touched: Touched, found: Layouts) -> dict[Var, Parts]:
    """The same of all maps; of two that take a variable apart the first counts, of what the block writes first."""
    parts: dict[Var, Parts] = {}
    for access in (access for access in touched.all if access.buffer.name in found):
        for variable, each in parts_of(found[access.buffer.name], access.index).items():
            parts.setdefault(variable, each)
    return parts


def _is_digit(output: Expr, variable: Var) -> bool:
    """Whether an output is `v`, `v//4`, `v%4` or `v//4%4`."""
    while isinstance(output, Binary) and output.op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD):
        if not isinstance(output.rhs, IntImm):
            return False
        output = output.lhs
    return output == variable


def _names(touched: Touched, access: Access) -> list[str]:
    """Names for the axes of a buffer: those of the loops that index them, where each has one of its own."""
    loops = {i.var: i.binding.name for i in touched.block.iter_vars if isinstance(i.binding, Var)}
    names = [loops.get(index, "") if isinstance(index, Var) else "" for index in access.index]
    plain = all(names) and len(set(names)) == len(names)
    return names if plain else [f"a{axis}" for axis in range(len(access.index))]


def _carried(access: Access, parts: Mapping[Var, Parts], names: Sequence[str]) -> IndexMap | None:
    """The map of a buffer whose axes are taken apart as the variables that index them; None if none is."""
    inputs = tuple(map(Var, names))
    outputs: list[Expr] = []
    finer: list[Expr] = []
    for variable, index in zip(inputs, access.index, strict=True):
        known = parts.get(index) if isinstance(index, Var) else None
        first, *rest = (variable,) if known is None else known.of(variable)
        outputs.append(first)
        finer += rest
    return IndexMap(inputs, (*outputs, *finer)) if finer else None


@dataclass(frozen=True)
class TransformLayouts(Pass):
    """Store all buffers that a block touches in one layout: `NHWC8c`, `NHWC->NCHW8c`, or the text of an index map.

    The layout is for what the block writes, and for the operand that is indexed most like it. In other buffers an axis
    is taken apart as the variable is that indexes it, with the finer parts last: of a convolution's weights both
    channels. `pad_values` has what padding holds by name of buffer, as `transform_layout` takes it; the padding of
    others must not be touched. `layoutproof suggest` finds values, loops to match, and the branches that go.
    """

    primitive: ClassVar[str] = "transform_layouts"
    block: str = field(metadata=option(ArgumentKind.NAME))
    layout: str = field(metadata=option(ArgumentKind.LAYOUT))
    pad_values: tuple[tuple[str, PadText], ...] | None = field(default=None, metadata=option(ArgumentKind.PAD_VALUES))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with all these buffers in their layouts, in one step.

        Raises LayoutproofError for a layout that is for no buffer of the block, for a pad value of a buffer that keeps
        its layout, and as `transform_layout` does.
        """
        layouts = layouts_of_block(func, self.block, self.layout)
        pads = dict(self.pad_values or ())
        other = next((name for name in pads if name not in layouts), None)
        if other is not None:
            find_buffer(func, other)
            message = f"{other} keeps its layout, so it has no padding to hold anything"
            raise error(codes.NOT_IN_BLOCK, message, help=f"the layout is for {', '.join(layouts)}")
        current, steps = func, list[Rewrite]()
        for name, index_map in layouts.items():
            steps.append(relay(current, find_buffer(current, name), index_map, pads.get(name)))
            current = steps[-1].new
        origins: list[int | None] = list(range(len(list(stores_in(func.body)))))
        for step in steps:
            numbers = (claim.old_store for claim in step.witness.instances)
            origins = [None if number is None else origins[number] for number in numbers]
        cells = tuple(cell for step in steps for cell in step.witness.cells)
        interface = tuple(name for step in steps for name in step.witness.changes_interface)
        return rewrite_of(func, current, origins, cells, interface)
