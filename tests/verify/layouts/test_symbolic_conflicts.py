"""Counts for all values of a symbol against counts of each value, far beyond where they are said to repeat."""

from __future__ import annotations

from random import Random

import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Var
from layoutproof.ir.notations.map_text import parse_index_map, parse_shape
from layoutproof.verify.layouts.accesses import judge_accesses, read_access
from layoutproof.verify.layouts.conflicts import Memory
from layoutproof.verify.layouts.symbolic_conflicts import SymbolicReport, affine_in, judge_symbolic
from layoutproof.verify.maps.layout_text import read_layout


def judged(layout: str, shape: str, access: str, lanes: str, memory: Memory | None = None) -> SymbolicReport:
    written = read_layout(layout, parse_shape(shape))
    return judge_symbolic(written, [read_access(access, lanes, written)], memory or Memory())


def test_every_size_is_what_counting_it_gives() -> None:
    """Rounds, the worst phase, alignment and transactions of affine layouts at sizes below and beyond a period."""
    draw = Random("symbolic conflicts in every run")
    for _ in range(6):
        row = draw.choice(["n", "(n + 4)", "(2*n + 1)", "(n*3)"])
        layout, extent = f"lambda i, j: [i*{row} + j]", row.strip("()")
        access = draw.choice(["lambda k, t: [t, k]", "lambda k, t: [t//2, t%2 + k*4]", "lambda k, t: [k, t]"])
        memory = Memory(draw.choice([8, 16]), 4, draw.choice([2, 4]), draw.choice([1, 2]))
        pattern = judged(layout, f"16,{extent}", access, "2,16", memory).patterns[0]
        last = pattern.regular + 3 * pattern.period
        sizes = [*range(pattern.least, pattern.least + 9), *(draw.randint(pattern.least, last) for _ in range(12))]
        for size in sizes:
            number = parse_shape(f"16,{eval(extent, {'n': size})}")
            written = read_layout(f"lambda i, j: [i*{eval(row, {'n': size})} + j]", number)
            report = judge_accesses(written, [read_access(access, "2,16", written)], memory)
            _, conflicts, transactions = report.patterns[0]
            found = pattern.at(size)
            assert (found.phases, found.rounds, found.worst) == (conflicts.phases, conflicts.rounds, conflicts.worst)
            assert found.vector == min(conflicts.vector, pattern.period)
            assert found.transactions == transactions.transactions


def test_the_column_of_a_tile() -> None:
    """A column of 32 words conflicts as often as its pitch and the banks have in common."""
    pattern = judged("lambda i, j: [i*n + j]", "32,n", "lambda t: [t, 7]", "32").patterns[0]
    assert (pattern.least, pattern.period, pattern.symbol) == (8, 32, "n")
    for size in (8, 9, 12, 31, 32, 33, 48, 1000, 4096, 10**6 + 1):
        assert pattern.at(size).worst == min(32, size & -size)
    assert pattern.to_dict()["classes"][0]["conflicts"] == 0


@pytest.mark.parametrize(
    ("layout", "shape", "access", "lanes", "message"),
    [
        ("lambda i, j: [i*n + j*m]", "n,m", "lambda t: [t, 0]", "8", "of one symbol, not of n, m"),
        ("lambda i, j: [i*n*n + j]", "8,n", "lambda t: [t, 0]", "8", "is not affine in n"),
        ("lambda i, j: [i*n ^ j]", "8,n", "lambda t: [t, 0]", "8", "is not affine in n"),
        ("lambda i, j: [i*n + j]", "8,n", "lambda t: [t, 0]", "16", "goes from 0 to 15, of 8 indices"),
        ("lambda i, j: [i*n + j]", "8,n", "lambda k, t: [t, k]", "4096,8", "are too many to count for all sizes"),
        ("lambda i, j: [i + j*100000]", "n,8", "lambda t: [0, t]", "8", "too many to list"),
    ],
)
def test_what_is_not_counted(layout: str, shape: str, access: str, lanes: str, message: str) -> None:
    """Several symbols, offsets that are not affine, and accesses outside the layout are refused with the reason."""
    with pytest.raises(LayoutproofError, match=message):
        judged(layout, shape, access, lanes)


def test_affine_forms() -> None:
    """Constant and multiple of a symbol at values of the other variables."""
    offset = parse_index_map("lambda i: [3*(n - i) + i//2*n]", symbols=[Var("n")])
    assert affine_in(offset.outputs[0], Var("n"), {offset.inputs[0]: parse_shape("5")[0]}) == (-15, 5)
