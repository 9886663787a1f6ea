"""Texts of MLIR, read by xDSL, and by an installed mlir-opt first where xDSL cannot."""

from __future__ import annotations

from layoutproof.importers.mlir import codes
from layoutproof.importers.mlir.model import Op
from layoutproof.ir.diagnostic import LayoutproofError, error


def read_module(text: str, name: str) -> Op:
    """The module of a text. Raises LayoutproofError where it is none, or where `xdsl` is not installed."""
    try:
        from layoutproof.importers.mlir.xdsl_reader import parse
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] != "xdsl":
            raise
        raise error(
            codes.MLIR_TEXT,
            f"{name}: files of MLIR are read by the package xdsl, which is not installed",
            help="pip install 'layoutproof[mlir]'",
        ) from problem
    return parse(text, name)


__all__ = ["LayoutproofError", "read_module"]
