"""What is known of one program while its obligations are proved, and the one way to ask about it: cheap engine first,
exact ones next.

A search looks for an instance where something bad holds. Intervals answer most of them, integer sets nearly all, z3
those with products of variables. Part of the trust base.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interval import Interval, interval_of, of_type
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import ForKind
from layoutproof.ir.visit import free_variables, substitute
from layoutproof.verify.isl.encode import try_constant
from layoutproof.verify.isl.instance_search import Model
from layoutproof.verify.isl.space import DEFAULT_OPERATIONS
from layoutproof.verify.program.accesses import read_program
from layoutproof.verify.program.evidence import UNRECORDED, Gathered, NoInstance, Setting
from layoutproof.verify.program.instances import Dim, Guard, IterationDomain, Program, domain_ranges
from layoutproof.verify.program.questions import Because, Search, above, below, nothing
from layoutproof.verify.smt.index_arithmetic import RLIMIT, search_instances
from layoutproof.verify.verdict.verdict import Claim, Open, Proved, Related, Status, Verdict

STRUCTURE = "symbolic"
INTERVALS = "intervals"
# Sizes that symbols take in turn when a small instance is tried.
_SMALL_SIZES = ((2, 3, 4), (3, 2), (1,), (4,))


class Facts:
    """A program with its symbols' ranges and the engines' state.

    `operations` bounds each question to isl, `rlimit` each question to z3. `more` are further conditions on symbols,
    assumed for what is proved with these facts only. What engines answer is `gathered` for the verdicts.
    """

    def __init__(
        self,
        program: Program,
        operations: int = DEFAULT_OPERATIONS,
        rlimit: int = RLIMIT,
        more: tuple[Expr, ...] = (),
        gathered: Gathered = UNRECORDED,
    ) -> None:
        self.program, self.gathered = program, gathered
        self._operations, self._rlimit, self._more = operations, rlimit, more
        self.ranges = _symbol_ranges(program)
        self.assumed = (*program.assumed, *_extents_not_negative(program.function), *more)
        bounds: dict[Var, tuple[int | None, int | None]] = {v: (r.low, r.high) for v, r in self.ranges.items()}
        self._bounds = bounds
        # Evidence is gathered by a model of its own.
        self.model = (
            Model(program.symbols, self.assumed, bounds, operations, gathered)
            if gathered.is_recording
            else Model.of(program.symbols, self.assumed, bounds, operations)
        )
        self._domain_ranges: dict[tuple[object, ...], dict[Var, Interval]] = {}

    @property
    def setting(self) -> Setting:
        """What is taken for granted of the symbols, as evidence has it."""
        return Setting.of(self.assumed, self._bounds)

    @staticmethod
    def of(
        function: PrimFunc,
        where: Expr | None = None,
        called_as: PrimFunc | None = None,
        *,
        gathered: Gathered = UNRECORDED,
    ) -> Facts:
        """The facts of a function; `where` is a condition on its symbols that callers vouch for. `called_as` is the
        function whose callers they are, itself unless given: a size of what these pass is not negative, also where a
        layout hides it.
        """
        program = read_program(function, where)
        sizes = sizes_of(function if called_as is None else called_as)
        return Facts(
            program, more=tuple(symbol >= 0 for symbol in program.symbols if symbol.name in sizes), gathered=gathered
        )

    def of_program(self, program: Program) -> Facts:
        """The same facts of a program that says more of its instances."""
        return Facts(program, self._operations, self._rlimit, self._more, self.gathered)

    def with_assumptions(self, *more: Expr) -> Facts:
        """The same program with more assumed of its symbols."""
        return Facts(self.program, self._operations, self._rlimit, more, self.gathered)

    def interval(self, expr: Expr, domain: IterationDomain) -> Interval:
        """An interval around an expression on an iteration domain, without its guards."""
        key = (domain.dims, domain.unknowns)
        ranges = self._domain_ranges.get(key)
        if ranges is None:
            ranges = self._domain_ranges[key] = domain_ranges(domain, self.ranges)
        return interval_of(expr, ranges)

    def negative_names(self, shape: Sequence[Expr], where: Expr | None, *maps: IndexMap) -> frozenset[str]:
        """The names in a question about index maps that may be negative where the box of this shape has a cell.

        The engines for index maps take all names but the indices to be at least 0, as sizes that callers pass are; a
        scalar parameter that only a temporary's shape has may not be.
        """
        inside = IterationDomain(
            tuple(
                Dim(Var(f"cell{axis}'", e.dtype), const(0, e.dtype), e, ForKind.SERIAL) for axis, e in enumerate(shape)
            )
        )
        symbols = {v.name: v for v in self.program.symbols}
        asked = (*shape, *(() if where is None else (where,)))
        names = {v.name for e in asked for v in free_variables(e)}
        names |= {v.name for m in maps for o in m.outputs for v in free_variables(o) if v not in m.inputs}
        return frozenset(
            name for name in sorted(names) if name not in symbols or self._is_below_0(symbols[name], inside)
        )

    def _is_below_0(self, symbol: Var, domain: IterationDomain) -> bool:
        return self.ranges[symbol].low < 0 and not self.search(domain, below(symbol, 0)).is_empty

    def search(self, domain: IterationDomain, *conditions: Expr) -> Search:
        """An instance of the iteration domain where every condition holds."""
        found = self._confirmed(self.model.search(domain, *conditions), domain, (conditions,))
        return found if _certain(found) else self._z3(found, domain, conditions)

    def search_outside(self, domain: IterationDomain, expr: Expr, low: int, high: int) -> Search:
        """An instance where `expr` is below `low` or above `high`; both bounds fit 64 bits."""
        interval = self.interval(expr, domain)
        if low <= interval.low and interval.high <= high:
            return self.by_intervals(domain, expr, low, high)
        found = self.model.outside(domain, expr, low, high)
        return found if _certain(found) else self.decide(found, domain, below(expr, low), above(expr, high))

    def by_intervals(self, domain: IterationDomain, expr: Expr, low: int, high: int) -> Search:
        """The certainty, which intervals gave, that `expr` is never below `low` nor above `high`."""
        if self.gathered.is_recording:
            self._record(domain, ((below(expr, low),), (above(expr, high),)), INTERVALS)
        return nothing(INTERVALS)

    def excluded(self, domain: IterationDomain, *conditions: Expr) -> None:
        """Note that intervals, looked at elsewhere, allow no instance where all conditions hold."""
        self._record(domain, (conditions,), INTERVALS)

    def _record(self, domain: IterationDomain, either: tuple[tuple[Expr, ...], ...], engine: str) -> None:
        if self.gathered.is_recording:
            self.gathered.record(NoInstance(self.setting, domain, either, engine))

    def decide(self, found: Search, domain: IterationDomain, *either: Expr) -> Search:
        """What z3 says where `found` is uncertain: an instance where one of the conditions holds."""
        found = self._confirmed(found, domain, [(condition,) for condition in either])
        if _certain(found):
            return found
        for condition in either:
            second = self._z3(found, domain, (condition,))
            if not second.is_empty:
                return second
        return nothing("z3")

    def _confirmed(self, found: Search, domain: IterationDomain, either: Sequence[Sequence[Expr]]) -> Search:
        """`found`, certain where its point turns out to satisfy everything when it is evaluated."""
        if found.point is None or found.exact or not self.happens(domain, found.point):
            return found
        point = found.point
        holds = any(all(self.holds(condition, point) is True for condition in conditions) for conditions in either)
        return replace(found, exact=True, reason=None) if holds else found

    def _z3(self, found: Search, domain: IterationDomain, conditions: tuple[Expr, ...]) -> Search:
        """A point of a small instance; else z3's answer; where it has none, the point that was found before, if any."""
        small = self._small(domain, conditions)
        if small is not None:
            return small
        second = search_instances(domain, self.assumed, self._bounds, conditions, self._rlimit)
        if second.is_empty:
            self._record(domain, (conditions,), second.engine)
        if second.is_empty or second.point is not None:
            return second
        return found if found.point is not None else second

    def _small(self, domain: IterationDomain, conditions: Sequence[Expr]) -> Search | None:
        """A point with the symbols at a few small values, where their products are numbers; or None."""
        symbols = self.program.symbols
        for sizes in _SMALL_SIZES if symbols else ():
            numbers = {v: sizes[k % len(sizes)] for k, v in enumerate(symbols)}
            values: dict[Var, Expr] = {v: const(number, v.dtype) for v, number in numbers.items()}
            dims = tuple(
                Dim(d.var, substitute(d.start, values), substitute(d.extent, values), d.kind, d.lane)
                for d in domain.dims
            )
            guards = tuple(Guard(substitute(g.condition, values), g.holds, g.group) for g in domain.guards)
            model = Model((), [substitute(a, values) for a in self.assumed], {}, self._operations)
            found = model.search(
                IterationDomain(dims, guards, unknowns=domain.unknowns), *(substitute(c, values) for c in conditions)
            )
            if found.point is not None:
                point = {**found.point, **{v.name: number for v, number in numbers.items()}}
                confirmed = self._confirmed(Search(point, False, found.reason, found.engine), domain, (conditions,))
                if confirmed.exact:
                    return confirmed
        return None

    def watch(self) -> Stopwatch:
        """For a verdict that is reached from these facts: it takes what was gathered for it."""
        return Stopwatch(self.gathered)

    # Replay

    def happens(self, domain: IterationDomain, point: Mapping[str, int]) -> bool:
        """Whether the instance at `point`, which also gives unknowns values, exists: all conditions are evaluated."""
        try:
            return all(self._checks(domain, point))
        except (Trap, KeyError, TypeError):
            return False

    def holds(self, condition: Expr, point: Mapping[str, int]) -> bool | None:
        """The truth of a condition at a point; None where evaluating it traps."""
        try:
            return bool(evaluate(condition, point))
        except (Trap, KeyError, TypeError):
            return None

    def _checks(self, domain: IterationDomain, point: Mapping[str, int]) -> Iterator[bool]:
        for variable, interval in self.ranges.items():
            yield point[variable.name] in interval
        for dim in domain.dims:
            start, extent = int(evaluate(dim.start, point)), int(evaluate(dim.extent, point))
            yield start <= point[dim.var.name] < start + extent
        for condition in (*self.assumed, *(g.as_expr for g in domain.guards)):
            yield bool(evaluate(condition, point))


def _symbol_ranges(program: Program) -> dict[Var, Interval]:
    extents = {extent for buffer in program.function.buffers for extent in buffer.shape if isinstance(extent, Var)}
    return {v: Interval(0, v.dtype.max_int) if v in extents else of_type(v.dtype) for v in program.symbols}


def sizes_of(function: PrimFunc) -> frozenset[str]:
    """The symbols that are an extent of a parameter, or of the logical shape in its layout record."""
    parameters = {buffer.data.name for buffer in function.buffers}
    stated = (
        extent for name, kept in layout_records(function).items() if name in parameters for extent in kept.logical_shape
    )
    shown = (extent.name for buffer in function.buffers for extent in buffer.shape if isinstance(extent, Var))
    # A scalar that is passed may be negative, whatever a record says; only an extent is told by what is there.
    scalars = {param.name for param in function.params}
    return frozenset(
        (*shown, *(extent.name for extent in stated if isinstance(extent, Var) and extent.name not in scalars))
    )


def _extents_not_negative(function: PrimFunc) -> tuple[Expr, ...]:
    """What holds of every buffer that a caller can pass: no extent is negative."""
    found: dict[Expr, None] = {}
    for buffer in function.buffers:
        for extent in buffer.shape:
            if not isinstance(extent, Var) and try_constant(extent) is None:
                found[extent >= 0] = None
    return tuple(found)


def _certain(found: Search) -> bool:
    return found.is_empty or (found.point is not None and found.exact)


class Stopwatch:
    """Seconds since it was made, and evidence that was `gathered`, for a verdict's record."""

    def __init__(self, gathered: Gathered = UNRECORDED) -> None:
        self.gathered = gathered
        self._start = time.perf_counter()

    def seconds(self) -> float:
        """Elapsed wall-clock time."""
        return time.perf_counter() - self._start


def proved(claim: Claim, engine: str, watch: Stopwatch, reason: str | None = None) -> Verdict:
    """The verdict that a claim holds; `reason` says what it rests on, where there is something to say."""
    return Verdict(
        Status.PROVED, claim, engine, reason=reason, seconds=watch.seconds(), evidence=watch.gathered.taken()
    )


def unknown(claim: Claim, engine: str, reason: str, watch: Stopwatch, *because: Because) -> Verdict:
    """The verdict that nothing is known, and why."""
    watch.gathered.taken()
    return Verdict(Status.UNKNOWN, claim, engine, reason=reason, seconds=watch.seconds(), because=frozenset(because))


def left_open(claim: Claim, found: Search, watch: Stopwatch, said: str = "") -> Verdict:
    """The verdict that a search left open, for the reason that it gave; `said` stands before it."""
    reason = found.reason or ("no answer" if found.point is None else "the point that was found does not replay")
    return unknown(claim, found.engine, f"{said}{reason}", watch, *found.because)


def refuted(
    claim: Claim, engine: str, counterexample: Mapping[str, Any], reason: str, watch: Stopwatch, related: Related = ()
) -> Verdict:
    """The verdict that a claim fails, with the instance at which it does; `reason` says it in words."""
    watch.gathered.taken()
    return Verdict(
        Status.REFUTED,
        claim,
        engine,
        reason=reason,
        counterexample=counterexample,
        seconds=watch.seconds(),
        related=related,
    )


def values_text(point: Mapping[str, int]) -> str:
    """`i = 3, n = 4`."""
    return ", ".join(f"{name} = {number}" for name, number in point.items())


def visible(domain: IterationDomain, point: Mapping[str, int], program: Program) -> dict[str, int]:
    """The values of a point that a reader of the program knows: loops outermost first, then symbols."""
    names = [dim.var.name for dim in domain.dims] + [v.name for v in program.symbols]
    return {name: point[name] for name in names if name in point}


def check_transparent(program: Program) -> Proved | Open:
    """Whether all accesses of this program are known: it has no opaque part, or the first one is the reason."""
    for obstacle in program.obstacles:
        return Open(f"{obstacle.what} may touch anything ({obstacle.spot.place_of(obstacle.node)})")
    return Proved()
