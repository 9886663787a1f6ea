"""The codes of what stays unproved of an index map although an answer needs it, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

IMAGE_UNKNOWN = "LP201"

MEANINGS: Mapping[str, str] = {
    IMAGE_UNKNOWN: "Nobody could show that the map stays at or above 0, or never divides by zero, at every index of the shape.",
}
