"""The smallest swizzle, and the smallest padding, under which access patterns have no bank conflicts: every smaller
one of the family is counted exactly and has some, so the smallest is proved to be it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutproof.ir.expr import Expr
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.notations.cute import Swizzle
from layoutproof.verify.layouts.conflicts import Memory, offsets_of, phases_of, rank_over_bits, words_of_banks
from layoutproof.verify.maps.bits import read_linear

if TYPE_CHECKING:
    from layoutproof.verify.layouts.conflicts import Ints

MAX_PADDING = 4096


@dataclass(frozen=True, slots=True)
class Pattern:
    """Accesses of a layout without swizzle: the offset of each (iteration..., lane), on its shape."""

    offset: IndexMap
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConflictFree:
    """What a search found. `swizzle` is None where no swizzle of the family removes all conflicts, one of 0 bits where
    there are none to remove.

    `padding` elements after every `row` elements do as well; None where up to a whole round of the banks none does.
    """

    swizzle: Swizzle | None
    swizzles: int
    padding: int | None
    row: int
    paddings: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        swizzle = self.swizzle
        return {
            "swizzle": None if swizzle is None else str(swizzle),
            "swizzles_tried": self.swizzles,
            "padding": None if self.padding is None else {"elements": self.padding, "after": self.row},
            "paddings_tried": self.paddings,
        }


def find_conflict_free(patterns: Sequence[Pattern], memory: Memory, row: int) -> ConflictFree:
    """Search both families: swizzles of whole vectors, inside the bits of the largest offset, the fewest bits first;
    and padding by whole vectors after every `row` elements, the least first.

    Raises LayoutproofError as `count_conflicts`.
    """
    checks = [_Check.of(pattern, memory) for pattern in patterns]
    top = max(check.bits for check in checks)
    swizzle, tried = None, 0
    for candidate in _family(top, memory.vector.bit_length() - 1):
        tried += 1
        if all(check.is_free(candidate) for check in checks):
            swizzle = candidate
            break
    padding, padded = _least_padding(patterns, memory, row)
    return ConflictFree(swizzle, tried, padding, row, padded)


def _family(bits: int, least_base: int) -> Iterator[Swizzle]:
    """No swizzle, then those of whole vectors inside so many bits, the fewest bits first, then by distance and base."""
    yield Swizzle(0, least_base, max(1, bits - least_base))
    for count in range(1, (bits - least_base) // 2 + 1):
        for shift in range(count, bits - least_base - count + 1):
            for base in range(least_base, bits - count - shift + 1):
                yield Swizzle(count, base, shift)


@dataclass(frozen=True, slots=True)
class _Check:
    """One pattern, ready to be counted under many swizzles: the images of a phase's bits, or all phases."""

    memory: Memory
    bits: int
    images: tuple[int, ...] | None
    phases: Ints | None

    @staticmethod
    def of(pattern: Pattern, memory: Memory) -> _Check:
        names = [v.name for v in pattern.offset.inputs]
        linear = read_linear(pattern.offset.outputs, names, pattern.shape)
        if linear is not None and not any(mask >> linear.input_bits & 1 for mask in linear.columns[0]):
            columns = linear.columns[0]
            images = [sum(1 << k for k, m in enumerate(columns) if m >> bit & 1) for bit in range(linear.input_bits)]
            lane = pattern.shape[-1].bit_length() - 1
            first = linear.input_bits - lane
            used = images[first : first + min(lane, memory.lanes.bit_length() - 1)]
            if all(image % memory.vector == 0 for image in images):
                return _Check(memory, len(columns), tuple(used), None)
        rows = offsets_of(pattern.offset, pattern.shape)
        return _Check(memory, int(rows.max(initial=0)).bit_length(), None, phases_of(rows, memory))

    def is_free(self, swizzle: Swizzle) -> bool:
        """Whether no phase has a conflict."""
        if self.images is not None:
            return self._degree(swizzle) == 1
        assert self.phases is not None
        read = self.phases & swizzle.source_mask
        moved = self.phases ^ (read >> swizzle.shift)
        return int(words_of_banks(moved, self.memory).max()) == 1

    def _degree(self, swizzle: Swizzle) -> int:
        assert self.images is not None
        memory = self.memory
        shift, word = memory.element.bit_length() - 1, memory.width.bit_length() - 1
        inner = [1 << bit for bit in range((memory.element * memory.vector).bit_length() - 1)]
        words = [value >> word for value in (*(swizzle(image) << shift for image in self.images), *inner)]
        banks = [value & (memory.banks - 1) for value in words]
        return 1 << (rank_over_bits(words) - rank_over_bits(banks))


def _least_padding(patterns: Sequence[Pattern], memory: Memory, row: int) -> tuple[int | None, int]:
    """The least padding that is conflict-free, up to a whole round of the banks, after which the banks repeat."""
    rows = [offsets_of(pattern.offset, pattern.shape) for pattern in patterns]
    phases = [phases_of(each, memory) for each in rows]
    most = min(MAX_PADDING, max(1, memory.banks * memory.width // memory.element))
    tried = 0
    for padding in range(0, most, memory.vector):
        tried += 1
        if all(int(words_of_banks(each + padding * (each // row), memory).max()) == 1 for each in phases):
            return padding, tried
    return None, tried


def padded(offset: Expr, padding: int, row: int) -> Expr:
    """The offset with `padding` elements after every `row` elements."""
    return offset + (offset // row) * padding
