"""The process that runs machine code: TVM's functions and compiled libraries. A trap in it ends this process, not its
parent.

Requests and replies go over two pipes whose numbers are its arguments.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tests.oracle.messages import Job, Reply, Request

Send = Callable[[Reply], None]

SIMPLIFIERS = ["tirx.StmtSimplify", "s_tir.StmtSimplify", "tirx.RemoveNoOp"]
"""Passes that replace expressions by what TVM takes to be the same."""


def serve(requests: Connection, replies: Connection) -> None:
    """Answer requests until there are no more."""
    while True:
        try:
            request: Request = requests.recv()
        except EOFError:
            return
        if request.library is not None:
            run_library(request.library, request.jobs, replies.send)
        else:
            run_tvm(request.jobs, replies.send, request.plain)
        replies.send(Reply("end"))


def run_library(path: str, jobs: Sequence[Job], send: Send) -> None:
    """Run functions of a library; they return 0."""
    library = ctypes.CDLL(path)
    for job in jobs:
        function = getattr(library, job.function)
        function.restype = ctypes.c_int
        outputs = []
        for number, arguments in enumerate(job.runs):
            send(Reply("running", job.key, run=number))
            arrays = [np.array(a) for a in arguments]
            code = function(*(ctypes.c_void_p(a.ctypes.data) for a in arrays))
            if code != 0:
                send(Reply("refused", job.key, f"the function returned {code}"))
                break
            outputs.append(arrays)
        else:
            send(Reply("done", job.key, outputs=outputs))


def run_tvm(jobs: Sequence[Job], send: Send, plain: bool = False) -> None:
    """Read, compile and run functions by TVM; those that it refuses are told apart from the others."""
    read: dict[str, Any] = {}
    for job in jobs:
        try:
            read[job.key] = _read(job)
        # Whatever TVM raises is its refusal of this text, and goes to the parent.
        except Exception as problem:  # noqa: BLE001  # whatever TVM raises is its refusal
            send(Reply("refused", job.key, f"reading: {_first_lines(problem)}"))
    functions = _compile(read, send, plain)
    for job in jobs:
        if job.key in functions:
            _run(job, functions[job.key], send)


def _read(job: Job) -> Any:
    import tvm.script

    return tvm.script.from_source(job.function).with_attr("global_symbol", job.key)


def _compile(read: Mapping[str, Any], send: Send, plain: bool) -> dict[str, Any]:
    """All of them at once; where TVM refuses, in halves, until what it refuses stands alone."""
    import tvm

    if not read:
        return {}
    try:
        with tvm.transform.PassContext(disabled_pass=SIMPLIFIERS if plain else []), tvm.target.Target("llvm"):
            compiled = tvm.compile(tvm.IRModule(dict(read)), target="llvm")
            module = compiled.jit()
        return {key: module[key] for key in read}
    except Exception as problem:  # noqa: BLE001  # whatever TVM raises is its refusal
        if len(read) == 1:
            send(Reply("refused", next(iter(read)), f"compiling: {_first_lines(problem)}"))
            return {}
        keys = list(read)
        middle = len(keys) // 2
        first = _compile({k: read[k] for k in keys[:middle]}, send, plain)
        return first | _compile({k: read[k] for k in keys[middle:]}, send, plain)


def _run(job: Job, function: Any, send: Send) -> None:
    import tvm

    outputs = []
    for number, arguments in enumerate(job.runs):
        send(Reply("running", job.key, run=number))
        tensors = [tvm.runtime.tensor(a) for a in arguments]
        try:
            function(*tensors)
        except Exception as problem:  # noqa: BLE001  # whatever TVM raises is its refusal
            send(Reply("refused", job.key, f"running: {_first_lines(problem)}"))
            return
        outputs.append([t.numpy() for t in tensors])
    send(Reply("done", job.key, outputs=outputs))


def _first_lines(problem: BaseException) -> str:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    return f"{type(problem).__name__}: {' / '.join(lines[:6])}"[:600]


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1]), writable=False), Connection(int(sys.argv[2]), readable=False))
