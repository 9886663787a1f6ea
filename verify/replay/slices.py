"""Replays of programs too large to run: only what chosen elements of the results depend on is run, in both programs.

A slice does not see faults elsewhere. So the old program must be proved to have none, whatever its inputs, and its assumptions about data
are checked in full; then a difference in a sliced element is a difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp import Fault, run, run_slice
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import stores_in
from layoutproof.verify.program import check_program
from layoutproof.verify.replay.assumptions import assumption_program, has_assumptions_of_data
from layoutproof.verify.replay.inputs import SEED
from layoutproof.verify.replay.outcome import Difference, Failure, Outcome, Sample, Verdictless
from layoutproof.verify.replay.placement import NotComparable, Place, Placement
from layoutproof.verify.replay.trial import Pair, holds, index_of, numbers_of
from layoutproof.verify.verdict import Status

MOST_ELEMENTS = 1 << 23  # of all parameters together
_BESIDE_PADDING = 2
_AT_RANDOM = 2


@dataclass(slots=True)
class SlicedPair(Pair):
    """Judges by slices of `chosen` logical elements (row-major numbers) of each parameter that is written."""

    chosen: dict[str, list[int]] = field(default_factory=dict)
    _assumed: PrimFunc | None = None

    def ready(self, placement: Placement) -> bool:
        """Whether slices say anything here: no undefined values, no licences, and an old program that is proved not to fault."""
        old, new = self.rewrite.old, self.rewrite.new
        if len(self.fillings[0]) > 1 or len(self.fillings[1]) > 1 or self.strictness.licences:
            return False
        if any(not p.recorded and p.then for p in placement.places) or sum(p.new_padding().size for p in placement.places) > MOST_ELEMENTS:
            return False
        if has_assumptions_of_data(old):
            self._assumed = assumption_program(old)
            if self._assumed is None:
                return False
        stored = {store.buffer.data.name for func in (old, new) for store in stores_in(func.body)}
        data = {buffer.name: buffer.data.name for buffer in old.buffers}
        self.chosen = {p.name: _chosen(p) for p in placement.places if data[p.name] in stored and p.logical_places.size}
        return bool(self.chosen) and all(v.status is Status.PROVED for v in check_program(old, where=self.where))

    def judge(self, sample: Sample, limit: int, glance: int | None = None) -> Outcome:
        """Slices of both on a sample; see `Pair.judge`."""
        if not holds(self.where, sample.numbers):
            return Verdictless("the numbers are not among those that callers vouch for")
        placement = self.placement(sample.numbers)
        old = {p.name: placement.to_old(p, sample.arrays[p.name], sample.other_padding) for p in placement.places}
        variants = self.new_arguments(placement, sample, old, limit)
        self.spent += sum(a.size for a in old.values())
        places = {p.name: p for p in placement.places}
        elements = {name: places[name].logical_places[chosen] for name, chosen in self.chosen.items()}
        before_at = {name: [index_of(int(e), places[name].old_shape) for e in at] for name, at in elements.items()}
        after_at = {n: [index_of(int(places[n].new_places[e]), places[n].new_shape) for e in at] for n, at in elements.items()}
        try:
            if self._assumed is not None:
                run(self._assumed, {**numbers_of(self._assumed, sample.numbers), **old}, limit=limit)
            before = run_slice(self.rewrite.old, {**numbers_of(self.rewrite.old, sample.numbers), **old}, before_at, limit=limit)
        except Fault as fault:
            return Verdictless(str(fault))
        except LayoutproofError as problem:
            raise NotComparable(problem.diagnostics[0].message) from problem
        try:
            arguments = {**numbers_of(self.rewrite.new, sample.numbers), **variants[0][1]}
            after = run_slice(self.rewrite.new, arguments, after_at, limit=limit)
        except Fault as fault:
            return self.judged_fault(fault, placement, sample, variants[0][1], variants[0][0], limit)
        except LayoutproofError as problem:
            raise NotComparable(problem.diagnostics[0].message) from problem
        self.spent += before.iterations + after.iterations
        for name in self.chosen:
            found = self.first(places[name], before[name], after[name])
            if found is not None:
                number, lane, old_value, new_value = found
                logical = index_of(self.chosen[name][number], places[name].logical_shape)
                at = before_at[name][number], after_at[name][number]
                return Failure(sample, difference=Difference(name, logical, *at, lane, old_value, new_value))
        return None

    def first(self, place: Place, before: Array, after: Array) -> tuple[int, int, object, object] | None:
        """The first scalar that differs: number of the element, lane, both values."""
        old, new = place.elements(before), place.elements(after)
        wrong = ~self.strictness.same(old, new)
        if not wrong.any():
            return None
        number, lane = np.unravel_index(int(wrong.argmax()), wrong.shape)
        return int(number), int(lane), old[number, lane].item(), new[number, lane].item()


def _chosen(place: Place) -> list[int]:
    """The first and the last logical element, some whose neighbour in the new array is padding, and some at random."""
    count = prod(place.logical_shape)
    generator = np.random.default_rng(SEED)
    chosen = {0, count - 1, *(int(generator.integers(count)) for _ in range(_AT_RANDOM))}
    padding = place.new_padding()
    if padding.any():
        at = place.new_places[place.logical_places]
        beside = padding[np.minimum(at + 1, padding.size - 1)] | padding[np.maximum(at - 1, 0)]
        edge = np.flatnonzero(beside)
        chosen |= {int(edge[k]) for k in np.linspace(0, edge.size - 1, min(edge.size, _BESIDE_PADDING), dtype=np.int64)}
    return sorted(chosen)
