"""The codes of errors in files of MLIR, with what each means."""

from __future__ import annotations

from collections.abc import Mapping

MLIR_TEXT = "LP651"
MLIR_OPERATION = "LP652"
MLIR_TOOL = "LP653"

MEANINGS: Mapping[str, str] = {
    MLIR_TEXT: "A file of MLIR must be a module that can be read.",
    MLIR_OPERATION: "An operation, type or attribute of MLIR has no translation, or is used in a way that has none.",
    MLIR_TOOL: "`mlir-opt` must be installed and must accept the file and the passes.",
}
