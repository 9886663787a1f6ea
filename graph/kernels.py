"""Running a graph with generated C: a kernel for each distinct function, built once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layoutproof.graph.maps import box_of
from layoutproof.graph.model import Array, Shape
from layoutproof.graph.relaid import NAME
from layoutproof.graph.signature import shape_of, signature_of
from layoutproof.graph.tuned import arranged
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.map_text import index_map_text
from layoutproof.ir.numpy_types import numpy_dtype
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering.relayout.relayout import relayout
from layoutproof.lowering.runtime.build import CKernel
from layoutproof.lowering.schedule import Schedule


class Kernels:
    """A runner for `run_graph`: functions by their C kernels, on arrays as the functions have them; `move` is its mover.

    `schedules` says, by names of functions, how relaid ones came about: their loops then follow what they store. Others are lowered as
    they are. `check` compares each kernel with the reference interpreter on a small instance.
    """

    def __init__(self, schedules: Mapping[str, Schedule] | None = None, *, check: bool = False) -> None:
        self._schedules = dict(schedules) if schedules is not None else {}
        self._check = check
        self._built: dict[PrimFunc, CKernel] = {}
        self._movers: dict[tuple[str, Shape, str], CKernel] = {}

    def __call__(self, func: PrimFunc, operands: Sequence[Array]) -> tuple[Array, ...]:
        """The results of a function. Raises LayoutproofError for what C cannot express, and where no kernel can be built."""
        signature = signature_of(func)
        arrays = {buffer.name: np.ascontiguousarray(array) for buffer, array in zip(signature.operands, operands, strict=True)}
        for buffer in signature.results:
            arrays[buffer.name] = np.empty(shape_of(buffer), dtype=numpy_dtype(buffer.dtype))
        self.kernel(func).raw(**arrays)
        return tuple(arrays[buffer.name] for buffer in signature.results)

    def kernel(self, func: PrimFunc) -> CKernel:
        """The kernel of a function; functions that differ in their name alone share one."""
        key = replace(func, name=NAME)
        if key not in self._built:
            schedule = self._schedules.get(func.name)
            made = arranged(schedule.fork()) if schedule is not None and schedule.func == key else Schedule(key)
            self._built[key] = made.build("c", check=self._check)
        return self._built[key]

    def move(self, array: Array, index_map: IndexMap) -> Array:
        """The array with each element where a bijection says, by a kernel for the layout change."""
        key = (index_map_text(index_map), array.shape, array.dtype.name)
        if key not in self._movers:
            self._movers[key] = relayout(index_map, array.shape, array.dtype.name, check=self._check)
        made: Array = np.empty(box_of(index_map, array.shape), dtype=array.dtype)
        self._movers[key].raw(A=np.ascontiguousarray(array), B=made)
        return made
