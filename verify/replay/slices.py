"""Replays of programs too large to run: only what chosen elements of the results depend on is run, in both programs.

A slice does not see faults elsewhere. So the old program must be proved to have none, whatever its inputs, and its
assumptions about data are checked in full; then a difference in a sliced element is a difference. What fast-math
assumptions say of everything that the old program computes is bounded, not run (see `magnitude`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp import Fault, FaultKind, Filling, SliceResult, run, run_slice, same_values, slice_inputs
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.interp.memory import DEFINED
from layoutproof.ir.intrinsics import Assume, Undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import stores_in, walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.no_faults import check_facts
from layoutproof.verify.faults.satisfying_data import assumption_program, has_assumptions_of_data
from layoutproof.verify.flow.hints import SuspectCell
from layoutproof.verify.replay.chosen_cells import Chooser, Chosen
from layoutproof.verify.replay.counterexample import Difference, Failure, LookedAt, Number, Outcome, Sample, Verdictless
from layoutproof.verify.replay.magnitude import stays_finite
from layoutproof.verify.replay.placement import NotComparable, Place, Placement, Positions
from layoutproof.verify.replay.trial import Pair, element_of, holds, index_of, numbers_of
from layoutproof.verify.replay.watching import sign_matters, watched
from layoutproof.verify.values.fast_math import FastMath
from layoutproof.verify.verdict.verdict import Status

MOST_CELLS = 1 << 23  # of all parameters together
_CELLS_AN_ITERATION = 64  # of an array, that cost as much as one iteration

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class SlicedPair(Pair):
    """Judges by slices of `chosen` elements of each written parameter; `suspect_cells` are chosen first."""

    suspect_cells: Sequence[SuspectCell] = ()
    chosen: dict[str, Chosen] = field(default_factory=dict)
    _assumed: PrimFunc | None = None
    _firm: PrimFunc | None = None
    _postconditions: dict[tuple[str, int], tuple[Array, str]] = field(default_factory=dict)
    _laid: dict[tuple[str, bool], tuple[Array, bool, Array]] = field(default_factory=dict)

    def ready(self, placement: Placement) -> bool:
        """Whether slices decide anything: no undefined inputs, and an old program proved free of faults."""
        old, new, fast_math = self.rewrite.old, self.rewrite.new, self.strictness.fast_math
        if any(_is_assumed_undefined(func) for func in (old, new)) or (
            FastMath.NSZ in fast_math and sign_matters(old, fast_math)
        ):
            return False
        if (
            any(not p.recorded and p.then for p in placement.places)
            or sum(p.new_padding().size for p in placement.places) > MOST_CELLS
        ):
            return False
        if has_assumptions_of_data(old):
            self._assumed = assumption_program(old)
            if self._assumed is None:
                return False
        if self.strictness.only_firm:
            self._firm = watched(old, frozenset({FastMath.REASSOC}))
        stored = {store.buffer.data.name for func in (old, new) for store in stores_in(func.body)}
        chooser = Chooser(self.rewrite, placement.symbols, self.suspect_cells)
        for position, place in enumerate(placement.places):
            if old.buffers[position].data.name in stored and prod(place.old_shape) > 0:
                self.look_at(placement, place, chooser.chosen(place, position))
        return bool(self.chosen) and all(v.status is Status.PROVED for v in check_facts(Facts.of(old, self.where)))

    def look_at(self, placement: Placement, place: Place, chosen: Chosen) -> None:
        """Look at these elements of a parameter, and at that padding among it of which one value is asked for."""
        required = {int(cell): placement.postcondition_at(place, int(cell)) for cell in chosen.padding}
        self._postconditions |= {
            (place.name, cell): (one[0], one[1].text) for cell, one in required.items() if one is not None
        }
        padding = [cell for cell, one in required.items() if one is not None]
        self.chosen[place.name] = Chosen(chosen.elements, np.array(padding, dtype=np.int64))

    def only_at(self, placement: Placement, cells: Sequence[LookedAt]) -> None:
        """Look at nothing but these cells. Raises NotComparable where there is no such cell."""
        places = {p.name: p for p in placement.places}
        found: dict[str, tuple[list[int], list[int]]] = {}
        for cell in cells:
            place = places.get(cell.buffer)
            if place is None:
                raise NotComparable(f"there is no parameter {cell.buffer}")
            index, shape = (
                (cell.new_index, place.new_shape) if cell.old_index is None else (cell.old_index, place.old_shape)
            )
            if (
                index is None
                or len(index) != len(shape)
                or not all(0 <= i < e for i, e in zip(index, shape, strict=True))
            ):
                raise NotComparable(f"{cell.buffer} has no such cell")
            found.setdefault(place.name, ([], []))[cell.old_index is None].append(element_of(index, shape))
        self.chosen = {}
        for name, (elements, padding) in found.items():
            observed = [e for e in elements if places[name].observed[e]]
            self.look_at(
                placement, places[name], Chosen(np.array(observed, dtype=np.int64), np.array(padding, dtype=np.int64))
            )

    def looked_at(self, placement: Placement) -> tuple[LookedAt, ...]:
        """See `Pair.looked_at`."""
        old, new, found = self.old_cells(placement), self.new_cells(placement), []
        for name, indices in new.items():
            known = [*old[name], *(None for _ in range(len(indices) - len(old[name])))]
            found += [LookedAt(name, before, after) for before, after in zip(known, indices, strict=True)]
        return tuple(found)

    def narrowed(self, failure: Failure, limit: int) -> Failure:
        """The failure again, with as little chosen as shows it."""
        placement = self.placement(failure.sample.numbers)
        if failure.difference is not None:
            at = failure.difference
            self.only_at(placement, [LookedAt(at.buffer, at.old_index, at.new_index)])
            return failure
        again = True
        while again:
            again = False
            whole = self.chosen
            for part in _halves(whole):
                self.chosen = part
                outcome = self.judge(failure.sample, limit)
                if isinstance(outcome, Failure) and outcome.kind == failure.kind:
                    failure, again = outcome, True
                    break
                self.chosen = whole
        return failure

    def telling(self, sample: Sample) -> dict[str, Positions] | None:
        """By parameter, the scalars of its logical array that chosen elements depend on; None if unknown."""
        buffers = (*self.rewrite.old.buffers, *self.rewrite.new.buffers)
        if any(b.strides or not (isinstance(b.elem_offset, IntImm) and b.elem_offset.value == 0) for b in buffers):
            return None
        placement = self.placement(sample.numbers)
        old = self.old_arrays(placement, sample)
        new = self.new_arrays(placement, sample, old)
        first = slice_inputs(
            self.rewrite.old, {**numbers_of(self.rewrite.old, sample.numbers), **old}, self.old_cells(placement)
        )
        second = slice_inputs(
            self.rewrite.new, {**numbers_of(self.rewrite.new, sample.numbers), **new}, self.new_cells(placement)
        )
        result = {}
        for place in placement.places:
            taken = np.zeros(prod(place.new_shape), dtype=np.bool_)
            taken[second[place.name]] = True
            needed = taken[place.new_places]
            needed[first[place.name]] = True
            elements = np.flatnonzero(needed[place.logical_places])
            result[place.name] = (elements[:, np.newaxis] * place.dtype.lanes + np.arange(place.dtype.lanes)).reshape(
                -1
            )
        return result

    def at_most(self, count: int) -> None:
        """Look at so many elements of each parameter only, the likeliest."""
        self.chosen = {name: chosen.first(count) for name, chosen in self.chosen.items()}

    # Arrays, each made once

    def old_arrays(self, placement: Placement, sample: Sample) -> dict[str, Array]:
        """See `Pair.old_arrays`."""
        other = sample.other_padding
        return {
            p.name: self._once(p.name, False, sample.arrays[p.name], other, placement.to_old, p)
            for p in placement.places
        }

    def new_arrays(self, placement: Placement, sample: Sample, old: Mapping[str, Array]) -> dict[str, Array]:
        """See `Pair.new_arrays`."""
        return {
            p.name: self._once(p.name, True, old[p.name], sample.other_padding, placement.to_new, p)
            for p in placement.places
        }

    def _once(
        self,
        name: str,
        is_new: bool,
        given: Array,
        other: bool,
        lay: Callable[[Place, Array, bool], Array],
        place: Place,
    ) -> Array:
        known = self._laid.get((name, is_new))
        if known is not None and known[0] is given and known[1] == other:
            return known[2]
        made = lay(place, given, other)
        self._laid[name, is_new] = (given, other, made)
        return made

    # Runs

    def judge(self, sample: Sample, limit: int, glance: int | None = None) -> Outcome:
        """Slices of both on a sample; see `Pair.judge`."""
        if not holds(self.where, sample.numbers):
            return Verdictless("the numbers are not among those that callers vouch for")
        placement = self.placement(sample.numbers)
        old = self.old_arrays(placement, sample)
        self.spent += 50 + sum(a.size for a in old.values()) // _CELLS_AN_ITERATION
        try:
            if self._assumed is not None:
                self.spent += run(
                    self._assumed, {**numbers_of(self._assumed, sample.numbers), **old}, limit=limit
                ).iterations
            return self.tried(placement, sample, old, limit, glance)
        except Fault as fault:
            return Verdictless(str(fault))
        except LayoutproofError as problem:
            first_one = problem.diagnostics[0]
            if first_one.code == codes.RUN_LIMIT:
                self.spent += limit
                return Verdictless(first_one.message)
            raise NotComparable(first_one.message) from problem

    def trial(
        self, placement: Placement, sample: Sample, old: Mapping[str, Array], limit: int, glance: int | None
    ) -> Outcome:
        """The slices themselves. Raises Fault of the old program, LayoutproofError."""
        before = [
            self.sliced(self.rewrite.old, sample.numbers, old, self.old_cells(placement), filling, limit)
            for filling in self.fillings[0][: None if glance is None else 1]
        ]
        after = []
        for filling, arrays in self.new_arguments(placement, sample, old, limit, glance):
            try:
                after.append(
                    self.sliced(self.rewrite.new, sample.numbers, arrays, self.new_cells(placement), filling, limit)
                )
            except Fault as fault:
                return self.judged_fault(fault, placement, sample, arrays, filling, limit)
        difference = self.differing(placement, before, after, 1 if glance is not None else min(2, len(after)), False)
        return None if difference is None else Failure(sample, difference=difference)

    def sliced(
        self,
        func: PrimFunc,
        numbers: Mapping[str, Number],
        arrays: Mapping[str, Array],
        cells: Mapping[str, list[tuple[int, ...]]],
        filling: Filling,
        limit: int,
    ) -> SliceResult:
        """One slice, paid for. Raises Fault, LayoutproofError."""
        result = run_slice(func, {**numbers_of(func, numbers), **arrays}, cells, filling=filling, limit=limit)
        self.spent += result.iterations
        return result

    def excused(self, failure: Failure, placement: Placement, old: Mapping[str, Array], limit: int) -> Outcome:
        """See `Pair.excused`: nothing in this execution is left out, and no rounding explains the failure."""
        fast_math, sample = self.strictness.fast_math, failure.sample
        if fast_math & {FastMath.NNAN, FastMath.NINF} and (
            self.strictness.left_out(old) or not stays_finite(self.rewrite.old, old, sample.numbers)
        ):
            return Verdictless("the old program may compute what the fast-math assumptions exclude")
        if self._firm is None:
            return failure
        before = [
            self.sliced(self._firm, sample.numbers, old, self.old_cells(placement), f, limit) for f in self.fillings[0]
        ]
        after = []
        for program, arrays in self.exposures(placement, sample, old, limit):
            try:
                after.append(
                    self.sliced(program, sample.numbers, arrays, self.new_cells(placement), self.fillings[1][0], limit)
                )
            except Fault as fault:
                if failure.fault is not None and fault.kind is failure.fault.kind:
                    return failure
        if failure.fault is not None or not after:
            return Verdictless("the fault may come from rounding")
        difference = self.differing(placement, before, after, min(2, len(after)), True)
        return (
            Verdictless("the difference may come from rounding")
            if difference is None
            else Failure(sample, difference=difference)
        )

    def judged_fault(
        self,
        fault: Fault,
        placement: Placement,
        sample: Sample,
        arguments: Mapping[str, Array],
        filling: Filling,
        limit: int,
    ) -> Outcome:
        """See `Pair.judged_fault`."""
        if fault.kind is FaultKind.UNDEF:
            return Verdictless(str(fault))
        if fault.kind is FaultKind.ASSUMPTION and any(p.then and p.free_padding().any() for p in placement.places):
            return Verdictless(str(fault))  # perhaps another content of padding would satisfy it
        return Failure(sample, fault=fault)

    def noted(
        self, func: PrimFunc, arguments: Mapping[str, object], notes: Sequence[str], limit: int
    ) -> dict[str, Array]:
        """See `Pair.noted`."""
        shapes = {
            b.name: [int(e.value) for e in b.shape if isinstance(e, IntImm)] for b in func.buffers if b.name in notes
        }
        cells = {name: [index_of(k, tuple(shape)) for k in range(prod(shape))] for name, shape in shapes.items()}
        return dict(run_slice(func, arguments, cells, filling=Filling(), limit=limit).values)

    # Cells

    def old_cells(self, placement: Placement) -> dict[str, list[tuple[int, ...]]]:
        """The indices of the chosen elements in the old program's arrays."""
        return {
            p.name: [index_of(int(e), p.old_shape) for e in self.chosen[p.name].elements]
            for p in self.places(placement)
        }

    def new_cells(self, placement: Placement) -> dict[str, list[tuple[int, ...]]]:
        """The indices of the chosen elements in the new program's arrays, then those of padding."""
        return {p.name: [index_of(int(e), p.new_shape) for e in self.new_elements(p)] for p in self.places(placement)}

    def new_elements(self, place: Place) -> Positions:
        """The same as row-major numbers."""
        chosen = self.chosen[place.name]
        places = chosen.elements
        for move in place.then:
            places = move.positions[places]
        return np.concatenate([places, chosen.padding])

    def places(self, placement: Placement) -> Iterator[Place]:
        """The parameters of which something is chosen."""
        return (place for place in placement.places if place.name in self.chosen)

    def differing(
        self,
        placement: Placement,
        before: Sequence[SliceResult],
        after: Sequence[SliceResult],
        needed: int,
        only_firm: bool,
    ) -> Difference | None:
        """The first chosen scalar that differs in `needed` of the new program's runs; see `Pair.compare`."""
        for place in self.places(placement):
            count, lanes = len(self.chosen[place.name].elements), place.dtype.lanes
            old = [r.values[place.name].reshape(-1, lanes) for r in before]
            counts = np.ones_like(old[0], dtype=np.bool_)
            for result, values in zip(before, old, strict=True):
                counts &= (result.states[place.name] == DEFINED) | (self.only_arithmetic and not only_firm)
                counts &= same_values(values, old[0])
            new = [r.values[place.name].reshape(-1, lanes) for r in after]
            known = (
                [r.states[place.name] == DEFINED for r in after]
                if only_firm
                else [np.ones_like(v, dtype=np.bool_) for v in new]
            )
            differs = [
                ~self.strictness.same(old[0], v[:count]) & counts & k[:count] for v, k in zip(new, known, strict=True)
            ]
            found = _first(differs, needed)
            if found is not None:
                return self.difference(
                    place, *found, old[0], next(v for v, d in zip(new, differs, strict=True) if d[found])
                )
            found_padding = self.owing(place, [v[count:] for v in new], [k[count:] for k in known], needed)
            if found_padding is not None:
                return found_padding
        return None

    def owing(self, place: Place, held: Sequence[Array], known: Sequence[Mask], needed: int) -> Difference | None:
        """The first chosen padding cell that violates its contract, under whatever fast-math assumptions."""
        cells = self.chosen[place.name].padding
        if not cells.size:
            return None
        wanted = np.stack([self._postconditions[place.name, int(cell)][0] for cell in cells])
        differs = [~same_values(wanted, values) & k for values, k in zip(held, known, strict=True)]
        found = _first(differs, needed)
        if found is None:
            return None
        cell, value = int(cells[found[0]]), next(v for v, d in zip(held, differs, strict=True) if d[found])[found]
        contract = self._postconditions[place.name, cell][1]
        return Difference(
            place.name,
            None,
            None,
            index_of(cell, place.new_shape),
            found[1],
            wanted[found].item(),
            value.item(),
            contract,
        )

    def difference(self, place: Place, number: int, lane: int, old: Array, new: Array) -> Difference:
        """The difference in a chosen element."""
        element = int(self.chosen[place.name].elements[number])
        logical = np.flatnonzero(place.logical_places == element)
        index = index_of(int(logical[0]), place.logical_shape) if logical.size else None
        at = index_of(element, place.old_shape), index_of(int(self.new_elements(place)[number]), place.new_shape)
        return Difference(place.name, index, *at, lane, old[number, lane].item(), new[number, lane].item())


def _first(differs: Sequence[Mask], needed: int) -> tuple[int, int] | None:
    """The first scalar (row, lane) that differs in at least `needed` of the runs."""
    often = np.sum(differs, axis=0) >= needed
    if not often.any():
        return None
    row, lane = np.unravel_index(int(often.argmax()), often.shape)
    return int(row), int(lane)


def _halves(chosen: Mapping[str, Chosen]) -> Iterator[dict[str, Chosen]]:
    """Two parts of what is chosen, as long as there are two."""
    cells = [
        (name, kind, k)
        for name, each in chosen.items()
        for kind in (0, 1)
        for k in range((each.elements, each.padding)[kind].size)
    ]
    middle = len(cells) // 2
    for part in (cells[:middle], cells[middle:]) if middle else ():
        picked = {
            name: [[k for n, kind, k in part if (n, kind) == (name, which)] for which in (0, 1)] for name, _, _ in part
        }
        yield {name: Chosen(chosen[name].elements[at[0]], chosen[name].padding[at[1]]) for name, at in picked.items()}


def _is_assumed_undefined(func: PrimFunc) -> bool:
    """Whether a program assumes of some cell that it is undefined."""
    conditions = (node.condition for node in walk(func.body) if isinstance(node, Assume))
    return any(isinstance(part, Undef) for condition in conditions for part in walk(condition))
