"""Graph -> text that reads back equal, and graphs as files: the text, and large constants in an `.npz` file of the same
name beside it.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isnan
from pathlib import Path
from typing import IO, Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.graph_reader import parse_graph
from layoutproof.graph.model.graph import Array, Call, Constant, Crop, Graph, LayoutTransform, Pad, Step
from layoutproof.graph.operators.operator_text import tuple_text
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import read_text
from layoutproof.ir.text import expr_text, literal_float
from layoutproof.verify.certificate.sealed_files import Content, write_whole_files

MOST_INLINE = 16
"""The number of elements up to which a constant's data stands in the text."""

HEADER = "# A graph of layoutproof: functions in TVM's script syntax, then the steps that call them."


def print_graph(graph: Graph) -> str:
    """The text of a well-formed graph. Large constants, and those with NaN, are digests of arrays beside it."""
    lines = [HEADER, ""]
    for function in graph.functions():
        # The header of a function's text says what its namespace is called, which is the same for all of them.
        lines += [line for line in print_func(function).splitlines() if not line.startswith("# ")]
        lines.append("")
    parameters = ", ".join(
        f'{value.name}: G.Tensor({tuple_text(value.shape)}, "{value.dtype}")' for value in graph.inputs
    )
    lines += ["", "@G.graph", f"def {graph.name}({parameters}):"]
    lines += [f"    {line}" for line in _body(graph)]
    return "\n".join(_without_blank_runs([*lines, ""]))


def step_text(step: Step) -> str:
    """A step as it stands in a text, without the names of what it makes."""
    return _TEXTS[type(step)](step)


def is_inline(constant: Constant) -> bool:
    """Whether the constant's data stands in the text."""
    if constant.sha256 is not None or constant.data.size > MOST_INLINE:
        return False
    return not any(isnan(element) for element in constant.data.astype(float).reshape(-1))


def _body(graph: Graph) -> Iterator[str]:
    for constant in graph.constants:
        value = constant.value
        yield f'{value.name} = G.constant({tuple_text(value.shape)}, "{value.dtype}", {_data_text(constant)})'
    for step in graph.steps:
        made = ", ".join(value.name for value in step.results)
        yield f"{made} = {step_text(step)}"
    yield f"return {', '.join(graph.outputs)}"


def _data_text(constant: Constant) -> str:
    if not is_inline(constant):
        return f'sha256="{constant.digest}"'
    elements = constant.data.reshape(-1).tolist()
    texts = [literal_float(float(e)) if constant.value.dtype.is_float else str(e) for e in elements]
    return f"data=[{', '.join(texts)}]"


def _call(step: Call) -> str:
    return f"{step.function.name}({', '.join(step.operands)})"


def _transform(step: LayoutTransform) -> str:
    return f"G.layout_transform({step.operand}, {index_map_text(step.index_map)})"


def _pad(step: Pad) -> str:
    widths = ", ".join(f"({before}, {after})" for before, after in step.widths)
    return f"G.pad({step.operand}, [{widths}], {expr_text(step.value)})"


def _crop(step: Crop) -> str:
    known = "" if step.cropped_value is None else f", cropped_value={expr_text(step.cropped_value)}"
    return f"G.crop({step.operand}, {list(step.starts)}, {list(step.sizes)}{known})"


def _without_blank_runs(lines: list[str]) -> Iterator[str]:
    blank = False
    for line in lines:
        if line or not blank:
            yield line
        blank = not line


_TEXTS: Mapping[type[Any], Callable[[Any], str]] = {Call: _call, LayoutTransform: _transform, Pad: _pad, Crop: _crop}


ARRAYS = ".npz"
"""How the name of the file of arrays ends."""

UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    zipfile.BadZipFile,
)
"""What comes of a file that numpy and zipfile cannot read as arrays: cut off, damaged, encrypted, packed in a way they
do not know, no array of plain numbers. Each is told to the user with the file's name.
"""


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write the text and, where there are any, the arrays: both whole, or neither.

    The arrays take their place first: a text never stands beside arrays that are not there. Raises LayoutproofError
    where a file cannot be written, and for a path that is that of arrays; existing files are then as they were.
    """
    write_whole_files(graph_files(graph, path), codes.GRAPH_WRITE)


def graph_files(graph: Graph, path: str | Path) -> Mapping[Path, Content]:
    """The files of a graph whose text is to stand at a path, with what they hold: where there are any, the arrays; then
    the text.

    Raises LayoutproofError for a path that is that of arrays.
    """
    if Path(path).suffix == ARRAYS:
        raise error(codes.CONSTANT_DATA, f"{path} is where the arrays of a graph stand, not its text")
    files: dict[Path, Content] = {}
    arrays = {constant.value.name: constant.data for constant in graph.constants if not is_inline(constant)}
    if arrays:
        files[Path(path).with_suffix(ARRAYS)] = partial(pack, arrays)
    return {**files, Path(path): print_graph(graph).encode()}


def pack(arrays: Mapping[str, Array], into: IO[bytes]) -> None:
    """Arrays as `.npz` has them. `numpy.savez` takes names as arguments, and so not each of them.

    numpy's format knows no `bfloat16` and the like: of such an array the bits are there, and its type stands behind its
    name.
    """
    with zipfile.ZipFile(into, "w") as archive:
        for name, array in arrays.items():
            known = array.dtype.isbuiltin == 1
            stored = array if known else np.asarray(array, order="C").view(f"u{array.dtype.itemsize}")
            entry = name if known else f"{name}.{array.dtype.name}"
            # An entry that is given so has no date: the same graph gives the same bytes.
            with archive.open(zipfile.ZipInfo(f"{entry}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(stored, order="C"), allow_pickle=False)


def load_graph(path: str | Path) -> Graph:
    """The graph of a file. Raises LayoutproofError for unreadable text or arrays."""
    text = read_text(path)
    beside = Path(path).with_suffix(ARRAYS)
    arrays: dict[str, Array] = {}
    if beside.is_file():
        try:
            with beside.open("rb") as file, np.load(file, allow_pickle=False) as found:
                arrays = dict(_unpacked(name, found[name]) for name in found.files)
        except UNREADABLE as problem:
            raise error(codes.CONSTANT_DATA, f"the arrays in {beside} cannot be read: {problem}") from problem
    return parse_graph(text, str(path), arrays)


def _unpacked(entry: str, array: Array) -> tuple[str, Array]:
    """The name and the array of an entry. Raises ValueError where the bits do not have the type behind the name."""
    name, dot, dtype = entry.partition(".")
    if not dot:
        return entry, array
    wanted = numpy_dtype(DType.parse(dtype))
    if array.dtype != np.dtype(f"u{wanted.itemsize}"):
        raise ValueError(f"{entry} has elements of type {array.dtype}")
    return name, array.view(wanted)
