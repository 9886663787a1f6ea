"""Runs programs as the upstream compiler makes them, in a process of its own: its compiler library and ours do not
meet.

`python -m tests.ir.interp.upstream` reads a list of runs as JSON, {"text", "arguments"}, and writes what each argument
holds afterwards.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.tree import ROOT

Array = npt.NDArray[Any]


def is_there() -> bool:
    """Whether the upstream compiler is installed."""
    return find_spec("tvm") is not None


def run_upstream(runs: Sequence[tuple[str, Sequence[Array]]]) -> list[list[Array]]:
    """What the arguments of each run hold afterwards."""
    asked = [{"text": text, "arguments": [_written(a) for a in arguments]} for text, arguments in runs]
    command = [sys.executable, "-m", "tests.ir.interp.upstream"]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return [[_read(a) for a in arguments] for arguments in json.loads(done.stdout)]


def _written(array: Array) -> dict[str, Any]:
    return {"shape": array.shape, "dtype": str(array.dtype), "bytes": array.tobytes().hex()}


def _read(said: dict[str, Any]) -> Array:
    return np.frombuffer(bytes.fromhex(said["bytes"]), said["dtype"]).reshape(said["shape"])


def _run(text: str, arguments: Sequence[Array]) -> list[Array]:
    tvm, script = import_module("tvm"), import_module("tvm.script")

    func = script.from_source(f"# from tvm.script import tirx as T\n{text}", {"T": script.tirx}).with_attr(
        "global_symbol", "main"
    )
    compiled = tvm.compile(tvm.IRModule({"main": func}), target="llvm")
    tensors = [tvm.runtime.tensor(a) for a in arguments]
    compiled["main"](*tensors)
    return [t.numpy() for t in tensors]


if __name__ == "__main__":
    found = [_run(each["text"], [_read(a) for a in each["arguments"]]) for each in json.load(sys.stdin)]
    print(json.dumps([[_written(a) for a in arguments] for arguments in found]))
