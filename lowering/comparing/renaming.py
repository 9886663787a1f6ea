"""Names of a new program's body that give way to the old program's, and the program under the names that it gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Expr, IntImm, Var, widen
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Stmt
from layoutproof.ir.visit import bound_variables, buffers_in, fresh, map_children, take_fresh
from layoutproof.lowering.comparing.symbols import same_extents, symbols_of

_DATA = "_data"  # what a memory is called after its buffer, where a program is read


def out_of_the_way(old: PrimFunc, new: PrimFunc) -> tuple[dict[Var, Var], dict[str, str]]:
    """What the variables, and the buffers by name, of the new program's body are called where the old program needs their names.

    A buffer and its memory change names together, so that the program reads back as it is.
    """
    reserved = {*_interface_names(old), *_remembered(old, new)}
    parameters = {b.data for b in new.buffers}
    buffers = [b for b in buffers_in(new.body) if b not in new.buffers]
    own = dict.fromkeys((*bound_variables(new.body), *(b.data for b in buffers if b.data not in parameters)))
    taken = reserved | {v.name for v in own} | {b.name for b in buffers} | _interface_names(new)
    taken |= {name.removesuffix(_DATA) for name in taken}
    variables: dict[Var, Var] = {}
    names: dict[str, str] = {}
    for buffer in buffers:
        mine = buffer.data not in parameters
        if buffer.name not in names and (buffer.name in reserved or (mine and buffer.data.name in reserved)):
            names[buffer.name] = fresh(buffer.name, taken)
            taken |= {names[buffer.name], names[buffer.name] + _DATA}
        if mine and buffer.name in names and buffer.data.name == buffer.name + _DATA:
            variables[buffer.data] = replace(buffer.data, name=names[buffer.name] + _DATA)
    for variable in own:
        if variable.name in reserved and variable not in variables:
            name = take_fresh(variable.name, taken)
            variables[variable] = replace(variable, name=name)
    return variables, names


def _interface_names(func: PrimFunc) -> set[str]:
    buffers = {name for b in func.buffers for name in (b.name, b.data.name)}
    return buffers | {p.name for p in func.params} | {v.name for v in symbols_of(func)}


def _remembered(old: PrimFunc, new: PrimFunc) -> Iterator[str]:
    """Temporaries of the old program with a layout record that one of the same name in the new program does not go on from."""
    parameters = {b.data.name for b in old.buffers}
    records = layout_records(new)
    for name, record in layout_records(old).items():
        longer = records.get(name)
        goes_on = longer is not None and longer.logical_shape == record.logical_shape and longer.steps[: len(record.steps)] == record.steps
        if name not in parameters and not goes_on:
            yield name


def strides_of(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a buffer, none where its elements lie row by row all the same."""
    size = 1
    for stride, extent in zip(reversed(buffer.strides), reversed(buffer.shape), strict=True) if buffer.strides else ():
        if not (isinstance(stride, IntImm) and isinstance(extent, IntImm) and stride.value == size):
            return buffer.strides
        size *= extent.value
    return ()


@dataclass(frozen=True, slots=True)
class Renaming:
    """Puts the old program's nodes in the place of the new one's, spans of statements kept.

    `values` are what variables become, `parameters` the old buffers of new ones, `own_buffers` the names of those of the body.
    """

    values: Mapping[Var, Expr]
    parameters: Mapping[Buffer, Buffer]
    own_buffers: Mapping[str, str]

    def function(self, new: PrimFunc, parameters: Sequence[tuple[Var, Buffer | None]]) -> PrimFunc:
        """The function under the new names. `parameters` are the old program's, in order, each with the new one's buffer."""
        mapped = tuple((var, self.buffer(buffer)) for var, buffer in parameters if buffer is not None)
        body = self.visit(new.body)
        assert isinstance(body, Stmt)
        return replace(new, params=tuple(var for var, _ in parameters), buffer_map=mapped, body=body)

    def visit(self, node: Node) -> Node:
        """A node with everything below it renamed."""
        if isinstance(node, Var):
            value = self.values.get(node)
            if value is None or value == node:
                return node
            return replace(value, span=node.span) if isinstance(value, Var) and value.dtype == node.dtype else widen(value, node.dtype)
        if isinstance(node, Buffer):
            return self.buffer(node)
        return map_children(node, self.visit)

    def buffer(self, buffer: Buffer) -> Buffer:
        """A buffer with its memory, name and extents renamed; a parameter's has the old program's extents where they are the same."""
        rebuilt = map_children(buffer, self.visit)
        known = self.parameters.get(buffer)
        if known is None:
            name = self.own_buffers.get(buffer.name, buffer.name)
            return rebuilt if name == rebuilt.name else replace(rebuilt, name=name)
        shape = known.shape if same_extents(rebuilt.shape, known.shape) else rebuilt.shape
        strides, mine, theirs = rebuilt.strides, strides_of(rebuilt), strides_of(known)
        if strides != known.strides and (same_extents(mine, theirs) if theirs else not mine):
            # Strides that say what no strides say are stated as the old program has them.
            strides = known.strides if theirs or len(known.strides) == rebuilt.rank else ()
        if (shape, strides, known.name) == (rebuilt.shape, rebuilt.strides, rebuilt.name):
            return rebuilt
        return replace(rebuilt, shape=shape, strides=strides, name=known.name)
