"""The operators of tests/data, with extents small enough to run everything in the interpreter many times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.tree import ROOT

from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.interp import run
from layoutproof.ir.interp.layout_cells import extents_for
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.arith.known_facts import shape_symbols
from layoutproof.verify.faults.satisfying_data import repair_program

OPERATORS = ROOT / "tests" / "data" / "operators"

Arrays = dict[str, NDArray[Any]]

# What becomes of the numbers in the text: whole numbers only, so `float32` stays.
SMALLER: Mapping[str, Mapping[str, str]] = {
    "bias_add": {"32": "2", "30": "6", "7": "3"},
    "conv2d_nchw": {"30": "4", "32": "6", "31": "5", "10": "5"},
    "conv2d_nhwc": {"56": "3", "58": "5", "57": "4", "70": "6"},
    "dense": {"100": "10", "70": "7", "50": "5"},
    "matmul": {"100": "10", "70": "7", "50": "5"},
    "max_pool2d": {"30": "8", "28": "6", "29": "7", "14": "3"},
    "pad": {"14": "4", "16": "6", "15": "5", "8": "3"},
    "relu_nhwc": {"32": "2", "56": "3", "30": "6"},
    "transpose": {"16": "3", "64": "5", "30": "6"},
    "softmax": {"16": "3", "1000": "7"},
    "global_sum": {"8": "3", "10": "6"},
}
NAMES = tuple(sorted(path.stem for path in OPERATORS.glob("*.py")))
CONCRETE = tuple(name for name in NAMES if not name.startswith("sym_"))


def small_text(name: str) -> str:
    """The text of an operator with its extents made smaller."""
    text = (OPERATORS / f"{name}.py").read_text()
    table = SMALLER.get(name, {})
    return re.sub(r"\b\d+\b(?!\.\d)", lambda m: table.get(m[0], m[0]), text)


@cache
def small(name: str) -> PrimFunc:
    """The operator as a function."""
    return loads(small_text(name), f"{name}.py")


def inputs_of(func: PrimFunc, seed: int = 0, symbols: Mapping[str, int] | None = None) -> Arrays:
    """Random arrays for the parameters, in their logical shapes, by buffer name."""
    rng = np.random.default_rng(seed)
    arrays: Arrays = {}
    records = layout_records(func)
    for buffer in func.buffers:
        record = records.get(buffer.data.name)
        assert record is None, "inputs are made for functions as they were written"
        shape = tuple(int(evaluate(extent, symbols if symbols is not None else {})) for extent in buffer.shape)
        dtype = numpy_dtype(buffer.dtype)
        if dtype.kind == "f":
            values = rng.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b":
            values = rng.integers(0, 2, shape).astype(dtype)
        else:
            values = rng.integers(-100 if dtype.kind == "i" else 0, 100, shape).astype(dtype)
        arrays[buffer.name] = values
    return arrays


def physical_inputs(
    func: PrimFunc, logical: Arrays, pads: Mapping[str, Sequence[Any]], symbols: Mapping[str, int] | None = None
) -> Arrays:
    """The arrays that a re-laid function takes: `pads` gives, by buffer, the fill of each transform's padding (0 where
    it gives none).
    """
    known = symbols if symbols is not None else {}
    arrays: Arrays = {}
    records = layout_records(func)
    for buffer in func.buffers:
        array = logical[buffer.name]
        record = records.get(buffer.data.name)
        for number, step in enumerate(record.steps if record is not None else ()):
            fills = pads.get(buffer.name, [])
            shape = extents_for(step.shape, known)
            fill = fills[number] if number < len(fills) else 0
            # Where there is no element, there is nothing to map, and all is padding.
            mapped = (
                step.index_map.map_array(array, shape, fill=fill) if array.size else np.full(shape, fill, array.dtype)
            )
            array = mapped
        arrays[buffer.name] = array
    return arrays


def logical_outputs(
    func: PrimFunc, physical: Arrays, shapes: Mapping[str, tuple[int, ...]], symbols: Mapping[str, int] | None = None
) -> Arrays:
    """The arrays of a transformed function's parameters in their logical layout again."""
    known = symbols if symbols is not None else {}
    arrays: Arrays = {}
    records = layout_records(func)
    for buffer in func.buffers:
        array = physical[buffer.name]
        record = records.get(buffer.data.name)
        if record is not None:
            before = [shapes[buffer.name], *(extents_for(s.shape, known) for s in record.steps[:-1])]
            for step, shape in reversed(list(zip(record.steps, before, strict=True))):
                empty = 0 in shape
                array = np.zeros(shape, array.dtype) if empty else step.index_map.unmap_array(array, shape)
        arrays[buffer.name] = array
    return arrays


def assert_same_results(
    old: PrimFunc,
    new: PrimFunc,
    pads: Mapping[str, Sequence[Any]] | None = None,
    symbols: Mapping[str, int] | None = None,
) -> Arrays:
    """Run both in the interpreter on the same logical arrays, which meet what the old one assumes of them, and compare
    every parameter bit for bit; what the new one left, physical.
    """
    given = inputs_of(old, symbols=symbols)
    repairs = repair_program(old)
    if repairs is not None:
        given = dict(run(repairs, given).arrays)
    expected = dict(run(old, given).arrays)
    shapes = {name: array.shape for name, array in given.items()}
    names = {v.name for v in shape_symbols(old)}
    known = {name: n for name, n in (symbols if symbols is not None else {}).items() if name in names}
    physical = physical_inputs(new, given, pads if pads is not None else {}, known)
    result = run(new, {**physical, **known})
    found = logical_outputs(new, dict(result.arrays), shapes, known)
    for name, wanted in expected.items():
        assert found[name].shape == wanted.shape
        np.testing.assert_array_equal(_bits(found[name]), _bits(wanted), err_msg=name)
    return dict(result.arrays)


def _bits(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def random_map(rng: Random, rank: int) -> str:
    """The text of a random injective map: axes in another order, some split, some with an offset, some swizzled."""
    names = [f"i{axis}" for axis in range(rank)]
    outputs: list[str] = []
    for name in names:
        kind = rng.choice(["plain", "split", "split", "offset", "swizzle"])
        tile = rng.choice([2, 3, 4, 5])
        if kind == "plain":
            outputs.append(name)
        elif kind == "split":
            outputs += [f"{name}//{tile}", f"{name}%{tile}"]
        elif kind == "offset":
            shift = rng.choice([1, 2, 3])
            outputs += [f"({name} + {shift})//{tile}", f"({name} + {shift})%{tile}"]
        else:
            outputs += [f"{name}//4", f"({name}//4) % 4 ^ ({name} % 4)"]
    rng.shuffle(outputs)
    if len(outputs) > 1 and rng.random() < 0.3:
        outputs.insert(rng.randrange(1, len(outputs)), "AXIS_SEPARATOR")
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}]"
