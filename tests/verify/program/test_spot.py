"""The place of a claim: a line, or the statement in a program that was not read from text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.verify.programs import program

from layoutproof.ir.expr import Var, const
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, Evaluate, IfThenElse, Let, Seq, Stmt
from layoutproof.ir.visit import rewrite_bottom_up, walk
from layoutproof.verify.faults.vacuity import check_program
from layoutproof.verify.program.location import Spot

BLOCKS = """
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
        for i in T.parallel(8):
            with T.block("doubled"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2
"""
LOOPS = """
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
        for i in T.parallel(8):
            if i < n:
                x: T.int32 = i + n
                B[i] = A[i] * x
"""


def without_places(func: PrimFunc) -> PrimFunc:
    """The function as if it had been built, not read."""

    def visit(node: Node) -> Node:
        return replace(node, span=None)

    body = rewrite_bottom_up(func.body, visit)
    assert isinstance(body, Stmt)
    return func.with_body(body)


def claims(func: PrimFunc) -> str:
    """Every claim about a program."""
    return "\n".join(verdict.claim.text for verdict in check_program(func))


def test_a_line_comes_first() -> None:
    """Where there is text, a claim names the line."""
    text = claims(program(BLOCKS))
    assert "read A[vi] stays within [8] (line 6)" in text and "loop i touch one cell, one writing (line 3)" in text
    assert "in block" not in text and "statement" not in text


def test_a_block_stands_for_its_statements() -> None:
    """Without text a claim names the innermost block."""
    text = claims(without_places(program(BLOCKS)))
    assert "read A[vi] stays within [8] (in block doubled)" in text
    assert "write B[vi] stays within [8] (in block doubled)" in text
    assert "(at the loop i)" in text and "line" not in text and "statement" not in text


def test_without_blocks_a_claim_names_the_statement() -> None:
    """Without text and blocks a claim names what is written, or the loop."""
    text = claims(without_places(program(LOOPS)))
    assert "read A[i] stays within [8] (in the store to B[i])" in text
    assert "(at the loop i)" in text and "line" not in text and "statement" not in text


def test_a_built_part_of_a_read_statement_has_its_line() -> None:
    """A node that a pass made is looked for on the line of the statement around it."""
    store = next(node for node in walk(program(LOOPS).body) if type(node).__name__ == "BufferStore")
    assert isinstance(store, Stmt)
    assert Spot(store).place_of(const(1)).words == "line 6"


X = Var("x")
NOTHING = Evaluate(const(0))


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        (IfThenElse(X < 3, NOTHING), "at `if x < 3`"),
        (Let(X, const(3), NOTHING), "where x is bound"),
        (Evaluate(Assume(X < 3)), "in `assume(x < 3)`"),
        (Evaluate(Assume(sum((Var(f"name_{k}") for k in range(9)), X) < 3)), "\N{HORIZONTAL ELLIPSIS}`"),
        (Block("conv", (), NOTHING), "in block conv"),
        (Block("root", (), NOTHING), "in the body of the function"),
        (Seq((NOTHING, NOTHING)), "in the body of the function"),
    ],
)
def test_statements_in_words(statement: Stmt, wanted: str) -> None:
    """Every kind of statement has words of its own, and long ones are cut."""
    found = Spot(statement).place_of(const(1)).words
    assert found.endswith(wanted) and len(found) < 80
