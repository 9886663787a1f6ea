"""ONNX models as graphs; the package `onnx` reads the files, and is asked for only when one is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.graph.model import Graph

__all__ = ["load_model"]


def load_model(path: str | Path) -> Graph:
    """The graph of an ONNX model: each operator as calls of the operator library.

    Raises LayoutproofError where the file is no model, `onnx` is not installed, an extent is open, or operators are not translated.
    """
    from layoutproof.importers.onnx.convert import graph_of
    from layoutproof.importers.onnx.model import read_model

    return graph_of(read_model(path))
