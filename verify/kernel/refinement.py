"""The new program does what the old one does: the part of the kernel that everything else is for.

Statements are executed in the order of their times. Theta takes executed instances of new stores to executed instances
of old ones, f old cells to new ones. Where

1. theta takes them one-to-one onto all that the old program executes,
2. each stores the same expression to the cell that f says, and its loads are of the cells that f says, and
3. two instances of which one writes a cell that the other touches are in the same order in both programs,

each load finds what the paired one finds, by induction over the time of the new program: the last write of the cell
before it is the same instance in both, or there is none and the cell has its entry value. So each cell f(c) ends with
the value of c. Of temporaries that are allocated in loops f says nothing: see `prove_paired`. Instances of the new
program that theta takes nowhere are another matter (`extras`).

Of 3 there is one exception, `X[c] = X[c] (+) e` where e has no X in it: such updates may change places with one another
where (+) is associative and commutative. Everything else that touches the cell keeps its order with all of them, so
between two such accesses the same terms are added to the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.encoding import ALWAYS, Cases, Context, Env, Instance, both, differ, outside
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.laws import law, pairings
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Access, Expr, Map, Program, Statement, is_affine_condition, loads_of
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Inverse, Step

_REDUCTIONS = ("+", "*", "min", "max", "&", "|", "^")
Value = tuple[Expr, Env]


@dataclass(frozen=True, slots=True)
class Part:
    """The instances of a new store for which one line of theta speaks, and the old store that they compute."""

    number: int
    new: Statement
    old: Statement
    theta: Map


def parts_of(step: Step) -> tuple[Part, ...]:
    """All lines of theta."""
    old = {s.number: s for s in step.old.stores}
    found: list[Part] = []
    for new in step.new.stores:
        if step.copies.memories.get(step.new.data(new.buffer), ()) is not None:
            for target, theta in step.rewrite.theta.get(new.number, ()):
                if target not in old:
                    raise Rejected(f"theta speaks of old store {target}, which does not exist")
                found.append(Part(len(found), new, old[target], theta))
    return tuple(found)


def first_of(attempts: Iterable[Callable[[], object]], otherwise: str = "") -> None:
    """One of several proofs does. Raises Rejected with the reasons of all, or the one that is given."""
    reasons = []
    for attempt in attempts:
        try:
            attempt()
            return
        except Rejected as problem:
            reasons.append(str(problem))
    each = "; ".join(reasons).split("; ")
    raise Rejected(otherwise or "; ".join(dict.fromkeys(each)))


def of_part(context: Context, part: Part, tag: str) -> tuple[Instance, Instance]:
    """An instance of a part, and the old instance that theta takes it to."""
    new = context.instance(part.new, tag)
    context.require(part.theta.where, context.inputs(part.theta, new.values))
    return new, context.image(part.theta, new.values, part.old)


def prove_executed(step: Step, context: Context, there: Instance, here: Sequence[Value] = ()) -> None:
    """The instance `there` is executed wherever `context` holds: its loops' ranges and its guards; one that speaks of
    data is one of the conditions `here`, by the same loads.
    """
    statement, env = there
    for loop in statement.loops:
        box = env[loop.var], context.number(loop.start, env), context.number(loop.extent, env)
        context.refuse(outside(*box))
        context.between(*box)
    for guard in statement.guards:
        if is_affine_condition(guard):
            context.prove(guard, env)
            context.require(guard, env)
        else:
            pairs = [((guard, env), other) for other in here if not is_affine_condition(other[0])]
            pairs = pairs if statement in step.old.statements else [(b, a) for a, b in pairs]
            attempts = [partial(prove_same, step, context, *pair) for pair in pairs]
            first_of(attempts, "a condition on data has no counterpart")


def prove_same(step: Step, context: Context, old: Value, new: Value) -> None:
    """Two expressions have one value where paired loads have one; operands are paired by `laws`."""
    (a, old_env), (b, new_env) = old, new = (law(old[0]), old[1]), (law(new[0]), new[1])
    if a[1] != b[1]:
        raise Rejected(f"a value of type {b[1]} stands for one of type {a[1]}")
    if a[0] == "undef" == b[0]:
        return
    if a[1] == "bool" and is_affine_condition(a) and is_affine_condition(b):
        for truth in (True, False):
            for case in context.cases(*old, truth):
                context.refuse(both((case,), context.cases(*new, not truth)))
    elif core.is_index(a[1]) and not any(core.has(e, "load", "undef") for e in (a, b)):
        _prove_same_integer(step, context, old, new)
    elif a[0] == "load" == b[0]:
        prove_same_cell(step, context, (a[2:], old_env), (b[2:], new_env))
    else:
        same_operands(step, a, b, lambda x, y: prove_same(step, context, (x, old_env), (y, new_env)))


def same_operands(step: Step, a: Expr, b: Expr, prove: Callable[[Expr, Expr], None]) -> None:
    """The operands of two expressions have one value, in pairs, and so have the expressions."""

    def each(pairs: Sequence[tuple[Expr, Expr]]) -> None:
        step.spend(1)
        known = dict(step.paired)
        try:
            for x, y in pairs:
                prove(x, y)
        except Rejected:
            step.paired = known
            raise

    if (a[0], b[0]) == ("if", "select"):
        # The side that is not taken is evaluated now.
        loads = loads_of(*b[3:])
        traps = any(core.may_trap(part) for side in b[3:] for part in core.walk(side))
        unknown = (loads_of(*x[3]) or step.new.is_temporary(x[2]) or step.is_open(x[2]) for x in loads)
        if traps or any(unknown) or any(step.is_undefined(x[2]) for x in loads):
            raise Rejected("a choice that evaluates both sides stands for one that does not")
    first_of(partial(each, pairs) for pairs in pairings(a, b))


def _prove_same_integer(step: Step, context: Context, old: Value, new: Value) -> None:
    """Integers without data: as numbers if nothing wraps, which is proved of both, else operand by operand."""
    try:
        for value in (old, new):
            step.prove_fits(context, *value, is_old=value is old)
    except Rejected:
        if old[0][0] != new[0][0] or not core.parts(old[0]):
            raise
        same_operands(step, old[0], new[0], lambda x, y: prove_same(step, context, (x, old[1]), (y, new[1])))
        return
    context.refuse(differ(context.number(*old), context.number(*new)))


def prove_same_cell(step: Step, context: Context, old: tuple[Access, Env], new: tuple[Access, Env]) -> None:
    """The new cell is f of the old one. Indices are numbers, of any type: that they do not wrap is proved elsewhere."""
    ((old_name, old_index), old_env), ((new_name, new_index), new_env) = old, new
    buffer = step.new.buffers[new_name]
    f = step.cell_map(step.old.buffers[old_name], buffer)
    if step.is_fresh(buffer):
        step.paired[old[0], new[0]] = True  # see prove_paired
        return
    if buffer.data in step.viewed:
        x, y = step.cell(context, step.old, *old), step.cell(context, step.new, *new)
        context.refuse(differ(x[-1], y[-1]))
        return
    if len(f.outputs if f is not None else old_index) != len(new_index):
        raise Rejected(f"{new_name} has an index of {len(new_index)} axes, and f of another number")
    if f is None:
        for mine, theirs in zip(old_index, new_index, strict=True):
            if loads_of(mine, theirs):
                prove_same(step, context, (mine, old_env), (theirs, new_env))
            else:
                context.prove_equal([context.number(mine, old_env)], [context.number(theirs, new_env)])
        return
    target = list(context.outputs(f, [context.number(index, old_env) for index in old_index]))
    if loads_of(*new_index):
        raise Rejected(f"the index of {new_name} depends on data, and its layout changes")
    context.prove_equal(target, (context.number(index, new_env) for index in new_index))


def prove_place(step: Step, part: Part) -> tuple[Context, Instance, Instance]:
    """Each instance of a part computes an executed old instance, and stores to its cell."""
    context = step.context()
    new, old = of_part(context, part, "i")
    prove_executed(step, context, old, [(guard, new.env) for guard in part.new.guards])
    prove_same_cell(step, context, old.cell, new.cell)
    return context, new, old


def prove_apart(step: Step, all_parts: Sequence[Part]) -> None:
    """No instance belongs to two parts."""
    for a in all_parts:
        for b in (b for b in all_parts[a.number + 1 :] if a.new is b.new):
            context = step.context()
            new, _ = of_part(context, a, "i")
            context.refuse(context.cases(b.theta.where, context.inputs(b.theta, new.values), True))


def prove_onto(step: Step, all_parts: Sequence[Part], old: Statement) -> None:
    """Every executed instance of an old store is computed by exactly one new instance: `inverse` says by which.

    The inverse is a list of maps with conditions, of which the first whose condition holds speaks.
    """
    if old.number not in step.given.inverses:
        raise Rejected(f"no inverse of theta is given for old store {old.number}")
    inverse = step.given.inverses[old.number]
    by_number = {part.number: part for part in all_parts if part.old is old}
    for position, entry in enumerate(inverse):
        if entry.part not in by_number:
            raise Rejected(f"the inverse of old store {old.number} speaks of another part")
        part, context = by_number[entry.part], step.context()
        there = context.instance(old, "o")
        _speaks(context, inverse, position, there)
        new = context.image(entry.map, there.values, part.new)
        prove_executed(step, context, new, [(guard, there.env) for guard in old.guards])
        context.prove(part.theta.where, context.inputs(part.theta, new.values))
        context.prove_equal(context.image(part.theta, new.values, old).values, there.values)
    if not inverse or inverse[-1].map.where != core.TRUE:
        context = step.context()
        _speaks(context, inverse, len(inverse), context.instance(old, "o"))
        context.refuse(ALWAYS)
    # The inverse takes the image of each instance of a part back to it: theta is one-to-one.
    for part in by_number.values():
        for position, entry in enumerate(inverse):
            context = step.context()
            new, there = of_part(context, part, "i")
            _speaks(context, inverse, position, there)
            if entry.part != part.number:
                context.refuse(ALWAYS)
            else:
                context.prove_equal(context.image(entry.map, there.values, part.new).values, new.values)


def _speaks(context: Context, inverse: Sequence[Inverse], position: int, old: Instance) -> None:
    """The fact that no earlier condition of an inverse holds, and that at a position does."""
    for number, entry in enumerate(inverse[: position + 1]):
        context.require(entry.map.where, context.inputs(entry.map, old.values), truth=number == position)


# ---- order


def before(a: Instance, b: Instance) -> Cases:
    """The cases in which one instance comes before another."""
    cases: list[Case] = []
    equal: list[Poly] = []
    mine, theirs = a.statement.time, b.statement.time
    for depth in range(min(len(mine), len(theirs))):
        if mine[depth] != theirs[depth]:
            return (*cases, Case((), tuple(equal))) if mine[depth] < theirs[depth] else tuple(cases)
        if depth == len(a.statement.loops) or depth == len(b.statement.loops):
            break
        first, second = a.values[depth], b.values[depth]
        cases.append(Case((second - first - 1,), tuple(equal)))
        equal.append(first - second)
    return tuple(cases)


def not_before(a: Instance, b: Instance) -> Cases:
    """The cases in which an instance does not come before another one: it comes after, or is the same one."""
    after = before(b, a)
    if a.statement.time != b.statement.time:
        return after
    return (*after, Case((), tuple(x - y for x, y in zip(a.values, b.values, strict=True))))


def conflicts(step: Step, program: Program, a: Statement, b: Statement) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses of one memory, one of them a write."""
    for mine, writes in _touched(a):
        for theirs, other_writes in _touched(b):
            if (writes or other_writes) and step.meets(program, mine[0], theirs[0]):
                yield mine, theirs


def _touched(statement: Statement) -> Iterator[tuple[Access, bool]]:
    """The accesses of a statement, each once, and whether it writes. A load of the cell that the statement writes asks
    nothing that the write does not ask.
    """
    writes = {statement.access} if statement.kind == "store" else set()
    loads = {(load[2], load[3]) for load in loads_of(*statement.texts)}
    yield from sorted(((access, access in writes) for access in writes | loads), key=lambda x: repr((*x[0], x[1])))


def _update(program: Program, statement: Statement) -> tuple[str, str] | None:
    """The operator and type of `X[c] = X[c] (+) e` or `X[c] = e (+) X[c]`, where nothing else in it loads X."""
    value = statement.value
    own = ("load", value[1], *statement.access)
    if value[0] not in _REDUCTIONS or (value[2] == own) == (value[3] == own):
        return None
    loads = loads_of(*statement.guards, *statement.indices, *(x for x in value[2:] if x != own))
    return None if any(program.data(x[2]) == program.data(statement.buffer) for x in loads) else (value[0], value[1])


def may_change_places(step: Step, a: Statement, b: Statement) -> bool:
    """Whether two statements are updates of one memory by one operator that is associative and commutative: on
    integers, which wrap; on floats a sum or product where reassociation is allowed, a minimum or maximum where no value
    is NaN and the sign of zero does not matter.
    """
    update = _update(step.new, a)
    if step.new.data(a.buffer) != step.new.data(b.buffer) or update is None or update != _update(step.new, b):
        return False
    if step.overlaps and not step.new.is_temporary(a.buffer):
        return False
    needed = {"nnan", "nsz"} if update[0] in ("min", "max") else {"reassoc"}
    return core.is_index(update[1]) or (core.is_float(update[1]) and needed <= step.allowed)


def prove_order(step: Step, a: Part, b: Part) -> None:
    """Conflicting instances of two parts, the first before the second, are in the same order in the old program. The
    loads of a value that `copies` compares are not among them.
    """
    free = a.new.access, b.new.access
    sides = (replace(p.new, value=core.TRUE) if step.is_moved(p.new.number, p.old.number) else p.new for p in (a, b))
    for access, other in conflicts(step, step.new, *sides):
        if not (may_change_places(step, a.new, b.new) and (access, other) == free):
            context = step.context()
            (first, first_old), (second, second_old) = of_part(context, a, "i"), of_part(context, b, "j")
            context.zeros += step.apart(context, step.new, (access, first.env), (other, second.env))
            context.refuse(both(before(first, second), before(second_old, first_old)))


def prove_paired(step: Step, a: Part, b: Part) -> None:
    """Accesses of two parts to temporaries that are allocated in loops, one of them a write, are of one cell in the
    new program iff the accesses that they stand for are of one cell in the old program.

    So the writes to the cell of a load are those that the old load finds, and in the same order (`prove_order`). There
    is one: the old program does not read what was never written. No map of cells is needed, as such a cell has neither
    an entry value nor a reader at the end.
    """
    pairs = [(mine, theirs) for mine in _fresh_accesses(step, a) for theirs in _fresh_accesses(step, b)]
    for (old, new, writes), (old_other, new_other, other_writes) in pairs:
        if (writes or other_writes) and step.new.data(new[0]) == step.new.data(new_other[0]):
            context = step.context()
            (first, first_old), (second, second_old) = of_part(context, a, "i"), of_part(context, b, "j")
            same = step.apart(context, step.new, (new, first.env), (new_other, second.env))
            was_same = step.apart(context, step.old, (old, first_old.env), (old_other, second_old.env))
            for known, others in ((same, was_same), (was_same, same)):
                for other in others:
                    context.refuse(both(differ(other, Poly()), (Case((), tuple(known)),)))


def _fresh_accesses(step: Step, part: Part) -> list[tuple[Access, Access, bool]]:
    """Old and new access of each pair that `prove_same_cell` was asked of, and whether they write."""
    old, new = ({s.access, *(load[2:] for load in loads_of(s.value))} for s in (part.old, part.new))
    pairs = [(a, b, a == part.old.access and b == part.new.access) for a, b in step.paired if a in old and b in new]
    elsewhere = loads_of(*part.new.guards, *part.new.indices)
    nested = [x for a, b, _ in pairs for x in loads_of(*a[1], *b[1])]
    if nested or any(step.is_fresh(step.new.buffers[load[2]]) for load in elsewhere):
        raise Rejected(f"line {part.new.line} reaches a temporary of a loop by data, or has a condition on it")
    return pairs
