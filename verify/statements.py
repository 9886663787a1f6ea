"""Reads a program into its statements: the exact model of what it computes. The types are those of `statement.py`, named here too."""

from __future__ import annotations

from collections.abc import Mapping

from layoutproof.ir.expr import Expr
from layoutproof.verify.evidence import UNRECORDED, Gathered
from layoutproof.verify.instances import Program
from layoutproof.verify.statement import AssumedFact, NotModelled, Read, ReadRole, Statement, Statements
from layoutproof.verify.statement_reader import StatementReader

__all__ = ["AssumedFact", "NotModelled", "Read", "ReadRole", "Statement", "Statements", "read_statements"]


def read_statements(
    program: Program,
    structures: Mapping[str, tuple[Expr, ...]] | None = None,
    *,
    apart: bool | None = None,
    gathered: Gathered = UNRECORDED,
) -> Statements:
    """The statements of a program. `structures` gives, by a data variable's name, the shape whose cells a flattened memory has; else
    that of its layout record, else its own. `apart` says whether parameters do not overlap; None asks the program.

    Raises NotModelled where the program cannot be said exactly.
    """
    noalias = program.function.noalias if apart is None else apart
    return StatementReader(program, structures if structures is not None else {}, noalias, gathered).read()
