"""The judge of comparisons: both programs run in the interpreter on the same inputs, moved from one layout to the
other.

It knows nothing of proofs, witnesses and searches. Layouts and contracts are those that an answer holds with; padding
of what is only read is filled by its contract, and where a contract gives a value, the padding must hold it at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import HANDLE, DType, numpy_dtype
from layoutproof.ir.expr import FloatImm, IntImm, Var
from layoutproof.ir.interp.memory import Fault, Fill, Filling
from layoutproof.ir.interp.run import Result, run, same_values
from layoutproof.ir.layout_record import Contract, LayoutRecord, LayoutStep, layout_records, with_record
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import stores_in
from layoutproof.lowering.arith.known_facts import constants_of
from layoutproof.lowering.layout.pad_value import read_pad_value
from tests.attack.contracts import Arrays, satisfy
from tests.attack.judge import shape_of, sizes_of

EXTENTS = (1, 2, 3, 5, 7, 8, 9, 13)
FILLINGS = (Filling(Fill.RANDOM, 3), Filling(Fill.RANDOM, 4))
LARGE = 100_000
"""Iterations beyond which programs run a few times only, with one filling of what is undefined."""
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3.0e38, -3.0e38, 1e-45, 0.5, 2.0, -3.0)
MODES = ("tame", "whole", "special", "negative", "zeros", "extreme", "tame", "special")
CALM = ("whole", "small", "negative whole", "whole")
"""Where NaN, infinities and what rounds do not count."""


@dataclass(frozen=True)
class Laid:
    """How a parameter of the program before lies in the one after: the map's text, and the contract (None: hands off;
    undef; a value).
    """

    index_map: str
    contract: str | None


@dataclass(frozen=True)
class Case:
    """Two programs whose parameters belong together: `names` from before to after, `laid` by the name before."""

    before: PrimFunc
    after: PrimFunc
    names: Mapping[str, str]
    laid: Mapping[str, Laid]

    def pairs(self) -> Iterator[tuple[Buffer, Buffer]]:
        """The parameters' buffers, before and after."""
        there = {b.name: b for b in self.after.buffers}
        for buffer in self.before.buffers:
            yield buffer, there[self.names[buffer.name]]


def case_of(before: PrimFunc, after: PrimFunc, match: Mapping[str, str], laid: Mapping[str, Laid]) -> Case:
    """Parameters belong together by `match` (the name after -> the name before), the others by their places."""
    matched = {old: new for new, old in match.items()}
    rest = [b.name for b in after.buffers if b.name not in match]
    names = {b.name: matched[b.name] if b.name in matched else rest.pop(0) for b in before.buffers}
    return Case(before, _with_records(before, after, names, laid), names, laid)


def _with_records(before: PrimFunc, after: PrimFunc, names: Mapping[str, str], laid: Mapping[str, Laid]) -> PrimFunc:
    """The program after, with what its callers are told of layouts in the attribute by which the interpreter watches
    padding.
    """
    there = {b.name: b for b in after.buffers}
    for buffer in before.buffers:
        new = there[names[buffer.name]]
        if buffer.name in laid and new.data.name not in layout_records(after):
            said = laid[buffer.name]
            step = LayoutStep(
                parse_index_map(said.index_map, symbols=constants_of(before)), new.shape, _contract(said.contract, new)
            )
            record = LayoutRecord(buffer.shape, (step,))
            after = replace(after, attrs=with_record(after, new.data.name, record))
    return after


def _contract(contract: str | None, buffer: Buffer) -> Contract | None:
    return Contract.undef(buffer.dtype) if contract == "undef" else read_pad_value(contract, buffer, (), ())


def pad_number(contract: str | None, buffer: Buffer) -> Any:
    """The number that a contract promises; None where it promises none. Raises ValueError for one that depends on the
    place.
    """
    pad = read_pad_value(contract, buffer, (), ()) if contract != "undef" else None
    if pad is None or pad.is_undef:
        return None
    if not isinstance(pad.value, FloatImm | IntImm):
        raise ValueError(f"{contract} is no number: it promises something else at each place")
    return pad.value.value


# ---- trials


def difference(case: Case, rng: Random, *, trials: int = 8, fast_math: frozenset[str] = frozenset()) -> str | None:
    """What tells the programs apart, None where no trial does. Under fast-math assumptions, inputs are calm and zeros
    have no sign.

    Raises ValueError where the program before cannot be run at all: nothing would be judged.
    """
    unlawful = _unlawful(case)
    if unlawful is not None:
        return unlawful
    modes, iterations = (CALM if fast_math else MODES), None
    for number in range(trials):
        large = iterations is not None and iterations > LARGE
        if large and number >= 3:
            break
        try:
            iterations, found = _trial(
                case, rng, modes[number % len(modes)], fast_math, FILLINGS[:1] if large else FILLINGS
            )
        except _NotValid:
            continue
        if found is not None:
            return found
    if iterations is None:
        raise ValueError("no input was found on which the program before runs")
    return None


class _NotValid(Exception):
    """The program before faults on the input."""


def _unlawful(case: Case) -> str | None:
    """An input that comes to be written is a difference for whoever keeps it in memory that is not to change."""
    written = [{s.buffer.data.name for s in stores_in(f.body)} for f in (case.before, case.after)]
    for old, new in case.pairs():
        if new.data.name in written[1] and old.data.name not in written[0]:
            return f"{new.name} is written, which the program before only reads"
    return None


def _trial(
    case: Case, rng: Random, mode: str, fast_math: frozenset[str], fillings: Sequence[Filling]
) -> tuple[int, str | None]:
    """How many iterations the program before had, and what tells the programs apart."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    symbols = {v.name: rng.choice(EXTENTS) for v in sizes_of(case.before)}
    scalars = {p.name: _scalar(p, symbols, numbers, mode) for p in case.before.params if p.dtype != HANDLE}
    arrays = {b.name: values(b.dtype, shape_of(b, symbols), numbers, mode) for b in case.before.buffers}
    satisfy(case.before, arrays, symbols)
    placed = _placed(case, arrays, symbols, numbers, mode)
    known = {**{n: k for n, k in symbols.items() if n not in scalars}, **scalars}
    try:
        before = [_run(case.before, arrays, known, f) for f in fillings]
    except (Fault, LayoutproofError) as fault:
        raise _NotValid from fault
    iterations = before[0].iterations
    for filling in fillings:
        try:
            after = _run(case.after, placed, known, filling, 20 * iterations + 2_000_000)
        except Fault as fault:
            return iterations, f"the program after faults: {fault.kind} {fault.message}"
        except LayoutproofError as stopped:
            return iterations, f"the program after does not end: {stopped.diagnostics[0].message}"
        found = _compared(case, before, after, symbols, fast_math)
        if found is not None:
            return iterations, found
    return iterations, None


def _run(func: PrimFunc, arrays: Arrays, known: Mapping[str, Any], filling: Filling, limit: int = 20_000_000) -> Result:
    filling.restart()
    names = {v.name for v in sizes_of(func)} | {p.name for p in func.params}
    return run(func, {**arrays, **{n: k for n, k in known.items() if n in names}}, filling=filling, limit=limit)


# ---- inputs


def _scalar(param: Var, symbols: Mapping[str, int], numbers: np.random.Generator, mode: str) -> Any:
    return symbols[param.name] if param.dtype.is_integer else float(values(param.dtype, (1,), numbers, mode)[0])


def values(dtype: DType, shape: tuple[int, ...], numbers: np.random.Generator, mode: str) -> NDArray[Any]:
    """Random values of a kind of numbers: see MODES."""
    kind = numpy_dtype(dtype.element)
    if dtype.is_bool:
        return numbers.integers(0, 2, shape).astype(kind)
    if dtype.is_integer:
        low, high = max(dtype.min_int, -(1 << 62)), min(dtype.max_int, 1 << 62)
        wide = mode in ("special", "extreme")
        return numbers.integers(low if wide else max(low, -6), high if wide else 7, shape).astype(kind)
    with np.errstate(over="ignore"):
        return _floats(shape, numbers, mode).astype(kind)


def _floats(shape: tuple[int, ...], numbers: np.random.Generator, mode: str) -> NDArray[np.float64]:
    match mode:
        case "special":
            return np.where(
                numbers.random(shape) < 0.5, numbers.choice(_SPECIAL, shape), numbers.integers(-3, 4, shape)
            )
        case "negative" | "negative whole":
            return -np.abs(_floats(shape, numbers, "whole" if mode.endswith("whole") else "tame")) - 1.0
        case "zeros":
            return numbers.choice([0.0, -0.0, -0.0], shape)
        case "extreme":
            return numbers.choice([3.4e38, -3.4e38, 1e30, 65504.0, 1.0, 1e-40], shape)
        case "whole":
            return numbers.integers(-9, 10, shape).astype(np.float64)
        case "small":
            return numbers.integers(-1, 2, shape).astype(np.float64)
        case _:
            return numbers.uniform(-4.0, 4.0, shape)


def _positions(
    laid: Laid, logical: tuple[int, ...], box: tuple[int, ...], symbols: Mapping[str, int]
) -> NDArray[np.int64]:
    """Where each cell before is after, as flat numbers."""
    index_map = parse_index_map(laid.index_map, symbols=tuple(symbols))
    return np.asarray(index_map.flat_positions(logical, box, symbols)).reshape(-1)


def _placed(case: Case, arrays: Arrays, symbols: Mapping[str, int], numbers: np.random.Generator, mode: str) -> Arrays:
    placed: Arrays = {}
    for old, new in case.pairs():
        given = arrays[old.name]
        fresh = values(new.dtype, shape_of(new, symbols), numbers, mode)
        flat = fresh.reshape(-1)
        if old.name in case.laid:
            number = pad_number(case.laid[old.name].contract, new)
            if number is not None and not _is_written(case.before, old):
                flat[:] = number
            flat[_positions(case.laid[old.name], given.shape, fresh.shape, symbols)] = given.reshape(-1)
        else:
            flat[:] = given.reshape(-1)
        placed[new.name] = fresh
    return placed


def _is_written(func: PrimFunc, buffer: Buffer) -> bool:
    return any(s.buffer.data is buffer.data or s.buffer.data.name == buffer.data.name for s in stores_in(func.body))


# ---- results


def _compared(
    case: Case, olds: Sequence[Result], after: Result, symbols: Mapping[str, int], fast_math: frozenset[str]
) -> str | None:
    for old, new in case.pairs():
        first, found = olds[0].arrays[old.name], after.arrays[new.name]
        sure = np.ones(first.size, dtype=np.bool_)
        for other in olds[1:]:
            sure &= same_values(first.reshape(-1), other.arrays[old.name].reshape(-1))
        held = found.reshape(-1)
        if old.name in case.laid:
            places = _positions(case.laid[old.name], first.shape, found.shape, symbols)
            owed = _postconditions(case, old, new, held, places)
            if owed is not None:
                return owed
            held = held[places]
        wrong = sure & ~_alike(first.reshape(-1), held, fast_math)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            index = tuple(map(int, np.unravel_index(at, first.shape)))
            return f"{old.name}{list(index)} is {held[at]!r}, and was {first.reshape(-1)[at]!r}"
    return None


def _postconditions(case: Case, old: Buffer, new: Buffer, held: NDArray[Any], places: NDArray[np.int64]) -> str | None:
    number = pad_number(case.laid[old.name].contract, new)
    if number is None:
        return None
    padding = np.ones(held.size, dtype=np.bool_)
    padding[places] = False
    wanted = np.full(held.size, number, dtype=held.dtype)
    wrong = padding & ~same_values(held, wanted)
    return f"padding of {new.name} is {held[wrong][0]!r}, its contract says {number!r}" if wrong.any() else None


def _alike(a: NDArray[Any], b: NDArray[Any], fast_math: frozenset[str]) -> NDArray[np.bool_]:
    same = same_values(a, b)
    if not fast_math or a.dtype.kind in "biu":
        return same
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= 1e-3 * (1 + np.abs(x))
    if fast_math & {"nsz", "reassoc"}:
        same = same | (near & ((x == y) | ("reassoc" in fast_math)))
    return np.asarray(same | ~np.isfinite(x))
