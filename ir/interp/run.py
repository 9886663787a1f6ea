"""Runs of a function on arrays, the reference for everything else, and how far two results differ.

Two evaluators share memory, faults and single operations: a plain one that walks the tree (`walker`), and a fast one
that generates Python source (`compiled`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir import codes
from layoutproof.ir.diagnostic import Diagnostic, LayoutproofError
from layoutproof.ir.interp.analysis import Memories, find_memories
from layoutproof.ir.interp.arguments import Arguments, Array, Bound, bind, fill_memory, read_back
from layoutproof.ir.interp.compiled import Compiled, compile_program
from layoutproof.ir.interp.generator import Facts, TooDeep
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.interp.memory import (
    DEFINED,
    FORBIDDEN,
    POISON,
    Filling,
    Storage,
    all_fillings,
    bad_argument,
    over_memory,
)
from layoutproof.ir.interp.walker import walk_program
from layoutproof.ir.interp.written_out import without_views
from layoutproof.ir.primfunc import Kept, PrimFunc
from layoutproof.ir.threads.sequential import NoSequence, Sequential, sequential

DEFAULT_LIMIT = 200_000_000
MOST_BYTES = 1 << 30  # of one allocation
"""Iterations of loops, all together, after which a run is stopped."""

States = npt.NDArray[np.uint8]
Evaluator = Callable[..., int]

_DRAWN = 4_099  # arbitrary values that are drawn one by one; what is more repeats them
# By `layout_record.Cell`: what is neither arbitrary nor forbidden is an ordinary cell.
_STATE_OF = np.array([0, 0, POISON, FORBIDDEN], dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Result:
    """Parameters after a run, by buffer name. `states` says of each scalar whether it is `memory.DEFINED`, never
    written (UNINITIALISED), arbitrary (POISON) or padding without a contract (FORBIDDEN). `written`: the buffers some
    store goes to.
    """

    arrays: Mapping[str, Array]
    states: Mapping[str, States]
    written: frozenset[str]
    iterations: int

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A function with its arguments in memory, ready to run once."""

    func: PrimFunc
    bound: Bound
    facts: Facts
    storages: dict[str, Storage]
    padding: Mapping[str, States]
    filling: Filling

    def new_memory(self, root: str, elements: int, element_bytes: int, unit: int) -> Storage:
        """Memory for an allocation, its padding marked. Raises LayoutproofError where there is not so much."""
        size = max(elements, 0) * element_bytes
        if size > MOST_BYTES:
            raise over_memory(root, size)
        storage = Storage(root, size, unit)
        if root in self.padding:
            _mark(storage, self.padding[root], self.facts.memories, self.filling)
        return storage


def prepare(
    func: PrimFunc,
    arguments: Arguments,
    *,
    filling: Filling | None = None,
    readable: Mapping[str, npt.NDArray[np.bool_]] | None = None,
) -> Prepared:
    """Bind arguments, fill memory, mark padding. Raises LayoutproofError for arguments that do not fit."""
    func = without_views(func)
    filling = filling if filling is not None else Filling()
    filling.restart()
    bound = bind(func, arguments)
    by_root = {b.data.name: b for b in func.buffers}
    cells = _PADDING.get(func, tuple(sorted(bound.symbols.items())), lambda: padding_cells(func, bound.symbols))
    padding = {root: _STATE_OF[kinds.reshape(-1)] for root, kinds in cells.items()}
    for name, mask in (readable if readable is not None else {}).items():
        roots = [r for r, b in by_root.items() if name in (b.name, r)]
        root = roots[0] if roots else name
        states = np.where(np.asarray(mask, dtype=np.bool_).reshape(-1), 0, FORBIDDEN).astype(np.uint8)
        padding[root] = np.maximum(padding[root], states) if root in padding else states
    memories = _memories(func, frozenset(r for r, states in padding.items() if (states == POISON).any()))
    storages = fill_memory(func, bound, memories)
    for root, states in padding.items():
        if root in storages:
            _mark(storages[root], states, memories, filling)
    guarded = {r for r, s in padding.items() if (s == FORBIDDEN).any()} | {
        r for r, s in storages.items() if FORBIDDEN in s.state
    }
    always = {
        r for r, s in storages.items() if r not in memories.arbitrary and s.state.count(DEFINED) * s.unit >= s.size
    }
    facts = Facts(
        memories,
        bound.symbols,
        frozenset(always),
        frozenset(guarded),
        {root: s.size for root, s in storages.items()},
        frozenset(bound.floats),
    )
    return Prepared(func, bound, facts, storages, padding, filling)


def _mark(storage: Storage, states: States, memories: Memories, filling: Filling) -> None:
    """Padding states on a memory: one state an element, spread over its units; arbitrary cells get values."""
    units = storage.size // storage.unit
    if states.size == 0 == units:
        return
    if states.size == 0 or units % states.size != 0:
        raise bad_argument(f"the padding of {storage.name} is said for {states.size} cells; its memory has {units}")
    spread = np.repeat(states, units // states.size)
    cells = np.frombuffer(storage.state, dtype=np.uint8)[:units]
    marked = np.isin(spread, (POISON, FORBIDDEN))
    cells[marked] = spread[marked]
    dtype = min(memories.types[storage.name], key=lambda d: (d.bits, str(d)))
    arbitrary = np.flatnonzero(spread == POISON)
    for unit in arbitrary[:_DRAWN]:
        storage.write(dtype, int(unit), filling.value(dtype))
    if arbitrary.size > _DRAWN:
        numbers = storage.data.view(np.dtype(f"u{storage.unit}"))
        numbers[arbitrary[_DRAWN:]] = numbers[arbitrary[np.arange(arbitrary.size - _DRAWN) % _DRAWN]]


_PROGRAMS: Kept[Compiled] = Kept(64)
_PADDING: Kept[dict[str, States]] = Kept(16)
_MEMORIES: Kept[Memories] = Kept(64)
_SEQUENTIAL: Kept[Sequential | NoSequence] = Kept(16)


def _memories(func: PrimFunc, arbitrary: frozenset[str]) -> Memories:
    return _MEMORIES.get(func, (arbitrary,), lambda: find_memories(func, arbitrary))


def _compiled(prepared: Prepared, programs: dict[tuple[object, ...], Compiled] | None) -> Compiled:
    """The generated program, made once for a function and a binding; `programs` keeps those of a selection."""
    facts, func = prepared.facts, prepared.func
    key = (
        tuple(sorted(facts.symbols.items())),
        tuple(sorted(facts.sizes.items())),
        facts.always,
        facts.guarded,
        facts.memories.arbitrary,
        facts.floats,
    )
    if facts.selection is None:
        return _PROGRAMS.get(func, key, lambda: compile_program(func, facts))
    if programs is None:
        return compile_program(func, facts)
    if key not in programs:
        programs[key] = compile_program(func, facts)
    return programs[key]


def execute(
    prepared: Prepared,
    limit: int = DEFAULT_LIMIT,
    *,
    plain: bool = False,
    programs: dict[tuple[object, ...], Compiled] | None = None,
) -> int:
    """Run what was prepared, once; the iterations counted. `programs` keeps what was generated for a selection.

    Raises Fault, and LayoutproofError past the limit.
    """
    evaluate = walk_with(prepared)
    if not plain:
        try:
            evaluate = _compiled(prepared, programs).run
        except TooDeep:
            evaluate = walk_with(prepared)
    return evaluate(prepared.storages, prepared.bound.floats, limit, prepared.new_memory, prepared.filling.value)


def walk_with(prepared: Prepared) -> Evaluator:
    """The plain evaluator of a function."""
    return partial(walk_program, prepared.func, prepared.facts)


def run(
    func: PrimFunc,
    arguments: Arguments,
    *,
    filling: Filling | None = None,
    readable: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    limit: int = DEFAULT_LIMIT,
    plain: bool = False,
) -> Result:
    """Run a function; the arguments are not changed.

    `arguments` go by position, or by name (buffers, parameters, symbols). A missing or None array starts uninitialised.
    Vector elements are a last axis of lanes. `filling` gives the values of undefined cells; a cell of a parameter that
    the program assumes to be undefined is filled too. `readable` marks, by buffer or data name, cells that are not
    padding without a contract (False: forbidden), besides what the function's layout records say. `plain` walks the
    tree instead of generating source.

    Raises Fault for a fault of the program, LayoutproofError for arguments that do not fit, programs that cannot be
    interpreted, and runs past `limit` iterations.
    """
    prepared = prepare(_without_threads(func), arguments, filling=filling, readable=readable)
    iterations = execute(prepared, limit, plain=plain)
    return collect(prepared, iterations)


def _without_threads(func: PrimFunc) -> PrimFunc:
    """The function whose kernels are parallel loops, which is what thread axes mean."""
    form = _SEQUENTIAL.get(func, (), lambda: sequential(func))
    if isinstance(form, NoSequence):
        message = f"{func.name} has a kernel that cannot be interpreted: {form.reason}"
        raise LayoutproofError(Diagnostic(codes.NOT_INTERPRETED, message, form.stmt.span))
    return form.func


def collect(prepared: Prepared, iterations: int) -> Result:
    """The parameters after a run."""
    func, memories = prepared.func, prepared.facts.memories
    arrays: dict[str, Array] = {}
    states: dict[str, States] = {}
    for buffer in func.buffers:
        arrays[buffer.name], states[buffer.name] = read_back(
            buffer, prepared.bound.symbols, prepared.storages[memories.of(buffer)]
        )
    written = frozenset(b.name for b in func.buffers if memories.of(b) in memories.written)
    return Result(arrays, states, written, iterations)


@dataclass(frozen=True, slots=True)
class FillingRuns:
    """The results of runs with several fillings, and for each buffer which cells differ between any two of them."""

    results: tuple[Result, ...]
    depends: Mapping[str, npt.NDArray[np.bool_]]


def run_fillings(
    func: PrimFunc, arguments: Arguments, fillings: Sequence[Filling] | None = None, **options: Any
) -> FillingRuns:
    """Run once for each filling (`filling.all_fillings` when not given) with `run`'s other options."""
    chosen = tuple(fillings) if fillings is not None else all_fillings()
    results = tuple(run(func, arguments, filling=filling, **options) for filling in chosen)
    depends = {}
    for name, first in results[0].arrays.items():
        differs = np.zeros(first.shape, dtype=np.bool_)
        for other in results[1:]:
            differs |= ~same_values(first, other.arrays[name])
        depends[name] = differs
    return FillingRuns(results, depends)


def same_values(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Value identity, cell by cell: +0 is not -0, a NaN is any NaN. Both of one shape and type."""
    if a.dtype.kind not in "fV" and a.dtype != np.dtype("bfloat16"):
        return np.asarray(a == b)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        x, y = a.astype(np.float64), b.astype(np.float64)
    return np.asarray(((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y)))


def ulps_apart(a: Array, b: Array) -> Array:
    """How many numbers of the type lie between two arrays, cell by cell; 0 for equal bits and for two NaNs.

    The zeros are one apart, and a NaN is as far from a number as can be.
    """
    if a.dtype.kind in "iub":
        return (
            np.abs(a.astype(object) - b.astype(object)).astype(np.uint64)
            if a.dtype.itemsize == 8
            else _integer_distance(a, b)
        )
    ordered_a, ordered_b = _ordered(a), _ordered(b)
    if a.dtype.itemsize == 8:
        distance = np.abs(ordered_a.astype(object) - ordered_b.astype(object)).astype(np.uint64)
    else:
        distance = np.abs(ordered_a - ordered_b).astype(np.uint64)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    return np.where(nan_a & nan_b, np.uint64(0), np.where(nan_a | nan_b, np.uint64(np.iinfo(np.int64).max), distance))


def _integer_distance(a: Array, b: Array) -> Array:
    return np.abs(a.astype(np.int64) - b.astype(np.int64)).astype(np.uint64)


def _ordered(values: Array) -> Array:
    """Floats as integers in the same order: sign and magnitude turned into one line, -0.0 just below +0.0."""
    width = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view({2: np.int16, 4: np.int32, 8: np.int64}[width]).astype(np.int64)
    magnitude = bits & ((1 << (8 * width - 1)) - 1)
    return np.where(bits < 0, -magnitude - 1, magnitude)
