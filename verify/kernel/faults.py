"""The new program has no fault that the old one has not: accesses in bounds, cells that may be read, arithmetic that
fits, no trap, no race.

A statement that computes an old one evaluates the same operations on the same values (`refinement`): its traps are
those of the old one, and so are reads of what was never written: the writes to the cell of a load are the same ones,
those of one iteration where a temporary is allocated in loops (`Step.cell`). Of conditions on data see `extras`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.encoding import Context, Env, out_of_type, outside
from layoutproof.verify.kernel.integers import Case
from layoutproof.verify.kernel.polynomials import Poly
from layoutproof.verify.kernel.programs import Access, Buffer, Expr, Loop, Program, Statement, is_index, loads_of
from layoutproof.verify.kernel.refinement import conflicts
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Step, size_of

Place = tuple[Statement, tuple[tuple[Expr, bool], ...]]  # where something is evaluated: a statement, and conditions
Range = tuple[int, int]
Evaluated = Iterator[tuple[Expr, Place, bool]]
_DIVISIONS = ("//", "%", "truncdiv", "truncmod")


def evaluated(e: Expr, place: Place, inside: bool = False) -> Evaluated:
    """An expression and everything that is evaluated in it, where that is, and whether it is inside of index
    arithmetic. The right side of `and` and `or` is evaluated whatever the left one is.
    """
    yield e, place, inside
    if e[0] == "if":
        around, path = place
        yield from evaluated(e[2], place, inside)
        yield from evaluated(e[3], (around, (*path, (e[2], True))), inside)
        yield from evaluated(e[4], (around, (*path, (e[2], False))), inside)
        return
    inner = inside or e[0] == "load" or (e[0] in core.COMPARISONS and core.is_affine_condition(e))
    for part in core.parts(e):
        yield from evaluated(part, place, inner)


def evaluations(s: Statement) -> Evaluated:
    """Everything that is evaluated at a statement and on the way to it."""
    for number, loop in enumerate(s.loops):
        for bound in (loop.start, loop.extent, ("+", loop.dtype, loop.start, loop.extent)):
            yield from evaluated(bound, (replace(s, loops=s.loops[:number], guards=()), ()), True)
    for number, guard in enumerate(s.guards):
        yield from evaluated(guard, (s.way_to(number), ()))
    for text in (s.condition, s.value):
        yield from evaluated(text, (s, ()))
    for index in s.indices:
        yield from evaluated(index, (s, ()), True)


def _at(step: Step, place: Place) -> tuple[Context, Env]:
    context = step.context()
    env = context.instance(place[0], "i").env
    for condition, truth in place[1]:
        context.require(condition, env, truth)
    return context, env


def prove_bounds(step: Step, place: Place, access: Access) -> None:
    """An access stays inside its buffer."""
    buffer, index = step.new.buffers[access[0]], access[1]
    context, env = _at(step, place)
    if len(index) != len(buffer.shape):
        raise Rejected(f"{buffer.name} has {len(buffer.shape)} axes")
    context.prove_inside((context.number(part, env) for part in index), buffer.shape)
    owner = step.new.owner(buffer.data)
    if buffer.data in step.viewed and owner is not None:
        # All elements of a view without strides are elements of its memory, or else the one that is reached.
        first = last = step.element(context, step.new, buffer, [context.number(e, env) for e in index])
        size = size_of(context, owner)
        if not buffer.strides:
            first = context.number(buffer.offset, context.symbols)
            last = first + size_of(context, buffer) - 1
        context.refuse((Case((-first - 1,)), Case((last - size,))))


def accesses(statement: Statement) -> Iterator[tuple[Place, Access, bool]]:
    """Place, buffer and index, and whether it writes, of every access that a statement makes."""
    if statement.kind == "store":
        yield (statement, ()), statement.access, True
    for part, place, _ in evaluations(statement):
        if part[0] == "load":
            yield place, part[2:], False


def prove_arithmetic(step: Step, statement: Statement) -> None:
    """Index arithmetic without data fits its types, that on the way to a statement, too."""
    for part, place, inside in evaluations(statement):
        operators = ("+", "-", "*", "//", "truncdiv", "<<", "cast")
        if inside and is_index(part[1]) and part[0] in operators and not loads_of(part):
            context, env = _at(step, place)
            step.prove_fits(context, part, env)
            if part[0] == "cast" and is_index(part[2][1]):
                context.refuse(out_of_type(context.number(part[2], env), part[1]))


def prove_exact(step: Step, statement: Statement) -> None:
    """Index arithmetic of the old program that speaks of loops alone fits its types: where it does not, that program
    has a fault whatever its input, and what is taken from it, as exact, holds of no run.
    """
    for part, place, inside in evaluations(statement):
        if inside and is_index(part[1]) and part[0] in ("+", "-", "*"):
            ranges = _ranges(place[0].loops)
            leaves = [x for x in core.walk(part) if x[0] in ("var", "load", "call", "undef")]
            is_of_loops = all(leaf[0] == "var" and leaf[2] in ranges for leaf in leaves)
            if is_of_loops and not _surely_fits(part, ranges):
                context, env = _at(step, place)
                step.prove_fits(context, part, env, is_old=True)


def _ranges(loops: Sequence[Loop]) -> Mapping[str, Range | None]:
    """The least and the greatest value of each loop that speaks of loops alone, as far as they are found."""
    found: dict[str, Range | None] = {}
    for loop in loops:
        bounds = loop.start, loop.extent
        if all(x[0] != "load" and (x[0] != "var" or x[2] in found) for e in bounds for x in core.walk(e)):
            start, extent = (_range(e, found) for e in bounds)
            found[loop.var] = None if start is None or extent is None else (start[0], start[1] + max(extent[1], 1) - 1)
    return found


def _range(e: Expr, ranges: Mapping[str, Range | None]) -> Range | None:
    """Bounds of an expression, found without a proof; None where they are not."""
    if e[0] == "const":
        return int(e[2]), int(e[2])
    if e[0] == "var":
        return ranges.get(e[2])
    if e[0] not in ("+", "-", "*", "min", "max", "//", "%"):
        return None
    a, b = _range(e[2], ranges), _range(e[3], ranges)
    if a is None or b is None or (e[0] in ("//", "%") and b[0] < 1):
        return None
    if e[0] == "%":
        return 0, b[1] - 1
    if e[0] == "//":
        return min(a[0] // b[0], a[0] // b[1]), max(a[1] // b[0], a[1] // b[1])
    ends = [core.computed(e[0], x, y) for x in a for y in b]
    return min(ends), max(ends)


def _surely_fits(e: Expr, ranges: Mapping[str, Range | None]) -> bool:
    parts = (part for part in core.walk(e) if is_index(part[1]))
    found = ((_range(part, ranges), part[1]) for part in parts)
    return all(r is not None and core.fits(r[0], dtype) and core.fits(r[1], dtype) for r, dtype in found)


def prove_results(step: Step, statement: Statement) -> None:
    """No operation without data lacks a result."""
    for part, place, _ in evaluations(statement):
        if is_index(part[1]) and not loads_of(part):
            if part[0] == "cast" and core.is_float(part[2][1]):
                raise Rejected("a conversion of a float to an integer may have no result")
            if part[0] in (*_DIVISIONS, "<<", ">>"):
                _prove_result(step, part, *_at(step, place))


def _prove_result(step: Step, part: Expr, context: Context, env: Env) -> None:
    for operand in part[2:]:
        step.prove_fits(context, operand, env)
    a, b = (context.number(operand, env) for operand in part[2:])
    low, high = core.integer_bounds(part[1])
    if part[0] in _DIVISIONS:
        context.refuse((Case((), (b,)), *((Case((), (b + 1, a - low)),) if low else ())))
    else:
        context.refuse(outside(b, Poly(), Poly.const((high - low + 1).bit_length() - 1)))


def prove_inside(step: Step, inside: Statement) -> None:
    """A block variable stays in its domain, and its value is computed without a fault."""
    prove_arithmetic(step, inside)
    prove_results(step, inside)
    context, env = _at(step, (inside, ()))
    context.refuse(outside(*(context.number(e, env) for e in inside.indices)))


def prove_extents(step: Step, buffer: Buffer) -> None:
    """What says how large a buffer of the new program is, and where, is computed without a fault."""
    known = step.old.buffers.get(buffer.name)
    if not buffer.is_parameter or known is None or known.shape != buffer.shape:
        there = core.evaluated_at(buffer.loops, (), (*buffer.shape, *buffer.strides, buffer.offset))
        prove_arithmetic(step, there)
        prove_results(step, there)


def prove_no_race(step: Step, program: Program, a: Statement, b: Statement) -> None:
    """No two iterations of a parallel or vectorized loop around two statements touch a cell that one of them writes."""
    for depth, (mine, theirs) in enumerate(zip(a.loops, b.loops, strict=False)):
        if a.time[: depth + 1] != b.time[: depth + 1]:
            return
        for access, other in conflicts(step, program, a, b) if mine.kind in ("parallel", "vectorized") else ():
            context = step.context()
            first, second = context.instance(a, "i").env, context.instance(b, "j").env
            context.zeros += (first[outer.var] - second[outer.var] for outer in a.loops[:depth])
            context.zeros += step.apart(context, program, (access, first), (other, second))
            x, y = first[mine.var], second[theirs.var]
            context.refuse((Case((y - x - 1,)), Case((x - y - 1,))))
