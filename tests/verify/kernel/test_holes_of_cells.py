"""Wrong rewrites that the kernel once accepted, of cells: which ones a value loads, and what may be in them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from tests.verify.kernel.test_holes import AB, CELL, COPY, INTEGERS, ONES, OWN, WIDE, function, rejected

from layoutproof.verify.certificate.finder.kernel_evidence import Found, evidence_for, try_kernel
from layoutproof.verify.kernel.judge import judged_in_turn
from layoutproof.verify.kernel.programs import Map
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import Rejected
from layoutproof.verify.kernel.step import Source


@pytest.mark.parametrize(
    ("value", "wrong", "right"),
    [
        ("C[0] * D[0] + C[1] * D[1]", "C[0] * D[1] + C[1] * D[0]", "C[1] * D[1] + C[0] * D[0]"),
        ("T.Select(C[0] < C[1], D[0], D[1])", "T.Select(C[0] > C[1], D[0], D[1])", "T.Select(C[1] > C[0], D[0], D[1])"),
        ("T.Select(i < 4, C[0], C[1])", "T.Select(not (i < 4), C[0], C[1])", "T.Select(not (i < 4), C[1], C[0])"),
    ],
)
def test_cells_of_a_temporary_of_a_loop_are_paired_as_the_values_are(value: str, wrong: str, right: str) -> None:
    """Where a law changes the operands, their loads change with them."""
    parameters = AB.replace("B:", 'D: T.Buffer((2,), "float32"), B:')
    cells = 'C = T.alloc_buffer((2,), "float32")\n    C[0] = A[i]\n    C[1] = D[0]'
    old = f"for i in range(8):\n    {cells}\n    B[i] = {value}"
    assert rejected(parameters, old, old.replace(value, right)) == set()
    assert rejected(parameters, old, old.replace(value, wrong)) == {"same-end"}


def test_parameters_keep_their_elements_and_axes() -> None:
    """One of vectors is none of numbers, though its memory is; nor do the groups of its axes change."""
    vectors = AB.replace('"float32"', '"float32x2"')
    numbers = AB.replace("(8,)", "(8, 2)")
    copy = "for i, j in T.grid(8, 2):\n    B[i, j] = A[i, j]"
    assert rejected(vectors, COPY, COPY) == rejected(numbers, copy, copy) == set()
    assert rejected(vectors, COPY, copy, "# theta: 0 -> 0: lambda i, j: [i, j]\n", (numbers, "")) == {"interface"}
    grouped = numbers.replace('"float32")', '"float32", axis_separators=[1])', 1)
    assert rejected(grouped, copy, copy) == set()
    assert rejected(numbers, copy, copy, other=(grouped, "")) == {"interface"}


def test_attributes_keep_their_types() -> None:
    """`True` is equal to 1 and to 1.0, and is not the same attribute."""
    texts = [function(name, AB, COPY, f'"x": {x}') for name, x in (("before", "True"), ("after", "1"))]
    claims = try_kernel("# functions: f, f\n" + "".join(texts))[0]
    assert {claim.kind for claim in claims if not claim.is_accepted} == {"interface"}


@pytest.mark.parametrize(("contract", "kinds"), [('"undef"', set()), ("None", {"same-value"})])
def test_conditions_read_no_padding_without_a_contract(contract: str, kinds: set[str]) -> None:
    """Though nothing is stored there."""
    step = f'{{"index_map": "lambda i: [i]", "shape": [8], "contract": {contract}}}'
    layout = f'"layoutproof.layout": {{"A_data": {{"logical_shape": [4], "steps": [{step}]}}}}'
    nest = "for i in range(8):\n    if {}:\n        if {}:\n            B[i] = T.float32(1)"
    texts = [
        ("before", nest.format("i < 4", "A[i] > T.float32(0)")),
        ("after", nest.format("A[i] > T.float32(0)", "i < 4")),
    ]
    text = "# functions: f, f\n" + "".join(function(name, AB, body, layout) for name, body in texts)
    assert {claim.kind for claim in try_kernel(text)[0] if not claim.is_accepted} == kinds


@pytest.mark.parametrize(
    ("extra", "kinds"),
    [
        ("U[0] = C[0] + 1", set()),
        ("if C[0] > 0:\n    U[0] = 1", {"same-value"}),
        ("if U[1] > 0:\n    U[0] = 1", {"same-value"}),
        ("U[0] = T.if_then_else(C[0] > 0, 1, 2)", {"same-value"}),
        ("U[0] = U[T.max(T.min(C[0], 1), 0)]", {"same-value"}),
    ],
)
def test_no_undefined_value_decides(extra: str, kinds: set[str]) -> None:
    """What is stored may be undefined, or computed from that; not what is done."""
    own = OWN.replace("float32", "int32")
    ones = ONES.replace("T.float32(1)", "1")
    new = f"{CELL}{own}C[0] = T.undef()\nfor j in range(8):\n    U[j] = C[0]\n{ones}\n{extra}"
    head = "# theta: 2 -> 0: lambda i: [i]\n" + "".join(f"# theta: {k} -> none\n" for k in (0, 1, 3))
    text = f"# functions: f, f\n{head}{function('before', INTEGERS, ones)}{function('after', INTEGERS, new)}"
    evidence = evidence_for(text, Found())
    constant, loop = Source("store", 0, Map((), ())), Source("store", 1, Map((), (("const", "int32", 1),)))
    ways = []
    for first, cell in product((constant, loop), repeat=2):
        given = replace(evidence, sources={**evidence.sources, (3, 0): first, (3, 1): constant, (3, -1): cell})
        ways.append({c.kind for c in judged_in_turn(read_rewrite(text), given) if not c.is_accepted})
    assert min(ways, key=len) == kinds


@pytest.mark.parametrize(
    ("extra", "kinds"),
    [
        ("C[0] = A[7]", set()),
        ("if A[7] > 0:\n    C[0] = 1", {"same-value"}),
        ("C[0] = T.if_then_else(A[7] > 0, 1, 2)", {"same-value"}),
        ("C[T.max(T.min(A[7], 7), 0)] = 1", {"same-value"}),
    ],
)
def test_no_padding_that_may_hold_anything_decides(extra: str, kinds: set[str]) -> None:
    """What is assumed to be undefined may be copied; nothing is done because of it."""
    padded = "for i in range(8):\n    T.assume(i < 6 or A[i] == T.undef())"
    ones = "for i in range(8):\n    B[i] = 1"
    new = f'C = T.alloc_buffer((8,), "int32")\n{padded}\n{extra}\n{ones}'
    head = "# theta: 0 -> none\n# theta: 1 -> 0: lambda i: [i]\n"
    texts = function("before", INTEGERS, f"{padded}\n{ones}") + function("after", INTEGERS, new)
    claims = try_kernel(f"# functions: f, f\n{head}{texts}")[0]
    assert {claim.kind for claim in claims if not claim.is_accepted} == kinds


@pytest.mark.parametrize(
    "ieee",
    [
        "    x = A[i]\n    T.evaluate(T.assume(x == T.float32(0)))",
        "    x: T.let[T.bool] = A[i] == T.float32(0)\n    T.evaluate(T.assume(x))",
        "    T.evaluate(T.assume(not (not (A[i] == T.float32(0)))))",
        "    T.evaluate(T.assume(A[i] * T.float32(1) == T.float32(0)))",
        "    T.evaluate(T.assume(T.float32(0) == A[i] + T.float32(-0.0)))",
    ],
)
def test_an_assumption_of_an_element_is_no_comparison(ieee: str) -> None:
    """`A[i] == 0.0` says that A[i] is not -0.0, either; other comparisons of floats do not, and are not read."""
    said = "    T.evaluate(T.assume({} == T.float32(0)))"
    loop = "for i in range(8):\n{}\n    B[i] = A[i]"
    plain, joined = loop.format(said.format("A[i]")), loop.format(said.format("i < 3 and A[i] == A[i] or A[i]"))
    assert rejected(AB, plain, plain) == set() == rejected(AB, joined, joined)
    with pytest.raises(Rejected, match="floats are equal"):
        rejected(AB, loop.format(ieee), plain)
    whole = "for i in range(8):\n    x = A[i]\n    T.evaluate(T.assume(x == 0))\n    B[i] = x"
    assert rejected(INTEGERS, whole, whole) == set()


def test_sizes_of_the_new_program_say_nothing_of_old_values() -> None:
    """A value of the old program may wrap where an extent that only the new one has does not fit."""
    old, new = (
        f"for i in range(8):\n    B[i] = {value}"
        for value in ('T.Cast("int64", n * 65536)', 'T.Cast("int64", n) * T.int64(65536)')
    )
    parameters = WIDE.replace("8", '"n"', 1)
    assert rejected(parameters, old, f'U = T.alloc_buffer((n * 65536,), "float32")\n{new}') == {"same-value"}


@pytest.mark.parametrize(
    ("condition", "kinds"),
    [
        ("i * 1000000000 < 5", {"forms"}),
        ("i + 2147483647 - 2147483647 < 1", {"forms"}),
        ("i * 100000000 < 5", set()),
        ("i // 4 * 1000000000 + i % 4 < 1", set()),
    ],
)
def test_what_the_old_program_takes_for_exact_fits(condition: str, kinds: set[str]) -> None:
    """One in which index arithmetic of loops alone overflows has a fault whatever its input: nothing follows of it."""
    old, new = (f"for i in range(8):\n    if {c}:\n        B[i] = T.float32(1)" for c in (condition, "i < 1"))
    assert rejected(AB, old, new) == kinds
