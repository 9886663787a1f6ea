"""Expressions as operations of `arith` and `math`, one line each, and index expressions as affine maps."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import BOOL, DType, Kind
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
)
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.visit import walk
from layoutproof.lowering.codegen import codes


def refused(message: str, node: Node) -> LayoutproofError:
    """The error that something cannot be printed."""
    return error(codes.UNSUPPORTED, f"MLIR: {message}", node.span)


_FLOATS = {16: "f16", 32: "f32", 64: "f64"}


def type_of(dtype: DType, node: Node) -> str:
    """The MLIR type. Raises LayoutproofError where there is none."""
    if dtype.lanes != 1:
        raise refused(f"{dtype} is a vector, which is not printed; lower without vectorized lanes", node)
    if dtype.is_bool:
        return "i1"
    if dtype.is_integer:
        return f"i{dtype.bits}"
    if dtype.kind is Kind.BFLOAT:
        return "bf16"
    if dtype.is_float and dtype.bits in _FLOATS:
        return _FLOATS[dtype.bits]
    raise refused(f"there is no type for {dtype}", node)


def index_cast(dtype: DType) -> str:
    """The operation that makes an index of an integer."""
    return "arith.index_cast" if dtype.kind is Kind.INT else "arith.index_castui"


@dataclass
class Scope:
    """The text so far. `values` has the SSA names of variables, by themselves; `affine` those that maps may use."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    values: dict[Var, str] = field(default_factory=dict)
    affine: dict[Var, str] = field(default_factory=dict)
    memory: dict[Buffer, str] = field(default_factory=dict)
    types: dict[Buffer, str] = field(default_factory=dict)
    count: int = 0

    def line(self, text: str) -> None:
        """Append a line."""
        self.lines.append("  " * self.depth + text)

    def fresh(self) -> str:
        """A new name of a value."""
        self.count += 1
        return f"%{self.count}"

    def define(self, text: str) -> str:
        """Append the definition of a new value, whose name is returned."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    # ---- maps

    def map_text(self, expr: Expr, names: Callable[[Var], str]) -> str | None:
        """An integer as an affine expression over names of variables; None where it is none."""
        match expr:
            case IntImm(value):
                return str(value)
            case Var() if expr in self.affine:
                return names(expr)
            case Binary(op, lhs, rhs) if op in _AFFINE:
                return self._affine_pair(op, lhs, rhs, names)
            case Cast(dtype, value) if dtype.is_integer and value.dtype.is_integer:
                # Indices fit the type that they have, which is proved, so that a wider one changes nothing.
                wider = dtype.bits >= value.dtype.bits and dtype.kind is Kind.INT and value.dtype.kind is Kind.INT
                return self.map_text(value, names) if wider else None
        return None

    def _affine_pair(self, op: BinaryOp, lhs: Expr, rhs: Expr, names: Callable[[Var], str]) -> str | None:
        if op is BinaryOp.MUL and isinstance(lhs, IntImm):
            lhs, rhs = rhs, lhs
        if op not in (BinaryOp.ADD, BinaryOp.SUB):
            if not isinstance(rhs, IntImm) or (op is not BinaryOp.MUL and rhs.value <= 0):
                return None
        left, right = self.map_text(lhs, names), self.map_text(rhs, names)
        return None if left is None or right is None else f"({left} {_AFFINE[op]} {right})"

    # ---- values

    def value(self, expr: Expr) -> str:
        """The name of a value. Raises LayoutproofError for what cannot be printed."""
        emit = _EMIT.get(type(expr))
        if emit is None:
            raise refused(f"{type(expr).__name__} has no counterpart", expr)
        return emit(self, expr)

    def index(self, expr: Expr) -> str:
        """The name of a value of type index."""
        if isinstance(expr, Var) and expr in self.affine:
            return self.affine[expr]
        if isinstance(expr, IntImm):
            return self.define(f"arith.constant {expr.value} : index")
        return self.define(f"{index_cast(expr.dtype)} {self.value(expr)} : {type_of(expr.dtype, expr)} to index")

    def access(self, buffer: Buffer, indices: Sequence[Expr], node: Node) -> tuple[str, str]:
        """The dialect of an access and its text, `%m[...] : type`."""
        if buffer not in self.memory:
            raise refused(f"{buffer.name} is another view of a memory, which is not printed", node)
        texts = [self.map_text(index, self.affine.__getitem__) for index in indices]
        if None not in texts:
            places = ", ".join(text for text in texts if text is not None)
            return "affine", f"{self.memory[buffer]}[{places}] : {self.types[buffer]}"
        places = ", ".join(self.index(index) for index in indices)
        return "memref", f"{self.memory[buffer]}[{places}] : {self.types[buffer]}"

    def choice(self, condition: str, then: Callable[[], str], otherwise: Callable[[], str], kind: str) -> str:
        """`scf.if` with a value: each side is evaluated only where it is chosen."""
        name = self.fresh()
        self.line(f"{name} = scf.if {condition} -> ({kind}) {{")
        for build, end in ((then, "} else {"), (otherwise, "}")):
            self.depth += 1
            self.line(f"scf.yield {build()} : {kind}")
            self.depth -= 1
            self.line(end)
        return name


_AFFINE = {
    BinaryOp.ADD: "+",
    BinaryOp.SUB: "-",
    BinaryOp.MUL: "*",
    BinaryOp.FLOORDIV: "floordiv",
    BinaryOp.FLOORMOD: "mod",
}


def _int(s: Scope, expr: IntImm) -> str:
    if expr.dtype.is_bool:
        return s.define(f"arith.constant {'true' if expr.value else 'false'}")
    return s.define(f"arith.constant {_signless(expr.value, expr.dtype)} : {type_of(expr.dtype, expr)}")


def _signless(value: int, dtype: DType) -> int:
    return value - (1 << dtype.bits) if value >= 1 << (dtype.bits - 1) else value


def float_text(value: float, dtype: DType, node: Node) -> str:
    """A float constant by its bits, so that nothing is rounded."""
    if dtype.kind is Kind.BFLOAT:
        bits = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
        return f"0x{bits:04X} : bf16"
    code = {16: "<e", 32: "<f", 64: "<d"}[dtype.bits]
    return f"0x{int.from_bytes(struct.pack(code, value), 'little'):0{dtype.bits // 4}X} : {type_of(dtype, node)}"


def _float(s: Scope, expr: FloatImm) -> str:
    return s.define(f"arith.constant {float_text(expr.value, expr.dtype, expr)}")


def _limit(s: Scope, expr: Limit) -> str:
    if expr.dtype.is_integer:
        whole: int = expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int
        return _int(s, IntImm(whole, expr.dtype))
    if expr.kind is LimitKind.INFINITY:
        return s.define(f"arith.constant {float_text(float('inf'), expr.dtype, expr)}")
    from layoutproof.ir.semantics import max_finite

    value = max_finite(expr.dtype) * (1 if expr.kind is LimitKind.MAX else -1)
    return s.define(f"arith.constant {float_text(value, expr.dtype, expr)}")


def _var(s: Scope, expr: Var) -> str:
    if expr in s.values:
        return s.values[expr]
    if expr not in s.affine:
        raise refused(f"{expr.name} is a size that is the extent of no parameter", expr)
    return s.define(f"arith.index_cast {s.affine[expr]} : index to {type_of(expr.dtype, expr)}")


_SIGNED: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "addi", BinaryOp.SUB: "subi", BinaryOp.MUL: "muli", BinaryOp.FLOORDIV: "floordivsi",
    BinaryOp.TRUNCDIV: "divsi", BinaryOp.TRUNCMOD: "remsi", BinaryOp.MIN: "minsi", BinaryOp.MAX: "maxsi",
    BinaryOp.BITAND: "andi", BinaryOp.BITOR: "ori", BinaryOp.BITXOR: "xori", BinaryOp.SHL: "shli",
    BinaryOp.SHR: "shrsi",
}  # fmt: skip
_UNSIGNED: Mapping[BinaryOp, str] = {
    **_SIGNED, BinaryOp.FLOORDIV: "divui", BinaryOp.FLOORMOD: "remui", BinaryOp.TRUNCDIV: "divui",
    BinaryOp.TRUNCMOD: "remui", BinaryOp.MIN: "minui", BinaryOp.MAX: "maxui", BinaryOp.SHR: "shrui",
}  # fmt: skip
_FLOAT: Mapping[BinaryOp, str] = {
    BinaryOp.ADD: "addf", BinaryOp.SUB: "subf", BinaryOp.MUL: "mulf", BinaryOp.DIV: "divf",
}  # fmt: skip


def _binary(s: Scope, expr: Binary) -> str:
    kind, op = type_of(expr.dtype, expr), expr.op
    a, b = s.value(expr.lhs), s.value(expr.rhs)
    if expr.dtype.is_float:
        if op in _FLOAT:
            return s.define(f"arith.{_FLOAT[op]} {a}, {b} : {kind}")
        # As the interpreter has it: the first one only if it is less, or greater.
        condition = s.define(f"arith.cmpf {'olt' if op is BinaryOp.MIN else 'ogt'}, {a}, {b} : {kind}")
        return s.define(f"arith.select {condition}, {a}, {b} : {kind}")
    if op is BinaryOp.FLOORMOD and expr.dtype.kind is Kind.INT:
        quotient = s.define(f"arith.floordivsi {a}, {b} : {kind}")
        whole = s.define(f"arith.muli {quotient}, {b} : {kind}")
        return s.define(f"arith.subi {a}, {whole} : {kind}")
    names = _SIGNED if expr.dtype.kind is not Kind.UINT else _UNSIGNED
    return s.define(f"arith.{names[op]} {a}, {b} : {kind}")


_PREDICATES = {
    CompareOp.EQ: "eq", CompareOp.NE: "ne", CompareOp.LT: "lt", CompareOp.LE: "le", CompareOp.GT: "gt",
    CompareOp.GE: "ge",
}  # fmt: skip


def _compare(s: Scope, expr: Compare) -> str:
    dtype = expr.lhs.dtype
    kind, name = type_of(dtype, expr), _PREDICATES[expr.op]
    a, b = s.value(expr.lhs), s.value(expr.rhs)
    if dtype.is_float:
        # IEEE's: only != holds of a NaN.
        return s.define(f"arith.cmpf {'u' if expr.op is CompareOp.NE else 'o'}{name}, {a}, {b} : {kind}")
    sign = "" if expr.op in (CompareOp.EQ, CompareOp.NE) else "u" if dtype.kind is not Kind.INT else "s"
    return s.define(f"arith.cmpi {sign}{name}, {a}, {b} : {kind}")


def _logical(s: Scope, expr: Logical) -> str:
    if not _may_fail(expr.rhs):
        a, b = s.value(expr.lhs), s.value(expr.rhs)
        return s.define(f"arith.{'andi' if expr.op is LogicalOp.AND else 'ori'} {a}, {b} : i1")
    condition = s.value(expr.lhs)

    def known() -> str:
        return s.define(f"arith.constant {'false' if expr.op is LogicalOp.AND else 'true'}")

    def other() -> str:
        return s.value(expr.rhs)

    return s.choice(condition, *((other, known) if expr.op is LogicalOp.AND else (known, other)), "i1")


_TRAPS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD, BinaryOp.SHL, BinaryOp.SHR)


def _may_fail(expr: Expr) -> bool:
    """Whether an expression may be undefined where it need not be evaluated."""
    return any(
        isinstance(node, BufferLoad)
        or (isinstance(node, Binary) and node.op in _TRAPS)
        or (isinstance(node, Cast) and node.value.dtype.is_float and node.dtype.is_integer)
        for node in walk(expr)
    )


def _not(s: Scope, expr: Not) -> str:
    true = s.define("arith.constant true")
    return s.define(f"arith.xori {s.value(expr.operand)}, {true} : i1")


def _select(s: Scope, expr: Select) -> str:
    names = [s.value(each) for each in (expr.condition, expr.then, expr.otherwise)]
    return s.define(f"arith.select {', '.join(names)} : {type_of(expr.dtype, expr)}")


def _if_then_else(s: Scope, expr: IfThenElseExpr) -> str:
    kind = type_of(expr.dtype, expr)
    return s.choice(s.value(expr.condition), lambda: s.value(expr.then), lambda: s.value(expr.otherwise), kind)


def _cast(s: Scope, expr: Cast) -> str:
    source, target, name = expr.value.dtype, expr.dtype, s.value(expr.value)
    before, after = type_of(source, expr), type_of(target, expr)
    if target == BOOL:
        zero = "0" if source.is_integer else "0.0"
        nothing = s.define(f"arith.constant {zero} : {before}")
        return s.define(f"arith.{'cmpi ne' if source.is_integer else 'cmpf une'}, {name}, {nothing} : {before}")
    word = _cast_word(source, target)
    return name if word is None else s.define(f"arith.{word} {name} : {before} to {after}")


def _cast_word(source: DType, target: DType) -> str | None:
    """The operation of a cast to a number; None where the bits stay."""
    unsigned = source.kind is not Kind.INT
    if source.is_float and target.is_float:
        return None if source == target else "extf" if target.bits > source.bits else "truncf"
    if source.is_float:
        return "fptoui" if target.kind is Kind.UINT else "fptosi"
    if target.is_float:
        return "uitofp" if unsigned else "sitofp"
    if source.is_bool or target.bits > source.bits:
        return "extui" if unsigned else "extsi"
    return None if target.bits == source.bits else "trunci"


def _reinterpret(s: Scope, expr: Reinterpret) -> str:
    before, after = type_of(expr.value.dtype, expr), type_of(expr.dtype, expr)
    return s.define(f"arith.bitcast {s.value(expr.value)} : {before} to {after}")


_CALLS: Mapping[str, str] = {
    "exp": "math.exp", "exp2": "math.exp2", "log": "math.log", "log2": "math.log2", "log10": "math.log10",
    "sqrt": "math.sqrt", "rsqrt": "math.rsqrt", "tanh": "math.tanh", "erf": "math.erf", "pow": "math.powf",
    "floor": "math.floor", "ceil": "math.ceil", "round": "math.roundeven", "trunc": "math.trunc", "fma": "math.fma",
    "maximum": "arith.maximumf", "minimum": "arith.minimumf",
    "sin": "math.sin", "cos": "math.cos", "tan": "math.tan", "sinh": "math.sinh", "cosh": "math.cosh",
    "atan": "math.atan",
}  # fmt: skip


def _call(s: Scope, expr: Call) -> str:
    kind = type_of(expr.dtype, expr)
    name = _CALLS.get(expr.function)
    if expr.function == "abs":
        name = "math.absf" if expr.dtype.is_float else "math.absi"
    if expr.function in _PASS_OVER_NAN:
        return _pass_over_nan(s, _PASS_OVER_NAN[expr.function], [s.value(each) for each in expr.arguments], kind)
    if name is None:
        raise refused(f"the function {expr.function} has no counterpart", expr)
    return s.define(f"{name} {', '.join(s.value(each) for each in expr.arguments)} : {kind}")


_PASS_OVER_NAN: Mapping[str, str] = {"fmax": "arith.maximumf", "fmin": "arith.minimumf"}


def _pass_over_nan(s: Scope, name: str, arguments: Sequence[str], kind: str) -> str:
    """A number where one is NaN, else as IEEE 754-2019 has it: `maxnumf` and `minnumf` may give either of two zeros."""
    a, b = arguments
    found = s.define(f"{name} {a}, {b} : {kind}")
    for none, other in ((b, a), (a, b)):
        condition = s.define(f"arith.cmpf une, {none}, {none} : {kind}")
        found = s.define(f"arith.select {condition}, {other}, {found} : {kind}")
    return found


def _load(s: Scope, expr: BufferLoad) -> str:
    dialect, text = s.access(expr.buffer, expr.indices, expr)
    return s.define(f"{dialect}.load {text}")


_EMIT: Mapping[type[Expr], Callable[..., str]] = {
    IntImm: _int,
    FloatImm: _float,
    Limit: _limit,
    Var: _var,
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: _not,
    Select: _select,
    IfThenElseExpr: _if_then_else,
    Cast: _cast,
    Reinterpret: _reinterpret,
    Call: _call,
    BufferLoad: _load,
}
