"""CuTe's algebra of layouts, with the conditions under which its operations are what they are defined to be decided
instead of assumed: a result is proved equal to its definition, or an index shows why there is none.

Source: the definitions in the documentation of CuTe's layout algebra.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.cute import CuteLayout, IntTuple, colex_digits
from layoutproof.verify.layouts.conversions import to_cute


@dataclass(frozen=True, slots=True)
class Condition:
    """What has to hold for an operation; `why` shows where it does not."""

    text: str
    holds: bool
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"condition": self.text, "holds": self.holds, "why": self.why}


@dataclass(frozen=True, slots=True)
class AlgebraResult:
    """The layout of an operation, if all conditions hold; else None."""

    operation: str
    layout: CuteLayout | None
    conditions: tuple[Condition, ...]

    @property
    def is_defined(self) -> bool:
        """Whether there is a layout."""
        return self.layout is not None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        layout = None if self.layout is None else str(self.layout)
        return {
            "operation": self.operation,
            "layout": layout,
            "conditions": [condition.to_dict() for condition in self.conditions],
        }


def joined(*layouts: CuteLayout) -> CuteLayout:
    """Layouts as the modes of one. Raises ValueError for one with a swizzle or an offset."""
    if any(layout.swizzle is not None or layout.offset for layout in layouts):
        raise ValueError("a layout with a swizzle or an offset is no mode of another one")
    return CuteLayout(tuple(layout.shape for layout in layouts), tuple(layout.stride for layout in layouts))


def cosize(layout: CuteLayout) -> int:
    """One more than the largest offset, before any swizzle."""
    return 1 + layout.offset + sum((extent - 1) * stride for extent, stride in layout.flat if stride > 0)


def composition(first: CuteLayout, second: CuteLayout) -> AlgebraResult:
    """`A o B`: the layout on B's coordinates that gives A of B. It has B's modes, each in further digits if it must."""
    inside = _inside(first, second)
    if not inside.holds:
        return AlgebraResult("composition", None, (inside,))
    layout, found = _composed(first, second)
    return AlgebraResult("composition", layout, (inside, found))


def _inside(first: CuteLayout, second: CuteLayout) -> Condition:
    text = "B stays inside A's coordinates"
    lowest = second.offset + sum((extent - 1) * stride for extent, stride in second.flat if stride < 0)
    if lowest < 0:
        return Condition(text, False, f"B reaches {lowest}")
    largest = cosize(second) - 1
    if second.swizzle is not None:
        largest = max(second(index) for index in range(second.size))
    if largest >= first.size:
        return Condition(text, False, f"B reaches {largest}, A has {first.size} coordinates")
    return Condition(text, True)


def _composed(first: CuteLayout, second: CuteLayout) -> tuple[CuteLayout | None, Condition]:
    text = "A of B is a layout on B's modes"
    inner = second.map_on()
    digits = colex_digits(inner.outputs[0], [extent for extent, _ in first.flat])
    whole = IndexMap(inner.inputs, (first.offset_expr(digits) if digits else const(first.offset),))
    extents = [extent for extent, _ in second.flat]
    try:
        found = to_cute(whole, extents)
    except LayoutproofError as problem:
        return None, Condition(text, False, problem.diagnostics[0].message)
    modes = iter(found.modes if len(extents) > 1 else (CuteLayout(found.shape, found.stride),))
    shape, stride = _nested(second.shape, modes)
    return CuteLayout(shape, stride, found.swizzle, found.offset), Condition(text, True)


def _nested(form: IntTuple, modes: Iterator[CuteLayout]) -> tuple[IntTuple, IntTuple]:
    """The modes in the form of a shape."""
    if isinstance(form, int):
        mode = next(modes)
        return mode.shape, mode.stride
    pairs = [_nested(item, modes) for item in form]
    return tuple(shape for shape, _ in pairs), tuple(stride for _, stride in pairs)


def complement(layout: CuteLayout, size: int) -> AlgebraResult:
    """The layout of the offsets between those of a layout: with it, every offset below `size` is reached once.

    Its last mode goes on to the first multiple of what the others cover that is at least `size`.
    """
    modes = sorted((stride, extent) for extent, stride in layout.flat if extent > 1 and stride != 0)
    conditions: list[Condition] = []
    found: list[tuple[int, int]] = []
    covered = 1
    for stride, extent in modes:
        if stride < 0 or stride % covered:
            why = f"the stride {stride} is no multiple of {covered}, what the faster modes cover"
            why = f"the stride {stride} is negative" if stride < 0 else why
            conditions.append(Condition("each stride is a multiple of what the faster modes cover", False, why))
            return AlgebraResult("complement", None, tuple(conditions))
        if stride > covered:
            found.append((stride // covered, covered))
        covered = stride * extent
    conditions.append(Condition("each stride is a multiple of what the faster modes cover", True))
    if layout.swizzle is not None or layout.offset:
        conditions.append(Condition("the layout has no swizzle and no offset", False, str(layout)))
        return AlgebraResult("complement", None, tuple(conditions))
    rest = -(-size // covered)
    if rest > 1 or not found:
        found.append((rest, covered))
    return AlgebraResult("complement", _of_modes(found), tuple(conditions))


def _of_modes(modes: Sequence[tuple[int, int]]) -> CuteLayout:
    if len(modes) == 1:
        return CuteLayout(*modes[0])
    return CuteLayout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))


def logical_divide(layout: CuteLayout, tiler: CuteLayout) -> AlgebraResult:
    """`(tile, rest)`: A after (B, complement of B in A's size). Every coordinate of A is in one tile."""
    name = "logical_divide"
    rest = complement(tiler, layout.size)
    if rest.layout is None:
        return AlgebraResult(name, None, rest.conditions)
    both = tiler.size * rest.layout.size
    fits = both == layout.size
    text = "the tiles and their rest are as many as A's coordinates"
    counts = None if fits else f"{tiler.size} times {rest.layout.size} are not {layout.size}"
    conditions = (*rest.conditions, Condition(text, fits, counts))
    if not fits:
        return AlgebraResult(name, None, conditions)
    composed = composition(layout, joined(tiler, rest.layout))
    return AlgebraResult(name, composed.layout, (*conditions, *composed.conditions))


def zipped_divide(layout: CuteLayout, tilers: Sequence[CuteLayout]) -> AlgebraResult:
    """`((tiles), (rests))`: each top mode of A divided by its tiler; modes without one are rests."""
    name = "zipped_divide"
    modes = layout.modes
    conditions = [Condition("A has as many modes as there are tilers, or more", len(tilers) <= len(modes))]
    if not conditions[0].holds or layout.swizzle is not None or layout.offset:
        conditions.append(Condition("A has no swizzle and no offset", layout.swizzle is None and not layout.offset))
        return AlgebraResult(name, None, tuple(conditions))
    tiles: list[CuteLayout] = []
    rests: list[CuteLayout] = []
    for mode, tiler in zip(modes, tilers, strict=False):
        divided = logical_divide(mode, tiler)
        conditions += divided.conditions
        if divided.layout is None:
            return AlgebraResult(name, None, tuple(conditions))
        tile, rest = divided.layout.modes
        tiles.append(tile)
        rests.append(rest)
    rests += modes[len(tilers) :]
    return AlgebraResult(name, joined(_grouped(tiles), _grouped(rests)), tuple(conditions))


def _grouped(layouts: Sequence[CuteLayout]) -> CuteLayout:
    return layouts[0] if len(layouts) == 1 else joined(*layouts)


def logical_product(layout: CuteLayout, tiler: CuteLayout) -> AlgebraResult:
    """`(A, copies)`: B's pattern of copies of A, each at offsets that no other copy has."""
    name = "logical_product"
    rest = complement(layout, layout.size * cosize(tiler))
    if rest.layout is None:
        return AlgebraResult(name, None, rest.conditions)
    copies = composition(rest.layout, tiler)
    conditions = (*rest.conditions, *copies.conditions)
    if copies.layout is None:
        return AlgebraResult(name, None, conditions)
    return AlgebraResult(name, joined(layout, copies.layout), conditions)


def blocked_product(layout: CuteLayout, tiler: CuteLayout) -> AlgebraResult:
    """The product with each mode of A inside the mode of B that has its place: tiles lie as blocks."""
    return _by_mode("blocked_product", layout, tiler, block_first=True)


def raked_product(layout: CuteLayout, tiler: CuteLayout) -> AlgebraResult:
    """The product with each mode of B inside that of A: tiles are interleaved."""
    return _by_mode("raked_product", layout, tiler, block_first=False)


def _by_mode(name: str, layout: CuteLayout, tiler: CuteLayout, block_first: bool) -> AlgebraResult:
    product = logical_product(layout, tiler)
    ranks = Condition("A and B have as many modes", len(layout.modes) == len(tiler.modes))
    if product.layout is None or not ranks.holds:
        return AlgebraResult(name, None, (*product.conditions, ranks))
    first, second = product.layout.modes
    own = second.modes if isinstance(tiler.shape, tuple) else (second,)
    pairs = zip(first.modes, own, strict=True)
    modes = [joined(a, b) if block_first else joined(b, a) for a, b in pairs]
    return AlgebraResult(name, joined(*modes) if len(modes) > 1 else modes[0], (*product.conditions, ranks))
