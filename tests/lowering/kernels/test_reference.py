"""The reference schedules: every step proved, no fast-math assumption taken, vectors in the text, and the results of
the program as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.lowering.codegen.plain_c import run_sanitized
from tests.lowering.codegen.programs import assert_same
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import IntImm
from layoutproof.ir.interp.run import run
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.kernels.reference import best_tile, conv2d, matmul, row_max, row_sum
from layoutproof.lowering.runtime.kernel import Kernel
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

Array = npt.NDArray[np.float32]

SCHEDULES: Mapping[str, Callable[[], Schedule]] = {
    "row_sum_33x5": lambda: row_sum(33, 5),
    "row_sum_70x14_in_eights": lambda: row_sum(70, 14, block=8, tile=16, lanes=16),
    "row_sum_40x7_with_its_branch": lambda: row_sum(40, 7, branch=True),
    "row_max_33x5": lambda: row_max(33, 5),
    "row_max_6x9_with_its_branch": lambda: row_max(6, 9, branch=True),
    "matmul_7x17x3": lambda: matmul(7, 17, 3),
    "matmul_9x30x5_fused": lambda: matmul(9, 30, 5, fused=True),
    "matmul_8x16x4_in_fours": lambda: matmul(8, 16, 4, tile=(4, 8), lanes=4),
    "conv2d_of_one_pixel": lambda: conv2d(1, 1, 1, 1, 1, 1, 1),
    "conv2d_ragged": lambda: conv2d(1, 9, 5, 15, 17, 3, 3),
    "conv2d_fused_in_32_registers": lambda: conv2d(1, 3, 5, 16, 12, 2, 3, registers=32, fused=True),
    "conv2d_with_a_halo": lambda: conv2d(1, 12, 6, 6, 10, 3, 3, halo=1),
    "row_sum_1x1": lambda: row_sum(1, 1),
    "row_sum_5x3": lambda: row_sum(5, 3),
    "matmul_1x1x1": lambda: matmul(1, 1, 1),
    "matmul_13x40x9_in_32_registers": lambda: matmul(13, 40, 9, registers=32),
    "conv2d_in_fours": lambda: conv2d(1, 5, 4, 9, 6, 3, 1, block=4),
    "row_sum_32x4": lambda: row_sum(32, 4),
    "matmul_6x16x4": lambda: matmul(6, 16, 4),
    "conv2d_of_two_images": lambda: conv2d(2, 8, 4, 9, 16, 1, 1),
    "conv2d_even": lambda: conv2d(1, 8, 8, 8, 16, 3, 3, strip=6),
    "conv2d_with_a_halo_ragged": lambda: conv2d(1, 9, 4, 13, 9, 3, 3, halo=1),
}
# Those that every run proves and runs; the campaign has the rest, which differ in their extents and in how wide a tile
# is.
MOST = list(SCHEDULES).index("row_sum_1x1")

PADS: Mapping[str, float] = {"row_max": -np.inf}
"""What padding holds where it is not zero."""


@cache
def scheduled(name: str) -> Schedule:
    """A schedule of the table, made once: making one proves all of its steps."""
    return SCHEDULES[name]()


def made_up(schedule: Schedule) -> dict[str, Array]:
    """Numbers of both signs and many sizes for every buffer of the program as it was written."""
    rng = np.random.default_rng(5)
    found = {}
    for buffer in schedule.original.buffers:
        shape = [e.value for e in buffer.shape if isinstance(e, IntImm)]
        found[buffer.name] = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(np.float32)
    return found


def physical(kernel: Kernel, logical: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays that a kernel takes raw, padding as it must be."""
    found = {}
    for name, info in kernel.buffers.items():
        assert info.index_map is not None
        found[name] = np.ascontiguousarray(info.index_map.map_array(logical[name], fill=PADS.get(kernel.name, 0.0)))
    return found


# A product that is too small for its type rounds to -0.0 when it is added to 0.0 in one step, and a padded channel
# makes that +0.0.
FAST_MATH: Mapping[str, set[str]] = {"conv2d_fused_in_32_registers": {"nsz"}}


@one_in(28)
@pytest.mark.parametrize("name", some(SCHEDULES, MOST))
def test_a_reference_schedule(name: str) -> None:
    """Proved bit for bit, vectors without a branch, and the results of the interpreter on the program as it was
    written.
    """
    schedule = scheduled(name)
    check_verdicts(name, schedule)
    check_text(name, emit_c(schedule.lower()).text)
    arrays = made_up(schedule)
    *inputs, output = schedule.original.buffers
    expected = run(schedule.original, arrays).arrays[output.name]
    found = schedule.build("c")(*(arrays[b.name] for b in inputs))
    assert isinstance(found, np.ndarray)
    assert_same(found, expected, name)


def check_verdicts(name: str, schedule: Schedule) -> None:
    """Each step and each lowering pass is proved; only fused sums over padded channels need a fast-math assumption."""
    schedule.lower()
    verdicts = [verdict for step in (*schedule.steps, *schedule.lowering_steps) for verdict in step.verdicts]
    assert {verdict.status for verdict in verdicts} == {Status.PROVED}
    assert {flag for verdict in verdicts for flag in verdict.strictness} == FAST_MATH.get(name, set())


def check_text(name: str, text: str) -> None:
    """The loops of a kernel hold vectors and no branch; those that keep their guards are scalars."""
    loops = re.split(r"LP_PARALLEL_FOR\n +for", text, maxsplit=1)[1]
    branching = name.endswith("with_its_branch")
    assert ("if (" in loops) is branching
    assert ("lp_store_" in loops) is not branching
    assert "lane <" not in loops


def test_a_maximum_is_that_of_the_program_for_every_kind_of_number() -> None:
    """NaN, infinities, signed zeros and numbers below every finite one, anywhere in a row."""
    rng = np.random.default_rng(3)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3e38, 1e-40], dtype=np.float32)
    matrix = rng.choice(values, (33, 5))
    matrix[0], matrix[1], matrix[2] = -np.inf, np.nan, -0.0
    schedule = scheduled("row_max_33x5")
    expected = run(schedule.original, {"A": matrix, "B": np.zeros(33, np.float32)}).arrays["B"]
    found = schedule.build("c", check=False)(matrix)
    assert isinstance(found, np.ndarray)
    assert_same(found, expected, "row_max")


@one_in(18)
@pytest.mark.parametrize(
    "name", ["row_sum_33x5", "row_max_33x5", "matmul_7x17x3", "matmul_9x30x5_fused", "conv2d_ragged"]
)
def test_with_and_without_vectors_under_sanitizers(name: str, tmp_path: Path) -> None:
    """The text compiles with all warnings as errors, touches nothing outside, and gives the same as vectors and as
    lanes.
    """
    schedule = scheduled(name)
    kernel = schedule.build("c", check=False)
    arrays = physical(kernel, made_up(schedule))
    expected = run(schedule.lower(), arrays).arrays
    source = emit_c(schedule.lower())
    for switch in ("", "#define LP_NO_VECTORS\n"):
        found = run_sanitized(replace(source, text=switch + source.text), tmp_path, arrays)
        for buffer, wanted in expected.items():
            assert_same(found[buffer].reshape(-1), np.asarray(wanted).reshape(-1), f"{buffer} {switch}")


def test_a_trace_comes_with_it() -> None:
    """The trace replayed gives the same program."""
    schedule = scheduled("row_sum_5x3")
    assert Schedule.replay(schedule.original, schedule.trace).func == schedule.func


@pytest.mark.campaign
def test_a_certificate_comes_with_it() -> None:
    """The certificate holds all steps and passes, proved."""
    schedule = scheduled("row_sum_5x3")
    schedule.lower()
    certificate = schedule.certificate
    assert certificate.status is Status.PROVED
    assert len(certificate.steps) == len(schedule.steps) + len(schedule.lowering_steps)


@one_in(10)
def test_layouts_are_those_that_are_promised() -> None:
    """NCHW8c, OIHW8i8o and panels, as the kernel says of its buffers."""
    blocked = conv2d(1, 12, 8, 8, 20, 3, 3, strip=6).build("c", check=False).buffers
    assert {name: info.physical_shape for name, info in blocked.items()} == {
        "X": (1, 2, 8, 8, 8),
        "F": (3, 2, 3, 3, 8, 8),
        "Y": (1, 3, 6, 6, 8),
    }
    panels = scheduled("matmul_7x17x3").build("c", check=False).buffers
    assert {name: info.physical_shape for name, info in panels.items()} == {
        "A": (2, 3, 6),
        "B": (2, 3, 16),
        "C": (2, 2, 6, 16),
    }
    rows = scheduled("row_sum_33x5").build("c", check=False).buffers
    assert {name: info.physical_shape for name, info in rows.items()} == {"A": (2, 2, 4, 32), "B": (2, 32)}


@pytest.mark.parametrize(("blocks", "width", "registers", "strip", "tile"), [
    (8, 56, 32, None, (4, 4)),
    (2, 56, 32, None, (2, 14)),
    (9, 56, 32, None, (3, 8)),
    (7, 56, 32, None, (1, 28)),
    (8, 56, 16, None, (2, 4)),
    (1, 1, 16, None, (1, 1)),
    (2, 13, 32, None, (2, 13)),
    (4, 12, 32, 6, (4, 6)),
    (4, 12, 32, 40, (1, 40)),
])  # fmt: skip
def test_the_tile_fits_and_costs_least(
    blocks: int, width: int, registers: int, strip: int | None, tile: tuple[int, int]
) -> None:
    """Blocks of filters that divide their number, and a strip that wastes little of a row, in as many registers as
    there are.
    """
    assert best_tile(blocks, width, registers, strip) == tile


@pytest.mark.parametrize(("make", "words"), [
    (lambda: row_sum(0, 4), "row_sum: rows is a whole number of at least 1, not 0"),
    (lambda: row_sum(4, 4, tile=12, lanes=8), "12 elements of a tile are no whole number of vectors of 8 lanes"),
    (lambda: row_sum(4, 4, tile=4, lanes=1), "no whole number of vectors of 1 lanes"),
    (lambda: matmul(4, -1, 4), "matmul: n is a whole number of at least 1, not -1"),
    (lambda: matmul(4, True, 4), "matmul: n is a whole number of at least 1, not True"),
    (lambda: matmul(4, 4, 4, registers=8), "there are 16 or 32 vector registers, not 8"),
    (lambda: matmul(4, 4, 4, tile=(4, 12)), "12 elements of a tile"),
    (lambda: conv2d(1, 1, 2, 2, 1, 3, 1), "conv2d: the result's height is a whole number of at least 1, not 0"),
    (lambda: conv2d(1, 1, 2, 2, 1, 1, 1, halo=-1),
     "conv2d: one more than the halo is a whole number of at least 1, not 0"),
    (lambda: conv2d(1, 1, 2, 2, 1, 1, 1, strip=0), "conv2d: strip is a whole number of at least 1, not 0"),
    (lambda: conv2d(1, 1, 2, 2, 1, 1, 1, block=1), "1 elements of a tile are no whole number of vectors of 1 lanes"),
])  # fmt: skip
def test_extents_that_mean_nothing_are_refused(make: Callable[[], Schedule], words: str) -> None:
    """The message names the operator, the argument and what was expected."""
    with pytest.raises(LayoutproofError, match=words):
        make()
