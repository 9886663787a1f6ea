"""Random well-typed expressions that never trap, over a few input buffers and a loop variable."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import BOOL, INT32, INT64, DType, Kind
from layoutproof.ir.expr import (
    Binary,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Select,
    Var,
    const,
    equal,
    logical_and,
)
from layoutproof.ir.intrinsics import Call, Limit, LimitKind
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import round_float
from layoutproof.ir.visit import loads_in
from tests.lowering.codegen.programs import FLOATS, INTEGERS, edges

_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
_WHOLE = (
    BinaryOp.ADD,
    BinaryOp.SUB,
    BinaryOp.MUL,
    BinaryOp.MIN,
    BinaryOp.MAX,
    BinaryOp.BITAND,
    BinaryOp.BITOR,
    BinaryOp.BITXOR,
)
_FLOAT = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.DIV, BinaryOp.MIN, BinaryOp.MAX)
_EXACT = {1: ("sqrt", "abs", "floor", "ceil", "round", "trunc"), 2: ("fmax", "fmin", "maximum", "minimum"), 3: ("fma",)}


@dataclass
class Expressions:
    """Makes expressions from `buffers` (one for each type, all of `size` elements) at the loop variable `loop`."""

    random: Random
    buffers: dict[DType, Buffer]
    loop: Var
    size: int

    def any(self, depth: int) -> Expr:
        """An expression of some type."""
        return self.of(self.random.choice([*INTEGERS, *FLOATS, BOOL]), depth)

    def of(self, dtype: DType, depth: int) -> Expr:
        """An expression of a type, at most `depth` operations deep."""
        if depth <= 0:
            return self.leaf(dtype)
        makers: list[Callable[[DType, int], Expr]] = [self.choice, self.cast]
        if dtype.is_bool:
            makers += [self.comparison, self.comparison, self.connective]
        elif dtype.is_float:
            makers += [self.float_binary, self.float_binary, self.float_call]
        else:
            makers += [self.whole, self.whole, self.division, self.shift, self.whole_call]
            makers += [self.index_value] if dtype in (INT32, INT64) else []
        return self.random.choice(makers)(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expr:
        """A load or a constant."""
        if self.random.random() < 0.65:
            return BufferLoad(self.buffers[dtype], (self.position(),))
        if dtype.is_float:
            if self.random.random() < 0.1:
                return Limit(self.random.choice(list(LimitKind)), dtype)
            return FloatImm(round_float(self.random.choice(edges(dtype)), dtype), dtype)
        return IntImm(self.random.choice(edges(dtype)), dtype)

    def loaded(self, dtype: DType, depth: int) -> Expr:
        """An expression with a load in it: a comparison of constants alone would be of index arithmetic, which may not
        overflow.
        """
        found = self.of(dtype, depth)
        return found if any(True for _ in loads_in(found)) else BufferLoad(self.buffers[dtype], (self.position(),))

    def position(self) -> Expr:
        """An index within the buffers: the loop variable, or index arithmetic brought into range."""
        if self.random.random() < 0.7:
            return self.loop
        return Binary(BinaryOp.FLOORMOD, self.index(2), const(self.size))

    def index(self, depth: int) -> Expr:
        """Index arithmetic that fits 32 bits, negative numbers included."""
        if depth <= 0:
            return self.loop if self.random.random() < 0.6 else const(self.random.randint(-9, 9))
        a, b = self.index(depth - 1), self.index(depth - 1)
        match self.random.randrange(6):
            case 0:
                return a * b
            case 1:
                return a // self.random.choice([-7, -3, 2, 4, 8])
            case 2:
                return a % self.random.choice([-5, 3, 4, 16])
            case 3:
                return Select(a < b, a - b, b + 1)
            case 4:
                return Binary(
                    self.random.choice([BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD]), a, const(self.random.choice([-3, 2, 5]))
                )
            case _:
                return self.random.choice([a + b, a - b, Binary(BinaryOp.MIN, a, b), Binary(BinaryOp.MAX, a, b)])

    def index_value(self, dtype: DType, depth: int) -> Expr:
        """Index arithmetic used as a value."""
        found = self.index(min(depth + 1, 3))
        return found if dtype == INT32 else Cast(dtype, found)

    def whole(self, dtype: DType, depth: int) -> Expr:
        """Arithmetic that wraps."""
        return Binary(self.random.choice(_WHOLE), self.of(dtype, depth), self.of(dtype, depth))

    def division(self, dtype: DType, depth: int) -> Expr:
        """A division whose divisor is made neither 0 nor -1 (which overflows)."""
        a, b = self.of(dtype, depth), self.loaded(dtype, depth)
        bad = equal(b, 0) if dtype.kind is Kind.UINT else logical_and(b <= 0, b >= -1)
        return Binary(self.random.choice(_DIVISIONS), a, Select(bad, const(self.random.choice([1, 2, 7]), dtype), b))

    def shift(self, dtype: DType, depth: int) -> Expr:
        """A shift by less than the width."""
        amount = self.of(dtype, depth) & (dtype.bits - 1)
        return Binary(self.random.choice([BinaryOp.SHL, BinaryOp.SHR]), self.of(dtype, depth), amount)

    def whole_call(self, dtype: DType, depth: int) -> Expr:
        """An absolute value."""
        return Call("abs", (self.of(dtype, depth),))

    def float_binary(self, dtype: DType, depth: int) -> Expr:
        """Float arithmetic."""
        return Binary(self.random.choice(_FLOAT), self.of(dtype, depth), self.of(dtype, depth))

    def float_call(self, dtype: DType, depth: int) -> Expr:
        """A function that IEEE 754 defines."""
        arity = self.random.choice([1, 1, 2, 3])
        return Call(self.random.choice(_EXACT[arity]), tuple(self.of(dtype, depth) for _ in range(arity)))

    def choice(self, dtype: DType, depth: int) -> Expr:
        """Either kind of choice."""
        kind = self.random.choice([Select, IfThenElseExpr])
        return kind(self.of(BOOL, depth), self.of(dtype, depth), self.of(dtype, depth))

    def cast(self, dtype: DType, depth: int) -> Expr:
        """A conversion from another type; floats are brought into range before they become integers."""
        source = self.random.choice([*INTEGERS, *FLOATS, BOOL])
        value = self.of(source, depth)
        if source.is_float and dtype.is_integer:
            low = 0.0 if dtype.kind is Kind.UINT else -100.0
            inside = logical_and(Compare(CompareOp.GE, value, const(low, source)), value <= 100.0)
            value = Select(inside, value, const(3.75, source))
        return Cast(dtype, value) if source != dtype else value

    def comparison(self, dtype: DType, depth: int) -> Expr:
        """A comparison of values, or of index arithmetic."""
        op = self.random.choice(list(CompareOp))
        if self.random.random() < 0.3:
            return Compare(op, self.index(2), self.index(2))
        operands = self.random.choice([*INTEGERS, *FLOATS, BOOL])
        return Compare(op, self.loaded(operands, depth), self.of(operands, depth))

    def connective(self, dtype: DType, depth: int) -> Expr:
        """`and`, `or`, `not`, and the bit operations of truth values."""
        a, b = self.of(BOOL, depth), self.of(BOOL, depth)
        bits = Binary(self.random.choice([BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR]), a, b)
        return self.random.choice([Logical(LogicalOp.AND, a, b), Logical(LogicalOp.OR, a, b), Not(a), bits])
