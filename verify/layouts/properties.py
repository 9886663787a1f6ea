"""Properties of one layout that code generators ask for: injective, bijective, broadcast axes, contiguous runs,
alignment and the widest vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr, IntImm, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.visit import substitute
from layoutproof.verify.algebra.enumeration import MAX_POINTS
from layoutproof.verify.layouts.conversions import Strides, to_strides
from layoutproof.verify.layouts.offsets import offset_map
from layoutproof.verify.maps.equal_maps import prove_equal_maps
from layoutproof.verify.maps.map_facts import report_on
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status

if TYPE_CHECKING:
    import numpy as np
else:
    from layoutproof.ir.late import np


@dataclass(frozen=True, slots=True)
class Contiguity:
    """For each axis, so many consecutive indices have consecutive offsets, the last run perhaps cut off by the extent,
    and each run begins at a multiple of its alignment.
    """

    runs: tuple[int, ...]
    alignments: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def vector(self) -> tuple[int, int]:
        """The widest vector of a power of two of elements: the axis it lies along, its width."""
        all_of = zip(self.runs, self.alignments, self.extents, strict=True)
        widths = [_power_in(gcd(*parts)) for parts in all_of]
        if not widths:
            return 0, 1
        best = max(range(len(widths)), key=lambda axis: (widths[axis], axis))
        return best, widths[best]


@dataclass(frozen=True, slots=True)
class LayoutProperties:
    """`contiguity` is None where it is not known, for the reason given."""

    report: MapReport
    broadcast: tuple[int, ...]
    contiguity: Contiguity | None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; the keys of a map's report are those of `map`."""
        known = self.contiguity
        vector = None if known is None else {"axis": known.vector[0], "elements": known.vector[1]}
        return {
            **self.report.to_dict(),
            "broadcast": list(self.broadcast),
            "contiguous": None if known is None else list(known.runs),
            "aligned": None if known is None else list(known.alignments),
            "vector": vector,
            "reason": self.reason,
        }


def properties_of(index_map: IndexMap, shape: Sequence[Expr]) -> LayoutProperties:
    """The properties of a map on a shape. Raises LayoutproofError as `check_map`."""
    report = report_on(index_map, shape)
    found, reason = _contiguity(index_map, shape)
    return LayoutProperties(report, broadcast_axes(index_map, shape), found, reason)


def broadcast_axes(index_map: IndexMap, shape: Sequence[Expr]) -> tuple[int, ...]:
    """The axes of more than one index that the cell is proved not to depend on."""
    found: list[int] = []
    for axis, (variable, extent) in enumerate(zip(index_map.inputs, shape, strict=True)):
        if isinstance(extent, IntImm) and extent.value == 1:
            continue
        fixed = IndexMap(
            index_map.inputs, tuple(substitute(o, {variable: const(0, variable.dtype)}) for o in index_map.outputs)
        )
        if prove_equal_maps(index_map, fixed, shape).status is Status.PROVED:
            found.append(axis)
    return tuple(found)


def _contiguity(index_map: IndexMap, shape: Sequence[Expr]) -> tuple[Contiguity | None, str | None]:
    try:
        offset = offset_map(index_map, shape)
    except LayoutproofError as problem:
        return None, problem.diagnostics[0].message
    numbers = [extent.value for extent in shape if isinstance(extent, IntImm)]
    if len(numbers) == len(shape) and prod(numbers) <= MAX_POINTS:
        return contiguity_by_points(offset, numbers), None
    try:
        return _contiguity_of_strides(to_strides(offset, shape)), None
    except LayoutproofError:
        size = "symbols" if len(numbers) != len(shape) else f"{prod(numbers)} indices"
        return None, f"contiguous runs of a shape with {size} are known for strided layouts only"


def contiguity_by_points(offset: IndexMap, shape: Sequence[int]) -> Contiguity:
    """Runs and alignments from all offsets: a run may break only before a multiple of its length."""
    values = np.broadcast_to(offset.output_values(shape)[0], tuple(shape))
    runs: list[int] = []
    starts: list[int] = []
    for axis, extent in enumerate(shape):
        steps = np.diff(values, axis=axis) == 1
        broken = np.flatnonzero(~steps.all(axis=tuple(k for k in range(len(shape)) if k != axis))) + 1
        run = gcd(*(int(place) for place in broken)) if len(broken) else extent
        runs.append(run)
        first = values.take(range(0, extent, run), axis=axis)
        starts.append(int(np.gcd.reduce(first, axis=None)))
    return Contiguity(tuple(runs), tuple(starts), tuple(shape))


def _contiguity_of_strides(strides: Strides) -> Contiguity | None:
    """The same of strides; a symbol is a multiple of 1."""
    runs: list[int] = []
    starts: list[int] = []
    steps = [step if isinstance(step, int) else 1 for step in strides.strides]
    offset = strides.offset if isinstance(strides.offset, int) else 1
    for axis, extent in enumerate(strides.shape):
        # A symbolic extent is a run of its own; what is known of its length is that 1 divides it.
        known = extent if isinstance(extent, int) else 1
        runs.append(known if strides.strides[axis] == 1 else 1)
        sizes = enumerate(zip(steps, strides.shape, strict=True))
        others = [step for k, (step, size) in sizes if k != axis and size != 1]
        own = [] if strides.strides[axis] == 1 and isinstance(extent, int) else [steps[axis]]
        starts.append(gcd(offset, *others, *own))
    return Contiguity(tuple(runs), tuple(starts), tuple(e if isinstance(e, int) else 1 for e in strides.shape))


def _power_in(number: int) -> int:
    """The largest power of two that divides a number; of 0, which all divide, one past every run."""
    return number & -number if number else 1
