"""A program as it runs when its arrays of indices hold zeros: for one that is too large to be run, and of which nothing
is known as long as data decides where it looks. Part of the trust base.
"""

from __future__ import annotations

from dataclasses import replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.expr import Expr, IntImm
from layoutproof.ir.node import Node, Steps, trampoline
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, Stmt
from layoutproof.ir.visit import holds_any, loads_in, map_children, mapped, nodes_of
from layoutproof.verify.faults.bounds import prove_in_bounds
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import unwritten
from layoutproof.verify.faults.reads import prove_readable
from layoutproof.verify.verdict.verdict import Status


def with_zero_indices(facts: Facts) -> PrimFunc | None:
    """The program, with 0 for each load of an integer parameter that nothing writes; None if there is none.

    On inputs with zeros there it does the same, step by step, since these loads are in bounds and find what is there.
    """
    func = facts.program.function
    steady = {buffer.data for buffer in unwritten(facts, func.buffers) if buffer.dtype.is_integer}
    steady &= {load.buffer.data for load in _indices(func)}
    touching = tuple(access for access in facts.program.accesses if access.data in steady)
    if not touching or any(holds_any(index, BufferLoad) for access in touching for index in access.indices):
        return None
    there = facts.of_program(replace(facts.program, accesses=touching))
    if any(v.status is not Status.PROVED for v in (*prove_in_bounds(there), *prove_readable(there))):
        return None

    def visit(node: Node) -> Node | Steps[Node, Node]:
        return mapped(node) if isinstance(node, Stmt) else inside(node)

    def inside(node: Node) -> Node:
        if isinstance(node, Buffer):
            return node
        if isinstance(node, BufferLoad) and node.buffer.data in steady and node.dtype.lanes == 1:
            return IntImm(0, node.dtype)
        return map_children(node, inside)

    body = trampoline(visit, func.body)
    assert isinstance(body, Stmt)
    return replace(func, body=body)


def _indices(func: PrimFunc) -> list[BufferLoad]:
    """The loads that decide where something is loaded or stored."""
    places: list[Expr] = [i for node in nodes_of(func.body, BufferLoad) for i in node.indices]
    places += [i for node in nodes_of(func.body, BufferStore) for i in node.indices]
    return [load for place in places for load in loads_in(place)]
