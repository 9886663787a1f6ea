"""A counterexample: an input on which two programs were run and seen to differ, as a person reads it and as a file
keeps it; and what a trial is made on and what may come of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutproof.ir.diagnostic import LayoutproofError, error
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.interp import Fault
from layoutproof.ir.interp.arguments import Array
from layoutproof.ir.rewrite import Rewrite
from layoutproof.verify.verdict import codes

Number = int | float


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One input: numbers by name (symbols and scalar parameters), arrays in logical layout by buffer.

    `other_padding`: the padding of parameters that are written holds something else than its contract before the call.
    """

    numbers: Mapping[str, Number]
    arrays: Mapping[str, Array]
    other_padding: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """One scalar that ends with another value: its buffer, logical index (None in padding), index in either program's
    array (None where the old one has no such cell) and lane; what the old program leaves there (or what the padding
    owes), and what the new one does.
    """

    buffer: str
    logical: tuple[int, ...] | None
    old_index: tuple[int, ...] | None
    new_index: tuple[int, ...]
    lane: int
    old: Any
    new: Any
    required: str | None = None


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A cell of a parameter, by its index in each program's array; None in the old one's for padding."""

    buffer: str
    old_index: tuple[int, ...] | None
    new_index: tuple[int, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        at = (list(index) if index is not None else None for index in (self.old_index, self.new_index))
        return {"buffer": self.buffer, **dict(zip(("before_index", "after_index"), at, strict=True))}


@dataclass(frozen=True, slots=True)
class Failure:
    """What the new program does wrong on a sample: a fault, or a difference."""

    sample: Sample
    fault: Fault | None = None
    difference: Difference | None = None

    @property
    def kind(self) -> str:
        """Failures of one kind are minimised into each other."""
        return self.fault.kind.value if self.fault is not None else "difference"


@dataclass(frozen=True, slots=True)
class Verdictless:
    """A trial that says nothing, and why."""

    reason: str


Outcome = Failure | Verdictless | None  # None: both do the same


_SHORT = 64  # elements up to which an array is listed in full
_PADDING = 8  # cells of padding that are listed
_SHOWN = 12  # elements of an array that a person is shown


@dataclass(frozen=True, slots=True)
class Written:
    """The last store to a cell: text, line, the variables around it, what it loaded and what it left."""

    line: int | None
    text: str
    variables: Mapping[str, int]
    loads: tuple[tuple[str, Number], ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        loads = [{"access": access, "value": json_number(value)} for access, value in self.loads]
        return {"line": self.line, "text": self.text, "variables": dict(self.variables), "loads": loads}

    def describe(self) -> str:
        """`line 7, at i = 1: B[i] = ...; A[1, 3] is -1.0 (-0x1p+0)`."""
        place = f"line {self.line}" if self.line is not None else "a store"
        at = f", at {', '.join(f'{n} = {v}' for n, v in self.variables.items())}" if self.variables else ""
        loaded = "; ".join(f"{access} is {number_text(value)}" for access, value in self.loads)
        return f"{place}{at}: {self.text}" + (f"; {loaded}" if loaded else "")


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """An input (`symbols`: names and scalar parameters; `inputs`: arrays in logical layout by buffer), and what came of
    it.

    Exactly one of `difference` and `fault` is there. `before` and `after` are the stores that wrote the differing
    element in the old and in the new program, where they could be found. `other_padding`: the caller had left something
    else than the contract's value in the padding of what is written. `cells`: where a fault was seen running only what
    certain cells depend on, these. `padding`: cells of padding that the new program reads for the differing element and
    the old one does not, with their values.
    """

    name: str
    symbols: Mapping[str, Number]
    inputs: Mapping[str, Array]
    other_padding: bool
    difference: Difference | None = None
    fault: str | None = None
    before: Written | None = None
    after: Written | None = None
    cells: tuple[LookedAt, ...] = ()
    padding: tuple[tuple[str, Number], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, floats as hexadecimal text; `search.replays` takes it."""
        result: dict[str, Any] = {
            "symbols": {name: json_number(value) for name, value in self.symbols.items()},
            "inputs": {name: _array_to_dict(array) for name, array in self.inputs.items()},
            "other_padding": self.other_padding,
        }
        if self.fault is not None:
            result["fault"] = self.fault
        if self.cells:
            result["cells"] = [cell.to_dict() for cell in self.cells]
        if self.difference is not None:
            d = self.difference
            places = {"logical": d.logical, "before_index": d.old_index, "after_index": d.new_index}
            indices = {key: list(index) if index is not None else None for key, index in places.items()}
            result["element"] = {"buffer": d.buffer, **indices, "lane": d.lane, "contract": d.required}
            result |= {"before": json_number(d.old), "after": json_number(d.new)}
        for key, written in (("before_store", self.before), ("after_store", self.after)):
            if written is not None:
                result[key] = written.to_dict()
        if self.padding:
            shown = self.padding[:_PADDING]
            result["padding_read"] = [{"access": access, "value": json_number(value)} for access, value in shown]
        return result

    @staticmethod
    def sample_of(rewrite: Rewrite, data: Mapping[str, Any]) -> Sample:
        """The input that `to_dict` wrote. Raises LayoutproofError where something is missing or has another form."""
        types = {buffer.name: buffer.dtype for buffer in rewrite.old.buffers}
        try:
            numbers = {str(name): read_number(value) for name, value in data["symbols"].items()}
            inputs = data["inputs"]
            if set(inputs) != set(types):
                raise _bad(
                    f"it has inputs for {', '.join(sorted(inputs))}, the program takes {', '.join(sorted(types))}"
                )
            arrays = {name: _array_of(inputs[name], numpy_dtype(dtype.element)) for name, dtype in types.items()}
            return Sample(numbers, arrays, data["other_padding"] is True)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
            raise _bad(f"it cannot be read: {problem}") from problem

    @staticmethod
    def cells_of(data: Mapping[str, Any]) -> tuple[LookedAt, ...]:
        """The cells that a run has to look at, as `to_dict` wrote them, or none. Raises as `sample_of`."""
        try:
            listed = [data["element"]] if "element" in data else data.get("cells", [])
            return tuple(
                LookedAt(str(each["buffer"]), _index(each["before_index"]), _index(each["after_index"]))
                for each in listed
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise _bad(f"it cannot be read: {problem}") from problem

    def text(self) -> str:
        """A short report: what differs and where, the stores behind it, the input."""
        given = f" with {', '.join(f'{n} = {v}' for n, v in self.symbols.items())}" if self.symbols else ""
        lines = [f"{self.name}{given}: {self._headline()}"]
        for word, written in (("before", self.before), ("after", self.after)):
            if written is not None:
                lines.append(f"  {word}: {written.describe()}")
        if self.padding:
            shown = [f"{access} is {number_text(value)}" for access, value in self.padding[:_PADDING]]
            more = f"; and {len(self.padding) - _PADDING} cells more" if len(self.padding) > _PADDING else ""
            lines.append(f"  after reads padding: {'; '.join(shown)}{more}")
        for name, array in self.inputs.items():
            lines.append(f"  {_array_text(name, array)}")
        if self.other_padding:
            lines.append("  the padding of what is written held something else than its contract before the call")
        return "\n".join(lines)

    def _headline(self) -> str:
        d = self.difference
        if d is None:
            return f"only the new program faults: {self.fault}"
        lane = f", lane {d.lane}" if d.lane else ""
        if d.logical is None and d.old_index is None:
            place = _access(d.buffer, d.new_index)
            old, new = number_text(d.old), number_text(d.new)
            return f"padding `{place}`{lane}: expected {old} by its contract `{d.required}`, got {new}"
        where = _access(d.buffer, d.logical if d.logical is not None else d.old_index)
        moved = "" if d.new_index in (d.logical, d.old_index) else f" (now at {list(d.new_index)})"
        return f"`{where}`{moved}{lane}: expected {number_text(d.old)}, got {number_text(d.new)}"


def _index(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(int(each) for each in value)


def _access(buffer: str, index: tuple[int, ...] | None) -> str:
    return f"{buffer}[{', '.join(map(str, index if index is not None else ()))}]"


def number_text(value: Number) -> str:
    """A number as a person reads it, floats exactly too: `0.1 (0x1.999999999999ap-4)`."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value!r} ({hex_text(value)})"
    return str(value)


def hex_text(value: float) -> str:
    """A float as hexadecimal text without needless zeros: `0x1.8p+1`, `-0x0p+0`, `inf`, `nan`."""
    if not math.isfinite(value):
        return str(value)
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"


def json_number(value: Any) -> int | str:
    """A number as JSON has it here: floats as text."""
    return hex_text(float(value)) if isinstance(value, float | np.floating) else int(value)


def read_number(value: Any) -> Number:
    """What `json_number` wrote. Raises ValueError or TypeError for anything else."""
    if isinstance(value, str):
        return float.fromhex(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no number")
    return value


def _array_to_dict(array: Array) -> dict[str, Any]:
    """Shape and values; of a large array what most elements are, and the others by row-major position."""
    numbers = _numbers(array)
    if numbers.size <= _SHORT:
        return {"shape": list(array.shape), "values": [json_number(v) for v in numbers.tolist()]}
    fill, others = _fill_and_others(numbers)
    listed = [[k, json_number(v)] for k, v in zip(others.tolist(), numbers[others].tolist(), strict=True)]
    return {"shape": list(array.shape), "fill": json_number(fill), "others": listed}


def _numbers(array: Array) -> Array:
    """The elements in a row, floats as doubles."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return array.reshape(-1).astype(np.float64 if array.dtype.kind in "fV" else array.dtype)


def _fill_and_others(numbers: Array) -> tuple[Any, Array]:
    """The most frequent element of a large array, the first of several, and the positions of the others."""
    keys = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64) if numbers.dtype.kind == "f" else numbers
    fill = int(keys[0])
    if 2 * np.count_nonzero(keys == fill) <= keys.size:
        found, first, counts = np.unique(keys, return_index=True, return_counts=True)
        fill = int(found[min(range(found.size), key=lambda k: (-int(counts[k]), int(first[k])))])
    others = np.flatnonzero(keys != fill)
    position = int(np.flatnonzero(keys == fill)[0])
    return numbers[position].item(), others


def _array_of(data: Mapping[str, Any], dtype: np.dtype[Any]) -> Array:
    shape = tuple(int(extent) for extent in data["shape"])
    size = math.prod(shape)
    if any(extent < 0 for extent in shape) or size > 1 << 28:
        raise ValueError(f"the shape {list(shape)}")
    if "values" in data:
        flat = [read_number(v) for v in data["values"]]
        if len(flat) != size:
            raise ValueError(f"{len(flat)} values for the shape {list(shape)}")
        return _typed(flat, dtype).reshape(shape)
    result = np.full(size, _typed([read_number(data["fill"])], dtype)[0], dtype=dtype)
    for position, value in data["others"]:
        if not 0 <= position < size:
            raise ValueError(f"position {position} of {size}")
        result[position] = _typed([read_number(value)], dtype)[0]
    return result.reshape(shape)


def _typed(values: list[Number], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iub":
        return (
            np.array([int(v) for v in values]).astype(dtype)
            if dtype.kind == "b"
            else np.array([int(v) for v in values], dtype=dtype)
        )
    with np.errstate(all="ignore"):
        return np.array(values, dtype=np.float64).astype(dtype)


def _array_text(name: str, array: Array) -> str:
    """A small array in full; of a larger one what it mostly holds, and the elements that are something else."""
    numbers = _numbers(array)
    head = f"{name}, {array.dtype} {list(array.shape)}"
    if numbers.size <= _SHOWN:
        return f"{head}: {', '.join(map(str, numbers.tolist()))}"
    most, others = _fill_and_others(numbers)
    at = zip(*(axis.tolist() for axis in np.unravel_index(others[:_SHOWN], array.shape)), strict=True)
    shown = [
        f"{_access(name, index)} = {value}" for index, value in zip(at, numbers[others[:_SHOWN]].tolist(), strict=True)
    ]
    more = f", and {others.size - _SHOWN} more" if others.size > _SHOWN else ""
    return f"{head}: all {most}" + (f" but {', '.join(shown)}{more}" if others.size else "")


def _bad(message: str) -> LayoutproofError:
    return error(codes.COUNTEREXAMPLE, f"this is no counterexample of the rewrite: {message}")
