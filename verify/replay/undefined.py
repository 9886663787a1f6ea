"""With which values undefined cells run, and when runs that agree show that a value is no matter of choice."""

from __future__ import annotations

from layoutproof.ir.assumed import assumed_undef, is_identity
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Binary, BinaryOp, Compare, Expr, Logical
from layoutproof.ir.interp import Fill, Filling, all_fillings
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import children, walk


def fillings_of(func: PrimFunc) -> tuple[Filling, ...]:
    """The fillings that a program runs with: one is enough where nothing is undefined."""
    declared = any(step.padding is Cell.PAD_UNDEF for record in layout_records(func).values() for step in record.steps)
    return all_fillings() if declared or any(isinstance(node, Undef) for node in walk(func.body)) else (Filling(),)


def more_fillings(func: PrimFunc) -> tuple[Filling, ...]:
    """Further random fillings for a program whose undefined values are to be seen cancelling out."""
    return tuple(Filling(Fill.RANDOM, seed) for seed in range(2, 5)) if len(fillings_of(func)) > 1 and is_only_arithmetic(func) else ()


def is_only_arithmetic(func: PrimFunc) -> bool:
    """Whether data only goes through sums, differences and products: then values that agree for several random numbers agree for all."""
    for node in walk(func.body):
        plain = isinstance(node, Binary) and node.op in (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL)
        if isinstance(node, Expr) and not plain and not isinstance(node, BufferLoad | Assume | Logical):
            below = (part for child in children(node) for part in walk(child))
            if any(isinstance(part, BufferLoad | Undef) for part in below) and not _is_contract(node):
                return False
    return True


def _is_contract(node: Expr) -> bool:
    """Whether a comparison is one that says what a cell holds."""
    return isinstance(node, Compare) and (assumed_undef(node) is not None or is_identity(node))
