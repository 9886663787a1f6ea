"""Room on Python's stack for long programs: what follows an allocation, an alias or a let is its body, so a sequence of many of
them is a tree as deep as the sequence is long, and whatever walks programs recurses.
"""

from __future__ import annotations

import sys

from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Allocate, AttrStmt, Block, DeclBuffer, For, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.visit import children

MAX_SEQUENCE = 2500  # allocations, aliases and lets that follow one another in one function
MAX_EXPRESSION = 1000  # operations inside one another in generated code; compilers have limits of that order
MAX_NESTING = 100  # loops, branches and blocks inside one another
_USUAL = 100  # statements inside one another that fit on the stack that Python gives anyone
_FRAMES = 16  # calls that a walk makes for one statement inside another, with room to spare
_NONE: tuple[Stmt, ...] = ()


def opens_scope(node: Node) -> bool:
    """Whether what follows a statement in the text stands inside it as its body."""
    return isinstance(node, Allocate | DeclBuffer | Let | AttrStmt)


def statement_depth(root: Stmt, *, nested: bool = False) -> int:
    """How many statements stand inside one another, at most; with `nested` those only that the text indents."""
    deepest = 0
    stack: list[tuple[Stmt, int]] = [(root, 0)]
    while stack:
        stmt, around = stack.pop()
        depth = around if nested and (isinstance(stmt, Seq) or opens_scope(stmt)) else around + 1
        deepest = max(deepest, depth)
        stack += [(inner, depth) for inner in _inside(stmt)]
    return deepest


def _inside(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Seq(body=body):
            return body
        case For(body=body) | Let(body=body) | Allocate(body=body) | DeclBuffer(body=body) | AttrStmt(body=body):
            return (body,)
        case IfThenElse(then=then, otherwise=otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case Block(body=body, init=init):
            return (body,) if init is None else (init, body)
        case _:
            return _NONE


def expression_depth(root: Node) -> int:
    """How many operations stand inside one another in an expression of a tree, at most."""
    deepest = 0
    stack: list[tuple[Node, int]] = [(root, 0)]
    while stack:
        node, around = stack.pop()
        depth = 0 if isinstance(node, Stmt) else around + 1
        deepest = max(deepest, depth)
        stack += [(child, depth) for child in children(node)]
    return deepest


def make_room(root: Stmt) -> None:
    """Let Python recurse as deep as walks over a program need. The limit is only ever raised, and stops at sequences of `MAX_SEQUENCE`."""
    make_room_for(min(statement_depth(root), 2 * MAX_SEQUENCE))


def make_room_for(depth: int) -> None:
    """Let Python recurse into a tree of this depth."""
    if depth > _USUAL:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000 + _FRAMES * depth))
