"""Layout records of a new program said with the old program's names: their memories, and the symbols and loads in them.

And whether what records state of padding is what a pad value can be: they may be written by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.index_map import IndexMap, narrowed
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, boxed, layout_records
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import free_variables, fresh, map_children, substitute
from layoutproof.lowering.find import all_buffers
from layoutproof.lowering.pad_value import checked
from layoutproof.lowering.scopes import constants_of


def check_contracts(func: PrimFunc) -> None:
    """Raise LayoutproofError where a layout record states of padding what no pad value of its buffer can be."""
    buffers = {b.data.name: b for b in reversed(all_buffers(func))}
    for name, record in layout_records(func).items():
        for step in record.steps if name in buffers else ():
            if step.contract is not None and not step.contract.is_undef:
                _check_contract(func, buffers[name], step, step.contract)


def _check_contract(func: PrimFunc, buffer: Buffer, step: LayoutStep, contract: Contract) -> None:
    try:
        checked(contract, boxed(buffer, step.shape, constants_of(func)))
    except LayoutproofError as problem:
        first = problem.diagnostics[0]
        message = f"the layout record of {buffer.name} states {contract.text!r} of padding: {first.message}"
        raise error(first.code, message, func.span) from problem


@dataclass(frozen=True, slots=True)
class Renamed:
    """What names mean: memories by name, symbols and integer parameters of the new program as expressions of the old one, buffer
    parameters (the old one, the new one) by the new memory's name.
    """

    memories: Mapping[str, str]
    symbols: Mapping[Var, Expr]
    parameters: Mapping[str, tuple[Buffer, Buffer]]

    def records(self, records: Mapping[str, LayoutRecord]) -> dict[str, LayoutRecord]:
        """The records under the old names."""
        return {self.memories.get(name, name): self._record(name, record) for name, record in records.items()}

    def _record(self, name: str, record: LayoutRecord) -> LayoutRecord:
        steps = tuple(LayoutStep(self._map(s.index_map), self._shape(s.shape), self._contract(name, s.contract)) for s in record.steps)
        return LayoutRecord(self._shape(record.logical_shape), steps)

    @property
    def _plain(self) -> dict[Var, Expr]:
        """What the symbols of maps and extents are, which have 32 bits there."""
        return {Var(v.name): narrowed(value) for v, value in self.symbols.items() if v != value}

    def _shape(self, shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(extent, self._plain) for extent in shape)

    def _map(self, index_map: IndexMap) -> IndexMap:
        values = self._plain
        inputs = _apart(index_map.inputs, values)
        known = {**values, **dict(zip(index_map.inputs, inputs, strict=True))}
        return replace(index_map, inputs=inputs, outputs=tuple(substitute(output, known) for output in index_map.outputs))

    def _contract(self, name: str, contract: Contract | None) -> Contract | None:
        if contract is None or contract.is_undef or name not in self.parameters:
            return contract
        before, after = self.parameters[name]
        values = {v: value for v, value in self.symbols.items() if v != value}
        inputs = _apart(contract.inputs, values)
        known: dict[Var, Expr] = {**values, **dict(zip(contract.inputs, inputs, strict=True))}

        def visit(node: Node) -> Node:
            if isinstance(node, Var):
                return known.get(node, node)
            if isinstance(node, Buffer):
                return replace(node, name=before.name) if node.name == after.name else node
            return map_children(node, visit)

        renamed = visit(contract.value)
        assert isinstance(renamed, Expr)
        return Contract(inputs, renamed)


def _apart(inputs: tuple[Var, ...], values: Mapping[Var, Expr]) -> tuple[Var, ...]:
    """Inputs with names that no symbol has in what is put for others."""
    used = {u.name for value in values.values() for u in free_variables(value)}
    taken = used | {v.name for v in inputs}
    return tuple(replace(v, name=fresh(f"{v.name}_", taken)) if v.name in used else v for v in inputs)
