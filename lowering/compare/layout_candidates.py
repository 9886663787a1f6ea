"""Layouts that two shapes allow, the simplest first.

The extents of a logical shape are split into digits and dealt to the physical axes: kept, reordered, blocked by the
factors of the physical shape, padded if these do not divide, merged if neighbours became one axis. Nothing rests on a
guess. Symbolic extents are compared on a few values of their symbols.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import BufferStore
from layoutproof.ir.visit import free_variables, walk

LIMIT = 48
"""So many layouts of one buffer are proposed, unless told otherwise."""
# Ways to deal digits to axes that are looked at; how many of those that merge axes, where there are others.
_DEALS, _MERGING = 1_500, 300
# Values of the symbols, tried one after the other: extents that round up show on odd ones, those that need a multiple
# only on the second.
_ODD = (61, 127, 43, 89, 101, 71, 113, 53)
_MULTIPLES = (7_680, 3_840, 11_520, 15_360, 19_200, 26_880, 30_720, 42_240)
_SAMPLES = 3

# What makes a layout less likely, in points.
_SWAPPED, _INNER_FIRST, _BLOCK, _MERGED, _LARGER, _SWIZZLED = 1, 10, 2, 20, 30, 50

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout, and how unlikely it is: a number that only compares."""

    index_map: IndexMap
    cost: int


@dataclass(frozen=True, slots=True)
class _Digit:
    """One physical axis: `(source // below) % size`, without the remainder for the outermost digit of a source."""

    source: int
    below: int
    size: int | None


_Runs = tuple[tuple[int, ...], ...]
_Dealt = tuple[_Runs, tuple[_Digit | None, ...]]


def candidates(names: Sequence[Var], shape: Sequence[Expr], box: Sequence[Expr], limit: int = LIMIT) -> list[Candidate]:
    """Layouts from the logical `shape`, whose indices have these names, into the physical `box`: at most `limit`, the
    likeliest first.

    With symbols, layouts whose extents agree for all values come first; if there are none, those that assume multiples.
    """
    symbols = list(dict.fromkeys(v for extent in (*shape, *box) for v in free_variables(extent)))
    for values in (_ODD, _MULTIPLES):
        samples = [
            {v.name: values[(k + 3 * j) % len(values)] for k, v in enumerate(symbols)}
            for j in range(_SAMPLES if symbols else 1)
        ]
        logical, physical = _sizes(shape, samples), _sizes(box, samples)
        if logical is None or physical is None:
            continue
        found = _Dealing(tuple(names), tuple(shape), tuple(box), logical, physical).best(limit)
        if found:
            return found
    return []


def _sizes(extents: Sequence[Expr], samples: Sequence[Mapping[str, int]]) -> list[Sizes] | None:
    """Each extent at each sample; None if one has no value or no cells."""
    try:
        found = [tuple(int(evaluate(extent, sample)) for sample in samples) for extent in extents]
    except Trap:
        return None
    return found if all(value > 0 for sizes in found for value in sizes) else None


@dataclass(slots=True)
class _Dealing:
    """One question: `logical` and `physical` are the extents at each sample."""

    names: tuple[Var, ...]
    shape: tuple[Expr, ...]
    box: tuple[Expr, ...]
    logical: list[Sizes]
    physical: list[Sizes]
    left: int = _DEALS

    def best(self, limit: int) -> list[Candidate]:
        """All that are found, sorted, each once."""
        found: dict[_Dealt, int] = {}
        long = [axis for axis, sizes in enumerate(self.logical) if max(sizes) > 1]
        for runs in _runs(long):
            if found:
                self.left = min(self.left, _MERGING)
            for dealt, cost in self._of_runs(runs):
                found[dealt] = min(cost, found.get(dealt, cost))
            if self.left == 0:
                break
        order = sorted(found.items(), key=lambda item: item[1])
        kept = [Candidate(IndexMap(self.names, self._outputs(dealt)), cost) for dealt, cost in order[:limit]]
        return kept + [c for first in kept[:2] for c in self._swizzled(first)][: max(0, limit - len(kept))]

    def _of_runs(self, runs: _Runs) -> Iterator[tuple[_Dealt, int]]:
        """The layouts whose sources are these runs of neighbouring axes, the axes of extent 1 left out."""
        merged = sum(len(run) - 1 for run in runs) * _MERGED
        samples = range(len(self.logical[0])) if self.logical else range(1)
        totals = [tuple(_product(self.logical[axis][j] for axis in run) for j in samples) for run in runs]
        for deal in self._deals(0, [[] for _ in runs], totals):
            self.left -= 1
            for digits, cost in self._ordered(deal, totals):
                if all(self._cuts(run, digits, source) for source, run in enumerate(runs)):
                    yield (runs, tuple(digits)), cost + merged
            if self.left == 0:
                return

    def _outputs(self, dealt: _Dealt) -> tuple[Expr, ...]:
        """The expression of each physical axis; axes of extent 1 take logical axes of extent 1 in order, then 0."""
        runs, digits = dealt
        sources = [self._merged(run) for run in runs]
        plain = self._ones()
        return tuple(
            one if digit is None else _expression(sources[digit.source], digit)
            for one, digit in zip(plain, digits, strict=True)
        )

    def _ones(self) -> list[Expr]:
        """The expressions of physical axes without a digit."""
        ones = (name for name, sizes in zip(self.names, self.logical, strict=True) if max(sizes) == 1)
        return [next(ones, const(0)) if max(sizes) == 1 else const(0) for sizes in self.physical]

    def _cuts(self, run: Sequence[int], digits: Sequence[_Digit | None], source: int) -> bool:
        """Whether merged axes are not just split again where they were joined."""
        below = {digit.below for digit in digits if digit is not None and digit.source == source}
        suffix = 1
        for axis in reversed(run[1:]):
            suffix *= self.logical[axis][0]
            if suffix in below:
                return False
        return True

    def _merged(self, run: Sequence[int]) -> Expr:
        """The position of an index in a run of axes, row-major."""
        place: Expr = self.names[run[0]]
        for axis in run[1:]:
            place = place * self.shape[axis] + self.names[axis]
        return place

    def _deals(self, axis: int, groups: list[list[int]], totals: Sequence[Sizes]) -> Iterator[list[list[int]]]:
        """Which physical axes hold digits of which source; those of extent 1 hold none."""
        if axis == len(self.box):
            if all(groups):
                yield [list(group) for group in groups]
            return
        if max(self.physical[axis]) == 1:
            yield from self._deals(axis + 1, groups, totals)
            return
        for source, group in enumerate(groups):
            if group and all(self._inside(group, j) >= total for j, total in enumerate(totals[source])):
                continue
            group.append(axis)
            yield from self._deals(axis + 1, groups, totals)
            group.pop()

    def _inside(self, group: Sequence[int], sample: int) -> int:
        return _product(self.physical[axis][sample] for axis in group)

    def _ordered(
        self, deal: Sequence[Sequence[int]], totals: Sequence[Sizes]
    ) -> Iterator[tuple[list[_Digit | None], int]]:
        """The digits of a deal in each order that the extents allow, with their costs."""
        options = [list(self._orders(source, group, totals[source])) for source, group in enumerate(deal)]
        for choice in product(*options):
            digits: list[_Digit | None] = [None] * len(self.box)
            cost = 0
            for found, more in choice:
                cost += more
                for axis, digit in found:
                    digits[axis] = digit
            heads = [found[0][0] for found, _ in choice]
            tails = [found[-1][0] for found, _ in choice if len(found) > 1]
            yield digits, cost + _SWAPPED * (_inversions(heads) + _inversions(tails))

    def _orders(
        self, source: int, group: Sequence[int], total: Sizes
    ) -> Iterator[tuple[list[tuple[int, _Digit]], int]]:
        """The digits of one source, the outermost first."""
        for order in permutations(group):
            inner = [self.box[axis] for axis in order[1:]]
            sizes = [extent.value for extent in inner if isinstance(extent, IntImm)]
            if len(sizes) != len(inner):
                continue
            below = _product(sizes)
            needed = tuple(-(-size // below) for size in total)
            held = self.physical[order[0]]
            if any(have < need for have, need in zip(held, needed, strict=True)) or (
                len(order) > 1 and max(needed) == 1
            ):
                continue
            cost = (
                _LARGER * (held != needed)
                + _BLOCK * (len(order) - 1)
                + _INNER_FIRST * sum(b < a for a, b in pairwise(order))
            )
            digits = [(order[0], _Digit(source, below, None))]
            for axis, size in zip(order[1:], sizes, strict=True):
                below //= size
                digits.append((axis, _Digit(source, below, size)))
            yield digits, cost

    def _swizzled(self, plain: Candidate) -> Iterator[Candidate]:
        """A layout with the places on one axis permuted by another axis."""
        outputs = plain.index_map.outputs
        for axis, extent in enumerate(self.box):
            if not isinstance(extent, IntImm) or extent.value < 2 or extent.value & (extent.value - 1):
                continue
            for other, output in enumerate(outputs):
                size = max(self.physical[other])
                if other == axis or size == 1:
                    continue
                by = output if isinstance(self.box[other], IntImm) and size <= extent.value else output % extent.value
                changed = (*outputs[:axis], outputs[axis] ^ by, *outputs[axis + 1 :])
                yield Candidate(IndexMap(self.names, changed), plain.cost + _SWIZZLED)


def _expression(source: Expr, digit: _Digit) -> Expr:
    whole = source if digit.below == 1 else source // digit.below
    return whole if digit.size is None else whole % digit.size


def _runs(axes: Sequence[int]) -> Iterator[_Runs]:
    """Axes in order, cut into runs in every way, all apart first."""
    for cuts in sorted(product((True, False), repeat=max(len(axes) - 1, 0)), key=lambda cuts: cuts.count(False)):
        runs: list[tuple[int, ...]] = [(axis,) for axis in axes[:1]]
        for axis, cut in zip(axes[1:], cuts, strict=True):
            if cut:
                runs.append((axis,))
            else:
                runs[-1] = (*runs[-1], axis)
        yield tuple(runs)


def _inversions(order: Sequence[int]) -> int:
    return sum(a > b for k, a in enumerate(order) for b in order[k + 1 :])


def _product(numbers: Iterator[int] | Sequence[int]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def index_names(function: PrimFunc, buffer: Buffer) -> tuple[Var, ...]:
    """Names for the indices of a buffer, none of them a symbol's: variables that are an index by themselves, else `i0`,
    `i1`, ...
    """
    taken = {
        variable.name
        for parameter in function.buffers
        for extent in parameter.shape
        for variable in free_variables(extent)
    }
    taken |= {variable.name for variable in function.params}
    plain = [f"i{axis}" for axis in range(buffer.rank)]
    names = next(
        (names for indices in _accesses(function, buffer) if (names := _plain_names(indices, taken)) is not None), plain
    )
    fresh = [name if name not in taken else f"{name}_" for name in names]
    return tuple(Var(name, extent.dtype) for name, extent in zip(fresh, buffer.shape, strict=True))


def _accesses(function: PrimFunc, buffer: Buffer) -> Iterator[tuple[Expr, ...]]:
    for node in walk(function.body):
        if (
            isinstance(node, BufferLoad | BufferStore)
            and node.buffer.data == buffer.data
            and len(node.indices) == buffer.rank
        ):
            yield node.indices


def _plain_names(indices: tuple[Expr, ...], taken: set[str]) -> list[str] | None:
    names = [index.name for index in indices if isinstance(index, Var)]
    if len(names) != len(indices) or not names:
        return None
    for prefix in ("v_", "v"):
        if all(name.startswith(prefix) and name.removeprefix(prefix).isidentifier() for name in names):
            names = [name.removeprefix(prefix) for name in names]
            break
    usable = len(set(names)) == len(names) and not taken & set(names) and not any(map(keyword.iskeyword, names))
    return names if usable else None
