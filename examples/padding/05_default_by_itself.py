"""A default that arises by itself: a window that lies in zeros alone gives zero, so the padding's zeros need
no store.

The roadmap's fifth way. The convolution reaches two cells over either end of its input; stored two cells into rows of
8, what it reaches is padding. Its output has the padding that the next convolution wants. Run it from anywhere: `python
examples/padding/05_default_by_itself.py`.
"""

from __future__ import annotations

import layoutproof as lp
from layoutproof.lowering.schedule.trace import program_text, proof_text, refusal_text, step_text

PROGRAM = """
@T.prim_func(s_tir=True)
def {name}({a}: T.Buffer(({n},), "float32"), F: T.Buffer((3,), "float32"), {b}: T.Buffer(({m},), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for k in range(3):
        T.evaluate(T.assume(T.abs(F[k]) < T.infinity("float32")))
    for o, f in T.grid({m}, 3):
        with T.sblock("conv"):
            vo, vf = T.axis.remap("SR", [o, f])
            with T.init():
                {b}[vo] = T.float32(0)
            if 0 <= vo - vf and vo - vf < {n}:
                {b}[vo] = {b}[vo] + F[vf] * {a}[vo - vf]
"""
ROWS = "lambda i: [(i + 2)//8, (i + 2)%8]"


def convolution(name: str, a: str, n: int, b: str) -> lp.Schedule:
    """A convolution of `n` elements with 3 weights, all of the 'full' output: n + 2 elements."""
    return lp.Schedule(lp.loads(PROGRAM.format(name=name, a=a, n=n, b=b, m=n + 2)))


def first() -> lp.Schedule:
    """From the definition to loops without a branch."""
    schedule = convolution("first", "A", 16, "B")
    print(program_text(schedule.func))
    print(step_text(schedule.transform_layout("conv", "A", ROWS, pad_value=0.0)))
    print(step_text(schedule.transform_layout("conv", "B", ROWS, pad_value=0.0)))

    # Walking in the input's order reverses the terms of each sum, which takes the fast-math assumption to do so; the
    # init becomes a stage of its own.
    print(step_text(schedule.sequential_buffer_access("conv", "A")))
    print(step_text(schedule.sequential_buffer_access("conv_init", "B")))

    # Zeroing all of B makes the stage that fills its padding superfluous.
    print(step_text(schedule.remove_branching_through_overcompute("conv_init")))
    print(step_text(schedule.remove_no_op()))

    # Every weight is finite, so a window over padding adds zeros. The last row's would go into a row that is not there:
    # with the row taken modulo 3 they add zeros to the first.
    try:
        schedule.remove_branching_through_overcompute("conv", guards=[0, 1, 2, 3])
    except lp.IllegalTransform as problem:
        print(refusal_text(problem))
    schedule.remove_branching_through_overcompute("conv", guards=[0, 1, 2, 3], wrap=True)
    schedule.lower_blocks()
    print(step_text(schedule.simplify()))
    return schedule


def second() -> lp.Schedule:
    """The next convolution, of 18 elements stored the same way; its 20 cells have padding without a contract."""
    schedule = convolution("second", "B", 18, "C")
    schedule.transform_layout("conv", "B", ROWS, pad_value=0.0)
    schedule.transform_layout("conv", "C", ROWS, pad_value=lp.undef)
    schedule.sequential_buffer_access("conv", "B")
    schedule.sequential_buffer_access("conv_init", "C")
    schedule.remove_branching_through_overcompute("conv_init")
    schedule.remove_branching_through_overcompute("conv", guards=[0, 1, 2, 3], wrap=True)
    schedule.remove_no_op()
    schedule.lower_blocks()
    print(step_text(schedule.simplify()))
    return schedule


def main() -> None:
    """Both convolutions and both proofs."""
    one = first()
    two = second()
    print("first:")
    print(proof_text(one.steps, "remove_branching_through_overcompute"))
    print("second:")
    print(proof_text(two.steps, "remove_branching_through_overcompute"), end="")


if __name__ == "__main__":
    main()
