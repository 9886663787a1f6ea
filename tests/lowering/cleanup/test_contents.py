"""Known values stand in the place of loads, as long as nothing may have written the cell since."""

from __future__ import annotations

import pytest
from tests.lowering.cleanup.programs import stated, text_of
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.shares import one_in

from layoutproof.ir.rewrite import Rewrite
from layoutproof.lowering.lower.simplify import Simplify, first_proved, simplified
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

USED = {
    "a value that depends on where it was stored": (
        """    for i, j in T.grid(4, 4):
        A[i * 4 + j] = i
    for k in range(16):
        B[k] = A[k]
""",
        """    for i, j in T.grid(4, 4):
        A[i * 4 + j] = i
    for k in range(16):
        B[k] = k // 4
""",
    ),
    "an assumption, until the cell is written": (
        """    T.assume(A[0] == 5)
    B[0] = A[0]
    A[0] = B[3]
    B[1] = A[0]
""",
        """    T.assume(A[0] == 5)
    B[0] = 5
    A[0] = B[3]
    B[1] = A[0]
""",
    ),
    "padding that is assumed, only where it is": (
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(16):
        if i < 14:
            B[i] = A[i]
        else:
            B[i] = A[i] + 1
""",
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(16):
        if i < 14:
            B[i] = A[i]
        else:
            B[i] = 1
""",
    ),
    "an assumption that later writes do not touch": (
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(14):
        A[i] = B[i]
    for i in range(14, 16):
        B[i] = A[i]
""",
        """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(14):
        A[i] = B[i]
    for i in range(14, 16):
        B[i] = 0
""",
    ),
    "in a re-laid buffer": (
        """    for i, j in T.grid(4, 4):
        T.assume(not (i == 3 and 2 <= j) or C[i, j] == 7)
    for i, j in T.grid(4, 4):
        B[i * 4 + j] = T.if_then_else(i == 3 and 2 <= j, C[i, j], 1)
""",
        """    for i, j in T.grid(4, 4):
        T.assume(not (i == 3 and 2 <= j) or C[3, j] == 7)
    for i, j in T.grid(4, 4):
        B[i * 4 + j] = T.if_then_else(i == 3 and 2 <= j, 7, 1)
""",
    ),
    "what was stored": (
        """    A[0] = 7
    for i in range(16):
        B[i] = A[0]
""",
        """    A[0] = 7
    for i in range(16):
        B[i] = 7
""",
    ),
    "what was stored in this iteration": (
        """    for i in range(16):
        A[i] = 0
        B[i] = A[i] + B[i]
""",
        """    for i in range(16):
        A[i] = 0
        B[i] = B[i]
""",
    ),
    "what a loop stored, one cell changed since": (
        """    for i in range(16):
        A[i] = 3
    A[4] = 5
    B[1] = A[4]
    B[2] = A[5]
    for i in range(5, 16):
        B[i] = A[i]
""",
        """    for i in range(16):
        A[i] = 3
    A[4] = 5
    B[1] = 5
    B[2] = 3
    for i in range(5, 16):
        B[i] = 3
""",
    ),
    "the digits of a flat index": (
        """    for i, j in T.grid(4, 4):
        A[i * 4 + j] = 3
    for k in range(16):
        B[15 - k] = A[k]
""",
        """    for i, j in T.grid(4, 4):
        A[i * 4 + j] = 3
    for k in range(16):
        B[15 - k] = 3
""",
    ),
    "a comparison that is assumed": (
        """    T.assume(A[0] > 3)
    if A[0] > 3:
        B[0] = 1
    A[0] = T.if_then_else(3 >= A[0], A[1], 7)
    if A[1] > 3:
        B[1] = 1
""",
        """    T.assume(A[0] > 3)
    B[0] = 1
    A[0] = 7
    if A[1] > 3:
        B[1] = 1
""",
    ),
    "a comparison that is assumed of every cell": (
        """    for i in range(16):
        T.assume(i < 4 or A[i] >= 5)
    for i in range(6, 16):
        B[i] = T.if_then_else(A[i] >= 5, 1, 2)
""",
        """    for i in range(16):
        T.assume(i < 4 or A[i] >= 5)
    for i in range(6, 16):
        B[i] = 1
""",
    ),
    "lanes": (
        """    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(4):
        B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]
    B[T.Ramp(0, 2, 4)] = A[T.Broadcast(3, 4)]
""",
        """    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(4):
        B[T.Ramp(i * 4, 1, 4)] = T.Broadcast(0, 4)
    B[T.Ramp(0, 2, 4)] = T.Broadcast(0, 4)
""",
    ),
    "through a temporary of blocks": (
        """    S = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.sblock("fill"):
            v = T.axis.spatial(16, i)
            T.reads()
            T.writes(S[v])
            S[v] = 2
    for i in range(16):
        with T.sblock("use"):
            v = T.axis.spatial(16, i)
            T.reads(S[v], A[v])
            T.writes(B[v])
            B[v] = S[v] + A[v]
""",
        """    S = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.sblock("fill"):
            v = T.axis.spatial(16, i)
            T.reads()
            T.writes(S[v])
            S[v] = 2
    for i in range(16):
        with T.sblock("use"):
            v = T.axis.spatial(16, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = 2 + A[v]
""",
    ),
}


@one_in(14)
@pytest.mark.parametrize("name", USED)
def test_known_values_are_used(name: str) -> None:
    """Fact 90: each step is proved, prints what is expected and computes what the old program did."""
    before, after = USED[name]
    func = stated(before)
    schedule = Schedule(func)
    assert schedule.simplify().status is Status.PROVED
    assert text_of(schedule.func) == after
    assert_same_results(func, schedule.func)
    assert Schedule.replay(func, schedule.trace).func == schedule.func


UNUSED = {
    "a later iteration finds another value": """    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(16):
        B[i] = A[0]
        A[0] = i
""",
    "a comparison of what was written since": """    T.assume(A[0] > 3)
    A[0] = B[0]
    if A[0] > 3:
        B[0] = 1
""",
    "another comparison than was assumed": """    T.assume(A[0] > 3)
    if A[0] > 4:
        B[0] = 1
""",
    "an assumption in a scope that has ended": """    for i in range(16):
        if i < 3:
            T.assume(A[0] == 5)
        B[i] = A[0]
""",
    "an assumption that a scatter may touch": """    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(15):
        if 0 <= B[i] and B[i] < 16:
            A[B[i]] = 1
    B[15] = A[3]
""",
    "a part that is not known": """    for i in range(16):
        T.assume(i < 14 or A[i] == 0)
    for i in range(13, 16):
        B[i] = A[i]
""",
    "what later iterations overwrote": """    for i in range(16):
        A[i // 2] = B[i]
        A[0] = 1
    for i in range(16):
        B[i] = A[i // 2]
""",
    "a value written by a loop that may not run": """    A[0] = B[0]
    for i in range(B[1]):
        A[0] = 1
    B[2] = A[0]
""",
}


@pytest.mark.parametrize("name", UNUSED)
def test_values_that_may_have_changed_are_not_used(name: str) -> None:
    """An assumption dies with the first write that may touch it; nothing is used outside of where it is known."""
    func = stated(UNUSED[name])
    assert first_proved(func, simplified).new == func
    assert Simplify().propose(func).new == func


def test_assumptions_on_other_parameters_die_with_a_store_that_may_overlap() -> None:
    """Parameters may overlap unless the function says otherwise."""
    func = program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.assume(A[0] == 5)
    B[3] = 1
    B[0] = A[0]
""")
    assert Simplify().propose(func).new == func


@pytest.mark.parametrize("variable", ["x: T.let[T.bool] = C[0]", "x: T.let[T.float32] = A[0]"])
def test_conditions_on_variables_that_are_no_numbers_decide_nothing(variable: str) -> None:
    """A bound truth value or float in a condition around a load leaves the load as it is."""
    test = "x" if "bool" in variable else "x < A[1]"
    func = program(f"""def main(
    A: T.Buffer((8,), "float32"), B: T.Buffer((1, 4), "float32"), C: T.Buffer((1,), "bool")
):
    T.func_attr({{"tirx.noalias": True}})
    B[0, 1] = T.float32(2.5)
    {variable}
    for i in range(5):
        C[0] = T.And({test}, B[0, i % 4] < A[i])
""")
    assert "B[0, i % 4] < A[i]" in text_of(Simplify().propose(func).new)


def test_a_call_may_change_anything() -> None:
    """Nothing is known after an opaque call."""
    func = stated("""    A[0] = 7
    T.evaluate(T.call_extern("int32", "change", A.data))
    B[0] = A[0]
""")
    assert Simplify().propose(func).new == func


def test_a_wrong_value_is_refuted() -> None:
    """The checker does not believe the pass: a value that a later iteration does not find is found out."""
    func = stated(UNUSED["a later iteration finds another value"])
    new = stated("""    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(16):
        B[i] = 0
        A[0] = i
""")
    witness = Simplify().propose(func).witness
    assert any(v.status is Status.REFUTED for v in check_rewrite(Rewrite(func, new, witness)))


def test_what_loops_are_in_is_known_of_symbols_too() -> None:
    """An assumption on a symbol simplifies index arithmetic, and stays in the program."""
    func = program("""def main(A: T.Buffer((16,), "int32"), n: T.int32):
    T.assume(0 <= n and n < 8)
    for i in range(16):
        A[i] = n // 8
""")
    schedule = Schedule(func)
    schedule.simplify()
    assert schedule.script().endswith("""    T.assume(0 <= n and n < 8)
    for i in range(16):
        A[i] = 0
""")


NOT_PROVED_YET = {
    "a gather from a buffer that holds one value": """    for i in range(16):
        T.assume(A[i] == 0)
    for i in range(16):
        if 0 <= B[i] and B[i] < 16:
            C[0, 0] = A[B[i]]
""",
}


@pytest.mark.parametrize("name", NOT_PROVED_YET)
def test_what_is_not_proved_is_left_out(name: str) -> None:
    """The pass sees these, and the checker cannot say yet that they are so; the schedule keeps the program as it is."""
    func = stated(NOT_PROVED_YET[name])
    schedule = Schedule(func)
    schedule.simplify()
    assert schedule.func == func


def test_an_assumption_that_its_own_loop_breaks_is_no_program() -> None:
    """What is assumed of a loop that goes beyond it holds of no run, so that no step is proved of it."""
    func = stated("""    for i in range(16):
        T.assume(i < 14)
        if i < 14:
            B[i] = 1
        else:
            B[i] = 2
""")
    with pytest.raises(IllegalTransform, match="does not hold at every iteration"):
        Schedule(func).simplify()
