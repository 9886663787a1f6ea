"""Programs too large to run in full: which elements are looked at, what is told of them, what fast-math assumptions
leave out, and how it is kept.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.shares import chosen, one_in
from tests.verify.replay.rewrites import func, pair, relaid

from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.interp import run_slice, slice_inputs
from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import InstanceMap, Rewrite, Witness
from layoutproof.ir.visit import loops_of_stores
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.hints import SuspectCell
from layoutproof.verify.flow.simulate import simulate
from layoutproof.verify.replay.chosen_cells import Chooser, edge_cells
from layoutproof.verify.replay.magnitude import stays_finite
from layoutproof.verify.replay.placement import place_parameters
from layoutproof.verify.replay.refute import check_rewrite, find_counterexample, replays
from layoutproof.verify.values.fast_math import ALL, IEEE
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Status

RELU = """# theta: 0 -> 0: lambda n, a, h, w, b: [n, h, w, 4*a + b] where 4*a + b < 30
# cells: B_data -> B_data: lambda n, h, w, c: [n, c//4, h, w, c%4]
# interface: B
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((8, 56, 56, 30), "float32"), B: T.Buffer((8, 56, 56, 30), "float32")):
    T.func_attr({"tirx.noalias": True})
    for n, h, w, c in T.grid(8, 56, 56, 30):
        B[n, h, w, c] = T.max(A[n, h, w, c], T.float32(0))

@T.prim_func(s_tir=True)
def after(A: T.Buffer((8, 56, 56, 30), "float32"), B: T.Buffer((8, 8, 56, 56, 4), "float32")):
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": [8, 56, 56, 30], "steps": [
        {"index_map": "lambda n, h, w, c: [n, c//4, h, w, c%4]", "shape": [8, 8, 56, 56, 4],
         "contract": "T.float32(0)"}]}}})
    for n, a, h, w, b in T.grid(8, 8, 56, 56, 4):
        B[n, a, h, w, b] = T.if_then_else(a == 7 and 2 <= b, T.float32(0), T.max(A[n, h, w, a*4 + b], T.float32(0)))
"""
"""Relu with its result in blocks of four channels: three quarters of a million elements."""


def relu(change: tuple[str, str] | None = None, contract: str | None = "T.float32(0)") -> Rewrite:
    """The rewrite, with a piece of the new program's text replaced, and another contract."""
    before, mark, after = RELU.partition("def after")
    if change is not None:
        assert change[0] in after
        after = after.replace(*change)
    after = after.replace('"contract": "T.float32(0)"', f'"contract": {json.dumps(contract)}'.replace("null", "None"))
    return parse_rewrite(before + mark + after)


WRONG = {
    "another constant in the value": ("4 + b], T.float32(0))", "4 + b], T.float32(1))"),
    "another pad value": ("2 <= b, T.float32(0)", "2 <= b, T.float32(1)"),
    "a guard that begins too early": ("2 <= b", "1 <= b"),
    "a guard that begins too late": ("2 <= b", "3 <= b"),
    "a strict guard": ("2 <= b", "2 < b"),
    "padding in another block": ("a == 7", "a == 6"),
    "or for and": ("a == 7 and", "a == 7 or"),
    "minimum for maximum": ("T.max(A", "T.min(A"),
    "two axes swapped": ("A[n, h, w, a*4 + b]", "A[n, w, h, a*4 + b]"),
    "a block of another size": ("a*4 + b]", "T.min(a*3 + b, 29)]"),
    "an image that is left out": ("T.grid(8, 8", "T.grid(7, 8"),
    "a last column that is left out": ("56, 56, 4):", "56, 55, 4):"),
}


UNDER = [(what, allowed) for what in WRONG for allowed in ("ieee", "reals")]


# Every run looks at each program once, turn about bit for bit and under all fast-math assumptions.
@one_in(46)
@pytest.mark.parametrize(
    "case", chosen(UNDER, lambda number: number % 8 in (0, 5), lambda case: f"{case[0]}-{case[1]}")
)
def test_wrong_programs_of_real_size_are_refuted(case: tuple[str, str]) -> None:
    """Each of these changes few elements or many; it is found without a witness for instances, told in few words, and
    replays.
    """
    what, fast_math = case[0], {"ieee": IEEE, "reals": ALL}[case[1]]
    wrong = relu(WRONG[what])
    bare = replace(wrong, witness=Witness((), wrong.witness.cells, wrong.witness.changes_interface))
    found = find_counterexample(bare, fast_math=fast_math)
    assert found is not None
    text = json.dumps(found.to_dict())
    assert len(text) < 4_000 and len(found.text()) < 4_000
    assert replays(bare, json.loads(text), fast_math=fast_math)
    right = relu()
    assert not replays(Rewrite(right.old, right.new, bare.witness), json.loads(text), fast_math=fast_math)


@one_in(10)
@pytest.mark.parametrize("contract", ["T.float32(0)", None, "undef"])
def test_a_right_program_of_real_size_is_not(contract: str | None) -> None:
    """Whatever is said of its padding, and whatever fast-math assumptions there are."""
    right = relu(contract=contract)
    for fast_math in (IEEE, ALL):
        assert find_counterexample(right, fast_math=fast_math) is None


@one_in(9)
def test_padding_without_a_value_may_end_as_anything() -> None:
    """What is stored to undefined padding refutes nothing; a wrong element beside it still does."""
    assert find_counterexample(relu(WRONG["another pad value"], "undef")) is None
    assert find_counterexample(relu(WRONG["a guard that begins too early"], "undef")) is not None


@one_in(4)
def test_a_difference_that_fast_math_explain_is_none() -> None:
    """Which operand of a maximum stands first matters for NaN and for zeros of either sign, and for nothing else."""
    swapped = relu(("T.max(A[n, h, w, a*4 + b], T.float32(0))", "T.max(T.float32(0), A[n, h, w, a*4 + b])"))
    assert find_counterexample(swapped) is not None
    assert find_counterexample(swapped, fast_math=ALL) is None


@one_in(4)
def test_sums_are_compared_where_nothing_is_rounded() -> None:
    """Under all fast-math assumptions a product of large matrices in another order is no failure, one that lacks a term
    is.
    """
    body = """
for i, j in T.grid(300, 300):
    C[i, j] = T.float32(0)
    for k in range(70):
        C[i, j] = C[i, j] + A[i, {0}] * B[{0}, j]
"""
    shapes = "A: f32[300, 70]; B: f32[70, 300]; C: f32[300, 300]"
    old = func(shapes, body.format("k"))
    turned, short = (
        func(shapes, text) for text in (body.format("69 - k"), body.format("k").replace("range(70)", "range(69)"))
    )
    assert find_counterexample(pair(old, turned)) is not None
    assert find_counterexample(pair(old, turned), fast_math=ALL) is None
    found = find_counterexample(pair(old, short), fast_math=ALL)
    assert found is not None and np.count_nonzero(found.inputs["A"]) < 5
    assert replays(pair(old, short), json.loads(json.dumps(found.to_dict())), fast_math=ALL)


@one_in(9)
def test_a_fault_is_kept_with_the_cells_that_show_it() -> None:
    """An access out of bounds for one row says which cell has to be run for it, and what was written reads back."""
    body = "for i in range(3000000):\n    B[i] = {}"
    shapes = "A: f32[3000000]; B: f32[3000000]"
    wrong = pair(func(shapes, body.format("A[i]")), func(shapes, body.format("A[i + i // 2999999]")))
    found = find_counterexample(wrong)
    assert found is not None and found.fault is not None and "out of bounds" in found.fault
    assert [cell.old_index for cell in found.cells] == [(2999999,)]
    data = json.loads(json.dumps(found.to_dict()))
    assert replays(wrong, data)
    assert not replays(wrong, {**data, "cells": [{"buffer": "B", "before_index": [5], "after_index": [5]}]})
    assert not replays(wrong, {**data, "cells": [{"buffer": "B", "before_index": [5, 5], "after_index": [5, 5]}]})


@one_in(4)
def test_what_is_assumed_of_padding_follows_from_its_contract() -> None:
    """A new program that assumes another value of padding than its contract states is undefined where the old one is
    not.
    """
    old = func("A: f32[14]; B: f32[14]", "for i in range(14):\n    B[i] = A[i]")
    right = relaid(old, "A", "lambda i: [i//4, i%4]", 0.0)
    assume = "for a, b in T.grid(4, 4):\n    T.evaluate(T.assume(a * 4 + b < 14 or A[a, b] == T.float32({})))\n"
    body = "for i in range(14):\n    B[i] = A[i // 4, i % 4]"
    for value, contract, differs in ((0, 0.0, False), (1, 0.0, True), (1, "T.undef()", False)):
        new = func("A: f32[4, 4]; B: f32[14]", assume.format(value) + body)
        rewrite = relaid(old, "A", "lambda i: [i//4, i%4]", contract)
        found = find_counterexample(Rewrite(old, replace(new, attrs=rewrite.new.attrs), right.witness))
        assert (found is not None) is differs


# Where to look


def test_edges_of_a_guard_are_found() -> None:
    """On both sides of a comparison, also where another condition must hold and where the loop is long."""
    blocks = func(
        "B: f32[40, 8, 4]",
        "for i, a, b in T.grid(40, 8, 4):\n    if a == 7 and 2 <= b:\n        B[i, a, b] = T.float32(0)",
    )
    cells = edge_cells(blocks, blocks.buffers[0], {}, np.random.default_rng(0))
    found = {tuple(int(c) for c in np.unravel_index(cell, (40, 8, 4)))[1:] for cell in cells}
    assert {(7, 1), (7, 2), (6, 2)} <= found
    long = func(
        "B: f32[9000]", "for i, j in T.grid(900, 10):\n    if i * 10 + j < 4321:\n        B[i * 10 + j] = T.float32(0)"
    )
    assert {4320, 4321} <= set(edge_cells(long, long.buffers[0], {}, np.random.default_rng(0)).tolist())


def test_suspects_are_looked_at_first() -> None:
    """A cell that somebody names is among the first, in either program's coordinates; one that is no cell is passed
    over.
    """
    rewrite = relu()
    suspect_cells = [
        SuspectCell("B_data", index, is_new)
        for index, is_new in (((3, 2, 1, 5), False), ((5, 7, 5, 5, 1), True), ((99, 0), True))
    ]
    placement = place_parameters(rewrite, {})
    chosen = Chooser(rewrite, {}, suspect_cells).chosen(placement.places[1], 1)
    first = [tuple(int(c) for c in np.unravel_index(e, (8, 56, 56, 30))) for e in chosen.elements[:2]]
    assert first == [(3, 2, 1, 5), (5, 5, 5, 29)]


@one_in(9)
def test_a_suspect_shows_what_hides() -> None:
    """One wrong element among three million is found where it is named."""
    body = "for i in range(3000000):\n    B[i] = A[i]{}"
    shapes = "A: i32[3000000]; B: i32[3000000]"
    more = " + T.max(0, 1 - T.abs(i * 7 - 1234569) // 7)"
    hidden = pair(func(shapes, body.format("")), func(shapes, body.format(more)))
    assert find_counterexample(hidden) is None
    found = find_counterexample(hidden, suspect_cells=[SuspectCell("B_data", (176367,), True)])
    assert found is not None and found.difference is not None and found.difference.new_index == (176367,)


def alike(old: PrimFunc, new: PrimFunc) -> Rewrite:
    """Two programs of which every store is said to do what the one of its number does."""
    loops = [[loop.var for loop in around] for around in loops_of_stores(new.body)]
    return Rewrite(
        old, new, Witness(tuple(InstanceMap(k, k, IndexMap(tuple(v), tuple(v))) for k, v in enumerate(loops)))
    )


def failing(rewrite: Rewrite) -> tuple[set[tuple[int, ...]], list[str]]:
    """The cells at which the simulation of a rewrite got stuck, and the memories that they are of."""
    found = simulate(rewrite, Facts.of(rewrite.old), Facts.of(rewrite.new, None, rewrite.old), ValueProver(IEEE))
    assert any(v.status is Status.UNKNOWN for v in found.verdicts)
    return {s.index for s in found.suspect_cells}, sorted({s.data for s in found.suspect_cells})


def test_a_failed_proof_tells_where_to_look() -> None:
    """Cells without the value they had, padding without its value, instances that compute something else."""
    early, names = failing(relu(WRONG["a guard that begins too early"]))
    assert names == ["B_data"] and early and all((cell[1], cell[4]) == (7, 1) for cell in early)
    pads, _ = failing(relu(WRONG["another pad value"]))
    assert pads and all(cell[1] == 7 and cell[4] >= 2 for cell in pads)
    values, _ = failing(relu(WRONG["another constant in the value"]))
    assert values and all(cell[1] * 4 + cell[4] < 30 for cell in values)


def test_a_wrong_temporary_is_followed_to_results() -> None:
    """An instance that computes something else writes a temporary: what reads it there is looked at."""
    shape = "A: f32[40, 50]; B: f32[40, 50]"
    body = """
t = T.alloc_buffer((40, 50), "float32")
for i, j in T.grid(40, 50):
    t[i, j] = {}
for i, j in T.grid(40, 50):
    B[i, j] = t[i, j]
"""
    changed = "T.if_then_else(i == 17 and j == 23, T.float32(1), A[i, j])"
    old, new = func(shape, body.format("A[i, j]")), func(shape, body.format(changed))
    wrong = alike(old, new)
    cells, names = failing(wrong)
    assert names == ["B_data"] and (17, 23) in cells


def test_sizes_at_which_a_proof_failed_are_hints() -> None:
    """With symbols, a size at which something is wrong is told, small if it can be."""
    body = "for i in range(n):\n    B[i] = {}"
    old, new = (
        func("A: f32[n]; B: f32[n]", body.format(v)) for v in ("A[i]", "T.if_then_else(i == 30, T.float32(1), A[i])")
    )
    wrong = alike(old, new)
    found = simulate(wrong, Facts.of(wrong.old), Facts.of(wrong.new, None, wrong.old), ValueProver(IEEE))
    assert any(hint.get("n", 0) > 30 for hint in found.hints)


@one_in(10)
@pytest.mark.parametrize(
    "what", ["another constant in the value", "another pad value", "a guard that begins too early"]
)
def test_the_checker_hands_on_where_it_failed(what: str) -> None:
    """A check of a wrong program of real size ends in a refutation."""
    verdicts = check_rewrite(relu(WRONG[what]))
    assert Status.REFUTED in {v.status for v in verdicts}


# Whether everything stays finite


FINITE = {
    "sums": ("B[0] = T.float32(0)\nfor k in range(64):\n    B[0] = B[0] + A[k] * A[k]", 100.0, True),
    "sums of large numbers": ("B[0] = T.float32(0)\nfor k in range(64):\n    B[0] = B[0] + A[k] * A[k]", 1e19, False),
    "a difference that runs": ("B[0] = T.float32(0)\nfor k in range(64):\n    B[0] = B[0] - A[k]", 1e30, True),
    "a running product": ("B[0] = T.float32(1)\nfor k in range(64):\n    B[0] = B[0] * A[k]", 100.0, False),
    "a maximum from minus infinity": (
        'B[0] = T.float32("-inf")\nfor k in range(64):\n    B[0] = T.max(B[0], A[k])',
        100.0,
        True,
    ),
    "a small exponential": ("for k in range(64):\n    B[k] = T.exp(A[k])", 80.0, True),
    "a large exponential": ("for k in range(64):\n    B[k] = T.exp(A[k])", 100.0, False),
    "a division by what may be zero": ("for k in range(64):\n    B[k] = T.float32(1) / A[k]", 2.0, False),
    "a division by what may not": ("for k in range(64):\n    B[k] = A[k] / (T.exp(A[k]) + T.float32(1))", 2.0, True),
    "a root of what may be negative": ("for k in range(64):\n    B[k] = T.sqrt(A[k])", 2.0, False),
    "a logarithm": ("for k in range(64):\n    B[k] = T.log(A[k])", 2.0, False),
    "a condition": ("for k in range(64):\n    if A[k] * A[k] > T.float32(1):\n        B[k] = A[k]", 1e30, False),
    "twice through memory": ("for k in range(63):\n    B[k + 1] = B[k] + A[k]", 2.0, False),
}


@pytest.mark.parametrize("what", FINITE)
def test_what_stays_finite(what: str) -> None:
    """Ranges show it of programs that are bounded, and of no other."""
    body, largest, expected = FINITE[what]
    program = func("A: f32[64]; B: f32[64]", body)
    arrays = {name: np.linspace(-largest, largest, 64, dtype=np.float32) for name in "AB"}
    assert stays_finite(program, arrays, {}) is expected
    arrays["A"][3] = np.nan
    assert not stays_finite(program, arrays, {})


def test_roundings_of_long_sums_in_short_types_are_counted() -> None:
    """A sum of 64 ones fits float16; one of which a cell gets three thousand terms of 64 may not."""
    program = func("A: f16[64]; B: f16[1]", "B[0] = T.float16(0)\nfor k in range(64):\n    B[0] = B[0] + A[k]")
    long = func("A: f16[64]; B: f16[1]", "B[0] = T.float16(0)\nfor k, j in T.grid(3000, 64):\n    B[0] = B[0] + A[j]")
    arrays = {"A": np.ones(64, dtype=np.float16), "B": np.zeros(1, dtype=np.float16)}
    assert stays_finite(program, arrays, {}) and not stays_finite(long, arrays, {})


# Slices


def test_a_slice_is_the_same_for_other_data() -> None:
    """Cells that were asked for before give the values of the data that is there now, and the states."""
    program = func("A: f32[100]; B: f32[100]", "for i in range(100):\n    B[i] = A[99 - i] + T.float32(1)")
    for value in (3.0, 5.0):
        arrays = {"A": np.full(100, value, dtype=np.float32), "B": np.zeros(100, dtype=np.float32)}
        found = run_slice(program, arrays, {"B": [(7,), (0,)]})
        assert found.values["B"].tolist() == [value + 1, value + 1] and found.iterations == 2
        assert found.states["B"].tolist() == [[1], [1]]


def test_inputs_of_a_slice() -> None:
    """What chosen cells depend on, through temporaries too; the cells themselves may keep what they held."""
    body = """
t = T.alloc_buffer((10, 10), "float32")
for i, j in T.grid(10, 10):
    t[i, j] = A[j, i]
for i in range(10):
    B[i] = t[i, 3] + A[i, i]
"""
    program = func("A: f32[10, 10]; B: f32[10]", body)
    arrays = {"A": np.zeros((10, 10), dtype=np.float32), "B": np.zeros(10, dtype=np.float32)}
    found = slice_inputs(program, arrays, {"B": [(4,)]})
    assert found["A"].tolist() == [34, 44] and found["B"].tolist() == [4]
