"""Buffers in a text: the arguments that T.Buffer, T.match_buffer, T.alloc_buffer and T.decl_buffer share."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import FLOAT32, HANDLE, DType, Kind
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.script import codes
from layoutproof.ir.script.arguments import Bound, read_dtype, read_integer, read_list, read_string
from layoutproof.ir.script.environment import Environment
from layoutproof.ir.script.expressions import ExpressionReader

BUFFER_PARAMETERS = (
    "shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators",
)  # fmt: skip


class BufferArguments:
    """Reads the arguments of one buffer. A string where an integer is expected names a variable, made when it is new."""

    def __init__(self, reader: ExpressionReader, env: Environment) -> None:
        self.reader = reader
        self.env = env
        self.text = reader.text

    def buffer(self, node: ast.AST, name: str, bound: Bound, data: Var | None = None, dtype: DType | None = None) -> Buffer:
        """The buffer that `bound` describes. `data` overrides the text's own, `dtype` is the default where it gives none."""
        shape = tuple(self.extent(entry, "an extent") for entry in self._entries(bound["shape"], "a shape"))
        strides = tuple(self.extent(e, "a stride") for e in self._entries(bound["strides"], "strides")) if _given(bound, "strides") else ()
        element = read_dtype(self.text, bound["dtype"]) if _given(bound, "dtype") else dtype if dtype is not None else FLOAT32
        if element.kind is Kind.HANDLE:
            raise self.text.fail(codes.WRONG_TYPE, "the elements of a buffer are numbers or truth values, not handles", bound["dtype"])
        self._check_type(bound)
        if data is None:
            data = self.data(bound["data"]) if _given(bound, "data") else Var(f"{name}_data", HANDLE)
        return self.reader.make(
            node,
            Buffer,
            name,
            element,
            shape,
            data,
            strides,
            self.extent(bound["elem_offset"], "an offset") if _given(bound, "elem_offset") else IntImm(0),
            read_string(self.text, bound["scope"], "a scope") if _given(bound, "scope") else "global",
            self._separators(bound),
            max(0, self._integer(bound, "align")),
            max(0, self._integer(bound, "offset_factor")),
            code=codes.BUFFER_USE,
        )

    def data(self, node: ast.expr) -> Var:
        """A data variable: `A.data`, or the name of a handle."""
        value = self.reader.expr(node)
        if not isinstance(value, Var) or value.dtype != HANDLE:
            raise self.text.fail(codes.BUFFER_USE, "the data of a buffer is another buffer's data, or a handle", node)
        return value

    def extent(self, node: ast.expr, what: str) -> Expr:
        """An integer of a shape, of strides or an offset; constants below zero are refused."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._named(node, node.value)
        value = self.reader.integer(node, what)
        if isinstance(value, IntImm) and value.value < 0:
            raise self.text.fail(codes.EXTENT, f"{what} below zero: {value.value}", node)
        return value

    def _named(self, node: ast.expr, name: str) -> Expr:
        if not name.isidentifier():
            raise self.text.fail(codes.EXTENT, f"{name!r} is no name; an extent is an integer, an expression or a name in quotes", node)
        found = self.env.lookup(name)
        if found is None:
            found = Var(name, span=self.text.span(node))
            self.env.bind(name, found, node)
        if not isinstance(found, Var) or not found.dtype.is_integer:
            raise self.text.fail(codes.EXTENT, f"`{name}` is no integer variable", node)
        return found

    def _entries(self, node: ast.expr, what: str) -> Sequence[ast.expr]:
        return read_list(self.text, node, what) if isinstance(node, ast.List | ast.Tuple) else [node]

    def _integer(self, bound: Bound, key: str) -> int:
        return read_integer(self.text, bound[key], f"`{key}`") if _given(bound, key) else 0

    def _check_type(self, bound: Bound) -> None:
        if _given(bound, "buffer_type") and read_string(self.text, bound["buffer_type"], "a buffer type") not in ("", "default"):
            raise self.text.fail(codes.UNSUPPORTED, "only buffers of the default type are supported", bound["buffer_type"])

    def _separators(self, bound: Bound) -> tuple[int, ...]:
        """The text counts the axes before each separator, the IR has the index of the last of them."""
        if not _given(bound, "axis_separators"):
            return ()
        entries = read_list(self.text, bound["axis_separators"], "axis separators")
        return tuple(read_integer(self.text, e, "an axis separator") - 1 for e in entries)


def _given(bound: Bound, key: str) -> bool:
    """Whether an argument is there and is not None."""
    node = bound.get(key)
    return node is not None and not (isinstance(node, ast.Constant) and node.value is None)
