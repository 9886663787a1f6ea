"""Which functions of a Python file are decorated as gates, read off its text: the file is not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef


def has_gates(tree: ast.AST) -> bool:
    """Whether a function in the tree of a Python file is decorated with `gate`."""
    return next(decorated_with_gate(tree), None) is not None


def decorated_with_gate(tree: ast.AST) -> Iterator[Function]:
    """The functions that are decorated with `gate`, of whatever module, with arguments or not, or with the name that it is imported as."""
    names = {"gate"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.partition(".")[0] == "layoutproof":
            names |= {alias.asname for alias in node.names if alias.name == "gate" and alias.asname is not None}
    for node in ast.walk(tree):
        if isinstance(node, Function) and any(_is_gate(decorator, names) for decorator in node.decorator_list):
            yield node


def _is_gate(decorator: ast.expr, names: set[str]) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (isinstance(called, ast.Attribute) and called.attr == "gate") or (isinstance(called, ast.Name) and called.id in names)
