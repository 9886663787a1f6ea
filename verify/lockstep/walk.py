"""The walk: both programs step by step, each step of one matched with the step of the other that does the same.

Which steps to look at together is taken from the witness's pairs of stores; a wrong witness can only make the walk
fail. Loops are taken as if they ran one iteration after the other: that no two iterations of a parallel loop meet is
proved of the new program elsewhere and taken for granted of the old one. Part of the trust base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import Cast, Compare, Expr, IntImm, Logical, Var
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.operators import LogicalOp
from layoutproof.ir.stmt import Allocate, Block, BufferStore, Evaluate, For, ForKind, IfThenElse, Let, Stmt
from layoutproof.ir.text import Style, expr_text
from layoutproof.ir.visit import free_variables, walk
from layoutproof.verify.lockstep.domains import (
    Asking,
    Mismatch,
    bind,
    enter,
    has_calls,
    is_speakable,
    reads_nothing,
    shared_name,
    where,
    with_unknown,
)
from layoutproof.verify.lockstep.equal_values import ProgramPoint
from layoutproof.verify.lockstep.items import Flattener, Fresh, Item, try_apart, try_cut
from layoutproof.verify.lockstep.memories import Cells, Memories
from layoutproof.verify.lockstep.unmatched import UnmatchedSteps, cells_of, facts_at
from layoutproof.verify.program.instances import IterationDomain
from layoutproof.verify.program.questions import below
from layoutproof.verify.program.traps import traps_alike
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Claim, ClaimKind, Proved


@dataclass(frozen=True, slots=True)
class _Opened:
    """The steps to go on with in the place of two that only stand around others."""

    olds: list[Item]
    news: list[Item]


_WORDS: dict[type, str] = {
    Allocate: "an allocation",
    Block: "a block",
    BufferStore: "a store",
    Evaluate: "an effect",
    For: "a loop",
    Fresh: "new memory",
    IfThenElse: "a branch",
    Let: "a let",
}


@dataclass(slots=True)
class Walk:
    """A walk under way. `origins` gives the old numbers of new stores; `top` collects the new program's steps at its
    top, each with whether it has no counterpart.
    """

    memories: Memories
    asking: Asking
    prover: ValueProver
    before: Flattener
    after: Flattener
    origins: Mapping[int, int]
    unmatched: UnmatchedSteps
    top: list[tuple[Item, bool]] = field(default_factory=list)
    _trying: bool = False
    _tried: list[tuple[Stmt, Stmt]] = field(default_factory=list)
    _same: dict[tuple[int, int], tuple[Stmt, Stmt]] = field(default_factory=dict)

    # Sequences

    def sequence(self, olds: list[Item], news: list[Item], domain: IterationDomain, *, top: bool = False) -> Proved:
        """That two sequences of steps do the same. Raises Mismatch."""
        olds, news = list(olds), list(news)
        steps = self.top if top else []
        born: set[Var] = set()
        parts: list[Proved] = []
        while True:
            self._births(olds, news, born)
            if not olds and not news:
                return Proved.all(parts)
            old, new = olds[0] if olds else None, news[0] if news else None
            if new is not None and isinstance(new.node, Fresh):
                olds[:1] = self._towards(old, new, news, domain)
                continue
            if old is not None and new is not None and self._belong(old, new, domain):
                steps.append((new, False))
                inside = facts_at(domain, old.known)
                answer = self._cut(olds, news, inside) or self._step(old, new, inside)
                if isinstance(answer, _Opened):
                    olds[:1], news[:1] = answer.olds, answer.news
                    if answer.olds or answer.news:
                        continue
                else:
                    parts.append(answer)
                    olds.pop(0)
                    news.pop(0)
            elif self._trying:
                raise self._out_of_order(old, new)
            elif new is not None and not self._origins(new):
                parts.append(self.unmatched.check_added(new, self.after, domain))
                steps.append((new, True))
                news.pop(0)
            elif old is not None and not self._is_awaited(old, news):
                parts.append(self.unmatched.check_dropped(old, self.before, domain))
                olds.pop(0)
            else:
                raise self._out_of_order(old, new)
            born.clear()

    def _cut(self, olds: list[Item], news: list[Item], domain: IterationDomain) -> _Opened | None:
        """The two loops at the heads with the longer one cut where the shorter one ends, where what comes next goes on
        with it.
        """
        goes_on = (len(news) > 1 and isinstance(news[1].node, For) and self._belong(olds[0], news[1], domain)) or (
            len(olds) > 1 and isinstance(olds[1].node, For) and self._belong(olds[1], news[0], domain)
        )
        match olds[0].node, news[0].node:
            case (For() as a, For() as b) if goes_on:
                # Of one parallel loop, a call in its first part may meet one in the rest.
                serial = a.kind is b.kind is ForKind.SERIAL
                cut = try_cut(olds[0], news[0], domain, self.asking) if serial or not self._calls(a, b) else None
                return None if cut is None else _Opened(*cut)
            case _:
                return None

    def _births(self, olds: list[Item], news: list[Item], born: set[Var]) -> None:
        """Take memory that comes into being from the heads: new memory is fresh only where the old one is, or is not
        there yet.

        `born` is the old memory that came into being since the last step that did anything.
        """
        while olds and isinstance(olds[0].node, Fresh):
            born.add(olds[0].node.buffer.data)
            olds.pop(0)
        while news and isinstance(news[0].node, Fresh):
            data = news[0].node.buffer.data
            was = self.memories.was(data)
            if (
                was is not None
                and was not in born
                and data not in self.memories.free
                and not any(_bears(o.node, was) for o in olds)
            ):
                return
            news.pop(0)

    def _towards(self, old: Item | None, new: Item, news: list[Item], domain: IterationDomain) -> list[Item]:
        """The steps inside an old one, where the new program goes on with memory that the old one does not have yet."""
        opened = self._opened(old, self.before, facts_at(domain, old.known)) if old is not None else None
        if opened is not None:
            return opened
        if old is None or self._trying or self._is_awaited(old, news):
            name = new.node.buffer.name if isinstance(new.node, Fresh) else "memory"
            raise Mismatch(f"{name} comes into being {new.place}, where the old program does not have it anew")
        self.unmatched.check_dropped(old, self.before, domain)
        return []

    def _is_awaited(self, old: Item, news: list[Item]) -> bool:
        """Whether a step of the new program is the counterpart, as the witness has it."""
        return bool(self._numbers(old) & {n for item in news for n in self._origins(item)})

    def _out_of_order(self, old: Item | None, new: Item | None) -> Mismatch:
        if new is None:
            return Mismatch(f"what the old program does {old.place if old is not None else 'next'} has no counterpart")
        if old is None:
            return Mismatch(
                f"what the new program does {new.place} comes after everything that it could be the counterpart of"
            )
        return Mismatch(f"the old program goes on {old.place}, the new one with something else {new.place}")

    def _numbers(self, item: Item) -> frozenset[int]:
        return self.before.side.numbers_in(item.node) if isinstance(item.node, Stmt) else frozenset()

    def _origins(self, item: Item) -> set[int]:
        numbers = self.after.side.numbers_in(item.node) if isinstance(item.node, Stmt) else frozenset()
        return {self.origins[n] for n in numbers if n in self.origins}

    def _belong(self, old: Item, new: Item, domain: IterationDomain) -> bool:
        """Whether two steps are to be looked at together."""
        mine, theirs = self._numbers(old), self._origins(new)
        if mine or theirs:
            return bool(mine & theirs)
        if not isinstance(old.node, Stmt) or not isinstance(new.node, Stmt):
            return False
        before, after = self.before.side.touched(old.node), self.after.side.touched(new.node)
        if before.calls or after.calls:
            return before.calls and after.calls
        return before.assumes and after.assumes and self._is_same_assumption((old, old.node), (new, new.node), domain)

    def _is_same_assumption(self, old: tuple[Item, Stmt], new: tuple[Item, Stmt], domain: IterationDomain) -> bool:
        """Whether two steps without stores assume the same: tried once for all loops around an assumption."""
        pair = old[1], new[1]
        if self._trying:
            self._tried.append(pair)
            return True
        if (id(pair[0]), id(pair[1])) in self._same:
            return True
        self._trying, self._tried = True, [pair]
        try:
            self.sequence([old[0]], [new[0]], domain)
        except Mismatch:
            return False
        finally:
            self._trying = False
        # What was gone through inside belongs together too. (The statements are kept, so that their identities stay
        # theirs.)
        self._same.update({(id(a), id(b)): (a, b) for a, b in self._tried})
        return True

    # Steps

    def _step(self, old: Item, new: Item, domain: IterationDomain) -> Proved | _Opened:
        """That two steps do the same; where one only stands around others, those, to go on with in its place."""
        match old.node, new.node:
            case (BufferStore() as a, BufferStore() as b):
                return self._store(old, a, new, b, domain)
            case (For() as a, For() as b) if self._is_same_range(old, a, new, b, domain):
                return self._loop(old, a, new, b, domain)
            case (IfThenElse() as a, IfThenElse() as b) if self._is_same(
                old.say(a.condition), new.say(b.condition), domain
            ):
                return self._branch(old, a, new, b, domain)
            case (Let() as a, Let() as b) if self._stores_the_same(  # what it stands for may be stored
                self._point(domain), old.say(a.value), new.say(b.value)
            ):
                return self._let(old, a, new, b, domain)
            case (Evaluate() as a, Evaluate() as b):
                return self._effect(old, a, new, b, domain)
            case _:
                return self._open(old, new, domain)

    def _open(self, old: Item, new: Item, domain: IterationDomain) -> Proved | _Opened:
        """One of the two steps replaced by its body: a branch that is decided, a loop of one iteration."""
        mine = self._opened(old, self.before, domain)
        if mine is not None:
            return _Opened(mine, [new])
        theirs = self._opened(new, self.after, domain)
        if theirs is not None:
            return _Opened([old], theirs)
        apart = try_apart(old, new, domain, self.asking)
        if apart is not None:
            return _Opened(*apart)
        if self.asking.is_empty(domain):
            return Proved()
        raise self._unlike(old, new)

    def _unlike(self, old: Item, new: Item) -> Mismatch:
        match old.node, new.node:
            case (For(var=a), For(var=b)):
                return Mismatch(
                    f"loops {a.name} ({old.place}) and {b.name} ({new.place}) "
                    "are not known to run over the same numbers"
                )
            case (IfThenElse(condition=a), IfThenElse(condition=b)):
                texts = [expr_text(c, Style.PLAIN) for c in (a, b)]
                return Mismatch(
                    f"`{texts[0]}` ({old.place}) and `{texts[1]}` ({new.place}) are not known to be the same condition"
                )
            case (Let(var=a), Let(var=b)):
                return Mismatch(f"{a.name} ({old.place}) and {b.name} ({new.place}) are not known to be the same value")
            case _:
                kinds = [_WORDS.get(type(item.node), "something else") for item in (old, new)]
                return Mismatch(f"the old program has {kinds[0]} ({old.place}), the new one {kinds[1]} ({new.place})")

    def _opened(self, item: Item, flattener: Flattener, domain: IterationDomain) -> list[Item] | None:
        match item.node:
            case IfThenElse(condition=condition, then=then, otherwise=otherwise):
                said = item.say(condition)
                if self.asking.always(domain, said):
                    return flattener.items(item.inside(then, (*item.known, *item.within)))
                if is_speakable(said) and self.asking.never(domain, said):
                    return flattener.items(item.inside(otherwise)) if otherwise is not None else []
                return None
            case For(var=var, start=start, extent=extent, body=body):
                first, size = item.say(start), item.say(extent)
                if not (is_speakable(first) and is_speakable(size)):
                    return None
                if self.asking.always(domain, below(size, 1)):
                    return []
                if self.asking.equal(domain, size, IntImm(1, size.dtype)):
                    return flattener.items(replace(item.inside(body), env=bind(item.env, var, first)))
                return None
            case _:
                return None

    def _calls(self, old: Stmt, new: Stmt) -> bool:
        return self.before.side.touched(old).calls or self.after.side.touched(new).calls

    # One kind of step each

    def _point(self, domain: IterationDomain) -> ProgramPoint:
        return ProgramPoint(self.memories, self.prover, domain)

    def _is_same(self, old: Expr, new: Expr, domain: IterationDomain) -> bool:
        return self._point(domain).is_same(old, new)

    def _is_same_range(self, old: Item, a: For, new: Item, b: For, domain: IterationDomain) -> bool:
        point = self._point(domain)
        starts, extents = (old.say(a.start), new.say(b.start)), (old.say(a.extent), new.say(b.extent))
        return point.is_same(*starts, index=True) and point.is_same(*extents, index=True)

    def _loop(self, old: Item, a: For, new: Item, b: For, domain: IterationDomain) -> Proved:
        if self.before.side.touched(a.body).calls and a.kind is not b.kind:
            raise Mismatch(f"loop {b.var.name} ({new.place}) is {b.kind} now, and has a call whose body is not known")
        var, inside = self._entered(old, a, domain)
        if b.var.dtype != a.var.dtype:
            value: Expr = Cast(b.var.dtype, var)
        else:
            value = var
        olds = self.before.items(replace(old.inside(a.body), env=bind(old.env, a.var, var)))
        news = self.after.items(replace(new.inside(b.body), env=bind(new.env, b.var, value)))
        return self.sequence(olds, news, inside)

    def _entered(self, item: Item, loop: For, domain: IterationDomain) -> tuple[Var, IterationDomain]:
        """The shared variable of a loop; of a range that depends on data only the type is known."""
        start, extent = item.say(loop.start), item.say(loop.extent)
        if is_speakable(start) and is_speakable(extent):
            return enter(loop, start, extent, domain, self.before.side.facts)
        var = Var(shared_name(loop.var.name, domain, self.before.side.facts), loop.var.dtype)
        return var, with_unknown(domain, var, var)

    def _branch(self, old: Item, a: IfThenElse, new: Item, b: IfThenElse, domain: IterationDomain) -> Proved:
        said = old.say(a.condition)
        olds = self.before.items(old.inside(a.then, (*old.known, *old.within)))
        taken = self.sequence(olds, self.after.items(new.inside(b.then)), where(domain, said))
        olds = self.before.items(old.inside(a.otherwise)) if a.otherwise is not None else []
        news = self.after.items(new.inside(b.otherwise)) if b.otherwise is not None else []
        return Proved.all((taken, self.sequence(olds, news, where(domain, said, False))))

    def _let(self, old: Item, a: Let, new: Item, b: Let, domain: IterationDomain) -> _Opened:
        """A value that both programs keep: one variable in both. The rest of either goes on with it."""
        if a.var.dtype != b.var.dtype:
            raise self._unlike(old, new)
        shared = Var(
            f"{shared_name(a.var.name, domain, self.before.side.facts)}@{next(self.memories.fresh)}", a.var.dtype
        )
        olds = self.before.items(replace(old.inside(a.body), env=bind(old.env, a.var, shared)))
        return _Opened(olds, self.after.items(replace(new.inside(b.body), env=bind(new.env, b.var, shared))))

    def _effect(self, old: Item, a: Evaluate, new: Item, b: Evaluate, domain: IterationDomain) -> Proved:
        match a.value, b.value:
            case (Assume(condition=mine), Assume(condition=theirs)):
                # A let that stands for a load would turn IEEE's `==` into value identity.
                plain = not (_stands_for_loads(old, mine) or _stands_for_loads(new, theirs))
                if not (plain and self._assumes_the_same(old.say(mine), new.say(theirs), domain)):
                    raise Mismatch(f"what is assumed {new.place} is not known to be what is assumed {old.place}")
                return Proved()
            case (Assume(), _) | (_, Assume()):
                raise self._unlike(old, new)
            case _:
                if not self._is_same(old.say(a.value), new.say(b.value), domain):
                    raise Mismatch(f"the call {new.place} is not known to be the one {old.place}")
                tail = " is made as it was"
                made = Claim(ClaimKind.SAME_VALUE, "the call", new.place, tail, about=("call",))
                return Proved((made,) if has_calls(a.value) else ())

    def _assumes_the_same(self, old: Expr, new: Expr, domain: IterationDomain) -> bool:
        """Whether one assumption follows from the other, part by part: `A[i] == v` is value identity there."""
        if isinstance(new, IntImm) and new.value:
            return True
        point = self._point(domain)
        match old, new:
            case _ if is_speakable(old) and is_speakable(new):
                return point.is_same(old, new)
            case (Logical(op=op), Logical(op=other)) if op is other:
                left = self._assumes_the_same(old.lhs, new.lhs, domain)
                inside = where(domain, old.lhs, op is LogicalOp.AND)
                return left and self._assumes_the_same(old.rhs, new.rhs, inside)
            case (Compare(), Compare()):
                before, after = point.take_old(old), point.take_new(new, domain)
                return before == after
            case _:
                return False

    def _store(self, old: Item, a: BufferStore, new: Item, b: BufferStore, domain: IterationDomain) -> Proved:
        memories = self.memories
        if memories.old.root(a.buffer) in memories.missed and not self._calls(a, b):
            return self.unmatched.check_added(new, self.after, domain)
        point = self._point(domain)
        first, second = cells_of(old, a), cells_of(new, b)
        mine = Cells(first.buffer, tuple(point.take_old(i) for i in first.indices))
        theirs = Cells(second.buffer, tuple(point.take_new(i, domain) for i in second.indices))
        inside = point.with_data(domain, *mine.indices, *theirs.indices)
        where_to = expr_text_of(a)
        if not memories.is_same_cell(mine, theirs, inside) and not self.asking.is_empty(domain):
            raise Mismatch(
                f"{expr_text_of(b)} ({new.place}) is not known to be the cell that {where_to} ({old.place}) became"
            )
        value = old.say(a.value)
        if a.buffer.dtype.is_bool and not b.buffer.dtype.is_bool:
            value = Cast(b.value.dtype, value)
        if not self._stores_the_same(point, value, new.say(b.value)) and not self.asking.is_empty(domain):
            texts = [expr_text(v, Style.PLAIN) for v in (b.value, a.value)]
            raise Mismatch(
                f"the value `{texts[0]}` stored to {where_to} ({new.place}) "
                f"is not known to be `{texts[1]}` ({old.place})"
            )
        said = point.take_old(value), point.take_new(new.say(b.value), domain)
        if self.unmatched.traps and not traps_alike(point.is_alike, *said):
            raise Mismatch(f"what {expr_text_of(b)} is given may have no result where it had one ({new.place})")
        text, tail = expr_text_of(b), " stores the same value at the remapped index"
        return Proved((Claim(ClaimKind.SAME_VALUE, f"`{text}`", new.place, tail, about=("store", text)),))

    def _stores_the_same(self, point: ProgramPoint, old: Expr, new: Expr) -> bool:
        alike = point.has_same_bits if self.before.side.shows_bits or self.after.side.shows_bits else point.is_same
        return alike(old, new)


def expr_text_of(store: BufferStore) -> str:
    """`B[i, j]`."""
    return f"{store.buffer.name}[{', '.join(expr_text(i, Style.PLAIN) for i in store.indices)}]"


def _bears(node: Stmt | Fresh, data: Var) -> bool:
    """Whether a memory comes into being in a step."""
    match node:
        case Fresh(buffer=buffer):
            return buffer.data == data
        case Stmt():
            return any(buffer.data == data for part in walk(node) for buffer in _born_at(part))
        case _:
            return False


def _born_at(node: Node) -> tuple[Buffer, ...]:
    match node:
        case Allocate(buffer=buffer):
            return (buffer,)
        case Block(alloc_buffers=buffers):
            return buffers
        case _:
            return ()


def _stands_for_loads(item: Item, condition: Expr) -> bool:
    """Whether a variable of the condition stands for something that is loaded."""
    return any(not reads_nothing(item.env[v]) for v in free_variables(condition) if v in item.env)
