"""Graphs as files: the text, and beside it, under the same name with `.npz`, the arrays of constants that do not stand in it."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.text.printer import is_inline, print_graph
from layoutproof.graph.text.reader import parse_graph
from layoutproof.ir.diagnostic import error
from layoutproof.ir.dtype import DType, numpy_dtype
from layoutproof.ir.script.reader import read_text
from layoutproof.verify.certificate.sealed_files import Content, write_whole_files

ARRAYS = ".npz"
"""How the name of the file of arrays ends."""

UNREADABLE = (OSError, EOFError, ValueError, KeyError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile)
"""What comes of a file that numpy and zipfile cannot read as arrays: cut off, damaged, encrypted, packed in a way they do not know, no
array of plain numbers. Each is told to the user with the file's name.
"""


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write the text and, where there are any, the arrays: both whole, or neither.

    The arrays take their place first: a text never stands beside arrays that are not there. Raises LayoutproofError where a file cannot be
    written, and for a path that is that of arrays; existing files are then as they were.
    """
    write_whole_files(graph_files(graph, path), codes.GRAPH_WRITE)


def graph_files(graph: Graph, path: str | Path) -> Mapping[Path, Content]:
    """The files of a graph whose text is to stand at a path, with what they hold: where there are any, the arrays; then the text.

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

    numpy's format knows no `bfloat16` and the like: of such an array the bits are there, and its type stands behind its name.
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
    """The graph of a file. Raises LayoutproofError for anything that is not understood, and for arrays that cannot be read."""
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
    """The name and the array of an entry. Raises ValueError where the bits are not those of the type behind the name."""
    name, dot, dtype = entry.partition(".")
    if not dot:
        return entry, array
    wanted = numpy_dtype(DType.parse(dtype))
    if array.dtype != np.dtype(f"u{wanted.itemsize}"):
        raise ValueError(f"{entry} has elements of type {array.dtype}")
    return name, array.view(wanted)
