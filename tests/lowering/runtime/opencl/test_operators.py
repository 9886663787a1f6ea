"""Every operator on an OpenCL device, its memory in buffers and in textures: the same bits as in C, and as the
interpreter gives.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tests.end_to_end.operators import NAMES, operator
from tests.lowering.runtime.opencl.textures import Flattening, assert_same, flattenings, forms_of, scheduled
from tests.lowering.small_operators import inputs_of, small
from tests.shares import chosen, one_in

from layoutproof.cli.random_inputs import logical_shapes, random_arrays
from layoutproof.ir.interp.run import ulps_apart
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

SIZES: Mapping[str, list[dict[str, int]]] = {
    "sym_relu": [{"n": n} for n in (0, 1, 3, 4, 13)],
    "sym_row_sum": [{"n": n, "m": m} for n in (0, 1, 6) for m in (1, 2, 9)],
}
TEXTURES = [(name, flattening) for name in NAMES for flattening in flattenings(small(name))]


@one_in(61)
@pytest.mark.parametrize("name", NAMES)
def test_buffers(name: str) -> None:
    """As written, at its own size: C and OpenCL agree in every bit, with subnormals and signed zeros in the data."""
    func = operator(name)
    schedule = Schedule(func)
    c, opencl = schedule.build("c", check=False), schedule.build("opencl")
    assert opencl.report.self_check.startswith("equal to the interpreter")
    for sizes in SIZES.get(name, [{}]):
        arrays = random_arrays(func, logical_shapes(func, {}, sizes), seed=7)
        *inputs, _ = (arrays[buffer.name] for buffer in func.buffers)
        wanted, found = (np.asarray(kernel(*inputs)) for kernel in (c, opencl))
        assert ulps_apart(found, wanted).max(initial=0) == 0


@one_in(33)
@pytest.mark.parametrize("name", NAMES)
def test_interpreter(name: str) -> None:
    """At a small size: C, OpenCL and the interpreter agree in every cell."""
    func = small(name)
    schedule = Schedule(func)
    kernels = (schedule.build("c", check=False), schedule.build("opencl", check=False))
    for sizes in SIZES.get(name, [{}]):
        assert_same(func, kernels, inputs_of(func, 5, sizes), sizes)


def test_every_parameter_is_a_texture_in_some_layout() -> None:
    """All operators, all parameters, images of one channel and of four, arrays of images."""
    assert {(name, f.buffer) for name, f in TEXTURES} == {
        (name, b.name) for name in NAMES for b in small(name).buffers
    } - WHOLE_TEXELS
    assert {(f.order, f.axes) for _, f in TEXTURES} == {("R", 2), ("R", 3), ("RGBA", 2), ("RGBA", 3)}
    assert {(f.order, f.axes) for _, f in TEXTURES[::2]} == {("R", 2), ("R", 3), ("RGBA", 2), ("RGBA", 3)}
    assert len(TEXTURES) > 75


WHOLE_TEXELS = {("conv2d_nchw", "conv2d_nchw")}
"""An output whose rows are multiples of 4: its stores have to be vectors, which `test_texture_programs` has."""


@one_in(105)
@pytest.mark.parametrize(
    "texture", chosen(TEXTURES, lambda number: number % 2 == 0, lambda texture: f"{texture[0]}-{texture[1]}")
)
def test_textures(texture: tuple[str, Flattening]) -> None:
    """One parameter a texture: everything that textures need is proved, and C without them and OpenCL with them agree
    in every bit.
    """
    name, flattening = texture
    func = small(name)
    schedule = scheduled(func, flattening)
    kernel = schedule.build("opencl", check=False)
    assert kernel.report.verdicts and all(verdict.status is Status.PROVED for verdict in kernel.report.verdicts)
    assert forms_of(kernel) == {flattening.buffer: (flattening.order, flattening.axes)}
    plain = Schedule(func).build("c", check=False)
    for sizes in SIZES.get(name, [{}]):
        assert_same(func, (plain, kernel), inputs_of(func, 5, sizes), sizes)
