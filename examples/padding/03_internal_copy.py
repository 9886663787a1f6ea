"""An internal copy that has padding: the signature stays as it is, and the copy's padding holds what the reduction
needs.

The roadmap's third way. Nothing is assumed of a caller: what the padding holds is seen from the stores. Run it from
anywhere: `python examples/padding/03_internal_copy.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, step_text

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
    # With a fixed interface, a step that re-laid a parameter would be refused.
    schedule = lp.Schedule(lp.loads(PROGRAM), interface="fixed")
    print(program_text(schedule.func))
    print(step_text(schedule.cache_read("sum", "A", "local")))
    print(step_text(schedule.transform_layout("sum", "A_local", lambda i: [i // 4, i % 4], pad_value=0)))
    print(step_text(schedule.sequential_buffer_access("A_local", "A_local")))
    print(step_text(schedule.sequential_buffer_access("sum", "A_local")))

    # The two cells were filled with 0 before, and adding 0 changes nothing.
    print(step_text(schedule.remove_branching_through_overcompute("sum")))
    print(proof_text(schedule.steps, "remove_branching_through_overcompute"), end="")


if __name__ == "__main__":
    main()
