"""Expressions as text: as few parentheses as needed, and the same value for whoever evaluates the text."""

from itertools import product
from random import Random

import pytest
from tests.shares import one_in

from layoutproof.ir.dtype import BOOL, FLOAT32, INT64, DType
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
)
from layoutproof.ir.notations.map_text import parse_integer
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.text import OLD, expr_text, string_text

X, J, K = Var("i"), Var("j"), Var("k", INT64)


@pytest.mark.parametrize(
    ("expr", "script", "plain"),
    [
        ((X + J) * 2, "(i + j) * 2", "(i + j)*2"),
        (X + J * 2, "i + j * 2", "i + j*2"),
        (X - (J - 1), "i - (j - 1)", "i - (j - 1)"),
        (X - J - 1, "i - j - 1", "i - j - 1"),
        ((X * 8192 + J) // 8 % 128, "(i * 8192 + j) // 8 % 128", "(i*8192 + j)//8%128"),
        (X // (J // 2), "i // (j // 2)", "i//(j//2)"),
        (-X, "i * -1", "-i"),
        (-(X + J), "(i + j) * -1", "-(i + j)"),
        (X & 3 | J, "i & 3 | j", "i & 3 | j"),
        (X & (J | 3), "i & (j | 3)", "i & (j | 3)"),
        ((X << 2) + J, "(i << 2) + j", "(i << 2) + j"),
        (X << J + 1, "i << j + 1", "i << j + 1"),
        (Binary(BinaryOp.MIN, X, J), "T.min(i, j)", "min(i, j)"),
        (Binary(BinaryOp.TRUNCDIV, X, J), "T.truncdiv(i, j)", "truncdiv(i, j)"),
        (K + 3, "k + T.int64(3)", "k + 3"),
        (Cast(INT64, X), 'T.Cast("int64", i)', "int64(i)"),
        (Select(X < J, X, J), "T.Select(i < j, i, j)", "select(i < j, i, j)"),
        (IfThenElseExpr(X < J, X, J), "T.if_then_else(i < j, i, j)", "if_then_else(i < j, i, j)"),
        (Compare(CompareOp.EQ, X < J, J < X), "(i < j) == (j < i)", "(i < j) == (j < i)"),
        (Not(Not(X < J)), "not not i < j", "not not i < j"),
        (Compare(CompareOp.EQ, Not(X < J), const(True)), "(not i < j) == T.bool(True)", "(not i < j) == True"),
        (
            Logical(LogicalOp.AND, X < 1, Logical(LogicalOp.OR, J < 1, X < J)),
            "i < 1 and (j < 1 or i < j)",
            "i < 1 and (j < 1 or i < j)",
        ),
        (
            Logical(LogicalOp.OR, X < 1, Logical(LogicalOp.AND, J < 1, X < J)),
            "i < 1 or j < 1 and i < j",
            "i < 1 or j < 1 and i < j",
        ),
        (
            Logical(LogicalOp.AND, X < 1, Logical(LogicalOp.AND, J < 1, X < J)),
            "i < 1 and (j < 1 and i < j)",
            "i < 1 and (j < 1 and i < j)",
        ),
        (const(-1.5, FLOAT32), "T.float32(-1.5)", "-1.5"),
        (const(float("inf"), FLOAT32), 'T.float32("inf")', "inf"),
        (Ramp(X, IntImm(1), 4), "T.Ramp(i, 1, 4)", "ramp(i, 1, 4)"),
        (IntImm(1, BOOL), "T.bool(True)", "True"),
    ],
)
def test_both_styles(expr: Expr, script: str, plain: str) -> None:
    """The script style is TVM's, the plain style is Python's own."""
    assert expr_text(expr) == script
    assert expr_text(expr, "plain") == plain


def test_old_dialect_has_its_own_names() -> None:
    """Ramps and broadcasts are written in lower case there."""
    assert expr_text(Broadcast(X, 4), dialect=OLD) == "T.broadcast(i, 4)"


def test_handles_are_written_through_their_buffers() -> None:
    """A data variable is written as the caller says, other variables by their names."""
    assert expr_text(Var("A_data", DType.parse("handle")), handles={"A_data": "A.data"}) == "A.data"
    assert expr_text(Var("A_data"), handles={"A_data": "A.data"}) == "A_data"


OPERATIONS = [op for op in BinaryOp if op not in (BinaryOp.DIV, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)]


def random_integer(rng: Random, depth: int) -> Expr:
    """Integer arithmetic in everything that Python has too; divisors and shifts are kept in range."""
    if depth == 0:
        return rng.choice([X, J, IntImm(rng.randrange(-5, 9))])
    op = rng.choice(OPERATIONS)
    left, right = random_integer(rng, depth - 1), random_integer(rng, depth - 1)
    if op in (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD):
        right = IntImm(rng.choice([-3, -1, 2, 7]))
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        right = IntImm(rng.randrange(4))
    return Binary(op, left, right)


@one_in(9)
@pytest.mark.parametrize("seed", range(200))
def test_plain_text_means_the_same_in_python(seed: int) -> None:
    """Anyone can evaluate a plain text with Python, negative numbers included, and reading it back changes no value."""
    expr = random_integer(Random(seed), 4)
    text = expr_text(expr, "plain")
    back = parse_integer(text, [X, J])
    assert parse_integer(expr_text(back, "plain"), [X, J]) == back
    for i, j in product((-7, -1, 0, 3), repeat=2):
        values = {"i": i, "j": j}
        assert eval(text, {"min": min, "max": max}, values) == evaluate(expr, values) == evaluate(back, values)


@pytest.mark.parametrize(
    "text",
    ["", "plain", "it's", 'say "x"', "both ' and \"", "a\\b", "new\nline", "\0", "é☃", "\U0001f600", "\x7f", "'\""],
)
def test_strings_read_back_equal(text: str) -> None:
    """A string literal is what Python reads as the same string, in double quotes where it can be."""
    assert eval(string_text(text)) == text
    assert string_text(text).startswith('"') or '"' in text


@pytest.mark.parametrize("value", [0.1, 1e-45, 3.4028234663852886e38, -0.0, 16777216.0])
def test_floats_keep_every_digit(value: float) -> None:
    """The text of a float constant has the digits that bring it back."""
    constant = const(value, FLOAT32)
    assert isinstance(constant, FloatImm)
    digits = expr_text(constant).removeprefix("T.float32(").removesuffix(")")
    assert FloatImm(float(digits), FLOAT32) == constant
