"""The new program has no fault that the old one has not: accesses in bounds, cells that may be read, arithmetic that
fits, no trap, no race.

A statement that computes an old one evaluates the same operations on the same values (`refinement`): its traps are
those of the old one, and so are reads of what was never written, since temporaries are allocated once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutproof.verify.kernel.encoding import Context, Env, is_affine_condition, is_integer, loads_of
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Expr, Inside, Statement, parts, walk
from layoutproof.verify.kernel.refinement import conflicts, instance
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Step

_DIVISIONS = ("//", "%", "truncdiv", "truncmod")
Path = tuple[tuple[Expr, bool], ...]


def evaluated(e: Expr, path: Path = ()) -> Iterator[tuple[Expr, Path]]:
    """An expression and everything that is evaluated in it, with the conditions under which it is."""
    yield e, path
    if e[0] == "if":
        yield from evaluated(e[2], path)
        yield from evaluated(e[3], (*path, (e[2], True)))
        yield from evaluated(e[4], (*path, (e[2], False)))
        return
    for part in parts(e):
        yield from evaluated(part, path)


def texts_of(statement: Statement) -> Sequence[Expr]:
    """What a statement evaluates."""
    if statement.kind == "assume":
        return (statement.condition,)
    return (*statement.indices, statement.value)


def _under(step: Step, statement: Statement, path: Path) -> tuple[Context, Env]:
    context = step.context()
    env = instance(context, statement, "i")
    for condition, truth in path:
        context.require(condition, env, truth)
    return context, env


def prove_bounds(step: Step, statement: Statement, name: str, index: Sequence[Expr], path: Path = ()) -> None:
    """An access stays inside its buffer."""
    buffer = step.new.buffers[name]
    context, env = _under(step, statement, path)
    if len(index) != len(buffer.shape):
        raise Rejected(f"{name} has {len(buffer.shape)} axes")
    for part, extent in zip(index, buffer.shape, strict=True):
        value, end = context.number(part, env), context.number(extent, context.symbols)
        step.refuse(context, (Case((-value - 1,)), Case((value - end,))))


def accesses(statement: Statement) -> Iterator[tuple[str, tuple[Expr, ...], Path, bool]]:
    """Buffer, index, path and whether it writes, of every access that a statement makes."""
    if statement.kind == "store":
        yield statement.buffer, statement.indices, (), True
    for text in (*statement.guards, *texts_of(statement)):
        for part, path in evaluated(text):
            if part[0] == "load":
                yield part[2], part[3], path, False


def prove_arithmetic(step: Step, statement: Statement) -> None:
    """Integer operations without data fit their types; those on the way to a statement, too."""
    context = step.context()
    env = dict(context.symbols)
    for number, loop in enumerate(statement.loops):
        for bound in (loop.start, loop.extent, ("+", loop.dtype, loop.start, loop.extent)):
            step.prove_fits(context, bound, env)
        env[loop.var] = Poly.var(f"i{number}")
        context.between(env[loop.var], context.number(loop.start, env), context.number(loop.extent, env))
    for guard in statement.guards:
        _fits(step, context, env, guard)
        context.require(guard, env)
    for text in texts_of(statement):
        for part, path in evaluated(text):
            if path and is_integer(part[1]) and not loads_of(part):
                inner, at = _under(step, statement, path)
                step.prove_fits(inner, part, at)
            elif not path:
                _fits(step, context, env, part, deep=False)


def _fits(step: Step, context: Context, env: Env, e: Expr, *, deep: bool = True) -> None:
    for part in walk(e) if deep else (e,):
        if is_integer(part[1]) and not loads_of(part):
            step.prove_fits(context, part, env)


def prove_divisors(step: Step, statement: Statement) -> None:
    """No index arithmetic divides by 0."""
    for text in (
        *statement.guards,
        *texts_of(statement),
        *(e for loop in statement.loops for e in (loop.start, loop.extent)),
    ):
        for part, path in evaluated(text):
            if part[0] in _DIVISIONS and not _is_number(part[3]) and not loads_of(part):
                context, env = _under(step, statement, path)
                step.refuse(context, (Case((), (context.number(part[3], env),)),))


def prove_inside(step: Step, inside: Inside) -> None:
    """A block variable stays in its domain."""
    context = step.context()
    env = context.bind(inside.loops, "i")
    for guard in inside.guards:
        context.require(guard, env)
    for e in (inside.value, inside.start, inside.extent):
        if not loads_of(e):
            step.prove_fits(context, e, env)
        for part in walk(e):
            if part[0] in _DIVISIONS and not _is_number(part[3]):
                step.refuse(context, (Case((), (context.number(part[3], env),)),))
    value, start = context.number(inside.value, env), context.number(inside.start, env)
    step.refuse(context, (Case((start - value - 1,)), Case((value - start - context.number(inside.extent, env),))))


def prove_no_race(step: Step, a: Statement, b: Statement) -> None:
    """No two iterations of a parallel or vectorized loop around two statements touch a cell that one of them writes."""
    for depth, (mine, theirs) in enumerate(zip(a.loops, b.loops, strict=False)):
        if a.time[: depth + 1] != b.time[: depth + 1]:
            return
        if mine.kind not in ("parallel", "vectorized"):
            continue
        for index, other in conflicts(step.new, a, b):
            context = step.context()
            a_env, b_env = instance(context, a, "i"), instance(context, b, "j")
            for outer in a.loops[:depth]:
                context.zeros.append(a_env[outer.var] - b_env[outer.var])
            for x, y in zip(index, other, strict=True):
                context.zeros.append(context.number(x, a_env) - context.number(y, b_env))
            first, second = a_env[mine.var], b_env[theirs.var]
            step.refuse(context, (Case((second - first - 1,)), Case((first - second - 1,))))


def prove_eager(statement: Statement) -> None:
    """No conjunction or disjunction of index arithmetic relies on its left side to keep the right side from a trap."""
    for text in (*statement.guards, *texts_of(statement)):
        for part in walk(text):
            if part[0] in ("and", "or") and is_affine_condition(part):
                for right in walk(part[3]):
                    if right[0] in _DIVISIONS and not _is_number(right[3]):
                        raise Rejected("the right side of `and` or `or` divides by a variable")


def _is_number(e: Expr) -> bool:
    """Whether a divisor is a number other than 0."""
    return bool(e[0] == "const" and e[2] != 0)
