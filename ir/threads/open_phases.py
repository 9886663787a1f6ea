"""Phases that no barrier separates, though a loop or branch that all threads go through together lies between them: the
end of a loop's body and its beginning in the next iteration, or what follows the loop.

Where two of them touch one memory, a part of the kernel is written out in which both are in one parallel loop: that it
has no race is what has to be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace

from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm, Ramp, Var, equal
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import AttrStmt, BufferStore, For, ForKind, IfThenElse, Let, Seq, Stmt, seq
from layoutproof.ir.threads.crosswise import wholes
from layoutproof.ir.threads.implied import Access
from layoutproof.ir.visit import bound_variables, free_variables, loads_in, substitute, take_fresh


@dataclass(frozen=True, slots=True)
class Touched:
    """Memories, by data variable, that something reads and writes."""

    reads: frozenset[Var] = frozenset()
    writes: frozenset[Var] = frozenset()

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.reads | other.reads, self.writes | other.writes)

    def meets(self, other: Touched) -> frozenset[Var]:
        """The memories that both touch, one of them writing."""
        return (self.writes & (other.reads | other.writes)) | (other.writes & self.reads)

    def meets_in(self, memories: frozenset[Var], other: Touched) -> bool:
        """Whether both touch something of memories that may be one, one of them writing."""
        all_, others = self.reads | self.writes, other.reads | other.writes
        return bool((self.writes & memories and others & memories) or (other.writes & memories and all_ & memories))

    def waits_for(self, other: Touched) -> frozenset[Var]:
        """The memories that one writes and the other reads."""
        return (self.writes & other.reads) | (other.writes & self.reads)

    def without(self, memories: Iterable[Var]) -> Touched:
        """The same, some memories left out."""
        gone = frozenset(memories)
        return Touched(self.reads - gone, self.writes - gone)


@dataclass(frozen=True, slots=True, eq=False)
class OpenPhase:
    """A phase since which there was no barrier: what one thread does in it. `number`: which one, whatever stands
    around it; `accesses`: those to shared memory, as the text has them; `is_one`: see `is_one`.
    """

    stmt: Stmt
    touched: Touched
    number: int
    accesses: Sequence[Access] = ()
    is_one: bool = True


class OpenPhases:
    """Follows a kernel in the order of its text. `all_threads` puts the loops over threads around a statement; `names`
    are taken, and grow.
    """

    def __init__(self, all_threads: Callable[[Stmt], Stmt], names: set[str]) -> None:
        self.all_threads = all_threads
        self.names = names
        self.open: list[OpenPhase] = []
        self._number = 0
        # The parts of the kernel in which there may be no race.
        self.parts: list[Stmt] = []
        self._around: list[Callable[[Stmt], Stmt]] = []

    def close(self) -> None:
        """A barrier."""
        self.open.clear()

    def add(self, stmt: Stmt, touched: Touched, accesses: Sequence[Access]) -> None:
        """A phase that all threads come to."""
        self._number += 1
        self.open.append(OpenPhase(stmt, touched, self._number, accesses, is_one(stmt)))

    def meeting(self, touched: Touched) -> list[OpenPhase]:
        """The open phases that touch a memory of another phase, one of them writing."""
        return [phase for phase in self.open if phase.touched.meets(touched)]

    def forget(self, memories: Iterable[Var], until: int) -> None:
        """There is a barrier for some memories after the first `until` of the open phases."""
        gone = frozenset(memories)
        first = [replace(phase, touched=phase.touched.without(gone), accesses=()) for phase in self.open[:until]]
        self.open = [*first, *self.open[until:]]

    def require_apart(self, phases: Iterable[OpenPhase], stmt: Stmt) -> None:
        """Note that a phase may not disturb those before it."""
        part = self.all_threads(seq(*(phase.stmt for phase in phases), stmt))
        for around in reversed(self._around):
            part = around(part)
        self.parts.append(part)

    @contextmanager
    def inside(self, around: Callable[[Stmt], Stmt]) -> Iterator[None]:
        """What follows stands inside a branch or a let, and so do, afterwards, the phases that it leaves open."""
        before = _numbers(self.open)
        self._around.append(around)
        yield
        self._around.pop()
        self.open = [phase if phase.number in before else self._wrapped(phase, around) for phase in self.open]

    @staticmethod
    def _wrapped(phase: OpenPhase, around: Callable[[Stmt], Stmt]) -> OpenPhase:
        return replace(phase, stmt=around(phase.stmt))

    def loop(self, loop: For, body: Callable[[], Stmt]) -> Stmt:
        """The body of a loop, which `body` goes through: in the first iteration after what was open before, in any
        other one after the iteration before it, and after all earlier ones for phases that an iteration may leave open
        because its barriers stand in branches or loops. What the last one leaves is open afterwards, and what was
        before: there may be no iteration (a constant number of them is certain).
        """
        before = list(self.open)
        index, start = loop.var, loop.start
        one = IntImm(1, index.dtype)
        first: Expr = equal(index, start)

        def as_loop(stmt: Stmt) -> Stmt:
            return replace(loop, kind=ForKind.SERIAL, body=stmt)

        self._around += [as_loop, lambda stmt: IfThenElse(first, stmt, span=loop.span)]
        body()
        self._around.pop()
        kept, made = self._split(_numbers(before))
        self._around.append(lambda stmt: IfThenElse(start < index, stmt, span=loop.span))
        noted = len(self.parts)
        self.open = [*kept, *(replace(phase, stmt=_at(phase.stmt, index, index - one)) for phase in made)]
        result = body()
        left = _numbers(made) & _numbers(self.open)
        if left:
            del self.parts[noted:]
            since = [
                replace(
                    phase,
                    stmt=self._earlier(phase.stmt, loop)
                    if phase.number in left
                    else _at(phase.stmt, index, index - one),
                )
                for phase in made
            ]
            self.open = [*kept, *since]
            result = body()
        del self._around[-2:]
        last = loop.start + loop.extent - one
        _, ended = self._split(_numbers(before))
        ended = [
            replace(phase, stmt=IfThenElse(IntImm(0, index.dtype) < loop.extent, _at(phase.stmt, index, last)))
            for phase in ended
        ]
        certain = isinstance(loop.extent, IntImm) and loop.extent.value > 0
        self.open = [*(kept if certain else before), *ended]
        return result

    def _split(self, numbers: frozenset[int]) -> tuple[list[OpenPhase], list[OpenPhase]]:
        """What is open of the phases with these numbers, and of others."""
        return [p for p in self.open if p.number in numbers], [p for p in self.open if p.number not in numbers]

    def _earlier(self, stmt: Stmt, loop: For) -> Stmt:
        """A statement of an iteration, in all iterations before this one."""
        index = Var(take_fresh(loop.var.name, self.names), loop.var.dtype)
        return For(index, loop.start, loop.var - loop.start, ForKind.SERIAL, _at(stmt, loop.var, index), span=loop.span)


def is_one(stmt: Stmt) -> bool:
    """Whether TVM puts no barrier for what comes next inside a statement: it is no sequence, in no attribute or let."""
    while isinstance(stmt, Let | AttrStmt):
        stmt = stmt.body
    return not isinstance(stmt, Seq)


def _numbers(phases: Iterable[OpenPhase]) -> frozenset[int]:
    return frozenset(phase.number for phase in phases)


def in_branch(condition: Expr, place: Stmt) -> Callable[[Stmt], Stmt]:
    """What puts a statement into a branch."""
    return lambda stmt: IfThenElse(condition, stmt, span=place.span)


def in_let(let: Let) -> Callable[[Stmt], Stmt]:
    """What puts a statement into a let."""
    return lambda stmt: replace(let, body=stmt)


def _at(stmt: Stmt, index: Var, value: Expr) -> Stmt:
    """A statement of an iteration; one that binds the name itself is of another loop."""
    return stmt if index in bound_variables(stmt) else substitute(stmt, {index: value})


def are_apart(store: BufferStore, loops: Iterable[For], changing: AbstractSet[Var]) -> bool:
    """Whether all iterations of loops around a store are seen to have cells of their own: the indices say which one it
    is, as digits or as sums of them. `changing` are other variables that may differ from iteration to iteration.
    """
    numbers = {loop.var: loop.extent.value if isinstance(loop.extent, IntImm) else None for loop in loops}
    left = {var for var, number in numbers.items() if number != 1}
    lane = Var("lane", INT32)
    digits = list[Expr]()
    for index in store.indices:
        if isinstance(index, Ramp):
            numbers[lane] = index.lanes
            left.add(lane)
            index = index.base + Cast(index.stride.dtype, lane) * index.stride
        digits.append(index)
    known, before = wholes(digits), set[Expr]()
    while left and known != before:
        before = set(known)
        sums = (_sum_of(value, left, changing) for value in before)
        known |= {part for each in sums if each is not None and _are_digits(each, numbers) for part in each}
        known = wholes(known)
        left -= known
    return not left and not store.buffer.strides


def _sum_of(value: Expr, left: AbstractSet[Var], changing: AbstractSet[Var]) -> dict[Expr, int] | None:
    """How often each part with some variables is in a sum whose other parts stay; None if that is not seen."""
    used = set(free_variables(value))
    if used & changing or next(loads_in(value), None) is not None:
        return None
    match value:
        case _ if not used & left:
            return {}
        case Binary(op=BinaryOp.ADD | BinaryOp.SUB as op, lhs=lhs, rhs=rhs):
            a, b = _sum_of(lhs, left, changing), _sum_of(rhs, left, changing)
            sign = 1 if op is BinaryOp.ADD else -1
            return None if a is None or b is None else {v: a.get(v, 0) + sign * b.get(v, 0) for v in (a | b)}
        case (
            Binary(op=BinaryOp.MUL, lhs=inner, rhs=IntImm(value=n))
            | Binary(op=BinaryOp.MUL, lhs=IntImm(value=n), rhs=inner)
        ):
            terms = _sum_of(inner, left, changing)
            return None if terms is None else {v: n * count for v, count in terms.items()}
        case Cast(value=inner, dtype=dtype) if inner.dtype.is_integer and inner.dtype.bits <= dtype.bits:
            return _sum_of(inner, left, changing)
        case _:
            return {value: 1}


def _are_digits(terms: Mapping[Expr, int], numbers: Mapping[Var, int | None]) -> bool:
    """Whether a sum has another value for any other values of its parts: each outweighs those below."""
    reach: int | None = 0
    for part, count in sorted(terms.items(), key=lambda term: abs(term[1])):
        if reach is None or abs(count) <= reach:
            return False
        match part:
            case Var():
                number = numbers[part]
            case Binary(op=BinaryOp.FLOORMOD, rhs=IntImm(value=by)) if by > 0:
                number = by
            case _:
                number = None
        reach = None if number is None else reach + abs(count) * (number - 1)
    return True
