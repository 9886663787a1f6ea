"""The ranges of everything that may be spoken of at a scene, from the bounds of its loops. Part of the trust base."""

from __future__ import annotations

from layoutproof.ir.expr import Var
from layoutproof.ir.interval import Interval, Ranges, interval_of, of_type
from layoutproof.verify.instances import Scene


def scene_ranges(scene: Scene, symbols: Ranges) -> dict[Var, Interval]:
    """Symbols as given, loops by their bounds (guards are not looked at), unknowns by their type."""
    ranges = dict(symbols)
    for unknown in scene.unknowns:
        ranges[unknown.var] = of_type(unknown.var.dtype)
    for dim in scene.dims:
        start, extent = interval_of(dim.start, ranges), interval_of(dim.extent, ranges)
        # A loop that never runs has no values; any interval will do.
        ranges[dim.var] = Interval(start.low, max(start.low, start.high + extent.high - 1))
    return ranges
