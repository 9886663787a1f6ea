"""Random kernels that have no race, as C and as OpenCL: many compiled as one text, and run on what the walker ran them
on.

Lowering is not proved for all of them: a few are lowered as a schedule does it, the rest by the passes alone.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import layoutproof as lp
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.codegen.c import FLAGS, emit_c
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import KernelArgument
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.runtime.compiler import find_compiler
from layoutproof.lowering.schedule.schedule import LOWERING

if TYPE_CHECKING:
    from tests.oracle.thread_kernels import Judged

PROVED_EACH = 25
"""Every so many-th kernel is lowered with proofs."""


def lowered(judged: Judged) -> PrimFunc:
    """The kernel as parallel loops, flat."""
    if judged.seed % PROVED_EACH == 0:
        return lp.Schedule(judged.func).lower()
    assert judged.loops is not None
    func = judged.loops
    for transform in LOWERING:
        func = _applied(transform, func)
    return func


def _applied(transform: Pass, func: PrimFunc) -> PrimFunc:
    return transform.propose(func).new


def _apart(text: str, seed: int) -> str:
    """A text whose helpers have names of their own."""
    return re.sub(r"\b(lp|LP)_", rf"\g<1>{seed}_", text)


def _named(judged: Judged) -> PrimFunc:
    return replace(lowered(judged), name=f"kernel_{judged.seed}")


def in_c(judged: Sequence[Judged]) -> int:
    """Run kernels in C; how many. Raises AssertionError for one that gives another result."""
    if not judged:
        return 0
    sources = [emit_c(_named(each)) for each in judged]
    with tempfile.TemporaryDirectory() as folder:
        path, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        path.write_text("\n".join(_apart(s.text, each.seed) for s, each in zip(sources, judged, strict=True)))
        command = [*find_compiler().command, *FLAGS, "-O1", "-fopenmp", "-shared", "-fPIC", str(path), "-o"]
        subprocess.run([*command, str(library), "-lm"], check=True)
        loaded = ctypes.CDLL(str(library))
        for source, each in zip(sources, judged, strict=True):
            a, b = each.a.astype(np.int32), np.zeros(each.b.shape, np.int32)
            code = getattr(loaded, source.entry)(ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(b.ctypes.data))
            assert code == 0, each.text
            _compare("C", each, b)
    return len(judged)


def _compare(target: str, judged: Judged, found: np.ndarray) -> None:
    assert (found == judged.b).all(), f"another result in {target}\n{judged.text}\n{found}\n{judged.b}"


def in_opencl(judged: Sequence[Judged], device: str | None = None) -> int:
    """Run kernels on a device of OpenCL; how many. Raises AssertionError for one that gives another result."""
    if not judged:
        return 0
    import pyopencl as cl

    from layoutproof.lowering.runtime.opencl.devices import find_device
    from layoutproof.lowering.runtime.opencl.launcher import (
        build_text,
        fill_buffer,
        new_buffer,
        place_of,
        read_buffer,
    )

    place = place_of(find_device(device).handle)
    sources = [emit_opencl(_named(each)) for each in judged]
    text = "\n".join(_apart(s.text, each.seed) for s, each in zip(sources, judged, strict=True))
    program = build_text(place.context, text, ["-cl-std=CL1.2"])
    for source, each in zip(sources, judged, strict=True):
        b = np.zeros(each.b.shape, np.int32)
        held = {}
        for name, array in (("A", each.a.astype(np.int32)), ("B", b)):
            held[name] = new_buffer(place, array.nbytes)
            fill_buffer(place, held[name], array)
        for launch in source.launches:
            kernel = cl.Kernel(program, launch.name)
            names = [argument.name for argument in launch.arguments if isinstance(argument, KernelArgument)]
            kernel.set_args(*(held[name] for name in names))
            sizes = tuple(int(evaluate(extent, {})) for extent in launch.global_size)
            local = launch.local_size
            group = None if local is None else tuple(int(evaluate(extent, {})) for extent in local)
            cl.enqueue_nd_range_kernel(place.queue, kernel, sizes, group)
        read_buffer(place, b, held["B"])
        place.queue.finish()
        _compare("OpenCL", each, b)
    return len(judged)
