"""One layout: its properties, and its text in every notation that has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layoutproof.ir.notations.notation import WrittenLayout
from layoutproof.verify.layouts.properties import LayoutProperties, properties_of
from layoutproof.verify.layouts.writing import Written, all_notations
from layoutproof.verify.maps.layout_text import total_map


@dataclass(frozen=True, slots=True)
class LayoutDescription:
    """A layout with what is known of it."""

    layout: WrittenLayout
    properties: LayoutProperties
    written: tuple[Written, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "text": self.layout.text,
            "notation": self.layout.notation.value,
            "properties": self.properties.to_dict(),
            "notations": {each.notation.value: each.text for each in self.written},
            "reasons": {each.notation.value: each.reason for each in self.written if each.reason is not None},
        }


def describe_layout(layout: WrittenLayout) -> LayoutDescription:
    """The properties and texts of a layout on its shape. Raises LayoutproofError as `check_map`."""
    index_map, shape = total_map(layout), layout.extents()
    return LayoutDescription(layout, properties_of(index_map, shape), all_notations(index_map, shape))
