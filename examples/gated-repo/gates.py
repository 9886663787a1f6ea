"""What this team's kernels rely on. `ci.sh` has it proved before anything is merged."""

from pathlib import Path

from layouts import OIHW4I4O, QUARTERS, WAVEFRONT, nchwc

import layoutproof as lp

PROGRAMS = Path(__file__).parent / "programs"


@lp.gate(cases={"4": (4,), "8": (8,), "16": (16,)})
def blocked_image(lanes: int) -> object:
    """No two elements of an image of any size share a cell."""
    return lp.check_map(nchwc(lanes), shape="n, h, w, c")


@lp.gate
def conv2d_nchw4c() -> object:
    """The convolution, with image, weights and result as the vector kernel wants them."""
    schedule = lp.Schedule(lp.load(PROGRAMS / "conv2d.py"))
    schedule.transform_layout("conv", "A", nchwc(4))
    schedule.transform_layout("conv", "W", OIHW4I4O)
    schedule.transform_layout("conv", "C", nchwc(4))
    return schedule


@lp.gate(strictness="ieee")
def padded_row_sum() -> object:
    """Rows of any length in blocks of four, summed without a branch: zeros in the padding change no bit of a sum."""
    schedule = lp.Schedule(lp.load(PROGRAMS / "row_sum.py"))
    schedule.transform_layout("sum", "A", QUARTERS, pad_value=0.0)
    schedule.sequential_buffer_access("sum", "A")
    schedule.remove_branching_through_overcompute("sum")
    return schedule


@lp.gate(strictness="ieee")
def generated_scale() -> object:
    """What our generator wrote, in blocks of four channels, does what the program says that it was made from."""
    before, after = lp.load(PROGRAMS / "scale.py"), lp.load(PROGRAMS / "scale_nchw4c.py")
    return lp.compare(before, after, layouts={"A": "NHWC->NCHW4c", "B": "NHWC->NCHW4c"})


@lp.gate
def wavefront_scores() -> object:
    """Scores by anti-diagonals. Nobody has proved this for all sizes: it stands in the baseline."""
    return lp.check_map(WAVEFRONT, shape="n, m")
