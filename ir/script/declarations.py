"""The scope of names while a program is read, and declarations: buffers, allocations, aliases, attributes.

A name is bound once on any path from the root of a function.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from layoutproof.ir import codes
from layoutproof.ir.buffer import Buffer, Range
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError, Span
from layoutproof.ir.dtype import FLOAT32, HANDLE, DType, Kind
from layoutproof.ir.expr import Expr, FloatImm, IntImm, Var, is_zero
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.script.expressions import ExpressionReader, syntax_name
from layoutproof.ir.script.parsing import Bound, Text, bind, read_dtype, read_integer, read_list, read_string
from layoutproof.ir.stmt import Allocate, Attributes, DeclBuffer, Stmt
from layoutproof.ir.visit import LONGEST_SEQUENCE, MAX_NESTING


@dataclass(frozen=True, slots=True)
class _Binding:
    value: Expr | Buffer
    span: Span
    loop: Range | None = None


class Environment:
    """The names that are bound at one place of a program."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.allocated: set[Var] = set()
        """The data variables that the function allocates."""
        self.passed: set[Var] = set()
        """Those of its parameters."""
        self._frames: list[list[str]] = [[]]
        self._bound: dict[str, list[_Binding]] = {}
        self._depth = 0

    @contextmanager
    def frame(self, node: ast.AST, levels: int = 1) -> Generator[None, None, None]:
        """Bindings made inside end with it; it stands for `levels` statements inside one another, none for what holds
        from here on.

        Raises LayoutproofError where statements are nested too deeply.
        """
        if self._depth + levels > MAX_NESTING:
            raise self.text.fail(codes.TOO_DEEP, f"statements are nested more than {MAX_NESTING} deep here", node)
        if len(self._frames) > LONGEST_SEQUENCE + 1:  # the first is the function itself
            raise self.text.fail(
                codes.TOO_DEEP, f"more than {LONGEST_SEQUENCE} lets and allocations follow one another", node
            )
        self._frames.append([])
        self._depth += levels
        try:
            yield
        finally:
            for name in self._frames.pop():
                self._bound[name].pop()
            self._depth -= levels

    def bind(self, name: str, value: Expr | Buffer, node: ast.AST, loop: Range | None = None) -> None:
        """Give `name` its meaning; `loop` is a loop variable's range. Raises LayoutproofError where it has one."""
        earlier = self._find(name)
        span = self.text.span(node)
        if earlier is not None:
            message = f"`{name}` is bound again, its first meaning still holds here"
            raise LayoutproofError(
                Diagnostic(codes.BOUND_TWICE, message, span, related=((earlier.span, "first bound here"),))
            )
        self._frames[-1].append(name)
        self._bound.setdefault(name, []).append(_Binding(value, span, loop))

    def forget(self, name: str) -> None:
        """Take back the innermost binding of a name: a declaration that only gave the type of a let."""
        for frame in reversed(self._frames):
            if name in frame:
                frame.remove(name)
                self._bound[name].pop()
                return

    def _find(self, name: str) -> _Binding | None:
        found = self._bound.get(name)
        return found[-1] if found else None

    def lookup(self, name: str) -> Expr | Buffer | None:
        """What a name stands for here, or None."""
        found = self._find(name)
        return found.value if found is not None else None

    def loop_range(self, name: str) -> Range | None:
        """The range of a loop variable; None for other names."""
        found = self._find(name)
        return found.loop if found is not None else None

    def names(self) -> Iterable[str]:
        """Every name bound here."""
        return [name for name, found in self._bound.items() if found]


_LIMIT = 1 << 64


def read_attributes(reader: ExpressionReader, node: ast.expr, what: str) -> Attributes:
    """The entries of a dictionary with string keys; `what` names it in messages."""
    if not isinstance(node, ast.Dict):
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"{what} takes a dictionary, not {syntax_name(node)}", node)
    items: dict[str, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise reader.text.fail(
                codes.WRONG_ARGUMENTS, f"a key of {what} must be a string", key if key is not None else value
            )
        if key.value in items:
            raise reader.text.fail(codes.WRONG_ARGUMENTS, f'{what} has the key "{key.value}" twice', key)
        items[key.value] = read_value(reader, value)
    return Attributes(items)


def read_value(reader: ExpressionReader, node: ast.expr) -> object:
    """One attribute's value: Python values, lists, dictionaries; anything else is an expression of the program."""
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(read_value(reader, entry) for entry in node.elts)
    if isinstance(node, ast.Dict):
        return read_attributes(reader, node, "an attribute")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "target":
        return _target(reader, node)
    plain = _plain(node)
    if plain is not None:
        value = plain[0]
        if isinstance(value, int) and abs(value) >= _LIMIT:
            raise reader.text.fail(codes.NUMBER_RANGE, "the number does not fit 64 bits", node)
        return value
    expr = reader.expr(node)
    if isinstance(expr, IntImm) and expr.dtype.is_bool:
        return bool(expr.value)  # TVM writes T.bool(True) where it means a flag
    if isinstance(expr, FloatImm) and expr.dtype.bits == 64 and not math.isfinite(expr.value):
        return expr.value
    return expr


def _target(reader: ExpressionReader, node: ast.Call) -> object:
    """`T.target("llvm")`, or a dictionary for the text, kept as a text."""
    bound = bind(reader.text, node, "T.target", ("target", "host"), 1)
    texts = []
    for part in bound.values():
        try:
            value = ast.literal_eval(part)
        except ValueError as problem:
            raise reader.text.fail(codes.WRONG_ARGUMENTS, "a target is a text or a dictionary", part) from problem
        texts.append(StringImm(value if isinstance(value, str) else json.dumps(value), span=reader.text.span(part)))
    return reader.make(node, OpaqueCall, "target", tuple(texts), HANDLE)


def _plain(node: ast.expr) -> tuple[object] | None:
    """The value of a plain literal, in a tuple so that None can be one."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    if not isinstance(inner, ast.Constant) or isinstance(inner.value, bytes | complex) or inner.value is ...:
        return None
    value = inner.value
    if sign == 1:
        return (value,)
    return (-value,) if isinstance(value, int | float) and not isinstance(value, bool) else None


BUFFER_PARAMETERS = (
    "shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type",
    "axis_separators",
)  # fmt: skip


class BufferArguments:
    """Reads the arguments of one buffer. A string where an integer is expected names a variable, which may be new."""

    def __init__(self, reader: ExpressionReader, env: Environment) -> None:
        self.reader = reader
        self.env = env
        self.text = reader.text

    def buffer(
        self, node: ast.AST, name: str, bound: Bound, data: Var | None = None, dtype: DType | None = None
    ) -> Buffer:
        """The buffer that `bound` describes; `data` overrides the text's own, `dtype` is the default."""
        shape = tuple(self.extent(entry, "an extent") for entry in self._entries(bound["shape"], "a shape"))
        strides = (
            tuple(self.extent(e, "a stride") for e in self._entries(bound["strides"], "strides"))
            if _given(bound, "strides")
            else ()
        )
        element = (
            read_dtype(self.text, bound["dtype"]) if _given(bound, "dtype") else dtype if dtype is not None else FLOAT32
        )
        if element.kind is Kind.HANDLE:
            raise self.text.fail(
                codes.WRONG_TYPE, "the elements of a buffer are numbers or truth values, not handles", bound["dtype"]
            )
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

    def allocated(self, node: ast.AST, name: str, bound: Bound) -> Buffer:
        """The buffer of an allocation, which begins where its memory does: TVM takes as much as the shape has."""
        buffer = self.buffer(node, name, bound)
        if not is_zero(buffer.elem_offset):
            message = "memory that is allocated for a buffer has no room before its first element"
            help = "allocate the memory by itself, and view it by T.decl_buffer(..., data=..., elem_offset=...)"
            raise self.text.fail(codes.UNSUPPORTED, message, bound["elem_offset"], help=help)
        self.env.allocated.add(buffer.data)
        return buffer

    def data(self, node: ast.expr) -> Var:
        """A data variable: `A.data`, or the name of a handle."""
        named = self.env.lookup(node.id) if isinstance(node, ast.Name) else None
        value = named.data if isinstance(named, Buffer) else self.reader.expr(node)  # what T.allocate gave a name to
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
            raise self.text.fail(
                codes.EXTENT, f"{name!r} is no name; an extent is an integer, an expression or a name in quotes", node
            )
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
        if _given(bound, "buffer_type") and read_string(self.text, bound["buffer_type"], "a buffer type") not in (
            "",
            "default",
        ):
            raise self.text.fail(
                codes.UNSUPPORTED, "only buffers of the default type are supported", bound["buffer_type"]
            )

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


@dataclass(frozen=True, slots=True)
class Scoped:
    """A statement that has the rest of its body inside: `bind` brings its name in, `close` puts the body into it.

    `consumed` is how many of the following statements were read with it.
    """

    bind: Callable[[Environment], None]
    close: Callable[[Stmt], Stmt]
    consumed: int = 0


# The statements that allocate, and the memory scope that their name implies.
ALLOCATIONS: Mapping[str, str | None] = {
    "allocate": None,
    "allocate_const": None,
    "alloc_buffer": None,
    "alloc_local": "local",
    "alloc_shared": "shared",
}


class CallReader(Protocol):
    """What reading allocations needs of the reader of statements."""

    exprs: ExpressionReader
    env: Environment

    def script_call(self, node: ast.expr) -> tuple[str, ast.Call] | None:
        """The name behind `T.` and the call."""


def read_decl(
    reader: ExpressionReader, env: Environment, node: ast.stmt, target: ast.Name, call: ast.Call, name: str
) -> Scoped:
    """`T.decl_buffer(shape, dtype, data=...)`: an alias; without `data`, an allocation, as upstream has it."""
    arguments = BufferArguments(reader, env)
    bound = _bind_decl(reader, call, name)
    if _given(bound, "data"):
        buffer = arguments.buffer(node, target.id, bound)
        return Scoped(
            lambda e: e.bind(target.id, buffer, target), lambda body: reader.make(node, DeclBuffer, buffer, body)
        )
    own = arguments.allocated(node, target.id, bound)
    return Scoped(lambda e: e.bind(target.id, own, target), lambda body: reader.make(node, Allocate, own, body))


def _bind_decl(reader: ExpressionReader, call: ast.Call, name: str) -> dict[str, ast.expr]:
    """The arguments; the pointer may come first, as in `T.buffer_decl(X.data, [6], "float32")`."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Attribute) and first.attr == "data":
        rest = ast.copy_location(ast.Call(call.func, call.args[1:], [*call.keywords, ast.keyword("data", first)]), call)
        ast.copy_location(rest.keywords[-1], first)
        return bind(reader.text, rest, name, BUFFER_PARAMETERS, 1)
    return bind(reader.text, call, name, BUFFER_PARAMETERS, 1)


def read_allocation(
    statements: CallReader, node: ast.stmt, target: ast.Name, call: ast.Call, name: str, following: ast.stmt | None
) -> Scoped:
    """`T.alloc_buffer(...)` as a statement, or `T.allocate([16], "float32", "global")` with its T.decl_buffer."""
    reader, env = statements.exprs, statements.env
    if name != "allocate":
        bound = bind(reader.text, call, f"T.{name}", (*BUFFER_PARAMETERS, "annotations"), 1)
        scope = ALLOCATIONS[name]
        if scope is not None:
            bound.setdefault("scope", ast.copy_location(ast.Constant(scope), call))
        annotations = (
            read_attributes(reader, bound.pop("annotations"), "annotations") if "annotations" in bound else Attributes()
        )
        buffer = BufferArguments(reader, env).allocated(node, target.id, bound)
        return Scoped(
            lambda e: e.bind(target.id, buffer, target), lambda b: reader.make(node, Allocate, buffer, b, annotations)
        )
    bound = bind(reader.text, call, "T.allocate", ("extents", "dtype", "scope", "condition", "annotations"), 2)
    if "condition" in bound and not (
        isinstance(bound["condition"], ast.Constant) and bound["condition"].value in (None, True)
    ):
        raise reader.text.fail(
            codes.UNSUPPORTED, "an allocation under a condition is not supported", bound["condition"]
        )
    annotations = (
        read_attributes(reader, bound["annotations"], "annotations") if "annotations" in bound else Attributes()
    )
    plain = _plain_buffer(reader, env, node, target, bound)
    named = _named_by(statements, target.id, plain, following)
    if named is None:
        return Scoped(
            lambda e: e.bind(target.id, plain, target), lambda b: reader.make(node, Allocate, plain, b, annotations)
        )
    alias_target, decl = named
    data = Var(target.id, HANDLE, span=reader.text.span(target))

    def bind_names(e: Environment) -> None:
        e.bind(target.id, data, target)
        e.bind(alias_target.id, buffer_of_pair, alias_target)

    with env.frame(node):
        env.bind(target.id, data, target)
        buffer_of_pair = BufferArguments(reader, env).buffer(node, alias_target.id, decl)
    return Scoped(bind_names, lambda b: reader.make(node, Allocate, buffer_of_pair, b, annotations), consumed=1)


def _plain_buffer(
    reader: ExpressionReader, env: Environment, node: ast.stmt, target: ast.Name, bound: dict[str, ast.expr]
) -> Buffer:
    arguments = BufferArguments(reader, env)
    shape = tuple(arguments.extent(entry, "an extent") for entry in read_list(reader.text, bound["extents"], "extents"))
    dtype = read_dtype(reader.text, bound["dtype"])
    scope = read_string(reader.text, bound["scope"], "a scope") if "scope" in bound else "global"
    data = Var(f"{target.id}_data", HANDLE)
    return reader.make(node, Buffer, target.id, dtype, shape, data, (), IntImm(0), scope, code=codes.BUFFER_USE)


def _named_by(
    statements: CallReader, handle: str, plain: Buffer, following: ast.stmt | None
) -> tuple[ast.Name, dict[str, ast.expr]] | None:
    """The target and arguments of a T.decl_buffer that views the whole allocation before it; else None."""
    if (
        not isinstance(following, ast.Assign)
        or len(following.targets) != 1
        or not isinstance(following.targets[0], ast.Name)
    ):
        return None
    found = statements.script_call(following.value)
    if found is None or found[0] not in ("decl_buffer", "buffer_decl", "Buffer", "buffer"):
        return None
    reader = statements.exprs
    bound = bind(reader.text, found[1], f"T.{found[0]}", BUFFER_PARAMETERS, 1)
    data = bound.get("data")
    if not isinstance(data, ast.Name) or data.id != handle:
        return None
    with statements.env.frame(following):
        view = BufferArguments(reader, statements.env).buffer(
            following, following.targets[0].id, bound, data=Var(handle, HANDLE)
        )
    same = (
        view.dtype == plain.dtype and view.scope == plain.scope and view.elem_offset == IntImm(0) and not view.strides
    )
    return (following.targets[0], bound) if same and _same_size(plain, view) else None


def _same_size(a: Buffer, b: Buffer) -> bool:
    if a.shape == b.shape:
        return True
    sizes = [[e.value for e in buffer.shape if isinstance(e, IntImm)] for buffer in (a, b)]
    if any(len(known) != buffer.rank for known, buffer in zip(sizes, (a, b), strict=True)):
        return False
    return math.prod(sizes[0]) == math.prod(sizes[1])
