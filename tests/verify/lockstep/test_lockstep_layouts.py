"""Cells that moved: loads and stores under a cell map, padding that is filled, owed or assumed, views, and what may
overlap.
"""

from __future__ import annotations

import pytest
from tests.clauses import Clause, without
from tests.verify.lockstep.rewrites import SPLIT, accepted, buffer, function, lockstep, record, refused

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.lockstep.prove import Lockstep
from layoutproof.verify.verdict.verdict import Open

AB = f"{buffer('A', '14')}, {buffer('B', '14')}"
ZERO = '"T.float32(0.0)"'
APART = '"layoutproof.apart": True'
COPY = "for i in range(14):\n    B[i] = A[i]"
MOVED = "for i in range(14):\n    B[i // 4, i % 4] = A[i]"
PAD = "for p, q in T.grid(4, 4):\n    if 14 <= p * 4 + q:\n        B[p, q] = T.float32(0)"
ASSUME = "for p, q in T.grid(4, 4):\n    T.assume(not 14 <= p * 4 + q or A[p, q] == T.float32(0))"


def output(
    body: str, contract: str = ZERO, attrs: str = '"tirx.noalias": True', step: str = SPLIT, logical: str = "14"
) -> PrimFunc:
    """A function with the output `B` stored as 4 by 4."""
    head = f"{buffer('A', '14')}, {buffer('B', '4, 4')}"
    return function(head, body, f"{attrs}, {record('B_data', logical, step, '4, 4', contract)}")


def relaid(new: PrimFunc, pairs: dict[int, int | None] | None = None) -> Lockstep | Open:
    """The copy of `A` to `B`, with `B` re-laid."""
    return lockstep(function(AB, COPY), new, cells={"B": SPLIT}, pairs=pairs)


def reader(body: str, contract: str = ZERO) -> PrimFunc:
    """A function with the input `A` stored as 4 by 4."""
    head = f"{buffer('A', '4, 4')}, {buffer('B', '14')}"
    return function(head, body, f'"tirx.noalias": True, {record("A_data", "14", SPLIT, "4, 4", contract)}')


READ = "for i in range(14):\n    B[i] = A[i // 4, i % 4]"


def test_a_temporary_stored_differently() -> None:
    """Each store and load goes to the cell that the old one became."""
    old = function(
        AB, "C = T.alloc_buffer((14,))\nfor i in range(14):\n    C[i] = A[i]\nfor i in range(14):\n    B[i] = C[i]"
    )
    text = (
        "C = T.alloc_buffer((4, 4))\nfor i in range(14):\n    C[i // 4, i % 4] = A[i]\n"
        "for i in range(14):\n    B[i] = C[{}]"
    )
    accepted(lockstep(old, function(AB, text.format("i // 4, i % 4")), cells={"C": SPLIT}))
    refused(lockstep(old, function(AB, text.format("i % 4, i // 4")), cells={"C": SPLIT}), "is not known to be")
    # Row by row every element is where it was, which needs no map.
    accepted(lockstep(old, function(AB, text.format("i // 4, i % 4"))))


def test_padding_that_is_filled_and_owed() -> None:
    """The pad stage harms no element, and leaves every padding cell with the contract's value."""
    claims = accepted(relaid(output(f"{MOVED}\n{PAD}"), pairs={0: 0, 1: None}))
    assert any("writes only padding of the new layout" in claim for claim in claims)
    assert any("satisfies its contract `T.float32(0.0)`" in claim for claim in claims)


@pytest.mark.parametrize("condition", ["13 <= p * 4 + q", "14 <= p * 4 + q + 1", "p == 3", "14 <= p * 4 + q or p == 0"])
def test_a_pad_stage_that_reaches_an_element_is_refused(condition: str) -> None:
    """One cell too many is an element."""
    new = output(f"{MOVED}\n{PAD.replace('14 <= p * 4 + q', condition)}")
    refused(relaid(new, pairs={0: 0, 1: None}), "has no counterpart in the old program")


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        (PAD.replace("14 <= p * 4 + q", "15 <= p * 4 + q"), "may be left out"),
        (PAD.replace("T.float32(0)", "T.float32(1)"), "its contract is T.float32(0.0), got"),
        (PAD.replace("T.float32(0)", "T.undef()"), "its contract is T.float32(0.0), got"),
        (PAD.replace("    if 14", "    if A[0] > 0.0 and 14"), "or depends on data"),
        ("", "no stage at the function's top writes it"),
    ],
)
def test_owed_padding_that_is_not_paid_is_refused(stage: str, reason: str) -> None:
    """A cell left out, another value, no stage at all; accepted only when nobody asks."""
    new = output(f"{MOVED}\n{stage}")
    pairs: dict[int, int | None] = {0: 0, 1: None} if stage else {0: 0}
    refused(relaid(new, pairs=pairs), reason)
    with without(Clause.PADDING_POSTCONDITION):
        accepted(relaid(new, pairs=pairs))


def test_padding_that_is_written_again_is_refused() -> None:
    """A later stage that writes the buffer may write the padding too, as far as anybody looks."""
    refused(relaid(output(f"{PAD}\n{MOVED}"), pairs={0: None, 1: 0}), "is written after its padding was filled")


def test_padding_may_repeat_elements_but_not_padding() -> None:
    """A pad value that loads is what it says at the end only if nothing that it loads is filled as well."""
    wrap = "lambda p, q: B[0, (p * 4 + q) % 14]"
    value = "B[0, (p * 4 + q) % 14]"
    accepted(relaid(output(f"{MOVED}\n{PAD.replace('T.float32(0)', value)}", f"'{wrap}'"), pairs={0: 0, 1: None}))
    chain, value = "lambda p, q: B[3, q - 1]", "B[3, q - 1]"
    new = output(f"{MOVED}\n{PAD.replace('T.float32(0)', value)}", f"'{chain}'")
    refused(relaid(new, pairs={0: 0, 1: None}), "depends on other padding")


def test_padding_of_a_symbolic_layout_is_owed() -> None:
    """For every extent at once."""
    head = 'A: T.Buffer(("n",), "float32"), B: T.Buffer(({}), "float32")'
    attrs = f'"tirx.noalias": True, {record("B_data", repr("n"), SPLIT, repr("(n + 3)//4") + ", 4", ZERO)}'
    old = function(head.format("n,"), "for i in range(n):\n    B[i] = A[i]")
    stage = "for p, q in T.grid((n + 3) // 4, 4):\n    if n <= p * 4 + q:\n        B[p, q] = T.float32(0)"
    body = f"for i in range(n):\n    B[i // 4, i % 4] = A[i]\n{stage}"
    new = function(head.format("(n + 3) // 4, 4"), body, attrs)
    accepted(lockstep(old, new, cells={"B": SPLIT}, pairs={0: 0, 1: None}))
    short = function(head.format("(n + 3) // 4, 4"), body.replace("n <=", "n + 1 <="), attrs)
    refused(lockstep(old, short, cells={"B": SPLIT}, pairs={0: 0, 1: None}), "may be left out")


def test_what_is_assumed_of_new_padding() -> None:
    """Padding of an input that this step re-lays may be assumed to hold its contract's value."""
    claims = accepted(lockstep(function(AB, COPY), reader(f"{ASSUME}\n{READ}"), cells={"A": SPLIT}))
    assert any("precondition: padding of `A` is" in claim for claim in claims)


@pytest.mark.parametrize(
    ("assumption", "reason"),
    [
        (ASSUME.replace("14 <=", "13 <="), "it may speak of elements"),
        (ASSUME.replace("not 14 <= p * 4 + q or ", ""), "it may speak of elements"),
        (ASSUME.replace("T.float32(0)", "T.float32(1)"), "the contract in the layout record is"),
        (ASSUME.replace("==", "<"), "it does not say what one cell holds"),
        (ASSUME.replace("A[p, q]", "A[3, 3]"), "it does not speak of each cell once"),
        (f"{ASSUME}\n{ASSUME}", "it does not speak of each cell once"),
        (ASSUME.replace(" or A[p, q]", " or B[0] > T.float32(1) or A[p, q]"), "it speaks of more than one thing"),
        ("T.assume(B[3] == T.float32(0))", "this step gives the padding of B no contract"),
        ("T.assume(A[0, 0] == T.float32(0))", "it does not speak of each cell once"),
    ],
)
def test_other_new_assumptions_are_refused(assumption: str, reason: str) -> None:
    """Nothing about elements, nothing twice, nothing that the record does not say."""
    new = reader(f"{assumption}\n{READ}")
    refused(lockstep(function(AB, COPY), new, cells={"A": SPLIT}), reason)
    with without(Clause.ASSUMPTIONS):
        accepted(lockstep(function(AB, COPY), new, cells={"A": SPLIT}))


def test_padding_without_a_contract_may_not_be_assumed() -> None:
    """Nor padding of what the function writes."""
    new = reader(f"{ASSUME}\n{READ}", "None")
    refused(lockstep(function(AB, COPY), new, cells={"A": SPLIT}), "no contract")
    stage = ASSUME.replace("A[", "B[")
    refused(relaid(output(f"{stage}\n{MOVED}")), "B is written")


def test_old_assumptions_may_be_kept_or_dropped() -> None:
    """Kept, in other words even; not replaced by others."""
    old = function(AB, f"for p in range(14):\n    T.assume(not p < 3 or A[p] == T.float32(0))\n{COPY}")
    accepted(lockstep(old, function(AB, COPY)))
    accepted(
        lockstep(old, function(AB, f"for p in range(14):\n    T.assume(not p <= 2 or A[p] == T.float32(0))\n{COPY}"))
    )
    other = function(AB, f"for p in range(14):\n    T.assume(not p < 4 or A[p] == T.float32(0))\n{COPY}")
    refused(lockstep(old, other), "the new program assumes")


def test_an_assumption_that_holds_anyway_is_no_new_one() -> None:
    """A condition on loops alone that is always true."""
    accepted(lockstep(function(AB, COPY), function(AB, "for i in range(14):\n    T.assume(i < 20)\n    B[i] = A[i]")))
    new = function(AB, "for i in range(14):\n    T.assume(i < 10)\n    B[i] = A[i]")
    refused(lockstep(function(AB, COPY), new), "the new program assumes")


def test_identity_is_not_equality() -> None:
    """`A[0] == 0.0` in an assumption is value identity; of a let it is IEEE's, which -0.0 satisfies."""
    old = function(AB, "with T.LetStmt(A[0]) as x:\n    T.assume(x == T.float32(0))\n    B[0] = x")
    refused(lockstep(old, function(AB, "T.assume(A[0] == T.float32(0))\nB[0] = A[0]")), "assume")


def test_parameters_that_may_overlap() -> None:
    """One of two cannot be stored differently, unless the step asks every call that they do not overlap, in its own
    name.
    """
    old = function(AB, COPY, '"global_symbol": "main"')
    new = output(MOVED, "None", '"global_symbol": "main"')
    refused(lockstep(old, new, cells={"B": SPLIT}), "parameters may overlap")
    claims = accepted(lockstep(old, output(MOVED, "None", APART), cells={"B": SPLIT}))
    assert any("do not overlap" in claim for claim in claims)
    refused(lockstep(old, output(MOVED, "None"), cells={"B": SPLIT}), "does not say so as a step's own assumption")


@pytest.mark.parametrize(
    ("step", "logical"), [("lambda i: [i//4, i%4 ^ 1]", "14"), ("lambda i: [i%4, i//4]", "14"), (SPLIT, "15")]
)
def test_a_record_that_says_something_else_is_refused(step: str, logical: str) -> None:
    """The record is how callers know where the elements are."""
    refused(relaid(output(MOVED, "None", step=step, logical=logical)), "does not say where its cells went")


def test_a_parameter_that_changed_shape_without_a_map_is_refused() -> None:
    """Even though the bytes are where they were; and so is a record that grew while the cells stayed."""
    head = f"{buffer('A', '14')}, {buffer('B', '2, 7')}"
    refused(
        lockstep(function(AB, COPY), function(head, "for i in range(14):\n    B[i // 7, i % 7] = A[i]")),
        "another shape",
    )
    grown = function(AB, COPY, f'"tirx.noalias": True, {record("B_data", "14", SPLIT, "4, 4", "None")}')
    refused(lockstep(function(AB, COPY), grown), "its cells stay where they are")


def test_cells_that_a_call_may_see_stay() -> None:
    """What nobody looks into knows only the old layout."""
    call = '\nT.evaluate(T.call_extern("int32", "f"))'
    refused(lockstep(function(AB, COPY + call), output(MOVED + call, "None"), cells={"B": SPLIT}), "may see it")


def views(extent: str, dtype: str = "float32") -> str:
    """Views of `A` and `B` with one axis."""
    return "".join(f'{name}_flat = T.decl_buffer(({extent},), "{dtype}", data={name}.data)\n' for name in "AB")


def test_a_flat_view_keeps_every_byte_in_place() -> None:
    """The same cells through a view with one axis."""
    head = f"{buffer('A', '3, 5')}, {buffer('B', '3, 5')}"
    old = function(head, "for i, j in T.grid(3, 5):\n    B[i, j] = A[i, j]")
    flat = f"{views('15')}for i, j in T.grid(3, 5):\n    B_flat[{{0}}] = A_flat[{{0}}]"
    accepted(lockstep(old, function(head, flat.format("i * 5 + j"))))
    refused(lockstep(old, function(head, flat.format("i * 3 + j"))), "is not known to be")
    refused(lockstep(old, function(head, flat.format("i * 5 + j + 1"))), "is not known to be")


def test_a_flat_view_of_symbolic_extent() -> None:
    """Products of symbols are compared as polynomials."""
    head = 'A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((n, m), "float32")'
    old = function(head, "for i, j in T.grid(n, m):\n    B[i, j] = A[i, j]")
    flat = f"{views('n * m')}for i, j in T.grid(n, m):\n    B_flat[{{0}}] = A_flat[{{0}}]"
    accepted(lockstep(old, function(head, flat.format("i * m + j"))))
    refused(lockstep(old, function(head, flat.format("i * n + j"))), "is not known to be")


def test_truth_values_as_bytes() -> None:
    """A truth value is stored as a byte and read as one."""
    head = f"{buffer('A', '14', 'bool')}, {buffer('B', '14', 'bool')}"
    old = function(head, "for i in range(14):\n    B[i] = A[i]")
    flat = views("14", "int8")
    new = flat + 'for i in range(14):\n    B_flat[i] = T.cast(T.cast(A_flat[i], "bool"), "int8")'
    accepted(lockstep(old, function(head, new)))
    wrong = flat + 'for i in range(14):\n    B_flat[i] = T.cast(not T.cast(A_flat[i], "bool"), "int8")'
    refused(lockstep(old, function(head, wrong)), "is not known to be")


def test_vectors_are_compared_lane_by_lane() -> None:
    """A ramp over one axis against the ramp of the flat view."""
    head = f"{buffer('A', '3, 8')}, {buffer('B', '3, 8')}"
    old = function(head, "for i in range(3):\n    B[i, T.ramp(0, 2, 4)] = A[i, T.ramp(0, 1, 4)]")
    flat = f"{views('24')}for i in range(3):\n    B_flat[T.ramp(i * 8, {{0}}, 4)] = A_flat[T.ramp(i * 8, 1, 4)]"
    accepted(lockstep(old, function(head, flat.format(2))))
    refused(lockstep(old, function(head, flat.format(1))), "is not known to be")


def test_two_memories_may_not_become_one() -> None:
    """What the one held is lost."""
    stages = "for i in range(14):\n    C[i] = A[i]\n    D[i] = 1.0\n    B[i] = C[i] + D[i]"
    body = f"C = T.alloc_buffer((14,))\nD = T.alloc_buffer((14,))\n{stages}"
    old = function(AB, body)
    new = function(AB, body.replace("D = T.alloc_buffer((14,))\n", "").replace("D[i]", "C[i]"))
    refused(lockstep(old, new), "has no counterpart in the old program")


SWIZZLED = "lambda i: [i // 8, i // 8 % 8 ^ i % 8]"


@pytest.mark.parametrize(("first", "why"), [(60, None), (59, "has no counterpart"), (61, "may be left out")])
def test_padding_of_a_swizzle(first: int, why: str | None) -> None:
    """Whether all padding of a map with an XOR is filled is asked of its inverse; a cell that is left out is missed."""
    old = function(f"{buffer('A', '60')}, {buffer('B', '60')}", "for i in range(60):\n    B[i] = A[i]")
    body = (
        "for i in range(60):\n    B[i // 8, i // 8 % 8 ^ i % 8] = A[i]\n"
        f"for p, q in T.grid(8, 8):\n    if {first} <= p * 8 + (p % 8 ^ q):\n        B[p, q] = T.float32(0)"
    )
    attrs = f'"tirx.noalias": True, {record("B_data", "60", SWIZZLED, "8, 8", ZERO)}'
    found = lockstep(old, function(f"{buffer('A', '60')}, {buffer('B', '8, 8')}", body, attrs), cells={"B": SWIZZLED})
    if why is None:
        accepted(found)
    else:
        refused(found, why)
