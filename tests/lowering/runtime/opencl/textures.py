"""Operators whose parameters are textures, and the layouts that make images of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tests.end_to_end.operators import block_of
from tests.lowering.codegen.programs import Array

from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp import run
from layoutproof.ir.interp.run import ulps_apart
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.visit import rewrite_bottom_up
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.runtime.opencl.limits import textures_of
from layoutproof.lowering.runtime.opencl.load_opencl import OpenCLKernel
from layoutproof.lowering.schedule.schedule import Schedule


def in_textures(func: PrimFunc, names: Iterable[str]) -> PrimFunc:
    """The function with parameters in scope `global.texture`, as its text would say."""
    changed = {b: replace(b, scope="global.texture") for b in func.buffers if b.name in set(names)}

    def visit(node: Node) -> Node:
        return changed.get(node, node) if isinstance(node, Buffer) else node

    mapped = tuple((param, changed.get(b, b)) for param, b in func.buffer_map)
    return replace(func, buffer_map=mapped, body=rewrite_bottom_up(func.body, visit))


@dataclass(frozen=True)
class Flattening:
    """A layout for one parameter that makes an image of it: the map, its pad value, and the texels that come of it."""

    buffer: str
    index_map: str
    pad_value: Any
    order: str
    axes: int

    def __str__(self) -> str:
        return f"{self.buffer}-{self.order}-{self.axes}d"


def flattenings(func: PrimFunc) -> Iterator[Flattening]:
    """Every parameter as images of one channel, and of four; where it has three axes or more, as an array of images
    too.

    An output of four channels is left out: its stores have to be vectors, which takes a schedule of its own.
    """
    for buffer in func.buffers:
        names = [f"i{axis}" for axis in range(buffer.rank)]
        *outer, last = names
        arguments, rows = ", ".join(names), ", ".join(outer)
        is_output = buffer == func.buffers[-1]
        single = _not_a_multiple_of_four(buffer)
        if outer:
            if single:
                yield Flattening(buffer.name, f"lambda {arguments}: [{rows}, AXIS_SEPARATOR, {last}]", None, "R", 2)
            if not is_output:
                text = f"lambda {arguments}: [{rows}, AXIS_SEPARATOR, {last}//4, {last}%4]"
                yield Flattening(buffer.name, text, None, "RGBA", 2)
        else:
            yield Flattening(buffer.name, f"lambda {last}: [{last}//7, AXIS_SEPARATOR, {last}%7]", None, "R", 2)
            if not is_output:
                yield Flattening(buffer.name, f"lambda {last}: [{last}//8, AXIS_SEPARATOR, {last}%8]", None, "RGBA", 2)
        if len(outer) > 1 and (single or not is_output):
            first, *middle = outer
            rest = ", ".join(middle)
            blocked = f"{rest}, AXIS_SEPARATOR, {last}" if is_output else f"{last}//4, {rest}, AXIS_SEPARATOR, {last}%4"
            text = f"lambda {arguments}: [{first}, AXIS_SEPARATOR, {blocked}]"
            yield Flattening(buffer.name, text, None, "R" if is_output else "RGBA", 3)


def _not_a_multiple_of_four(buffer: Buffer) -> bool:
    extent = buffer.shape[-1]
    return not isinstance(extent, IntImm) or extent.value % 4 != 0


def scheduled(func: PrimFunc, flattening: Flattening) -> Schedule:
    """The schedule with one parameter as a texture."""
    schedule = Schedule(in_textures(func, [flattening.buffer]))
    buffer = next(b for b in schedule.func.buffers if b.name == flattening.buffer)
    schedule.transform_layout(block_of(schedule.func, buffer), buffer.name, flattening.index_map, flattening.pad_value)
    return schedule


def forms_of(kernel: Kernel) -> dict[str, tuple[str, int]]:
    """The images of a kernel by name: order of channels, and axes."""
    assert isinstance(kernel, OpenCLKernel)
    return {t.name: (t.image.channel_order, len(t.sizes)) for t in textures_of(kernel.source)}


def assert_same(
    func: PrimFunc, kernels: Iterable[Kernel], logical: Mapping[str, Array], symbols: Mapping[str, int]
) -> None:
    """Kernels and interpreter give the same bits for logical arrays, math functions included."""
    output = func.buffers[-1].name
    wanted = run(func, {**logical, **symbols}).arrays[output]
    inputs = {b.name: logical[b.name] for b in func.buffers if b.name != output}
    for kernel in kernels:
        found = kernel(**inputs, **{name: n for name, n in symbols.items() if any(p.name == name for p in func.params)})
        assert isinstance(found, np.ndarray) and found.shape == wanted.shape
        assert ulps_apart(found, wanted).max(initial=0) == 0
