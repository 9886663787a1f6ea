"""Graphs as files: the text, and beside it, under the same name with `.npz`, the arrays of constants that do not stand in it."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array, Graph
from layoutproof.graph.text.printer import is_inline, print_graph
from layoutproof.graph.text.reader import parse_graph
from layoutproof.ir.diagnostic import error
from layoutproof.ir.script import read_text


def save_graph(graph: Graph, path: str | Path) -> None:
    """Write the text and, where there are any, the arrays."""
    for file, content in graph_files(graph, path).items():
        file.write_bytes(content)


def graph_files(graph: Graph, path: str | Path) -> Mapping[Path, bytes]:
    """The files of a graph whose text is to stand at a path, with what they hold: the text and, where there are any, the arrays.

    Raises LayoutproofError for a path that is that of arrays.
    """
    if Path(path).suffix == ".npz":
        raise error(codes.CONSTANT_DATA, f"{path} is where the arrays of a graph stand, not its text")
    files = {Path(path): print_graph(graph).encode()}
    arrays = {constant.value.name: constant.data for constant in graph.constants if not is_inline(constant)}
    if arrays:
        files[Path(path).with_suffix(".npz")] = _packed(arrays)
    return files


def _packed(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as `.npz` has them. `numpy.savez` takes names as arguments, and so not each of them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            # An entry that is given so has no date: the same graph gives the same bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
    return buffer.getvalue()


def load_graph(path: str | Path) -> Graph:
    """The graph of a file. Raises LayoutproofError for anything that is not understood, and for arrays that cannot be read."""
    text = read_text(path)
    beside = Path(path).with_suffix(".npz")
    arrays: dict[str, Array] = {}
    if beside.is_file():
        try:
            with beside.open("rb") as file, np.load(file, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
        except (OSError, EOFError, ValueError, NotImplementedError, RuntimeError, zlib.error, zipfile.BadZipFile) as problem:
            raise error(codes.CONSTANT_DATA, f"the arrays in {beside} cannot be read: {problem}") from problem
    return parse_graph(text, str(path), arrays)
