"""The place of something in a program, for claims: its line, or its block or statement if there is no source text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutproof.ir.expr import Expr
from layoutproof.ir.node import Node
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, Let, Stmt
from layoutproof.ir.text import Style, expr_text

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands, in words; `line` is its line, where there is text to point into."""

    words: str
    line: int | None = None

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Spot:
    """The innermost statement around something, and the name of the innermost block that has one."""

    statement: Stmt
    block: str | None = None

    def place_of(self, node: Node) -> Place:
        """`line 7` where the node, or the statement around it, has a span; else `in block conv` or the statement."""
        span = node.span if node.span is not None else self.statement.span
        if span is not None:
            return Place(f"line {span.line}", span.line)
        return Place(f"in block {self.block}" if self.block is not None else _statement_text(self.statement))


def _statement_text(statement: Stmt) -> str:
    match statement:
        case BufferStore(buffer=buffer, indices=indices):
            return f"in the store to {_short(f'{buffer.name}[{_texts(indices)}]')}"
        case For(var=var):
            return f"at the loop {var.name}"
        case IfThenElse(condition=condition):
            return f"at `if {_short(_texts((condition,)))}`"
        case Let(var=var):
            return f"where {var.name} is bound"
        case Allocate(buffer=buffer) | DeclBuffer(buffer=buffer):
            return f"where {buffer.name} is declared"
        case Evaluate(value=value):
            return f"in `{_short(_texts((value,)))}`"
        case Block(name=name) if not statement.is_root:
            return f"in block {name}"
        case _:
            return "in the body of the function"


def _texts(exprs: Sequence[Expr]) -> str:
    return ", ".join(expr_text(e, Style.PLAIN) for e in exprs)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
