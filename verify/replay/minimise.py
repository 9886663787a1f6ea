"""Making a failing input small: smaller sizes, then plain numbers wherever they do, and as few peculiar ones as possible.

Each change is kept only if the run still fails in the same way. The order is fixed, so the result is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.interp.arguments import Array
from layoutproof.verify.replay.outcome import Failure, Number, Sample
from layoutproof.verify.replay.placement import NotComparable
from layoutproof.verify.replay.trial import Pair

Positions = NDArray[np.int64]
Telling = Mapping[str, Positions]

_PLAIN = (0, 1, -1)
_SINGLE = 64  # elements up to which each is tried alone
_LARGE, _PIECES = 4_096, 32  # arrays of more elements are tried in few pieces


def minimised(pair: Pair, failure: Failure, runs: int, limit: int, telling: Telling | None = None) -> Failure:
    """A failure of the same kind on a smaller input, found with at most `runs` runs, of about `limit` iterations all together.

    `telling` names, by array, the scalars on which the failure may depend, where that is known: the others become plain together.
    """
    search = _Search(pair, failure, runs, limit, pair.spent + limit)
    if telling is None:
        search.sizes()
    search.padding()
    if telling is not None:
        search.others(telling)
    for name in failure.sample.arrays:
        search.values(name, np.arange(search.best.sample.arrays[name].size) if telling is None else telling[name])
    return search.best


@dataclass(slots=True)
class _Search:
    pair: Pair
    best: Failure
    runs: int
    limit: int
    most_spent: int

    def keep(self, sample: Sample) -> bool:
        """Try a sample; keep it if it fails in the same way."""
        if self.runs <= 0 or self.pair.spent >= self.most_spent:
            return False
        self.runs -= 1
        try:
            settled = self.pair.settle(sample, self.limit)
            outcome = self.pair.judge(settled, self.limit)
        except NotComparable:
            return False
        if not isinstance(outcome, Failure) or outcome.kind != self.best.kind:
            return False
        self.best = outcome
        return True

    def sizes(self) -> None:
        """Each number smaller, arrays cut to fit, as long as that helps."""
        again = True
        while again and self.runs > 0:
            again = False
            for name, value in self.best.sample.numbers.items():
                if isinstance(value, int) and value > 1 and self.keep_numbers({**self.best.sample.numbers, name: value - 1}):
                    again = True

    def keep_numbers(self, numbers: Mapping[str, Number]) -> bool:
        try:
            placement = self.pair.placement(numbers)
        except NotComparable:
            return False
        arrays = {}
        for place in placement.places:
            arrays[place.name] = _cut(self.best.sample.arrays[place.name], place.array_shape)
        return self.keep(Sample(numbers, arrays, self.best.sample.other_padding))

    def padding(self) -> None:
        """Padding as its contract has it, if that does."""
        sample = self.best.sample
        if sample.other_padding:
            self.keep(Sample(sample.numbers, sample.arrays, False))

    def others(self, telling: Telling) -> None:
        """Everything that does not matter plain."""
        for plain in _PLAIN[:2]:
            arrays = {}
            for name, array in self.best.sample.arrays.items():
                filled = np.full_like(array, plain)
                filled.reshape(-1)[telling[name]] = array.reshape(-1)[telling[name]]
                arrays[name] = filled
            if self.keep(Sample(self.best.sample.numbers, arrays, self.best.sample.other_padding)):
                return

    def values(self, name: str, positions: Positions) -> None:
        """One array, as far as it matters: all of it plain, then halves, quarters, ..., then single elements."""
        for piece in _parts(positions.size):
            if self.runs <= 0:
                return
            part = positions[piece]
            for plain in _PLAIN:
                present = self.best.sample.arrays[name].reshape(-1)[part]
                if _are(present, plain):
                    break
                if plain < 0 and (present.dtype.kind in "ub" or _are_signs(present)):
                    continue
                array = self.best.sample.arrays[name].copy()
                array.reshape(-1)[part] = plain
                if self.keep(self.with_array(name, array)):
                    break

    def with_array(self, name: str, array: Array) -> Sample:
        sample = self.best.sample
        return Sample(sample.numbers, {**sample.arrays, name: array}, sample.other_padding)


def _parts(size: int) -> Iterator[slice]:
    if size == 0:
        return
    length = size
    while length >= 1:
        if length == 1 and size > _SINGLE:
            return
        yield from (slice(start, start + length) for start in range(0, size, length))
        if size > _LARGE and length * _PIECES < size:
            return
        length = 0 if length == 1 else -(-length // 2)


def _are(values: Array, plain: int) -> bool:
    """Whether all are +0, or all are 1."""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64)
    return bool(np.all((numbers == plain) & ~np.signbit(numbers)))


def _are_signs(values: Array) -> bool:
    """Whether all are small already: -1, 0 or 1."""
    with np.errstate(invalid="ignore"):
        numbers = values.astype(np.float64)
    return bool(np.all(np.isin(numbers, (-1.0, 0.0, 1.0)) & ~((numbers == 0) & np.signbit(numbers))))


def _cut(array: Array, shape: tuple[int, ...]) -> Array:
    """The front of an array, or an array with repeated elements where it is too small."""
    if array.ndim == len(shape) and all(have >= want for have, want in zip(array.shape, shape, strict=True)):
        return array[tuple(slice(0, extent) for extent in shape)].copy()
    if array.size == 0 or prod(shape) == 0:
        return np.zeros(shape, dtype=array.dtype)
    return np.resize(array.reshape(-1), prod(shape)).reshape(shape)
