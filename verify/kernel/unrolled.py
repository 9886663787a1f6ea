"""Two programs that are one once loops marked `unroll`, with constant bounds, are written out: such a loop is its
body, once for each iteration, with the number of the iteration for its variable.

What a compiler has written out is so many statements that no theta speaks of them. Of a step that says of no instance
what it computes, nothing else is asked if its programs are one by this. Expressions are compared after sums and
products of constants that fit their type are computed, by the laws that need no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from math import prod

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.laws import law
from layoutproof.verify.kernel.programs import Expr, Loop, Program, Statement
from layoutproof.verify.kernel.rejected import FAILURES, Rejected
from layoutproof.verify.kernel.step import Step

_MOST = 20_000  # statements once loops are written out
Text = tuple[object, ...]  # a loop with what is in it, or a statement


def is_one(step: Step) -> bool:
    """Whether a step that says nothing of instances leaves its program as it is."""
    try:
        prove_one(step)
    except FAILURES:
        return False
    return True


def prove_one(step: Step) -> None:
    """Both programs have the same parameters, memories and statements, in the same order."""
    if step.rewrite.theta or step.rewrite.cells or step.rewrite.interface:
        raise Rejected("the step says what it computes, or moves cells")
    first, second = (
        (p.params, p.symbols, p.buffers, p.layouts, p.noalias, repr(sorted(p.attributes.items())))
        for p in (step.old, step.new)
    )
    if first != second or any(buffer.loops for buffer in step.old.buffers.values()):
        raise Rejected("the programs have other parameters or memories, or some that are allocated in loops")
    if _written_out(step.old) != _written_out(step.new):
        raise Rejected("the programs have other statements")


def _written_out(program: Program) -> list[Text]:
    """The statements in their order, in loops that are known by how many are around them."""
    for s in program.statements:
        # Where a condition stands among loops does not matter if none is empty.
        if s.guards and not all(loop.extent[0] == "const" and loop.extent[2] > 0 for loop in s.loops):
            raise Rejected(f"line {s.line} has conditions, in a loop that may be empty")
    if sum(prod(x.extent[2] for x in s.loops if _is_written_out(x)) for s in program.statements) > _MOST:
        raise Rejected(f"there are more than {_MOST} statements once loops are written out")
    return list(_texts(program.statements, 0, {}, 0))


def _is_written_out(loop: Loop) -> bool:
    is_constant = loop.kind == "unroll" and loop.start[0] == loop.extent[0] == "const"
    return is_constant and core.fits(loop.start[2] + loop.extent[2], loop.dtype)


def _texts(inside: Iterable[Statement], depth: int, values: Mapping[str, Expr], kept: int) -> Iterator[Text]:
    """What stands in a loop, `depth` loops deep, `kept` of which are left."""
    for _, group in groupby(inside, lambda s: s.time[depth]):
        first, *others = group
        if len(first.loops) == depth:
            parts = ((_filled(e, values) for e in es) for es in (first.guards, first.indices))
            texts = (_filled(e, values) for e in (first.value, first.condition))
            yield first.kind, first.buffer, *map(tuple, parts), *texts
            continue
        loop = first.loops[depth]
        if _is_written_out(loop):
            for k in range(loop.start[2], loop.start[2] + loop.extent[2]):
                at = {**values, loop.var: ("const", loop.dtype, k)}
                yield from _texts((first, *others), depth + 1, at, kept)
        else:
            at = {**values, loop.var: ("var", loop.dtype, f"{kept}.")}
            bounds = (_filled(e, values) for e in (loop.start, loop.extent))
            yield loop.kind, loop.dtype, *bounds, *_texts((first, *others), depth + 1, at, kept + 1)


def _filled(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with values for variables, and what is constant computed."""
    if e[0] == "var":
        return values.get(e[2], e)
    if e[0] == "load":
        return (*e[:3], tuple(_filled(x, values) for x in e[3]))
    made: Expr = tuple(_filled(x, values) if isinstance(x, tuple) else x for x in e)
    if core.is_index(made[1]) and made[0] in ("+", "-", "*") and made[2][0] == made[3][0] == "const":
        number = core.computed(made[0], made[2][2], made[3][2])
        if core.fits(number, made[1]):
            return ("const", made[1], number)
    return law(made)
