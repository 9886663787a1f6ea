"""Making a program that shows something smaller, as long as it still shows it: statements go, expressions become their
parts.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random.typed_programs import Program

Shows = Callable[[Program], bool]


def shrunk(program: Program, shows: Shows, tries: int = 400) -> Program:
    """A program that is no larger and of which `shows` holds as well; it is asked at most `tries` times."""
    left = tries
    best = program
    progress = True
    while progress and left > 0:
        progress = False
        for smaller in _smaller(best):
            if left <= 0:
                break
            left -= 1
            if shows(smaller):
                best, progress = smaller, True
                break
    return best


def _smaller(program: Program) -> Iterator[Program]:
    """Programs that are a little smaller, those that drop most first."""
    for number in range(len(program.runs) if len(program.runs) > 1 else 0):
        yield replace(program, runs=program.runs[number : number + 1])
    tree = ast.parse(program.text)
    texts = dict.fromkeys(ast.unparse(changed) for changed in _changed(tree))
    for text in sorted((t for t in texts if len(t) < len(program.text)), key=len):
        yield replace(program, text=text)


def _changed(tree: ast.Module) -> Iterator[ast.Module]:
    count = sum(1 for _ in ast.walk(tree))
    for number in range(count):
        for variant in range(8):
            copied = copy.deepcopy(tree)
            node = list(ast.walk(copied))[number]
            if not _change(node, variant):
                break
            yield ast.fix_missing_locations(copied)


def _change(node: ast.AST, variant: int) -> bool:
    """Change a node in place in one of its ways; whether there is such a way."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt) and not isinstance(node, ast.Module):
            ways = [value[:k] + value[k + 1 :] for k in range(len(value))] if len(value) > 1 or name == "orelse" else []
            ways += [value[:k] + inner + value[k + 1 :] for k, v in enumerate(value) if (inner := _inside(v))]
            if variant < len(ways):
                setattr(node, name, ways[variant])
                return True
            variant -= len(ways)
        elif isinstance(value, ast.expr) and not isinstance(
            node, ast.Subscript | ast.Attribute | ast.FunctionDef | ast.AnnAssign | ast.withitem
        ):
            parts = _parts(value)
            if variant < len(parts):
                setattr(node, name, parts[variant])
                return True
            variant -= len(parts)
        elif isinstance(node, ast.Call | ast.Tuple) and isinstance(value, list):
            ways = [
                [*value[:k], part, *value[k + 1 :]]
                for k, v in enumerate(value)
                if isinstance(v, ast.expr)
                for part in _parts(v)
            ]
            if variant < len(ways):
                setattr(node, name, ways[variant])
                return True
            variant -= len(ways)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.BinOp | ast.Call):
        if variant == 0:
            node.slice = ast.Constant(0)
            return True
    return False


def _inside(statement: ast.stmt) -> list[ast.stmt]:
    """The statements in a compound statement."""
    return list(statement.body) if isinstance(statement, ast.For | ast.If | ast.With) else []


def _parts(node: ast.expr) -> list[ast.expr]:
    """Expressions inside another that may stand in its place, and small numbers."""
    found: list[ast.expr] = []
    match node:
        case ast.BinOp(left, _, right):
            found = [left, right]
        case ast.UnaryOp(_, operand):
            found = [operand]
        case ast.BoolOp(_, values):
            found = list(values)
        case ast.Compare(left, _, others):
            found = [left, *others]
        case ast.IfExp(test, body, orelse):
            found = [body, orelse, test]
        case ast.Call(ast.Attribute(_, name), arguments) if name not in (
            "grid",
            "Buffer",
            "remap",
            "spatial",
            "reduce",
            "Ramp",
        ):
            found = [a for a in arguments if not (isinstance(a, ast.Constant) and isinstance(a.value, str))]
    return found
