"""One trial: the two programs of a rewrite run on one input, and what the new one does that the old one does not.

A trial says something only where the old program runs without a fault and satisfies its own assumptions. Then a fault
of the new program is a failure, and so is an observed cell that ends with another value. Where values are undefined
each program runs with several fillings: a cell counts where the old program's value is the same with all of them, and
at least two runs of the new program end with another one. (A program without undefined values has one run only, and
that decides.) That fillings agree shows that a value is no matter of choice where nothing undefined went into it, and
where only arithmetic did: a comparison may tell values apart that were not tried.

What such a run cannot see: parameters that overlap, races that no execution of this input meets, anything behind an
opaque call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.interp import Fault, FaultKind, Filling, Result, all_fillings, run, same_values
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.interp.memory import DEFINED
from layoutproof.ir.layout_record import Cell
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.semantics import Trap
from layoutproof.ir.visit import free_variables, loads_in
from layoutproof.verify.faults.satisfying_data import repair_program, repaired
from layoutproof.verify.replay.counterexample import Difference, Failure, LookedAt, Number, Outcome, Sample, Verdictless
from layoutproof.verify.replay.placement import NotComparable, Place, Placement, place_parameters
from layoutproof.verify.replay.strictness import Strictness, fillings_of, is_only_arithmetic, more_fillings
from layoutproof.verify.replay.watching import number_of

_WATCHED = 3  # iterations that one of a program that watches itself costs


class _Stopped(Exception):
    """A run that could not be made, or not to its end, on this input."""


@dataclass(slots=True)
class Pair:
    """The two programs of a rewrite, prepared once. `spent` counts iterations and cells of all runs so far."""

    rewrite: Rewrite
    strictness: Strictness
    where: Expr | None = None
    plain: bool = False
    spent: int = 0
    repairs: tuple[PrimFunc | None, PrimFunc | None] = field(init=False)
    fillings: tuple[tuple[Filling, ...], tuple[Filling, ...]] = field(init=False)
    only_arithmetic: bool = field(init=False)
    _placements: dict[tuple[tuple[str, Number], ...], Placement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        old, new = self.rewrite.old, self.rewrite.new
        self.repairs = repair_program(old), repair_program(new)
        self.fillings = (*fillings_of(old), *more_fillings(old)), fillings_of(new)
        self.only_arithmetic = is_only_arithmetic(old)

    def placement(self, numbers: Mapping[str, Number]) -> Placement:
        """Where the parameters lie for some numbers. Raises NotComparable."""
        key = tuple(sorted(numbers.items()))
        if key not in self._placements:
            if len(self._placements) >= 8:
                self._placements.pop(next(iter(self._placements)))
            self._placements[key] = place_parameters(
                self.rewrite, {n: v for n, v in numbers.items() if isinstance(v, int)}
            )
        return self._placements[key]

    def old_arrays(self, placement: Placement, sample: Sample) -> dict[str, Array]:
        """The old program's arrays for a sample, read-only."""
        return {p.name: placement.to_old(p, sample.arrays[p.name], sample.other_padding) for p in placement.places}

    def new_arrays(self, placement: Placement, sample: Sample, old: Mapping[str, Array]) -> dict[str, Array]:
        """The new program's arrays for the old one's, read-only."""
        return {p.name: placement.to_new(p, old[p.name], sample.other_padding) for p in placement.places}

    def settle(self, sample: Sample, limit: int) -> Sample:
        """The sample, changed to satisfy the old program's assumptions and to fit the new one's arrays."""
        program, placement = self.repairs[0], self.placement(sample.numbers)
        if program is None and not any(p.shared for p in placement.places):
            return sample
        old = self.old_arrays(placement, sample)
        changed = (
            repaired(program, {**numbers_of(program, sample.numbers), **old}, limit) if program is not None else None
        )
        arrays = changed if changed is not None else old
        for place in placement.places:
            if place.shared:
                elements = place.elements(placement.to_new(place, arrays[place.name], False))[place.new_places]
                arrays[place.name] = place.array(elements, place.old_shape)
        logical = {p.name: placement.to_logical(p, arrays[p.name]) for p in placement.places}
        return Sample(sample.numbers, logical, sample.other_padding)

    def judge(self, sample: Sample, limit: int, glance: int | None = None) -> Outcome:
        """Run both on a sample, at most `limit` iterations each time. Raises NotComparable where that cannot be done at
        all.

        With `glance`, any number, undefined values get two fillings only, one of them by that number; where these show
        nothing, that is the answer.
        """
        if not holds(self.where, sample.numbers):
            return Verdictless("the numbers are not among those that callers vouch for")
        try:
            placement = self.placement(sample.numbers)
            old = self.old_arrays(placement, sample)
            return self.tried(placement, sample, old, limit, glance)
        except _Stopped as stopped:
            return Verdictless(str(stopped))

    def tried(
        self, placement: Placement, sample: Sample, old: Mapping[str, Array], limit: int, glance: int | None
    ) -> Outcome:
        """What trials show, the first of them at a glance; a failure is excused where fast-math assumptions allow
        it.
        """
        if glance is not None and max(map(len, self.fillings)) > 2:
            first = self.trial(placement, sample, old, limit, glance)
            if not isinstance(first, Failure):
                return first
        outcome = self.trial(placement, sample, old, limit, None)
        return self.excused(outcome, placement, old, limit) if isinstance(outcome, Failure) else outcome

    def trial(
        self, placement: Placement, sample: Sample, old: Mapping[str, Array], limit: int, glance: int | None
    ) -> Outcome:
        """The runs themselves: of the old program, then of the new one, compared."""
        before: list[Result] = []
        for filling in self.fillings[0][: None if glance is None else 1]:
            try:
                before.append(self.run(self.rewrite.old, sample.numbers, old, filling, limit))
            except Fault as fault:
                return Verdictless(str(fault))
        after: list[Result] = []
        for filling, arguments in self.new_arguments(placement, sample, old, limit, glance):
            try:
                after.append(self.run(self.rewrite.new, sample.numbers, arguments, filling, limit))
            except Fault as fault:
                return self.judged_fault(fault, placement, sample, arguments, filling, limit)
        difference = self.compare(placement, before, after, 1 if glance is not None else min(2, len(after)))
        return None if difference is None else Failure(sample, difference=difference)

    def excused(self, failure: Failure, placement: Placement, old: Mapping[str, Array], limit: int) -> Outcome:
        """The failure, or another on the same sample, unless the fast-math assumptions exclude or explain it."""
        sample, watched = failure.sample, self.strictness.program
        if watched is None:
            return failure
        left_out = self.strictness.left_out(old)
        read = self.read(sample, old, limit) if left_out else None
        if read is not None and any((mask & (read[name] != 0)).any() for name, mask in left_out.items()):
            return Verdictless("the old program reads an input that the fast-math assumptions exclude")
        # Where the reads are not known, none may happen, and no write either.
        forbidden = left_out if read is None else {}
        readable = {
            p.name: ~np.any(p.elements(forbidden[p.name]), axis=1) for p in placement.places if p.name in forbidden
        }
        try:
            before = [self.run(watched, sample.numbers, old, filling, limit, readable) for filling in self.fillings[0]]
        except Fault as fault:
            return Verdictless(str(fault))
        if not self.strictness.only_firm:
            return failure
        after: list[Result] = []
        variants = list(self.exposures(placement, sample, old, limit))
        for program, arrays in variants:
            try:
                after.append(self.run(program, sample.numbers, arrays, self.fillings[1][0], limit))
            except Fault as fault:
                if failure.fault is not None and fault.kind is failure.fault.kind:
                    return failure
        if failure.fault is not None:
            return Verdictless("the fault may come from rounding")
        difference = self.compare(placement, before, after, min(2, len(variants)), only_firm=True)
        if difference is None:
            return Verdictless("the difference may come from rounding")
        return Failure(sample, difference=difference)

    def read(self, sample: Sample, old: Mapping[str, Array], limit: int) -> dict[str, Array] | None:
        """By float parameter, 1 where the old program loads the element; None where that is not known."""
        tracker = self.strictness.reading
        self.spent += sum(a.size for a in old.values())
        return None if tracker is None else tracker.read(numbers_of(self.rewrite.old, sample.numbers), old, limit)

    def exposures(
        self, placement: Placement, sample: Sample, old: Mapping[str, Array], limit: int
    ) -> Iterator[tuple[PrimFunc, dict[str, Array]]]:
        """The new program watched, with its arrays, once for each constant that stands for what is undefined."""
        base = self.new_arrays(placement, sample, old)
        kinds = padding_cells(self.rewrite.new, {n: v for n, v in sample.numbers.items() if isinstance(v, int)})
        undefined: list[tuple[Place, NDArray[np.bool_]]] = []
        for place, buffer in zip(placement.places, self.rewrite.new.buffers, strict=True):
            cells = place.new_padding() & (not place.recorded)
            if buffer.data.name in kinds:
                cells |= kinds[buffer.data.name].reshape(-1) == Cell.PAD_UNDEF
            if cells.any():
                undefined.append((place, cells))
        programs = self.strictness.new_programs
        if not undefined and all(program is programs[0][1] for _, program in programs):
            programs = programs[:1]
        for constant, program in programs:
            arrays = dict(base)
            for place, cells in undefined:
                elements = place.elements(arrays[place.name]).copy()
                elements[cells] = number_of(constant, place.dtype.element)
                arrays[place.name] = place.array(elements, place.new_shape)
            fixed = self.fix_padding(placement, sample, arrays, limit)
            yield program, arrays if fixed is None else fixed

    def run(
        self,
        func: PrimFunc,
        numbers: Mapping[str, Number],
        arrays: Mapping[str, Array],
        filling: Filling,
        limit: int,
        readable: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Result:
        """One run, paid for. Raises Fault, NotComparable."""
        self.spent += sum(a.size for a in arrays.values()) + 50
        try:
            arguments = {**numbers_of(func, numbers), **arrays}
            result = run(func, arguments, filling=filling, readable=readable, limit=limit, plain=self.plain)
        except LayoutproofError as problem:
            first = problem.diagnostics[0]
            if first.code == codes.NOT_INTERPRETED:
                raise NotComparable(first.message) from problem
            self.spent += limit if first.code == codes.RUN_LIMIT else 0
            raise _Stopped(first.message) from problem
        self.spent += result.iterations * (1 if func is self.rewrite.old or func is self.rewrite.new else _WATCHED)
        return result

    def looked_at(self, placement: Placement) -> tuple[LookedAt, ...]:
        """The cells that are looked at, where not all are."""
        return ()

    def noted(
        self, func: PrimFunc, arguments: Mapping[str, object], notes: Sequence[str], limit: int
    ) -> dict[str, Array]:
        """The buffers for notes, by name, after a run of a program with notes. Raises Fault, LayoutproofError."""
        arrays = run(func, arguments, filling=Filling(), limit=limit).arrays
        return {name: arrays[name] for name in notes}

    def new_arguments(
        self, placement: Placement, sample: Sample, old: Mapping[str, Array], limit: int, glance: int | None = None
    ) -> list[tuple[Filling, dict[str, Array]]]:
        """The new program's arrays for each filling; padding without a record is filled like undefined values."""
        base = self.new_arrays(placement, sample, old)
        unknown = [p for p in placement.places if not p.recorded and p.new_padding().any()]
        fillings = self.fillings[1] if not unknown else all_fillings()
        if glance is not None:
            fillings = tuple(fillings[k] for k in sorted({0, glance % len(fillings)}))
        result = []
        for filling in fillings:
            arrays = dict(base)
            for place in unknown:
                arrays[place.name] = _filled(place, base[place.name], filling)
            fixed = self.fix_padding(placement, sample, arrays, limit)
            result.append((filling, arrays if fixed is None else fixed))
        return result

    def fix_padding(
        self, placement: Placement, sample: Sample, arrays: dict[str, Array], limit: int
    ) -> dict[str, Array] | None:
        """The arrays with padding that callers may fill changed to satisfy the new program's assumptions."""
        program = self.repairs[1]
        if program is None or not any(p.then for p in placement.places):
            return None
        changed = repaired(program, {**numbers_of(program, sample.numbers), **arrays}, limit)
        if changed is None:
            return None
        result = {}
        for place in placement.places:
            elements, wanted = place.elements(arrays[place.name]).copy(), place.elements(changed[place.name])
            free = place.free_padding()
            elements[free] = wanted[free]
            result[place.name] = place.array(elements, place.new_shape)
        return result

    def judged_fault(
        self,
        fault: Fault,
        placement: Placement,
        sample: Sample,
        arguments: Mapping[str, Array],
        filling: Filling,
        limit: int,
    ) -> Outcome:
        """A fault that only the new program has, or why it does not count."""
        if fault.kind is FaultKind.UNDEF:
            # That an undefined value decides something is no event of the program's meaning.
            return Verdictless(str(fault))
        is_assumed = fault.kind is FaultKind.ASSUMPTION
        if is_assumed and self.reads_padding_first(placement, sample, arguments, filling, limit):
            # Other contents of the padding might satisfy the assumption.
            return Verdictless(str(fault))
        return Failure(sample, fault=fault)

    def reads_padding_first(
        self, placement: Placement, sample: Sample, arguments: Mapping[str, Array], filling: Filling, limit: int
    ) -> bool:
        """Whether the new program looks at padding that a caller may fill as he likes before the fault."""
        free = {p.name: p.free_padding() for p in placement.places if p.then}
        free = {name: cells for name, cells in free.items() if cells.any()}
        if not free:
            return False
        if any(p.dtype.lanes > 1 for p in placement.places if p.name in free):
            return True
        masks = {p.name: ~free[p.name].reshape(p.new_shape) for p in placement.places if p.name in free}
        numbers = numbers_of(self.rewrite.new, sample.numbers)
        try:
            run(self.rewrite.new, {**numbers, **arguments}, filling=filling, readable=masks, limit=limit)
        except Fault as again:
            return again.kind is FaultKind.FORBIDDEN
        return True

    def compare(
        self,
        placement: Placement,
        before: Sequence[Result],
        after: Sequence[Result],
        needed: int,
        only_firm: bool = False,
    ) -> Difference | None:
        """The first observed scalar that differs in `needed` runs, in the order of the parameters and of the new
        program's cells.

        With `only_firm`, what the runs left undefined counts for nothing.
        """
        for place in placement.places:
            found = self.compare_elements(place, before, after, needed, only_firm)
            if found is not None:
                return found
        for place in placement.places:
            found = _padding_difference(placement, place, after, needed, only_firm) if place.written else None
            if found is not None:
                return found
        return None

    def compare_elements(
        self, place: Place, before: Sequence[Result], after: Sequence[Result], needed: int, only_firm: bool
    ) -> Difference | None:
        """The first difference in an element that the old program has."""
        old = [place.elements(r.arrays[place.name]) for r in before]
        counts = place.observed[:, np.newaxis] & np.ones_like(old[0], dtype=np.bool_)
        for result, values in zip(before, old, strict=True):
            counts &= _defined(place, result) | (self.only_arithmetic and not only_firm)
            counts &= same_values(values, old[0])
        places = place.new_places
        new = [place.elements(r.arrays[place.name])[places] for r in after]
        differs = [~self.strictness.same(old[0], values) & counts for values in new]
        if only_firm:
            differs = [d & _defined(place, r)[places] for d, r in zip(differs, after, strict=True)]
        wrong = _disagreeing(differs, needed)
        if wrong is None:
            return None
        element, lane = wrong
        value = next(v[element, lane] for v, d in zip(new, differs, strict=True) if d[element, lane])
        logical = np.flatnonzero(place.logical_places == element)
        index = index_of(int(logical[0]), place.logical_shape) if logical.size else None
        old_index, new_index = index_of(element, place.old_shape), index_of(int(places[element]), place.new_shape)
        return Difference(place.name, index, old_index, new_index, lane, old[0][element, lane].item(), value.item())


def _defined(place: Place, result: Result) -> NDArray[np.bool_]:
    """Which scalars of a parameter hold no undefined value at the end of a run."""
    return np.asarray(place.elements(result.states[place.name]) == DEFINED)


def _padding_difference(
    placement: Placement, place: Place, after: Sequence[Result], needed: int, only_firm: bool
) -> Difference | None:
    """The first cell of added padding that violates its contract at the end, under whatever fast-math assumptions."""
    expected = [list(placement.required(place, r.arrays[place.name])) for r in after]
    for number, (places, _, contract) in enumerate(expected[0] if expected else ()):
        wanted = [required[number][1] for required in expected]
        held = [place.elements(r.arrays[place.name])[places] for r in after]
        differs = [~same_values(w, h) for w, h in zip(wanted, held, strict=True)]
        if only_firm:
            known = [_defined(place, r) for r in after]
            # A contract that mentions the buffer may load any of its elements.
            differs = [
                d & k[places] & (next(loads_in(contract.value), None) is None or k.all())
                for d, k in zip(differs, known, strict=True)
            ]
        wrong = _disagreeing(differs, needed)
        if wrong is not None:
            element, lane = wrong
            run_ = next(k for k, d in enumerate(differs) if d[element, lane])
            values = wanted[run_][element, lane].item(), held[run_][element, lane].item()
            return Difference(
                place.name, None, None, index_of(int(places[element]), place.new_shape), lane, *values, contract.text
            )
    return None


def _disagreeing(differs: Sequence[NDArray[np.bool_]], needed: int) -> tuple[int, int] | None:
    """The first scalar (element, lane) that differs in at least `needed` of the runs."""
    if not differs or differs[0].size == 0:
        return None
    often = np.sum(differs, axis=0) >= needed
    if not often.any():
        return None
    element, lane = np.unravel_index(int(often.argmax()), often.shape)
    return int(element), int(lane)


def index_of(element: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of an element, by its row-major number."""
    return tuple(int(i) for i in np.unravel_index(element, shape)) if shape else ()


def element_of(index: Sequence[int], shape: tuple[int, ...]) -> int:
    """The row-major number of an index."""
    return int(np.ravel_multi_index(tuple(index), shape)) if shape else 0


def _filled(place: Place, array: Array, filling: Filling) -> Array:
    """An array whose added padding holds a filling's values."""
    filling.restart()
    elements = place.elements(array).copy()
    for element in np.flatnonzero(place.new_padding()):
        for lane in range(place.dtype.lanes):
            elements[element, lane] = filling.value(place.dtype.element)
    return place.array(elements, place.new_shape)


def holds(where: Expr | None, numbers: Mapping[str, Number]) -> bool:
    """Whether a condition on symbols holds of some numbers."""
    if where is None:
        return True
    try:
        return bool(evaluate(where, {n: v for n, v in numbers.items() if isinstance(v, int)}))
    except (Trap, KeyError):
        return False


def numbers_of(func: PrimFunc, numbers: Mapping[str, Number]) -> dict[str, Number]:
    """The numbers that a function takes: those of its scalar parameters and of the names in its shapes."""
    layouts = (expr for b in func.buffers for expr in (*b.shape, *b.strides, b.elem_offset))
    known = {p.name for p in func.params} | {v.name for expr in layouts for v in free_variables(expr)}
    return {name: value for name, value in numbers.items() if name in known}
