"""Random programs that use every node: not sensible ones, only well-typed ones, for printing and reading back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad, BufferRegion, Range
from layoutproof.ir.dtype import BOOL, HANDLE, INT32, INT64, DType, Kind
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import (
    MATH_FUNCTIONS,
    OPAQUE_CALLS,
    Assume,
    Call,
    Limit,
    LimitKind,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
)
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import (
    Allocate,
    Attributes,
    AttrStmt,
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
    MatchBuffer,
    Stmt,
    seq,
)

SCALARS = [
    DType.parse(name)
    for name in ("int8", "int32", "int64", "uint8", "uint32", "uint64", "float16", "float32", "float64", "bfloat16")
]
INTEGER_OPS = [op for op in BinaryOp if op is not BinaryOp.DIV]
FLOAT_OPS = [BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX]


class RandomProgram:
    """Makes one function from a random source."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.count = 0
        self.vars: list[Var] = []
        self.loops: list[For] = []
        self.buffers: list[Buffer] = []

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ---- expressions

    def expr(self, dtype: DType, depth: int) -> Expr:
        if depth <= 0:
            return self.leaf(dtype)
        return self.rng.choice([self.arithmetic, self.choice, self.conversion, self.special])(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expr:
        known = [v for v in self.vars if v.dtype == dtype]
        if known and self.rng.random() < 0.7:
            return self.rng.choice(known)
        if dtype.is_bool:
            return const(self.rng.random() < 0.5, dtype)
        if dtype.is_float:
            return const(
                self.rng.choice(
                    [0.0, -0.0, 1.5, -2.25, 1e-5, float("inf"), float("-inf"), float("nan"), self.rng.uniform(-9, 9)]
                ),
                dtype,
            )
        return const(self.rng.choice([0, 1, dtype.max_int, dtype.min_int, self.rng.randrange(0, 100)]), dtype)

    def arithmetic(self, dtype: DType, depth: int) -> Expr:
        if dtype.is_bool:
            return self.truth(dtype, depth)
        op = self.rng.choice(FLOAT_OPS if dtype.is_float else INTEGER_OPS)
        return Binary(op, self.expr(dtype, depth), self.expr(dtype, depth))

    def truth(self, dtype: DType, depth: int) -> Expr:
        kind = self.rng.randrange(4)
        if kind == 0:
            inner = self.rng.choice([*SCALARS, BOOL]).with_lanes(dtype.lanes)
            op = self.rng.choice([CompareOp.EQ, CompareOp.NE] if inner.is_bool else list(CompareOp))
            return Compare(op, self.expr(inner, depth), self.expr(inner, depth))
        if kind == 1:
            return Logical(self.rng.choice(list(LogicalOp)), self.expr(dtype, depth), self.expr(dtype, depth))
        if kind == 2:
            return Not(self.expr(dtype, depth))
        return Binary(
            self.rng.choice([BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR]),
            self.expr(dtype, depth),
            self.expr(dtype, depth),
        )

    def choice(self, dtype: DType, depth: int) -> Expr:
        condition = self.expr(BOOL, depth)
        kind = self.rng.choice([Select, IfThenElseExpr])
        return kind(condition, self.expr(dtype, depth), self.expr(dtype, depth))

    def conversion(self, dtype: DType, depth: int) -> Expr:
        if dtype.lanes > 1 and self.rng.random() < 0.5:
            if dtype.is_integer and self.rng.random() < 0.5:
                return Ramp(self.expr(dtype.element, depth), self.expr(dtype.element, depth), dtype.lanes)
            return Broadcast(self.expr(dtype.element, depth), dtype.lanes)
        if dtype.is_float and self.rng.random() < 0.2:
            bits = DType(self.rng.choice((Kind.INT, Kind.UINT)), dtype.bits, dtype.lanes)
            return Reinterpret(dtype, self.expr(bits, depth))
        return Cast(dtype, self.expr(self.rng.choice(SCALARS).with_lanes(dtype.lanes), depth))

    def special(self, dtype: DType, depth: int) -> Expr:
        kinds = ["undef", "load"]
        if not dtype.is_bool:
            kinds += ["opaque"] + ["limit"] * (dtype.lanes == 1) + ["math"] * dtype.is_float
        match self.rng.choice(kinds):
            case "math":
                function = self.rng.choice(list(MATH_FUNCTIONS))
                return Call(function, tuple(self.expr(dtype, depth) for _ in range(MATH_FUNCTIONS[function])))
            case "limit":
                return Limit(
                    self.rng.choice(list(LimitKind) if dtype.is_float else [LimitKind.MIN, LimitKind.MAX]), dtype
                )
            case "opaque":
                return self.opaque(dtype, depth)
            case "undef":
                return Undef(dtype)
            case _:
                fitting = [b for b in self.buffers if b.dtype == dtype]
                if not fitting:
                    return self.leaf(dtype)
                buffer = self.rng.choice(fitting)
                return BufferLoad(buffer, self.indices(buffer, depth))

    def opaque(self, dtype: DType, depth: int) -> Expr:
        function = self.rng.choice(list(OPAQUE_CALLS))
        arguments: list[Expr] = [self.expr(self.rng.choice(SCALARS), depth - 1)]
        if self.rng.random() < 0.4:
            arguments.append(
                StringImm(
                    self.rng.choice(["a", 'quo"te', "it's", "tab\tnew\nline", "é☃", "back\\slash", "both ' and \""])
                )
            )
        if self.buffers and self.rng.random() < 0.4:
            data = self.rng.choice(self.buffers).data
            arguments.append(PointerCast(DType.parse("float32x4"), data) if self.rng.random() < 0.5 else data)
        return OpaqueCall(function, tuple(arguments), dtype)

    def indices(self, buffer: Buffer, depth: int) -> tuple[Expr, ...]:
        return tuple(self.expr(self.rng.choice([INT32, INT64]), min(depth, 1)) for _ in buffer.shape)

    # ---- buffers

    def buffer(self, stem: str) -> Buffer:
        name = self.name(stem)
        rank = self.rng.randrange(0, 4)
        shape = tuple(
            self.rng.choice([const(4), const(16, INT64), Var("n"), Var("n") * 4, Var("m", INT64)]) for _ in range(rank)
        )
        custom = self.rng.random() < 0.3
        return Buffer(
            name,
            self.rng.choice(SCALARS).with_lanes(self.rng.choice([1, 1, 4])),
            shape,
            Var(f"{name}_memory" if self.rng.random() < 0.2 else f"{name}_data", HANDLE),
            strides=tuple(const(1) if k % 2 else Var("stride") for k in range(rank)) if custom else (),
            elem_offset=self.rng.choice([const(8), Var("offset")]) if custom else const(0),
            scope=self.rng.choice(["global", "local", "global.texture"]),
            axis_separators=(0,) if rank > 1 and custom else (),
            align=64 if custom else 0,
            offset_factor=1 if custom else 0,
        )

    def own(self, stem: str) -> Buffer:
        """A buffer that memory is allocated for: it begins where its memory does."""
        return replace(self.buffer(stem), elem_offset=const(0))

    def region(self, buffer: Buffer) -> BufferRegion:
        ranges: list[Range] = []
        for _ in buffer.shape:
            start = self.expr(INT32, 1)
            kinds = [
                const(1),
                const(4),
                Var("n"),
                Binary(BinaryOp.ADD, start, const(2)),
                Binary(BinaryOp.SUB, Var("n"), start),
            ]
            ranges.append(Range(start, self.rng.choice(kinds)))
        return BufferRegion(buffer, tuple(ranges))

    # ---- statements

    def statement(self, depth: int) -> Stmt:
        if depth <= 0:
            return self.effect()
        makers = [
            self.loop,
            self.nest,
            self.branch,
            self.let,
            self.allocation,
            self.alias,
            self.block,
            self.block,
            self.several,
            self.remark,
        ]
        return self.rng.choice(makers)(depth - 1)

    def effect(self) -> Stmt:
        if not self.buffers or self.rng.random() < 0.3:
            if self.rng.random() < 0.5:
                return Evaluate(Assume(self.expr(BOOL, 2)))
            return Evaluate(self.rng.choice([const(0), self.opaque(INT32, 2), self.opaque(HANDLE, 1)]))
        buffer = self.rng.choice(self.buffers)
        return BufferStore(buffer, self.indices(buffer, 2), self.expr(buffer.dtype, 3))

    def several(self, depth: int) -> Stmt:
        return seq(*(self.statement(depth) for _ in range(self.rng.choice([0, 2, 3]))))

    def loop(self, depth: int, kind: ForKind | None = None) -> Stmt:
        kind = kind if kind is not None else self.rng.choice(list(ForKind))
        dtype = self.rng.choice([INT32, INT64])
        start = self.rng.choice([const(0, dtype), const(0, dtype), const(3, dtype), self.expr(dtype, 1)])
        extent = self.rng.choice([const(4, dtype), self.expr(dtype, 1)])
        if isinstance(extent, IntImm) and extent.value < 0:
            extent = const(7, dtype)
        var = Var(self.name("i"), dtype)
        thread = "threadIdx.x" if kind is ForKind.THREAD_BINDING else None
        annotations = (
            Attributes({"key": [1, 2.5, "x", None, True], "map": {"a": Var("n")}})
            if self.rng.random() < 0.2
            else Attributes()
        )
        shell = For(var, start, extent, kind, seq(), thread, annotations)
        self.vars.append(var)
        self.loops.append(shell)
        body = self.statement(depth)
        self.loops.pop()
        self.vars.remove(var)
        return For(var, start, extent, kind, body, thread, annotations)

    def nest(self, depth: int) -> Stmt:
        return self.loop(depth, ForKind.SERIAL)

    def branch(self, depth: int) -> Stmt:
        otherwise = self.rng.choice([None, self.statement(depth), seq()])
        return IfThenElse(self.expr(BOOL, 2), self.statement(depth), otherwise)

    def let(self, depth: int) -> Stmt:
        value = self.expr(self.rng.choice([*SCALARS, BOOL, DType.parse("float32x4")]), 2)
        var = Var(self.name("x"), value.dtype)
        self.vars.append(var)
        body = self.statement(depth)
        self.vars.remove(var)
        return Let(var, value, body)

    def allocation(self, depth: int) -> Stmt:
        buffer = self.own("L")
        plain = not buffer.strides and not buffer.align and not buffer.offset_factor
        if not plain:  # the old dialect has no words for memory of its own name that is viewed with strides
            buffer = replace(buffer, data=Var(f"{buffer.name}_data", HANDLE))
        self.buffers.append(buffer)
        body = self.statement(depth)
        self.buffers.remove(buffer)
        annotated = plain and self.rng.random() < 0.3
        return Allocate(buffer, body, Attributes({"pragma": 1}) if annotated else Attributes())

    def alias(self, depth: int) -> Stmt:
        if not self.buffers:
            return self.effect()
        source = self.rng.choice(self.buffers)
        made = self.buffer("V")
        view = Buffer(
            made.name,
            made.dtype,
            made.shape,
            source.data,
            made.strides,
            made.elem_offset,
            made.scope,
            made.axis_separators,
        )
        self.buffers.append(view)
        body = self.statement(depth)
        self.buffers.remove(view)
        return DeclBuffer(view, body)

    def remark(self, depth: int) -> Stmt:
        target = self.rng.choice([const(0), StringImm("target"), self.reducer(), *(b.data for b in self.buffers[:1])])
        return AttrStmt(
            target, "pragma_key", self.rng.choice([const(1), StringImm("v"), const(2, INT64)]), self.statement(depth)
        )

    def reducer(self) -> Reducer:
        dtype = self.rng.choice(SCALARS)
        left, right = (Var(self.name("r"), dtype) for _ in range(2))
        op = BinaryOp.ADD if self.rng.random() < 0.5 else BinaryOp.MAX
        return Reducer((left,), (right,), (Binary(op, left, right),), (const(0, dtype),))

    def block(self, depth: int) -> Stmt:
        iter_vars = self.iter_vars()
        self.vars += [v.var for v in iter_vars]
        where = self.rng.choice([const(True), self.expr(BOOL, 2)])
        reads = self.rng.choice([None, tuple(self.region(b) for b in self.buffers[:2])])
        writes = self.rng.choice([None, tuple(self.region(b) for b in self.buffers[:1])])
        outer = len(self.buffers)
        allocated = tuple(self.own("M") for _ in range(self.rng.choice([0, 1])))
        matches = tuple(MatchBuffer(self.buffer("S"), self.region(b)) for b in self.buffers[: self.rng.choice([0, 1])])
        self.buffers += [*allocated, *(m.buffer for m in matches)]
        init = self.rng.choice([None, self.effect()])
        body = self.statement(depth)
        del self.buffers[outer:]
        del self.vars[len(self.vars) - len(iter_vars) :]
        notes = Attributes({"a.b": 1, "text": 'q"'}) if self.rng.random() < 0.3 else Attributes()
        name = self.rng.choice([self.name("block"), "root", ""])
        return Block(name, iter_vars, body, where, reads, writes, allocated, matches, notes, init=init)

    def iter_vars(self) -> tuple[IterVar, ...]:
        result: list[IterVar] = []
        for loop in self.loops[-self.rng.randrange(1, 4) :]:
            kind = self.rng.choice(list(IterKind))
            var = Var(self.name("v"), loop.var.dtype)
            if self.rng.random() < 0.6:
                result.append(IterVar(var, kind, Range(loop.start, loop.extent), loop.var))
            else:
                start = self.rng.choice([const(0, var.dtype), const(2, var.dtype), self.expr(var.dtype, 1)])
                extent = self.rng.choice([const(8, var.dtype), self.expr(var.dtype, 1)])
                result.append(IterVar(var, kind, Range(start, extent), self.expr(var.dtype, 1)))
        return tuple(result)

    def function(self, depth: int = 5) -> PrimFunc:
        """A function with buffer, handle and scalar parameters."""
        params: list[Var] = []
        mapped: list[tuple[Var, Buffer]] = []
        for _ in range(self.rng.randrange(0, 4)):
            buffer = self.buffer("P")
            param = Var(f"{buffer.name}_handle" if self.rng.random() < 0.7 else self.name("h"), HANDLE)
            params.append(param)
            mapped.append((param, buffer))
            self.buffers.append(buffer)
        if self.rng.random() < 0.3:
            params.insert(self.rng.randrange(len(params) + 1), Var("n"))
        if self.rng.random() < 0.2:
            params.append(Var("raw", HANDLE))
        self.vars += [Var("n"), Var("m", INT64), Var("scale", DType.parse("float32"))]
        body = self.statement(depth)
        if self.rng.random() < 0.3:
            body = Block("root", (), body, alloc_buffers=(self.own("R"), self.own("R")))
        attrs = {
            "tirx.noalias": True,
            "layout": {"A": ["lambda i: [i // 4]"]},
            "x": const(3, INT64),
            "y": const(3),
            "f": -1.5,
        }
        return PrimFunc(
            "main", tuple(params), tuple(mapped), body, Attributes(attrs if self.rng.random() < 0.5 else {})
        )
