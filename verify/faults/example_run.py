"""Whether a program runs on some input: all assumptions hold, nothing faults, and something observable is stored.

What is found is evidence of the plainest kind, a run of the reference interpreter. `satisfying_data` proposes
the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import Fault, count_instances, run, same_values
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.semantics import Trap
from layoutproof.ir.stmt import Allocate, Block
from layoutproof.ir.visit import walk
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.faults.satisfying_data import data_to_try, shape_at, sizes_to_try, symbols_and_scalars
from layoutproof.verify.program.instances import Access, AccessKind, IterationDomain
from layoutproof.verify.program.questions import same

Numbers = dict[str, int | float]
_SIZES = 12  # choices of sizes that are run


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
    for values in sizes_to_try(facts, symbols, tuple(writes_of(facts))):
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
        for arrays in islice(data_to_try(func, numbers, hints, limit), each):
            if most_runs <= 0 or state.spent > limit:
                return False
            most_runs -= 1
            try:
                result = run(func, {**arrays, **numbers}, limit=limit)
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
        cells = sum(math.prod(shape_at(buffer.shape, numbers)) for buffer in (*func.buffers, *inner))
        return count_instances(func, numbers) + cells // 64
    except (LayoutproofError, Trap, KeyError, TypeError):
        return 0
