"""Which elements of its parameters a program loads, in a run: found by a copy that takes notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import HANDLE, INT8
from layoutproof.ir.expr import Var, const, logical_and
from layoutproof.ir.interp import Fault, run
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.interp.facts import find_memories
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import NOTHING, Block, BufferStore, Evaluate, For, ForKind, IfThenElse, Seq, Stmt, seq
from layoutproof.ir.visit import loads_in, map_children
from layoutproof.verify.replay.outcome import Number
from layoutproof.verify.replay.watching import evaluated, own_expressions


@dataclass(slots=True)
class Tracker:
    """`func` notes in `notes`, a buffer for each float parameter, which elements were loaded, by assumptions apart."""

    func: PrimFunc
    notes: Mapping[str, Buffer]

    @staticmethod
    def of(func: PrimFunc) -> Tracker | None:
        """The tracker of a program; None where it loads parameters through other views, in vectors, or in a block's condition."""
        parameters = {b.data.name: b for b in func.buffers if b.dtype.is_float}
        root = find_memories(func).root
        for load in loads_in(func.body):
            data = load.buffer.data.name
            parameter = parameters.get(root.get(data, data))
            if parameter is not None and (
                load.buffer != parameter or parameter.dtype.lanes > 1 or any(i.dtype.lanes > 1 for i in load.indices)
            ):
                return None
        notes = {b.name: make_buffer(f"read_{b.name}'", b.shape, INT8) for b in parameters.values()}
        body = _noted(func.body, notes)
        if body is None:
            return None
        handles = tuple(Var(f"{b.name}_handle", HANDLE) for b in notes.values())
        buffer_map = (*func.buffer_map, *zip(handles, notes.values(), strict=True))
        return Tracker(replace(func, params=(*func.params, *handles), buffer_map=buffer_map, body=body), notes)

    def read(self, numbers: Mapping[str, Number], arrays: Mapping[str, Array], limit: int) -> dict[str, Array] | None:
        """By parameter, 1 for each element that a run loads; None where the run fails."""
        blank = {note.name: np.zeros(arrays[name].shape, dtype=np.int8) for name, note in self.notes.items()}
        try:
            after = run(self.func, {**numbers, **arrays, **blank}, limit=limit).arrays
        except (Fault, LayoutproofError):
            return None
        return {name: after[note.name] for name, note in self.notes.items()}


def _noted(body: Stmt, notes: Mapping[str, Buffer]) -> Stmt | None:
    """The statement with notes in front of each that loads; one loop iteration after the other. None for a block whose condition loads."""
    refused = False

    def visit(node: Node) -> Node:
        nonlocal refused
        if not isinstance(node, Stmt):
            return node
        if isinstance(node, Seq):
            return seq(*(s for s in map(visit, node.body) if isinstance(s, Stmt)))
        if isinstance(node, Evaluate) and isinstance(node.value, Assume):
            return node
        if isinstance(node, Block) and any(load.buffer.name in notes for load in loads_in(node.where)):
            refused = True
        rebuilt = map_children(node, visit)
        if isinstance(rebuilt, For):
            rebuilt = replace(rebuilt, kind=ForKind.SERIAL, thread=None)
        found: dict[Stmt, None] = {}
        for expr in own_expressions(node):
            for part, path in evaluated(expr):
                if isinstance(part, BufferLoad) and part.buffer.name in notes:
                    note = BufferStore(notes[part.buffer.name], part.indices, const(1, INT8))
                    found[IfThenElse(logical_and(*path), note) if path else note] = None
        return seq(*found, rebuilt) if found else rebuilt

    result = visit(body)
    assert isinstance(result, Stmt)
    return None if refused or result == NOTHING else result
