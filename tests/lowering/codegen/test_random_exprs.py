"""Random expressions in compiled C against the reference interpreter, hundreds in one C file."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.lowering.codegen.plain_c import run_sanitized
from tests.lowering.codegen.programs import TYPES, Array, array_of, assert_same, edges, function, numpy_type
from tests.random.expressions import Expressions
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, make_buffer
from layoutproof.ir.expr import Var, const
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, ForKind, Stmt, seq
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.runtime.build_c import build_c

SIZE = 19


def random_function(seed: int, count: int, depth: int, noalias: bool = True) -> PrimFunc:
    """A function with one loop for each of `count` expressions."""
    random = Random(seed)
    inputs = {dtype: make_buffer(f"in_{dtype}", (SIZE,), dtype) for dtype in TYPES}
    i = Var("i")
    expressions = Expressions(random, inputs, i, SIZE)
    outputs: list[Buffer] = []
    loops: list[Stmt] = []
    for number in range(count):
        value = expressions.any(depth)
        outputs.append(make_buffer(f"out_{number}", (SIZE,), value.dtype))
        loops.append(For(i, const(0), const(SIZE), ForKind.SERIAL, BufferStore(outputs[-1], (i,), value)))
    return function("random", [*inputs.values(), *outputs], seq(*loops), noalias=noalias)


def random_inputs(seed: int) -> dict[str, Array]:
    """Edge values in random order."""
    random = Random(seed)
    return {f"in_{dtype}": array_of([random.choice(edges(dtype)) for _ in range(SIZE)], dtype) for dtype in TYPES}


def compare(seed: int, count: int, depth: int, index_bits: int | None) -> None:
    """Fail at the first output that differs between the kernel and the interpreter."""
    func, inputs = random_function(seed, count, depth, noalias=False), random_inputs(seed)
    kernel = build_c(func, check=False, index_bits=index_bits)
    results = kernel(**inputs)
    expected = run(func, inputs)
    for number, result in enumerate(results):
        assert isinstance(result, np.ndarray)
        assert_same(result, expected.arrays[f"out_{number}"], f"seed {seed}, expression {number}")


@one_in(4)
@pytest.mark.parametrize(("seed", "depth", "index_bits"), [(1, 2, None), (2, 3, 64), (3, 4, None)])
def test_random_expressions(seed: int, depth: int, index_bits: int | None) -> None:
    """120 random expressions give the interpreter's values bit for bit."""
    compare(seed, 120, depth, index_bits)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_expressions(seed: int) -> None:
    """The same at length."""
    compare(seed, 250, 2 + seed % 4, 64 if seed % 3 == 0 else None)


@one_in(10)
def test_random_expressions_under_sanitizers(tmp_path: Path) -> None:
    """Called from C, random expressions raise no warning and no sanitizer report, and give the interpreter's values."""
    func, inputs = random_function(9, 60, 3, noalias=False), random_inputs(9)
    arrays = {b.name: inputs.get(b.name, np.zeros(SIZE, dtype=numpy_type(b.dtype))) for b in func.buffers}
    found = run_sanitized(emit_c(func), tmp_path, arrays)
    expected = run(func, inputs)
    for name in expected.written:
        assert_same(found[name], expected.arrays[name], name)
