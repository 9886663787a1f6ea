"""Element-wise through the padding: anything may be in it before, anything may be in it after.

The roadmap's sixth way. `undef` as a pad value is leave to read the input's padding and to write the output's. Run it
from anywhere: `python examples/padding/06_element_wise.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, step_text

PROGRAM = """
@T.prim_func(s_tir=True)
def func(A: T.Buffer((14,), "int32"), B: T.Buffer((14,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        with T.sblock("double"):
            vi = T.axis.spatial(14, i)
            B[vi] = 2 * A[vi]
"""


def main() -> None:
    """The schedule, the program after every step, the proof."""
    schedule = lp.Schedule(lp.loads(PROGRAM))
    print(program_text(schedule.func))
    print(step_text(schedule.transform_layout("double", "A", lambda i: [i // 4, i % 4], pad_value=lp.undef)))
    print(step_text(schedule.transform_layout("double", "B", lambda i: [i // 4, i % 4], pad_value=lp.undef)))
    print(step_text(schedule.sequential_buffer_access("double", "B")))

    # What is stored in the padding is overwritten by `undef`: it is not read.
    print(step_text(schedule.remove_branching_through_overcompute("double")))

    # The other way around, too: what only touches padding may be guarded off, and the guard may go again.
    print(step_text(schedule.remove_overcompute_through_branching("double")))
    print(step_text(schedule.remove_branching_through_overcompute("double")))

    # Assumptions and stores of `undef` are there for the proofs only.
    schedule.lower_blocks()
    schedule.simplify()
    schedule.remove_assume()
    print(step_text(schedule.remove_store_undef()))
    print(proof_text(schedule.steps, "remove_branching_through_overcompute"), end="")


if __name__ == "__main__":
    main()
