"""Questions to engines and their answers: comparisons over the integers, covers, results of searches, and SMT-LIB
queries. Part of the trusted computing base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from layoutproof.ir.dtype import INT64, UINT64
from layoutproof.ir.expr import Cast, Expr, IntImm, compare, const
from layoutproof.ir.operators import CompareOp

if TYPE_CHECKING:
    from layoutproof.verify.program.instances import IterationDomain


class NotEncodable(Exception):
    """An expression that an engine cannot state; `expr` is the smallest such part."""

    def __init__(self, expr: Expr, reason: str) -> None:
        super().__init__(reason)
        self.expr = expr
        self.reason = reason


def compare_integers(op: CompareOp, a: Expr, b: Expr | int) -> Expr:
    """`a op b` over the integers. A cast in it never changes a value, and is not meant to be executed."""
    right = _number(b) if isinstance(b, int) else b
    if a.dtype.kind is right.dtype.kind:
        return compare(op, a, right)
    return compare(op, _plain(a), _plain(right))


def _number(value: int) -> Expr:
    return const(value) if value <= INT64.max_int else IntImm(value, UINT64)


def _plain(expr: Expr) -> Expr:
    if isinstance(expr, IntImm) and INT64.min_int <= expr.value <= INT64.max_int:
        return IntImm(expr.value, INT64)
    return Cast(INT64, expr)


def below(a: Expr, b: Expr | int) -> Expr:
    """`a < b` over the integers."""
    return compare_integers(CompareOp.LT, a, b)


def at_least(a: Expr, b: Expr | int) -> Expr:
    """`a >= b` over the integers."""
    return compare_integers(CompareOp.GE, a, b)


def above(a: Expr, b: Expr | int) -> Expr:
    """`a > b` over the integers."""
    return compare_integers(CompareOp.GT, a, b)


def same(a: Expr, b: Expr | int) -> Expr:
    """`a == b` over the integers."""
    return compare_integers(CompareOp.EQ, a, b)


def differ(a: Expr, b: Expr | int) -> Expr:
    """`a != b` over the integers."""
    return compare_integers(CompareOp.NE, a, b)


SAT, UNSAT = "sat", "unsat"


@dataclass(frozen=True, slots=True)
class SmtQuery:
    """A self-contained SMT-LIB 2 script up to its one `(check-sat)`, and the answer that the claim needs.

    `engine` decided the claim first (`z3`, `isl`, `intervals`, `enumeration`, ...); another may be asked again.
    """

    text: str
    logic: str
    expected: str = UNSAT
    engine: str = "z3"


class Because(StrEnum):
    """The parts of a verdict's reason that code needs."""

    NOTHING_SEEN = "nothing-seen"  # nothing observable is stored
    CONTRADICTION = "contradiction"  # the assumptions cannot all hold
    OVERLAP = "overlap"  # parameters may overlap
    BUDGET = "budget"  # an engine's budget was spent
    CLOCK = "clock"  # a time limit, or a solver's death: not deterministic
    ONE_VALUE = "one-value"  # one statement stores what may be the same value in both instances
    OLD_FAULT = "old-fault"  # the old program has the fault that the new one has
    INVARIANT = "invariant"  # the proof uses an inductive invariant
    DATA = "data"  # an index that depends on data is not bounded by the program


@dataclass(frozen=True, slots=True)
class Cover:
    """Instances over the dims of another domain, then further dims; `conditions` hold, no cover of `without` does.

    It reaches an instance of that iteration domain when some values of the further dims satisfy everything.
    """

    domain: IterationDomain
    conditions: tuple[Expr, ...]
    without: tuple[Cover, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: that none exists (`is_empty`, which only `nothing` sets), a point, or the reason why it
    is unknown. Raises ValueError for one that is none of these, or empty and more.

    `exact` says that the point satisfies everything that was asked; otherwise `reason` names a part that could not be
    encoded. `because` is the reason for code.
    """

    point: Mapping[str, int] | None
    exact: bool = True
    reason: str | None = None
    engine: str = "isl"
    because: frozenset[Because] = frozenset()
    is_empty: bool = False

    def __post_init__(self) -> None:
        if self.is_empty != (self.point is None and self.reason is None):
            raise ValueError("a search is empty, or has a point or a reason")


def nothing(engine: str) -> Search:
    """The result that none exists."""
    return Search(None, engine=engine, is_empty=True)


def no_answer(engine: str, reason: str, *because: Because) -> Search:
    """An unknown result, and why."""
    return Search(None, False, reason, engine, frozenset(because))
