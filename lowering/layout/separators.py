"""Axis separators: which axes of a buffer become one physical axis.

They are in the buffer itself and, by data variable, in the function's attribute `buffer_axis_separators` (seed
`buffer-physical-layout`), which takes precedence: the index of the last axis of each group but the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer, axis_groups, check_separators
from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import IntImm
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import AXIS_SEPARATORS, PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Attributes, AttrValue
from layoutproof.ir.visit import rewrite_bottom_up
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import ArgumentKind, Pass, option
from layoutproof.lowering.passes.find import aliases_of, find_buffer
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class SetAxisSeparators(Pass):
    """State the axis groups of a buffer: the index of the last axis of each group but the last."""

    primitive: ClassVar[str] = "set_axis_separators"
    buffer: str = field(metadata=option(ArgumentKind.NAME))
    separators: tuple[int, ...] = field(metadata=option(ArgumentKind.INTEGERS))

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function with the separators. Raises LayoutproofError for aliases, and for positions out of range or not
        increasing.
        """
        buffer = find_buffer(func, self.buffer)
        try:
            check_separators(self.separators, buffer.rank)
        except ValueError as problem:
            raise error(codes.SEPARATORS, f"{self.buffer}: {problem}", buffer.span) from problem
        others = aliases_of(func, buffer)
        if others:
            names = ", ".join(b.name for b in others)
            raise error(
                codes.ALIASES, f"{buffer.name} has aliases, which would keep other axis groups: {names}", buffer.span
            )
        return rewrite_of(func, with_separators(func, buffer, self.separators))


def with_separators(func: PrimFunc, buffer: Buffer, separators: tuple[int, ...]) -> PrimFunc:
    """The function with the separators of one buffer set, in the buffer and in the attribute."""
    changed = replace(buffer, axis_separators=separators)

    def visit(node: Node) -> Node:
        return changed if node == buffer else node

    mapped = tuple((param, changed if b == buffer else b) for param, b in func.buffer_map)
    result = replace(func, buffer_map=mapped, body=rewrite_bottom_up(func.body, visit))
    return with_attribute(result, {buffer.data.name: separators})


def with_attribute(func: PrimFunc, entries: dict[str, tuple[int, ...]]) -> PrimFunc:
    """The function with entries of `buffer_axis_separators` set; an attribute without entries is left out."""
    table = {**_table(func), **entries}
    if not table:
        return func
    return replace(func, attrs=func.attrs.with_value(AXIS_SEPARATORS, Attributes(table)))


def _table(func: PrimFunc) -> dict[str, AttrValue]:
    value = func.attrs.get(AXIS_SEPARATORS)
    if value is None:
        return {}
    if not isinstance(value, Attributes):
        raise error(
            codes.SEPARATOR_ATTRIBUTE,
            f"the attribute {AXIS_SEPARATORS} is a dictionary from data variables to lists of integers",
            func.span,
        )
    return dict(value.items())


def stated_separators(func: PrimFunc) -> dict[str, tuple[int, ...]]:
    """The attribute's entries by data variable. Raises LayoutproofError if one is not a list of integers."""
    found: dict[str, tuple[int, ...]] = {}
    for name, value in _table(func).items():
        items = [v.value if isinstance(v, IntImm) else v for v in value] if isinstance(value, tuple) else [None]
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in items):
            raise error(
                codes.SEPARATOR_ATTRIBUTE,
                f"the axis separators of {name} in the attribute {AXIS_SEPARATORS} are not a list of integers",
                func.span,
            )
        found[name] = tuple(int(v) for v in items if isinstance(v, int))
    return found


def groups_of(func: PrimFunc, buffer: Buffer) -> tuple[tuple[int, ...], ...]:
    """The axes of each group of a buffer. Raises LayoutproofError if the attribute's separators do not fit its rank."""
    separators = stated_separators(func).get(buffer.data.name, buffer.axis_separators)
    try:
        check_separators(separators, buffer.rank)
    except ValueError as problem:
        raise error(codes.SEPARATORS, f"{buffer.name}: {problem}", buffer.span) from problem
    return axis_groups(buffer.rank, separators)
