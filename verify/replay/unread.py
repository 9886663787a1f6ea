"""Inputs that hold NaN or an infinity where the old program never looks: no licence speaks of them, and the new program may look there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutproof.verify.replay.outcome import Sample
from layoutproof.verify.replay.trial import Pair

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
        """The sample with another value in every float that the old program does not load; None where there is none, or no use in it."""
        if self._useless >= _ATTEMPTS or self._made >= _MOST or self.pair.strictness.reading is None:
            return None
        placement = self.pair.placement(sample.numbers)
        old = {p.name: placement.to_old(p, sample.arrays[p.name], sample.other_padding) for p in placement.places}
        read = self.pair.read(sample, old, limit)
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
