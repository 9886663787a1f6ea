"""Cells of studies confirmed by brute force: both programs of a proved cell run in the interpreter on random, special
and, for element-wise operators of 16-bit types, all values; counterexamples of refuted ones run again.

    python -m tests.studies.brute_force --cells 200 --seed 7

Nothing of the checker or of its search is used for proved cells, only the interpreter and layout records.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, FloatImm, IntImm
from layoutproof.ir.interp import Fault, run, same_values
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.intrinsics import Limit, LimitKind
from layoutproof.ir.layout_record import Cell as Kind
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.studies.cells import PAD_VALUES, Cell, Grid
from layoutproof.studies.judge import Judged, judge
from layoutproof.studies.layouts import layout_named
from layoutproof.studies.operators import TYPES, library
from layoutproof.studies.policies import POLICIES
from layoutproof.verify.replay.refute import replays
from layoutproof.verify.values.fast_math import FastMath, parse_fast_math
from layoutproof.verify.verdict.verdict import Status

Array = NDArray[Any]
RUNS = 12
ALL_OF_16_BITS = "64x1026"
"""Rows and columns that have at least as many elements as a 16-bit type has values, and padding."""


def random_cells(seed: int) -> Iterator[Cell]:
    """Cells of any operator, type, layout, policy and value, without end."""
    chance = random.Random(seed)
    operators = library()
    while True:
        operator = chance.choice(list(operators.values()))
        dtype = chance.choice([each for each in TYPES if each in operator.types])
        layout = chance.choice(["block2", "block3", "block4", "block8", "offset", "two-axes", "swizzle", "texture"])
        shape = chance.choice(["1x5", "2x6", "3x7", "2x12", "fixed"])
        element_wise = operator.text == operators["relu"].text
        if element_wise and dtype in ("float16", "bfloat16"):
            shape, layout = ALL_OF_16_BITS, "block4"
        policy = chance.choice(list(POLICIES))
        grid = Grid(
            {operator.name: operator},
            (dtype,),
            (shape,),
            (layout,),
            (policy,),
            PAD_VALUES,
            (chance.choice(["ieee", "finite"]),),
        )
        cells = list(grid.cells())
        if cells:
            yield chance.choice(cells)


def confirm(judged: Judged, seed: int = 0) -> str | None:
    """What is wrong with a verdict by brute force; None where nothing is."""
    if judged.status == Status.PROVED.value and judged.question is not None and judged.end is not None:
        return _differing(judged, judged.question.guarded, judged.end, np.random.default_rng(seed))
    refuted = [d for d in judged.decisions if d.status is Status.REFUTED]
    for decision in refuted:
        example = decision.first.counterexample
        if example is None or "inputs" not in example:
            continue
        fast_math = (
            parse_fast_math(judged.cell.strictness) if decision.claim.block is not None else frozenset[FastMath]()
        )
        # Some are of the step from the guarded program, others of the last step alone.
        assert judged.question is not None
        whole = replace(decision.rewrite, old=judged.question.guarded)
        if not any(replays(each, example, fast_math=fast_math) for each in (decision.rewrite, whole)):
            return f"{decision.claim.name}: the counterexample shows nothing"
    return None


def _differing(judged: Judged, old: PrimFunc, new: PrimFunc, generator: np.random.Generator) -> str | None:
    fast_math = judged.least
    finite = bool(fast_math & {FastMath.NNAN, FastMath.NINF})
    runs = 1 if judged.cell.shape == ALL_OF_16_BITS else RUNS
    for number in range(runs):
        arrays = {b.name: _array(generator, old, b.name, number, finite) for b in old.buffers}
        try:
            before = run(old, arrays)
        except Fault:
            continue  # the input breaks an assumption of the operator
        after = run(new, arrays)
        for buffer in new.buffers:
            same = same_values(before[buffer.name], after[buffer.name])
            if FastMath.NSZ in fast_math:
                same |= np.asarray((before[buffer.name] == 0) & (after[buffer.name] == 0))
            seen = _seen(new, buffer.data.name, same.shape)
            if not bool(np.all(same | ~seen)):
                place = tuple(int(i) for i in np.argwhere(~same & seen)[0])
                return f"run {number}: {buffer.name}{list(place)} is {after[buffer.name][place]!r}"
    return None


def _seen(func: PrimFunc, data: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The cells that an observer may look at: elements, and padding that holds a value."""
    kinds = padding_cells(func, {}).get(data)
    if kinds is None:
        return np.ones(shape, np.bool_)
    return np.asarray((kinds == Kind.LOGICAL) | (kinds == Kind.PAD_VALUE))


def _array(generator: np.random.Generator, func: PrimFunc, name: str, number: int, finite: bool) -> Array:
    """Elements of one kind of number, padding by its contract, or anything where it has none."""
    buffer = next(b for b in func.buffers if b.name == name)
    shape = tuple(int(evaluate(extent, {})) for extent in buffer.shape)
    dtype = numpy_dtype(buffer.dtype)
    array = _numbers(generator, shape, dtype, number, finite)
    record, kinds = layout_records(func).get(buffer.data.name), padding_cells(func, {}).get(buffer.data.name)
    if record is None or kinds is None:
        return array
    anything = _numbers(generator, shape, dtype, 0, False)
    array = np.where(kinds == Kind.LOGICAL, array, anything).astype(dtype)
    for step in record.steps:
        if step.contract is not None and not step.contract.is_undef:
            array[kinds == Kind.PAD_VALUE] = _constant(step.contract.value, dtype)
    return array


def _constant(value: Expr, dtype: np.dtype[Any]) -> Array:
    """The value of a contract, read off its node."""
    if isinstance(value, Limit):
        info: Any = ml_dtypes.finfo
        ends = np.iinfo(dtype) if dtype.kind in "iu" else info(dtype)
        return np.array({LimitKind.MIN: ends.min, LimitKind.MAX: ends.max}[value.kind]).astype(dtype)
    assert isinstance(value, FloatImm | IntImm)
    return np.array(value.value).astype(dtype)


def _numbers(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], number: int, finite: bool
) -> Array:
    size = int(np.prod(shape))
    if dtype.itemsize == 2 and size >= 1 << 16 and not finite:
        return np.resize(np.arange(1 << 16, dtype=np.uint16), size).view(dtype).reshape(shape)
    if finite:
        return generator.integers(-8, 9, shape).astype(dtype)
    if number % 3 == 0:
        return np.frombuffer(generator.bytes(size * dtype.itemsize), dtype=dtype).reshape(shape).copy()
    if number % 3 == 1:
        return generator.integers(0, 4, shape).astype(dtype)
    return _special(generator, shape, dtype)


def _special(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu":
        ends = np.iinfo(dtype)
        return generator.choice(np.array([ends.min, ends.max, 0, 1], dtype), shape)
    with np.errstate(all="ignore"):
        values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38]).astype(dtype)
    return np.asarray(values[generator.integers(0, len(values), shape)])


def main() -> int:
    """Confirm so many random cells; the exit code is 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    found: Counter[str] = Counter()
    operators: Mapping[str, Any] = library()
    cells = random_cells(asked.seed)
    while found["proved"] + found["refuted"] < asked.cells:
        cell = next(cells)
        layout_named(cell.layout)
        judged = judge(operators[cell.operator], cell)
        found[judged.status] += 1
        wrong = confirm(judged, asked.seed)
        if wrong is not None:
            print(f"{cell.key}: {judged.status}: {wrong}")
            return 1
        if sum(found.values()) % 20 == 0:
            print(dict(found), flush=True)
    print(f"confirmed: {dict(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
