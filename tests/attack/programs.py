"""Random programs of the kinds that layouts are made for: element-wise stages, stencils, reductions, gathers, scatters,
guards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import INT32, DType
from layoutproof.ir.expr import Binary, Expr, IfThenElseExpr, IntImm, Select, Var, const
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.stmt import ForKind
from tests.attack.nests import Loop, Nest, Program, Store, begun

DTYPES = ("float32", "float32", "float32", "int32", "int32", "float16", "int8")
N = Var("n")


@dataclass(frozen=True)
class Values:
    """A buffer that later stages may read, over the axes `shape`; `full` where every cell has a value."""

    buffer: Buffer
    shape: tuple[Expr, ...]


class Generator:
    """Makes one program after another from one stream of random numbers."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.names = 0

    def name(self, prefix: str) -> str:
        """A fresh name."""
        self.names += 1
        return f"{prefix}{self.names}"

    def program(self) -> Program:
        """One program: inputs, one to four stages, the last ones to results."""
        rng = self.rng
        self.names = 0
        self.dtype = DType.parse(rng.choice(DTYPES))
        self.params: list[Buffer] = []
        self.temps: list[Buffer] = []
        self.nests: list[Nest] = []
        self.values: list[Values] = []
        rank = rng.choice([1, 1, 2, 2, 3])
        self.shape = tuple(self.extent(axis) for axis in range(rank))
        for _ in range(rng.choice([1, 1, 2])):
            self.values.append(Values(self.param("A", self.shape), self.shape))
        stages = rng.choice([1, 1, 2, 2, 3])
        for number in range(stages):
            self.stage(last=number == stages - 1)
        return begun(Program(tuple(self.params), tuple(self.temps), tuple(self.nests)))

    def extent(self, axis: int) -> Expr:
        """An extent: small, or symbolic on the first axis."""
        if axis == 0 and self.rng.random() < 0.25:
            return N
        return IntImm(self.rng.choice([2, 3, 4, 5, 6, 7, 8]))

    def param(self, prefix: str, shape: tuple[Expr, ...], dtype: DType | None = None) -> Buffer:
        """A new parameter."""
        buffer = make_buffer(self.name(prefix), shape, dtype if dtype is not None else self.dtype)
        self.params.append(buffer)
        return buffer

    def target(self, shape: tuple[Expr, ...], last: bool) -> Buffer:
        """Where a stage stores: a result for the last one, else a temporary (mostly)."""
        if last or self.rng.random() < 0.2:
            return self.param("B", shape)
        buffer = make_buffer(self.name("C"), shape, self.dtype)
        self.temps.append(buffer)
        return buffer

    def stage(self, last: bool) -> None:
        """One more stage."""
        kinds = (
            [self.element_wise] * 4
            + [self.reduction] * 4
            + [self.stencil] * 2
            + [self.gather, self.scatter, self.conditional, self.scan]
        )
        self.rng.choice(kinds)(last)

    def loops(self, shape: tuple[Expr, ...], reduced: int = 0) -> tuple[Loop, ...]:
        """Loops over a box, the last `reduced` of them reductions."""
        names = [self.name(letter) for letter, _ in zip("ijklm", shape, strict=False)]
        return tuple(
            Loop(Var(x), e, k >= len(shape) - reduced) for k, (x, e) in enumerate(zip(names, shape, strict=True))
        )

    def source(self) -> Values:
        """Something to read."""
        return self.rng.choice(self.values[-2:] if self.rng.random() < 0.7 else self.values)

    # ---- stages

    def element_wise(self, last: bool) -> None:
        """`C[i, j] = f(A[i, j])`, perhaps guarded, perhaps two at once."""
        source = self.source()
        loops = self.loops(source.shape)
        index = tuple(loop.var for loop in loops)
        target = self.target(source.shape, last)
        value = self.value(self.loads(source.shape, index), 2)
        stores = [Store(target, index, value, None)]
        nest = Nest(self.parallel(loops), tuple(stores))
        if last and target in self.params and self.rng.random() < 0.3:
            nest = replace(nest, guards=(self.guard(loops),))
            self.nests.append(nest)
            return
        self.nests.append(nest)
        self.values.append(Values(target, source.shape))

    def parallel(self, loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
        """The outermost loop parallel, now and then."""
        if loops and self.rng.random() < 0.15:
            return (replace(loops[0], kind=ForKind.PARALLEL), *loops[1:])
        return loops

    def loads(self, shape: tuple[Expr, ...], index: tuple[Expr, ...]) -> list[Expr]:
        """Loads at the same place from everything of the shape."""
        every: list[Expr] = [BufferLoad(v.buffer, index) for v in self.values if v.shape == shape]
        return every[-3:]

    def guard(self, loops: tuple[Loop, ...]) -> Expr:
        """An affine guard."""
        a, b = self.rng.choice(loops).var, self.rng.choice(loops).var
        k = IntImm(self.rng.randint(1, 5))
        return self.rng.choice([a < k, a + b < k + 2, a * 2 >= b, b + k > a])

    def stencil(self, last: bool) -> None:
        """`C[i] = f(A[i], A[i + 1])` over fewer points, or with a lazy choice at the border."""
        source = self.source()
        lazy = self.rng.random() < 0.5 or not isinstance(source.shape[-1], IntImm)
        reach = self.rng.choice([1, 1, 2])
        shape = source.shape
        extent = shape[-1]
        if not lazy:
            assert isinstance(extent, IntImm)
            reach = min(reach, extent.value - 1)
            shape = (*shape[:-1], IntImm(extent.value - reach))
        loops = self.loops(shape)
        index = tuple(loop.var for loop in loops)
        centre = BufferLoad(source.buffer, index)
        moved = index[-1] + reach
        neighbour: Expr = BufferLoad(source.buffer, (*index[:-1], moved))
        if lazy:
            neighbour = IfThenElseExpr(moved < extent, neighbour, const(self.rng.choice([0, 1]), self.dtype))
        target = self.target(shape, last)
        self.nests.append(Nest(self.parallel(loops), (Store(target, index, self.combine(centre, neighbour), None),)))
        self.values.append(Values(target, shape))

    def reduction(self, last: bool) -> None:
        """`C[i] = init; C[i] = C[i] + f(A[i, k])`, in one of three forms."""
        source = self.source()
        if len(source.shape) == 0:
            return self.element_wise(last)
        loops = self.loops(source.shape, self.rng.choice([1, 1, min(2, len(source.shape))]))
        spatial = tuple(loop.var for loop in loops if not loop.reduce)
        shape = tuple(loop.extent for loop in loops if not loop.reduce) or (IntImm(1),)
        cell: tuple[Expr, ...] = spatial or (IntImm(0),)
        target = self.target(shape, last)
        term = self.value(self.loads(source.shape, tuple(loop.var for loop in loops)), 1)
        op, start = self.rng.choice(self.operators())
        held = BufferLoad(target, cell)
        update = (
            Binary(op, held, term)
            if op not in (BinaryOp.MAX, BinaryOp.MIN) or self.rng.random() < 0.6
            else Binary(op, term, held)
        )
        init = Store(target, cell, start, None)
        nest = Nest(loops, (Store(target, cell, update, None),), init=init, block=self.rng.random() < 0.5, free=False)
        if self.rng.random() < 0.2:
            nest = replace(nest, guards=(self.guard(tuple(loop for loop in loops if loop.reduce)),))
        if self.rng.random() < 0.25:
            spatial_loops = self.loops(shape)
            self.nests.append(
                Nest(spatial_loops, (replace(init, indices=tuple(x.var for x in spatial_loops) if spatial else cell),))
            )
            nest = replace(nest, init=None, block=False)
        self.nests.append(nest)
        self.values.append(Values(target, shape))
        return None

    def operators(self) -> list[tuple[BinaryOp, Expr]]:
        """Operators of reductions, each with a start."""
        least: Expr = Limit(LimitKind.MIN, self.dtype)
        most: Expr = Limit(LimitKind.MAX, self.dtype)
        sums = [(BinaryOp.ADD, const(0, self.dtype))] * 3
        return [
            *sums,
            (BinaryOp.MUL, const(1, self.dtype)),
            (BinaryOp.MAX, least),
            (BinaryOp.MIN, most),
            (BinaryOp.MAX, const(0, self.dtype)),
        ]

    def gather(self, last: bool) -> None:
        """`C[i] = A[D[i]]`, the index clamped."""
        source = self.source()
        where = self.param("D", source.shape, INT32)
        loops = self.loops(source.shape)
        index = tuple(loop.var for loop in loops)
        extent = source.shape[-1]
        found = Binary(BinaryOp.MAX, Binary(BinaryOp.MIN, BufferLoad(where, index), extent - 1), IntImm(0))
        target = self.target(source.shape, last)
        self.nests.append(Nest(loops, (Store(target, index, BufferLoad(source.buffer, (*index[:-1], found)), None),)))
        self.values.append(Values(target, source.shape))

    def scatter(self, last: bool) -> None:
        """`B[D[i]] = A[i]` on a result: the order matters."""
        source = self.source()
        where = self.param("D", source.shape, INT32)
        loops = self.loops(source.shape)
        index = tuple(loop.var for loop in loops)
        found = Binary(BinaryOp.MAX, Binary(BinaryOp.MIN, BufferLoad(where, index), source.shape[-1] - 1), IntImm(0))
        target = self.param("B", source.shape)
        self.nests.append(
            Nest(loops, (Store(target, (*index[:-1], found), BufferLoad(source.buffer, index), None),), ordered=True)
        )

    def conditional(self, last: bool) -> None:
        """`if A[i] > 0: B[i] = f(A[i])` on a result, or on what was written before."""
        source = self.source()
        loops = self.loops(source.shape)
        index = tuple(loop.var for loop in loops)
        target = self.param("B", source.shape)
        load = BufferLoad(source.buffer, index)
        nest = Nest(
            self.parallel(loops),
            (Store(target, index, self.value([load], 1), None),),
            data_guard=load > const(0, self.dtype),
        )
        self.nests.append(nest)
        self.values.append(Values(target, source.shape))

    def scan(self, last: bool) -> None:
        """`B[i + 1] = B[i] + A[i]`: a running sum along the last axis, whose order matters."""
        source = self.source()
        extent = source.shape[-1]
        if not isinstance(extent, IntImm):
            return self.element_wise(last)
        loops = self.loops(source.shape)
        index = tuple(loop.var for loop in loops)
        target = self.param("B", (*source.shape[:-1], IntImm(extent.value + 1)))
        value = BufferLoad(target, index) + BufferLoad(source.buffer, index)
        self.nests.append(Nest(loops, (Store(target, (*index[:-1], index[-1] + 1), value, None),), ordered=True))
        return None

    # ---- values

    def value(self, loads: list[Expr], depth: int) -> Expr:
        """An expression over some loads."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return rng.choice(loads)
        a = self.value(loads, depth - 1)
        choice = rng.random()
        if choice < 0.55:
            return self.combine(a, self.value(loads, depth - 1) if rng.random() < 0.6 else self.constant())
        if choice < 0.7:
            return Binary(BinaryOp.MAX, a, const(0, self.dtype))
        if choice < 0.8:
            return Select(a < self.constant(), a, self.value(loads, depth - 1))
        if self.dtype.is_float and choice < 0.9:
            return Call(rng.choice(["exp", "abs", "tanh", "sqrt"]), (a,))
        return a

    def combine(self, a: Expr, b: Expr) -> Expr:
        """Two values as one."""
        return Binary(
            self.rng.choice([BinaryOp.ADD, BinaryOp.ADD, BinaryOp.MUL, BinaryOp.SUB, BinaryOp.MAX, BinaryOp.MIN]), a, b
        )

    def constant(self) -> Expr:
        """A small constant."""
        return const(self.rng.choice([1, 2, 3]), self.dtype)
