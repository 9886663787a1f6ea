"""Tensors in textures of every ready layout, padding and all, through a generated kernel: each texel by a work item of
its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.lowering.layout.test_textures import TENSORS
from tests.shares import one_in
from tests.verify.programs import program, statuses

from layoutproof.lowering.layout.textures import TextureLayout
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.textures.texture_checks import PROFILES, check_texels
from layoutproof.verify.verdict.verdict import Status

SHAPE = (2, 3, 5, 6)
DOUBLE = """
    @T.prim_func
    def main(
        A: T.Buffer((2, 3, 5, 6), "float32", scope="global.texture"),
        B: T.Buffer((2, 3, 5, 6), "float32", scope="global.texture")
    ):
        T.func_attr({"tirx.noalias": True})
        for n, h, w, c in T.grid(2, 3, 5, 6):
            with T.block("double"):
                vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                B[vn, vh, vw, vc] = A[vn, vh, vw, vc] * T.float32(2.0)
"""


@one_in(32)
@pytest.mark.parametrize("layout", TENSORS, ids=lambda layout: layout.name)
def test_whole_texels(layout: TextureLayout) -> None:
    """Both tensors in textures, the guards that padding needs proved away: what a device computes is right, element for
    element.
    """
    schedule = Schedule(program(DOUBLE))
    for name in ("A", "B"):
        schedule.transform_layout("double", name, layout.taking("nhwc"), 0.0)
    schedule.sequential_buffer_access("double", "B")
    schedule.remove_branching_through_overcompute("double")
    schedule.remove_no_op()
    for position in range(layout.index_map.rank - 1):
        schedule.parallel("double", position)
    assert statuses(check_texels(schedule.lower(), PROFILES["4096x4096"])) == {Status.PROVED}
    given = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    np.testing.assert_array_equal(schedule.build("opencl")(given), given * 2)
