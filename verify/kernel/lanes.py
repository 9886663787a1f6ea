"""A statement of several lanes as one of a single lane in a further, innermost loop over the lanes.

A vector statement loads everything for all lanes, then stores all of them. One lane after the other does the same
where no lane stores what another one loads or stores: which is asked of the loop like of every vectorized loop of the
new program (`prove_no_race`), and of these loops in the old program too. The name of the loop's variable has a dot, as
no name in a text has. A buffer of elements of several lanes has the lanes as its last axis: they lie one after another.
Theta's last input and output speak of the lanes; where a line speaks of neither, lanes stay in their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from layoutproof.verify.kernel import programs as core
from layoutproof.verify.kernel.programs import Buffer, Expr, Loop, Program, Statement, element_of, lanes_of, variable

_LANE = "lane."


def is_lane(loop: Loop) -> bool:
    """Whether a loop was written as lanes."""
    return loop.var.startswith(_LANE)


def one_lane(program: Program) -> Program:
    """The program with loops over lanes; what is not understood remains as it is."""
    statements = tuple(_one_lane(program.buffers, s) for s in program.statements)
    return replace(program, statements=statements, buffers={name: _axis(b) for name, b in program.buffers.items()})


def _axis(buffer: Buffer) -> Buffer:
    count = lanes_of(buffer.dtype)
    if count == 1 or buffer.strides or buffer.offset[2:] != (0,):
        return buffer
    shape = (*buffer.shape, ("const", "int32", count))
    return replace(buffer, dtype=element_of(buffer.dtype), shape=shape, lanes=count)


def _one_lane(buffers: Mapping[str, Buffer], s: Statement) -> Statement:
    count = lanes_of(s.value[1])
    if s.kind != "store" or count == 1:
        return s
    accesses = [s.access, *(load[2:] for load in core.loads_of(*s.indices, s.value))]
    wide = [index for name, index in accesses if lanes_of(buffers[name].dtype) > 1]
    if any(lanes_of(e[1]) > 1 for index in wide for e in index):
        return s
    loop = Loop(f"{_LANE}{s.number}", "int32", ("const", "int32", 0), ("const", "int32", count), "vectorized")
    value, indices = _of_lane(s.value, variable(loop)), _index(s.indices, variable(loop))
    return replace(s, loops=(*s.loops, loop), time=(*s.time, 0), indices=indices, value=value)


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
        return _of_lane(e[2], lane)
    if e[0] == "ramp":
        number = lane if dtype == lane[1] else ("cast", dtype, lane)
        return ("+", dtype, e[2], ("*", dtype, e[3], number))
    if e[0] == "load":
        return ("load", dtype, e[2], _index(e[3], lane))
    return (e[0], dtype, *(_of_lane(x, lane) if isinstance(x, tuple) else x for x in e[2:]))
