"""What a replay tries: sizes, small ones first, and data on which wrong programs tend to show, NaN and infinities in
cells that the old program never reads included. Everything is drawn from one seeded generator, so that a search is
the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from math import isfinite, ldexp

import numpy as np

from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import float_format, max_finite
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.faults.satisfying_data import symbols_and_scalars
from layoutproof.verify.replay.counterexample import Number, Sample
from layoutproof.verify.replay.placement import Place, Placement
from layoutproof.verify.replay.trial import Pair, holds

SEED = 20_240_229
_SIZES = (3, 5, 2, 4, 1, 7, 8, 0)
_LARGEST_FACTOR = 64
_COMBINATIONS = 48
_CONVERTED = 8
_DIVISIBLE = 12.0  # by what means are taken of: quotients come out whole
Hints = Sequence[Mapping[str, Number]]


def numbers_to_try(rewrite: Rewrite, where: Expr | None, hints: Hints) -> Iterator[dict[str, Number]]:
    """Values of the symbols and scalar parameters: one entry with none where there are none, else hints, then small
    sizes.

    Those that `where` excludes are left out.
    """
    symbols = symbols_and_scalars(rewrite.old)
    if not symbols:
        yield {}
        return
    seen: set[tuple[Number, ...]] = set()
    shapes = {v for b in rewrite.old.buffers for e in b.shape for v in free_variables(e)}
    for values in _combinations(symbols, shapes, _factors(rewrite), hints):
        numbers = dict(zip((s.name for s in symbols), values, strict=True))
        if values not in seen and holds(where, numbers):
            seen.add(values)
            yield numbers


def _combinations(
    symbols: tuple[Var, ...], shapes: set[Var], factors: tuple[int, ...], hints: Hints
) -> Iterator[tuple[Number, ...]]:
    generator = np.random.default_rng(SEED)
    for hint in hints:
        if any(s.name in hint for s in symbols):
            yield tuple(_fitting(s, hint.get(s.name, 3), s in shapes) for s in symbols)
    sizes = tuple(dict.fromkeys((*_SIZES[:4], *factors, *_SIZES[4:])))
    for size in sizes:
        yield tuple(_fitting(s, size, s in shapes) for s in symbols)
    small = product(_SIZES[:6], repeat=min(len(symbols), 2))
    for values in small if len(symbols) == 2 else ():
        yield tuple(_fitting(s, v, s in shapes) for s, v in zip(symbols, values, strict=True))
    for _ in range(_COMBINATIONS):
        picked = [int(generator.choice(sizes)) for _ in symbols]
        extra = [int(generator.integers(-3, 4)) for _ in symbols]
        yield tuple(
            _fitting(s, v if s in shapes else v + e, s in shapes)
            for s, v, e in zip(symbols, picked, extra, strict=True)
        )


def _fitting(symbol: Var, value: Number, is_extent: bool) -> Number:
    if symbol.dtype.is_float:
        return float(value)
    low, high = (0 if is_extent else symbol.dtype.min_int), symbol.dtype.max_int
    return min(max(int(value), low), min(high, 1_000) if is_extent else high)


def _factors(rewrite: Rewrite) -> tuple[int, ...]:
    """Sizes around the constants of the programs: those that a factor divides, and those that it does not."""
    found: set[int] = set()
    for func in (rewrite.old, rewrite.new):
        for node in walk(func.body):
            if isinstance(node, IntImm) and 2 <= node.value <= _LARGEST_FACTOR:
                found |= {node.value - 1, node.value, node.value + 1, 2 * node.value + 1}
    return tuple(sorted(found))[:24]


def specials(dtype: DType, ordinary_only: bool, whole: bool = False) -> tuple[Number, ...]:
    """Values at which arithmetic of a type is special; `ordinary_only`: finite; `whole`: exact ones only."""
    if dtype.is_bool:
        return (0, 1)
    if not dtype.is_float:
        small = (0, 1, 2, 3, 7)
        return (*small, dtype.max_int, *((-1, -2, dtype.min_int, dtype.min_int + 1) if dtype.min_int < 0 else ()))
    if whole:
        exact = (0.0, -0.0, 1.0, -1.0, _DIVISIBLE, -_DIVISIBLE, 2.0, -2.0)
        return exact if ordinary_only else (*exact, float("inf"), float("nan"), float("-inf"))
    precision, lowest, _ = float_format(dtype)
    tiny, largest = ldexp(1.0, lowest - precision + 1), max_finite(dtype)
    finite = (
        0.0,
        -0.0,
        1.0,
        -1.0,
        largest,
        -largest,
        tiny,
        -tiny,
        ldexp(1.0, lowest),
        1.0 + ldexp(1.0, 1 - precision),
        0.5,
    )
    return finite if ordinary_only else (float("inf"), float("nan"), float("-inf"), *finite)


@dataclass(frozen=True, slots=True)
class Palette:
    """Makes arrays. `whole`: small whole numbers, so that little is rounded; `ordinary_only`: finite floats;
    `converts`: the programs have conversions, which may round.
    """

    generator: np.random.Generator
    ordinary_only: bool
    whole: bool
    converts: bool = False

    def array(self, place: Place, values: Array) -> Array:
        """Numbers as an array of a parameter's type and logical shape."""
        with np.errstate(all="ignore"):
            return values.astype(numpy_dtype(place.dtype.element))

    def constant(self, place: Place, value: Number) -> Array:
        """The same value everywhere (what is no value of the type becomes one)."""
        dtype = place.dtype
        if not dtype.is_float:
            number = int(value) if value == value and abs(value) < 2**62 else 0
            return np.full(
                place.array_shape, min(max(number, dtype.min_int), dtype.max_int), dtype=numpy_dtype(dtype.element)
            )
        return self.array(place, np.full(place.array_shape, float(value)))

    def ordinary(self, place: Place, sign: int = 0) -> Array:
        """Floats of a few bits, integers from 0 to 3. `sign`: all below (-1) or above (1) zero."""
        shape, dtype = place.array_shape, place.dtype
        if dtype.is_bool:
            return self.array(place, self.generator.integers(0, 2, shape))
        if not dtype.is_float:
            low = 1 if sign > 0 else -3 if sign < 0 and dtype.min_int < 0 else 0
            return self.array(place, self.generator.integers(low, 0 if low < 0 else 4, shape))
        if self.whole:
            values = self.generator.choice([1.0, 1.0, 2.0, 3.0], shape)
            return self.array(place, values * (sign if sign else self.generator.choice([-1.0, 1.0, 1.0], shape)))
        values = self.generator.integers(1, 512, shape) / 32.0
        signs = float(sign) if sign else self.generator.choice([-1.0, 1.0], shape)
        return self.array(place, values * signs)

    def rough(self, place: Place) -> Array:
        """Floats of full precision and many magnitudes, whose sums round; multiples of 12 if `whole`. Integers that a
        smaller type does not hold, where something is converted to one.
        """
        if not place.dtype.is_float:
            return self.wide(place) if self.converts and not place.dtype.is_bool else self.ordinary(place)
        if self.whole:
            return self.array(place, _DIVISIBLE * self.generator.integers(-2, 4, place.array_shape))
        shape = place.array_shape
        return self.array(place, self.generator.standard_normal(shape) * np.exp2(self.generator.integers(-6, 7, shape)))

    def wide(self, place: Place) -> Array:
        """Integers of all magnitudes of their type."""
        dtype, shape = place.dtype.element, place.array_shape
        values = np.exp2(self.generator.random(shape) * (dtype.max_int.bit_length() - 1)).astype(np.int64)
        signs = self.generator.choice([-1, 1], shape) if dtype.min_int < 0 else 1
        return self.array(place, values * signs)

    def fine(self, place: Place, share: float, rest: float) -> Array:
        """Floats with more digits than a smaller type has, few enough for sums of some of them not to be rounded; among
        others, ones to be multiplied by, or zeros where sums are long.
        """
        if not place.dtype.is_float:
            return self.ordinary(place)
        precision = float_format(place.dtype.element)[0]
        bits = (precision + 2) // 2
        odd = 2 * self.generator.integers(1 << (bits - 2), 1 << (bits - 1), place.array_shape) + 1
        values = odd * 2.0 ** -((precision - 8) // 4)
        return self.array(place, np.where(self.generator.random(place.array_shape) < share, values, rest))

    def extreme(self, place: Place, large: bool) -> Array:
        """Floats whose products are about the least or the largest numbers of the type."""
        if not place.dtype.is_float:
            return self.ordinary(place)
        precision, lowest, highest = float_format(place.dtype)
        middle = highest // 2 if large else (lowest - precision + 1) // 2
        factors = self.generator.choice([-1.5, -1.0, 1.0, 1.5], place.array_shape)
        return self.array(place, np.ldexp(factors, middle + self.generator.integers(0, 2, place.array_shape)))

    def mixed(self, place: Place, share: float) -> Array:
        """Ordinary numbers with special ones among them."""
        base = self.ordinary(place)
        values = specials(place.dtype, self.ordinary_only, self.whole)
        picked = self.generator.integers(0, len(values), base.shape)
        chosen = self.generator.random(base.shape) < share
        floats = place.dtype.is_float
        typed = (
            self.array(place, np.array(values)) if floats else np.array(values, dtype=numpy_dtype(place.dtype.element))
        )
        return np.where(chosen, typed[picked], base).astype(base.dtype)

    def one_special(self, place: Place, position: int, value: Number) -> Array:
        """Ordinary numbers, and one value at one place (row-major)."""
        result = self.ordinary(place)
        result.reshape(-1)[position] = self.constant(place, value).reshape(-1)[position]
        return result


def samples(
    placement: Placement, numbers: Mapping[str, Number], palette: Palette, hints: Hints, *, few: bool = False
) -> Iterator[Sample]:
    """Inputs for one choice of numbers, the most telling first, without end; `few`: rough numbers early."""
    places = placement.places
    padded = any(p.written for p in places)

    def of(arrays: Mapping[str, Array], other: bool = False) -> Sample:
        return Sample(numbers, {p.name: arrays[p.name] for p in places}, other and padded)

    yield of({p.name: palette.ordinary(p) for p in places}, True)
    yield of({p.name: palette.ordinary(p, -1) for p in places})
    converted = _converted(places, palette)
    yield from (of(arrays) for arrays in islice(converted, min(2 * len(places), _CONVERTED)))
    for hint in hints:
        yield from (of(arrays) for arrays in _hinted(places, palette, hint))
    if few:
        yield of({p.name: palette.rough(p) for p in places})
    for value in (-0.0, 0.0, 1.0):
        yield of({p.name: palette.constant(p, value) for p in places})
    for share in (0.15, 0.5):
        yield of({p.name: palette.mixed(p, share) for p in places}, True)
    everywhere = _everywhere(places, palette)
    single = _singles(places, palette)
    while True:
        for share in (0.05, 0.3):
            yield of({p.name: palette.mixed(p, share) for p in places}, bool(palette.generator.integers(0, 2)))
        for source in (everywhere, single, single, single, converted):
            yield from (of(arrays) for arrays in islice(source, 1))
        yield of({p.name: palette.ordinary(p, int(palette.generator.integers(-1, 2))) for p in places}, True)
        yield of({p.name: palette.rough(p) for p in places})
        if not palette.whole:
            yield of({p.name: palette.extreme(p, False) for p in places})
            yield of({p.name: palette.extreme(p, True) for p in places})


def _converted(places: Sequence[Place], palette: Palette) -> Iterator[dict[str, Array]]:
    """Floats that are rounded only where they are converted, in one parameter; ones elsewhere."""
    kinds = cycle(((1.0, 1.0), (0.02, 0.0), (0.5, 1.0))) if palette.converts and palette.whole else ()
    chosen = sorted(places, key=lambda place: place.written)
    for (share, rest), place in ((kind, place) for kind in kinds for place in chosen):
        yield {p.name: palette.fine(p, share, rest) if p is place else palette.constant(p, 1.0) for p in places}


def _everywhere(places: Sequence[Place], palette: Palette) -> Iterator[dict[str, Array]]:
    """One special value all over one parameter."""
    for value, place in product(range(16), places):
        values = specials(place.dtype, palette.ordinary_only, palette.whole)
        if value < len(values):
            yield {p.name: palette.constant(p, values[value]) if p is place else palette.ordinary(p) for p in places}


def _singles(places: Sequence[Place], palette: Palette) -> Iterator[dict[str, Array]]:
    """One special value at one place of one parameter: last, first, end of the first row, middle."""
    for value, corner, place in product(range(16), range(4), places):
        values = specials(place.dtype, palette.ordinary_only, palette.whole)
        size = int(np.prod(place.array_shape, dtype=np.int64))
        if value >= len(values) or size == 0:
            continue
        row = place.logical_shape[-1] if place.logical_shape else 1
        position = (size - 1, 0, max(row - 1, 0), size // 2)[corner]
        yield {
            p.name: palette.one_special(p, position, values[value]) if p is place else palette.ordinary(p)
            for p in places
        }


def _hinted(places: Sequence[Place], palette: Palette, hint: Mapping[str, Number]) -> Iterator[dict[str, Array]]:
    """What a solver found: a name that begins with a buffer's is a value loaded from it."""
    found: dict[str, list[Number]] = {p.name: [] for p in places}
    for name, value in hint.items():
        begins = [p.name for p in places if name.startswith(p.name)]
        if begins:
            found[max(begins, key=len)].append(value)
    if not any(found.values()) or (
        palette.ordinary_only and not all(isfinite(v) for values in found.values() for v in values)
    ):
        return
    yield {p.name: palette.constant(p, found[p.name][0]) if found[p.name] else palette.ordinary(p) for p in places}
    for _ in range(3):
        arrays = {}
        for place in places:
            base = palette.ordinary(place)
            for value in found[place.name]:
                chosen = palette.generator.random(base.shape) < 0.4
                base = np.where(chosen, palette.constant(place, value), base).astype(base.dtype)
            arrays[place.name] = base
        yield arrays


_VALUES = (float("inf"), float("nan"), float("-inf"))
_ATTEMPTS = 4  # samples of which everything is read, after which that is taken to be so always
_MOST = 30  # such inputs of one search


@dataclass(slots=True)
class Unread:
    """Makes such inputs for a pair, as long as that looks useful."""

    pair: Pair
    _useless: int = 0
    _made: int = 0

    def poisoned(self, sample: Sample, limit: int) -> Sample | None:
        """The sample with another value in each float that the old program does not load; None if pointless."""
        if self._useless >= _ATTEMPTS or self._made >= _MOST or self.pair.strictness.reading is None:
            return None
        placement = self.pair.placement(sample.numbers)
        read = self.pair.read(sample, self.pair.old_arrays(placement, sample), limit)
        if read is None:
            return None
        value = _VALUES[self._made % len(_VALUES)]
        arrays, changed = dict(sample.arrays), False
        for place in placement.places:
            if place.name not in read:
                continue
            free = ~read[place.name].reshape(-1)[place.logical_places].astype(np.bool_)
            if free.any():
                array = arrays[place.name].copy()
                array.reshape(-1)[free] = value
                arrays[place.name], changed = array, True
        if not changed:
            self._useless += 1
            return None
        self._made += 1
        return Sample(sample.numbers, arrays, sample.other_padding)
