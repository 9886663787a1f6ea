"""What holds for the statements after it or inside it: lets and attributes in a `with`, or by themselves."""

from __future__ import annotations

import ast
from typing import Protocol

from layoutproof.ir import codes
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.intrinsics import OpaqueCall
from layoutproof.ir.script.declarations import Environment, Scoped
from layoutproof.ir.script.expressions import ExpressionReader
from layoutproof.ir.script.functions import FUNCTIONS
from layoutproof.ir.script.parsing import Text, bind, read_string
from layoutproof.ir.script.threads import REDUCER, ThreadReader
from layoutproof.ir.stmt import AttrStmt, Stmt


class LetReader(Protocol):
    """What this needs of the reader of statements."""

    text: Text
    env: Environment
    exprs: ExpressionReader
    threads: ThreadReader

    def script_call(self, node: ast.expr) -> tuple[str, ast.Call] | None:
        """The name behind `T.` and the call."""

    def let(self, node: ast.AST, target: ast.Name, value: Expr) -> Scoped:
        """A let of a value, for what follows."""
        ...


def read_let(reader: LetReader, node: ast.With, item: ast.withitem, name: str, call: ast.Call) -> Scoped:
    """`with T.LetStmt(value, var=x):` and `with T.let(x, value):`."""
    if name == "LetStmt":
        bound = bind(reader.text, call, "T.LetStmt", ("value", "type_annotation", "var"), 1)
        target = item.optional_vars if item.optional_vars is not None else bound.get("var")
    else:
        bound = bind(reader.text, call, "T.let", ("var", "value"), 2)
        target = bound["var"]
    if not isinstance(target, ast.Name):
        place = target if target is not None else call
        raise reader.text.fail(codes.WRONG_ARGUMENTS, f"T.{name} binds a name", place)
    declared = reader.env.lookup(target.id) if item.optional_vars is None else None
    if declared is not None:
        reader.env.forget(target.id)  # `x = T.int32()` before it gives the type; the let binds the name
    value = reader.exprs.expr(bound["value"], declared.dtype if isinstance(declared, Var) else None)
    return reader.let(node, target, value)


def read_attr(reader: LetReader, node: ast.stmt, call: ast.Call) -> Scoped:
    """`T.attr(node, key, value)`; `T.attr({key: value})` is about no node in particular, which is 0."""
    short = call.args[0] if len(call.args) == 1 and not call.keywords else None
    if isinstance(short, ast.Dict):
        pairs = [(key, value) for key, value in zip(short.keys, short.values, strict=True) if key is not None]
        if len(pairs) < len(short.keys):
            raise reader.text.fail(codes.WRONG_ARGUMENTS, "an attribute is a key with its value", short)
        return _attrs(reader, node, pairs)
    bound = bind(reader.text, call, "T.attr", ("node", "attr_key", "value"), 3)
    target, value = (_attr_part(reader, bound[key]) for key in ("node", "value"))
    key = read_string(reader.text, bound["attr_key"], "the key of an attribute")
    return Scoped(lambda env: None, lambda body: reader.exprs.make(node, AttrStmt, target, key, value, body))


def _attrs(reader: LetReader, node: ast.stmt, pairs: list[tuple[ast.expr, ast.expr]]) -> Scoped:
    read = [
        (read_string(reader.text, key, "the key of an attribute"), _attr_part(reader, value)) for key, value in pairs
    ]

    def close(body: Stmt) -> Stmt:
        for key, value in reversed(read):
            body = reader.exprs.make(node, AttrStmt, IntImm(0), key, value, body)
        return body

    return Scoped(lambda env: None, close)


def _attr_part(reader: LetReader, node: ast.expr) -> Expr:
    found = reader.script_call(node)
    if found is not None and found[0] == REDUCER:
        return reader.threads.reducer(found[1], reader.env.frame)
    probe = ast.copy_location(ast.Call(ast.Name("call_packed"), [node], []), node)
    packed = FUNCTIONS["call_packed"](reader.exprs, probe, "T.attr")  # reads texts as well as values
    assert isinstance(packed, OpaqueCall)
    return packed.arguments[0]
