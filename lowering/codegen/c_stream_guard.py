"""The condition of a padded copy, asked once for a whole piece instead of for each of its elements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    BinaryOp,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    LogicalOp,
    Not,
    Var,
    const,
)
from layoutproof.ir.node import Node
from layoutproof.ir.visit import free_variables, loads_in, rewrite_bottom_up, substitute, walk
from layoutproof.lowering.folding import fold_constants

MOST = 32
"""For how many elements of a piece its condition is written down."""
_PARTIAL = frozenset(BinaryOp) - {BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX}
"""Operations that not all operands have a result of."""


def read_where(value: Expr) -> tuple[BufferLoad, Expr] | None:
    """What a value reads, and where it is that; None for a value that is more than a load, or a choice of one and a constant."""
    if isinstance(value, BufferLoad):
        return value, TRUE
    if isinstance(value, IfThenElseExpr) and not any(True for _ in loads_in(value.condition)):
        if isinstance(value.then, BufferLoad) and not any(True for _ in loads_in(value.otherwise)):
            return value.then, value.condition
        if isinstance(value.otherwise, BufferLoad) and not any(True for _ in loads_in(value.then)):
            return value.otherwise, Not(value.condition)
    return None


def is_total(expr: Expr, beyond: Collection[Var]) -> bool:
    """Whether index arithmetic has a value, and reads no memory, also where some variables are past their ranges."""
    for node in walk(expr):
        if not isinstance(node, Var | IntImm | Cast | Binary | Compare | Logical | Not):
            return False
        if isinstance(node, Binary) and node.op in _PARTIAL and set(free_variables(node.rhs)) & set(beyond):
            return False
    return True


def all_hold(condition: Expr, loops: Sequence[tuple[Var, int]]) -> tuple[Expr, ...] | None:
    """What must hold for a condition to hold in all iterations of loops from 0 to their sizes; None where that is too much to write."""
    if not is_total(condition, [variable for variable, _ in loops]):
        return None
    used = set(free_variables(condition))
    asked = [(variable, size) for variable, size in loops if variable in used]
    total = 1
    for _, size in asked:
        total *= size
    if total > MOST:
        return None
    found = dict.fromkeys(_instances(condition, asked))
    found.pop(TRUE, None)
    return tuple(found)


def _instances(condition: Expr, loops: Sequence[tuple[Var, int]]) -> Iterator[Expr]:
    for values in product(*(range(size) for _, size in loops)):
        given: dict[Var, Expr] = {v: const(value, v.dtype) for (v, _), value in zip(loops, values, strict=True)}
        folded = rewrite_bottom_up(substitute(condition, given), _folded)
        assert isinstance(folded, Expr)
        yield folded


def _folded(node: Node) -> Node:
    if isinstance(node, Not):
        operand = node.operand
        if operand in (TRUE, FALSE):
            return FALSE if operand == TRUE else TRUE
        return operand.operand if isinstance(operand, Not) else node
    if isinstance(node, Logical):
        decides, other = (FALSE, TRUE) if node.op is LogicalOp.AND else (TRUE, FALSE)
        if decides in (node.lhs, node.rhs):
            return decides
        return node.rhs if node.lhs == other else node.lhs if node.rhs == other else node
    return fold_constants(node) if isinstance(node, Expr) else node
