"""What a layout rewrite costs: the bytes that it moves, or what a table of measured times says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Graph, Shape, Value
from layoutproof.graph.planning.layouts import Layout, stored_bytes
from layoutproof.graph.run import Mover, run_graph
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype

CostOf = Callable[[Value, Layout, Layout], int]
"""The cost of rewriting a value from one layout to another: a number that is not below zero, of any unit, but one for all."""


@dataclass(frozen=True, slots=True)
class Move:
    """A rewrite without the name of the value: arrays of one shape and type cost the same."""

    shape: Shape
    dtype: DType
    source: Layout
    target: Layout

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}] from `{self.source}` to `{self.target}`"


def bytes_moved(value: Value, source: Layout, target: Layout) -> int:
    """The bytes that a rewrite reads and writes, padding included."""
    return stored_bytes(value, source) + stored_bytes(value, target)


def from_table(table: Mapping[Move, int]) -> CostOf:
    """The costs that a table has. What comes of it raises LayoutproofError for a rewrite that is not in the table, or costs less than 0."""

    def cost(value: Value, source: Layout, target: Layout) -> int:
        move = Move(value.shape, value.dtype, source, target)
        found = table.get(move)
        if found is None or found < 0:
            what = "has no cost" if found is None else "costs less than nothing"
            help = "`moves_of` names every rewrite that a plan may need, `measured` times them; on the command line --measure does"
            raise error(codes.COST_TABLE, f"the rewrite of {value.name}, {move}, {what} in the table of costs", help=help)
        return found

    return cost


def moves_of(costs: Iterable[tuple[str, Layout, Layout]], values: Mapping[str, Value]) -> tuple[Move, ...]:
    """The distinct rewrites among those that a problem has costs for."""
    found = (Move(values[name].shape, values[name].dtype, source, target) for name, source, target in costs)
    return tuple(dict.fromkeys(found))


def measured(move: Move, steps: Graph, mover: Mover, *, repeats: int = 5) -> int:
    """The least time of some runs of a rewrite, in nanoseconds. `steps` is the graph of its layout operators, with one input."""
    (value,) = steps.inputs
    arrays = {value.name: np.zeros(value.shape, numpy_dtype(move.dtype))}
    best = None
    for _ in range(repeats):
        start = perf_counter_ns()
        run_graph(steps, arrays, mover=mover)
        taken = perf_counter_ns() - start
        best = taken if best is None else min(best, taken)
    assert best is not None  # it was run at least once
    return best
