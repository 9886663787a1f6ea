"""Which programs of LLVM are installed."""

from __future__ import annotations

from pathlib import Path

from layoutproof.importers.mlir.mlir_opt import find_mlir_opt
from layoutproof.ir.diagnostic import LayoutproofError


def has_mlir_runner() -> bool:
    """Whether mlir-opt is installed, and mlir-cpu-runner beside it."""
    try:
        found = Path(find_mlir_opt())
    except LayoutproofError:
        return False
    return found.resolve().with_name("mlir-cpu-runner").exists()
