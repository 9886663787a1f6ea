"""A padding contract in a layout record against the value that the program's text has for it.

They are compared as they are printed: a text has one meaning, and a value one text. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, loads_in


def is_contract(contract: Contract, value: Expr, cell: Sequence[Var], symbols: Iterable[Var]) -> bool:
    """Whether a contract says that the cell whose index is `cell` holds `value`."""
    if isinstance(value, Undef) or contract.is_undef:
        return isinstance(value, Undef) and contract.is_undef
    if any(v not in {*cell, *symbols} for v in free_variables(value)):
        return False
    body = expr_text(contract.value)
    if not set(contract.inputs) & set(free_variables(contract.value)):
        return not set(cell) & set(free_variables(value)) and expr_text(value) == body
    names = [v.name for v in contract.inputs]
    if len(names) != len(cell) or len(set(names)) != len(names) or {v.name for v in symbols} & set(names):
        return False
    return expr_text(substitute(value, {v: Var(name, v.dtype) for v, name in zip(cell, names, strict=True)})) == body


def new_steps(old: LayoutRecord | None, new: LayoutRecord | None) -> tuple[LayoutStep, ...]:
    """The steps by which a record grew."""
    if new is None:
        return ()
    return new.steps[len(old.steps) if old is not None else 0 :]


def loads_of(value: Expr) -> list[BufferLoad]:
    """What a contract's value loads."""
    return list(loads_in(value))
