"""Several contracts on one buffer: each cell of padding obeys the transform that introduced it.

The roadmap's seventh way. Rows that are there to fill up blocks of four hold anything; columns that fill up blocks of
eight hold zeros. Run it from anywhere: `python examples/padding/07_several_contracts.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, step_text

PROGRAM = """
@T.prim_func(s_tir=True)
def func(A: T.Buffer((14, 60), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(14, 60):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj]
"""


def main() -> None:
    """The schedule, the program after every step, the proof."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    print(program_text(schedule.func))
    print(step_text(schedule.transform_layout("sum", "A", lambda i, j: [i // 4, i % 4, j], pad_value=lp.undef)))
    print(step_text(schedule.transform_layout("sum", "A", lambda io, ii, j: [io, ii, j // 8, j % 8], pad_value=0)))
    print(step_text(schedule.transform_layout("sum", "B", lambda i: [i // 4, i % 4], pad_value=lp.undef)))
    print(step_text(schedule.sequential_buffer_access("sum", "A")))

    # Two guards, two reasons: sums of rows that are not there end in padding where anything may be, and zeros add
    # nothing to the others.
    print(step_text(schedule.remove_branching_through_overcompute("sum")))

    # The init stands before its reduction, where it is no branch in the innermost loop.
    schedule.decompose_reduction("sum", "j_0")
    schedule.lower_blocks()
    schedule.simplify()
    schedule.remove_assume()
    print(step_text(schedule.remove_store_undef()))
    print(proof_text(schedule.steps, "remove_branching_through_overcompute"), end="")


if __name__ == "__main__":
    main()
