"""Running a graph with generated C: a kernel for each distinct function, built once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutproof.graph.maps import box_of
from layoutproof.graph.model import Array, Shape
from layoutproof.graph.relaid import NAME
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.graph.tuned import arranged
from layoutproof.graph.witness import Steps
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.kernels.relayout import schedule_copy
from layoutproof.lowering.kernels.relayout_program import LOGICAL, PHYSICAL, plain_program, read_relayout
from layoutproof.lowering.runtime.build_c import CKernel
from layoutproof.lowering.schedule.schedule import Schedule


@dataclass(frozen=True, slots=True)
class _Ready:
    """A function's kernel, and the arrays that it takes: their names, shapes and types. `direct`: it asks nothing of them but these."""

    kernel: CKernel
    direct: bool
    operands: tuple[tuple[str, Shape, np.dtype[Any]], ...]
    results: tuple[tuple[str, Shape, np.dtype[Any]], ...]

    def fits(self, operands: Sequence[Array]) -> bool:
        """Whether the kernel can run on these operands as they are: its results are new memory, so nothing is left that `raw` would ask."""
        return self.direct and all(
            array.shape == shape and array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned
            for array, (_, shape, dtype) in zip(operands, self.operands, strict=True)
        )


class Kernels:
    """A runner for `run_graph`: functions by their C kernels, on arrays as the functions have them; `move` is its mover.

    `schedules` says, by names of functions, how relaid ones came about. The loops of all of them are arranged, each step proved or left
    out. `check` compares each kernel with the reference interpreter on a small instance.
    """

    def __init__(self, schedules: Mapping[str, Steps] | None = None, *, check: bool = False) -> None:
        self._schedules = dict(schedules) if schedules is not None else {}
        self._check = check
        self._built: dict[PrimFunc, CKernel] = {}
        self._ready: dict[PrimFunc, _Ready] = {}
        self._movers: dict[tuple[IndexMap, Shape, np.dtype[Any]], tuple[CKernel, Shape]] = {}

    def __call__(self, func: PrimFunc, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a function. Raises LayoutproofError for what C cannot express, where no kernel can be built, and for arrays
        that do not fit.
        """
        ready = self._ready.get(func)
        if ready is None:
            signature = signature_of(func)
            kernel = self.kernel(func)
            direct = all(each.requirement is None for each in kernel.assumptions)
            ready = _Ready(kernel, direct, _arrays(signature.operands), _arrays(signature.results))
            self._ready[func] = ready
        made = tuple(np.empty(shape, dtype) for _, shape, dtype in ready.results)
        arrays = {name: array for (name, *_), array in zip(ready.results, made, strict=True)}
        fitting = ready.fits(operands)
        for (name, *_), array in zip(ready.operands, operands, strict=True):
            arrays[name] = array if fitting else np.ascontiguousarray(array)
        if fitting:
            ready.kernel.launcher.launch(arrays, {})
        else:
            ready.kernel.raw(**arrays)
        return made

    def also(self, schedules: Mapping[str, Steps]) -> Kernels:
        """A runner for a graph with other schedules; both take kernels from each other."""
        twin = Kernels(schedules, check=self._check)
        twin._built, twin._movers = self._built, self._movers
        return twin

    def kernel(self, func: PrimFunc) -> CKernel:
        """The kernel of a function; functions that differ in their name alone share one."""
        key = replace(func, name=NAME)
        if key not in self._built:
            schedule = self._schedules.get(func.name)
            known = schedule.fork() if isinstance(schedule, Schedule) and schedule.func == key else Schedule(key, allowed=frozenset())
            self._built[key] = arranged(known).build("c", check=self._check)
        return self._built[key]

    def move(self, array: Array, index_map: IndexMap) -> Array:
        """The array with each element where a bijection says, by a kernel for the layout change."""
        key = (index_map, array.shape, array.dtype)
        if key not in self._movers:
            # In one thread, as all other kernels are: threads would wake for each layout change anew.
            change = read_relayout(index_map, array.shape, array.dtype.name, False, 0, None)
            copied = schedule_copy(plain_program(change), array.dtype.itemsize, threads=False)
            self._movers[key] = copied.build("c", check=self._check), box_of(index_map, array.shape)
        kernel, shape = self._movers[key]
        made: Array = np.empty(shape, dtype=array.dtype)
        kernel.launcher.launch({LOGICAL: np.require(array, requirements=["C", "A"]), PHYSICAL: made}, {})
        return made


def _arrays(buffers: Sequence[Buffer]) -> tuple[tuple[str, Shape, np.dtype[Any]], ...]:
    return tuple((buffer.name, shape_of(buffer), numpy_dtype(buffer.dtype)) for buffer in buffers)
