"""Print, parse, compare: equal, for every program and in both dialects."""

import inspect
from pathlib import Path
from random import Random

import pytest
from tests.random.syntax import RandomProgram
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir import buffer, expr, intrinsics, stmt
from layoutproof.ir.dtype import INT32
from layoutproof.ir.expr import Expr, IntImm, Var
from layoutproof.ir.script.operands import extent_between, stop_of
from layoutproof.ir.script.print_statements import STATEMENT_TYPES
from layoutproof.ir.script.printer import print_func, print_module
from layoutproof.ir.script.reader import load, load_module, loads, loads_module
from layoutproof.ir.stmt import Stmt
from layoutproof.ir.text import EXPRESSION_TYPES
from layoutproof.ir.visit import walk

DATA = ROOT / "tests" / "data"
TVM_FILES = sorted([*(DATA / "operators").glob("*.py"), *(DATA / "pairs").glob("*.py")])
SEED_FILES = sorted((DATA / "seeds").glob("*.py"))
DIALECTS = ("current", "old")


def leaf_types(base: type) -> set[type]:
    """The concrete node types below `base` in the modules that define nodes."""
    found = {
        c
        for module in (buffer, expr, intrinsics, stmt)
        for _, c in inspect.getmembers(module, inspect.isclass)
        if issubclass(c, base)
    }
    return {c for c in found if c is not base}


@one_in(4)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("path", TVM_FILES, ids=lambda p: p.name)
def test_operators_and_pairs_round_trip(path: Path, dialect: str) -> None:
    """Every program that TVM printed is read, printed and read back equal."""
    program = load(path)
    assert loads(print_func(program, dialect)) == program


@pytest.mark.parametrize("path", TVM_FILES, ids=lambda p: p.name)
def test_current_dialect_is_what_tvm_prints(path: Path) -> None:
    """The current dialect is TVM's own text, line by line, up to comments and the digits of float constants."""

    def lines(text: str) -> list[str]:
        text = text.replace("340282346638528859811704183484516925440.0", "3.4028234663852886e+38")
        return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]

    assert lines(print_func(load(path))) == lines(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("path", SEED_FILES, ids=lambda p: p.name)
def test_seed_examples_round_trip(path: Path, dialect: str) -> None:
    """The RFCs' own examples, in the old dialect, are read, printed and read back equal."""
    module = load_module(path)
    assert len(module.functions) >= 3
    assert loads_module(print_module(module, dialect)) == module


@one_in(70)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("seed", range(150))
def test_random_programs_round_trip(seed: int, dialect: str) -> None:
    """A random well-typed program is printed and read back equal."""
    program = RandomProgram(Random(seed)).function()
    assert loads(print_func(program, dialect)) == program


def test_random_programs_use_every_node() -> None:
    """The random programs leave no node type out, so that the round trip is tested for each."""
    seen = {type(node) for seed in range(150) for node in walk(RandomProgram(Random(seed)).function().body)}
    assert leaf_types(Expr) | leaf_types(Stmt) <= seen


def test_every_node_can_be_printed() -> None:
    """The printers' tables name exactly the expressions and statements that there are."""
    assert leaf_types(Expr) == EXPRESSION_TYPES
    assert leaf_types(Stmt) == STATEMENT_TYPES


def test_spans_point_at_the_text() -> None:
    """Every node that was read knows its place, and the place holds its text."""
    program = load(DATA / "operators" / "row_sum.py")
    for node in walk(program.body):
        if isinstance(node, buffer.BufferLoad):
            assert node.span is not None and node.span.text.startswith(f"{node.buffer.name}[")


@pytest.mark.parametrize("start", [-3, 0, 5, 2**31 - 1])
@pytest.mark.parametrize("extent", [0, 1, 7, 2**31 - 1])
def test_stops_and_extents_are_inverse(start: int, extent: int) -> None:
    """What printing adds to an extent, reading takes away, for constants and for sums with and without the start."""
    n = Var("n", INT32)
    for a in (IntImm(start), n):
        for e in (IntImm(extent), n, n + 1, a + n, IntImm(extent) - a):
            assert extent_between(a, stop_of(a, e)) == e
