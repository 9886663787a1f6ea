"""Follows a kernel in the order of its text, and keeps for each access what is known there of asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.evaluate import evaluate, foreign_part
from layoutproof.ir.expr import Expr, IntImm, Var, negated
from layoutproof.ir.intrinsics import StringImm
from layoutproof.ir.stmt import AttrStmt, BufferStore, For, ForKind, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.threads.async_calls import ASYNC_KEYS, COMMIT, COPY, IN_FLIGHT, PTX, WAIT
from layoutproof.ir.threads.async_queues import (
    ONE,
    ZERO,
    Known,
    Queue,
    after_loop,
    at_head,
    iterations,
    merged,
    minus,
    plus,
    times,
)
from layoutproof.ir.threads.kernel_text import Across, Kernel, NotSequential, is_sync
from layoutproof.ir.visit import children, free_variables, loads_in, substitute, walk

_MOST_VALUES = 1 << 14
_MOST_ITERATIONS = 64  # of a loop that is written out because its iterations differ

Frame = Callable[[Stmt], Stmt]


@dataclass(frozen=True, slots=True)
class Step:
    """A loop, branch or let around an access; `loop` is the loop."""

    around: Frame
    loop: For | None = None
    commits: frozenset[object] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store of `stmt`, with what stands around it and the queues as they are there. `event`: which statement
    it is, one that was written out being several. `queue`: of the copy that it is part of, None if it is of none.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    writes: bool
    stmt: Stmt
    steps: tuple[Step, ...]
    queues: Mapping[object, Queue]
    event: int
    queue: object = None

    def around(self, stmt: Stmt) -> Stmt:
        """What stands around the access, around a statement."""
        for step in reversed(self.steps):
            stmt = step.around(stmt)
        return stmt


class AsyncWalk:
    """Follows the copies of a kernel. `implied`: after each wait there is a barrier, as TVM puts it there."""

    def __init__(self, kernel: Kernel, *, implied: bool) -> None:
        self.kernel = kernel
        self.implied = implied
        self.queues: dict[object, Queue] = {queue: Queue() for queue in _queues_in(kernel.body)}
        self.accesses: list[Access] = []
        self._axes = {axis.var for axis in kernel.axes.values() if not axis.is_block}
        self._ranges: dict[Var, range] = {
            axis.var: range(axis.extent.value) for axis in kernel.axes.values() if isinstance(axis.extent, IntImm)
        }
        self._lets: set[Var] = set()
        self._steps: list[Step] = []
        self._queue: object = PTX
        self._copies = False
        self._event = 0

    def run(self) -> list[Access]:
        """The accesses of the kernel. Raises NotSequential where copies are not understood."""
        used = set(_queues_of_copies(self.kernel.body, PTX)) | set(self.queues) - {PTX}
        if PTX in used and len(used) > 1:
            raise NotSequential("copies in groups of numbered queues and of PTX in one kernel", self.kernel.body)
        self._follow(self.kernel.body)
        return self.accesses

    def _follow(self, stmt: Stmt) -> None:
        match stmt:
            case Seq(body=body):
                for each in body:
                    self._follow(each)
            case BufferStore():
                self._store(stmt)
            case For():
                self._note_loads(stmt, stmt.start, stmt.extent)
                self._loop(stmt)
            case IfThenElse(condition=condition):
                self._note_loads(stmt, condition)
                self._branch(stmt)
            case Let():
                self._let(stmt)
            case AttrStmt():
                self._attribute(stmt)
            case Across(body=body):
                self._require(not _is_asynchronous(body), "asynchronous copies in a reduction over threads", stmt)
                self._follow(body)
            case _:
                self._evaluate(stmt)

    @staticmethod
    def _require(holds: bool, what: str, stmt: Stmt) -> None:
        if not holds:
            raise NotSequential(what, stmt)

    def _let(self, let: Let) -> None:
        self._note_loads(let, let.value)
        loads = next(loads_in(let.value), None) is not None
        self._require(not (self._copies and loads), "an asynchronous copy of what a let loads", let)
        self._lets.add(let.var)
        self._inside(Step(lambda inner: replace(let, body=inner)), lambda: self._follow(let.body))

    def _evaluate(self, stmt: Stmt) -> None:
        if is_sync(stmt):
            if self._copies:
                raise NotSequential("a barrier among asynchronous copies", stmt)
            self.queues = {key: replace(queue, done=queue.waited) for key, queue in self.queues.items()}
            return
        self._note_loads(stmt, stmt)

    def _inside(self, step: Step, body: Callable[[], None]) -> None:
        self._steps.append(step)
        body()
        self._steps.pop()

    def _note(self, access: BufferLoad | BufferStore, stmt: Stmt, *, writes: bool) -> None:
        queue = self._queue if self._copies else None
        mine = Access(
            access.buffer, access.indices, writes, stmt, tuple(self._steps), dict(self.queues), self._event, queue
        )
        self.accesses.append(mine)

    def _note_loads(self, stmt: Stmt, *parts: Expr | Stmt) -> None:
        self._event += 1
        for part in parts:
            for load in loads_in(part):
                self._note(load, stmt, writes=False)

    def _store(self, stmt: BufferStore) -> None:
        if self._copies:
            if any(load.buffer.data == stmt.buffer.data for load in loads_in(stmt)):
                raise NotSequential(f"an asynchronous copy within {stmt.buffer.name}", stmt)
        self._note_loads(stmt, stmt)
        self._note(stmt, stmt, writes=True)
        if self._copies:
            self.queues[self._queue] = replace(self.queues[self._queue], is_open=True)

    def _branch(self, stmt: IfThenElse) -> None:
        decided = self._decided(stmt.condition)
        if decided is not None:
            chosen = stmt.then if decided else stmt.otherwise
            if chosen is not None:
                self._follow(chosen)
            return
        if any(_orders(part) for part in (stmt.then, stmt.otherwise) if part is not None):
            raise NotSequential("a commit or a wait that depends on a condition", stmt)
        if self._copies and next(loads_in(stmt.condition), None) is not None:
            raise NotSequential("an asynchronous copy that depends on what was computed", stmt)
        before = self.queues
        then = Step(lambda inner: replace(stmt, then=inner, otherwise=None))
        self._inside(then, lambda: self._follow(stmt.then))
        self.queues = merged(before, self.queues)
        if stmt.otherwise is not None:
            other = stmt.otherwise
            turned = Step(lambda inner: replace(stmt, condition=negated(stmt.condition), then=inner, otherwise=None))
            self._inside(turned, lambda: self._follow(other))
            self.queues = merged(before, self.queues)

    def _decided(self, condition: Expr) -> bool | None:
        """Whether a condition has one value for all that its variables may be; None where that is not found out."""
        values = self._values(condition)
        return None if values is None or len(values) != 1 else bool(next(iter(values)))

    def _values(self, expr: Expr) -> set[int] | None:
        """The values of an expression, where few enough are possible."""
        names = free_variables(expr)
        if foreign_part(expr) is not None or any(v not in self._ranges for v in names):
            return None
        ranges = [self._ranges[v] for v in names]
        if prod(len(r) for r in ranges) > _MOST_VALUES:
            return None
        return {
            int(evaluate(expr, {v.name: n for v, n in zip(names, point, strict=True)})) for point in product(*ranges)
        }

    # ---- attributes

    def _attribute(self, stmt: AttrStmt) -> None:
        if stmt.key == COPY:
            around, self._copies = self._copies, True
            self._follow(stmt.body)
            self._copies = around
        elif stmt.key == COMMIT:
            self._commit(stmt)
        elif stmt.key == WAIT:
            self._wait(stmt)
        elif stmt.key == IN_FLIGHT:
            raise NotSequential("a number of groups to wait for without a queue", stmt)
        else:
            self._follow(stmt.body)

    def _commit(self, stmt: AttrStmt) -> None:
        key, around = _key(stmt), self._queue
        if self._copies:
            raise NotSequential("a commit among asynchronous copies", stmt)
        self._queue = key
        self._follow(stmt.body)
        self._queue = around
        queue = self.queues[key]
        self.queues[key] = replace(queue, committed=plus(queue.committed, ONE), is_open=False)

    def _wait(self, stmt: AttrStmt) -> None:
        inner = stmt.body
        if not isinstance(inner, AttrStmt) or inner.key != IN_FLIGHT:
            raise NotSequential("a wait that does not say for how many groups", stmt)
        possible = self._values(inner.value)
        depends = set(free_variables(inner.value)) & (self._axes | self._lets)
        if possible is None or min(possible) < 0 or depends:
            raise NotSequential("the number of groups that a wait leaves under way is not known", stmt)
        queue = self.queues[_key(stmt)]
        known = (Known(minus(queue.committed, inner.value)),)
        queue = replace(queue, waited=known)
        self.queues[_key(stmt)] = replace(queue, done=known) if self.implied else queue
        self._follow(inner.body)

    # ---- loops

    def _loop(self, loop: For) -> None:
        as_loop = Step(lambda inner: replace(loop, kind=ForKind.SERIAL, body=inner), loop)
        known_range = _range_of(loop)
        if known_range is not None and not known_range:
            return
        if not _orders(loop.body) and not _is_asynchronous(loop.body):
            before = self.queues
            self._with_range(loop.var, known_range, as_loop, loop.body)
            self.queues = before  # a barrier in a loop may be one that is not reached
            return
        bounds = (loop.start, loop.extent)
        if any(
            set(free_variables(e)) & (self._axes | self._lets) or next(loads_in(e), None) is not None for e in bounds
        ):
            raise NotSequential("asynchronous copies in a loop that threads do not go through alike", loop)
        counts = self._counts(loop, known_range)
        if counts is None:
            self._written_out(loop, known_range)
            return
        commits = frozenset(key for key, count in counts.items() if count != ZERO)
        as_loop = replace(as_loop, commits=commits)
        before, recorded = self.queues, len(self.accesses)
        # Once without knowledge of earlier iterations, to find what each leaves behind; then with it.
        blank = (Known(ZERO),)
        index = minus(loop.var, loop.start)
        heads = {
            key: replace(queue, committed=plus(queue.committed, times(index, counts[key])), waited=blank, done=blank)
            for key, queue in before.items()
        }
        self.queues = dict(heads)
        self._with_range(loop.var, known_range, as_loop, loop.body)
        left = self.queues
        del self.accesses[recorded:]
        self.queues = {
            key: replace(
                heads[key],
                is_open=before[key].is_open or left[key].is_open,
                waited=at_head(loop, before[key].waited, left[key].waited, waits=_waits(loop.body, key)),
                done=at_head(loop, before[key].done, left[key].done, waits=_waits(loop.body, key)),
            )
            for key in before
        }
        self._with_range(loop.var, known_range, as_loop, loop.body)
        ended = self.queues
        self.queues = {
            key: Queue(
                plus(before[key].committed, times(iterations(loop), counts[key])),
                before[key].is_open or ended[key].is_open,
                after_loop(loop, before[key].waited, ended[key].waited, waits=_waits(loop.body, key)),
                after_loop(loop, before[key].done, ended[key].done, waits=_waits(loop.body, key)),
            )
            for key in before
        }

    def _with_range(self, var: Var, known: range | None, step: Step, body: Stmt) -> None:
        around = self._ranges.get(var)
        if known is not None:
            self._ranges[var] = known
        self._inside(step, lambda: self._follow(body))
        self._ranges.pop(var, None)
        if around is not None:
            self._ranges[var] = around

    def _written_out(self, loop: For, known: range | None) -> None:
        if known is None or len(known) > _MOST_ITERATIONS:
            raise NotSequential("the number of commits differs from iteration to iteration", loop)
        for value in known:
            self._follow(substitute(loop.body, {loop.var: IntImm(value, loop.var.dtype)}))

    def _counts(self, loop: For, known: range | None) -> dict[object, Expr] | None:
        """The number of groups of each queue that an iteration commits; None where iterations differ."""
        around = self._ranges.get(loop.var)
        if known is not None:
            self._ranges[loop.var] = known
        counts = {key: self._count_in(loop.body, key) for key in self.queues}
        known_waits = all(
            self._values(node.value) is not None
            for node in walk(loop.body)
            if isinstance(node, AttrStmt)
            and node.key == IN_FLIGHT
            and set(free_variables(node.value)) <= set(self._ranges)
        )
        self._ranges.pop(loop.var, None)
        if around is not None:
            self._ranges[loop.var] = around
        found = {key: count for key, count in counts.items() if count is not None}
        if len(found) < len(counts) or not known_waits:
            return None
        return None if any(loop.var in free_variables(count) for count in found.values()) else found

    def _count_in(self, stmt: Stmt, key: object) -> Expr | None:
        """The number of groups that a statement commits to a queue."""
        if not _orders(stmt):
            return ZERO
        if isinstance(stmt, IfThenElse):
            decided = self._decided(stmt.condition)
            if decided is None:
                return None
            chosen = stmt.then if decided else stmt.otherwise
            return ZERO if chosen is None else self._count_in(chosen, key)
        if isinstance(stmt, For):
            counts = self._counts(stmt, _range_of(stmt))
            return None if counts is None else times(iterations(stmt), counts[key])
        total: Expr = ZERO
        for child in children(stmt):
            if isinstance(child, Stmt):
                count = self._count_in(child, key)
                if count is None:
                    return None
                total = plus(total, count)
        mine = isinstance(stmt, AttrStmt) and stmt.key == COMMIT and _key(stmt) == key
        return plus(total, ONE) if mine else total


def _is_asynchronous(stmt: Stmt) -> bool:
    return any(isinstance(node, AttrStmt) and node.key in ASYNC_KEYS for node in walk(stmt))


def _orders(stmt: Stmt) -> bool:
    """Whether a statement commits or waits."""
    return any(isinstance(n, AttrStmt) and n.key in ASYNC_KEYS and n.key != COPY for n in walk(stmt))


def _waits(stmt: Stmt, key: object) -> bool:
    """Whether what is known of a queue changes in a statement."""
    return any(
        (isinstance(n, AttrStmt) and n.key == WAIT and _key(n) == key) or (isinstance(n, Stmt) and is_sync(n))
        for n in walk(stmt)
    )


def _key(stmt: AttrStmt) -> object:
    """Which queue an attribute is about."""
    if stmt.value == StringImm(PTX):
        return PTX
    if not isinstance(stmt.value, IntImm):
        raise NotSequential("a queue that is not a number", stmt)
    return stmt.value.value


def _queues_in(stmt: Stmt) -> Iterator[object]:
    """Every queue."""
    yield PTX
    for node in walk(stmt):
        if isinstance(node, AttrStmt) and node.key in (COMMIT, WAIT):
            yield _key(node)


def _range_of(loop: For) -> range | None:
    if isinstance(loop.start, IntImm) and isinstance(loop.extent, IntImm):
        return range(loop.start.value, loop.start.value + loop.extent.value)
    return None


def _queues_of_copies(stmt: Stmt, queue: object) -> Iterator[object]:
    """The queue of each copy in a statement that stands where groups are committed to `queue`."""
    if isinstance(stmt, AttrStmt) and stmt.key == COPY:
        yield queue
    if isinstance(stmt, AttrStmt) and stmt.key == COMMIT:
        queue = _key(stmt)
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _queues_of_copies(child, queue)
