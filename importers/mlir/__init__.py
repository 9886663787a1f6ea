"""Programs in MLIR; the package `xdsl`, which reads them, is imported when a file is read."""

from __future__ import annotations

from layoutproof.importers.mlir.translate import read_functions, read_module

__all__ = ["read_functions", "read_module"]
