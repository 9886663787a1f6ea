"""The search for an input on which a program runs: all assumptions hold, nothing faults, and something observable is
stored.

What is found is evidence of the plainest kind, a run of the reference interpreter. Sizes are small ones, those that the
conditions mention, and what a solver thinks of; data is constant, repaired where an assumption asks for something else,
or mixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, FloatImm, IntImm, Var
from layoutproof.ir.interp import Fault, count_instances, run, same_values
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Allocate, Block
from layoutproof.ir.visit import nodes_of, walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.satisfying_data import repair_program, repaired, symbols_and_scalars
from layoutproof.verify.program.instances import Access, AccessKind, IterationDomain
from layoutproof.verify.program.questions import same

Numbers = dict[str, int | float]
_SEED = 20_240_229
_SMALL = (1, 2, 3, 4, 5, 7, 8, 16, 0)
_MENTIONED = 12  # constants of conditions that are tried, each with its neighbours
_COMBINATIONS = 4_000
_SIZES = 12  # choices of sizes that are run
_MOST_CELLS = 1 << 22
_LARGEST = 1 << 30


@dataclass
class SearchState:
    """The state of a search: `numbers` that satisfy the conditions, the last run's failure, the cost."""

    numbers: Numbers | None = None
    fault: Fault | None = None
    spent: int = 0
    tried: set[tuple[int | float, ...]] = field(default_factory=set)


def numbers_of(facts: Facts) -> Iterator[Numbers]:
    """Values of symbols and scalars that satisfy all conditions and allow a store, small ones first."""
    symbols = symbols_and_scalars(facts.program.function)
    seen: set[tuple[int | float, ...]] = set()
    for values in _combinations(facts, symbols):
        if values in seen:
            continue
        seen.add(values)
        numbers = dict(zip((s.name for s in symbols), values, strict=True))
        if holds_at(facts, numbers):
            yield numbers


def holds_at(facts: Facts, numbers: Mapping[str, int | float]) -> bool:
    """Whether all conditions on symbols hold at some values, and each fits its type."""
    try:
        fitting = all(r.low <= numbers[v.name] <= r.high for v, r in facts.ranges.items())
        return fitting and all(bool(evaluate(condition, numbers)) for condition in facts.assumed)
    except (Trap, KeyError, TypeError):
        return False


def _combinations(facts: Facts, symbols: Sequence[Var]) -> Iterator[tuple[int | float, ...]]:
    if not symbols:
        yield ()
        return
    floats = [s.dtype.is_float for s in symbols]

    def typed(values: Sequence[int | float]) -> tuple[int | float, ...]:
        return tuple(float(v) if f else v for v, f in zip(values, floats, strict=True))

    for size in (1, 2, 4):
        yield typed([size] * len(symbols))
    guards = (guard.condition for access in writes_of(facts) for guard in access.domain.guards)
    mentioned = _mentioned(facts.program.function, *facts.program.assumed, *guards)
    candidates = tuple(dict.fromkeys((*_SMALL, *mentioned, -1, -2)))
    yield from (typed([size] * len(symbols)) for size in candidates)
    # What engines think of: for stores, and for the conditions alone.
    writes = (access.domain for access in writes_of(facts))
    for domain in (*islice(writes, 4), IterationDomain()):
        point = facts.search(domain).point
        if point is not None:
            yield typed([point.get(s.name, 1) for s in symbols])
    each = candidates if len(symbols) <= 3 else candidates[: max(2, int(_COMBINATIONS ** (1 / len(symbols))))]
    yield from (typed(values) for values in islice(product(each, repeat=len(symbols)), _COMBINATIONS))
    generator = np.random.default_rng(_SEED)
    for _ in range(_COMBINATIONS // 4 if len(symbols) > 2 else 0):
        yield typed([int(generator.choice(candidates)) for _ in symbols])


def _mentioned(func: PrimFunc, *more: Expr) -> tuple[int, ...]:
    """The constants of assumptions and of other conditions, each with its neighbours."""
    conditions = [*more, *(node.condition for node in nodes_of(func.body, Assume))]
    found = {
        int(n.value) for c in conditions for n in walk(c) if isinstance(n, IntImm | FloatImm) and 0 < n.value < _LARGEST
    }
    least = sorted(found)[:_MENTIONED]
    return tuple(dict.fromkeys(v for value in least for v in (value, value + 1, value - 1)))


def writes_of(facts: Facts) -> Iterator[Access]:
    """The stores to parameters."""
    parameters = {buffer.data for buffer in facts.program.function.buffers}
    return (a for a in facts.program.accesses if a.kind is AccessKind.WRITE and a.data in parameters)


def certainly_stores(facts: Facts, numbers: Mapping[str, int | float]) -> bool:
    """Whether with these numbers some store to a parameter happens whatever the data is."""
    for access in writes_of(facts):
        domain = access.domain
        if domain.depends_on_data():
            continue
        point: dict[str, int] = {name: value for name, value in numbers.items() if isinstance(value, int)}
        try:
            for dim in domain.dims:
                point[dim.var.name] = int(evaluate(dim.start, point))
        except (Trap, KeyError, TypeError):
            continue
        if facts.happens(domain, point):
            return True
    return any(
        _has_an_instance(facts, access.domain, numbers)
        for access in writes_of(facts)
        if not access.domain.depends_on_data()
    )


def _has_an_instance(facts: Facts, domain: IterationDomain, numbers: Mapping[str, int | float]) -> bool:
    at = [same(v, int(numbers[v.name])) for v in facts.program.symbols if v.name in numbers]
    found = facts.search(domain, *at)
    return found.point is not None and facts.happens(domain, found.point)


def find_run(
    facts: Facts, limit: int, most_runs: int, state: SearchState, hints: Sequence[Mapping[str, float | int]] = ()
) -> bool:
    """Whether the program ran to its end and stored to a parameter on some input, within `limit` iterations in all and
    `most_runs` runs; `state` records the search.
    """
    func = facts.program.function
    for numbers in islice(numbers_of(facts), _SIZES):
        if state.numbers is None:
            state.numbers = numbers
        if _cost(func, numbers) > limit - state.spent:
            continue
        stores = certainly_stores(facts, numbers)
        each = most_runs if not numbers else max(most_runs // 4, 6)
        for arrays in islice(_data(func, numbers, hints, limit), each):
            if most_runs <= 0 or state.spent > limit:
                return False
            most_runs -= 1
            try:
                result = run(func, {**numbers, **arrays}, limit=limit)
            except Fault as fault:
                state.fault = fault
                state.spent += 100
                continue
            except LayoutproofError:
                return False
            state.spent += result.iterations
            if stores or any(not same_values(arrays[name], result.arrays[name]).all() for name in arrays):
                return True
    return False


def _cost(func: PrimFunc, numbers: Mapping[str, int | float]) -> int:
    """About how large a run is, cells of parameters and of temporaries included."""
    inner = (
        b
        for n in walk(func.body)
        for b in ((n.buffer,) if isinstance(n, Allocate) else n.alloc_buffers if isinstance(n, Block) else ())
    )
    try:
        cells = sum(math.prod(_shape(buffer.shape, numbers)) for buffer in (*func.buffers, *inner))
        return count_instances(func, numbers) + cells // 64
    except (LayoutproofError, Trap, KeyError, TypeError):
        return 0


def _shape(shape: Sequence[Expr], numbers: Mapping[str, int | float]) -> tuple[int, ...]:
    return tuple(max(int(evaluate(extent, numbers)), 0) for extent in shape)


def _data(
    func: PrimFunc, numbers: Mapping[str, int | float], hints: Sequence[Mapping[str, float | int]], limit: int
) -> Iterator[dict[str, Array]]:
    """Arrays for all parameters, plain ones first, each as it is and with what assumptions ask for written into it."""
    repair = repair_program(func)
    try:
        shapes = {
            b.name: (*_shape(b.shape, numbers), *((b.dtype.lanes,) if b.dtype.lanes > 1 else ())) for b in func.buffers
        }
    except (Trap, KeyError, TypeError):
        return
    if sum(int(np.prod(shape, dtype=np.int64)) for shape in shapes.values()) > _MOST_CELLS:
        return
    types = {b.name: numpy_dtype(b.dtype.element) for b in func.buffers}
    for plain in _plain(func, shapes, hints):
        arrays = {name: np.ascontiguousarray(array.astype(types[name])) for name, array in plain.items()}
        if repair is not None:
            changed = repaired(repair, {**numbers, **arrays}, limit)
            if changed is not None:
                yield {name: changed[name] for name in arrays}
        yield arrays


def _plain(
    func: PrimFunc, shapes: Mapping[str, tuple[int, ...]], hints: Sequence[Mapping[str, float | int]]
) -> Iterator[dict[str, Array]]:
    generator = np.random.default_rng(_SEED)
    yield {name: np.ones(shape) for name, shape in shapes.items()}
    for hint in hints:
        yield {name: np.full(shape, hint.get(name, 1)) for name, shape in shapes.items()}
    yield {name: np.zeros(shape) for name, shape in shapes.items()}
    yield {name: np.arange(int(np.prod(shape))).reshape(shape) for name, shape in shapes.items()}
    yield {name: np.full(shape, 2) for name, shape in shapes.items()}
    yield {name: -np.ones(shape) for name, shape in shapes.items()}
    for value in _mentioned(func):
        yield {name: np.full(shape, value) for name, shape in shapes.items()}
        yield {name: _one_cell(shape, value) for name, shape in shapes.items()}
    for number in range(len(shapes)):
        yield {
            name: np.full(shape, 1 + (k + number) % max(len(shapes), 1))
            for k, (name, shape) in enumerate(shapes.items())
        }
    while True:
        yield {name: generator.integers(-4 if _signed(func, name) else 0, 5, shape) for name, shape in shapes.items()}


def _one_cell(shape: tuple[int, ...], value: int) -> Array:
    """Zeros, and one value."""
    result = np.zeros(shape)
    result.reshape(-1)[:1] = value
    return result


def _signed(func: PrimFunc, name: str) -> bool:
    dtype = next(b.dtype for b in func.buffers if b.name == name)
    return dtype.is_float or (dtype.is_integer and dtype.min_int < 0)
