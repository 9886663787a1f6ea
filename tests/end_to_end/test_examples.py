"""The examples run as they stand, and say what they are meant to say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Golden
from tests.pages import output_of
from tests.tree import ROOT

pytestmark = pytest.mark.pages

EXAMPLES = ROOT / "examples"

SAID = {
    "conv2d_nchw4c.py": [
        "injective: proved",
        "physical shape: [1, 18, 56, 56, 4]",
        "padding where: p1 == 17 and p4 >= 2",
        "'image': [0, 0, 0, 0]",
        "proved: transform_layout of W",
        "proved: transform_layout of conv2d",
        "refused: `lambda n, h, w, c: [n, h, w, c//4]` is not injective",
        "W: logical (3, 3, 70, 70), physical (18, 18, 3, 3, 4, 4)",
        "output: (1, 56, 56, 70) of float32",
        "raw and logical calls agree; the padding is zero",
    ],
    "row_sum_lanes.py": [
        "without a contract: refuted",
        "steps, each proved",
        "sink_allocation",
        "fast-math assumptions: []",
        "with the branch: the sums of a loop, bit for bit",
        "without it: the sums of a loop, bit for bit",
        "lp_add_f32x8(lp_load_f32x8(&B_local[i_1 * 8])",
    ],
    "gpu_schedules.py": [
        "matmul: 32 steps, each proved, for all sizes",
        "fast-math assumptions: none",
        "C is what numpy makes",
        "barriers: 2",
        "A_shared in registers: refuted",
        "softmax: 21 steps, each proved, for all sizes",
        "fast-math assumptions: ninf, nnan, nsz, reassoc",
        "B is what numpy makes",
        "transpose: 16 steps, each proved, for all sizes",
        "rounds of 32 threads for a column: 32 with rows of 32, 1 swizzled, 1 with rows of 33",
        "conv2d: 32 steps, each proved, for all sizes",
        "C is what numpy makes",
    ],
    "matmul_tiles.py": [
        'C_local = T.alloc_buffer((1, 1, 6, 16), "float32", scope="local")',
        "35 steps",
        "fast-math assumptions: []",
        "lp_mul_f32x8(lp_set_f32x8(A[j_0_i_0_fused % 17 * 384 + p * 6 + i_1])",
        "the product is that of the loops, bit for bit",
        "certificate: proved",
    ],
}

WHOLE = ("walkthrough.py",)
"""Examples whose whole output is compared with a golden file."""


def test_every_example_is_run() -> None:
    """No example is left out."""
    assert {*SAID, *WHOLE} == {path.name for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", SAID)
def test_example(name: str, tmp_path: Path) -> None:
    """An example runs from any folder, ends well, and prints what it promises, in order."""
    said, position = output_of(EXAMPLES / name, tmp_path), 0
    for part in SAID[name]:
        position = said.index(part, position) + len(part)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_output(name: str, tmp_path: Path, golden: Golden) -> None:
    """An example that explains as it goes prints exactly what it did when its comments were written."""
    golden(f"examples/{Path(name).stem}.txt", output_of(EXAMPLES / name, tmp_path))
