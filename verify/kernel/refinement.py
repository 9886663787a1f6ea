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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutproof.verify.kernel.encoding import (
    Cases,
    Context,
    Env,
    differ,
    is_affine_condition,
    is_integer,
    loads_of,
)
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import TRUE, Buffer, Expr, Program, Statement, is_float, parts, walk
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Access, Inverse, Map, Step

_REDUCTIONS = ("+", "*", "min", "max", "&", "|", "^")

Value = tuple[Expr, Env]
Instance = tuple[Statement, Env]


@dataclass(frozen=True, slots=True)
class Part:
    """The instances of a new store for which one line of theta speaks, and the old store that they compute."""

    number: int
    new: Statement
    old: Statement
    theta: Map

    @property
    def condition(self) -> Expr | None:
        """The condition of the line."""
        return self.theta.where


def parts_of(step: Step) -> tuple[Part, ...]:
    """All lines of theta."""
    old = {s.number: s for s in step.old.statements if s.kind == "store"}
    found: list[Part] = []
    for new in step.new.statements:
        if new.kind == "store" and step.copies.memories.get(step.new.buffers[new.buffer].data, ()) is not None:
            for target, names, outputs, where in step.rewrite.theta.get(new.number, ()):
                if target not in old:
                    raise Rejected(f"theta speaks of old store {target}, which does not exist")
                found.append(Part(len(found), new, old[target], Map(names, outputs, where)))
    return tuple(found)


def instance(context: Context, statement: Statement, tag: str) -> Env:
    """An executed instance: names of its loops with their ranges, and its guards."""
    env = context.bind(statement.loops, tag)
    for guard in statement.guards:
        context.require(guard, env)
    return env


def of_part(context: Context, part: Part, tag: str) -> tuple[Env, Env]:
    """An instance of a part, and the old instance that theta takes it to."""
    env = instance(context, part.new, tag)
    inputs = part.theta.inputs([env[loop.var] for loop in part.new.loops], context.symbols)
    if part.condition is not None:
        context.require(part.condition, inputs)
    return env, image(context, part.theta, inputs, part.old)


def image(context: Context, index_map: Map, inputs: Env, target: Statement) -> Env:
    """The values of the target's loops under a map of instances."""
    if len(index_map.outputs) != len(target.loops):
        raise Rejected(f"a map of instances has {len(index_map.outputs)} outputs for {len(target.loops)} loops")
    env = dict(context.symbols)
    for loop, output in zip(target.loops, index_map.outputs, strict=True):
        env[loop.var] = context.number(output, inputs)
    return env


def prove_executed(step: Step, context: Context, there: Instance, here: Sequence[Value]) -> None:
    """The instance `there` is executed wherever `context` holds: its loops' ranges and its guards; one that speaks of
    data is one of the conditions `here`, by the same loads.
    """
    statement, env = there
    for loop in statement.loops:
        value, start = env[loop.var], context.number(loop.start, env)
        past = value - start - context.number(loop.extent, env)
        step.refuse(context, (Case((start - value - 1,)), Case((past,))))
        context.facts += [value - start, -past - 1]
    for guard in statement.guards:
        if is_affine_condition(guard):
            step.refuse(context, context.cases(guard, env, False))
            context.require(guard, env)
        else:
            _prove_among(step, context, (guard, env), here, statement in step.old.statements)


def _prove_among(step: Step, context: Context, guard: Value, here: Sequence[Value], is_old: bool) -> None:
    for other in here:
        if not is_affine_condition(other[0]):
            try:
                prove_same(step, context, guard if is_old else other, other if is_old else guard)
                return
            except Rejected:
                continue
    raise Rejected("a condition on data has no counterpart")


def prove_same(step: Step, context: Context, old: Value, new: Value, *, is_index: bool = False) -> None:
    """Two expressions have one value where paired loads have one; loads are paired by their places in the text. That an
    index does not wrap is proved elsewhere.
    """
    (a, old_env), (b, new_env) = old, new
    if a[1] != b[1]:
        raise Rejected(f"a value of type {b[1]} stands for one of type {a[1]}")
    if a[0] == "undef" == b[0]:
        return
    if a[1] == "bool" and is_affine_condition(a) and is_affine_condition(b):
        _prove_same_truth(step, context, old, new)
    elif is_integer(a[1]) and not any(part[0] in ("load", "undef") for e in (a, b) for part in walk(e)):
        _prove_same_integer(step, context, old, new, is_index=is_index)
    elif a[0] != b[0] or len(a) != len(b):
        raise Rejected(f"{b[0]} stands for {a[0]}")
    elif a[0] == "load":
        prove_same_cell(step, context, (step.old.buffers[a[2]], a[3], old_env), (step.new.buffers[b[2]], b[3], new_env))
    else:
        _prove_same_operands(step, context, old, new)


def _prove_same_integer(step: Step, context: Context, old: Value, new: Value, *, is_index: bool) -> None:
    """Integers without data: as numbers if nothing wraps, which is proved of both, else operand by operand."""
    (a, old_env), (b, new_env) = old, new
    try:
        if not is_index:
            step.prove_fits(context, a, old_env)
            step.prove_fits(context, b, new_env)
    except Rejected:
        if a[0] != b[0] or not parts(a):
            raise
        _prove_same_operands(step, context, old, new)
        return
    step.refuse(context, differ(context.number(a, old_env), context.number(b, new_env)))


def _prove_same_operands(step: Step, context: Context, old: Value, new: Value) -> None:
    for x, y in zip(old[0][2:], new[0][2:], strict=True):
        if isinstance(x, tuple) and isinstance(y, tuple):
            prove_same(step, context, (x, old[1]), (y, new[1]))
        elif x != y or type(x) is not type(y):
            raise Rejected(f"{y} stands for {x}")


def _prove_same_truth(step: Step, context: Context, old: Value, new: Value) -> None:
    for truth in (True, False):
        for x in context.cases(*old, truth):
            for y in context.cases(*new, not truth):
                step.refuse(context, (Case((*x.facts, *y.facts), (*x.zeros, *y.zeros)),))


Cell = tuple[Buffer, Sequence[Expr], Env]


def prove_same_cell(step: Step, context: Context, old: Cell, new: Cell) -> None:
    """The new cell is f of the old one."""
    (old_buffer, old_index, old_env), (new_buffer, new_index, new_env) = old, new
    f = step.cell_map(old_buffer, new_buffer)
    if step.is_fresh(new_buffer):
        return  # see prove_paired
    if new_buffer.data in step.viewed:
        sides = (step.old, old_buffer, old_index, old_env), (step.new, new_buffer, new_index, new_env)
        x, y = (step.cell(context, program, (b.name, index), env) for program, b, index, env in sides)
        step.refuse(context, differ(x[-1], y[-1]))
        return
    if f is None and len(old_index) == len(new_index):
        for mine, theirs in zip(old_index, new_index, strict=True):
            prove_same(step, context, (mine, old_env), (theirs, new_env), is_index=True)
        return
    source = [context.number(index, old_env) for index in old_index]
    target = source if f is None else [context.number(o, f.inputs(source, context.symbols)) for o in f.outputs]
    if any(loads_of(index) for index in new_index):
        raise Rejected(f"the index of {new_buffer.name} depends on data, and its layout changes")
    if len(target) != len(new_index):
        raise Rejected(f"{new_buffer.name} has an index of {len(new_index)} axes, f one of {len(target)}")
    for expected, index in zip(target, new_index, strict=True):
        step.refuse(context, differ(expected, context.number(index, new_env)))


def prove_place(step: Step, part: Part) -> tuple[Context, Env, Env]:
    """Each instance of a part computes an executed old instance, and stores to its cell."""
    context = step.context()
    env, old_env = of_part(context, part, "i")
    prove_executed(step, context, (part.old, old_env), [(guard, env) for guard in part.new.guards])
    old, new = step.old.buffers[part.old.buffer], step.new.buffers[part.new.buffer]
    prove_same_cell(step, context, (old, part.old.indices, old_env), (new, part.new.indices, env))
    return context, env, old_env


def prove_apart(step: Step, all_parts: Sequence[Part]) -> None:
    """No instance belongs to two parts."""
    for a in all_parts:
        for b in all_parts[a.number + 1 :]:
            if a.new is b.new:
                context = step.context()
                env, _ = of_part(context, a, "i")
                inputs = b.theta.inputs([env[loop.var] for loop in b.new.loops], context.symbols)
                cases = (Case(),) if b.condition is None else context.cases(b.condition, inputs, True)
                step.refuse(context, cases)


def prove_onto(step: Step, all_parts: Sequence[Part], old: Statement) -> None:
    """Every executed instance of an old store is computed by exactly one new instance: `inverse` says by which.

    The inverse is a list of maps with conditions, of which the first whose condition holds speaks.
    """
    inverse = step.inverse(old.number)
    by_number = {part.number: part for part in all_parts if part.old is old}
    for position, entry in enumerate(inverse):
        if entry.part not in by_number:
            raise Rejected(f"the inverse of old store {old.number} speaks of another part")
        part = by_number[entry.part]
        context = step.context()
        env = instance(context, old, "o")
        inputs = _speaks(context, inverse, position, [env[loop.var] for loop in old.loops])
        new_env = image(context, entry.map, inputs, part.new)
        prove_executed(step, context, (part.new, new_env), [(guard, env) for guard in old.guards])
        values = [new_env[loop.var] for loop in part.new.loops]
        theta_inputs = part.theta.inputs(values, context.symbols)
        if part.condition is not None:
            step.refuse(context, context.cases(part.condition, theta_inputs, False))
        back = image(context, part.theta, theta_inputs, old)
        for loop in old.loops:
            step.refuse(context, differ(back[loop.var], env[loop.var]))
    if not inverse or inverse[-1].map.where is not None:
        context = step.context()
        env = instance(context, old, "o")
        _speaks(context, inverse, len(inverse), [env[loop.var] for loop in old.loops])
        step.refuse(context, (Case(),))
    for part in by_number.values():
        _prove_back(step, part, inverse)


def _speaks(context: Context, inverse: Sequence[Inverse], position: int, values: Sequence[Poly]) -> Env:
    """The inputs of the map at a position, where no earlier condition holds, and its own does."""
    for earlier in inverse[:position]:
        if earlier.map.where is None:
            context.add(())
        else:
            context.require(earlier.map.where, earlier.map.inputs(values, context.symbols), truth=False)
    if position == len(inverse):
        return context.symbols
    here = inverse[position].map
    inputs = here.inputs(values, context.symbols)
    if here.where is not None:
        context.require(here.where, inputs)
    return inputs


def _prove_back(step: Step, part: Part, inverse: Sequence[Inverse]) -> None:
    """The inverse takes the image of each instance of a part back to it: theta is one-to-one."""
    for position in range(len(inverse)):
        context = step.context()
        env, old_env = of_part(context, part, "i")
        inputs = _speaks(context, inverse, position, [old_env[loop.var] for loop in part.old.loops])
        if inverse[position].part != part.number:
            step.refuse(context, (Case(),))
            continue
        back = image(context, inverse[position].map, inputs, part.new)
        for loop in part.new.loops:
            step.refuse(context, differ(back[loop.var], env[loop.var]))


# ---- order


def before(a: Statement, a_env: Env, b: Statement, b_env: Env) -> Cases:
    """The cases in which an instance of `a` comes before one of `b`."""
    cases: list[Case] = []
    equal: list[Poly] = []
    for depth in range(min(len(a.time), len(b.time))):
        if a.time[depth] != b.time[depth]:
            return (*cases, Case((), tuple(equal))) if a.time[depth] < b.time[depth] else tuple(cases)
        if depth == len(a.loops) or depth == len(b.loops):
            break
        first, second = a_env[a.loops[depth].var], b_env[b.loops[depth].var]
        cases.append(Case((second - first - 1,), tuple(equal)))
        equal.append(first - second)
    return tuple(cases)


def not_before(a: Statement, a_env: Env, b: Statement, b_env: Env) -> Cases:
    """The cases in which an instance of `a` does not come before one of `b`: it comes after, or is the same one."""
    after = before(b, b_env, a, a_env)
    if a.time != b.time:
        return after
    return (*after, Case((), tuple(a_env[x.var] - b_env[y.var] for x, y in zip(a.loops, b.loops, strict=True))))


def both(xs: Cases, ys: Cases) -> Cases:
    """The cases in which one of each holds."""
    return tuple(Case((*x.facts, *y.facts), (*x.zeros, *y.zeros)) for x in xs for y in ys)


def touched(statement: Statement) -> Iterator[tuple[str, tuple[Expr, ...], bool]]:
    """The accesses of a statement, each once: buffer, index, whether it writes."""
    seen = set()
    if statement.kind == "store":
        seen.add((statement.buffer, statement.indices, True))
    texts = (
        (*statement.guards, statement.condition)
        if statement.kind == "assume"
        else (*statement.guards, statement.value, *statement.indices)
    )
    for text in texts:
        seen |= {(load[2], load[3], False) for load in loads_of(text)}
    # A load of the cell that the statement writes asks nothing that the write does not ask.
    yield from sorted((x for x in seen if x[2] or (x[0], x[1], True) not in seen), key=repr)


def conflicts(program: Program, a: Statement, b: Statement) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses of one memory, one of them a write."""
    for name, index, writes in touched(a):
        for other, other_index, other_writes in touched(b):
            if (writes or other_writes) and program.buffers[name].data == program.buffers[other].data:
                yield (name, index), (other, other_index)


def _update(program: Program, statement: Statement) -> tuple[str, str] | None:
    """The operator and type of `X[c] = X[c] (+) e` or `X[c] = e (+) X[c]`, where nothing else in it loads X."""
    value = statement.value
    if value[0] not in _REDUCTIONS:
        return None
    data = program.buffers[statement.buffer].data
    own = ("load", value[1], statement.buffer, statement.indices)
    others = [*statement.guards, *statement.indices, *(x for x in value[2:] if x != own)]
    loads = [load for e in others for load in loads_of(e)]
    if len(others) != len(statement.guards) + len(statement.indices) + 1:
        return None
    return None if any(program.buffers[load[2]].data == data for load in loads) else (value[0], value[1])


def may_change_places(step: Step, a: Statement, b: Statement) -> bool:
    """Whether two statements are updates of one memory by one operator that is associative and commutative: on
    integers, which wrap; on floats a sum or product where reassociation is allowed, a minimum or maximum where no value
    is NaN and the sign of zero does not matter.
    """
    if step.new.buffers[a.buffer].data != step.new.buffers[b.buffer].data:
        return False
    update = _update(step.new, a)
    if update is None or update != _update(step.new, b):
        return False
    if is_integer(update[1]):
        return True
    needed = {"nnan", "nsz"} if update[0] in ("min", "max") else {"reassoc"}
    return is_float(update[1]) and needed <= step.allowed


def prove_order(step: Step, a: Part, b: Part) -> None:
    """Conflicting instances of two parts, the first before the second, are in the same order in the old program. The
    loads of a value that `copies` compares are not among them.
    """
    free = (a.new.buffer, a.new.indices), (b.new.buffer, b.new.indices)
    first, second = (replace(p.new, value=TRUE) if step.is_moved(p.new.number, p.old.number) else p.new for p in (a, b))
    for access, other in conflicts(step.new, first, second):
        if may_change_places(step, a.new, b.new) and (access, other) == free:
            continue
        context = step.context()
        a_env, a_old = of_part(context, a, "i")
        b_env, b_old = of_part(context, b, "j")
        context.zeros += step.apart(context, (access, a_env), (other, b_env))
        step.refuse(context, both(before(a.new, a_env, b.new, b_env), before(b.old, b_old, a.old, a_old)))


def prove_paired(step: Step, a: Part, b: Part) -> None:
    """Accesses of two parts to temporaries that are allocated in loops, one of them a write, are of one cell in the
    new program iff the accesses that they stand for are of one cell in the old program.

    So the writes to the cell of a load are those that the old load finds, and in the same order (`prove_order`). There
    is one: the old program does not read what was never written. No map of cells is needed, as such a cell has neither
    an entry value nor a reader at the end.
    """
    for mine in _fresh_accesses(step, a):
        for theirs in _fresh_accesses(step, b):
            names = mine[1][0], theirs[1][0]
            if (mine[2] or theirs[2]) and step.new.buffers[names[0]].data == step.new.buffers[names[1]].data:
                context = step.context()
                a_env, a_old = of_part(context, a, "i")
                b_env, b_old = of_part(context, b, "j")
                new = step.apart(context, (mine[1], a_env), (theirs[1], b_env))
                old = step.apart(context, (mine[0], a_old), (theirs[0], b_old), is_old=True)
                for same, others in ((new, old), (old, new)):
                    for other in others:
                        for case in differ(other, Poly()):
                            step.refuse(context, (Case(case.facts, tuple(same)),))


def _fresh_accesses(step: Step, part: Part) -> list[tuple[Access, Access, bool]]:
    """Old and new access of each pair, and whether they write. Loads are paired by their places in the value."""
    old, new = (loads_of(statement.value) for statement in (part.old, part.new))
    if len(old) != len(new):
        raise Rejected("values with different loads")
    store = (part.old.buffer, part.old.indices), (part.new.buffer, part.new.indices), True
    loads = (((x[2], x[3]), (y[2], y[3]), False) for x, y in zip(old, new, strict=True))
    pairs = [pair for pair in (store, *loads) if step.is_fresh(step.new.buffers[pair[1][0]])]
    elsewhere = [load for text in (*part.new.guards, *part.new.indices) for load in loads_of(text)]
    nested = [x for a, b, _ in pairs for index in (*a[1], *b[1]) for x in loads_of(index)]
    if nested or any(step.is_fresh(step.new.buffers[load[2]]) for load in elsewhere):
        raise Rejected(f"line {part.new.line} reaches a temporary of a loop by data, or has a condition on it")
    return pairs


def prove_steady_guards(program: Program) -> None:
    """No statement writes what a condition on data around it reads: it may be evaluated again at each statement."""
    for statement in program.statements:
        if statement.kind == "store":
            written = program.buffers[statement.buffer].data
            for guard in statement.guards:
                if any(program.buffers[load[2]].data == written for load in loads_of(guard)):
                    raise Rejected(f"line {statement.line} writes what a condition around it reads")
        for loop in statement.loops:
            if loads_of(loop.start) or loads_of(loop.extent):
                raise Rejected(f"a loop around line {statement.line} has a bound that depends on data")
