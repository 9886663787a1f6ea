"""ONNX models as graphs; the package `onnx`, which reads the files, is imported when a model is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.graph.model.graph import Graph

__all__ = ["load_model"]


def load_model(path: str | Path, sizes: Mapping[str, int] | None = None) -> Graph:
    """The graph of an ONNX model: each operator as calls of the operator library. Nodes whose operands are known are
    computed at once.

    `sizes` gives the inputs' open extents, by the name of the dimension (`batch`), or by the input and the axis
    (`x.0`). Raises LayoutproofError where the file is no model, `onnx` is not installed, an extent is open, or
    operators are not translated.
    """
    from layoutproof.importers.onnx.convert import graph_of
    from layoutproof.importers.onnx.onnx_model import read_model

    return graph_of(read_model(path, sizes))
