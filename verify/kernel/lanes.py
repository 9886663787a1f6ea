"""A statement of several lanes as one of a single lane in a further, innermost loop over the lanes.

A vector statement loads everything for all lanes, then stores all of them. One lane after the other does the same
where no lane stores what another one loads or stores: which is asked of the loop like of every vectorized loop of the
new program (`prove_no_race`), and of these loops in the old program too. The name of the loop's variable has a dot, as
no name in a text has. A buffer of elements of several lanes has the lanes as its last axis: they lie one after another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from layoutproof.verify.kernel.programs import (
    Buffer,
    Expr,
    Instances,
    Loop,
    Program,
    Rewrite,
    Statement,
    element_of,
    lanes_of,
    walk,
)

_LANE = "lane."


def is_lane(loop: Loop) -> bool:
    """Whether a loop was written as lanes."""
    return loop.var.startswith(_LANE)


def without_vectors(rewrite: Rewrite) -> Rewrite:
    """The rewrite with loops over lanes, of which theta's last input and output speak; where a line speaks of neither,
    lanes stay in their places. What is not understood remains as it is.
    """
    old, new = _scalar(rewrite.old), _scalar(rewrite.new)
    counts = [{s.number: len(s.loops) for s in p.stores} for p in (rewrite.old, rewrite.new)]
    lanes = [{s.number: s for s in p.stores if s.loops and is_lane(s.loops[-1])} for p in (old, new)]
    theta: dict[int, tuple[Instances, ...]] = {}
    for number, alternatives in rewrite.theta.items():
        found = []
        for target, names, outputs, where in alternatives:
            if number in lanes[1] and len(names) == counts[1][number]:
                var = lanes[1][number].loops[-1].var
                is_same = target in lanes[0] and len(outputs) == counts[0][target]
                names, outputs = (*names, var), (*outputs, *([("var", "int32", var)] if is_same else []))
            found.append((target, names, outputs, where))
        theta[number] = tuple(found)
    return replace(rewrite, old=old, new=new, theta=theta)


def _scalar(program: Program) -> Program:
    statements = tuple(_one_lane(program.buffers, s) for s in program.statements)
    return replace(program, statements=statements, buffers={name: _axis(b) for name, b in program.buffers.items()})


def _axis(buffer: Buffer) -> Buffer:
    count = lanes_of(buffer.dtype)
    if count == 1 or buffer.strides or buffer.offset[2:] != (0,):
        return buffer
    return replace(buffer, dtype=element_of(buffer.dtype), shape=(*buffer.shape, ("const", "int32", count)))


def _one_lane(buffers: Mapping[str, Buffer], s: Statement) -> Statement:
    count = lanes_of(s.value[1])
    loads = [(e[2], e[3]) for text in (*s.indices, s.value) for e in walk(text) if e[0] == "load"]
    wide = [index for name, index in ((s.buffer, s.indices), *loads) if s.buffer and lanes_of(buffers[name].dtype) > 1]
    if s.kind != "store" or count == 1 or any(lanes_of(e[1]) > 1 for index in wide for e in index):
        return s
    loop = Loop(f"{_LANE}{s.number}", "int32", ("const", "int32", 0), ("const", "int32", count), "vectorized")
    lane = ("var", "int32", loop.var)
    indices = _index(s.indices, lane)
    around = (*s.loops, loop), (*s.time, 0)
    return replace(s, loops=around[0], time=around[1], indices=indices, value=_of_lane(s.value, lane))


def _index(indices: tuple[Expr, ...], lane: Expr) -> tuple[Expr, ...]:
    """The index of a lane's element: by that of a vector element, or by the one lane of the last index."""
    if all(lanes_of(e[1]) == 1 for e in indices):
        return (*indices, lane)
    return tuple(_of_lane(e, lane) for e in indices)


def _of_lane(e: Expr, lane: Expr) -> Expr:
    """The value of an expression in one lane; one of a single lane has it in all."""
    if lanes_of(e[1]) == 1:
        return e
    dtype = element_of(e[1])
    if e[0] == "broadcast":
        value: Expr = e[2]
        return value
    if e[0] == "ramp":
        number = lane if dtype == lane[1] else ("cast", dtype, lane)
        return ("+", dtype, e[2], ("*", dtype, e[3], number))
    if e[0] == "load":
        return ("load", dtype, e[2], _index(e[3], lane))
    return (e[0], dtype, *(_of_lane(x, lane) if isinstance(x, tuple) else x for x in e[2:]))
