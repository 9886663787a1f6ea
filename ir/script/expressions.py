"""Python's expressions -> IR expressions, with spans, by one table of syntax nodes. Nothing is executed, nothing
simplified.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import counted
from layoutproof.ir.dtype import DType, Kind
from layoutproof.ir.expr import Binary, Compare, Expr, IfThenElseExpr, IntImm, Not, Ramp
from layoutproof.ir.intrinsics import DEVICE_NAMESPACES, OpaqueCall, Undef
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BINARY_OPERATORS, BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.script.operands import OperandReader, Value, Weak, extent_between
from layoutproof.ir.script.parsing import Text, did_you_mean, read_integer
from layoutproof.ir.visit import walk

N = TypeVar("N", bound=Node)
Handler = Callable[["ExpressionReader", ast.Call, str], Value]


class Scope(Protocol):
    """What the names of a text mean."""

    def lookup(self, name: str) -> Expr | Buffer | None:
        """What a name stands for here, or None."""

    def names(self) -> Iterable[str]:
        """Every name that means something here, for suggestions."""
        ...


@dataclass(frozen=True, slots=True)
class Names:
    """A scope that is a table."""

    table: Mapping[str, Expr | Buffer]

    def lookup(self, name: str) -> Expr | Buffer | None:
        """What a name stands for here, or None."""
        return self.table.get(name)

    def names(self) -> Iterable[str]:
        """Every name of the table."""
        return self.table


class ExpressionReader(OperandReader):
    """Reads expressions of one text. `functions` are the calls that it knows by name.

    Functions may be called through the `namespaces` (`T.min`), those in `bare` also without (`min`).
    """

    def __init__(
        self,
        text: Text,
        scope: Scope,
        functions: Mapping[str, Handler],
        namespaces: Collection[str],
        bare: Collection[str],
    ) -> None:
        super().__init__(text)
        self.scope = scope
        self.functions = functions
        self.namespaces = namespaces
        self.bare = bare

    # ---- what callers ask for

    def read(self, node: ast.expr) -> Value:
        """The value of an expression, its type still open where only constants stand in it."""
        handler = _READERS.get(type(node))
        if handler is None:
            raise self.text.fail(codes.UNSUPPORTED, f"{syntax_name(node)} cannot stand in an expression here", node)
        return handler(self, node)

    def expr(self, node: ast.expr, dtype: DType | None = None) -> Expr:
        """An expression; constants become `dtype`, or their default when it is None."""
        return self.strong(self.read(node), dtype)

    def named(self, node: ast.expr) -> Expr:
        """A value that a name of `T.meta_var` stands for: written as often as the name is, and so of a bounded size."""
        value = self.expr(node)
        if len(list(islice(walk(value), _LARGEST_NAMED + 1))) > _LARGEST_NAMED:
            message = "this expression is too large to be written more than once"
            raise self.text.fail(codes.TOO_DEEP, message, node, help="bind it by a statement, x = T.bind(...)")
        return value

    def repeated(self, node: ast.expr) -> Expr:
        """A value that is written more than once here: it is the same each time, and of a bounded size."""
        value = self.named(node)
        for part in walk(value):
            if isinstance(part, OpaqueCall | Undef):
                what = "an undefined value" if isinstance(part, Undef) else f"a call of {part.function}"
                message = f"{what} is evaluated once here, and may differ each time it is written"
                raise self.text.fail(codes.UNSUPPORTED, message, node, help="bind it by a statement, x = T.bind(...)")
        return value

    def condition(self, node: ast.expr, as_c: bool = False) -> Expr:
        """A truth value; with `as_c` also an integer, which is one where it is not zero."""
        value = self.expr(node, None)
        if as_c and value.dtype.is_integer and value.dtype.lanes == 1:
            return self.make(node, Compare, CompareOp.NE, value, IntImm(0, value.dtype))
        if not value.dtype.is_bool:
            raise self.text.fail(codes.WRONG_TYPE, f"a truth value is expected, this has type {value.dtype}", node)
        return value

    def integer(self, node: ast.expr, what: str, dtype: DType | None = None) -> Expr:
        """One integer, without lanes; `what` names it in the message."""
        value = self.expr(node, dtype)
        if not value.dtype.is_integer or value.dtype.lanes > 1:
            raise self.text.fail(codes.WRONG_TYPE, f"{what} has type {value.dtype}, an integer is expected", node)
        return value

    # ---- names and buffers

    def buffer(self, node: ast.expr) -> Buffer:
        """The buffer that a name stands for."""
        if isinstance(node, ast.Name):
            found = self.scope.lookup(node.id)
            if isinstance(found, Buffer):
                return found
            if found is None:
                raise self.undefined(node, node.id)
            raise self.text.fail(
                codes.BUFFER_USE, f"`{node.id}` is a variable of type {found.dtype}, not a buffer", node
            )
        raise self.text.fail(codes.BUFFER_USE, f"the name of a buffer is expected, not {syntax_name(node)}", node)

    def undefined(self, node: ast.AST, name: str) -> Exception:
        """The error for a name that means nothing."""
        return self.text.fail(
            codes.UNDEFINED_NAME, f"`{name}` is not defined here", node, help=did_you_mean(name, self.scope.names())
        )

    def indices(self, node: ast.Subscript, buffer: Buffer) -> tuple[Expr, ...]:
        """The indices of an access; a slice in the last place becomes a ramp."""
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(self._index(entry, buffer, axis) for axis, entry in enumerate(entries))

    def _index(self, entry: ast.expr, buffer: Buffer, axis: int) -> Expr:
        if isinstance(entry, ast.Slice):
            return self._ramp(entry, buffer, axis)
        value = self.expr(entry)
        if not value.dtype.is_integer:
            raise self.text.fail(
                codes.BUFFER_USE, f"index {axis} of {buffer.name} has type {value.dtype}, an integer is expected", entry
            )
        return value

    def _ramp(self, entry: ast.Slice, buffer: Buffer, axis: int) -> Expr:
        """`start:stop:step` as the lanes of one access."""
        if entry.lower is None or entry.upper is None:
            raise self.text.fail(codes.BUFFER_USE, f"a slice of {buffer.name} needs a start and a stop here", entry)
        start = self.integer(entry.lower, "the start of a slice")
        stop = self.integer(entry.upper, "the stop of a slice", start.dtype)
        step = 1 if entry.step is None else read_integer(self.text, entry.step, "the step of a slice")
        extent = extent_between(start, stop)
        if not isinstance(extent, IntImm) or step < 1 or extent.value < 1 or extent.value % step:
            message = f"index {axis} of {buffer.name}: a slice of a fixed number of elements is expected"
            raise self.text.fail(codes.BUFFER_USE, message, entry)
        if extent.value == step:
            return start
        return self.make(entry, Ramp, start, IntImm(step, start.dtype), extent.value // step)


_NAMES: Mapping[type[ast.AST], str] = {
    ast.While: "a `while` loop",
    ast.Return: "`return`",
    ast.Try: "`try`",
    ast.FunctionDef: "a function inside a function",
    ast.ClassDef: "a class inside a function",
    ast.Import: "an import inside a function",
    ast.ImportFrom: "an import inside a function",
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Raise: "`raise`",
    ast.Delete: "`del`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
    ast.Match: "`match`",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "a lambda",
    ast.ListComp: "a list comprehension",
    ast.GeneratorExp: "a generator",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Starred: "a starred expression",
    ast.NamedExpr: "an assignment (:=)",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.Slice: "a slice",
    ast.Constant: "a constant",
    ast.Call: "a call",
    ast.Subscript: "a subscript",
    ast.Attribute: "an attribute",
    ast.Name: "a name",
    ast.BinOp: "an arithmetic expression",
    ast.UnaryOp: "an arithmetic expression",
    ast.BoolOp: "a logical expression",
    ast.Compare: "a comparison",
    ast.IfExp: "a choice",
    ast.Pow: "`**`",
    ast.MatMult: "`@`",
    ast.In: "`in`",
    ast.NotIn: "`not in`",
    ast.Is: "`is`",
    ast.IsNot: "`is not`",
}


def syntax_name(node: ast.AST) -> str:
    """What people call a piece of syntax."""
    return _NAMES.get(type(node), f"a Python {type(node).__name__}")


def dotted_name(node: ast.expr) -> tuple[str, ...] | None:
    """`("T", "axis", "remap")` for `T.axis.remap`; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else None


_COMPARE: Mapping[type[ast.cmpop], CompareOp] = {
    ast.Eq: CompareOp.EQ,
    ast.NotEq: CompareOp.NE,
    ast.Lt: CompareOp.LT,
    ast.LtE: CompareOp.LE,
    ast.Gt: CompareOp.GT,
    ast.GtE: CompareOp.GE,
}

OF_A_DEVICE = "an instruction of a device"  # how calls through a namespace of a device are read
_LARGEST_POWER = 64
_LARGEST_NAMED = 256  # nodes


def _constant(reader: ExpressionReader, node: ast.Constant) -> Value:
    value = node.value
    if isinstance(value, float) and math.isinf(value):
        raise reader.text.fail(
            codes.NUMBER_RANGE, "the number is past the largest float", node, help="write T.infinity(...)"
        )
    if isinstance(value, bool | int | float):
        return reader.literal(node, value)
    what = "a string" if isinstance(value, str) else "None" if value is None else repr(value)[:40]
    raise reader.text.fail(codes.WRONG_TYPE, f"{what} stands where a value is expected", node)


def _name(reader: ExpressionReader, node: ast.Name) -> Value:
    found = reader.scope.lookup(node.id)
    if found is None:
        raise reader.undefined(node, node.id)
    if isinstance(found, Buffer):
        raise reader.text.fail(codes.BUFFER_USE, f"the buffer `{node.id}` is used without indices", node)
    return found


def _binary(reader: ExpressionReader, node: ast.BinOp) -> Value:
    a, b = reader.read(node.left), reader.read(node.right)
    op = BINARY_OPERATORS.get(type(node.op))
    if op is not None:
        return reader.binary(node, op, a, b)
    if isinstance(node.op, ast.Pow) and isinstance(a, Weak) and isinstance(b, Weak):
        # A power of two constants is a constant: `e & (2**m - 1)` is how masks are written.
        base, exponent = a.literal, b.literal
        if type(base) is int and type(exponent) is int and abs(base) <= 1 << 32 and 0 <= exponent <= _LARGEST_POWER:
            return reader.literal(node, base**exponent)
    help = "floats have T.pow(a, b)" if isinstance(node.op, ast.Pow) else None
    raise reader.text.fail(codes.UNSUPPORTED, f"{syntax_name(node.op)} is not supported", node, help=help)


def _unary(reader: ExpressionReader, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        return reader.make(node, Not, reader.condition(node.operand))
    value = reader.read(node.operand)
    if isinstance(node.op, ast.UAdd):
        return value
    if isinstance(node.op, ast.USub):
        return _negated(reader, node, value)
    if isinstance(value, Weak) and isinstance(value.number, int):
        return reader.literal(node, ~int(value.number))
    operand = reader.strong(value)
    if operand.dtype.is_bool:
        return reader.make(node, Not, operand)
    ones = operand.dtype.element.max_int if operand.dtype.kind is Kind.UINT else -1
    return reader.make(node, Binary, BinaryOp.BITXOR, operand, reader.constant(node, ones, operand.dtype))


def _negated(reader: ExpressionReader, node: ast.UnaryOp, value: Value) -> Value:
    """`-x`: the product with a -1 of the operand's own type, which unsigned integers and truth values have not."""
    if isinstance(value, Weak):
        if value.literal is not None and not isinstance(value.literal, bool):
            return reader.literal(node, -value.literal)
        return reader.binary(node, BinaryOp.MUL, value, reader.literal(node, -1))
    dtype = value.dtype.element
    if dtype.is_bool or dtype.kind is Kind.UINT:
        help = 'write T.Cast("int32", ...)' if dtype.is_bool else f"write T.{dtype}(0) - ..."
        raise reader.text.fail(codes.WRONG_TYPE, f"`-` of a {dtype}: TVM has no -1 of that type", node, help=help)
    return reader.make(node, Binary, BinaryOp.MUL, value, reader.constant(node, -1, value.dtype))


def _comparison(reader: ExpressionReader, node: ast.Compare) -> Value:
    operands = [node.left, *node.comparators]
    for middle in operands[1:-1]:
        # Each middle term stands in two comparisons; chains within chains would double the program at every level.
        if any(isinstance(inner, ast.Compare) and len(inner.ops) > 1 for inner in ast.walk(middle)):
            message = "a chained comparison within a chained comparison"
            raise reader.text.fail(codes.UNSUPPORTED, message, middle, help="write it out with `and`")
    values = [reader.read(operand) for operand in operands]
    terms: list[Expr] = []
    for position, op in enumerate(node.ops):
        known = _COMPARE.get(type(op))
        if known is None:
            raise reader.text.fail(codes.UNSUPPORTED, f"{syntax_name(op)} is not supported", node)
        terms.append(reader.compare(node, known, values[position], values[position + 1]))
    return reader.logical(node, LogicalOp.AND, terms)


def _logical(reader: ExpressionReader, node: ast.BoolOp) -> Value:
    op = LogicalOp.AND if isinstance(node.op, ast.And) else LogicalOp.OR
    return reader.logical(node, op, [reader.condition(value) for value in node.values])


def _choice(reader: ExpressionReader, node: ast.IfExp) -> Value:
    condition = reader.condition(node.test)
    return reader.choice(node, IfThenElseExpr, condition, reader.read(node.body), reader.read(node.orelse))


def _subscript(reader: ExpressionReader, node: ast.Subscript) -> Value:
    if isinstance(node.value, ast.Attribute) and node.value.attr in ("shape", "strides"):
        buffer = reader.buffer(node.value.value)
        extents = buffer.shape if node.value.attr == "shape" else buffer.strides
        axis = read_integer(reader.text, node.slice, "an axis")
        if not 0 <= axis < len(extents):
            message = f"{buffer.name}.{node.value.attr} has {counted(len(extents), 'entry', 'entries')}"
            raise reader.text.fail(codes.BUFFER_USE, message, node.slice)
        return extents[axis]
    buffer = reader.buffer(node.value)
    return reader.make(node, BufferLoad, buffer, reader.indices(node, buffer), code=codes.BUFFER_USE)


def _attribute(reader: ExpressionReader, node: ast.Attribute) -> Value:
    if isinstance(node.value, ast.Name) and isinstance(found := reader.scope.lookup(node.value.id), Buffer):
        if node.attr == "data":
            return found.data
        if node.attr == "elem_offset":
            return found.elem_offset
        raise reader.text.fail(
            codes.BUFFER_USE,
            f"a buffer has no `{node.attr}` here",
            node,
            help=did_you_mean(node.attr, ("data", "elem_offset", "shape")),
        )
    name = dotted_name(node)
    shown = ".".join(name) if name is not None else f".{node.attr}"
    raise reader.text.fail(codes.UNSUPPORTED, f"`{shown}` is not a value", node)


def _method(reader: ExpressionReader, node: ast.expr) -> Handler | None:
    """How a method of a buffer is read; None for other calls."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    return reader.functions.get(f".{node.attr}") if isinstance(reader.scope.lookup(node.value.id), Buffer) else None


def _call(reader: ExpressionReader, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
        return reader.functions["astype"](reader, node, "astype")
    method = _method(reader, node.func)
    if method is not None:
        return method(reader, node, ast.unparse(node.func))
    name = dotted_name(node.func)
    if name is None:
        raise reader.text.fail(codes.UNSUPPORTED, f"a call of {syntax_name(node.func)} is not supported", node)
    *path, function = name
    shown, namespace = ".".join(name), ".".join(path)
    through = namespace in reader.namespaces
    handler = reader.functions.get(function) if through or (not path and function in reader.bare) else None
    if handler is None and len(path) > 1 and path[0] in reader.namespaces and path[1] in DEVICE_NAMESPACES:
        handler = reader.functions.get(OF_A_DEVICE)
    if handler is None or function == "astype":
        known = reader.functions if through else reader.bare
        help = did_you_mean(function, known, f"{namespace}." if through else "")
        raise reader.text.fail(codes.UNKNOWN_FUNCTION, f"`{shown}` is not known", node.func, help=help)
    return handler(reader, node, shown)


_READERS: Mapping[type[ast.AST], Callable[[ExpressionReader, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _logical,
    ast.IfExp: _choice,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.Call: _call,
}
