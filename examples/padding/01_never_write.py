"""Padding that is never written: it may not be accessed, so the producer's loops keep a guard.

The roadmap's first way, and what happens without a pad value. Run it from anywhere: `python
examples/padding/01_never_write.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, refusal_text, step_text

PROGRAM = """
@T.prim_func(s_tir=True)
def func(A: T.Buffer((14,), "int32")):
    for i in range(14):
        with T.sblock("fill"):
            vi = T.axis.spatial(14, i)
            A[vi] = 42
"""


def main() -> None:
    """The schedule, the program after every step, the proof."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    print(program_text(schedule.func))

    # 14 elements in 4 rows of 4: the last two cells are padding. The loop still visits elements only.
    print(step_text(schedule.transform_layout("fill", "A", lambda i: [i // 4, i % 4])))

    # Walking through memory in order visits every cell; a guard skips the two that may not be written.
    print(step_text(schedule.sequential_buffer_access("fill", "A")))

    # Without a contract the guard cannot go: the padding would be written, even if only with a value that is not read.
    try:
        schedule.remove_branching_through_overcompute("fill")
    except lp.IllegalTransform as problem:
        print(refusal_text(problem))

    print(proof_text(schedule.steps, "sequential_buffer_access"), end="")


if __name__ == "__main__":
    main()
