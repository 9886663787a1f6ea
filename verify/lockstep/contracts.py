"""The text of a padding contract in a layout record against the value that the program's text has for it.

Texts are compared as they are printed: a text has one meaning, and a value one text. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr, Var
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.layout_record import UNDEF_CONTRACT, LayoutRecord, LayoutStep
from layoutproof.ir.subst import substitute
from layoutproof.ir.text import expr_text
from layoutproof.ir.visit import free_variables, loads_in

_LAMBDA = "lambda "


def is_contract(text: str, value: Expr, cell: Sequence[Var], symbols: Iterable[Var]) -> bool:
    """Whether a contract's text says that the cell whose index is `cell` holds `value`."""
    if isinstance(value, Undef):
        return text == UNDEF_CONTRACT
    if any(v not in {*cell, *symbols} for v in free_variables(value)):
        return False
    names, body = _parts(text)
    if not names:
        return not set(cell) & set(free_variables(value)) and expr_text(value) == body
    if len(names) != len(cell) or len(set(names)) != len(names) or {v.name for v in symbols} & set(names):
        return False
    return expr_text(substitute(value, {v: Var(name, v.dtype) for v, name in zip(cell, names, strict=True)})) == body


def _parts(text: str) -> tuple[list[str], str]:
    if not text.startswith(_LAMBDA):
        return [], text
    inputs, _, body = text.removeprefix(_LAMBDA).partition(":")
    return [name.strip() for name in inputs.split(",")], body.strip()


def new_steps(old: LayoutRecord | None, new: LayoutRecord | None) -> tuple[LayoutStep, ...]:
    """The steps by which a record grew."""
    if new is None:
        return ()
    return new.steps[len(old.steps) if old is not None else 0 :]


def loads_of(value: Expr) -> list[BufferLoad]:
    """What a contract's value loads."""
    return list(loads_in(value))
