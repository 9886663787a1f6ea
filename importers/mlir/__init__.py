"""Programs in MLIR; the package `xdsl`, which reads them, is imported when a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from layoutproof.importers.mlir.translate import Function, Options

__all__ = ["read_functions"]


def read_functions(text: str, name: str, options: Options | None = None) -> dict[str, Function]:
    """The functions of a module, by name, in order.

    Raises LayoutproofError where the text is no module, where `xdsl` is not installed, or, with the place, for an
    operation that has no translation.
    """
    from layoutproof.importers.mlir.reader import read_module
    from layoutproof.importers.mlir.translate import Options, find_functions, translate

    module = read_module(text, name)
    asked = options if options is not None else Options()
    return {str(op.attribute("sym_name")): translate(op, asked) for op in find_functions(module, name)}
