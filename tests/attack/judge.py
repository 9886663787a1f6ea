"""The judge: runs the programs of a rewrite on the same inputs and says whether they can be told apart. Knows nothing
of proofs.

Inputs are placed by logical meaning (the old arrays, moved through the witness's cell maps where the layout of a
parameter changes), padding by its contract. A difference is one in an observable cell, in value identity, or a fault
that only the new program has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import HANDLE, DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, FloatImm, IntImm, Var
from layoutproof.ir.interp.layout_cells import cells_of, padding_cells
from layoutproof.ir.interp.memory import Fault, Fill, Filling
from layoutproof.ir.interp.run import Result, run, same_values
from layoutproof.ir.intrinsics import Undef
from layoutproof.ir.layout_record import Cell, layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.rewrite import CellMap, Rewrite
from layoutproof.ir.visit import free_variables, stores_in, walk
from tests.attack.contracts import Arrays, satisfy

MODES = (
    "tame",
    "small",
    "special",
    "special",
    "negative",
    "minus zero",
    "extreme",
    "index",
    "denormal",
    "ones",
    "nan last",
    "index",
)
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)
SCALARS = (*EXTENTS, -1, -3, -6)  # of which no extent of a parameter is one
LIMIT = 2_000_000


@dataclass(frozen=True)
class Difference:
    """What tells two programs apart."""

    what: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        inputs = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in self.arguments.items()}
        return f"{self.what}; inputs {inputs}"


@dataclass(frozen=True)
class Judgement:
    """The outcome of some trials: `difference` where one told the programs apart, and how many old runs were valid."""

    difference: Difference | None
    valid: int


def judge(
    rewrite: Rewrite,
    rng: Random,
    *,
    trials: int = 12,
    where: Expr | None = None,
    fast_math: frozenset[str] = frozenset(),
    given: Mapping[str, Any] | None = None,
) -> Judgement:
    """Run both programs `trials` times; stops at the first difference.

    `fast_math` (names) restrict inputs and relax the comparison; `given` are arrays of the old program by name, in
    place of random ones.
    """
    by_law = illegal(rewrite)
    if by_law is not None:
        return Judgement(Difference(by_law, {}), 0)
    valid = 0
    calm = bool(fast_math & {"nnan", "ninf", "reassoc"})
    for trial in range(trials):
        mode = MODES[trial % len(MODES)] + (_CALM_FLOATS if calm else "")
        try:
            difference = _trial(rewrite, rng, mode, where, fast_math, given if given is not None else {})
        except _NotValid:
            continue
        valid += 1
        if difference is not None:
            return Judgement(difference, valid)
    return Judgement(None, valid)


def illegal(rewrite: Rewrite) -> str | None:
    """What no run shows: an input that becomes written, changed parameters, and invented contracts."""
    old, new, declared = rewrite.old, rewrite.new, rewrite.witness.changes_interface
    if old.params != new.params:
        return "the parameters differ"
    for before, after in zip(old.buffers, new.buffers, strict=True):
        if before.name not in declared and (before.shape, before.dtype) != (after.shape, after.dtype):
            return f"{before.name} changes its layout undeclared"
    old_data = {b.data.name for b in old.buffers}
    extra = {s.buffer.data.name for s in stores_in(new.body)} - {s.buffer.data.name for s in stores_in(old.body)}
    if extra & old_data:
        return f"{min(extra & old_data)} is only read by the old program"
    kept = layout_records(new)
    for name, record in layout_records(old).items():
        after_record = kept.get(name)
        if name in old_data and (after_record is None or after_record.steps[: len(record.steps)] != record.steps):
            return f"the record of {name} is another one"
    return None


class _NotValid(Exception):
    """The old program faults on the input, or no input was found."""


def _trial(
    rewrite: Rewrite, rng: Random, mode: str, where: Expr | None, fast_math: frozenset[str], given: Mapping[str, Any]
) -> Difference | None:
    old, new = rewrite.old, rewrite.new
    symbols = _symbols(old, rng, where)
    scalars = {p.name: _scalar(p, symbols, rng, mode) for p in old.params if p.dtype != HANDLE}
    arrays = {b.name: _array(b, symbols, rng, mode) for b in old.buffers}
    arrays |= {name: np.array(value, dtype=arrays[name].dtype) for name, value in given.items()}
    _fill_contracts(old, arrays, symbols)
    satisfy(old, arrays, symbols)
    placed = _placed(rewrite, arrays, symbols, rng, mode)
    _fill_contracts(new, placed, symbols)
    satisfy(new, placed, symbols)
    broken = _broken_contract(new, placed, symbols)
    if broken is not None:
        return Difference(broken, {**placed, **symbols})
    names = {v.name for v in sizes_of(old)} & set(symbols)
    extra = {**{n: symbols[n] for n in names if n not in scalars}, **scalars}
    fillings = [Filling(Fill.RANDOM, 3)]
    if _is_open(old) or _is_open(new):
        fillings += [Filling(Fill.NAN), Filling(Fill.INFINITY), Filling(Fill.RANDOM, 4), Filling(Fill.ZERO)]
    try:
        before = [run(old, {**arrays, **extra}, filling=f, limit=LIMIT) for f in fillings]
    except (Fault, LayoutproofError) as fault:
        raise _NotValid from fault
    shown = {**arrays, **extra}
    names_new = {v.name for v in sizes_of(new)}
    extra_new = {k: v for k, v in extra.items() if k in scalars or k in names_new}
    disagree = 0
    difference: Difference | None = None
    for filling in fillings:
        try:
            after = run(new, {**placed, **extra_new}, filling=filling, limit=4 * LIMIT)
        except Fault as fault:
            return Difference(f"the new program faults: {fault.kind} {fault.message} {fault.values}", shown)
        found = _compare(rewrite, before, after, symbols, fast_math)
        if found is not None:
            disagree += 1
            difference = Difference(found, shown)
    # A value that an undefined cell happens to have tells nothing; that the result depends on it does.
    return difference if disagree >= min(2, len(fillings)) else None


@lru_cache(maxsize=2)  # asked of the same two programs in each trial
def _is_open(func: PrimFunc) -> bool:
    records = layout_records(func).values()
    return any(isinstance(n, Undef) for n in walk(func.body)) or any(
        s.padding is Cell.PAD_UNDEF for r in records for s in r.steps
    )


def sizes_of(func: PrimFunc) -> list[Var]:
    """Variables of shapes, and scalar parameters."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for extent in buffer.shape:
            found.update(dict.fromkeys(free_variables(extent)))
    found.update(dict.fromkeys(p for p in func.params if p.dtype.is_integer))
    return list(found)


def _symbols(func: PrimFunc, rng: Random, where: Expr | None) -> dict[str, int]:
    names = [v.name for v in sizes_of(func)]
    extents = {extent.name for buffer in func.buffers for extent in buffer.shape if isinstance(extent, Var)}
    for _ in range(60):
        symbols = {name: rng.choice(EXTENTS if name in extents else SCALARS) for name in names}
        if where is None or evaluate(where, symbols):
            return symbols
    raise _NotValid


def _scalar(param: Var, symbols: Mapping[str, int], rng: Random, mode: str) -> Any:
    if param.dtype.is_integer:
        return symbols[param.name]
    return float(_values(param.dtype, 1, rng, mode)[0])


def shape_of(buffer: Buffer, symbols: Mapping[str, int]) -> tuple[int, ...]:
    """The shape in numbers, lanes as a last axis."""
    shape = tuple(int(evaluate(e, symbols)) for e in buffer.shape)
    return (*shape, buffer.dtype.lanes) if buffer.dtype.lanes > 1 else shape


def _array(buffer: Buffer, symbols: Mapping[str, int], rng: Random, mode: str) -> NDArray[Any]:
    shape = shape_of(buffer, symbols)
    if any(n < 0 for n in shape):
        raise _NotValid
    return _values(buffer.dtype.element, int(np.prod(shape, dtype=np.int64)), rng, mode).reshape(shape)


def _values(dtype: DType, count: int, rng: Random, mode: str) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    if dtype.is_bool:
        return np.array([rng.random() < 0.5 for _ in range(count)], dtype=kind)
    if dtype.is_integer:
        return np.array([_integer(dtype, rng, mode) for _ in range(count)], dtype=kind)
    with np.errstate(over="ignore"):
        values = np.array([_float(dtype, rng, mode) for _ in range(count)], dtype=np.float64).astype(kind)
    if mode == "nan last" and count:
        values[-1] = np.nan
        values[count // 2] = np.nan
    return values


def _integer(dtype: DType, rng: Random, mode: str) -> int:
    low, high = dtype.min_int, dtype.max_int
    match mode.removesuffix(_CALM_FLOATS):
        case "special" | "extreme" | "nan last":
            return rng.choice([low, high, 0, 1, low + 1, rng.randint(low, high), max(low, -1)])
        case "negative" | "minus zero":
            return rng.randint(max(low, -9), -1 if low < 0 else 3)
        case "ones":
            return rng.choice([1, max(low, -1)])
        case "index" | "denormal":
            return rng.randint(0, 3)
        case _:
            return rng.randint(max(low, -6), 6)


_SPECIAL = (
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    1.0,
    -1.0,
    3.0e38,
    -3.0e38,
    1e-45,
    -1e-45,
    0.5,
    65504.0,
    -65504.0,
)


# Where executions with NaN or infinities do not count, or sums are regrouped, floats are such that neither arises nor
# anything rounds.
_CALM_FLOATS = "!"
_CALM = {"tame!": "tame", "negative!": "negative", "ones!": "ones", "minus zero!": "minus zero", "special!": "exact"}


def _float(dtype: DType, rng: Random, mode: str) -> float:
    match _CALM.get(mode, mode):
        case "special":
            return rng.choice(_SPECIAL) if rng.random() < 0.5 else rng.choice([1.0, 2.0, -3.0, 0.0, -0.0])
        case "negative":
            return -rng.choice([0.5, 1.0, 2.0, 7.25, 100.0])
        case "minus zero":
            return rng.choice([-0.0, -0.0, -0.0, 0.0])
        case "extreme":
            return rng.choice([3.4e38, -3.4e38, 1e30, 65504.0, -65504.0, 1.0])
        case "denormal":
            return rng.choice([1e-45, -1e-45, 1e-38, 6e-8, -6e-8, -0.0, 1.0, 2.0**-75, -1.5 * 2.0**-75])
        case "ones":
            return rng.choice([1.0, -1.0])
        case "tame" | "nan last":
            return rng.uniform(-4.0, 4.0)
        case "exact" | "extreme!":
            return float(rng.randint(-2, 2))
        case _:
            return float(rng.randint(-4, 4))


def _fill_contracts(func: PrimFunc, arrays: Arrays, symbols: Mapping[str, int]) -> None:
    """Padding of inputs holds what its contract says, also where the assumption is no part of the text any more."""
    written = {s.buffer.data.name for s in stores_in(func.body)}
    for buffer, cells, value in _constant_contracts(func, symbols):
        if buffer.data.name not in written:
            arrays[buffer.name].reshape(-1)[cells.reshape(-1) == Cell.PAD_VALUE] = value


def _constant_contracts(func: PrimFunc, symbols: Mapping[str, int]) -> list[tuple[Buffer, NDArray[np.uint8], Any]]:
    """Transforms of parameters whose padding holds a constant: the parameter, its cells with that padding alone, and
    the constant.
    """
    found: list[tuple[Buffer, NDArray[np.uint8], Any]] = []
    for buffer in func.buffers:
        record = layout_records(func).get(buffer.data.name)
        for step in record.steps if record is not None else ():
            pad = step.contract
            if record is None or pad is None or not isinstance(pad.value, FloatImm | IntImm):
                continue
            alone = replace(record, steps=tuple(s if s is step else replace(s, contract=None) for s in record.steps))
            try:
                cells = cells_of(alone, symbols)
            except LayoutproofError as problem:  # a scalar may be negative that only a record's extents are made of
                raise _NotValid from problem
            if cells.size == np.prod(shape_of(buffer, symbols)):
                found.append((buffer, cells, pad.value.value))
    return found


def _broken_contract(func: PrimFunc, arrays: Arrays, symbols: Mapping[str, int]) -> str | None:
    """What the function assumes of padding that its contract does not say."""
    written = {s.buffer.data.name for s in stores_in(func.body)}
    for buffer, cells, value in _constant_contracts(func, symbols):
        held = arrays[buffer.name].reshape(-1)[cells.reshape(-1) == Cell.PAD_VALUE]
        wrong = ~same_values(held, np.full(held.shape, value, dtype=held.dtype))
        if buffer.data.name not in written and wrong.any():
            return f"padding of {buffer.name} is assumed to be {held[wrong][0]!r}, its contract says {value!r}"
    return None


def _cell_map(rewrite: Rewrite, data: str) -> CellMap | None:
    return next((c for c in rewrite.witness.cells if c.old_data == data), None)


def _positions(
    moved: CellMap, shape: Sequence[int], box: Sequence[int], symbols: Mapping[str, int]
) -> NDArray[np.int64]:
    """Where each old cell is in the new memory; -1 where it has no place."""
    values = moved.cells.output_values(tuple(shape), symbols)
    inside = np.ones((1,) * len(shape), dtype=np.bool_)
    flat = np.zeros((1,) * len(shape), dtype=np.int64)
    for extent, value in zip(box, values, strict=True):
        flat = flat * extent + value
        inside = inside & (value >= 0) & (value < extent)
    return np.broadcast_to(np.where(inside, flat, -1), tuple(shape)).reshape(-1)


def _placed(rewrite: Rewrite, arrays: Arrays, symbols: Mapping[str, int], rng: Random, mode: str) -> Arrays:
    placed: Arrays = {}
    for before, after in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True):
        fresh = _array(after, symbols, rng, mode)
        given = arrays[before.name]
        moved = _cell_map(rewrite, before.data.name)
        if moved is not None and before.name in rewrite.witness.changes_interface and given.size:
            where = _positions(moved, given.shape, fresh.shape, symbols)
            flat = fresh.reshape(-1)
            flat[where[where >= 0]] = given.reshape(-1)[where >= 0]
        else:
            shared = min(fresh.size, given.size)
            fresh.reshape(-1)[:shared] = given.reshape(-1)[:shared]
        placed[after.name] = fresh
    return placed


def _compare(
    rewrite: Rewrite, olds: list[Result], new: Result, symbols: Mapping[str, int], fast_math: frozenset[str]
) -> str | None:
    cells = padding_cells(rewrite.old, symbols)
    for before, after in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True):
        first = olds[0].arrays[before.name].reshape(-1)
        looked = np.ones(first.shape, dtype=np.bool_)
        for other in olds[1:]:
            looked &= same_values(first, other.arrays[before.name].reshape(-1))
        if before.data.name in cells and cells[before.data.name].size == first.size:
            kinds = cells[before.data.name].reshape(-1)
            looked &= (kinds == Cell.LOGICAL) | (kinds == Cell.PAD_VALUE)
        moved = _cell_map(rewrite, before.data.name)
        found = new.arrays[after.name].reshape(-1)
        where = np.arange(first.size)
        if moved is not None and before.name in rewrite.witness.changes_interface and first.size:
            where = _positions(moved, olds[0].arrays[before.name].shape, new.arrays[after.name].shape, symbols)
        if (where[looked] < 0).any() or (where.size and where.max() >= found.size):
            return f"a cell of {before.name} has no place in the new layout"
        wrong = looked & ~_same(first, found[where], fast_math)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            return f"{before.name}, element {at}: {first[at]!r} before, {found[where[at]]!r} after"
    return _postconditions(rewrite, new, symbols)


def _same(a: NDArray[Any], b: NDArray[Any], fast_math: frozenset[str]) -> NDArray[np.bool_]:
    same = same_values(a, b)
    if a.dtype.kind in "biu" or not fast_math:
        return same
    x, y = a.astype(np.float64), b.astype(np.float64)
    if "nsz" in fast_math:
        same = same | ((x == 0) & (y == 0))
    if "reassoc" in fast_math:
        with np.errstate(invalid="ignore"):
            same = same | (np.abs(x - y) <= 2e-2 * (1 + np.abs(x)))
    if fast_math & {"nnan", "ninf"}:
        same = same | ~np.isfinite(x)
    return np.asarray(same)


def _postconditions(rewrite: Rewrite, new: Result, symbols: Mapping[str, int]) -> str | None:
    """Padding that this step introduces with a value as its contract holds it at the end, where the function writes the
    buffer.
    """
    old = layout_records(rewrite.old)
    written = {s.buffer.data.name for s in stores_in(rewrite.old.body)}
    for buffer, cells, value in _constant_contracts(rewrite.new, symbols):
        name = buffer.data.name
        if name in written and (name not in old or len(old[name].steps) < len(layout_records(rewrite.new)[name].steps)):
            held = new.arrays[buffer.name].reshape(-1)[cells.reshape(-1) == Cell.PAD_VALUE]
            wanted = np.full(held.shape, value, dtype=held.dtype)
            if not same_values(held, wanted).all():
                return f"padding of {buffer.name} is {held[~same_values(held, wanted)][0]!r}, its contract {value!r}"
    return None
