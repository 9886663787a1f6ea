"""Access patterns of a layout, read from text, counted, and the smallest change of the layout without conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Source, counted, error
from layoutproof.ir.expr import const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_shape
from layoutproof.ir.notations.notation import Notation, WrittenLayout, whole
from layoutproof.verify.layouts.conflict_free import ConflictFree, Pattern, find_conflict_free
from layoutproof.verify.layouts.conflicts import Coalescing, Conflicts, Memory, count_conflicts, count_transactions
from layoutproof.verify.layouts.conversions import to_cute, to_linear
from layoutproof.verify.layouts.linear_algebra import invert
from layoutproof.verify.layouts.offsets import concrete_extents, offset_map
from layoutproof.verify.maps.layout_text import read_layout, total_map


@dataclass(frozen=True, slots=True)
class AccessReport:
    """A layout, and for each access pattern what a memory with banks and one without do with it."""

    layout: WrittenLayout
    patterns: tuple[tuple[WrittenLayout, Conflicts, Coalescing], ...]
    found: ConflictFree | None

    @property
    def has_conflicts(self) -> bool:
        """Whether some phase takes more than one round."""
        return any(conflicts.conflicts for _, conflicts, _ in self.patterns)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "layout": self.layout.text,
            "index_map": index_map_text(self.layout.index_map),
            "accesses": [
                {"access": access.text, **conflicts.to_dict(), "transactions": coalescing.to_dict()}
                for access, conflicts, coalescing in self.patterns
            ],
            "conflict_free": None if self.found is None else self.found.to_dict(),
        }


def read_access(text: str, lanes: str | None, layout: WrittenLayout) -> WrittenLayout:
    """An access pattern whose last index is the lane. Raises LayoutproofError where it does not fit the layout."""
    given = None if lanes is None else parse_shape(lanes)
    access = read_layout(text, given, name="--access")
    if access.shape is None:
        message = "the access pattern does not say the extents of its iterations and lanes"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("--access", text)), help="--lanes 8,32 gives them")
    index_map, shape = total_map(access, "--access"), access.extents()
    if access.notation in (Notation.TRITON, Notation.MMA):
        order = [k for k, v in enumerate(index_map.inputs) if v.name != "lane"]
        order.append(next(k for k, v in enumerate(index_map.inputs) if v.name == "lane"))
        index_map = IndexMap(tuple(index_map.inputs[k] for k in order), index_map.outputs)
        shape = tuple(shape[k] for k in order)
    rank = len(layout.index_map.inputs)
    if index_map.rank not in (1, rank) or (index_map.rank != rank and layout.notation is not Notation.CUTE):
        gives = counted(index_map.rank, "index", "indices")
        message = f"the access pattern gives {gives}, the layout takes {rank}"
        raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("--access", text)))
    return WrittenLayout(access.notation, text, index_map, shape)


def in_memory(layout: WrittenLayout) -> WrittenLayout:
    """A layout from indices to offsets: of Triton's shared memory, which go the other way, the inverse.

    Raises LayoutproofError where there is none.
    """
    inputs = layout.index_map.inputs
    if layout.notation is not Notation.TRITON or not inputs or inputs[0].name != "offset":
        return layout
    linear = to_linear(layout.index_map, layout.extents())
    try:
        back = invert(linear)
    except ValueError as problem:
        raise error(codes.NOTATION_INCOMPLETE, str(problem), whole(Source("<layout>", layout.text))) from problem
    index_map = IndexMap(back.index_map().inputs, back.index_map().outputs[:1])
    return WrittenLayout(layout.notation, layout.text, index_map, tuple(const(extent) for extent in back.shape))


def judge_accesses(
    layout: WrittenLayout, accesses: Sequence[WrittenLayout], memory: Memory, segment: int = 32, row: int | None = 0
) -> AccessReport:
    """Count each pattern; with a `row`, or None for the layout's largest stride, find what has no conflicts.

    Raises LayoutproofError for a pattern that leaves the layout.
    """
    patterns = [_composed(layout, access) for access in accesses]
    counts = [
        (access, count_conflicts(p.offset, p.shape, memory), count_transactions(p.offset, p.shape, memory, segment))
        for access, p in zip(accesses, patterns, strict=True)
    ]
    found = None
    if row != 0:
        found = find_conflict_free(patterns, memory, _largest_stride(layout) if row is None else row)
    return AccessReport(layout, tuple(counts), found)


def _composed(layout: WrittenLayout, access: WrittenLayout) -> Pattern:
    index_map, shape = layout.index_map, layout.extents()
    if access.index_map.rank != len(index_map.inputs):
        # CuTe's layouts take one colexicographic index as well.
        size = 1
        for extent in concrete_extents(shape, "a layout that is accessed"):
            size *= extent
        layout = read_layout(layout.text, (const(size),), notation=Notation.CUTE)
        index_map, shape = layout.index_map, layout.extents()
    extents = concrete_extents(access.extents(), "an access pattern")
    _check_inside(access, extents, concrete_extents(shape, "a layout that is accessed"))
    return Pattern(offset_map(index_map, shape).compose(access.index_map), extents)


def _check_inside(access: WrittenLayout, extents: Sequence[int], shape: Sequence[int]) -> None:
    for axis, (values, extent) in enumerate(zip(access.index_map.output_values(extents), shape, strict=True)):
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= extent:
            message = f"axis {axis} of the access pattern goes from {low} to {high}, of {extent} indices"
            raise error(codes.NOTATION_INCOMPLETE, message, whole(Source("--access", access.text)))


def _largest_stride(layout: WrittenLayout) -> int:
    """The largest stride of the layout as CuTe has it: the pitch of its rows."""
    strides = [abs(stride) for extent, stride in to_cute(layout.index_map, layout.extents()).flat if extent > 1]
    return max(max(strides, default=1), 1)
