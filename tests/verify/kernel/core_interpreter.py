"""A plain interpreter of the kernel's core model: what its programs mean, for tests only."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from layoutproof.ir import semantics
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.interp.runtime import call_math, float_div
from layoutproof.verify.kernel.programs import Buffer, Expr, Loop, Program, Statement, element_of, lanes_of

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "min": semantics.select_min, "max": semantics.select_max, "/": float_div,
}  # fmt: skip
DIVIDED = {"//": "floordiv", "%": "floormod", "truncdiv": "truncdiv", "truncmod": "truncmod"}
Env = dict[str, Any]
Lanes = list[Any]


class CoreRun:
    """One run: `memory` has the scalars of each data variable by their position."""

    def __init__(self, program: Program, arrays: Mapping[str, Any], symbols: Mapping[str, Any]) -> None:
        self.program, self.symbols = program, dict(symbols)
        self.memory: dict[str, dict[int, Any]] = {b.data: {} for b in program.buffers.values()}
        for name, array in arrays.items():
            memory = self.memory[program.buffers[name].data]
            flat = self.positions(program.buffers[name])
            for position, value in zip(flat, array.reshape(-1).tolist(), strict=True):
                memory[position] = int(value) if isinstance(value, bool) else value

    def positions(self, buffer: Buffer) -> list[int]:
        """Where the scalars of a parameter lie, in row-major order of its indices."""
        shape = [self.at(e, self.symbols)[0] for e in buffer.shape]
        cells = itertools.product(*map(range, shape))
        lanes = lanes_of(buffer.dtype)
        return [self.position(buffer, cell, self.symbols) * lanes + k for cell in cells for k in range(lanes)]

    def position(self, buffer: Buffer, indices: tuple[int, ...], env: Env) -> int:
        shape = [self.at(e, env)[0] for e in buffer.shape]
        strides = [self.at(e, env)[0] for e in buffer.strides] or [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        assert all(0 <= i < n for i, n in zip(indices, shape, strict=True)), (buffer.name, indices)
        return int(self.at(buffer.offset, env)[0] + sum(i * s for i, s in zip(indices, strides, strict=True)))

    def run(self) -> dict[str, Any]:
        """The parameters' arrays afterwards; a scalar that was never written is 0."""
        instances = (i for s in self.program.statements for i in self.instances(s.loops, s.time, self.symbols, (), s))
        for _, statement, env in sorted(instances, key=lambda i: i[0]):
            if all(self.at(guard, env)[0] for guard in statement.guards) and statement.kind == "store":
                self.store(statement, env)
        found = {}
        for buffer in self.program.buffers.values():
            if buffer.is_parameter:
                memory = self.memory[buffer.data]
                values = [memory.get(p, 0) for p in self.positions(buffer)]
                found[buffer.name] = np.array(values, dtype=object).astype(numpy_dtype(DType.parse(buffer.dtype)))
        return found

    def instances(
        self, loops: tuple[Loop, ...], time: tuple[int, ...], env: Env, key: tuple[int, ...], statement: Statement
    ) -> Iterator[tuple[tuple[int, ...], Statement, Env]]:
        if not loops:
            yield (*key, time[0]), statement, env
            return
        start, extent = self.at(loops[0].start, env)[0], self.at(loops[0].extent, env)[0]
        for value in range(start, start + extent):
            inner = {**env, loops[0].var: value}
            yield from self.instances(loops[1:], time[1:], inner, (*key, time[0], value), statement)

    def store(self, statement: Statement, env: Env) -> None:
        values = self.at(statement.value, env)
        places = self.places(self.program.buffers[statement.buffer], statement.indices, env)
        for place, value in zip(places, values, strict=True):
            self.memory[self.program.buffers[statement.buffer].data][place] = value

    def places(self, buffer: Buffer, indices: tuple[Expr, ...], env: Env) -> list[int]:
        values = [self.at(index, env) for index in indices]
        *outer, last = values if values else [[]]
        cells = [(*(v[0] for v in outer), i) for i in last] if values else [()]
        lanes = lanes_of(buffer.dtype)
        return [self.position(buffer, cell, env) * lanes + k for cell in cells for k in range(lanes)]

    def at(self, e: Expr, env: Env) -> Lanes:
        """The value of an expression, lane by lane."""
        op, dtype, *rest = e
        element, lanes = DType.parse(element_of(dtype)), lanes_of(dtype)
        if op == "const":
            return [float.fromhex(rest[0]) if isinstance(rest[0], str) else int(rest[0])]
        if op == "var":
            return [env[rest[0]]]
        if op == "undef":
            return [0] * lanes
        if op == "load":
            buffer = self.program.buffers[rest[0]]
            return [self.memory[buffer.data].get(place, 0) for place in self.places(buffer, rest[1], env)]
        if op in ("and", "or", "if") and lanes_of(rest[0][1]) == 1:
            taken = bool(self.at(rest[0], env)[0])
            if op == "if":
                return self.at(rest[1] if taken else rest[2], env)
            return [int(self.at(rest[1], env)[0])] if taken is (op == "and") else [int(taken)]
        if op == "call" and rest[0] == "reinterpret":
            bits = np.array(self.at(rest[1], env)).astype(numpy_dtype(DType.parse(element_of(rest[1][1]))))
            return list(bits.view(numpy_dtype(element)).tolist())
        if op == "call" and len(rest) == 1:
            return [limit(rest[0], element)]
        if op == "call":
            return [call_math(rest[0], lane, element) for lane in self.lanes(rest[1:], env)]
        if op == "ramp":
            base, stride = (self.at(x, env)[0] for x in rest[:2])
            return [base + k * stride for k in range(rest[2])]
        if op == "broadcast":
            return [*self.at(rest[0], env)] * int(rest[1])
        source = DType.parse(element_of(rest[-1][1]))
        return [self.lane(op, element, source, lane) for lane in self.lanes(rest, env)]

    def lanes(self, operands: list[Expr], env: Env) -> list[tuple[Any, ...]]:
        values = [self.at(operand, env) for operand in operands]
        count = max(map(len, values))
        return list(zip(*(v * count if len(v) == 1 else v for v in values), strict=True))

    def lane(self, op: str, dtype: DType, source: DType, values: tuple[Any, ...]) -> Any:
        if op == "cast":
            return semantics.cast_value(values[0], source, dtype)
        if op == "not":
            return int(not values[0])
        if op == "select":
            return values[1] if values[0] else values[2]
        a, b = values
        if op in COMPARED:
            return int(COMPARED[op](a, b))
        if op in ("and", "or"):
            return int(a and b) if op == "and" else int(a or b)
        if op in DIVIDED:
            return semantics.divide(DIVIDED[op], a, b, dtype)
        if op in ("<<", ">>"):
            return (semantics.shift_left if op == "<<" else semantics.shift_right)(a, b, dtype)
        result = COMPUTED[op](a, b)
        return semantics.round_float(result, dtype) if dtype.is_float else semantics.wrap(result, dtype)


def limit(name: str, dtype: DType) -> Any:
    """The value of `T.infinity`, `T.min_value`, `T.max_value`."""
    if name == "infinity":
        return math.inf
    if dtype.is_float:
        return semantics.max_finite(dtype) * (1 if name == "max_value" else -1)
    return dtype.max_int if name == "max_value" else dtype.min_int
