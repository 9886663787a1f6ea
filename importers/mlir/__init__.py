"""Programs in MLIR; the package `xdsl`, which reads them, is imported when a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutproof.importers.mlir import codes
from layoutproof.ir.diagnostic import error

if TYPE_CHECKING:
    from layoutproof.importers.mlir.model import Op
    from layoutproof.importers.mlir.translate import Function, Options

__all__ = ["read_functions", "read_module"]


def read_functions(text: str, name: str, options: Options | None = None) -> dict[str, Function]:
    """The functions of a module, by name, in order.

    Raises LayoutproofError where the text is no module, where `xdsl` is not installed, or, with the place, for an
    operation that has no translation.
    """
    from layoutproof.importers.mlir.translate import Options, find_functions, translate

    module = read_module(text, name)
    asked = options if options is not None else Options()
    return {str(op.attribute("sym_name")): translate(op, asked) for op in find_functions(module, name)}


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
