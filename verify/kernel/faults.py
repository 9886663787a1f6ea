"""The new program has no fault that the old one has not: accesses in bounds, cells that may be read, arithmetic that
fits, no trap, no race.

A statement that computes an old one evaluates the same operations on the same values (`refinement`): its traps are
those of the old one, and so are reads of what was never written: the writes to the cell of a load are the same ones,
those of one iteration where a temporary is allocated in loops (`Step.cell`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from layoutproof.verify.kernel.encoding import COMPARISONS, Context, Env, is_affine_condition, is_integer, loads_of
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import (
    TRUE,
    Buffer,
    Expr,
    Inside,
    Loop,
    Program,
    Statement,
    integer_bounds,
    is_float,
    parts,
    walk,
)
from layoutproof.verify.kernel.refinement import conflicts, instance
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Step

Path = tuple[tuple[Expr, bool], ...]
Place = tuple[Statement, Path]  # what holds there: loops and guards of the statement, conditions of expressions
_DIVISIONS = ("//", "%", "truncdiv", "truncmod")


def evaluated(e: Expr, place: Place, is_index: bool = False) -> Iterator[tuple[Expr, Place, bool]]:
    """An expression and everything that is evaluated in it, where that is, and whether it is index arithmetic. The
    right side of `and` and `or` is evaluated whatever the left one is.
    """
    yield e, place, is_index
    if e[0] == "if":
        around, path = place
        yield from evaluated(e[2], place, is_index)
        yield from evaluated(e[3], (around, (*path, (e[2], True))), is_index)
        yield from evaluated(e[4], (around, (*path, (e[2], False))), is_index)
        return
    inner = is_index or e[0] == "load" or (e[0] in COMPARISONS and is_affine_condition(e))
    for part in parts(e):
        yield from evaluated(part, place, inner)


def evaluations(s: Statement) -> Iterator[tuple[Expr, Place, bool]]:
    """Everything that is evaluated at a statement and on the way to it. Of a guard it is not stated which loops are
    around it, but those are whose variables it or one before it has; inner ones may be empty, and it is evaluated.
    """
    for number, loop in enumerate(s.loops):
        for bound in (loop.start, loop.extent, ("+", loop.dtype, loop.start, loop.extent)):
            yield from evaluated(bound, (replace(s, loops=s.loops[:number], guards=()), ()), True)
    for number, guard in enumerate(s.guards):
        named = {part[2] for g in s.guards[: number + 1] for part in walk(g) if part[0] == "var"}
        depth = max((k + 1 for k, loop in enumerate(s.loops) if loop.var in named), default=0)
        yield from evaluated(guard, (replace(s, loops=s.loops[:depth], guards=s.guards[:number]), ()))
    for text, is_index in ((s.condition, False), (s.value, False), *((index, True) for index in s.indices)):
        yield from evaluated(text, (s, ()), is_index)


def _at(step: Step, place: Place) -> tuple[Context, Env]:
    statement, path = place
    context = step.context()
    env = instance(context, statement, "i")
    for condition, truth in path:
        context.require(condition, env, truth)
    return context, env


def prove_bounds(step: Step, place: Place, name: str, index: Sequence[Expr]) -> None:
    """An access stays inside its buffer."""
    buffer = step.new.buffers[name]
    context, env = _at(step, place)
    if len(index) != len(buffer.shape):
        raise Rejected(f"{name} has {len(buffer.shape)} axes")
    for part, extent in zip(index, buffer.shape, strict=True):
        value, end = context.number(part, env), context.number(extent, context.symbols)
        step.refuse(context, (Case((-value - 1,)), Case((value - end,))))
    if buffer.data in step.viewed:
        _prove_in_memory(step, context, buffer, env, index)


def _prove_in_memory(step: Step, context: Context, buffer: Buffer, env: Env, index: Sequence[Expr]) -> None:
    """An element of a view is one of its memory: all of a view without strides are, or else the one that is reached."""
    number = step.element(context, step.new, buffer, [context.number(e, env) for e in index])
    size = step.size(context, step.new.buffers[buffer.data.removesuffix("_data")])
    first, last = number, number
    if not buffer.strides:
        first = context.number(buffer.offset, context.symbols)
        last = first + step.size(context, buffer) - 1
    step.refuse(context, (Case((-first - 1,)), Case((last - size,))))


def accesses(statement: Statement) -> Iterator[tuple[str, tuple[Expr, ...], Place, bool]]:
    """Buffer, index, place and whether it writes, of every access that a statement makes."""
    if statement.kind == "store":
        yield statement.buffer, statement.indices, (statement, ()), True
    for part, place, _ in evaluations(statement):
        if part[0] == "load":
            yield part[2], part[3], place, False


def prove_arithmetic(step: Step, statement: Statement) -> None:
    """Index arithmetic without data fits its types, that on the way to a statement, too."""
    for part, place, is_index in evaluations(statement):
        if is_index:
            _prove_fits(step, part, place)


def _prove_fits(step: Step, part: Expr, place: Place) -> None:
    """No operation of a part wraps, and no conversion in it changes a value."""
    if is_integer(part[1]) and part[0] in ("+", "-", "*", "//", "truncdiv", "<<", "cast") and not loads_of(part):
        context, env = _at(step, place)
        step.prove_fits(context, part, env)
        if part[0] == "cast" and is_integer(part[2][1]):
            value, (low, high) = context.number(part[2], env), integer_bounds(part[1])
            step.refuse(context, (Case((Poly.const(low - 1) - value,)), Case((value - high - 1,))))


def prove_results(step: Step, statement: Statement) -> None:
    """No operation without data lacks a result."""
    for part, place, _ in evaluations(statement):
        _prove_result(step, part, place)


def _prove_result(step: Step, part: Expr, place: Place) -> None:
    if not is_integer(part[1]) or loads_of(part):
        return
    if part[0] == "cast" and is_float(part[2][1]):
        raise Rejected("a conversion of a float to an integer may have no result")
    if part[0] not in (*_DIVISIONS, "<<", ">>"):
        return
    context, env = _at(step, place)
    for operand in part[2:]:
        step.prove_fits(context, operand, env)
    a, b = (context.number(operand, env) for operand in part[2:])
    low, high = integer_bounds(part[1])
    if part[0] in _DIVISIONS:
        step.refuse(context, (Case((), (b,)), *((Case((), (b + 1, a - low)),) if low else ())))
    else:
        width = Poly.const((high - low + 1).bit_length() - 1)
        step.refuse(context, (Case((-b - 1,)), Case((b - width,))))


def prove_inside(step: Step, inside: Inside) -> None:
    """A block variable stays in its domain, and its value is computed without a fault."""
    around = _nothing(inside.loops, inside.guards)
    _prove_computed(step, around, (inside.value, inside.start, inside.extent))
    context, env = _at(step, (around, ()))
    value, start = context.number(inside.value, env), context.number(inside.start, env)
    step.refuse(context, (Case((start - value - 1,)), Case((value - start - context.number(inside.extent, env),))))


def prove_extents(step: Step, buffer: Buffer) -> None:
    """What says how large a buffer of the new program is, and where, is computed without a fault."""
    known = step.old.buffers.get(buffer.name)
    if not buffer.is_parameter or known is None or known.shape != buffer.shape:
        _prove_computed(step, _nothing(buffer.loops, ()), (*buffer.shape, *buffer.strides, buffer.offset))


def _nothing(loops: tuple[Loop, ...], guards: tuple[Expr, ...]) -> Statement:
    """A statement there that does nothing."""
    return Statement("assume", loops, guards, (), "", (), TRUE, TRUE, 0, -1)


def _prove_computed(step: Step, around: Statement, texts: Sequence[Expr]) -> None:
    for text in texts:
        for part, place, _ in evaluated(text, (around, ()), True):
            _prove_fits(step, part, place)
            _prove_result(step, part, place)


def prove_no_race(step: Step, program: Program, a: Statement, b: Statement) -> None:
    """No two iterations of a parallel or vectorized loop around two statements touch a cell that one of them writes."""
    for depth, (mine, theirs) in enumerate(zip(a.loops, b.loops, strict=False)):
        if a.time[: depth + 1] != b.time[: depth + 1]:
            return
        if mine.kind not in ("parallel", "vectorized"):
            continue
        for access, other in conflicts(program, a, b):
            context = step.context()
            a_env, b_env = instance(context, a, "i"), instance(context, b, "j")
            for outer in a.loops[:depth]:
                context.zeros.append(a_env[outer.var] - b_env[outer.var])
            context.zeros += step.apart(context, (access, a_env), (other, b_env), is_old=program is step.old)
            first, second = a_env[mine.var], b_env[theirs.var]
            step.refuse(context, (Case((second - first - 1,)), Case((first - second - 1,))))
