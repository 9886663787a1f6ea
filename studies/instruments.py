"""Programs that make uses of padding visible: masked loads, another value for each use, and marks on values.

Each is an ordinary program, so that the checker decides about it as about any other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT8
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, IntImm, Select, Var, const, logical_and
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, Seq, Stmt, seq
from layoutproof.ir.visit import children, map_children, names_in, rewrite_bottom_up, take_fresh
from layoutproof.lowering.loops.nest import GuardKind, guard_sites
from layoutproof.lowering.passes.find import find_block

MARK = "_poison"
"""The end of the name of a buffer that marks which elements of another one were computed from padding."""


def condition_of(func: PrimFunc, block: str) -> Expr:
    """The guards of a block as one condition: those that layouts caused, or its own."""
    sites = guard_sites(func, block)
    return logical_and(*(site.condition for site in sites if site.kind is not GuardKind.VALUE))


def with_masked_loads(func: PrimFunc, block: str, buffers: Collection[str], otherwise: Mapping[str, Expr]) -> PrimFunc:
    """The function whose loads of these buffers in a block are made under the block's guard, with another value where
    it is false.
    """
    guard = condition_of(func, block)

    def masked(node: Node) -> Node:
        if isinstance(node, BufferLoad) and node.buffer.name in buffers:
            return IfThenElseExpr(guard, node, otherwise[node.buffer.name])
        return node

    return _with_values(func, block, masked)


def with_fresh_loads(func: PrimFunc, block: str, buffers: Collection[str]) -> PrimFunc:
    """The function in which each load of padding in a block has a value of its own: an element of an input that nothing
    is known of, one for each load and each instance of the block.
    """
    guard, target = condition_of(func, block), find_block(func, block)
    indices = tuple(iter_var.var for iter_var in target.iter_vars)
    shape = tuple(iter_var.domain.extent for iter_var in target.iter_vars)
    taken = {buffer.name for buffer in func.buffers} | names_in(func.body)
    made: list[Buffer] = []

    def fresh(node: Node) -> Node:
        if not (isinstance(node, BufferLoad) and node.buffer.name in buffers):
            return node
        name = take_fresh(f"{node.buffer.name}_use", taken)
        made.append(Buffer(name, node.buffer.dtype, shape, Var(f"{name}_data", HANDLE)))
        return IfThenElseExpr(guard, node, BufferLoad(made[-1], indices))

    changed = _with_values(func, block, fresh)
    for buffer in made:
        changed = _with_parameter(changed, buffer)
    return changed


def _with_values(func: PrimFunc, block: str, rewrite: Callable[[Node], Node]) -> PrimFunc:
    """The function with the values that a block stores rewritten."""

    def visit(node: Node) -> Node:
        if isinstance(node, BufferStore):
            value = rewrite_bottom_up(node.value, rewrite)
            return replace(node, value=value)
        return map_children(node, visit) if isinstance(node, Stmt) else node

    def outside(node: Node) -> Node:
        if isinstance(node, Block) and node.name == block:
            return visit(node)
        return map_children(node, outside) if isinstance(node, Stmt) else node

    return func.with_body(_statement(outside(func.body)))


def _with_parameter(func: PrimFunc, buffer: Buffer) -> PrimFunc:
    param = Var(buffer.name, HANDLE)
    return replace(func, params=(*func.params, param), buffer_map=(*func.buffer_map, (param, buffer)))


def with_marks(func: PrimFunc) -> PrimFunc:
    """The function that computes, beside each value, whether it was computed from a marked element: `X_poison[i]` is 0
    where `X[i]` was not.

    Marks of inputs are inputs. An operation on a marked value yields a marked value, whatever the other operand is; a
    choice has the marks of its condition and of what it chooses. A branch on a marked condition is not expected here:
    the templates choose by values.
    """
    marks = {b: _mark_of(b) for b in _marked_buffers(func)}

    def visit(node: Node) -> Node:
        if isinstance(node, BufferStore):
            return seq(BufferStore(marks[node.buffer], node.indices, mark(node.value, marks)), node)
        if isinstance(node, Seq):
            return seq(*(_statement(visit(each)) for each in node.body))
        if isinstance(node, Block):
            allocated = (*node.alloc_buffers, *(marks[buffer] for buffer in node.alloc_buffers))
            node = replace(node, alloc_buffers=allocated, reads=None, writes=None)
        return map_children(node, visit) if isinstance(node, Stmt) else node

    marked = func.with_body(_statement(visit(func.body)))
    for buffer in func.buffers:
        marked = _with_parameter(marked, marks[buffer])
    return marked


def _statement(node: Node) -> Stmt:
    assert isinstance(node, Stmt)
    return node


def _marked_buffers(func: PrimFunc) -> tuple[Buffer, ...]:
    allocated = tuple(b for block in _blocks(func.body) for b in block.alloc_buffers)
    return (*func.buffers, *allocated)


def _blocks(node: Node) -> tuple[Block, ...]:
    found = (node,) if isinstance(node, Block) else ()
    return (*found, *(b for child in children(node) if isinstance(child, Stmt) for b in _blocks(child)))


def _mark_of(buffer: Buffer) -> Buffer:
    name = f"{buffer.name}{MARK}"
    return replace(buffer, name=name, dtype=INT8, data=Var(f"{name}_data", HANDLE))


def mark(value: Expr, marks: Mapping[Buffer, Buffer]) -> Expr:
    """Whether a value was computed from a marked element, as an int8: 0 if not."""
    match value:
        case BufferLoad(buffer=buffer, indices=indices):
            return BufferLoad(marks[buffer], indices)
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = Select(condition, mark(then, marks), mark(otherwise, marks))
            return _either(mark(condition, marks), chosen)
        case IfThenElseExpr(condition=condition, then=then, otherwise=otherwise):
            chosen_lazily = IfThenElseExpr(condition, mark(then, marks), mark(otherwise, marks))
            return _either(mark(condition, marks), chosen_lazily)
        case _:
            found: Expr = const(0, INT8)
            for child in children(value):
                if isinstance(child, Expr):
                    found = _either(found, mark(child, marks))
            return found


def _either(a: Expr, b: Expr) -> Expr:
    if isinstance(a, IntImm):
        return b if a.value == 0 else a
    if (isinstance(b, IntImm) and b.value == 0) or a == b:
        return a
    return Binary(BinaryOp.BITOR, a, b)
