"""Matching of two value trees: which loads of the one correspond to loads of the other.

The trees are matched by their shape alone, up to the order of commutative operands, mirrored comparisons, and the way
in which a choice is written. Sources of loads are not considered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutproof.ir.expr import Binary, Cast, Compare, Expr, IfThenElseExpr, Logical, Not, Select, Var, negated
from layoutproof.ir.intrinsics import Call, OpaqueCall, Reinterpret
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.visit import free_variables
from layoutproof.verify.program.instances import is_index_like
from layoutproof.verify.program.statement import Read
from layoutproof.verify.values.terms import constant_value, converted_constant, is_identical

# Ways that are kept of one pair of values: only long sums have more, and then the first ones are as good.
_MOST, _FEW = 24, 6
# The cost of supposing that a load finds a neutral value.
_RARE = 5
_COMMUTES = frozenset(
    (BinaryOp.ADD, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR)
)
_CALL_COMMUTES = frozenset(("fmax", "fmin", "maximum", "minimum"))

Pair: TypeAlias = "tuple[Expr, Expr]"
# The cost of matching two values, and the loads that prevent it.
_Blocked: TypeAlias = "tuple[int, tuple[tuple[bool, Var], ...]]"
# The operands that correspond, the new program's first.
Order: TypeAlias = "tuple[Pair, ...]"


@dataclass(frozen=True, slots=True)
class Value:
    """What a statement stores, as an expression over `reads`."""

    expr: Expr
    reads: tuple[Read, ...]
    loads: frozenset[Var] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loads", frozenset(read.var for read in self.reads))

    def read_of(self, leaf: Expr) -> Read | None:
        """The load that a leaf represents; None for anything else."""
        return next((read for read in self.reads if read.var == leaf), None) if leaf in self.loads else None


@dataclass(frozen=True, slots=True)
class Way:
    """One way to match two values. `loads` are pairs of loads, `indices` pairs of index-only parts, and `constants`
    pairs of a load and the number in its place in the other program, the new program's side first.
    """

    loads: tuple[tuple[Var, Var], ...] = ()
    indices: tuple[Pair, ...] = ()
    constants: tuple[Pair, ...] = ()

    def joined(self, other: Way) -> Way:
        """Both at once."""
        return Way(
            tuple(dict.fromkeys((*self.loads, *other.loads))),
            tuple(dict.fromkeys((*self.indices, *other.indices))),
            tuple(dict.fromkeys((*self.constants, *other.constants))),
        )


Compatible: TypeAlias = "Callable[[Read, Read], int | None]"


class Matcher:
    """The ways to pair the loads of two values. `compatible` says how well two loads fit: None not at all, else a
    number that is smaller for better pairs.
    """

    def __init__(self, new: Value, old: Value, compatible: Compatible) -> None:
        self.new, self.old = new, old
        self._compatible = compatible
        self._known: dict[tuple[Expr, Expr, bool], list[Way]] = {}

    def ways(self) -> list[Way]:
        """All ways, the best first; none if the values have different forms."""
        return self._ways(self.new.expr, self.old.expr, False)

    def _ways(self, new: Expr, old: Expr, inner: bool) -> list[Way]:
        key = (new, old, inner)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._best(self._of(new, old, inner))
        return found

    def _best(self, ways: Iterator[Way]) -> list[Way]:
        kept = {way: None for way in ways if not _both_ways_round(way)}
        return sorted(kept, key=self._badness)[:_MOST]

    def _badness(self, way: Way) -> tuple[int, int]:
        costs = 0
        for new, old in way.loads:
            mine, theirs = self.new.read_of(new), self.old.read_of(old)
            assert mine is not None and theirs is not None
            costs += self._compatible(mine, theirs) or 0
        return len(way.constants), costs

    def _of(self, new: Expr, old: Expr, inner: bool) -> Iterator[Way]:
        mine, theirs = self.new.read_of(new), self.old.read_of(old)
        if mine is not None and theirs is not None:
            if new.dtype == old.dtype and self._compatible(mine, theirs) is not None:
                yield from self._of_loads(mine, theirs)
            return
        if mine is not None or theirs is not None:
            # A load may find this number. As a whole value it would match anything.
            if inner and converted_constant(old if mine is not None else new) is not None and new.dtype == old.dtype:
                yield Way(constants=((new, old),))
            return
        numbers = converted_constant(new), converted_constant(old)
        if numbers[0] is not None and numbers[1] is not None and new.dtype == old.dtype:
            if is_identical(numbers[0], numbers[1]):
                yield Way()
            return
        if self._is_index(new, self.new) and self._is_index(old, self.old):
            yield Way() if new == old and not free_variables(new) else Way(indices=((new, old),))
            return
        for order in orders_of(new, old):
            yield from self._together(order)

    def _of_loads(self, mine: Read, theirs: Read) -> Iterator[Way]:
        """Two loads that correspond; if data decides which cells they access, the parts that decide it
        correspond too.
        """
        here = Way(loads=((mine.var, theirs.var),))
        if not (mine.anywhere and theirs.anywhere) or len(mine.access.indices) != len(theirs.access.indices):
            yield here
            return
        for way in self._together(tuple(zip(mine.access.indices, theirs.access.indices, strict=True))):
            yield here.joined(way)

    @staticmethod
    def _is_index(expr: Expr, value: Value) -> bool:
        return expr.dtype.is_integer and is_index_like(expr) and not any(v in value.loads for v in free_variables(expr))

    def _together(self, order: Order) -> Iterator[Way]:
        found = [Way()]
        for new, old in order:
            ways = self._ways(new, old, True)
            found = [first.joined(second) for first in found for second in ways][: _MOST * _MOST]
            if not found:
                return
        yield from found

    def guesses(self) -> list[Way]:
        """If the values have different forms: each load with the best one of the other program. A solver may still find
        the values equal.
        """
        way = Way()
        for mine in self._first_loads(self.new):
            best = [
                (cost, theirs.var)
                for theirs in self._first_loads(self.old)
                if theirs.var.dtype == mine.var.dtype and (cost := self._compatible(mine, theirs)) is not None
            ]
            if not best:
                return []
            way = way.joined(Way(loads=((mine.var, min(best, key=lambda each: each[0])[1]),)))
        paired = {theirs for _, theirs in way.loads}
        return [way] if way.loads and all(read.var in paired for read in self._first_loads(self.old)) else []

    @staticmethod
    def _first_loads(value: Value) -> list[Read]:
        """The loads of a value, one for each cell as written."""
        used = [read for read in value.reads if read.var in free_variables(value.expr)]
        firsts = {(read.data, read.coordinates): read for read in reversed(used)}
        return list(reversed(firsts.values()))

    def blocked(self) -> list[tuple[bool, Var]]:
        """The loads that keep the values from matching, because the other program has something else in their place:
        whether it is the new program's, and its variable. Those of the likeliest match come first; none if something
        else prevents a match too.
        """
        return list(dict.fromkeys(each for _, loads in self._blocked(self.new.expr, self.old.expr) for each in loads))

    def _blocked(self, new: Expr, old: Expr) -> list[_Blocked]:
        mine, theirs = self.new.read_of(new), self.old.read_of(old)
        loads = tuple((is_new, read.var) for is_new, read in ((True, mine), (False, theirs)) if read is not None)
        if loads:
            return [(len(loads), loads)]
        found = {each: None for order in orders_of(new, old) for each in self._blocked_in(order)}
        found |= dict.fromkeys(self._neutral(new, old, True)) | dict.fromkeys(self._neutral(new, old, False))
        if not found:
            found = dict.fromkeys(self._instead(new, old))
        return sorted(found, key=lambda each: each[0])[:_FEW]

    def _neutral(self, new: Expr, old: Expr, is_new: bool) -> Iterator[_Blocked]:
        """The load of one program's sum or product that may find a neutral value: the rest matches without it."""
        side = self.new if is_new else self.old
        expr = new if is_new else old
        if not isinstance(expr, Binary) or expr.op not in (BinaryOp.ADD, BinaryOp.MUL):
            return
        for load, rest in ((expr.lhs, expr.rhs), (expr.rhs, expr.lhs)):
            read = side.read_of(load)
            if read is not None and (self._ways(rest, old, True) if is_new else self._ways(new, rest, True)):
                yield _RARE, ((is_new, read.var),)

    def _instead(self, new: Expr, old: Expr) -> Iterator[_Blocked]:
        """The loads of one value where the other program has a number or an index: what they find may be no more than
        that.
        """
        for is_new, expr, other in ((True, new, old), (False, old, new)):
            side, rest = (self.new, self.old) if is_new else (self.old, self.new)
            if not any(v in rest.loads for v in free_variables(other)):
                loads = tuple((is_new, v) for v in free_variables(expr) if v in side.loads)
                if loads:
                    yield len(loads), loads

    def _blocked_in(self, order: Order) -> list[_Blocked]:
        found: list[_Blocked] = [(0, ())]
        for new, old in order:
            ways = self._ways(new, old, True)
            # A bad match may take the place of a better one.
            more = [(sum(self._badness(ways[0])), ())] if ways else self._blocked(new, old)
            found = [(cost + further, (*loads, *others)) for cost, loads in found for further, others in more]
        return found


def _both_ways_round(way: Way) -> bool:
    """Whether loads correspond to numbers on both sides: `max(A, 1)` and `max(0, A)` do not match."""
    sides = {isinstance(new, Var) for new, _ in way.constants}
    return len(sides) > 1


def bare(expr: Expr) -> Expr | None:
    """What a sum with zero or a product with one is but for the sign of a zero; None for anything else."""
    match expr:
        case Binary(op=BinaryOp.ADD | BinaryOp.MUL as op, lhs=a, rhs=b):
            neutral = 0 if op is BinaryOp.ADD else 1
            return b if constant_value(a) == neutral else a if constant_value(b) == neutral else None
        case _:
            return None


def orders_of(new: Expr, old: Expr) -> Sequence[Order]:
    """The ways in which the operands of two nodes may correspond, also without neutral zeros and ones; none for nodes
    that compute different things.
    """
    mine, theirs = bare(new), bare(old)
    less: list[Order] = [] if mine is None else [((mine, old),)]
    less += [] if theirs is None else [((new, theirs),)]
    return (*_orders(new, old), *less)


def _orders(new: Expr, old: Expr) -> Sequence[Order]:
    if isinstance(new, Select | IfThenElseExpr) and isinstance(old, Select | IfThenElseExpr):
        return _choices(new, old)
    if type(new) is not type(old) or new.dtype != old.dtype:
        return ()
    match new, old:
        case (Binary(op=op, lhs=a, rhs=b), Binary(op=other, lhs=c, rhs=d)) if op is other:
            return (((a, c), (b, d)), ((a, d), (b, c))) if op in _COMMUTES else (((a, c), (b, d)),)
        case (Compare(op=op, lhs=a, rhs=b), Compare(op=other, lhs=c, rhs=d)):
            straight: Sequence[Order] = (((a, c), (b, d)),) if op is other else ()
            return (*straight, ((a, d), (b, c))) if op.mirrored is other else straight
        case (Logical(op=op, lhs=a, rhs=b), Logical(op=other, lhs=c, rhs=d)) if op is other:
            return (((a, c), (b, d)), ((a, d), (b, c)))
        case (Call(function=f, arguments=first), Call(function=g, arguments=second)) if f == g:
            straight = (tuple(zip(first, second, strict=True)),)
            crossed = (tuple(zip(first, reversed(second), strict=True)),)
            return (*straight, *crossed) if f in _CALL_COMMUTES else straight
        case (
            (Not(operand=a), Not(operand=b))
            | (Cast(value=a), Cast(value=b))
            | (Reinterpret(value=a), Reinterpret(value=b))
        ):
            return (((a, b),),)
        case (OpaqueCall(function=f, arguments=first), OpaqueCall(function=g, arguments=second)):
            return (tuple(zip(first, second, strict=True)),) if f == g and len(first) == len(second) else ()
        case _:
            return ((),) if new == old else ()


def _choices(new: Select | IfThenElseExpr, old: Select | IfThenElseExpr) -> Sequence[Order]:
    """Two choices, with the same condition or with opposite ones."""
    if new.dtype != old.dtype:
        return ()
    straight = ((new.condition, old.condition), (new.then, old.then), (new.otherwise, old.otherwise))
    crossed = ((negated(new.condition), old.condition), (new.otherwise, old.then), (new.then, old.otherwise))
    return straight, crossed
