"""Completeness of the emitters' tables: every expression and statement is written or refused."""

import sys

from layoutproof.ir import intrinsics
from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.expr import Expr
from layoutproof.ir.stmt import Block, Stmt
from layoutproof.lowering.codegen import c_expr, c_stmt


def subclasses(base: type) -> set[type]:
    """All that the program's own modules define, at any depth; slotted dataclasses leave a twin behind that no module
    has.
    """
    found: set[type] = set()
    children: list[type] = base.__subclasses__()
    for child in children:
        found |= {child} | subclasses(child)
    return {
        c
        for c in found
        if c.__module__.startswith("layoutproof.ir")
        and ".threads." not in c.__module__  # nodes of kernels that are being written as loops
        and getattr(sys.modules[c.__module__], c.__name__) is c
    }


def test_every_expression_is_written_or_refused() -> None:
    """The emitter's table and the checker's refusals together cover every expression there is."""
    refused = {intrinsics.StringImm, intrinsics.PointerCast, intrinsics.OpaqueCall, intrinsics.Undef, intrinsics.Assume}
    assert subclasses(Expr) == set(c_expr.HANDLED) | refused | {intrinsics.Reducer}
    assert BufferLoad in c_expr.HANDLED


def test_every_statement_is_written_or_refused() -> None:
    """The same for statements."""
    assert subclasses(Stmt) == set(c_stmt.HANDLED) | {Block}
