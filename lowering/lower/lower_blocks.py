"""Blocks to loops: iteration variables become their bindings, guards and inits become branches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from layoutproof.ir.diagnostic import error
from layoutproof.ir.expr import TRUE, Expr, Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import Rewrite
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Evaluate, IfThenElse, Seq, Stmt, body_of, seq
from layoutproof.ir.visit import map_children, substitute
from layoutproof.lowering import codes
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.passes.effects import data_read, data_written
from layoutproof.lowering.passes.witness_maps import rewrite_of


@dataclass(frozen=True)
class LowerBlocks(Pass):
    """Replace blocks by guards, allocations and inits among the loops."""

    primitive: ClassVar[str] = "lower_blocks"

    def propose(self, func: PrimFunc) -> Rewrite:
        """The function without blocks. Raises LayoutproofError for a matched sub-region, and for a binding that its
        block changes.
        """
        lowering = _Lowering()
        return rewrite_of(func, func.with_body(lowering.statement(func.body)))


@dataclass(slots=True)
class _Lowering:
    """Blocks become what `desugar.body_of` says; `values` are iteration variables over loops."""

    values: dict[Var, Expr] = field(default_factory=dict)

    def statement(self, stmt: Stmt) -> Stmt:
        """`stmt` without blocks."""
        match stmt:
            case Block():
                return self.block(stmt)
            case Seq(body=body):
                return seq(*(self.statement(child) for child in body))
            case Allocate() | DeclBuffer():
                return replace(stmt, buffer=substitute(stmt.buffer, self.values), body=self.statement(stmt.body))
            case BufferStore() | Evaluate():
                return substitute(stmt, self.values)
            case _:
                return map_children(stmt, self.below)

    def below(self, node: Node) -> Node:
        return self.statement(node) if isinstance(node, Stmt) else substitute(node, self.values)

    def block(self, stmt: Block) -> Stmt:
        if stmt.match_buffers:
            name = stmt.match_buffers[0].buffer.name
            raise error(
                codes.MATCHED_REGION,
                f"block {stmt.name} matches {name} with a region of another buffer; such blocks cannot be lowered",
                stmt.span,
            )
        for iter_var in stmt.iter_vars:
            changed = data_read(iter_var.binding) & data_written(stmt)
            if changed:
                message = (
                    f"{iter_var.var.name} of block {stmt.name} is bound to a value of {min(v.name for v in changed)}, "
                    "which it writes"
                )
                raise error(codes.BINDING_CHANGES, message, stmt.span)
        outer = dict(self.values)
        for iter_var in stmt.iter_vars:
            self.values[iter_var.var] = substitute(iter_var.binding, outer)
        where = substitute(stmt.where, self.values)
        result = self.statement(body_of(stmt))
        if where != TRUE:
            result = IfThenElse(where, result, span=stmt.span)
        for buffer in reversed(stmt.alloc_buffers):
            result = Allocate(substitute(buffer, self.values), result)
        self.values = outer
        return result
