"""Calls of pure functions by the name that they have in LLVM or in C's library, where they are functions that programs
have anyway: `T.call_llvm_pure_intrin("float32x4", "llvm.sqrt", x)` is `T.sqrt(x)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutproof.ir.dtype import FLOAT32, FLOAT64, DType
from layoutproof.ir.expr import Binary, Broadcast, Cast, Compare, Expr, FloatImm, IntImm, Select
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, Call, OpaqueCall, StringImm, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp
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
