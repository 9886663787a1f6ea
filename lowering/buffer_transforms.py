"""Layout transforms that stand in a function's attribute, applied in order; the attribute is removed, so a second time changes nothing.

Source: the seed `buffer-physical-layout`, ApplyBufferTransforms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import error
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import LAYOUT_TRANSFORMATIONS, PrimFunc
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.ir.stmt import Attributes
from layoutproof.lowering import codes
from layoutproof.lowering.find import all_buffers
from layoutproof.lowering.layout import relay
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.scopes import constants_of
from layoutproof.lowering.witness import rewrite_of


@dataclass(frozen=True)
class ApplyBufferTransforms(Pass):
    """Apply the attribute `buffer_layout_transformations` (data variable -> index maps, in order) and remove it."""

    primitive: ClassVar[str] = "apply_buffer_transforms"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The re-laid function. Raises LayoutproofError for a malformed attribute, and what `transform_layout` raises."""
        current, cells, interface = func, list[CellMap](), list[str]()
        for data, texts in stated_transforms(func).items():
            composed: IndexMap | None = None
            for text in texts:
                buffer = _only_view(current, data)
                index_map = parse_index_map(text, symbols=constants_of(current))
                current = relay(current, buffer, index_map).new
                composed = index_map if composed is None else index_map.compose(composed)
                if buffer in current.buffers or any(b.name == buffer.name for b in current.buffers):
                    interface.append(buffer.name)
            if composed is not None:
                cells.append(CellMap(data, data, composed))
        new = replace(current, attrs=current.attrs.without(LAYOUT_TRANSFORMATIONS))
        return rewrite_of(func, new, cells=tuple(cells), changes_interface=tuple(dict.fromkeys(interface)))


def stated_transforms(func: PrimFunc) -> dict[str, tuple[str, ...]]:
    """The attribute's entries: data variable -> texts of index maps. Raises LayoutproofError for anything else."""
    value = func.attrs.get(LAYOUT_TRANSFORMATIONS)
    if value is None:
        return {}
    wrong = error(
        codes.TRANSFORM_ATTRIBUTE,
        f"the attribute {LAYOUT_TRANSFORMATIONS} is a dictionary from data variables to lists of index maps as text",
        func.span,
    )
    if not isinstance(value, Attributes):
        raise wrong
    found: dict[str, tuple[str, ...]] = {}
    for data, texts in value.items():
        if not isinstance(texts, tuple):
            raise wrong
        maps = tuple(text for text in texts if isinstance(text, str))
        if len(maps) != len(texts):
            raise wrong
        found[data] = maps
    return found


def _only_view(func: PrimFunc, data: str) -> Buffer:
    views = [b for b in all_buffers(func) if b.data.name == data]
    if not views:
        known = ", ".join(dict.fromkeys(b.data.name for b in all_buffers(func)))
        raise error(
            codes.TRANSFORM_ATTRIBUTE,
            f"the attribute {LAYOUT_TRANSFORMATIONS} names {data!r}, which is no data variable; there are {known}",
            func.span,
        )
    return views[0]
