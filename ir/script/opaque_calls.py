"""Calls that are kept without a meaning of their own: of the table of known ones, and of a device's instructions; and
calls of pure functions by the name that they have in LLVM or in C's library, where they are functions that programs
have anyway: `T.call_llvm_pure_intrin("float32x4", "llvm.sqrt", x)` is `T.sqrt(x)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import FLOAT32, FLOAT64, HANDLE, DType
from layoutproof.ir.expr import Binary, Broadcast, Cast, Compare, Expr, FloatImm, IntImm, Select
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, OPAQUE_CALLS, Call, OpaqueCall, OpaqueSignature, StringImm, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.script.expressions import OF_A_DEVICE, ExpressionReader, Handler
from layoutproof.ir.script.operands import Value
from layoutproof.ir.script.parsing import did_you_mean, is_text, parse_dtype, read_string
from layoutproof.ir.visit import holds_any, walk

_MOST = 100
PURE_CALLS = ("call_llvm_pure_intrin", "call_pure_extern")

_LLVM: Mapping[str, str] = {
    **{name: name for name in ("sqrt", "floor", "ceil", "trunc", "exp", "exp2", "log", "log2", "log10", "pow", "fma")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "atan")},
    "fabs": "abs",
    "maxnum": "fmax",
    "minnum": "fmin",
    "rint": "round",
    "nearbyint": "round",
    "roundeven": "round",
}
_C: Mapping[str, str] = {
    **{name: function for name, function in _LLVM.items() if name not in ("maxnum", "minnum", "roundeven")},
    **{name: name for name in ("erf", "fmax", "fmin")},
}


def meaning(call: OpaqueCall) -> Expr:
    """What a call computes, as an expression; the call itself where that is not known."""
    match call.arguments:
        case (StringImm(value=name), *arguments) if call.function in PURE_CALLS:
            # TVM up to 0.20 says how many types of arguments decide which function of that name is called.
            typed = call.function == "call_llvm_pure_intrin"
            if typed and arguments and _is_count(arguments[0]):
                arguments = arguments[1:]
            found = _of_llvm(name, call.dtype, arguments) if typed else _of_c(name, call.dtype, arguments)
            return call if found is None else found
        case _:
            return call


def _is_count(argument: Expr) -> bool:
    return isinstance(argument, IntImm) and argument.dtype == DType.parse("uint32")


def _of_llvm(name: str, dtype: DType, arguments: Sequence[Expr]) -> Expr | None:
    short = name.removeprefix("llvm.").split(".")[0]
    if not name.startswith("llvm."):
        return None
    if short in ("round", "lround", "llround"):
        return _away_from_zero(dtype, arguments, short != "round")
    return _call(_LLVM.get(short), dtype, arguments)


def _of_c(name: str, dtype: DType, arguments: Sequence[Expr]) -> Expr | None:
    short = name.removesuffix("f") if name.removesuffix("f") in _C and dtype.element == FLOAT32 else name
    single = short != name
    wanted = FLOAT32 if single else FLOAT64
    return _call(_C.get(short), dtype, arguments) if dtype.element == wanted else None


def _call(function: str | None, dtype: DType, arguments: Sequence[Expr]) -> Expr | None:
    if function is None or MATH_FUNCTIONS[function] != len(arguments):
        return None
    return Call(function, tuple(arguments)) if all(a.dtype == dtype and dtype.is_float for a in arguments) else None


def _away_from_zero(dtype: DType, arguments: Sequence[Expr], whole: bool) -> Expr | None:
    """The nearest integer, halves away from zero: what is cut off is exact, so that it says on which side to go on."""
    if len(arguments) != 1 or holds_any(arguments[0], OpaqueCall, Undef) or sum(1 for _ in walk(arguments[0])) > _MOST:
        return None  # it is written several times
    (value,) = arguments
    kind = value.dtype
    if not kind.is_float or kind.lanes != dtype.lanes or (dtype.is_integer if whole else dtype == kind) is False:
        return None

    def number(of: float) -> Expr:
        literal = FloatImm(of, kind.element)
        return literal if kind.lanes == 1 else Broadcast(literal, kind.lanes)

    def choice(op: CompareOp, left: Expr, right: Expr, then: Expr, otherwise: Expr) -> Expr:
        return Select(Compare(op, left, right), then, otherwise)

    cut = Call("trunc", (value,))
    rest = Call("abs", (Binary(BinaryOp.SUB, value, cut),))
    one = choice(CompareOp.LT, value, number(0.0), number(-1.0), number(1.0))
    found = choice(CompareOp.GE, rest, number(0.5), Binary(BinaryOp.ADD, cut, one), cut)
    return Cast(dtype, found) if whole else found


def _of_a_device(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
    """`T.metal.simdgroup_load(...)`: opaque, named by what stands after the `T`."""
    return _read_opaque(name.partition(".")[2], OpaqueSignature(dtype_first=False, default=HANDLE))(reader, node, name)


def _read_opaque(function: str, signature: OpaqueSignature) -> Handler:
    def handle(reader: ExpressionReader, node: ast.Call, name: str) -> Value:
        positional, dtype = list(node.args), signature.default
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                help = did_you_mean(str(keyword.arg), ("dtype",))
                raise reader.text.fail(
                    codes.WRONG_ARGUMENTS, f"{name} has no argument `{keyword.arg}`", keyword, help=help
                )
            dtype = _opaque_dtype(reader, keyword.value)
        if signature.dtype_first and not node.keywords:
            if not positional:
                raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{name} takes its data type first", node)
            dtype = _positional_dtype(reader, function, positional)
        call = reader.make(node, OpaqueCall, function, tuple(_opaque_argument(reader, a) for a in positional), dtype)
        return meaning(call)

    return handle


_SHUFFLES = frozenset({"tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down"})


def _positional_dtype(reader: ExpressionReader, function: str, arguments: list[ast.expr]) -> DType:
    """The type among the arguments, which is taken out of them: the first, or, as TVM 0.27 writes some, the last."""
    if function in _SHUFFLES and len(arguments) > 1 and not is_text(arguments[0]):
        return reader.expr(arguments[1]).dtype  # that of what is exchanged, which stands for itself
    at = -1 if function == "tvm_struct_get" and not is_text(arguments[0]) else 0
    return _opaque_dtype(reader, arguments.pop(at))


def _opaque_dtype(reader: ExpressionReader, node: ast.expr) -> DType:
    if isinstance(node, ast.Attribute) and node.attr == "ty" and isinstance(node.value, ast.Call):
        node = node.value.func  # T.handle("int32").ty
    name = node.attr if isinstance(node, ast.Attribute) else read_string(reader.text, node, "the data type of a call")
    return HANDLE if name in ("handle", "void", "") else parse_dtype(reader.text, node, name)


def _opaque_argument(reader: ExpressionReader, node: ast.expr) -> Expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return reader.make(node, StringImm, node.value)
    if isinstance(node, ast.Name) and isinstance(found := reader.scope.lookup(node.id), Buffer):
        return found.data  # what T.allocate names is a pointer
    return reader.expr(node)


OPAQUE: Mapping[str, Handler] = {
    **{name: _read_opaque(name, signature) for name, signature in OPAQUE_CALLS.items()},
    OF_A_DEVICE: _of_a_device,
}
