"""The exact model of a program run on arrays: what each cell holds at the end, by following sources to inputs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.verify.program.model_oracle import Named, Point, fixed, key_of, pairs

from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr
from layoutproof.ir.interp.memory import same_value
from layoutproof.ir.interp.walk_expr import State, evaluate_one
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.faults.bounds import element_number
from layoutproof.verify.isl.dataflow import Dataflow
from layoutproof.verify.program.statement import Read, Statement

Number = int | float


class _Unread(dict[str, Any]):
    """The variables of one instance: dims and symbols at hand, what is read looked up when it is asked for."""

    def __init__(self, run: ModelRun, statement: Statement, env: dict[str, int]) -> None:
        super().__init__({name: ((number, False),) for name, number in env.items()})
        self._run, self._statement, self._env = run, statement, env
        self._reads = {read.var.name: read for read in statement.reads}

    def __contains__(self, name: object) -> bool:
        return name in self._reads or super().__contains__(name)

    def __missing__(self, name: str) -> tuple[tuple[Number, bool], ...]:
        value = self._run.read(self._statement, self._reads[name], self._env, self)
        self[name] = ((value, False),)
        return ((value, False),)


class ModelRun:
    """One run of a program's model. `arrays` are the parameters at entry, by data variable's name, with the shape of
    their cells.
    """

    def __init__(
        self, function: PrimFunc, flow: Dataflow, symbols: Mapping[str, int], arrays: Mapping[str, Any]
    ) -> None:
        self._flow, self._symbols, self._arrays = flow, symbols, arrays
        self._at = fixed(flow, symbols)
        self._by_name = {f"{flow.tag}{s.number}": s for s in flow.statements.statements}
        self._sources: dict[tuple[int, str], dict[Point, Named]] = {}
        self._values: dict[Named, Number] = {}
        self._facts: Any = type("Facts", (), {"symbols": {}})()

    def final(self, data: Any) -> dict[Point, Number]:
        """What each cell of a parameter holds at the end."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)
        try:
            return {cell: self.value(source) for (_, cell), source in pairs(self._flow.final(data), self._at)}
        finally:
            sys.setrecursionlimit(limit)

    def value(self, source: Named) -> Number:
        """What an instance stored, or an initial cell held."""
        known = self._values.get(source)
        if known is None:
            name, point = source
            statement = self._by_name.get(name)
            if statement is None:
                array = self._arrays[name.removeprefix(f"{self._flow.tag}in_")]
                known = array.reshape(-1)[_number(point, self._box(name))].item()
            else:
                env = {**self._symbols, **dict(zip((d.var.name for d in statement.dims), point, strict=True))}
                known = self.evaluated(statement.value, _Unread(self, statement, env))
            self._values[source] = known
        return known

    def _box(self, name: str) -> Point:
        """The extents of a memory's cells, by the tuple name of its initial ones."""
        data = next(d for d in self._flow.statements.cells if f"{self._flow.tag}in_{d.name}" == name)
        return tuple(int(evaluate(extent, self._symbols)) for extent in self._flow.statements.cells[data])

    def evaluated(self, expr: Expr, env: dict[str, Any]) -> Number:
        """An expression of one lane."""
        value, _ = evaluate_one(State(self._facts, {}, {}, lambda _: 0, env), expr)
        return value

    def read(self, statement: Statement, read: Read, env: dict[str, int], values: dict[str, Any]) -> Number:
        """What a read finds."""
        key = (statement.number, read.var.name)
        known = self._sources.get(key)
        if known is None:
            known = self._sources[key] = {a[1]: b for a, b in pairs(self._flow.sources(statement, read), self._at)}
        extra = {dim.var for dim in read.access.domain.dims[len(statement.dims) :]}
        point = key_of(statement.dims, env)
        if extra:
            box = self._flow.statements.cells[read.data][len(self._flow.statements.leading[read.data]) :]
            shape = tuple(int(evaluate(extent, self._symbols)) for extent in box)
            number = int(self.evaluated(element_number(read.access.buffer, read.access.indices), values))
            cell = np.unravel_index(number, shape)
            point += tuple(int(k) for c, k in zip(read.coordinates[-len(box) :], cell, strict=True) if c in extra)
        return self.value(known[point])


def disagreements(
    function: PrimFunc, flow: Dataflow, symbols: Mapping[str, int], before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[str]:
    """Cells of parameters (arrays by buffer name) that the model says to end otherwise than a run did."""
    entry = {buffer.data.name: before[buffer.name] for buffer in function.buffers}
    run, found = ModelRun(function, flow, symbols, entry), list[str]()
    for buffer in function.buffers:
        cells = run.final(buffer.data)
        shape = tuple(int(evaluate(e, symbols)) for e in flow.statements.cells[buffer.data])
        if set(cells) != set(np.ndindex(*shape)):
            found.append(f"{buffer.name}: {len(cells)} cells of {shape}")
        ends = after[buffer.name].reshape(-1)
        for cell, value in cells.items():
            wanted = ends[_number(cell, shape)].item()
            if not same_value(float(value), float(wanted)):
                found.append(f"{buffer.name}{list(cell)}: {value}, not {wanted}")
    return found


def _number(cell: Point, shape: Point) -> int:
    return int(np.ravel_multi_index(cell, shape)) if cell else 0
