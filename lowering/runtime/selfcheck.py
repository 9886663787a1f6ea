"""A kernel compared with the reference interpreter on random inputs before it is used, with guard zones around arrays.

Small concrete functions are compared in full, symbolic ones at small extents, large ones in chosen cells, where no
index, loop bound or divisor depends on memory. The report names what was not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from layoutproof.ir.buffer import BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Binary, Cast, Expr, IntImm
from layoutproof.ir.interp.layout_cells import padding_cells
from layoutproof.ir.interp.memory import DEFINED, FORBIDDEN, Fault, Fill, Filling
from layoutproof.ir.interp.run import Result, run, ulps_apart
from layoutproof.ir.interp.slice_cells import count_instances
from layoutproof.ir.interp.slicing import run_slice
from layoutproof.ir.interval import Interval
from layoutproof.ir.layout_record import Cell
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, For, Let
from layoutproof.ir.visit import free_variables, loads_in, walk
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.runtime.arrays import Array, lane_shape
from layoutproof.lowering.runtime.enclosure import Enclosed, NoEnclosureError, enclose, outside

if TYPE_CHECKING:
    from layoutproof.lowering.runtime.kernel import Kernel


_LEAST, _MOST = 256, 1 << 20  # bytes of ground on each side
_ALIGNMENT = 64
_PATTERN = 0xA5

CELLS = 40
"""Cells of each output that are compared."""
MOST_INSTANCES = 300_000_000  # a second or so of a kernel's time
MOST_BYTES = 256 << 20  # of random inputs
_DIVISIONS = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD)
LIMIT = 100_000
"""Statement instances up to which a function is interpreted in full."""
_EXACTLY, _ENCLOSED = "bit for bit", "within the enclosure of the program"
_APART = (5, 3, 7, 2, 11, 4, 6)  # tried first: with one number for all symbols, one taken for another would not show
_EXTENTS = (5, 3, 2, 1)  # tried for symbols, the largest first
_MORE_EXTENTS = (4, 8, 6, 1, 3, 5, 16, 7, 2, 12, 32, 64, 128, 0)  # where an assumption rules those out
_MOST_TRIES = 2_000
_PERIOD = 1_000_003  # a prime, so that neighbours in no layout have the same values


class GuardedArrays:
    """Copies of some arrays, by name, each with a margin on both sides. Values that are no arrays are kept."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.arrays: dict[str, Any] = {}
        self._grounds: dict[str, tuple[npt.NDArray[np.uint8], int]] = {}
        for name, value in arguments.items():
            self.arrays[name] = self._copy(name, value) if isinstance(value, np.ndarray) else value

    def _copy(self, name: str, array: Array) -> Array:
        ground = _ground(array.nbytes)
        whole = np.full(2 * ground + array.nbytes + _ALIGNMENT, _PATTERN, dtype=np.uint8)
        # numpy's own arrays begin at a multiple of 16 at least; the copy begins at one of a cache line.
        start = ground + -(whole.ctypes.data + ground) % _ALIGNMENT
        inside = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[...] = array
        self._grounds[name] = (whole, start)
        return inside

    def trespassed(self) -> tuple[str, int] | None:
        """The first array beside which something was written, and the position in bytes: negative before its first
        byte, else after its last one (0 is the first after). None if there is none.
        """
        for name, (whole, start) in self._grounds.items():
            end = start + self.arrays[name].nbytes
            before, behind = (np.flatnonzero(part != _PATTERN) for part in (whole[:start], whole[end:]))
            if before.size:
                return name, int(before[-1]) - start
            if behind.size:
                return name, int(behind[0])
        return None


def _ground(size: int) -> int:
    return -(-min(max(size, _LEAST), _MOST) // _ALIGNMENT) * _ALIGNMENT


def is_safe_on_any_data(func: PrimFunc) -> bool:
    """Whether no index, loop bound, divisor, shift or integer from a float depends on memory, and no integer is passed
    in.
    """
    mapped = dict(func.buffer_map)
    if any(p not in mapped and not p.dtype.is_float for p in func.params):
        return False
    named = {n.var.name for n in walk(func.body) if isinstance(n, Let) and any(True for _ in loads_in(n.value))}
    return not named and not any(True for part in _delicate(func) for _ in loads_in(part))


def _delicate(func: PrimFunc) -> Iterator[Expr]:
    """Expressions whose value decides whether a run is defined."""
    for node in walk(func.body):
        match node:
            case BufferLoad() | BufferStore():
                yield from node.indices
            case For():
                yield from (node.start, node.extent)
            case Binary() if node.op in _DIVISIONS and not (isinstance(node.rhs, IntImm) and node.rhs.value > 0):
                yield from (node.lhs, node.rhs)
            case Binary() if node.op in (BinaryOp.SHL, BinaryOp.SHR) and not isinstance(node.rhs, IntImm):
                yield node.rhs
            case Cast() if node.value.dtype.is_float and node.dtype.is_integer:
                yield node.value
            case _:
                pass


def chosen_cells(func: PrimFunc, name: str, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The first and the last cell of a parameter and others at random, none of them padding."""
    data = next(b.data.name for b in func.buffers if b.name == name)
    records = padding_cells(func, {})
    wanted = np.flatnonzero(records[data].reshape(-1) == Cell.LOGICAL) if data in records else None
    count = wanted.size if wanted is not None else int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return []
    generator = np.random.default_rng(count)
    picked = np.unique(np.concatenate([[0, count - 1], generator.integers(0, count, CELLS - 2)]))
    flat = wanted[picked] if wanted is not None else picked
    if not shape:
        return [()]
    return [tuple(int(axis) for axis in place) for place in zip(*np.unravel_index(flat, shape), strict=True)]


def slices(
    func: PrimFunc, arguments: Mapping[str, object], cells: Mapping[str, list[tuple[int, ...]]]
) -> dict[str, Array] | None:
    """The interpreter's values of the cells; None where they depend on undefined values. Raises Fault and
    LayoutproofError.
    """
    first = run_slice(func, dict(arguments), dict(cells), filling=Filling(Fill.RANDOM))
    if any(bool((found == Cell.PAD_UNDEF).any()) for found in padding_cells(func, {}).values()):
        second = run_slice(func, dict(arguments), dict(cells), filling=Filling(Fill.ZERO))
        if any(np.asarray(first[name]).tobytes() != np.asarray(second[name]).tobytes() for name in cells):
            return None
    return {name: np.asarray(first[name]) for name in cells}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The kernel's name and its compiler, for messages."""

    func: PrimFunc
    compiler: str

    def require_equal(
        self,
        parameter: Parameter,
        places: npt.NDArray[Any],
        actual: Array,
        wanted: Array,
        inside: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Fail at the first of `places` where the values differ and are not `inside` an enclosure."""
        apart = ulps_apart(actual, wanted).reshape(-1) != 0
        wrong = np.flatnonzero(apart if inside is None else apart & ~inside.reshape(-1))
        if wrong.size:
            first = int(wrong[0])
            index = [int(axis) for axis in places[first // (actual.size // len(places))]]
            raise error(
                codes.SELF_CHECK,
                f"the kernel of {self.func.name} and the reference interpreter disagree: {parameter.name}{index} is "
                f"{actual.reshape(-1)[first]!s}, the program's value is {wanted.reshape(-1)[first]!s}",
                help=f"{self.compiler} or layoutproof is at fault: please report it with the program; check=False "
                "builds all the same",
            )

    def refuse_trespass(self, name: str, place: int) -> None:
        """Fail for a write beside an array."""
        where = f"{place} bytes behind its end" if place >= 0 else f"{-place} bytes before its beginning"
        raise error(
            codes.SELF_CHECK,
            f"the kernel of {self.func.name} writes outside of {name}, {where}",
            help=f"{self.compiler} or layoutproof is at fault: please report it with the program; check=False builds "
            "all the same",
        )


def self_check(func: PrimFunc, kernel: Kernel) -> str:
    """What was compared, in words. Raises LayoutproofError (LP428) where kernel and interpreter disagree."""
    comparison = _Comparison(func, kernel.launcher.compiler)
    bounds = {p.name: p.bounds for p in kernel.source.parameters if p.is_symbol and p.bounds is not None}
    why = "not done: no small extents were found that meet what the kernel assumes"
    try:
        for symbols in _sizes(kernel, bounds):
            count, size = count_instances(func, symbols), memory_bytes(func, symbols)
            if size <= MOST_BYTES and count <= LIMIT:
                return _compare_all(comparison, kernel, symbols)
            if not bounds and size <= MOST_BYTES:
                return _compare_some(comparison, kernel, count)
            too_large = f"too large, {size / (1 << 20):,.0f} MB of arrays"
            why = f"not done: {f'{count} statement instances' if size <= MOST_BYTES else too_large}"
        return why
    except Fault as fault:
        return f"not done: the interpreter stops on random inputs: {str(fault).splitlines()[0]}"
    except NoEnclosureError as problem:
        return f"not done: results may differ, and the program has no enclosure: {problem}"
    except LayoutproofError as problem:
        if problem.diagnostics[0].code == codes.SELF_CHECK:
            raise
        return f"not done: {problem.diagnostics[0].message}"


def _sizes(kernel: Kernel, bounds: Mapping[str, Interval]) -> Iterator[dict[str, int]]:
    """Small values of the symbols that meet the kernel's requirements: one for all symbols, else a few combinations."""

    def within(numbers: Iterable[int]) -> dict[str, int]:
        return {
            name: min(max(n, limits.low), limits.high)
            for (name, limits), n in zip(bounds.items(), numbers, strict=False)
        }

    apart = [within(_APART[number % len(_APART)] for number in range(first, first + len(bounds))) for first in (0, 1)]
    alike = [*(apart if len(bounds) > 1 else []), *(within([extent] * len(bounds)) for extent in _EXTENTS)]
    good = [symbols for symbols in alike if _meets(kernel, symbols)]
    mixed = islice((within(numbers) for numbers in product(_MORE_EXTENTS, repeat=len(bounds))), _MOST_TRIES)
    yield from good if good else islice((symbols for symbols in mixed if _meets(kernel, symbols)), len(_EXTENTS))


def _meets(kernel: Kernel, symbols: Mapping[str, int]) -> bool:
    """Whether the symbols meet every requirement of the kernel on them alone."""
    required = [a.requirement for a in kernel.assumptions if a.requirement is not None]
    return all(r.failure(symbols) is None for r in required if set(r.symbols) <= set(symbols))


def memory_bytes(func: PrimFunc, symbols: Mapping[str, int]) -> int:
    """The bytes of a function's parameters and allocations, each once; those of unknown size are not counted."""
    allocated = [node.buffer for node in walk(func.body) if isinstance(node, Allocate)]
    total = 0
    for buffer in (*func.buffers, *allocated):
        if all(v.name in symbols for extent in buffer.shape for v in free_variables(extent)):
            total += prod(max(int(evaluate(extent, symbols)), 0) for extent in buffer.shape) * buffer.dtype.bytes
    return total


def _compare_all(comparison: _Comparison, kernel: Kernel, symbols: Mapping[str, int]) -> str:
    """Every cell that is defined by the program."""
    func = comparison.func
    arguments = _random_inputs(kernel, symbols)
    expected = run(func, {**arguments, **symbols})
    arrays = _run_kernel(comparison, kernel, arguments, symbols)
    enclosed = _enclosed_if_needed(func, kernel, arguments, symbols, arrays, expected)
    for parameter in kernel.source.parameters:
        if parameter.writes:
            actual, name = arrays[parameter.name], parameter.name
            defined = (expected.states[name] == DEFINED).reshape(actual.shape)
            wanted = expected.arrays[name].reshape(actual.shape)
            inside = ~outside(actual, enclosed[name])[defined] if enclosed is not None else None
            comparison.require_equal(parameter, np.argwhere(defined), actual[defined], wanted[defined], inside)
            untouchable = (expected.states[name] == FORBIDDEN).reshape(actual.shape)
            comparison.require_equal(
                parameter, np.argwhere(untouchable), actual[untouchable], arguments[name][untouchable]
            )
    where = ", ".join(f"{name} = {value}" for name, value in symbols.items())
    how = _EXACTLY if enclosed is None else _ENCLOSED
    return f"equal to the interpreter{' for ' + where if where else ''}, {how}"


def _enclosed_if_needed(
    func: PrimFunc,
    kernel: Kernel,
    arguments: Mapping[str, Any],
    symbols: Mapping[str, int],
    found: Mapping[str, Array],
    expected: Result,
) -> dict[str, Enclosed] | None:
    """The bounds of results where they differ from the interpreter's and may."""
    if not kernel.may_differ:
        return None
    for parameter in kernel.source.parameters:
        if parameter.writes:
            wanted = expected.arrays[parameter.name].reshape(-1)
            defined = expected.states[parameter.name].reshape(-1) == DEFINED
            if ulps_apart(found[parameter.name].reshape(-1)[defined], wanted[defined]).any():
                return enclose(func, {**arguments, **symbols}, kernel.inexact, limit=100 * LIMIT)
    return None


def _compare_some(comparison: _Comparison, kernel: Kernel, count: int) -> str:
    """Chosen cells of the outputs of a large function."""
    func = comparison.func
    outputs = [p for p in kernel.source.parameters if p.writes]
    shapes = {p.name: kernel.physical_shape(p.name, {}) for p in kernel.source.parameters if p.buffer is not None}
    if count > MOST_INSTANCES or not is_safe_on_any_data(func):
        return f"not done: {count} statement instances"
    cells = {p.name: chosen_cells(func, p.name, shapes[p.name]) for p in outputs}
    arguments = _random_inputs(kernel, {})
    expected = slices(func, arguments, cells)
    if expected is None:
        return "not done: chosen cells depend on undefined values"
    arrays = _run_kernel(comparison, kernel, arguments, {})
    how = _EXACTLY
    for parameter in outputs:
        name = parameter.name
        places = np.array(cells[name], dtype=np.int64).reshape(len(cells[name]), len(shapes[name]))
        actual = arrays[name][tuple(places.T)]
        wanted, inside = expected[name].reshape(actual.shape), None
        if kernel.may_differ and ulps_apart(actual, wanted).any():
            found = enclose(func, arguments, kernel.inexact, limit=100 * LIMIT, cells={name: cells[name]})
            between, how = found[name], _ENCLOSED
            inside = ~outside(actual.reshape(-1), Enclosed(between.low.reshape(-1), between.high.reshape(-1)))
        comparison.require_equal(parameter, places, actual, wanted, inside)
    return f"equal to the interpreter in {sum(len(chosen) for chosen in cells.values())} chosen cells, {how}"


def _run_kernel(
    comparison: _Comparison, kernel: Kernel, arguments: Mapping[str, Any], symbols: Mapping[str, int]
) -> dict[str, Any]:
    guarded = GuardedArrays(arguments)
    arrays = guarded.arrays
    kernel.raw(**arrays, **{name: value for name, value in symbols.items() if name not in arrays})
    trespass = guarded.trespassed()
    if trespass is not None:
        comparison.refuse_trespass(*trespass)
    return arrays


def _random_inputs(kernel: Kernel, symbols: Mapping[str, int]) -> dict[str, Any]:
    """Reproducible data: small integers and fractions of both signs."""
    generator = np.random.default_rng(20211)
    found: dict[str, Any] = {}
    for parameter in kernel.source.parameters:
        if parameter.buffer is not None:
            info = kernel.physical_shape(parameter.name, symbols)
            found[parameter.name] = _values(generator, lane_shape(info, parameter.dtype), parameter.dtype)
        elif parameter.name not in symbols:
            found[parameter.name] = _values(generator, (), parameter.dtype).item()
    return found


def _values(generator: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    low = -8 if dtype.is_float or dtype.min_int < 0 else 0
    high = 2 if dtype.is_bool else 9
    count = min(prod(shape), _PERIOD)  # 64-bit numbers for every element of a large array would need too much memory
    whole = generator.integers(low, high, size=count)
    values = whole / 4 + generator.random(count) if dtype.is_float else whole
    return np.resize(np.asarray(values).astype(numpy_dtype(dtype)), shape)
