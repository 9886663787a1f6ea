"""onnxruntime beside the graph that was read of a model: the same inputs, for comparison. It is optional, and asked for only here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from layoutproof.graph import codes
from layoutproof.graph.model import Array
from layoutproof.ir.diagnostic import LayoutproofError, error

_ERRORS_ONLY = 3
"""As onnxruntime counts severities: it would warn of each weight that older files list as an input, too."""


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What onnxruntime makes of a model, on one thread: outputs in the model's order, and the seconds of the shortest run."""

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
            raise error(codes.MODEL_RUNTIME, f"{path}: onnxruntime asks for {len(names)} inputs, the graph has {len(inputs)}")
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
        raise _missing() from problem
    raised = (getattr(state, name, None) for name in ("Fail", "InvalidArgument", "InvalidGraph", "NoSuchFile", "NotImplemented"))
    more = (getattr(state, name, None) for name in ("RuntimeException", "ModelLoadFailed", "InvalidProtobuf", "EPFail"))
    return onnxruntime, (ValueError, RuntimeError, *(each for each in (*raised, *more) if each is not None))


def _missing() -> LayoutproofError:
    return error(codes.MODEL_RUNTIME, "the comparison is with onnxruntime, which is not installed", help="pip install onnxruntime")
