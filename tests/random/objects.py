"""Random small programs: loops of every kind, blocks with guards and reductions, lazy choices, vectors, lets,
data-dependent indices, temporaries, aliases, undefined values. Many of them fault; that is meant.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from layoutproof.ir.buffer import Buffer, BufferLoad, Range, make_buffer
from layoutproof.ir.dtype import FLOAT32, HANDLE, INT32, DType
from layoutproof.ir.expr import (
    TRUE,
    Binary,
    Broadcast,
    Cast,
    Expr,
    IfThenElseExpr,
    IntImm,
    Ramp,
    Select,
    Var,
    const,
    equal,
    logical_and,
    logical_or,
)
from layoutproof.ir.intrinsics import Assume, Call, Reinterpret, Undef
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    IterVar,
    Let,
    Stmt,
    seq,
)


class RandomProgram:
    """One random function, and arguments for it.

    `shared` makes reductions whose results share cells or read each other's, also where there are no faults, that have
    neighbours, visit a result from several loops, and initialise by what is at hand.
    """

    def __init__(self, seed: int, *, faults: bool = True, undef: bool = True, shared: bool = False) -> None:
        self.random = random.Random(seed)
        self.faults, self.undef, self.shared = faults, undef, shared
        self.counter = 0
        shapes = [(6,), (4, 5), (3, 4)]
        self.params = [
            make_buffer("A", self.random.choice(shapes), "float32"),
            make_buffer("B", self.random.choice(shapes), "float32"),
            make_buffer("D", (7,), "int32"),
            make_buffer("E", self.random.choice(shapes), "int32"),
        ]
        self.buffers = list(self.params)
        self.variables: dict[str, tuple[int, int]] = {}

    def name(self, prefix: str) -> str:
        """A fresh name."""
        self.counter += 1
        return f"{prefix}{self.counter}"

    def function(self) -> PrimFunc:
        """The function."""
        body = self.body(3)
        handles = tuple(Var(f"{b.name}_h", HANDLE) for b in self.params)
        return PrimFunc("main", handles, tuple(zip(handles, self.params, strict=True)), body)

    def arguments(self) -> dict[str, Any]:
        """Arrays for the parameters: small floats, small integers."""
        generator = np.random.default_rng(self.random.randint(0, 1 << 30))
        arrays = {}
        for buffer in self.params:
            shape = tuple(e.value for e in buffer.shape if isinstance(e, IntImm))
            values = generator.standard_normal(shape) if buffer.dtype.is_float else generator.integers(-3, 7, shape)
            arrays[buffer.name] = values.astype(str(buffer.dtype))
        return arrays

    def body(self, depth: int) -> Stmt:
        """One to three statements."""
        return seq(*(self.statement(depth) for _ in range(self.random.randint(1, 3))))

    def statement(self, depth: int) -> Stmt:
        """A random statement."""
        simple: list[Callable[[int], Stmt]] = [self.store, self.store, self.vector_store]
        nested: list[Callable[[int], Stmt]] = [
            self.loop,
            self.loop,
            self.reduction,
            self.block,
            self.branch,
            self.let,
            self.allocation,
            self.alias,
        ]
        if self.undef:
            simple.append(self.assumption)
        return self.random.choice(simple if depth == 0 else nested + simple[:1])(depth - 1 if depth else 0)

    def loop(self, depth: int) -> Stmt:
        """A loop of a random kind."""
        var, extent = Var(self.name("i")), self.random.choice([0, 1, 2, 3, 4, 5, 6])
        kinds = [ForKind.SERIAL] * 3 + ([ForKind.PARALLEL, ForKind.VECTORIZED] if self.faults else [])
        start = self.random.choice([0, 0, 0, 1, -1 if self.faults else 0])
        self.variables[var.name] = (start, start + extent - 1)
        body = self.body(depth)
        del self.variables[var.name]
        return For(var, IntImm(start), IntImm(extent), self.random.choice(kinds), body)

    def reduction(self, depth: int) -> Stmt:
        """A block with init over a spatial and a reduction loop, in either order, guarded or not."""
        target = self.random.choice([b for b in self.buffers if b.dtype == FLOAT32 and not b.strides])
        first = target.shape[0]
        assert isinstance(first, IntImm)
        # Spatial instances of one reduction mostly write cells of their own, as a reduction does that deserves the
        # name.
        apart = not (self.faults or self.shared) or self.random.random() < (0.3 if self.shared else 0.7)
        extents = [self.random.randint(1, min(4, first.value) if apart else 4), self.random.randint(0, 4)]
        loops = [Var(self.name("i")), Var(self.name("k"))]
        names = [Var(self.name("vi")), Var(self.name("vk"))]
        kinds = (IterKind.SPATIAL, IterKind.REDUCE)
        bindings: list[Expr] = list(loops)
        if self.shared and self.random.random() < 0.3:
            bindings[0] = loops[0] // 2 if self.random.random() < 0.5 else (loops[0] * 3) % IntImm(extents[0])
        iters = tuple(
            IterVar(n, k, Range(IntImm(0), IntImm(e)), b)
            for n, k, e, b in zip(names, kinds, extents, bindings, strict=True)
        )
        indices = (names[0] % target.shape[0], *[IntImm(0)] * (target.rank - 1))
        outer = dict(self.variables)
        self.variables = {names[0].name: (0, extents[0] - 1), names[1].name: (0, max(extents[1] - 1, 0))}
        everything = self.buffers
        if apart:
            self.buffers = [b for b in everything if b.data != target.data]
        update = BufferStore(target, indices, BufferLoad(target, indices) + self.value(FLOAT32, 2))
        self.buffers = everything
        where = self.condition() if self.random.random() < 0.5 else TRUE
        self.variables = outer
        first_value: Expr = const(0.5, FLOAT32)
        if self.shared and self.random.random() < 0.3:
            self.variables = {names[0].name: (0, extents[0] - 1)}
            first_value = self.random.choice([Cast(FLOAT32, loops[0]), self.value(FLOAT32, 1)])
            self.variables = outer
        block = Block(self.name("r"), iters, update, where, init=BufferStore(target, indices, first_value))
        order = [0, 1] if self.random.random() < 0.6 else [1, 0]
        stmt: Stmt = block
        if self.shared and self.random.random() < 0.25:
            beside = self.store(0)
            stmt = seq(*([block, beside] if self.random.random() < 0.5 else [beside, block]))
        for k in reversed(order):
            stmt = For(loops[k], IntImm(0), IntImm(extents[k]), ForKind.SERIAL, stmt)
        return stmt

    def block(self, depth: int) -> Stmt:
        """A block over one new loop with a binding that need not be plain."""
        loop, var, extent = Var(self.name("i")), Var(self.name("v")), self.random.randint(1, 5)
        binding = self.random.choice([loop, IntImm(extent - 1) - loop, (loop * 3) % IntImm(extent)])
        outer = dict(self.variables)
        self.variables[var.name] = (0, extent - 1)
        where = self.condition() if self.random.random() < 0.4 else TRUE
        body = self.body(0)
        self.variables = outer
        block = Block(
            self.name("b"), (IterVar(var, IterKind.SPATIAL, Range(IntImm(0), IntImm(extent)), binding),), body, where
        )
        return For(loop, IntImm(0), IntImm(extent), ForKind.SERIAL, block)

    def branch(self, depth: int) -> Stmt:
        """An if, with or without else, on loop variables or on data."""
        condition = self.condition() if self.random.random() < 0.7 else self.value(INT32, 1) > self.value(INT32, 0)
        return IfThenElse(condition, self.body(depth), self.body(depth) if self.random.random() < 0.4 else None)

    def let(self, depth: int) -> Stmt:
        """A let of a number that loads or does not."""
        var = Var(self.name("x"))
        value = (
            self.index(2)[0]
            if self.random.random() < 0.6
            else BufferLoad(self.params[2], (IntImm(self.random.randint(0, 6)),))
        )
        self.variables[var.name] = (-3, 8)
        body = self.body(depth)
        del self.variables[var.name]
        return Let(var, value, body)

    def allocation(self, depth: int) -> Stmt:
        """A temporary, initialised as a whole or not."""
        buffer = make_buffer(self.name("T"), (5,), self.random.choice([FLOAT32, INT32]))
        self.buffers.append(buffer)
        i = Var(self.name("i"))
        fill = For(i, IntImm(0), IntImm(5), ForKind.SERIAL, BufferStore(buffer, (i,), const(1, buffer.dtype)))
        body = self.body(depth)
        self.buffers.remove(buffer)
        return Allocate(buffer, seq(fill, body) if self.random.random() < 0.8 or not self.faults else body)

    def alias(self, depth: int) -> Stmt:
        """A flat view of another buffer, of the same or (integers seen as floats would be NaNs) the same width."""
        base = self.random.choice(self.buffers)
        view = Buffer(self.name("V"), base.dtype, (IntImm(4),), base.data, (), IntImm(self.random.randint(0, 1)))
        self.buffers.append(view)
        body = self.body(depth)
        self.buffers.remove(view)
        return DeclBuffer(view, body)

    def assumption(self, depth: int) -> Stmt:
        """An assumption that makes a cell arbitrary, or one that may not hold."""
        buffer = self.random.choice([b for b in self.buffers if b.dtype.is_float])
        load = BufferLoad(buffer, self.indices(buffer))
        if self.random.random() < 0.5:
            return Evaluate(Assume(logical_or(self.condition(), equal(load, Undef(buffer.dtype)))))
        return Evaluate(Assume(logical_or(self.condition(), load < const(2.5, buffer.dtype))))

    def store(self, depth: int) -> Stmt:
        """A store of a random value."""
        buffer = self.random.choice(self.buffers)
        return BufferStore(buffer, self.indices(buffer), self.value(buffer.dtype, 3))

    def vector_store(self, depth: int) -> Stmt:
        """A store of two lanes."""
        buffer = self.random.choice([b for b in self.buffers if b.rank == 1])
        ramp = Ramp(self.within(buffer, 0, 1), IntImm(self.random.choice([1, 1, 1, -1, 0] if self.faults else [1])), 2)
        source = self.random.choice([b for b in self.buffers if b.dtype == buffer.dtype and b.rank == 1])
        load: Expr = BufferLoad(source, (Ramp(self.within(source, 0, 1), IntImm(1), 2),))
        if self.random.random() < 0.5:
            load = load + Broadcast(self.value(buffer.dtype, 1), 2)
        return BufferStore(buffer, (ramp,), load)

    def indices(self, buffer: Buffer) -> tuple[Expr, ...]:
        """Indices that mostly lie inside."""
        return tuple(self.within(buffer, axis, 0) for axis in range(buffer.rank))

    def within(self, buffer: Buffer, axis: int, spare: int) -> Expr:
        """An index of an axis, at least `spare` below its end; now and then outside."""
        extent = buffer.shape[axis]
        assert isinstance(extent, IntImm)
        limit = extent.value - spare
        expr, low, high = self.index(2)
        if 0 <= low and high < limit:
            return expr
        if self.faults and self.random.random() < 0.02:
            return expr
        if self.random.random() < 0.2:
            return BufferLoad(self.params[2], (IntImm(self.random.randint(0, 6)),)) % IntImm(limit)
        return expr % IntImm(limit)

    def index(self, depth: int) -> tuple[Expr, int, int]:
        """Index arithmetic over the variables in scope, with its range."""
        if depth == 0 or self.random.random() < 0.4:
            if self.variables and self.random.random() < 0.85:
                name = self.random.choice(sorted(self.variables))
                return Var(name), *self.variables[name]
            value = self.random.randint(0, 5)
            return IntImm(value), value, value
        a, low, high = self.index(depth - 1)
        k = self.random.randint(1, 4)
        match self.random.randint(0, 5):
            case 0:
                return a + k, low + k, high + k
            case 1:
                return a * k, low * k, high * k
            case 2:
                return a // k, low // k, high // k
            case 3:
                return a % k, 0, k - 1
            case 4:
                b, low2, high2 = self.index(depth - 1)
                return a + b, low + low2, high + high2
            case _:
                return a - k, low - k, high - k

    def condition(self) -> Expr:
        """A truth value over the variables in scope."""
        a, b = self.index(2)[0], self.index(1)[0]
        simple = self.random.choice([a < b, a >= b, equal(a, b)])
        if self.random.random() < 0.4:
            return self.random.choice([logical_and, logical_or])(simple, self.index(1)[0] < self.index(1)[0])
        return simple

    def value(self, dtype: DType, depth: int) -> Expr:
        """A value of a type."""
        if depth == 0 or self.random.random() < 0.25:
            return self.leaf(dtype)
        a = self.value(dtype, depth - 1)
        match self.random.randint(0, 7):
            case 0 | 1 | 2:
                ops = [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN, BinaryOp.MAX]
                ops += (
                    [BinaryOp.DIV]
                    if dtype.is_float
                    else [BinaryOp.BITXOR, BinaryOp.FLOORMOD]
                    if self.faults
                    else [BinaryOp.BITXOR]
                )
                return Binary(self.random.choice(ops), a, self.value(dtype, depth - 1))
            case 3:
                return IfThenElseExpr(self.condition(), a, self.value(dtype, depth - 1))
            case 4:
                return Select(self.condition(), a, self.value(dtype, depth - 1))
            case 5:
                return Select(a < self.value(dtype, depth - 1), a, self.value(dtype, depth - 1))
            case 6 if dtype.is_float:
                return Call(self.random.choice(["fmax", "minimum"]), (a, self.value(dtype, depth - 1)))
            case 6:
                return a
            case _:
                kind = self.random.choice((Cast, Cast, Reinterpret))
                return kind(FLOAT32, self.value(INT32, depth - 1)) if dtype == FLOAT32 else a

    def leaf(self, dtype: DType) -> Expr:
        """A load, a constant, or now and then an undefined value."""
        if self.undef and self.random.random() < 0.04:
            return Undef(dtype)
        fitting = [b for b in self.buffers if b.dtype == dtype]
        if fitting and self.random.random() < 0.8:
            buffer = self.random.choice(fitting)
            return BufferLoad(buffer, self.indices(buffer))
        return const(self.random.choice([0, 1, 2, -3]), dtype)
