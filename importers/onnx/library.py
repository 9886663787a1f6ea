"""The package `onnx`, asked for only when a model is read, and texts as it has them."""

from __future__ import annotations

from typing import Any

from layoutproof.graph import codes
from layoutproof.ir.diagnostic import LayoutproofError, error

DOMAINS = ("", "ai.onnx")


def library() -> Any:
    """The package. Raises LayoutproofError where it is not installed."""
    try:
        import onnx
        import onnx.checker
        import onnx.defs
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as problem:
        raise _missing() from problem
    return onnx


def _missing() -> LayoutproofError:
    return error(codes.MODEL_FILE, "models are read by the package onnx, which is not installed", help="pip install 'layoutproof[onnx]'")


def text_of(value: str | bytes) -> str:
    """A string of a model. Raises LayoutproofError for bytes that are no text."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as problem:
        raise error(codes.MODEL_FILE, f"the model has a string that is no text: {value!r}") from problem
