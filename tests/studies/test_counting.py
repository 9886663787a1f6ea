"""Costs are formulas, and what the interpreter counts when a program runs is what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.dtype import HANDLE, INT32, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, Var, const
from layoutproof.ir.interp import run
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, Stmt, seq
from layoutproof.ir.visit import map_children
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.studies.cells import Cell
from layoutproof.studies.counting import NotCounted, costs_of, sum_over
from layoutproof.studies.judge import judge
from layoutproof.studies.operators import library

COUNT = Buffer("COUNT", INT32, (const(1),), Var("COUNT_data", HANDLE))
KEYS = (
    "sum/float32/symbolic/block4/producer-writes/0/finite",
    "sum/float32/symbolic/offset/producer-writes/0/finite",
    "sum/float32/symbolic/two-axes/several-contracts/0/finite",
    "sum/float32/symbolic/block4/internal-copy/0/finite",
    "relu/float32/symbolic/block4/producer-writes/0/finite",
    "relu/float32/symbolic/block3/default-arises/0/finite",
    "matmul/int32/symbolic/block4/producer-writes/0/finite",
    "exp/float32/symbolic/block4/zero/0/finite",
    "max-new-first/float32/symbolic/texture/producer-writes/0/finite",
    "convolution-halo/int32/symbolic/offset/producer-writes/0/finite",
)


def counting(func: PrimFunc) -> PrimFunc:
    """The function that counts its stores, those of undefined values apart, in an array of its own."""

    def visit(node: Node) -> Node:
        if isinstance(node, BufferStore) and not isinstance(node.value, Undef):
            return seq(node, BufferStore(COUNT, (const(0),), BufferLoad(COUNT, (const(0),)) + const(1)))
        if isinstance(node, Stmt):
            if isinstance(node, Block):
                node = replace(node, reads=None, writes=None)
            return map_children(node, visit)
        return node

    body = visit(func.body)
    assert isinstance(body, Stmt)
    param = Var("COUNT", HANDLE)
    counted = func.with_body(body)
    return replace(counted, params=(*func.params, param), buffer_map=(*func.buffer_map, (param, COUNT)))


def stores_of_a_run(func: PrimFunc, sizes: Mapping[str, int]) -> int:
    """How many stores a run makes on arrays of zeros."""
    arrays = {b.name: np.zeros([int(evaluate(e, sizes)) for e in b.shape], numpy_dtype(b.dtype)) for b in func.buffers}
    symbols = {v.name: sizes[v.name] for v in constants_of(func)}
    result = run(counting(func), {**symbols, **arrays, "COUNT": np.zeros(1, np.int32)})
    return int(result["COUNT"][0])


@one_in(14)
@pytest.mark.parametrize("key", KEYS)
def test_a_formula_is_what_a_run_counts(key: str) -> None:
    """For several extents, both programs of a cell make as many stores as the formulas say."""
    cell = Cell(*key.split("/"))
    judged = judge(library()[cell.operator], cell)
    assert judged.question is not None
    assert judged.end is not None
    for func in (judged.question.guarded, judged.end):
        costs = costs_of(judged, func)
        for m, n in ((1, 1), (2, 7), (3, 8), (4, 14)):
            sizes = {"m": m, "n": n}
            assert costs.values(sizes)[0] == stores_of_a_run(func, sizes), (key, sizes)


def test_a_sum_over_a_guard_is_what_is_counted() -> None:
    """The number of points of a box within bounds is exact, for every extent."""
    x, r, n = Var("x", INT32), Var("r", INT32), Var("n", INT32)
    conditions: list[Expr] = [const(1) <= x + r, x + r < n + const(1)]
    formula = sum_over({x: n, r: const(3)}, conditions)
    for size in range(9):
        points = sum(1 <= a + b < size + 1 for a, b in product(range(size), range(3)))
        assert int(evaluate(formula, {"n": size})) == points


def test_a_guard_on_two_symbolic_loops_is_not_counted() -> None:
    """What has no formula is refused, not estimated."""
    x, y, n = Var("x", INT32), Var("y", INT32), Var("n", INT32)
    with pytest.raises(NotCounted, match="x and y"):
        sum_over({x: n, y: n}, [x + y < n])
