"""Damaged texts are read, or refused with a message and a place in the text; never with a traceback, or without end."""

from __future__ import annotations

import time
from random import Random

import pytest
from tests.random.mlir_damage import damaged
from tests.shares import chosen, one_in
from tests.tree import ROOT

from layoutproof.importers.mlir import read_functions
from layoutproof.ir.diagnostic import LayoutproofError

FILES = sorted(path for path in (ROOT / "tests" / "data" / "mlir").glob("*.mlir") if path.stat().st_size < 4000)
EACH = 60


@one_in(4)
@pytest.mark.parametrize("batch", chosen(range(20), lambda number: number < 2))
def test_damaged(batch: int) -> None:
    """Each text is read or refused at one of its lines."""
    for seed in range(batch * EACH, batch * EACH + EACH):
        random = Random(seed)
        check(damaged(random, random.choice(FILES).read_text(encoding="utf-8")))


def check(text: str) -> None:
    """Read a text, which may be refused with a place."""
    try:
        read_functions(text, "damaged.mlir")
    except LayoutproofError as problem:
        (found,) = problem.diagnostics
        assert found.message
        assert found.span is not None, text
        assert 1 <= found.span.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "func.func @f() {",
        '"func.func"() ({}) : () -> ()',
        '#map = affine_map"(d0, d1, d2, d3, d4, d5) -> (d0, d2, d3, d5)>\nfunc.func @f() {\n  return\n}',
        'func.func @f() attributes {a = "\\q"} {\n  return\n}',
        "func.func @f(%a: memref<9223372036854775808xf32>) {\n  return\n}",
        '"func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n^bb0:\n}) : () -> ()',
        '"func.func"() <{function_type = () -> (), sym_name = "f"}> ({\n  "affine.load"() : () -> ()\n'
        '  "func.return"() : () -> ()\n}) : () -> ()',
    ],
    ids=["empty", "cut", "bare", "quote", "escape", "large", "no end", "no operands"],
)
def test_known(text: str) -> None:
    """Texts that were read wrongly once; the lexer of xDSL has no bound of time on a string without its end."""
    start = time.process_time()
    check(text)
    assert time.process_time() - start < 20
