"""A convolution with 70 channels, stored four channels to a vector: checked, transformed, compiled and run from Python.

Run it from anywhere: `python examples/conv2d_nchw4c.py`. The same on the command line: `layoutproof demo`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import layoutproof as lp
from layoutproof import IllegalTransform, IndexMap

PROGRAM = Path(__file__).parent / "programs" / "conv2d.py"


def main() -> None:
    """The whole way, one stage after the other."""
    # What is true of the map alone: 70 channels are 18 blocks of 4, and two lanes of the last block are padding.
    nchw4c = IndexMap.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    report = lp.check_map(nchw4c, shape=(1, 56, 56, 70))
    print("injective:", report.injective.status)
    print("physical shape:", report.to_dict()["physical_shape"])
    print("padding where:", report.to_dict()["padding"]["predicate"])

    # A map that forgets the lane is refuted with two pixels that would share a cell.
    print(
        "without the lane:",
        lp.check_map(lambda n, h, w, c: [n, c // 4, h, w], (1, 56, 56, 70)).injective.counterexample,
    )

    # Text in TVM's script syntax; TVM itself is not needed. Each step is checked before it is kept.
    sch = lp.Schedule(lp.load(PROGRAM))
    sch.transform_layout("conv2d", "W", lambda kh, kw, i, o: [o // 4, i // 4, kh, kw, i % 4, o % 4], pad_value=0.0)
    sch.transform_layout("conv2d", "conv2d", nchw4c, pad_value=0.0)
    for step in sch.steps:
        print(
            f"{step.status}: {step.transform.primitive} of {step.transform.arguments()['buffer']}, "
            f"{len(step.verdicts)} obligations"
        )

    # A step that may not be taken is refused, and the schedule is as it was.
    try:
        sch.transform_layout("pad_temp", "A", lambda n, h, w, c: [n, h, w, c // 4])
    except IllegalTransform as problem:
        print("refused:", problem.diagnostics[0].message)
    assert len(sch.steps) == 2

    # Lowered, flattened, compiled, compared with the reference interpreter on a small instance.
    kernel = sch.build("c")
    for name, info in kernel.buffers.items():
        print(f"{name}: logical {info.logical_shape}, physical {info.physical_shape}")

    # Called on arrays in the logical layout ...
    rng = np.random.default_rng(0)
    a = rng.standard_normal((1, 56, 56, 70), dtype=np.float32)
    w = rng.standard_normal((3, 3, 70, 70), dtype=np.float32)
    out = kernel(a, w)
    assert isinstance(out, np.ndarray)
    print("output:", out.shape, "of", out.dtype)

    # ... or, without any packing, on physical ones. Here the padding is there, and holds the zeros that were promised.
    weights = np.zeros((18, 18, 3, 3, 4, 4), dtype=np.float32)
    kh, kw, i, o = np.indices(w.shape)
    weights[o // 4, i // 4, kh, kw, i % 4, o % 4] = w
    blocked = np.full((1, 18, 56, 56, 4), np.nan, dtype=np.float32)
    kernel.raw(a, weights, blocked)
    channels_last = blocked.transpose(0, 2, 3, 1, 4).reshape(1, 56, 56, 72)
    assert np.array_equal(channels_last[..., :70], out)
    assert not channels_last[..., 70:].any()
    print("raw and logical calls agree; the padding is zero")


if __name__ == "__main__":
    main()
