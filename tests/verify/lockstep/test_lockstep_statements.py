"""Loops, branches, lets, memory and stores side by side: what matches, and what does not although it looks like it."""

from __future__ import annotations

import pytest
from tests.clauses import Clause, without
from tests.verify.lockstep.rewrites import accepted, buffer, function, lockstep, refused

AB = f"{buffer('A', '14')}, {buffer('B', '14')}"
ABI = f"{buffer('A', '14', 'int32')}, {buffer('B', '14', 'int32')}"
SQUARES = f"{buffer('A', '6, 6')}, {buffer('B', '6, 6')}"


def test_other_names_of_loops_change_nothing() -> None:
    """Loops are matched by what they run over, not by their names."""
    old = function(SQUARES, "for i, j in T.grid(6, 6):\n    B[i, j] = A[j, i]")
    new = function(SQUARES, "for x, y in T.grid(6, 6):\n    B[x, y] = A[y, x]")
    claims = accepted(lockstep(old, new))
    assert any("B[x, y]" in claim for claim in claims)


@pytest.mark.parametrize(
    "new", ["B[i, j] = A[i, j]", "B[j, i] = A[j, i]", "B[i, (j + 1) % 6] = A[j, i]", "B[i, j] = A[j, (i + 1) % 6]"]
)
def test_another_cell_is_refused(new: str) -> None:
    """A store or a load of another cell does not match."""
    old = function(SQUARES, "for i, j in T.grid(6, 6):\n    B[i, j] = A[j, i]")
    refused(lockstep(old, function(SQUARES, f"for i, j in T.grid(6, 6):\n    {new}")), "is not known to be")


def test_loops_in_another_order_are_refused() -> None:
    """The walk decides rewrites that keep the order; an exchange of loops is for the dataflow."""
    old = function(SQUARES, "for i in range(5):\n    for j in range(6):\n        B[i, j] = A[j, i]")
    new = function(SQUARES, "for j in range(6):\n    for i in range(5):\n        B[i, j] = A[j, i]")
    refused(lockstep(old, new), "not known to run over the same numbers")


@pytest.mark.parametrize("extent", ["13", "15", "12 + 1"])
def test_loops_of_other_lengths_are_refused(extent: str) -> None:
    """One iteration more or less does not match."""
    old = function(AB, "for i in range(14):\n    B[i] = A[i]")
    refused(lockstep(old, function(AB, f"for i in range({extent}):\n    B[i] = A[i]")), "loops i")


def test_equal_extents_in_other_words_match() -> None:
    """Extents are compared as numbers, symbols included."""
    head = 'A: T.Buffer(("n",), "float32"), B: T.Buffer((n,), "float32")'
    old = function(head, "for i in range(n):\n    B[i] = A[i]")
    new = function(head, "for i in range((n * 4 + 3) // 4):\n    B[i] = A[i]")
    accepted(lockstep(old, new))


def test_a_serial_loop_may_become_parallel() -> None:
    """Whether iterations meet is asked of the new program elsewhere."""
    old = function(AB, "for i in range(14):\n    B[i] = A[i]")
    accepted(lockstep(old, function(AB, "for i in T.parallel(14):\n    B[i] = A[i]")))


def test_a_loop_of_one_iteration_may_be_written_out() -> None:
    """Its variable stands for the one number it has."""
    old = function(AB, "for i in range(3, 4):\n    B[i] = A[i]")
    accepted(lockstep(old, function(AB, "B[3] = A[3]")))
    refused(lockstep(old, function(AB, "B[3] = A[4]")), "is not known to be")


def test_what_never_runs_may_go() -> None:
    """A branch that is never taken, and a loop without iterations."""
    old = function(
        AB,
        "for i in range(14):\n    B[i] = A[i]\n    if i > 20:\n        B[i] = 0.0\nfor j in range(0):\n    B[j] = 1.0",
    )
    new = function(AB, "for i in range(14):\n    B[i] = A[i]")
    accepted(lockstep(old, new, pairs={0: 0}))
    old = function(AB, "for i in range(14):\n    B[i] = A[i]\n    if i > 12:\n        B[i] = 0.0")
    refused(lockstep(old, new, pairs={0: 0}), "has no counterpart in the new program")


def test_a_condition_that_always_holds_may_go() -> None:
    """And one that does not may not."""
    old = function(AB, "for i in range(14):\n    if i < 14:\n        B[i] = A[i]")
    new = function(AB, "for i in range(14):\n    B[i] = A[i]")
    accepted(lockstep(old, new))
    old = function(AB, "for i in range(14):\n    if i < 13:\n        B[i] = A[i]")
    refused(lockstep(old, new), "the old program has a branch")


@pytest.mark.parametrize("condition", ["i // 4 * 4 + i % 4 < 10", "not i >= 10", "i <= 9", "i < 10 and i < 12"])
def test_a_condition_in_other_words(condition: str) -> None:
    """Conditions on loops are compared by what they mean."""
    old = function(AB, "for i in range(14):\n    if i < 10:\n        B[i] = A[i]")
    accepted(lockstep(old, function(AB, f"for i in range(14):\n    if {condition}:\n        B[i] = A[i]")))


@pytest.mark.parametrize("condition", ["i <= 10", "i < 9", "i < 10 or i == 13", "i >= 10"])
def test_another_condition_is_refused(condition: str) -> None:
    """`<` is not `<=`."""
    old = function(AB, "for i in range(14):\n    if i < 10:\n        B[i] = A[i]")
    new = function(AB, f"for i in range(14):\n    if {condition}:\n        B[i] = A[i]")
    refused(lockstep(old, new), "not known to be the same condition")


def test_conditions_on_data() -> None:
    """The same cells decide, read at the same moment."""
    old = function(AB, "for i in range(14):\n    if A[i] > 0.0:\n        B[i] = A[i]\n    else:\n        B[i] = 1.0")
    accepted(
        lockstep(
            old,
            function(AB, "for k in range(14):\n    if A[k] > 0.0:\n        B[k] = A[k]\n    else:\n        B[k] = 1.0"),
        )
    )
    new = function(AB, "for i in range(14):\n    if A[i] >= 0.0:\n        B[i] = A[i]\n    else:\n        B[i] = 1.0")
    refused(lockstep(old, new), "not known to be the same condition")
    new = function(AB, "for i in range(14):\n    if A[i] > 0.0:\n        B[i] = A[i]")
    refused(lockstep(old, new), "has no counterpart in the new program")


def test_an_index_that_depends_on_data() -> None:
    """A cell found through data is the same cell where the data is the same."""
    head = f"{buffer('A', '14')}, {buffer('B', '14')}, {buffer('D', '14', 'int32')}"
    old = function(head, "for i in range(14):\n    B[D[i] % 14] = A[D[i] % 14]")
    accepted(lockstep(old, function(head, "for i in range(14):\n    B[D[i] % 14] = A[D[i] % 7 + D[i] // 7 % 2 * 7]")))
    refused(
        lockstep(old, function(head, "for i in range(14):\n    B[D[i] % 14] = A[D[13 - i] % 14]")), "is not known to be"
    )


def test_two_stores_may_not_change_places() -> None:
    """Not even where nothing would come of it: that is for the dataflow."""
    old = function(AB, "for i in range(14):\n    B[i] = A[i]\n    B[13 - i] = 1.0")
    new = function(AB, "for i in range(14):\n    B[13 - i] = 1.0\n    B[i] = A[i]")
    refused(lockstep(old, new), "is not known to be")
    refused(lockstep(old, new, pairs={0: 1, 1: 0}), "goes on")


def test_a_store_may_not_get_lost_or_be_added() -> None:
    """Neither program may do more than the other."""
    one = function(AB, "for i in range(14):\n    B[i] = A[i]")
    two = function(AB, "for i in range(14):\n    B[i] = A[i]\nB[3] = 2.0")
    refused(lockstep(two, one, pairs={0: 0}), "has no counterpart in the new program")
    refused(lockstep(one, two, pairs={0: 0, 1: None}), "has no counterpart in the old program")


def test_a_store_of_what_is_there_makes_no_difference() -> None:
    """`B[3] = B[3]` may come and go; `B[3] = B[4]` may not."""
    one = function(AB, "for i in range(14):\n    B[i] = A[i]")
    same = function(AB, "for i in range(14):\n    B[i] = A[i]\nB[3] = B[3]")
    other = function(AB, "for i in range(14):\n    B[i] = A[i]\nB[3] = B[4]")
    accepted(lockstep(one, same, pairs={0: 0, 1: None}))
    accepted(lockstep(same, one, pairs={0: 0}))
    refused(lockstep(other, one, pairs={0: 0}), "has no counterpart")


def test_undefined_values_may_be_left_out_or_become_something() -> None:
    """A cell that holds anything may hold what it held, or zero; a cell that holds something may not hold anything."""
    old = function(AB, "for i in range(14):\n    B[i] = T.undef()")
    accepted(lockstep(old, function(AB, "T.evaluate(0)"), pairs={}))
    new = function(AB, "for i in range(14):\n    B[i] = A[i]")
    accepted(lockstep(old, new))
    refused(lockstep(new, old), "is not known to be")


def test_an_undefined_part_may_become_something() -> None:
    """In the untaken side of a choice; but not the other way about, and a float sum with it is not any float."""
    old = function(AB, "for i in range(14):\n    B[i] = T.Select(i < 4, A[i], T.undef())")
    new = function(AB, "for i in range(14):\n    B[i] = T.Select(i < 4, A[i], T.float32(0))")
    accepted(lockstep(old, new))
    refused(lockstep(new, old), "is not known to be")
    old = function(AB, "for i in range(14):\n    B[i] = A[i] * T.undef()")
    refused(lockstep(old, function(AB, "T.evaluate(0)"), pairs={}), "has no counterpart")


def test_lets_stand_for_their_values() -> None:
    """Where what they load does not change; where it changes, both programs must have them."""
    old = function(AB, "for i in range(14):\n    with T.LetStmt(A[i]) as x:\n        B[i] = x * x")
    accepted(lockstep(old, function(AB, "for i in range(14):\n    B[i] = A[i] * A[i]")))
    changing = "for i in range(14):\n    with T.LetStmt(B[i]) as x:\n        B[i] = A[i]\n        B[13 - i] = x"
    accepted(lockstep(function(AB, changing), function(AB, changing.replace("x", "y"))))
    late = function(AB, "for i in range(14):\n    B[i] = A[i]\n    B[13 - i] = B[i]")
    refused(lockstep(function(AB, changing), late), "the old program has a let")


def test_arithmetic_on_data_in_a_let_wraps() -> None:
    """A let of a product wraps; as part of an index it would not, so it does not stand for the product there."""
    head = f"{buffer('B', '14', 'int32')}, {buffer('D', '14', 'int32')}"
    old = function(head, "for i in range(14):\n    with T.LetStmt(D[i] * 4 // 4) as x:\n        B[x] = 1")
    refused(lockstep(old, function(head, "for i in range(14):\n    B[D[i]] = 1")), "the old program has a let")


def test_a_temporary_must_live_as_long() -> None:
    """Memory that is new in every iteration forgets what it held; one that is not may serve for it."""
    inside = (
        'for i in range(14):\n    with T.block("b"):\n        T_ = T.alloc_buffer((1,))\n'
        "        T_[0] = A[i]\n        B[i] = T_[0]"
    )
    outside = "T_ = T.alloc_buffer((1,))\nfor i in range(14):\n    T_[0] = A[i]\n    B[i] = T_[0]"
    accepted(lockstep(function(AB, inside), function(AB, outside)))
    refused(lockstep(function(AB, outside), function(AB, inside)), "does not have it anew")


def test_a_temporary_that_nobody_reads() -> None:
    """What it holds makes no difference, but a store that now goes to a parameter does."""
    old = function(AB, "T_ = T.alloc_buffer((14,))\nfor i in range(14):\n    T_[i] = A[i]\n    B[i] = A[i]")
    accepted(lockstep(old, function(AB, "for i in range(14):\n    B[i] = A[i]"), pairs={0: 1}))
    new = function(AB, "for i in range(14):\n    B[13 - i] = A[i]\n    B[i] = A[i]")
    refused(lockstep(old, new), "has no counterpart in the old program")


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("T.max(B[i], A[i])", "T.max(A[i], B[i])"),
        ("B[i] - A[i]", "A[i] - B[i]"),
        ("A[i] + T.float32(0)", "A[i]"),
        ("A[i] * (A[i] * B[i])", "(A[i] * A[i]) * B[i]"),
        ("A[i] * A[i]", "T.exp(A[i])"),
    ],
)
def test_another_value_is_refused(value: str, other: str) -> None:
    """Operands in another order of what does not commute, sums grouped otherwise, and `x + 0.0`, which loses -0.0."""
    old = function(AB, f"for i in range(14):\n    B[i] = {value}")
    new = function(AB, f"for i in range(14):\n    B[i] = {other}")
    refused(lockstep(old, new), "is not known to be")
    with without(Clause.VALUES):
        accepted(lockstep(old, new))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("A[i] * T.float32(1)", "A[i]"),
        ("B[i] + A[i]", "A[i] + B[i]"),
        ("T.if_then_else(i < 14, A[i], B[i])", "A[i]"),
        ("T.exp(A[(i * 4) // 4])", "T.exp(A[i])"),
    ],
)
def test_the_same_value_in_other_words(value: str, other: str) -> None:
    """Bit for bit the same, for every float."""
    old = function(AB, f"for i in range(14):\n    B[i] = {value}")
    accepted(lockstep(old, function(AB, f"for i in range(14):\n    B[i] = {other}")))


def test_integers_wrap_where_they_are_values() -> None:
    """`x*4 // 4` is `x` only where nothing wraps."""
    old = function(ABI, "for i in range(14):\n    B[i] = A[i] * 4 // 4")
    refused(lockstep(old, function(ABI, "for i in range(14):\n    B[i] = A[i]")), "is not known to be")
    old = function(ABI, "for i in range(14):\n    B[i] = i * 4 // 4")
    accepted(lockstep(old, function(ABI, "for i in range(14):\n    B[i] = i")))


def test_division_that_truncates_is_another_one() -> None:
    """Below zero they differ."""
    old = function(ABI, "for i in range(-7, 7):\n    B[i + 7] = i // 4")
    refused(
        lockstep(old, function(ABI, "for i in range(-7, 7):\n    B[i + 7] = T.truncdiv(i, 4)")), "is not known to be"
    )
    old = function(ABI, "for i in range(14):\n    B[i] = i // 4")
    accepted(lockstep(old, function(ABI, "for i in range(14):\n    B[i] = T.truncdiv(i, 4)")))


def test_calls_keep_their_order_and_number() -> None:
    """What nobody looks into may do anything: it is called as often, with the same arguments, in the same order."""
    one, two = 'T.evaluate(T.call_extern("int32", "f", A[0]))', 'T.evaluate(T.call_extern("int32", "g", A[1]))'
    old = function(AB, f"{one}\n{two}")
    accepted(lockstep(old, function(AB, f"{one}\nT.evaluate(0)\n{two}")))
    refused(lockstep(old, function(AB, f"{two}\n{one}")), "not known to be the one")
    refused(lockstep(old, function(AB, one)), "has no counterpart in the new program")
    refused(lockstep(old, function(AB, f"{one}\n{two}\n{two}")), "has no counterpart in the old program")
    refused(lockstep(old, function(AB, f"{one}\n{two.replace('A[1]', 'A[2]')}")), "not known to be the one")


def test_calls_may_not_be_duplicated_or_dropped_in_values() -> None:
    """Nor run at the same time."""
    call = 'T.call_extern("float32", "f", A[i])'
    old = function(AB, f"for i in range(14):\n    B[i] = T.Select(i < 14, {call}, {call})")
    refused(lockstep(old, function(AB, f"for i in range(14):\n    B[i] = {call}")), "is not known to be")
    old = function(AB, f"for i in range(14):\n    B[i] = {call}")
    refused(
        lockstep(old, function(AB, f"for i in T.parallel(14):\n    B[i] = {call}")),
        "has a call whose body is not known",
    )
    undefined = function(AB, "for i in range(14):\n    B[i] = T.undef()")
    refused(lockstep(undefined, old), "is not known to be")


def test_memory_that_comes_into_being_twice_is_refused() -> None:
    """As are matched regions and thread axes: the walk says what it does not look into."""
    old = function(AB, 'for i in T.thread_binding(14, thread="threadIdx.x"):\n    B[i] = A[i]')
    new = function(AB, "for i in range(14):\n    B[i] = A[i]")
    refused(lockstep(old, new), "threads")
