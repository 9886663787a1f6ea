"""Points at which a claim about values is tried: special values of every type first, then random ones from a fixed
seed.

A point where the hypotheses hold and the claim fails refutes it. Nothing here proves anything: a wrong point refutes
nothing either, since the claim is evaluated there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.expr import Expr
from layoutproof.ir.semantics import float_format, max_finite, round_float
from layoutproof.ir.visit import walk
from layoutproof.verify.values.numbers import Values, array_of, round_array, widened
from layoutproof.verify.values.question import Question, operand_of
from layoutproof.verify.values.terms import Number, constant_value

SEED = 20


def points_of(question: Question, count: int) -> tuple[dict[str, Values], int]:
    """About `count` assignments of a question's variables, variants included, and how many there are."""
    variables = question.variables
    literals = _literals(question)
    columns, size = _columns(tuple((v.dtype, literals) for v in variables), count)
    values = {v.name: column for v, column in zip(variables, columns, strict=True)}
    flips = np.random.default_rng(SEED)
    for var, variant in question.variants:
        original = values[var.name]
        values[variant.name] = np.where((original == 0.0) & (flips.random(size) < 0.5), -original, original)
    return values, size


@lru_cache(maxsize=512)
def _columns(kinds: tuple[tuple[DType, frozenset[Number]], ...], count: int) -> tuple[tuple[Values, ...], int]:
    """Values for variables of these types, where a question mentions these literals; equal for equal arguments."""
    if not kinds:
        return (), 1
    pools = [array_of(list(pool_of(dtype, literals)), dtype) for dtype, literals in kinds]
    rng = np.random.default_rng(SEED)
    sizes = [len(pool) for pool in pools]
    if math.prod(sizes) <= count:
        chosen = np.indices(sizes).reshape(len(sizes), -1)
    else:
        # All combinations would be too many: every value once beside its like, then a random choice of each.
        diagonal = np.arange(max(sizes))
        chosen = np.array([np.concatenate((diagonal % size, rng.integers(size, size=count))) for size in sizes])
    columns = [
        np.concatenate((pool[row], _any_values(dtype, count // 4, rng)))
        for pool, row, (dtype, _) in zip(pools, chosen, kinds, strict=True)
    ]
    return tuple(columns), len(columns[0])


@lru_cache(maxsize=256)
def pool_of(dtype: DType, literals: frozenset[Number] = frozenset()) -> tuple[Number, ...]:
    """Special values of a type, then those that a question mentions, with their neighbours."""
    if dtype.is_bool:
        return (False, True)
    special = _special_floats(dtype) if dtype.is_float else _special_integers(dtype)
    near = _near_floats(literals, dtype) if dtype.is_float else _near_integers(literals, dtype)
    seen: dict[tuple[Number, float], Number] = {}
    for value in (*special, *near):
        # zeros of both signs are two values, all NaNs are one
        key = (0 if value != value else value, math.copysign(1.0, value) if value == value else 2.0)
        seen.setdefault(key, value)
    return tuple(seen.values())


def _special_floats(dtype: DType) -> tuple[float, ...]:
    precision, emin, _ = float_format(dtype)
    least = math.ldexp(1.0, emin - precision + 1)
    half = math.ldexp(1.0, (emin - precision + 1) // 2)
    next_to_one = 1.0 + math.ldexp(1.0, 1 - precision)
    magnitudes = (
        1.0,
        2.0,
        0.5,
        1.5,
        least,
        max_finite(dtype),
        half,
        half * 1.5,
        math.ldexp(1.0, emin),
        3.0,
        next_to_one,
    )
    fine = (
        round_float(0.1, dtype),
        math.ldexp(1.0, precision),
        max_finite(dtype) / 2,
        round_float(7.3, dtype),
        least * 3,
    )
    numbers = [0.0, -0.0, math.nan, math.inf, -math.inf]
    for magnitude in (*magnitudes, *fine):
        numbers += [magnitude, -magnitude]
    return tuple(numbers)


def _special_integers(dtype: DType) -> tuple[int, ...]:
    low, high = dtype.min_int, dtype.max_int
    wanted = (0, 1, 2, -1, low, high, 3, low + 1, high - 1, 7, -2, dtype.bits, dtype.bits - 1, high // 2, -7, 100)
    return tuple(v for v in wanted if low <= v <= high)


def _near_floats(literals: frozenset[Number], dtype: DType) -> Iterator[float]:
    for value in sorted(float(v) for v in literals if v == v):
        rounded = round_float(value, dtype)
        yield rounded
        yield -rounded
        if math.isfinite(rounded):
            yield round_float(rounded + abs(rounded) * 2.0 ** (1 - float_format(dtype)[0]), dtype)
            yield round_float(rounded - abs(rounded) * 2.0 ** (1 - float_format(dtype)[0]), dtype)
            yield round_float(rounded + 1.0, dtype)
            yield round_float(rounded - 1.0, dtype)


def _near_integers(literals: frozenset[Number], dtype: DType) -> Iterator[int]:
    for value in sorted(int(v) for v in literals if math.isfinite(v)):
        yield from (near for near in (value, value - 1, value + 1) if dtype.min_int <= near <= dtype.max_int)


def _literals(question: Question) -> frozenset[Number]:
    operands = [operand_of(g.property) for g in question.given]
    parts: tuple[Expr | None, ...] = (question.new, question.old, *question.conditions, *operands)
    found = (
        constant_value(node) for part in parts if part is not None for node in walk(part) if isinstance(node, Expr)
    )
    return frozenset(value for value in found if value is not None)


def _any_values(dtype: DType, count: int, rng: np.random.Generator) -> Values:
    """Random values: half of them small, half of them any bits."""
    if dtype.is_bool:
        return rng.random(count) < 0.5
    bits = (
        rng.integers(0, 1 << dtype.bits, size=count, dtype=np.uint64, endpoint=False)
        if dtype.bits < 64
        else rng.integers(0, np.iinfo(np.uint64).max, size=count, dtype=np.uint64, endpoint=True)
    )
    anything = bits.astype(f"uint{dtype.bits}").view(numpy_dtype(dtype))
    if dtype.is_integer:
        small = rng.integers(max(dtype.min_int, -20), 21, size=count).astype(numpy_dtype(dtype))
        return np.where(rng.random(count) < 0.5, small, anything)
    return np.where(rng.random(count) < 0.5, round_array(rng.uniform(-4.0, 4.0, count), dtype), widened(anything))
