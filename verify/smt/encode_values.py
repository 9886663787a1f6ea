"""Values of programs as SMT-LIB 2 text: integers as wrapping bit-vectors, floats as IEEE floats.

The meaning is that of `ir/semantics.py`: one rounding per operation, to nearest even; `max(a, b)` is `a > b ? a : b`.
Every operation that may have no result adds a condition to `traps`; the untaken side of a lazy operator traps only
where it is taken. Functions of the math library are uninterpreted: equal arguments give equal results. Variables are
bit-vectors, floats too, so that every solver gives their values bit for bit. Part of the trusted computing base.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from layoutproof.ir.dtype import FLOAT64, DType, Kind
from layoutproof.ir.expr import Binary, Cast, Compare, Expr, FloatImm, IfThenElseExpr, IntImm, Logical, Not, Select, Var
from layoutproof.ir.intrinsics import Call, Limit, LimitKind, Reinterpret
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.semantics import float_format, max_finite
from layoutproof.verify.program.questions import NotEncodable

RNE = "RNE"
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class NotValue(NotEncodable):
    """An expression that is no scalar value arithmetic."""


@dataclass(frozen=True, slots=True)
class ComputedFloat:
    """The term of a float operation, and the condition under which it is evaluated (None: always)."""

    where: str | None
    term: str


class ValueEncoder:
    """Expressions in one query. Terms are texts; a compound one is named by a definition, once.

    `traps` collects the conditions under which an operation has no result, `computed` the float operations (without
    choices), `read` where each variable is evaluated (None: always). `sign_zero`, if set, may replace the term of a
    float operation, for `nsz`.
    """

    def __init__(self) -> None:
        self.traps: list[str] = []
        self.computed: list[ComputedFloat] = []
        self.read: dict[Var, list[str | None]] = {}
        self.uninterpreted: set[str] = set()
        self.has_floats = False
        self.sign_zero: Callable[[Expr, str], str] | None = None
        self._lines: list[str] = []
        self._names: dict[str, str] = {}
        self._path: list[str] = []

    def value(self, expr: Expr) -> str:
        """The term of a scalar expression: Bool, bit-vector or float by its type. Raises NotValue."""
        encode = _VALUES.get(type(expr))
        if encode is None or expr.dtype.lanes != 1 or expr.dtype.kind is Kind.HANDLE:
            raise NotValue(expr, f"{type(expr).__name__} of type {expr.dtype} is not scalar value arithmetic")
        term = encode(self, expr)
        where = conjunction(self._path) if self._path else None
        if isinstance(expr, Var):
            self.read.setdefault(expr, []).append(where)
        if isinstance(expr, Var | IntImm | FloatImm | Limit):
            return term
        if expr.dtype.is_float and self.sign_zero is not None:
            term = self.sign_zero(expr, term)
        name = self.define(term, self.sort(expr.dtype))
        if expr.dtype.is_float and not isinstance(expr, Select | IfThenElseExpr):
            self.computed.append(ComputedFloat(where, name))
        return name

    def declarations(self) -> str:
        """Everything that the terms given out so far rest on, one command a line."""
        return "\n".join(self._lines)

    @property
    def logic(self) -> str:
        """The SMT-LIB logic of the terms given out so far."""
        return f"QF_{'UF' if self.uninterpreted else ''}BV{'FP' if self.has_floats else ''}"

    def script(self, assertions: Iterable[str], comment: str = "") -> str:
        """A self-contained script up to its one `(check-sat)`."""
        head = [f"; {line}" for line in comment.splitlines()]
        body = [f"(assert {a})" for a in assertions]
        return "\n".join([*head, f"(set-logic {self.logic})", *self._lines, *body, "(check-sat)", ""])

    # Building blocks

    def define(self, body: str, sort: str) -> str:
        """A name for a term; the same one for the same term."""
        if not body.startswith("("):
            return body
        name = self._names.get(body)
        if name is None:
            name = self._names[body] = f"t{len(self._names)}"
            self._lines.append(f"(define-fun {name} () {sort} {body})")
        return name

    def declare(self, line: str) -> None:
        """A declaration, once."""
        if line not in self._names:
            self._names[line] = line
            self._lines.append(line)

    def sort(self, dtype: DType) -> str:
        """The sort of a type."""
        if dtype.is_bool:
            return "Bool"
        if dtype.is_float:
            self.has_floats = True
            return f"(_ FloatingPoint {_widths(dtype)})"
        return f"(_ BitVec {dtype.bits})"

    def integer(self, value: int, dtype: DType) -> str:
        """A bit-vector literal."""
        return f"#x{value & ((1 << dtype.bits) - 1):0{dtype.bits // 4}x}"

    def real(self, value: float, dtype: DType) -> str:
        """A float literal; `value` is a number of the type, an infinity or NaN."""
        self.has_floats = True
        if value != value:
            return f"(_ NaN {_widths(dtype)})"
        exponent, significand = _exponent_and_significand(dtype)
        bits = f"{_bits_of(value, dtype):0{dtype.bits}b}"
        return f"(fp #b{bits[0]} #b{bits[1 : exponent + 1]} #b{bits[exponent + 1 : exponent + significand]})"

    def trap(self, condition: str) -> None:
        """Record that evaluating has no result where `condition` holds, if it is evaluated."""
        self.traps.append(conjunction([*self._path, condition]))

    def under(self, condition: str, expr: Expr) -> str:
        """The value of an expression that is evaluated only where `condition` holds."""
        self._path.append(condition)
        try:
            return self.value(expr)
        finally:
            self._path.pop()


def conjunction(terms: list[str]) -> str:
    """All of them; true for none."""
    return "true" if not terms else terms[0] if len(terms) == 1 else f"(and {' '.join(terms)})"


def disjunction(terms: list[str]) -> str:
    """One of them; false for none."""
    return "false" if not terms else terms[0] if len(terms) == 1 else f"(or {' '.join(terms)})"


def same(a: str, b: str) -> str:
    """Value identity: +0 is not -0, a NaN is any NaN. (It is what SMT-LIB's `=` means on floats.)"""
    return f"(= {a} {b})"


def choice(condition: str, then: str, otherwise: str) -> str:
    """`condition ? then : otherwise`."""
    return f"(ite {condition} {then} {otherwise})"


def symbol(var: Var, prefix: str = "v_") -> str:
    """The name that a variable has in the text; models give its value, floats as bits, under this name."""
    return f"{prefix}{var.name}" if _SIMPLE.fullmatch(var.name) else f"|{prefix}{var.name}|"


def model_name(var: Var) -> str:
    """The name under which a solver's model gives a variable's value."""
    return f"v_{var.name}"


def _exponent_and_significand(dtype: DType) -> tuple[int, int]:
    """Bits of the exponent, and of the significand with the hidden one."""
    precision, _, _ = float_format(dtype)
    return dtype.bits - precision, precision


def _widths(dtype: DType) -> str:
    exponent, significand = _exponent_and_significand(dtype)
    return f"{exponent} {significand}"


def _bits_of(value: float, dtype: DType) -> int:
    """The bits of a number of a float type."""
    if dtype.kind is Kind.BFLOAT:
        return int.from_bytes(struct.pack(">f", value), "big") >> 16
    return int.from_bytes(struct.pack({16: ">e", 32: ">f", 64: ">d"}[dtype.bits], value), "big")


def _variable(enc: ValueEncoder, expr: Var) -> str:
    name, dtype = symbol(expr), expr.dtype
    if dtype.is_bool:
        enc.declare(f"(declare-const {name} Bool)")
        return name
    enc.declare(f"(declare-const {name} (_ BitVec {dtype.bits}))")
    if not dtype.is_float:
        return name
    number = symbol(expr, "f_")
    enc.declare(f"(define-fun {number} () {enc.sort(dtype)} ((_ to_fp {_widths(dtype)}) {name}))")
    return number


def _integer(enc: ValueEncoder, expr: IntImm) -> str:
    return ("true" if expr.value else "false") if expr.dtype.is_bool else enc.integer(expr.value, expr.dtype)


def _limit(enc: ValueEncoder, expr: Limit) -> str:
    if expr.dtype.is_integer:
        return enc.integer(expr.dtype.max_int if expr.kind is LimitKind.MAX else expr.dtype.min_int, expr.dtype)
    largest = float("inf") if expr.kind is LimitKind.INFINITY else max_finite(expr.dtype)
    return enc.real(-largest if expr.kind is LimitKind.MIN else largest, expr.dtype)


# Integers


def _less(a: str, b: str, dtype: DType) -> str:
    if dtype.is_bool:
        return f"(and (not {a}) {b})"
    return f"(bvslt {a} {b})" if dtype.kind is Kind.INT else f"(bvult {a} {b})"


def _divide(enc: ValueEncoder, op: BinaryOp, a: str, b: str, dtype: DType) -> str:
    zero, one = enc.integer(0, dtype), enc.integer(1, dtype)
    enc.trap(f"(= {b} {zero})")
    is_quotient = op in (BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV)
    if dtype.kind is not Kind.INT:
        return f"({'bvudiv' if is_quotient else 'bvurem'} {a} {b})"
    enc.trap(f"(and (= {b} {enc.integer(-1, dtype)}) (= {a} {enc.integer(dtype.min_int, dtype)}))")
    quotient, remainder = (enc.define(f"({f} {a} {b})", enc.sort(dtype)) for f in ("bvsdiv", "bvsrem"))
    # The floored quotient is one less where the truncated one was rounded up.
    up = f"(and (not (= {remainder} {zero})) (xor (bvslt {remainder} {zero}) (bvslt {b} {zero})))"
    match op:
        case BinaryOp.TRUNCDIV:
            return quotient
        case BinaryOp.TRUNCMOD:
            return remainder
        case BinaryOp.FLOORDIV:
            return choice(up, f"(bvsub {quotient} {one})", quotient)
        case _:
            return choice(up, f"(bvadd {remainder} {b})", remainder)


def _shift(enc: ValueEncoder, op: BinaryOp, a: str, b: str, dtype: DType) -> str:
    # A negative amount is a large unsigned one.
    enc.trap(f"(bvuge {b} {enc.integer(dtype.bits, dtype)})")
    if op is BinaryOp.SHL:
        return f"(bvshl {a} {b})"
    return f"(bvashr {a} {b})" if dtype.kind is Kind.INT else f"(bvlshr {a} {b})"


def _plain(function: str) -> Callable[..., str]:
    return lambda enc, op, a, b, dtype: f"({function} {a} {b})"


_INTEGER: dict[BinaryOp, Callable[[ValueEncoder, BinaryOp, str, str, DType], str]] = {
    BinaryOp.ADD: _plain("bvadd"),
    BinaryOp.SUB: _plain("bvsub"),
    BinaryOp.MUL: _plain("bvmul"),
    BinaryOp.FLOORDIV: _divide,
    BinaryOp.FLOORMOD: _divide,
    BinaryOp.TRUNCDIV: _divide,
    BinaryOp.TRUNCMOD: _divide,
    BinaryOp.MIN: lambda enc, op, a, b, d: choice(_less(a, b, d), a, b),
    BinaryOp.MAX: lambda enc, op, a, b, d: choice(_less(b, a, d), a, b),
    BinaryOp.BITAND: _plain("bvand"),
    BinaryOp.BITOR: _plain("bvor"),
    BinaryOp.BITXOR: _plain("bvxor"),
    BinaryOp.SHL: _shift,
    BinaryOp.SHR: _shift,
}
_BOOLEAN: dict[BinaryOp, Callable[[str, str], str]] = {
    BinaryOp.BITAND: lambda a, b: f"(and {a} {b})",
    BinaryOp.BITOR: lambda a, b: f"(or {a} {b})",
    BinaryOp.BITXOR: lambda a, b: f"(xor {a} {b})",
}
_FLOAT: dict[BinaryOp, Callable[[str, str], str]] = {
    BinaryOp.ADD: lambda a, b: f"(fp.add {RNE} {a} {b})",
    BinaryOp.SUB: lambda a, b: f"(fp.sub {RNE} {a} {b})",
    BinaryOp.MUL: lambda a, b: f"(fp.mul {RNE} {a} {b})",
    BinaryOp.DIV: lambda a, b: f"(fp.div {RNE} {a} {b})",
    BinaryOp.MIN: lambda a, b: choice(f"(fp.lt {a} {b})", a, b),
    BinaryOp.MAX: lambda a, b: choice(f"(fp.gt {a} {b})", a, b),
}


def _binary(enc: ValueEncoder, expr: Binary) -> str:
    a, b, dtype = enc.value(expr.lhs), enc.value(expr.rhs), expr.dtype
    if dtype.is_integer and expr.op in _INTEGER:
        return _INTEGER[expr.op](enc, expr.op, a, b, dtype)
    table = _FLOAT if dtype.is_float else _BOOLEAN
    if expr.op not in table:
        raise NotValue(expr, f"`{expr.op}` on {dtype}")
    return table[expr.op](a, b)


# Comparisons and choices


def _compare(enc: ValueEncoder, expr: Compare) -> str:
    a, b, dtype = enc.value(expr.lhs), enc.value(expr.rhs), expr.lhs.dtype
    match expr.op:
        case CompareOp.EQ:
            return f"(fp.eq {a} {b})" if dtype.is_float else f"(= {a} {b})"
        case CompareOp.NE:
            return f"(not (fp.eq {a} {b}))" if dtype.is_float else f"(not (= {a} {b}))"
        case CompareOp.LT | CompareOp.GT:
            x, y = (a, b) if expr.op is CompareOp.LT else (b, a)
            return f"(fp.lt {x} {y})" if dtype.is_float else _less(x, y, dtype)
        case CompareOp.LE | CompareOp.GE:
            x, y = (a, b) if expr.op is CompareOp.LE else (b, a)
            return f"(fp.leq {x} {y})" if dtype.is_float else f"(not {_less(y, x, dtype)})"


def _logical(enc: ValueEncoder, expr: Logical) -> str:
    a = enc.value(expr.lhs)
    if expr.op is LogicalOp.AND:
        return f"(and {a} {enc.under(a, expr.rhs)})"
    return f"(or {a} {enc.under(f'(not {a})', expr.rhs)})"


def _lazy(enc: ValueEncoder, expr: IfThenElseExpr) -> str:
    condition = enc.value(expr.condition)
    return choice(condition, enc.under(condition, expr.then), enc.under(f"(not {condition})", expr.otherwise))


# Conversions and functions


def _cast(enc: ValueEncoder, expr: Cast) -> str:
    source, target, value = expr.value.dtype, expr.dtype, enc.value(expr.value)
    if target.is_bool:
        if source.is_bool:
            return value
        return f"(not (fp.isZero {value}))" if source.is_float else f"(not (= {value} {enc.integer(0, source)}))"
    if source.is_bool:
        one, zero = ((enc.real(x, target) if target.is_float else enc.integer(int(x), target)) for x in (1.0, 0.0))
        return choice(value, one, zero)
    if target.is_float:
        return _to_float(value, source, target)
    return _to_integer(enc, value, source, target) if source.is_float else _resize(value, source, target)


def _to_float(value: str, source: DType, target: DType) -> str:
    if source == target:
        return value
    unsigned = "_unsigned" if source.kind is Kind.UINT else ""
    return f"((_ to_fp{unsigned} {_widths(target)}) {RNE} {value})"


def _to_integer(enc: ValueEncoder, value: str, source: DType, target: DType) -> str:
    wide = enc.define(_to_float(value, source, FLOAT64), enc.sort(FLOAT64))
    whole = enc.define(f"(fp.roundToIntegral RTZ {wide})", enc.sort(FLOAT64))
    # Both bounds are powers of two (or 0), exact in float64; a NaN is within neither.
    low, high = (enc.real(float(x), FLOAT64) for x in (target.min_int, target.max_int + 1))
    enc.trap(f"(not (and (fp.geq {whole} {low}) (fp.lt {whole} {high})))")
    convert = "fp.to_sbv" if target.kind is Kind.INT else "fp.to_ubv"
    return f"((_ {convert} {target.bits}) RTZ {wide})"


def _resize(value: str, source: DType, target: DType) -> str:
    if target.bits == source.bits:
        return value
    if target.bits < source.bits:
        return f"((_ extract {target.bits - 1} 0) {value})"
    extend = "sign_extend" if source.kind is Kind.INT else "zero_extend"
    return f"((_ {extend} {target.bits - source.bits}) {value})"


def _extreme(a: str, b: str, *, largest: bool) -> str:
    """IEEE's maximum and minimum of two numbers that are not NaN: +0 is above -0."""
    wins = f"({'fp.gt' if largest else 'fp.lt'} {a} {b})"
    sign_wins = f"(not (fp.isNegative {a}))" if largest else f"(fp.isNegative {a})"
    return choice(f"(or {wins} (and (fp.isZero {a}) (fp.isZero {b}) {sign_wins}))", a, b)


def _nan_wins(dtype: DType, a: str, b: str, *, largest: bool) -> str:
    return choice(f"(or (fp.isNaN {a}) (fp.isNaN {b}))", f"(_ NaN {_widths(dtype)})", _extreme(a, b, largest=largest))


def _nan_loses(a: str, b: str, *, largest: bool) -> str:
    return choice(f"(fp.isNaN {a})", b, choice(f"(fp.isNaN {b})", a, _extreme(a, b, largest=largest)))


_FUNCTIONS: dict[str, Callable[..., str]] = {
    "abs": lambda d, x: f"(fp.abs {x})",
    "sqrt": lambda d, x: f"(fp.sqrt {RNE} {x})",
    "fma": lambda d, a, b, c: f"(fp.fma {RNE} {a} {b} {c})",
    "floor": lambda d, x: f"(fp.roundToIntegral RTN {x})",
    "ceil": lambda d, x: f"(fp.roundToIntegral RTP {x})",
    "round": lambda d, x: f"(fp.roundToIntegral {RNE} {x})",
    "trunc": lambda d, x: f"(fp.roundToIntegral RTZ {x})",
    "fmax": lambda d, a, b: _nan_loses(a, b, largest=True),
    "fmin": lambda d, a, b: _nan_loses(a, b, largest=False),
    "maximum": lambda d, a, b: _nan_wins(d, a, b, largest=True),
    "minimum": lambda d, a, b: _nan_wins(d, a, b, largest=False),
}

INTERPRETED = frozenset(_FUNCTIONS)
"""The math functions that IEEE 754 defines; all others are uninterpreted."""


def _call(enc: ValueEncoder, expr: Call) -> str:
    arguments, dtype = [enc.value(a) for a in expr.arguments], expr.dtype
    if dtype.is_integer:
        (value,) = arguments
        if dtype.kind is not Kind.INT:
            return value
        # The magnitude of the least number of a signed type wraps around to itself.
        return choice(f"(bvslt {value} {enc.integer(0, dtype)})", f"(bvneg {value})", value)
    known = _FUNCTIONS.get(expr.function)
    if known is not None:
        return known(dtype, *arguments)
    enc.uninterpreted.add(expr.function)
    name, sort = f"m_{expr.function}_{dtype}", enc.sort(dtype)
    enc.declare(f"(declare-fun {name} ({' '.join(sort for _ in arguments)}) {sort})")
    return f"({name} {' '.join(arguments)})"


_VALUES: dict[type[Expr], Callable[[ValueEncoder, Any], str]] = {
    Var: _variable,
    IntImm: _integer,
    FloatImm: lambda enc, e: enc.real(e.value, e.dtype),
    Limit: _limit,
    Binary: _binary,
    Compare: _compare,
    Logical: _logical,
    Not: lambda enc, e: f"(not {enc.value(e.operand)})",
    Select: lambda enc, e: choice(enc.value(e.condition), enc.value(e.then), enc.value(e.otherwise)),
    IfThenElseExpr: _lazy,
    Cast: _cast,
    Reinterpret: lambda enc, e: f"((_ to_fp {_widths(e.dtype)}) {enc.value(e.value)})",
    Call: _call,
}
