"""How often a program adds to one cell: where terms are a little off, each addition may round to the other side.

A library function of a device may be some units in the last place off (OpenCL allows `exp` 3 and `tanh` 5), and so a sum of many of
its results by one unit more for every addition. Where all operations are exact nothing of this is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, Stmt
from layoutproof.ir.visit import children, free_variables, loads_in


def longest_accumulation(func: PrimFunc, symbols: Mapping[str, int]) -> int:
    """The most times that a store which reads its own buffer is run for one cell; 0 where there is none.

    A loop whose extent is not known from the symbols counts as one iteration.
    """
    return max(_lengths(func.body, (), symbols), default=0)


def _lengths(stmt: Stmt, loops: tuple[For, ...], symbols: Mapping[str, int]) -> Iterator[int]:
    match stmt:
        case For():
            loops = (*loops, stmt)
        case BufferStore(buffer=buffer, value=value, indices=indices) if any(load.buffer.data == buffer.data for load in loads_in(value)):
            over = {v for index in indices for v in free_variables(index)}
            yield prod(_extent(loop, symbols) for loop in loops if loop.var not in over)
        case _:
            pass
    for child in children(stmt):
        if isinstance(child, Stmt):
            yield from _lengths(child, loops, symbols)


def _extent(loop: For, symbols: Mapping[str, int]) -> int:
    known = all(v.name in symbols for v in free_variables(loop.extent))
    return max(int(evaluate(loop.extent, symbols)), 0) if known else 1
