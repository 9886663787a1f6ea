"""Real operators with all their parameters in textures: every obligation is decided."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.shares import one_in
from tests.verify.programs import OPERATORS, statuses

from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block
from layoutproof.ir.visit import walk
from layoutproof.lowering.layout.textures import ROWS4, VECTOR4, NCHW4c, TextureLayout
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.textures.texture_checks import DeviceLimits, check_texels
from layoutproof.verify.verdict.verdict import Status

WIDE = DeviceLimits(1 << 20, 1 << 20)
LAYOUTS: Mapping[int, TextureLayout | str] = {
    1: VECTOR4,
    2: ROWS4,
    3: "lambda k, i, j: [k, i, AXIS_SEPARATOR, j // 4, j % 4]",
    4: NCHW4c,
}
# The outer loop of these runs along the channels of texels: in parallel, its work items share them.
SHARING = {"double_int", "exp1d", "max_axis1", "min_axis1", "reshape", "row_sum", "sym_relu", "sym_row_sum"}
each_operator = pytest.mark.parametrize("path", OPERATORS, ids=lambda path: path.stem)


def textured(path: Path) -> Schedule:
    """An operator with every parameter in texture memory, its padding zero."""
    text = re.sub(
        r'(T\.Buffer\(\((?:[^()]|\([^()]*\))*\), "\w+")\)',
        r'\1, scope="global.texture")',
        path.read_text(encoding="utf-8"),
    )
    schedule = Schedule(loads(text))
    for buffer in schedule.func.buffers:
        schedule.transform_layout("root", buffer.name, LAYOUTS[buffer.rank], 0)
    return schedule


@one_in(18)
@each_operator
def test_by_one_work_item(path: Path) -> None:
    """Where nothing runs in parallel, all that textures ask for is proved."""
    schedule = textured(path)
    verdicts = check_texels(schedule.lower(), WIDE)
    images = [v for v in verdicts if "is an image" in v.claim.text]
    assert len(images) == len(schedule.func.buffers)
    assert statuses(verdicts) == {Status.PROVED}


@one_in(18)
@each_operator
def test_with_the_outer_loop_in_parallel(path: Path) -> None:
    """Work items that share a texel are refused, others proved; nothing stays open."""
    schedule = textured(path)
    for block in [node.name for node in walk(schedule.func.body) if isinstance(node, Block) and not node.is_root]:
        if not block.endswith("_padding"):
            schedule.parallel(block, 0)
    found = statuses(check_texels(schedule.lower(), WIDE))
    assert found == ({Status.PROVED, Status.REFUTED} if path.stem in SHARING else {Status.PROVED})
