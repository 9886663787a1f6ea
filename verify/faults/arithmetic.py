"""Index arithmetic fits its type, and no operation is without a result: divisors are not 0, quotients do not overflow,
shifts stay below the width, floats fit the integers they become. What symbolic sizes cannot show is assumed of every
call. Part of the trust base.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from layoutproof.ir import semantics
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Broadcast, Cast, Expr, FloatImm, IntImm, Not, Select, Var
from layoutproof.ir.interval import Interval
from layoutproof.ir.node import Node
from layoutproof.ir.operators import DIVISIONS, BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, holds_any, rewrite_bottom_up, substitute, walk
from layoutproof.verify.algebra.radix import Polynomial
from layoutproof.verify.faults.bounds import find_outside
from layoutproof.verify.faults.facts import STRUCTURE, Facts, left_open, proved, refuted, unknown, values_text, visible
from layoutproof.verify.faults.float_ranges import FloatRanges
from layoutproof.verify.program.evidence import NoInstance
from layoutproof.verify.program.instances import (
    Arithmetic,
    IterationDomain,
    Program,
    can_trap,
    keeps_range,
)
from layoutproof.verify.program.location import Place
from layoutproof.verify.program.questions import Search, above, at_least, below, no_answer, nothing, same
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Status, Verdict

CLAIM = Claim(ClaimKind.SIZES_FIT, "index arithmetic fits its types")
_SHOWN = 6


def call_assumptions(function: PrimFunc, where: Expr | None = None) -> tuple[Expr, ...]:
    """The expressions of symbols alone that `prove_index_fits` assumes to fit; each call has to check them."""
    return _Sizes(Facts.of(function, where)).assumed


def prove_index_fits(facts: Facts, before: Program | None = None) -> tuple[Verdict, ...]:
    """One verdict when all fits, its reason the assumptions on symbols; else one for each expression that may not.

    What the program `before` computes as index arithmetic at the same instances is no new fault there: where it leaves
    its type, that program has the fault, and its run is none that has to be preserved.
    """
    watch = facts.watch()
    sizes = _Sizes(facts)
    failures: dict[tuple[Expr, Place], Verdict] = {}
    engine = "isl" if sizes.assumed else "intervals"
    known: frozenset[_Certain] | None = None
    for arithmetic, expr, domain in sizes.open:
        found = sizes.find_overflow(arithmetic, expr, domain)
        if found.is_empty:
            engine = found.engine
            continue
        if before is not None and not domain.depends_on_data(expr):
            known = frozenset(_certain_indices(before)) if known is None else known
            if _as_certain(expr, domain) in known:
                continue
        key = (expr, arithmetic.place)
        if key not in failures:
            failures[key] = _overflow(sizes.facts, arithmetic, expr, domain, found)
    return tuple(failures.values()) if failures else (proved(CLAIM, engine, watch, sizes.reason()),)


def assumed_sizes(facts: Facts) -> tuple[Expr, ...]:
    """The conditions on symbols under which index arithmetic is proved to fit its types: preconditions, which the
    verdict on it states.
    """
    return _Sizes(facts).conditions if facts.program.symbols else ()


def _extent_parts(function: PrimFunc) -> Iterator[Expr]:
    """The integer expressions in parameters' shapes: a call states them, whether or not the body does."""
    for buffer in function.buffers:
        for extent in buffer.shape:
            yield from (node for node in walk(extent) if isinstance(node, Expr) and node.dtype.is_integer)


class _Sizes:
    """What is not plain: expressions of symbols alone, which are assumed to fit, and the others, which are proved from
    that (`open`).

    `facts` are the program's with what was assumed.
    """

    def __init__(self, facts: Facts) -> None:
        symbols = set(facts.program.symbols)
        found: dict[tuple[object, object], Expr] = {}
        self.open: list[tuple[Arithmetic, Expr, IterationDomain]] = []
        for arithmetic in facts.program.arithmetic:
            for expr, domain in arithmetic.parts() if arithmetic.is_index else ():
                if not expr.dtype.is_integer or keeps_range(expr):
                    continue
                if facts.interval(expr, domain).fits(expr.dtype):
                    facts.by_intervals(domain, expr, expr.dtype.min_int, expr.dtype.max_int)
                    continue
                variables = set(free_variables(expr))
                if not variables or not variables <= symbols:
                    self.open.append((arithmetic, expr, domain))
                elif not _fits(facts, expr, IterationDomain()):
                    key = (frozenset(Polynomial.of(expr).terms.items()), expr.dtype)
                    found.setdefault(key, expr)
        for expr in _extent_parts(facts.program.function):
            variables = set(free_variables(expr))
            if (
                variables
                and variables <= symbols
                and not keeps_range(expr)
                and not _fits(facts, expr, IterationDomain())
            ):
                found.setdefault((frozenset(Polynomial.of(expr).terms.items()), expr.dtype), expr)
        self.assumed = tuple(found.values())
        self.conditions = tuple(
            c for e in self.assumed for c in (at_least(e, e.dtype.min_int), _at_most(e, e.dtype.max_int))
        )
        self.facts = facts.with_assumptions(*self.conditions) if self.conditions else facts
        self._in_bounds: dict[tuple[object, ...], set[Expr]] = {}

    def reason(self) -> str | None:
        """What the proof rests on, or None."""
        if not self.assumed:
            return None
        shown = [f"`{_readable(e)}` does not overflow {e.dtype}" for e in self.assumed[:_SHOWN]]
        more = len(self.assumed) - len(shown)
        return f"precondition: {', '.join(shown)}" + (f", and {more} more" if more else "")

    def find_overflow(self, arithmetic: Arithmetic, expr: Expr, domain: IterationDomain) -> Search:
        """An instance where `expr` leaves its type."""
        found = self.facts.model.outside(domain, expr, expr.dtype.min_int, expr.dtype.max_int)
        if found.is_empty or (found.point is not None and found.exact):
            return found
        if isinstance(expr, Binary) and expr.op in DIVISIONS:
            # A quotient by 1 or more is no larger than what is divided, a remainder no larger than the divisor.
            positive = self.facts.search(domain, below(expr.rhs, 1))
            if positive.is_empty:
                return positive
        if expr in self._below_extent(arithmetic):
            self._record_dominated(arithmetic, expr, domain)
            return nothing("mixed-radix")
        return found if found.reason is not None else no_answer(found.engine, "not decided")

    def _record_dominated(self, arithmetic: Arithmetic, expr: Expr, domain: IterationDomain) -> None:
        """The claim that a part of an index in bounds fits, for other solvers to confirm where they can."""
        if self.facts.gathered.is_recording and arithmetic.extent is not None:
            index, dtype = arithmetic.expr, expr.dtype
            given = (
                at_least(index, 0),
                below(index, arithmetic.extent),
                _at_most(arithmetic.extent, arithmetic.extent.dtype.max_int),
            )
            either = ((*given, below(expr, dtype.min_int)), (*given, above(expr, dtype.max_int)))
            self.facts.gathered.record(NoInstance(self.facts.setting, domain, either, "mixed-radix"))

    def _below_extent(self, arithmetic: Arithmetic) -> set[Expr]:
        """The summands and factors of an index in bounds that do not exceed it: all are >= 0, factors >= 1."""
        root, domain, extent = arithmetic.expr, arithmetic.domain, arithmetic.extent
        if extent is None or extent.dtype.max_int > root.dtype.max_int:
            return set()
        key = (root, extent, domain.dims, domain.guards)
        if key not in self._in_bounds:
            inside = find_outside(self.facts, domain, root, extent).is_empty
            self._in_bounds[key] = set(_dominated(self.facts, root, domain)) if inside else set()
        return self._in_bounds[key]


def _at_most(expr: Expr, high: int) -> Expr:
    return Not(above(expr, high))


def _fits(facts: Facts, expr: Expr, domain: IterationDomain) -> bool:
    return facts.model.outside(domain, expr, expr.dtype.min_int, expr.dtype.max_int).is_empty


def _readable(expr: Expr) -> str:
    """The text, symbols without the casts that only widen them."""

    def visit(node: Node) -> Node:
        return Var(node.value.name, node.dtype) if isinstance(node, Cast) and isinstance(node.value, Var) else node

    return expr_text(rewrite_bottom_up(expr, visit), Style.PLAIN)


def _dominated(facts: Facts, root: Expr, domain: IterationDomain) -> Iterator[Expr]:
    """The parts of `root`, which is at least 0, that are between 0 and its value."""
    stack = [root]
    while stack:
        expr = stack.pop()
        yield expr
        if isinstance(expr, Cast) and expr.value.dtype.is_integer:
            stack.append(expr.value)
        if not isinstance(expr, Binary):
            continue
        sides = (expr.lhs, expr.rhs)
        if expr.op is BinaryOp.ADD and all(_is_at_least(facts, side, domain, 0) for side in sides):
            stack += sides
        elif expr.op is BinaryOp.MUL and all(_is_at_least(facts, side, domain, 0) for side in sides):
            for side, other in (sides, sides[::-1]):
                if _is_at_least(facts, other, domain, 1):
                    stack.append(side)


def _is_at_least(facts: Facts, expr: Expr, domain: IterationDomain, low: int) -> bool:
    """Whether `expr` is certainly at least `low` (0 or 1): sums and products of such, the rest is asked."""
    if facts.interval(expr, domain).low >= low:
        return True
    if isinstance(expr, Cast) and expr.value.dtype.is_integer:
        return _is_at_least(facts, expr.value, domain, low)
    # For sums, both sides being at least `low` is enough for 0, and more than enough for 1.
    if isinstance(expr, Binary) and expr.op in (BinaryOp.ADD, BinaryOp.MUL):
        if all(_is_at_least(facts, side, domain, low) for side in (expr.lhs, expr.rhs)):
            return True
    return facts.model.search(domain, below(expr, low)).is_empty


def _overflow(facts: Facts, arithmetic: Arithmetic, expr: Expr, domain: IterationDomain, found: Search) -> Verdict:
    watch = facts.watch()
    text = expr_text(expr, Style.PLAIN)
    claim = Claim(ClaimKind.FITS, f"{text} fits {expr.dtype}", arithmetic.place, about=(text, str(expr.dtype)))
    if found.point is None:
        return left_open(claim, found, watch)
    value = _value_at(facts, expr, domain, found.point)
    if value is None or expr.dtype.min_int <= value <= expr.dtype.max_int:
        return left_open(claim, found, watch)
    values = visible(domain, found.point, facts.program)
    said = f"{text} is {value} at {values_text(values)}"
    if domain.depends_on_data(expr):
        return unknown(claim, found.engine, f"{said}, depending on data", watch)
    return refuted(claim, found.engine, {"expression": text, "value": value, "values": values}, said, watch)


def _value_at(facts: Facts, expr: Expr, domain: IterationDomain, point: Mapping[str, int]) -> int | None:
    if not facts.happens(domain, point):
        return None
    try:
        return int(evaluate(expr, point))
    except (Trap, KeyError, TypeError):
        return None


_SHIFTS = (BinaryOp.SHL, BinaryOp.SHR)


_Key = tuple[Expr, Place]


def prove_no_trap(facts: Facts, before: Program | None = None) -> tuple[Verdict, ...]:
    """One verdict an operation that could trap, in the order of the text; none where no operation could.

    What the program `before` evaluates at the same instances, both sides of `and` and `or` taken, is no new trap there.
    """
    verdicts = _verdicts(facts, facts.program.arithmetic, None, eager=False)
    if facts.program.eager is facts.program.arithmetic:
        return tuple(verdicts.values())
    known = None if before is None else frozenset(_certain(before.eager))
    for key, verdict in _verdicts(facts, facts.program.eager, known, eager=True).items():
        lazily = verdicts.get(key)
        if lazily is None or lazily.status is Status.PROVED:
            verdicts[key] = verdict
    return tuple(verdicts.values())


def _verdicts(
    facts: Facts, all_: Iterable[Arithmetic], known: frozenset[_Certain] | None, *, eager: bool
) -> dict[_Key, Verdict]:
    verdicts: dict[_Key, Verdict] = {}
    for arithmetic in all_:
        for expr, domain in _operations(arithmetic, eager=eager):
            if known is not None and not domain.depends_on_data(expr) and _as_certain(expr, domain) in known:
                continue
            key = (expr, arithmetic.place)
            verdict = _prove(facts, arithmetic, expr, domain)
            if eager and verdict.status is not Status.PROVED:
                # Compiled to C it does not trap, and the old program may do the same: not a refutation.
                reason = f"{verdict.reason}; code that evaluates both sides of `and` and `or`, as TVM's does: {_NESTED}"
                verdict = replace(verdict, status=Status.UNKNOWN, reason=reason, counterexample=None)
            if key not in verdicts or verdict.status is not Status.PROVED:
                verdicts[key] = verdict
    return verdicts


_NESTED = "a branch inside a branch, or T.if_then_else, keeps it away"
# An operation, and all that decides which of its instances there are.
_Certain = tuple[Expr, tuple[tuple[Expr, Expr], ...], frozenset[tuple[Expr, bool]]]


def _as_certain(expr: Expr, domain: IterationDomain) -> _Certain:
    """The operation, with loops known by their places: what they are called, and in which kind of loop their iterations
    run, makes no difference to which instances there are.
    """
    names: dict[Var, Expr] = {}
    bounds: list[tuple[Expr, Expr]] = []
    for number, dim in enumerate(domain.dims):
        bounds.append((substitute(dim.start, names), substitute(dim.extent, names)))
        names[dim.var] = Var(f"dim@{number}", dim.var.dtype)
    guards = frozenset((substitute(guard.condition, names), guard.holds) for guard in domain.guards)
    return substitute(expr, names), tuple(bounds), guards


def _certain(all_: Iterable[Arithmetic]) -> Iterator[_Certain]:
    """The operations whose instances do not depend on data."""
    for arithmetic in all_:
        for expr, domain in _operations(arithmetic, eager=True):
            if not domain.depends_on_data(expr):
                yield _as_certain(expr, domain)


def _certain_indices(program: Program) -> Iterator[_Certain]:
    """The parts of index arithmetic whose instances do not depend on data. Compilers compute what stands on a side of a
    `Select` or not, as they like.
    """
    for arithmetic in program.arithmetic:
        if not arithmetic.is_index or holds_any(arithmetic.expr, Select):
            continue
        for expr, domain in arithmetic.parts():
            if not domain.depends_on_data(expr):
                yield _as_certain(expr, domain)


def _operations(arithmetic: Arithmetic, *, eager: bool) -> Iterator[tuple[Expr, IterationDomain]]:
    """The operations that could trap."""
    parts = arithmetic.parts(eager=eager) if arithmetic.is_index else ((arithmetic.expr, arithmetic.domain),)
    yield from ((expr, domain) for expr, domain in parts if can_trap(expr) and not _plainly_safe(expr))


def _plainly_safe(expr: Expr) -> bool:
    match expr:
        case Binary(op=op, rhs=Broadcast(value=IntImm() as each), lhs=lhs) if lhs.dtype.is_integer:
            return 0 <= each.value < lhs.dtype.bits if op in _SHIFTS else each.value not in (0, -1)
        case Binary(op=op, rhs=IntImm(value=value)) if op in _SHIFTS:
            return 0 <= value < expr.dtype.bits
        case Binary(rhs=IntImm(value=value)):
            return value not in (0, -1)
        case _:
            return False


def _prove(facts: Facts, arithmetic: Arithmetic, expr: Expr, domain: IterationDomain) -> Verdict:
    watch = facts.watch()
    text = expr_text(expr, Style.PLAIN)
    claim = Claim(ClaimKind.HAS_RESULT, f"{text} has a result", arithmetic.place, about=(text,))
    found = _find_trap(facts, expr, domain, arithmetic.is_index)
    if found.is_empty:
        return proved(claim, found.engine, watch)
    if found.point is None:
        return left_open(claim, found, watch)
    point = found.point
    if not facts.happens(domain, point) or not _traps(expr, point):
        return left_open(claim, found, watch)
    values = visible(domain, point, facts.program)
    text = f"{expr_text(expr, Style.PLAIN)} traps at {values_text(values)}"
    if domain.depends_on_data(*_deciding(expr, point)):
        return unknown(claim, found.engine, f"{text}, depending on data", watch)
    return refuted(claim, found.engine, {"expression": expr_text(expr, Style.PLAIN), "values": values}, text, watch)


def _find_trap(facts: Facts, expr: Expr, domain: IterationDomain, is_index: bool) -> Search:
    match expr:
        case Binary(op=op, rhs=amount) if op in _SHIFTS:
            if not is_index and not _never_wraps(facts, amount, domain):
                return no_answer("intervals", "the amount depends on data")
            return facts.search_outside(domain, amount, 0, expr.dtype.bits - 1)
        case Binary(lhs=dividend, rhs=divisor):
            return _find_bad_division(facts, dividend, divisor, domain, is_index)
        case Cast(dtype=dtype, value=FloatImm(value=value)):
            try:
                semantics.float_to_int(value, dtype)
            except Trap as problem:
                return no_answer(STRUCTURE, str(problem))
            return nothing(STRUCTURE)
        case Cast(dtype=dtype, value=Cast(dtype=middle, value=inner)) if inner.dtype.is_integer and _never_wraps(
            facts, inner, domain
        ):
            interval = facts.interval(inner, domain)
            # Rounding to a float is monotone, so the ends of the interval tell.
            ends = [semantics.int_to_float(x, middle) for x in (interval.low, interval.high)]
            if all(dtype.min_int <= x <= dtype.max_int for x in ends):
                return nothing("intervals")
        case Cast(dtype=dtype, value=value) if value.dtype.is_float:
            between = FloatRanges(facts.program, partial(_integer_range, facts, domain)).of(value)
            low, high = dtype.min_int, dtype.max_int
            if between.is_finite and low <= math.trunc(between.low) and math.trunc(between.high) <= high:
                return nothing("intervals")
    return no_answer(STRUCTURE, "the value depends on data")


def _find_bad_division(facts: Facts, dividend: Expr, divisor: Expr, domain: IterationDomain, is_index: bool) -> Search:
    if not is_index and not _never_wraps(facts, divisor, domain):
        return no_answer("intervals", "the divisor depends on data")
    interval = facts.interval(divisor, domain)
    engine = "intervals"
    if 0 in interval:
        found = facts.search(domain, same(divisor, 0))
        if not found.is_empty:
            return found
        engine = found.engine
    else:
        facts.excluded(domain, same(divisor, 0))
    dtype = divisor.dtype
    if dtype.min_int < 0 and -1 in interval:
        if _never_wraps(facts, dividend, domain) and facts.interval(dividend, domain).low > dtype.min_int:
            facts.excluded(domain, same(dividend, IntImm(dtype.min_int, dtype)))
            return nothing(engine)
        if not is_index and not _never_wraps(facts, dividend, domain):
            return no_answer("intervals", "the dividend depends on data, the divisor may be -1")
        found = facts.search(domain, same(divisor, -1), same(dividend, IntImm(dtype.min_int, dtype)))
        if not found.is_empty:
            return found
        engine = found.engine
    return nothing(engine)


def _integer_range(facts: Facts, domain: IterationDomain, expr: Expr) -> Interval | None:
    return facts.interval(expr, domain) if _never_wraps(facts, expr, domain) else None


def _never_wraps(facts: Facts, expr: Expr, domain: IterationDomain) -> bool:
    """Whether no part can leave its type, so that the integer that the expression looks like is the value it has."""
    parts = [node for node in walk(expr) if isinstance(node, Expr)]
    return all(node.dtype.is_integer and facts.interval(node, domain).fits(node.dtype) for node in parts)


def _deciding(expr: Expr, point: Mapping[str, int]) -> tuple[Expr, ...]:
    """The operands that make the operation trap at a point."""
    assert isinstance(expr, Binary)
    overflows = expr.op not in _SHIFTS and int(evaluate(expr.rhs, point)) == -1
    return (expr.lhs, expr.rhs) if overflows else (expr.rhs,)


def _traps(expr: Expr, point: Mapping[str, int]) -> bool:
    try:
        if isinstance(expr, Binary) and expr.op in _SHIFTS:
            return not 0 <= int(evaluate(expr.rhs, point)) < expr.dtype.bits
        if isinstance(expr, Binary):
            divisor = int(evaluate(expr.rhs, point))
            return divisor == 0 or (divisor == -1 and int(evaluate(expr.lhs, point)) == expr.dtype.min_int)
    except (Trap, KeyError, TypeError):
        return False
    return False
