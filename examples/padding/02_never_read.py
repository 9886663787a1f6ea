"""Padding that is never read: the consumer's loops keep a guard, whatever the padding holds.

The roadmap's second way, and what happens without a pad value. Run it from anywhere: `python
examples/padding/02_never_read.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, refusal_text, step_text

PROGRAM = """
@T.prim_func(s_tir=True)
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((1,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("sum"):
            vi = T.axis.reduce(14, i)
            with T.init():
                B[0] = 0
            B[0] = B[0] + A[vi]
"""


def main() -> None:
    """The schedule, the program after every step, the proof."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    print(program_text(schedule.func))
    print(step_text(schedule.transform_layout("sum", "A", lambda i: [i // 4, i % 4])))
    print(step_text(schedule.sequential_buffer_access("sum", "A")))

    # The padding may not even be looked at: it may never have been written.
    try:
        schedule.remove_branching_through_overcompute("sum")
    except lp.IllegalTransform as problem:
        print(refusal_text(problem))

    # Which promise about the padding would let the guard go? Each candidate is tried, each answer proved.
    print(schedule.pad_value_search("sum", "A"))
    print()
    print(proof_text(schedule.steps, "sequential_buffer_access"), end="")


if __name__ == "__main__":
    main()
