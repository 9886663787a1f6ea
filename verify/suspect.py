"""Cells at which a proof got stuck: where a run is to look first. Nothing rests on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Suspect:
    """A cell of a parameter, by the name of its data variable and its index; of the new program's array, if `is_new`."""

    data: str
    index: tuple[int, ...]
    is_new: bool
