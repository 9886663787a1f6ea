"""Statements whose meaning holds for the rest of their body: allocations and aliases of buffers, and how a body closes over them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from layoutproof.ir.attributes import Attributes
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import IntImm, Var
from layoutproof.ir.script import codes
from layoutproof.ir.script.arguments import bind, read_dtype, read_list, read_string
from layoutproof.ir.script.attribute_values import read_attributes
from layoutproof.ir.script.buffers import BUFFER_PARAMETERS, BufferArguments
from layoutproof.ir.script.environment import Environment
from layoutproof.ir.script.expressions import ExpressionReader
from layoutproof.ir.stmt import Allocate, DeclBuffer, Stmt


@dataclass(frozen=True, slots=True)
class Scoped:
    """A statement that has the rest of its body inside: `bind` brings its name in, `close` puts the body into it.

    `consumed` is how many of the following statements were read with it.
    """

    bind: Callable[[Environment], None]
    close: Callable[[Stmt], Stmt]
    consumed: int = 0


# The statements that allocate, and the memory scope that their name implies.
ALLOCATIONS: Mapping[str, str | None] = {"allocate": None, "alloc_buffer": None, "alloc_local": "local", "alloc_shared": "shared"}


class CallReader(Protocol):
    """What reading allocations needs of the reader of statements."""

    exprs: ExpressionReader
    env: Environment

    def script_call(self, node: ast.expr) -> tuple[str, ast.Call] | None:
        """The name behind `T.` and the call."""


def read_decl(reader: ExpressionReader, env: Environment, node: ast.stmt, target: ast.Name, call: ast.Call, name: str) -> Scoped:
    """`T.decl_buffer(shape, dtype, data=...)`: an alias; without `data`, an allocation, as upstream has it."""
    arguments = BufferArguments(reader, env)
    bound = _bind_decl(reader, call, name)
    buffer = arguments.buffer(node, target.id, bound)
    if "data" in bound:
        return Scoped(lambda e: e.bind(target.id, buffer, target), lambda body: reader.make(node, DeclBuffer, buffer, body))
    return Scoped(lambda e: e.bind(target.id, buffer, target), lambda body: reader.make(node, Allocate, buffer, body))


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
    """`T.alloc_buffer(...)` as a statement, and `T.allocate([16], "float32", "global")` with the T.decl_buffer that names its buffer."""
    reader, env = statements.exprs, statements.env
    if name != "allocate":
        bound = bind(reader.text, call, f"T.{name}", (*BUFFER_PARAMETERS, "annotations"), 1)
        scope = ALLOCATIONS[name]
        if scope is not None:
            bound.setdefault("scope", ast.copy_location(ast.Constant(scope), call))
        annotations = read_attributes(reader, bound.pop("annotations"), "annotations") if "annotations" in bound else Attributes()
        buffer = BufferArguments(reader, env).buffer(node, target.id, bound)
        return Scoped(lambda e: e.bind(target.id, buffer, target), lambda b: reader.make(node, Allocate, buffer, b, annotations))
    bound = bind(reader.text, call, "T.allocate", ("extents", "dtype", "scope", "condition", "annotations"), 2)
    if "condition" in bound and not (isinstance(bound["condition"], ast.Constant) and bound["condition"].value in (None, True)):
        raise reader.text.fail(codes.UNSUPPORTED, "an allocation under a condition is not supported", bound["condition"])
    annotations = read_attributes(reader, bound["annotations"], "annotations") if "annotations" in bound else Attributes()
    plain = _plain_buffer(reader, env, node, target, bound)
    named = _named_by(statements, target.id, plain, following)
    if named is None:
        return Scoped(lambda e: e.bind(target.id, plain, target), lambda b: reader.make(node, Allocate, plain, b, annotations))
    alias_target, decl = named
    data = Var(target.id, HANDLE, span=reader.text.span(target))

    def bind_names(e: Environment) -> None:
        e.bind(target.id, data, target)
        e.bind(alias_target.id, buffer_of_pair, alias_target)

    with env.frame(node):
        env.bind(target.id, data, target)
        buffer_of_pair = BufferArguments(reader, env).buffer(node, alias_target.id, decl)
    return Scoped(bind_names, lambda b: reader.make(node, Allocate, buffer_of_pair, b, annotations), consumed=1)


def _plain_buffer(reader: ExpressionReader, env: Environment, node: ast.stmt, target: ast.Name, bound: dict[str, ast.expr]) -> Buffer:
    arguments = BufferArguments(reader, env)
    shape = tuple(arguments.extent(entry, "an extent") for entry in read_list(reader.text, bound["extents"], "extents"))
    dtype = read_dtype(reader.text, bound["dtype"])
    scope = read_string(reader.text, bound["scope"], "a scope") if "scope" in bound else "global"
    data = Var(f"{target.id}_data", HANDLE)
    return reader.make(node, Buffer, target.id, dtype, shape, data, (), IntImm(0), scope, code=codes.BUFFER_USE)


def _named_by(
    statements: CallReader, handle: str, plain: Buffer, following: ast.stmt | None
) -> tuple[ast.Name, dict[str, ast.expr]] | None:
    """The target and arguments of the T.decl_buffer after an allocation that views exactly what was allocated; else None."""
    if not isinstance(following, ast.Assign) or len(following.targets) != 1 or not isinstance(following.targets[0], ast.Name):
        return None
    found = statements.script_call(following.value)
    if found is None or found[0] not in ("decl_buffer", "buffer_decl", "Buffer"):
        return None
    reader = statements.exprs
    bound = bind(reader.text, found[1], f"T.{found[0]}", BUFFER_PARAMETERS, 1)
    data = bound.get("data")
    if not isinstance(data, ast.Name) or data.id != handle:
        return None
    with statements.env.frame(following):
        view = BufferArguments(reader, statements.env).buffer(following, following.targets[0].id, bound, data=Var(handle, HANDLE))
    same = view.dtype == plain.dtype and view.scope == plain.scope and view.elem_offset == IntImm(0) and not view.strides
    return (following.targets[0], bound) if same and _same_size(plain, view) else None


def _same_size(a: Buffer, b: Buffer) -> bool:
    if a.shape == b.shape:
        return True
    sizes = [[e.value for e in buffer.shape if isinstance(e, IntImm)] for buffer in (a, b)]
    if any(len(known) != buffer.rank for known, buffer in zip(sizes, (a, b), strict=True)):
        return False
    return math.prod(sizes[0]) == math.prod(sizes[1])
