"""Layout records of a new program said with the old program's names: their memories, and the symbols and loads in their texts.

And whether what records state of padding is what a pad value can be: they may be written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.contract import read_contract
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.layout_record import UNDEF_CONTRACT, Extent, LayoutRecord, LayoutStep, extent_of, layout_records
from layoutproof.ir.map_text import index_map_text, parse_index_map, parse_integer
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.subst import fresh, substitute
from layoutproof.ir.visit import free_variables, map_children
from layoutproof.lowering import codes
from layoutproof.lowering.find import all_buffers
from layoutproof.lowering.pad_value import PadValue, read_pad_value
from layoutproof.lowering.scopes import constants_of


def check_contracts(func: PrimFunc) -> None:
    """Raise LayoutproofError where a layout record states of padding what no pad value of its buffer can be."""
    buffers = {b.data.name: b for b in reversed(all_buffers(func))}
    for name, record in layout_records(func).items():
        for step in record.steps if name in buffers else ():
            if step.contract is not None and step.contract != UNDEF_CONTRACT:
                _check_contract(func, buffers[name], step, step.contract)


def _check_contract(func: PrimFunc, buffer: Buffer, step: LayoutStep, contract: str) -> None:
    box = replace(buffer, shape=tuple(Var("extent") for _ in step.shape), strides=(), axis_separators=())
    what = f"the layout record of {buffer.name} states {contract!r} of padding"
    try:
        pad = read_pad_value(contract, box, all_buffers(func), constants_of(func))
    except LayoutproofError as problem:
        first = problem.diagnostics[0]
        raise error(first.code, f"{what}: {first.message}", func.span) from problem
    if pad is None or pad.is_undef:
        meant = "None, without quotes" if pad is None else repr(UNDEF_CONTRACT)
        raise error(codes.PAD_TYPE, f"{what}, which a record says as {meant}", func.span)


@dataclass(frozen=True, slots=True)
class Renamed:
    """What names mean: memories by name, symbols and integer parameters of the new program as expressions of the old one, buffer
    parameters (the old one, the new one) by the new memory's name.
    """

    memories: Mapping[str, str]
    symbols: Mapping[Var, Expr]
    parameters: Mapping[str, tuple[Buffer, Buffer]]

    def records(self, records: Mapping[str, LayoutRecord]) -> dict[str, LayoutRecord]:
        """The records under the old names. Raises LayoutproofError for a text that cannot be read."""
        return {self.memories.get(name, name): self._record(name, record) for name, record in records.items()}

    @property
    def _values(self) -> dict[Var, Expr]:
        return {v: value for v, value in self.symbols.items() if v != value}

    def _record(self, name: str, record: LayoutRecord) -> LayoutRecord:
        # What means the same stays as it is written: the checker compares contracts as texts.
        steps = tuple(LayoutStep(self._map(s.index_map), self._shape(s.shape), self._contract(name, s)) for s in record.steps)
        return LayoutRecord(self._shape(record.logical_shape), steps)

    def _shape(self, shape: tuple[Extent, ...]) -> tuple[Extent, ...]:
        values = self._values
        if not values:
            return shape
        return tuple(e if isinstance(e, int) else extent_of(substitute(parse_integer(e, tuple(self.symbols)), values)) for e in shape)

    def _map(self, text: str) -> str:
        values = self._values
        if not values:
            return text
        read = parse_index_map(text, symbols=tuple(self.symbols))
        taken = {v.name for v in read.inputs} | {u.name for value in values.values() for u in free_variables(value)}
        clash = {u.name for value in values.values() for u in free_variables(value)} & {v.name for v in read.inputs}
        inputs = tuple(replace(v, name=fresh(f"{v.name}_", taken)) if v.name in clash else v for v in read.inputs)
        outputs = (substitute(o, {**values, **dict(zip(read.inputs, inputs, strict=True))}) for o in read.outputs)
        return index_map_text(IndexMap(inputs, tuple(outputs), read.separators))

    def _contract(self, name: str, step: LayoutStep) -> str | None:
        if step.contract is None or step.contract == UNDEF_CONTRACT or name not in self.parameters:
            return step.contract
        before, after = self.parameters[name]
        values = self._values
        if not values and before.name == after.name:
            return step.contract
        box = replace(after, shape=tuple(Var("extent") for _ in step.shape), strides=())
        inputs, value = read_contract(step.contract, box, tuple(self.symbols))

        def visit(node: Node) -> Node:
            if isinstance(node, Var):
                return values.get(node, node) if node not in inputs else node
            if isinstance(node, Buffer):
                return replace(node, name=before.name)
            return map_children(node, visit)

        renamed = visit(value)
        assert isinstance(renamed, Expr)
        return PadValue(inputs, renamed).contract
