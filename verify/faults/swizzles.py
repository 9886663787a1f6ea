"""Coordinates of cells with swizzles undone: integer sets are slow with `^`, and need not be asked about a mask that
all accesses of a memory have in common. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Var
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables, map_children, substitute, walk

Cell = tuple[Expr, ...]

# What a mask may be made of: the same for all accesses, whatever is in memory.
_MASKS = (Var, IntImm, Cast, Binary)


def unswizzled(cells: Sequence[Cell], symbols: frozenset[Var]) -> Sequence[Cell]:
    """Cells of one memory, one for each access, with `x` for a coordinate `x ^ f(others)` where all have that with one
    `f`. Two of them are equal exactly where they were: `x` follows from the coordinate and the others.
    """
    for axis in range(len(cells[0]) if cells else 0):
        cells = _along(cells, axis, symbols)
    return cells


def has_swizzle(index: Expr) -> bool:
    """Whether an index has `^`."""
    return any(isinstance(node, Binary) and node.op is BinaryOp.BITXOR for node in walk(index))


def _along(cells: Sequence[Cell], axis: int, symbols: frozenset[Var]) -> Sequence[Cell]:
    first = cells[0]
    if any(c.dtype != d.dtype for cell in cells for c, d in zip(cell, first, strict=True)):
        return cells
    names = [Var(f"coordinate{k}'", c.dtype) for k, c in enumerate(first)]
    others = {first[k]: names[k] for k in range(len(names)) if k != axis}
    for _, mask in _operands(first[axis]):
        rule = _replaced(mask, others)
        named = set(free_variables(rule)) <= symbols | set(others.values())
        if not named or not all(isinstance(node, _MASKS) for node in walk(rule)):
            continue
        parts = [_without_mask(cell, axis, rule, names) for cell in cells]
        found = [
            (*cell[:axis], part, *cell[axis + 1 :]) for cell, part in zip(cells, parts, strict=True) if part is not None
        ]
        if len(found) == len(cells):
            return found
    return cells


def _operands(coordinate: Expr) -> list[tuple[Expr, Expr]]:
    """A coordinate as one operand of `^` and the other, in both ways."""
    match coordinate:
        case Binary(op=BinaryOp.BITXOR, lhs=lhs, rhs=rhs):
            return [(lhs, rhs), (rhs, lhs)]
        case _:
            return []


def _without_mask(cell: Cell, axis: int, rule: Expr, names: Sequence[Var]) -> Expr | None:
    mask = substitute(rule, dict(zip(names, cell, strict=True)))
    return next((x for x, other in _operands(cell[axis]) if other == mask), None)


def _replaced(expr: Expr, by_value: Mapping[Expr, Var]) -> Expr:
    def visit(node: Node) -> Node:
        return by_value[node] if isinstance(node, Expr) and node in by_value else map_children(node, visit)

    found = visit(expr)
    assert isinstance(found, Expr)
    return found
