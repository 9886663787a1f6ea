"""A second search for counterexamples: inputs of special values alone, which random ones seldom are.

It is asked only where the checker left a claim open. What it finds is evaluated like any other counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product

import numpy as np

from layoutproof.ir.expr import Expr
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.replay.counterexample import Counterexample, Failure, Number, Sample
from layoutproof.verify.replay.inputs import SEED, Palette, numbers_to_try, specials
from layoutproof.verify.replay.minimised import explain, minimised
from layoutproof.verify.replay.placement import NotComparable, Place, Placement
from layoutproof.verify.replay.strictness import Strictness, relevant
from layoutproof.verify.replay.trial import Pair
from layoutproof.verify.replay.watching import NotWatched
from layoutproof.verify.settings import scaled
from layoutproof.verify.values.fast_math import Licence, Licences

RUNS, SIZES, MINIMISING, LIMIT = 160, 2, 60, 400_000


def find_special(rewrite: Rewrite, where: Expr | None, licences: Licences) -> Counterexample | None:
    """An input of special values on which only the new program faults or ends otherwise; None where none was found."""
    allowed = relevant(licences, rewrite.old, rewrite.new)
    try:
        pair = Pair(rewrite, Strictness.of(allowed, rewrite.old, rewrite.new), where)
        for numbers in islice(numbers_to_try(rewrite, where, ()), SIZES):
            for sample in islice(special_samples(pair.placement(numbers), numbers, allowed), scaled(RUNS)):
                outcome = pair.judge(pair.settle(sample, LIMIT), LIMIT)
                if isinstance(outcome, Failure):
                    return explain(pair, minimised(pair, outcome, MINIMISING, LIMIT), LIMIT)
    except (NotComparable, NotWatched):
        return None
    return None


def special_samples(placement: Placement, numbers: Mapping[str, Number], licences: Licences) -> Iterator[Sample]:
    """Inputs whose arrays hold one special value each; then arrays of two, the second one in the last place."""
    finite = bool(licences & {Licence.NNAN, Licence.NINF} == {Licence.NNAN, Licence.NINF})
    palette = Palette(np.random.default_rng(SEED), finite, Licence.REASSOC in licences)
    read = [place for place in placement.places if not place.written]
    choices = [specials(place.dtype, finite, Licence.REASSOC in licences) for place in read]
    for last in (False, True):
        for values in product(*(product(choice, choice if last else choice[:1]) for choice in choices)):
            arrays: dict[str, Array] = {p.name: palette.ordinary(p) for p in placement.places}
            for place, (value, other) in zip(read, values, strict=True):
                arrays[place.name] = _array(palette, place, value, other if last else value)
            yield Sample(numbers, arrays, True)


def _array(palette: Palette, place: Place, value: Number, last: Number) -> Array:
    array = palette.constant(place, value)
    if array.size:
        array.reshape(-1)[-1] = palette.constant(place, last).reshape(-1)[-1]
    return array
