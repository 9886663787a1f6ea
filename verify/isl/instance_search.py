"""Searches in iteration domains by integer sets: an instance where something holds, or one that nothing covers.

Dims and unknowns are dimensions, the program's symbols parameters. What cannot be encoded is left out, which only adds
instances: an empty answer then still proves, a point no longer refutes (`exact`). Part of the trusted computing base.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

from layoutproof.ir.expr import Expr, Var
from layoutproof.verify.isl.decode import Decoder
from layoutproof.verify.isl.encode import Encoder, NotQuasiAffine
from layoutproof.verify.isl.isl_evidence import choose_witnesses
from layoutproof.verify.isl.operations import coalesced, point_of
from layoutproof.verify.isl.space import (
    DEFAULT_OPERATIONS,
    BudgetExceeded,
    NamedSpace,
    integer,
    isl,
    limited,
    new_context,
    value,
)
from layoutproof.verify.program.evidence import UNRECORDED, Covered, Gathered, NoInstance, Setting, Unstated, Witness
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, Unknown, ranges_of
from layoutproof.verify.program.questions import Cover, Search, above, below, no_answer, nothing

ENGINE = "isl"
_SMALL = 12


@dataclass(slots=True)
class DomainSet:
    """An iteration domain as a set; `missing` and `loose` tell what of it, and of assumptions, was not encoded."""

    space: NamedSpace
    encoder: Encoder
    points: isl.Set
    missing: NotQuasiAffine | None
    loose: NotQuasiAffine | None


_Key = tuple[tuple[Dim, ...], tuple[Guard, ...], tuple[Unknown, ...]]
_MOST_QUESTIONS, _MOST_PLACES, _MOST_SETTINGS = 8_192, 2_048, 4
_MOST_MODELS, _MOST_DOMAINS, _MOST_ASSUMED = 4, 1_024, 256


class _NoInstances:
    """Questions to which the answer was that there is no instance, the last ones of this process, each with what was
    assumed of symbols: where more is assumed there is none either.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[frozenset[Expr], ...]] = OrderedDict()
        self._places: OrderedDict[Hashable, int] = OrderedDict()
        self._numbers = count()
        self._assumed: OrderedDict[frozenset[Expr], frozenset[Expr]] = OrderedDict()

    def one_of(self, assumed: frozenset[Expr]) -> frozenset[Expr]:
        """What is assumed as one object wherever it is the same: it takes long to compare, too."""
        found = self._assumed.setdefault(assumed, assumed)
        if len(self._assumed) > _MOST_ASSUMED:
            self._assumed.popitem(last=False)
        return found

    def number_of(self, place: Hashable) -> int:
        """The number of the instances that questions are about: it takes long to compare these again and again."""
        number = self._places.get(place)
        if number is None:
            number = self._places[place] = next(self._numbers)
            if len(self._places) > _MOST_PLACES:
                self._places.popitem(last=False)
        return number

    def has(self, question: Hashable, assumed: frozenset[Expr]) -> bool:
        """Whether the answer follows from an earlier one."""
        known = self._known.get(question)
        if known is None or not any(each is assumed or each <= assumed for each in known):
            return False
        self._known.move_to_end(question)
        return True

    def add(self, question: Hashable, assumed: frozenset[Expr]) -> None:
        """Remember an answer."""
        self._known[question] = (assumed, *self._known.get(question, ()))[:_MOST_SETTINGS]
        self._known.move_to_end(question)
        if len(self._known) > _MOST_QUESTIONS:
            self._known.popitem(last=False)


_NO_INSTANCES = _NoInstances()


class Model:
    """One program's symbols, their useful `ranges`, and `assumed` conditions, in one context for all questions."""

    def __init__(
        self,
        symbols: Sequence[Var],
        assumed: Sequence[Expr],
        ranges: Mapping[Var, tuple[int | None, int | None]],
        operations: int = DEFAULT_OPERATIONS,
        gathered: Gathered = UNRECORDED,
    ) -> None:
        self._ctx = new_context()
        self._operations, self._gathered = operations, gathered
        self._params = tuple(s.name for s in symbols)
        self._variables: dict[str, Expr] = {s.name: s for s in symbols}
        self._assumed = tuple(assumed)
        self._ranges = {s.name: ranges[s] for s in symbols if s in ranges}
        self._setting = Setting.of(assumed, {s: ranges[s] for s in symbols if s in ranges})
        self._domains: dict[_Key, DomainSet] = {}
        self._given = _NO_INSTANCES.one_of(frozenset(assumed))
        self._symbols = (self._params, tuple(self._ranges.items()))
        self._numbers: dict[_Key, int] = {}

    def search(self, domain: IterationDomain, *conditions: Expr) -> Search:
        """An instance of the iteration domain where every condition holds."""
        question = self._question(domain, conditions)
        if self._is_empty(question):
            return nothing(ENGINE)
        try:
            with self._budget():
                found = self._domain(domain)
                points, missing = self._restrict(found, conditions)
                if not points.is_empty():
                    return self._found(found, points, missing)
                return self._none(domain, (conditions,), question)
        except BudgetExceeded as problem:
            return no_answer(ENGINE, str(problem), *problem.because)

    def outside(self, domain: IterationDomain, expr: Expr, low: int, high: int) -> Search:
        """An instance where `expr` is below `low` or above `high`."""
        question = self._question(domain, (expr, low, high))
        if self._is_empty(question):
            return nothing(ENGINE)
        try:
            with self._budget():
                found = self._domain(domain)
                function = found.encoder.function(expr)
                too_low = function.lt_set(found.encoder.constant(low))
                too_high = function.gt_set(found.encoder.constant(high))
                points = found.points.intersect(too_low.union(too_high))
                if not points.is_empty():
                    return self._found(found, points, found.missing)
                either = ((below(expr, low),), (above(expr, high),)) if self._gathered.is_recording else ()
                return self._none(domain, either, question)
        except NotQuasiAffine as problem:
            return no_answer(ENGINE, problem.reason)
        except BudgetExceeded as problem:
            return no_answer(ENGINE, str(problem), *problem.because)

    def symbols_without(self, domain: IterationDomain, *either: Expr) -> Expr | None:
        """The condition on symbols under which no instance satisfies any of the conditions, beside what is assumed;
        None if it cannot be told exactly.
        """
        try:
            with self._budget():
                found = self._domain(domain)
                if found.missing is not None:
                    return None
                bad = found.space.universe().complement()
                for condition in either:
                    bad = bad.union(found.points.intersect(found.encoder.set_of(condition)))
                context: isl.Set = found.space.universe()
                for name, (low, high) in self._ranges.items():
                    context = context.intersect(self._between(found.encoder, Var(name), low, high))
                if found.loose is None:
                    for condition in self._assumed:
                        context = context.intersect(found.encoder.set_of(condition))
                assumed = context.params()
                good = coalesced(bad.params().complement().gist(assumed))
                stated = Decoder(found.space, self._variables).condition(good)
                read = Encoder(found.space).set_of(stated).params()
                return stated if read.intersect(assumed).is_equal(good.intersect(assumed)) else None
        except (NotQuasiAffine, BudgetExceeded):  # no condition is derived then, which is what None says
            return None

    def uncovered(self, domain: IterationDomain, covers: Iterable[Cover], *conditions: Expr) -> Search:
        """An instance of `domain` where every condition holds that no cover reaches (one not encoded reaches none)."""
        try:
            with self._budget():
                found = self._domain(domain)
                left, missing = self._restrict(found, conditions)
                left = coalesced(left)
                tried: list[Cover] = []
                for cover in covers:
                    if left.is_empty():
                        break
                    tried.append(cover)
                    reached = self._reached(found.space.dims, cover)
                    if reached is None:
                        missing = missing if missing is not None else _NO_COVER
                        continue
                    left = coalesced(left.subtract(reached))
                if left.is_empty():
                    return self._all_covered(domain, conditions, tried)
                return self._found(found, left, missing)
        except BudgetExceeded as problem:
            return no_answer(ENGINE, str(problem), *problem.because)

    def _question(self, domain: IterationDomain, asked: tuple[Hashable, ...]) -> Hashable:
        """What an answer depends on, besides what is assumed of symbols."""
        key = (domain.dims, domain.guards, domain.unknowns)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = _NO_INSTANCES.number_of((self._symbols, key))
        return number, asked

    def _is_empty(self, question: Hashable) -> bool:
        # Evidence is gathered from the sets themselves.
        return not self._gathered.is_recording and _NO_INSTANCES.has(question, self._given)

    def _none(self, domain: IterationDomain, either: tuple[tuple[Expr, ...], ...], question: Hashable) -> Search:
        _NO_INSTANCES.add(question, self._given)
        self._gathered.record(NoInstance(self._setting, domain, either, ENGINE))
        return nothing(ENGINE)

    def _all_covered(self, domain: IterationDomain, conditions: tuple[Expr, ...], covers: Sequence[Cover]) -> Search:
        def witnesses() -> list[Witness]:
            return self.witnesses(domain, covers, *conditions)

        self._gathered.record(Covered(self._setting, domain, conditions, tuple(covers), witnesses, ENGINE))
        return nothing(ENGINE)

    def witnesses(self, domain: IterationDomain, covers: Sequence[Cover], *conditions: Expr) -> list[Witness]:
        """Which cover reaches each instance of `domain` where the conditions hold, and at which further dims.

        Raises Unstated where isl gives up, or gives numbers that are too large to write down.
        """
        try:
            with self._budget():
                found = self._domain(domain)
                left, _ = self._restrict(found, conditions)
                reached = [(number, self._points_of(cover)) for number, cover in enumerate(covers)]
                return choose_witnesses(
                    found.space, left, [(number, *points) for number, points in reached if points is not None]
                )
        except BudgetExceeded as problem:
            raise Unstated(str(problem)) from problem

    # Sets

    @staticmethod
    def of(
        symbols: Sequence[Var],
        assumed: Sequence[Expr],
        ranges: Mapping[Var, tuple[int | None, int | None]],
        operations: int = DEFAULT_OPERATIONS,
    ) -> Model:
        """The model for questions of which no evidence is gathered. Programs of which the same is known share one, with
        the sets of the iteration domains that they share: the two of a rewrite, and those of a schedule's steps.
        """
        key = (tuple(symbols), tuple(assumed), tuple(ranges.items()), operations)
        found = _MODELS.pop(key, None)
        if found is None:
            found = Model(symbols, assumed, ranges, operations)
        _MODELS[key] = found
        if len(_MODELS) > _MOST_MODELS:
            _MODELS.popitem(last=False)
        return found

    @contextmanager
    def _budget(self) -> Iterator[None]:
        try:
            with limited(self._operations, self._ctx):
                yield
        except BudgetExceeded:
            # Objects of this context may be half changed: none is used again.
            self._ctx = new_context()
            self._domains = {}
            raise

    def _reached(self, wanted: Sequence[str], cover: Cover) -> isl.Set | None:
        """The points over the `wanted` dims that a cover reaches; None if that is not exact."""
        covered = self._points_of(cover)
        if covered is None:
            return None
        names, points = covered
        extra = [k for k, name in enumerate(names) if name not in wanted]
        for position in reversed(extra):
            points = points.project_out(isl.dim_type.set, position, 1)
        kept = [name for name in names if name in wanted]
        if kept != list(wanted):
            raise ValueError(f"a cover over {kept} for instances over {list(wanted)}")
        return points

    def _points_of(self, cover: Cover) -> tuple[tuple[str, ...], isl.Set] | None:
        """A cover's instances, over all its dims and unknowns; None if that is not exact."""
        found = self._domain(cover.domain)
        if found.missing is not None:
            return None
        points = found.points
        for condition in cover.conditions:
            try:
                points = points.intersect(found.encoder.set_of(condition))
            except NotQuasiAffine:
                return None
        for inner in cover.without:
            excluded = self._reached(found.space.dims, inner)
            if excluded is None:
                return None
            points = coalesced(points.subtract(excluded))
        return found.space.dims, points

    def _restrict(self, found: DomainSet, conditions: Sequence[Expr]) -> tuple[isl.Set, NotQuasiAffine | None]:
        points, missing = found.points, found.missing
        for condition in conditions:
            try:
                points = points.intersect(found.encoder.set_of(condition))
            except NotQuasiAffine as problem:
                missing = problem
        return points, missing

    def _domain(self, domain: IterationDomain) -> DomainSet:
        key = (domain.dims, domain.guards, domain.unknowns)
        known = self._domains.get(key)
        if known is None:
            known = self._encode(domain)
            if len(self._domains) >= _MOST_DOMAINS:
                self._domains.clear()
            self._domains[key] = known
        return known

    def _encode(self, domain: IterationDomain) -> DomainSet:
        # Accesses in one nest of loops differ in guards only, and what is asked is often one more guard.
        box = self._domain(replace(domain, guards=())) if domain.guards else self._boxed(domain)
        points, missing = box.points, box.missing
        for guard in domain.guards:
            try:
                points = points.intersect(box.encoder.set_of(guard.condition, guard.holds))
            except NotQuasiAffine as problem:
                missing = problem
        return DomainSet(box.space, box.encoder, points, missing, box.loose)

    def _boxed(self, domain: IterationDomain) -> DomainSet:
        """All values of the loops and unknowns of a domain."""
        names = (*(dim.var.name for dim in domain.dims), *(u.var.name for u in domain.unknowns))
        space = NamedSpace(self._ctx, names, self._params)
        plain = Encoder(space)
        points: isl.Set = space.universe()
        missing: NotQuasiAffine | None = None
        for name, (low, high) in self._ranges.items():
            points = points.intersect(self._between(plain, Var(name), low, high))
        for unknown in domain.unknowns:
            points = points.intersect(
                self._between(plain, unknown.var, unknown.var.dtype.min_int, unknown.var.dtype.max_int)
            )
        for dim in domain.dims:
            variable = plain.function(dim.var)
            try:
                start = plain.function(dim.start)
                points = points.intersect(variable.ge_set(start))
                points = points.intersect(variable.lt_set(start.add(plain.function(dim.extent))))
            except NotQuasiAffine as problem:
                missing = problem
        # Bitwise operations in guards need bounds of their operands, which the loops give.
        encoder = Encoder(space, points, ranges=ranges_of(domain.dims))
        loose: NotQuasiAffine | None = None
        for condition in self._assumed:
            try:
                points = points.intersect(encoder.set_of(condition))
            except NotQuasiAffine as problem:
                loose = problem
        return DomainSet(space, encoder, points, missing, loose)

    @staticmethod
    def _between(encoder: Encoder, variable: Var, low: int | None, high: int | None) -> isl.Set:
        function = encoder.function(variable)
        result: isl.Set = encoder.space.universe()
        if low is not None:
            result = result.intersect(function.ge_set(encoder.constant(low)))
        if high is not None:
            result = result.intersect(function.le_set(encoder.constant(high)))
        return result

    def _found(self, found: DomainSet, points: isl.Set, missing: NotQuasiAffine | None) -> Search:
        if points.is_empty():
            return nothing(ENGINE)
        point = self._sample(found.space, points)
        missing = missing if missing is not None else found.loose
        return Search(point, missing is None, None if missing is None else missing.reason, ENGINE)

    def _sample(self, space: NamedSpace, points: isl.Set) -> dict[str, int]:
        """A point, with small symbols where possible, for people."""
        chosen = points
        for position in range(len(space.params)):
            small = chosen.upper_bound_val(isl.dim_type.param, position, value(self._ctx, _SMALL))
            if not small.is_empty():
                chosen = small
        picked = point_of(chosen)
        coordinates = {
            name: integer(picked.get_coordinate_val(isl.dim_type.set, k)) for k, name in enumerate(space.dims)
        }
        coordinates.update(
            {name: integer(picked.get_coordinate_val(isl.dim_type.param, k)) for k, name in enumerate(space.params)}
        )
        return coordinates


_MODELS: OrderedDict[Hashable, Model] = OrderedDict()
_NO_COVER = NotQuasiAffine(Var("cell"), "an earlier write could not be expressed")
