"""The functions that an expression may call, as a table: name -> how its arguments become a node."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import replace

from layoutproof.ir import codes
from layoutproof.ir.dtype import FLOAT32, INT32, INT64, DType, Kind
from layoutproof.ir.expr import (
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.intrinsics import (
    MATH_FUNCTIONS,
    Assume,
    Call,
    Limit,
    LimitKind,
    PointerCast,
    Reinterpret,
    Undef,
)
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.script.expressions import ExpressionReader, Handler
from layoutproof.ir.script.opaque_calls import OPAQUE
from layoutproof.ir.script.operands import Value, Weak
from layoutproof.ir.script.parsing import (
    bind,
    is_text,
    read_dtype,
    read_integer,
    read_string,
)
from layoutproof.ir.visit import always_evaluates, substitute


def _binary(op: BinaryOp) -> Handler:
    """`T.floordiv(a, b)` and the like: as the operator, of numbers too, which have the type they get here."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, ("a", "b"), 2)
        a, b = reader.read(bound["a"]), reader.read(bound["b"])
        if isinstance(a, Weak) and isinstance(b, Weak) and None not in (a.number, b.number) and "." in name:
            a, b = reader.matched(node, a, b)
        return reader.binary(node, op, a, b)

    return handle


def _strict(op: BinaryOp | CompareOp) -> Handler:
    """`T.Add(a, b)` and the other names of nodes: both sides have one type as they stand."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, ("a", "b"), 2)
        a, b = reader.same(node, name, reader.read(bound["a"]), reader.read(bound["b"]))
        return reader.binary(node, op, a, b) if isinstance(op, BinaryOp) else reader.compare(node, op, a, b)

    return handle


def _extreme(op: BinaryOp) -> Handler:
    """min and max: of two values, or of more as Python's own take them, grouped to the left."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        if len(node.args) <= 2 or node.keywords:
            return _binary(op)(reader, node, name)
        values = [reader.read(argument) for argument in node.args]
        result = values[0]
        for value in values[1:]:
            result = reader.binary(node, op, result, value)
        return result

    return handle


def _division(on_floats: BinaryOp | None, on_integers: BinaryOp) -> Handler:
    """TVM's `Div` and `Mod`: truncating on integers."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, ("a", "b"), 2)
        a, b = reader.same(node, name, reader.read(bound["a"]), reader.read(bound["b"]))
        return reader.binary(node, on_floats if on_floats is not None and a.dtype.is_float else on_integers, a, b)

    return handle


def _logical(op: LogicalOp) -> Handler:
    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, ("a", "b"), 2)
        return reader.logical(node, op, [reader.condition(bound["a"]), reader.condition(bound["b"])])

    return handle


def _not(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("a",), 1)
    return reader.read(ast.copy_location(ast.UnaryOp(ast.Not(), bound["a"]), node))


def _select(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("condition", "true_value", "false_value"), 3)
    condition = reader.condition(bound["condition"])
    return reader.choice(node, Select, condition, reader.read(bound["true_value"]), reader.read(bound["false_value"]))


def _if_then_else(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("cond", "t", "f"), 3)
    return reader.choice(
        node, IfThenElseExpr, reader.condition(bound["cond"]), reader.read(bound["t"]), reader.read(bound["f"])
    )


def _cast(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    stated = any(k.arg == "dtype" for k in node.keywords) and len(node.args) == 1  # T.cast(value, dtype="int32")
    bound = bind(reader.text, node, name, ("value", "dtype") if stated else ("dtype", "value"), 2)
    dtype_node, value_node = bound["dtype"], bound["value"]
    if name.endswith("cast") and not is_text(dtype_node) and is_text(value_node):
        dtype_node, value_node = value_node, dtype_node  # T.cast(value, dtype) of the old dialect
    dtype, value = read_dtype(reader.text, dtype_node), reader.read(value_node)
    if isinstance(value, Weak) and value.default is None and value.literal is None:
        return value.build(dtype)  # T.Cast("float32", T.undef()) is how TVM 0.27 writes an undefined float
    return reader.make(node, reader.cast if name.endswith("cast") else Cast, dtype, reader.strong(value))


def _reinterpret(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`T.reinterpret("float32", x)`: the bits of a value as another type. Those of pointers, and those of floats, which
    are no function of a NaN, stay a call that is opaque.
    """
    if node.keywords or len(node.args) != 2 or not is_text(node.args[0]):
        return OPAQUE["reinterpret"](reader, node, name)
    dtype = _reinterpreted_type(reader, node.args[0])
    value = reader.expr(node.args[1])
    source = value.dtype
    if dtype is None or not source.is_integer or not (dtype.is_float or dtype.is_integer):
        return OPAQUE["reinterpret"](reader, node, name)
    if (source.bits, source.lanes) != (dtype.bits, dtype.lanes):
        if source.bits * source.lanes == dtype.bits * dtype.lanes:
            return OPAQUE["reinterpret"](reader, node, name)
        raise reader.text.fail(codes.WRONG_TYPE, f"{name} of {source} as {dtype}, which has another width", node)
    if source == dtype:
        return value
    return reader.make(node, Reinterpret if dtype.is_float else Cast, dtype, value)


def _reinterpreted_type(reader: ExpressionReader, node: ast.expr) -> DType | None:
    """The type that bits are seen as; None for a pointer."""
    name = read_string(reader.text, node, "a data type")
    return None if name in ("handle", "void", "") else read_dtype(reader.text, node)


def _astype(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    assert isinstance(node.func, ast.Attribute)
    bound = bind(reader.text, node, name, ("dtype",), 1)
    value, dtype = reader.expr(node.func.value), read_dtype(reader.text, bound["dtype"])
    return value if value.dtype == dtype else reader.make(node, reader.cast, dtype, value)


def _typed(dtype: DType) -> Handler:
    """`T.float32(x)`: a constant of the type, or a cast."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        argument = bind(reader.text, node, name, ("expr",), 1)["expr"]
        if is_text(argument) and dtype.is_float:
            return reader.make(node, FloatImm, _special_float(reader, argument), dtype)
        value = reader.read(argument)
        if isinstance(value, Weak) and (value.literal is not None or value.default is None):
            built = value.build(dtype)
            return reader.note_written(replace(built, span=reader.text.span(node)), reader.written(built))
        strong = reader.strong(value)
        return strong if strong.dtype == dtype else reader.make(node, reader.cast, dtype, strong)

    return handle


def _special_float(reader: ExpressionReader, node: ast.expr) -> float:
    text = read_string(reader.text, node, "a float")
    values = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
    if text not in values:
        raise reader.text.fail(
            codes.WRONG_ARGUMENTS, f'{text!r} is no float: "inf", "-inf" and "nan" are written in quotes', node
        )
    return values[text]


def _ramp(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("base", "stride", "lanes"), 3)
    base, stride = reader.matched(node, reader.read(bound["base"]), reader.read(bound["stride"]))
    return reader.make(node, Ramp, base, stride, read_integer(reader.text, bound["lanes"], "the lanes of a ramp"))


def _broadcast(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("value", "lanes"), 2)
    lanes = read_integer(reader.text, bound["lanes"], "the lanes of a broadcast")
    return reader.make(node, Broadcast, reader.expr(bound["value"]), lanes)


def _limit(kind: LimitKind) -> Handler:
    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, ("dtype",), 1)
        return reader.make(node, Limit, kind, read_dtype(reader.text, bound["dtype"]))

    return handle


def _undef(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("dtype",), 0)
    if "dtype" in bound:
        return reader.make(node, Undef, read_dtype(reader.text, bound["dtype"]))
    return Weak(node, lambda dtype: reader.make(node, Undef, dtype), None)


def _assume(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("condition",), 1)
    return reader.make(node, Assume, reader.condition(bound["condition"]))


def _likely(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """A hint about branches that says nothing about values: the condition itself."""
    return reader.condition(bind(reader.text, node, name, ("cond",), 1)["cond"])


def _math(function: str) -> Handler:
    parameters = ("x", "y", "z")[: MATH_FUNCTIONS[function]]

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        bound = bind(reader.text, node, name, parameters, len(parameters))
        values = [reader.read(bound[p]) for p in parameters]
        if len(values) == 2:
            return reader.make(node, Call, function, reader.matched(node, *values))
        arguments = tuple(
            reader.strong(v, FLOAT32 if v.number is None else None) if isinstance(v, Weak) else v for v in values
        )
        if function in _OF_WHOLE_NUMBERS and arguments[0].dtype.is_integer:
            return arguments[0]
        if function != "abs" and arguments[0].dtype.is_integer:
            message = f"{function} of a {arguments[0].dtype}"
            raise reader.text.fail(
                codes.WRONG_TYPE, message, node, help='write T.Cast("float32", ...) around the argument'
            )
        return reader.make(node, Call, function, arguments)

    return handle


_OF_WHOLE_NUMBERS = frozenset({"floor", "ceil", "round", "trunc"})  # which they leave as they are


def _pointer_cast(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    bound = bind(reader.text, node, name, ("pointee", "pointer"), 2)
    return reader.make(node, PointerCast, read_dtype(reader.text, bound["pointee"]), reader.expr(bound["pointer"]))


def _ceildiv(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`(a + b - 1) // b`, as TVM writes it out."""
    bound = bind(reader.text, node, name, ("lhs", "rhs"), 2)
    values = reader.read(bound["lhs"]), reader.read(bound["rhs"])
    reader.whole(node, BinaryOp.FLOORDIV, *values)
    a, b = reader.matched(node, *values)
    most = reader.binary(node, BinaryOp.SUB, reader.binary(node, BinaryOp.ADD, a, b), reader.constant(node, 1, a.dtype))
    return reader.binary(node, BinaryOp.FLOORDIV, most, b)


def _clz(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """The number of leading zeros of an integer, as a choice by its size. Of 0 all bits; TVM leaves that open."""
    value = reader.repeated(bind(reader.text, node, name, ("x",), 1)["x"])
    dtype = value.dtype
    if dtype.kind not in (Kind.INT, Kind.UINT) or dtype.bits not in (32, 64) or dtype.lanes != 1:
        message = f"{name} takes an integer of 32 or 64 bits, not a {dtype}"
        help = 'write T.Cast("int32", ...) around the argument' if dtype.lanes == 1 else None
        raise reader.text.fail(codes.WRONG_TYPE, message, node, help=help)
    signed = dtype.kind is Kind.INT
    digits = dtype.bits - signed
    found: Expr = const(dtype.bits, INT32)
    for digit in range(digits):
        found = Select(
            Compare(CompareOp.LT, value, const(1 << digit, dtype)), found, const(dtype.bits - 1 - digit, INT32)
        )
    return Select(Compare(CompareOp.LT, value, const(0, dtype)), const(0, INT32), found) if signed else found


def _isnan(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """Whether a float is NaN: it is then not itself."""
    value = reader.repeated(bind(reader.text, node, name, ("x",), 1)["x"])
    if not value.dtype.is_float:
        raise reader.text.fail(codes.WRONG_TYPE, f"{name} of a {value.dtype}, which is never NaN", node)
    return reader.make(node, Compare, CompareOp.NE, value, value)


def _q_multiply_shift(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`round(x*y*2**(s - q))`, halves up, in 64 bits: x and y are of 32, q and s are numbers."""
    bound = bind(reader.text, node, name, ("x", "y", "q", "s"), 4)
    q, s = (read_integer(reader.text, bound[key], f"`{key}` of {name}") for key in ("q", "s"))
    factors = [reader.expr(bound[key], INT32) for key in ("x", "y")]
    if any(factor.dtype.element != INT32 for factor in factors) or not (1 <= q <= 31 and -31 <= s < q):
        message = f"{name} of other factors than int32, or with q not in 1..31 or s not in -31..q-1, is not supported"
        raise reader.text.fail(codes.UNSUPPORTED, message, node)
    x, y = (Cast(INT64.with_lanes(factor.dtype.lanes), factor) for factor in factors)
    product = reader.strong(reader.binary(node, BinaryOp.MUL, *reader.matched(node, x, y)))
    half, bits = (reader.constant(node, number, product.dtype) for number in (1 << (q - s - 1), q - s))
    whole = reader.binary(node, BinaryOp.SHR, reader.strong(reader.binary(node, BinaryOp.ADD, product, half)), bits)
    return reader.make(node, Cast, INT32.with_lanes(product.dtype.lanes), whole)


def _let(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`T.Let(body, where={x: value})`: the body with the value in the place of the name."""
    bound = bind(reader.text, node, name, ("body", "where"), 2)
    where = bound["where"]
    if not isinstance(where, ast.Dict):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{name} takes a dictionary of variables and their values", where)
    body = reader.expr(bound["body"])
    values: dict[Var, Expr] = {}
    for key, entry in zip(where.keys, where.values, strict=True):
        var = reader.expr(key) if isinstance(key, ast.Name) else None
        if not isinstance(var, Var) or key is None:
            message = f"{name} gives values to names declared before"
            raise reader.text.fail(codes.WRONG_ARGUMENTS, message, key if key is not None else entry)
        value = reader.repeated(entry)
        if value.dtype != var.dtype:
            raise reader.text.fail(
                codes.WRONG_TYPE, f"`{var.name}` is declared {var.dtype}, its value has type {value.dtype}", entry
            )
        if not always_evaluates(body, var):
            message = f"{name} evaluates the value of `{var.name}` where its body may not"
            raise reader.text.fail(codes.UNSUPPORTED, message, entry, help="bind it by a statement, x = T.bind(...)")
        values[var] = value
    return substitute(body, values)


def _with_dtype(handler: Handler) -> Handler:
    """A call that may say the type of its result by `dtype=`, as TVM up to 0.20 prints it."""

    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        stated = next((k for k in node.keywords if k.arg == "dtype"), None)
        if stated is None:
            return handler(reader, node, name)
        plain = ast.copy_location(ast.Call(node.func, node.args, [k for k in node.keywords if k is not stated]), node)
        dtype = read_dtype(reader.text, stated.value)
        result = reader.strong(handler(reader, plain, name), dtype)
        if result.dtype != dtype:
            message = f"{name} gives {result.dtype} here, not the {dtype} that it states"
            raise reader.text.fail(codes.WRONG_TYPE, message, stated.value, help=f'write T.Cast("{dtype}", ...)')
        return result

    return handle


_ARITHMETIC: Mapping[BinaryOp, tuple[str, ...]] = {
    BinaryOp.FLOORDIV: ("floordiv", "indexdiv"),
    BinaryOp.FLOORMOD: ("floormod", "indexmod"),
    BinaryOp.TRUNCDIV: ("truncdiv",),
    BinaryOp.TRUNCMOD: ("truncmod",),
    BinaryOp.BITAND: ("bitwise_and",),
    BinaryOp.BITOR: ("bitwise_or",),
    BinaryOp.BITXOR: ("bitwise_xor",),
    BinaryOp.SHL: ("shift_left",),
    BinaryOp.SHR: ("shift_right",),
}

_NODES: Mapping[str, BinaryOp | CompareOp] = {
    "Add": BinaryOp.ADD,
    "Sub": BinaryOp.SUB,
    "Mul": BinaryOp.MUL,
    "FloorDiv": BinaryOp.FLOORDIV,
    "FloorMod": BinaryOp.FLOORMOD,
    "Min": BinaryOp.MIN,
    "Max": BinaryOp.MAX,
    "EQ": CompareOp.EQ,
    "NE": CompareOp.NE,
    "LT": CompareOp.LT,
    "LE": CompareOp.LE,
    "GT": CompareOp.GT,
    "GE": CompareOp.GE,
}

_KINDS = {
    Kind.INT: (8, 16, 32, 64),
    Kind.UINT: (8, 16, 32, 64),
    Kind.FLOAT: (16, 32, 64),
    Kind.BFLOAT: (16,),
    Kind.BOOL: (8,),
}
TYPES = tuple(DType(kind, bits) for kind, widths in _KINDS.items() for bits in widths)
"""The data types of one lane that a program may name."""
_LANES = (2, 3, 4, 8, 16, 32, 64)

_BASIC: Mapping[str, Handler] = {
    **{name: _binary(op) for op, names in _ARITHMETIC.items() for name in names},
    **{name: _strict(op) for name, op in _NODES.items()},
    **{name: _math(name) for name in MATH_FUNCTIONS},
    **OPAQUE,
    **{str(dtype): _typed(dtype) for dtype in TYPES},
    **{str(dtype.with_lanes(lanes)): _typed(dtype.with_lanes(lanes)) for dtype in TYPES for lanes in _LANES},
    "min": _extreme(BinaryOp.MIN),
    "max": _extreme(BinaryOp.MAX),
    "Div": _division(BinaryOp.DIV, BinaryOp.TRUNCDIV),
    "Mod": _division(None, BinaryOp.TRUNCMOD),
    "And": _logical(LogicalOp.AND),
    "Or": _logical(LogicalOp.OR),
    "Not": _not,
    "Select": _select,
    "select": _select,
    "if_then_else": _if_then_else,
    "Cast": _cast,
    "cast": _cast,
    "astype": _astype,
    "reinterpret": _reinterpret,
    "Ramp": _ramp,
    "ramp": _ramp,
    "Broadcast": _broadcast,
    "broadcast": _broadcast,
    "infinity": _limit(LimitKind.INFINITY),
    "min_value": _limit(LimitKind.MIN),
    "max_value": _limit(LimitKind.MAX),
    "undef": _undef,
    "assume": _assume,
    "likely": _likely,
    "ceildiv": _ceildiv,
    "clz": _clz,
    "isnan": _isnan,
    "q_multiply_shift": _q_multiply_shift,
    "fabs": _math("abs"),
    "nearbyint": _math("round"),
    "power": _math("pow"),
    "pointer_cast": _pointer_cast,
}

_WITHOUT_TYPE = {"Cast", "cast", "astype", "infinity", "min_value", "max_value", "undef", *OPAQUE}

FUNCTIONS: Mapping[str, Handler] = {
    **{name: handler if name in _WITHOUT_TYPE else _with_dtype(handler) for name, handler in _BASIC.items()},
    "Let": _let,
}

# What a program may call without a prefix: Python's own functions, as TVM's texts use them.
SCRIPT_BUILTINS = frozenset({"min", "max", "abs"})
# What a plain text (an index map, a condition, a shape) may call without a prefix.
_PLAIN_ARITHMETIC = {"select", "if_then_else", "floordiv", "floormod", "truncdiv", "truncmod"}
PLAIN_FUNCTIONS = SCRIPT_BUILTINS | _PLAIN_ARITHMETIC | {"int8", "int16", "int32", "int64"}
PLAIN_NAMESPACES = frozenset({"T", "te", "tir", "tirx", "tvm.tir", "tvm.te", "tvm.tirx"})
