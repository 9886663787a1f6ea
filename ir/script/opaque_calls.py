"""Calls that are kept without a meaning of their own: of the table of known ones, and of a device's instructions."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE, DType
from layoutproof.ir.expr import Expr
from layoutproof.ir.intrinsics import OPAQUE_CALLS, OpaqueCall, OpaqueSignature, StringImm
from layoutproof.ir.script.expressions import OF_A_DEVICE, ExpressionReader, Handler
from layoutproof.ir.script.library_calls import meaning
from layoutproof.ir.script.operands import Value
from layoutproof.ir.script.parsing import did_you_mean, is_text, parse_dtype, read_string


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
