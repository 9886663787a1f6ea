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
    """Where something stands, in words; `line` is its line, where there is text to point into, and `at` what stands
    there, for code.
    """

    words: str
    line: int | None = None
    at: str = ""

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
        if self.block is not None:
            return Place(f"in block {self.block}", at=self.block)
        return _statement_place(self.statement)


def _statement_place(statement: Stmt) -> Place:
    match statement:
        case BufferStore(buffer=buffer, indices=indices):
            cell = f"{buffer.name}[{_texts(indices)}]"
            return Place(f"in the store to {_short(cell)}", at=cell)
        case For(var=var):
            return Place(f"at the loop {var.name}", at=var.name)
        case IfThenElse(condition=condition):
            return Place(f"at `if {_short(_texts((condition,)))}`", at=_texts((condition,)))
        case Let(var=var):
            return Place(f"where {var.name} is bound", at=var.name)
        case Allocate(buffer=buffer) | DeclBuffer(buffer=buffer):
            return Place(f"where {buffer.name} is declared", at=buffer.name)
        case Evaluate(value=value):
            return Place(f"in `{_short(_texts((value,)))}`", at=_texts((value,)))
        case Block(name=name) if not statement.is_root:
            return Place(f"in block {name}", at=name)
        case _:
            return Place("in the body of the function")


def _texts(exprs: Sequence[Expr]) -> str:
    return ", ".join(expr_text(e, Style.PLAIN) for e in exprs)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
