"""The optional packages: `onnx` with its schemas, imported only when a model is read, and `onnxruntime`, run on the
same inputs for comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Array
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
    return error(
        codes.MODEL_FILE,
        "models are read by the package onnx, which is not installed",
        help="pip install 'layoutproof[onnx]'",
    )


def text_of(value: str | bytes) -> str:
    """A string of a model. Raises LayoutproofError for bytes that are no text."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError as problem:
        raise error(codes.MODEL_FILE, f"the model has a string that is no text: {value!r}") from problem


@cache
def schema_of(operator: str, opset: int) -> Any:
    """ONNX's own description of an operator (`onnx.defs.OpSchema`) in a version; None where it has none."""
    onnx = library()
    try:
        return onnx.defs.get_schema(operator, opset, "")
    except onnx.defs.SchemaError:
        return None


def check_node(node: Any, opset: int, told: str) -> None:
    """Raise LayoutproofError for a node (`onnx.NodeProto`) that breaks its schema. Operators without one pass."""
    schema = schema_of(node.op_type, opset) if node.domain in DOMAINS else None
    if schema is None:
        return
    for word, given, least, most in (
        ("operands", node.input, schema.min_input, schema.max_input),
        ("results", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(given) <= most:
            expected = f"{least}" if least == most else f"{least} to {most}"
            raise error(codes.MODEL_OPERATOR, f"{told}: it has {len(given)} {word}, expected are {expected}")
    seen = set[str]()
    for item in node.attribute:
        if item.name in seen:
            raise error(codes.MODEL_OPERATOR, f"{told}: the attribute {item.name} is given twice")
        seen.add(item.name)
        known = schema.attributes.get(item.name)
        if known is not None and item.type != int(known.type.value):
            kind = known.type.name.lower()
            raise error(
                codes.MODEL_OPERATOR,
                f"{told}: the attribute {item.name} is of another kind than {kind}, which is expected",
            )
    missing = [name for name, known in schema.attributes.items() if known.required and name not in seen]
    if missing:
        raise error(codes.MODEL_OPERATOR, f"{told}: the attribute {sorted(missing)[0]} is missing")


_ERRORS_ONLY = 3
"""As onnxruntime counts severities: it would warn of each weight that older files list as an input, too."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """onnxruntime's outputs of a model on one thread, in the model's order, and the seconds of the fastest run."""

    version: str
    outputs: tuple[Array, ...]
    seconds: float


def require_onnxruntime() -> None:
    """Raise LayoutproofError where onnxruntime is not installed."""
    _library()


def run_with_onnxruntime(path: str | Path, inputs: Sequence[Array], *, runs: int = 5) -> PeerRun:
    """Run a model's file on arrays, one for each input that has no array in the model, in order.

    Raises LayoutproofError where onnxruntime is not installed, does not take the model, or wants other inputs.
    """
    onnxruntime, failures = _library()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        names = [item.name for item in session.get_inputs()]
        if len(names) != len(inputs):
            raise error(
                codes.MODEL_RUNTIME, f"{path}: onnxruntime asks for {len(names)} inputs, the graph has {len(inputs)}"
            )
        given = dict(zip(names, inputs, strict=True))
        made = session.run(None, given)
        shortest = float("inf")
        for _ in range(runs):
            start = perf_counter()
            session.run(None, given)
            shortest = min(shortest, perf_counter() - start)
    except failures as problem:
        raise error(codes.MODEL_RUNTIME, f"{path}: onnxruntime does not run the model: {problem}") from problem
    return PeerRun(str(onnxruntime.__version__), tuple(np.asarray(array) for array in made), shortest)


def _library() -> tuple[Any, tuple[type[BaseException], ...]]:
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError as problem:
        raise _missing_of_peer() from problem
    raised = (
        getattr(state, name, None)
        for name in ("Fail", "InvalidArgument", "InvalidGraph", "NoSuchFile", "NotImplemented")
    )
    more = (getattr(state, name, None) for name in ("RuntimeException", "ModelLoadFailed", "InvalidProtobuf", "EPFail"))
    return onnxruntime, (ValueError, RuntimeError, *(each for each in (*raised, *more) if each is not None))


def _missing_of_peer() -> LayoutproofError:
    return error(
        codes.MODEL_RUNTIME,
        "the comparison is with onnxruntime, which is not installed",
        help="pip install onnxruntime",
    )
