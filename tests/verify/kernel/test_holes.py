"""Wrong rewrites that the kernel once accepted: each is rejected by the claim that speaks of it, whatever witness and
evidence come with it.
"""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.verify.certificate.finder.kernel_evidence import judge_text, try_kernel
from layoutproof.verify.kernel.evidence import judge_certificate
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import Rejected

AB = 'A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")'
INTEGERS = 'A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")'
WIDE = 'A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int64")'
INT8 = 'A: T.Buffer((8,), "int8"), B: T.Buffer((130,), "float32")'
SYMBOLS = 'A: T.Buffer(("n", "m"), "float32"), B: T.Buffer((8,), "float32")'
COPY = "for i in range(8):\n    B[i] = A[i]"
ONES = "for i in range(8):\n    B[i] = T.float32(1)"
FIRST = "# theta: 0 -> 0: lambda i: [i]\n"
OWN = 'U = T.alloc_buffer((8,), "float32")\n'
CELL = 'C = T.alloc_buffer((1,), "int32")\n'
VIA = 'C = T.alloc_buffer((8,), "float32")\nfor i in range(8):\n    C[i] = A[i]\nfor i in range(8):\n    B[i] = C[i]'
ASSUMED = "for i in range(8):\n    if C[0] > 0:\n        T.evaluate(T.assume(A[i] == T.float32(0)))\n"


def function(name: str, parameters: str, body: str, attributes: str = "") -> str:
    """One function of a rewrite."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    symbols = "".join(f"    {name} = T.int32()\n" for name in "nm" if f'"{name}"' in parameters)
    return (
        f"@T.prim_func(s_tir=True)\ndef {name}({parameters}):\n{symbols}"
        f'    T.func_attr({{"tirx.noalias": True, {attributes}}})\n{lines}\n'
    )


def rejected(parameters: str, old: str, new: str, head: str = "", other: tuple[str, str] = ("", "")) -> set[str]:
    """The kinds of the rejected claims of a rewrite; `other` are parameters and attributes of the new program."""
    text = f"# functions: f, f\n{head}" + function("before", parameters, old)
    text += function("after", other[0] or parameters, new, other[1])
    return {claim.kind for claim in try_kernel(text)[0] if not claim.is_accepted}


def test_the_plain_rewrites_are_accepted() -> None:
    """What the wrong ones below are made from."""
    assert (
        rejected(AB, COPY, COPY)
        == rejected(AB, VIA, VIA)
        == rejected(SYMBOLS, COPY.replace("A[i]", "T.float32(1)"), ONES)
        == set()
    )


@one_in(4)
@pytest.mark.parametrize(
    ("shape", "index", "kinds"),
    [
        ("8, 8", "i, j ^ (i % 8)", set()),
        ("8, 8", "i, (i & 7) ^ j", set()),
        ("8, 16", "i, j ^ 9", set()),
        ("8, 9", "i, j ^ 9", {"cells", "within-buffer"}),
        ("8, 8", "i, j ^ (i * 2)", {"cells", "within-buffer"}),
        ("8, 8", "j ^ (j % 4), j", {"cells"}),
        ("8, 8", "i ^ (i % 8), j", {"cells"}),
        ("8, 8", "i ^ (j - 1), j", {"cells", "within-buffer"}),
    ],
)
def test_xor_moves_cells(shape: str, index: str, kinds: set[str]) -> None:
    """Within a power of two, and one-to-one in each operand."""
    parameters = 'A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")'
    wide = parameters.replace("B: T.Buffer((8, 8)", f"B: T.Buffer(({shape})")
    step = f'{{"index_map": "lambda i, j: [{index}]", "shape": [{shape}], "contract": "undef"}}'
    layout = f'"layoutproof.layout": {{"B_data": {{"logical_shape": [8, 8], "steps": [{step}]}}}}'
    old = "for i, j in T.grid(8, 8):\n    B[i, j] = A[i, j]"
    head = f"# theta: 0 -> 0: lambda i, j: [i, j]\n# interface: B\n# cells: B_data -> B_data: lambda i, j: [{index}]\n"
    assert rejected(parameters, old, old.replace("B[i, j]", f"B[{index}]"), head, (wide, layout)) == kinds


def test_a_condition_is_asked_once() -> None:
    """Before its store changes what it reads: of several lanes or iterations too."""
    cell = "if B[{0}] > T.float32(0):\n    {1}B[{2}] = {3}"
    for_one = "for i in range(4):\n    " + cell.format("i", "    ", "i", "A[i] - B[i]")
    halves = for_one.replace("i in range(4)", "j, k in T.grid(2, 2)").replace("[i]", "[2 * j + k]")
    assert rejected(AB, for_one, halves, "# theta: 0 -> 0: lambda j, k: [2 * j + k]\n") == set()
    vector = cell.format("0", "", "T.Ramp(0, 1, 4)", "T.Broadcast(T.float32(-1), 4)")
    loop = "for i in range(4):\n    " + cell.format("0", "    ", "i", "T.float32(-1)")
    for old, new in ((vector, loop), (loop, vector)):
        assert "forms" in rejected(AB, old, new, FIRST)


@pytest.mark.parametrize(("condition", "kinds"), [("i != 5", set()), ("i == 5", {"same-end"})])
def test_what_is_never_executed_need_not_be_computed(condition: str, kinds: set[str]) -> None:
    """A store under conditions that contradict each other; not one of which one instance is executed."""
    old = f"{COPY}\nfor i in range(8):\n    if i == 5:\n        if {condition}:\n            B[i] = T.float32(1)"
    assert rejected(AB, old, COPY, FIRST) == kinds


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("i0", "for i in range(i0):\n    B[i] = A[0]", "same-value"),
        ("o0", "for i in range(o0 - 1):\n    B[i] = A[i]", "same-end"),
    ],
)
def test_symbols_are_not_taken_for_what_the_rules_name(name: str, body: str, kind: str) -> None:
    """A symbol that has the name by which a rule calls a loop is another integer."""
    parameters = AB.replace("(8,)", f'("{name}",)')
    assert kind in rejected(parameters, f"for i in range({name}):\n    B[i] = A[i]", body)


@pytest.mark.parametrize(
    "new",
    [
        'V = T.decl_buffer((4,), "float32", data=B.data, elem_offset=1)\nfor i in range(4):\n    V[i] = A[i]',
        'V = T.decl_buffer((4,), "float32", data=B.data, strides=(2,))\nfor i in range(4):\n    V[i] = A[i]',
    ],
)
def test_a_view_alone_is_not_its_memory(new: str) -> None:
    """An index of a view is another cell."""
    assert rejected(AB, "for i in range(4):\n    B[i] = A[i]", new)


def test_memories_of_the_new_program_have_their_own_cells() -> None:
    """Strides of 0 make one cell of all; a view may be larger than its memory."""
    assert rejected(AB, VIA, VIA.replace('"float32")', '"float32", strides=(0,))'))
    large = (
        f'{OWN}V = T.decl_buffer((100,), "float32", data=U.data)\n{COPY}\nfor i in range(100):\n    V[i] = T.float32(0)'
    )
    assert rejected(AB, COPY, large, FIRST)


@pytest.mark.parametrize(
    ("parameters", "old", "new"),
    [
        (WIDE, 'T.Cast("int64", T.int32(2147483647) + T.int32(1))', "T.int64(2147483648)"),
        (WIDE.replace("8", '"n"', 1), 'T.Cast("int64", n * n)', 'T.Cast("int64", n) * T.Cast("int64", n)'),
    ],
)
def test_values_wrap(parameters: str, old: str, new: str) -> None:
    """Also values of constants and symbols alone."""
    assert rejected(parameters, f"for i in range(8):\n    B[i] = {old}", f"for i in range(8):\n    B[i] = {new}") == {
        "same-value"
    }


@pytest.mark.parametrize(
    "condition",
    ["A[i] - 1 > 2147483646", 'T.Cast("int32", T.float32(i) * T.float32(2147483000.0)) + 2147483647 < 0'],
)
def test_conditions_on_data_wrap(condition: str) -> None:
    """What is compared beside data or floats is no index arithmetic."""
    new = f"for i in range(8):\n    B[i] = 1\nfor i in range(8):\n    if {condition}:\n        B[i] = 2"
    assert rejected(INTEGERS, "for i in range(8):\n    B[i] = 1", new, FIRST)


@pytest.mark.parametrize(
    "none",
    [
        "(i % 0)",
        "T.truncmod(i, 0)",
        "T.truncdiv(i - 2147483647 - 1, 2 * i - 1)",
        "T.truncmod(i - 2147483647 - 1, 2 * i - 1)",
        "(i >> 40)",
        "T.shift_left(1, i + 40)",
        'T.Cast("int32", T.infinity("float32"))',
        'T.Cast("int32", T.Cast("int8", i + 200))',
    ],
)
def test_index_arithmetic_has_a_result_that_fits(none: str) -> None:
    """Even where it does not matter what it is."""
    assert {"has-result", "fits"} & rejected(AB, COPY, f"for i in range(8):\n    B[i + {none} * 0] = A[i]")


LET = "for i in range(8):\n    x = A[i]\n"


@pytest.mark.parametrize(
    "body",
    [
        LET + "    B[i] = x",
        LET + "    if x == x:\n        B[i] = A[i]\n    if x != x:\n        B[i] = A[i]",
        LET + "    for j in range(2):\n        B[i] = x",
        "for i in range(8):\n    x = B[i]\n    B[i] = x + x",
    ],
)
def test_what_was_loaded_stands_for_its_name(body: str) -> None:
    """A let that loads is read where its value is that of the load at each use."""
    text = function("before", AB, body) + function("after", AB, body)
    assert len(read_rewrite(text).new.stores) == read_rewrite(text).new.stores[-1].number + 1


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(7):\n    x = B[i]\n    B[i] = A[i]\n    B[i + 1] = x",
        "for i in range(8):\n    x = B[i]\n    for j in range(2):\n        B[i] = x + A[i]",
        "for i in range(8):\n    x = B[i]\n    for j in range(2):\n        A[i] = x\n        B[i] = A[i]",
        "for i in range(8):\n    x = B[i]\n    if x < A[i]:\n        B[i] = A[i]\n        A[i] = T.float32(1)",
        LET + "    if i < 7:\n        B[i] = x",
        LET + "    B[i] = T.if_then_else(i < 7, x, T.float32(1))",
        LET + "    for j in range(i):\n        B[i] = x",
        LET + "    B[i] = T.float32(1)",
        LET + "    for j in range(0):\n        B[i] = x",
        "for i in range(8):\n    x = A[i + 1]\n    if i < 7:\n        B[i] = x",
    ],
)
def test_what_was_loaded_is_not_loaded_later(body: str) -> None:
    """A let loads once, before what is stored after it, and also where its name is not used."""
    with pytest.raises(Rejected):
        read_rewrite(function("before", AB, body) + function("after", AB, body))


def test_bits_of_floats_are_not_read() -> None:
    """A NaN is as good as another one, but its bits are not; those of an integer are."""
    old, new = (ONES.replace("T.float32(1)", f'T.reinterpret("float32", {e})') for e in ("i + 1", "1 + i"))
    assert rejected(AB, old, new) == set()
    for wrong in ('T.reinterpret("int32", T.float32(1))', 'T.reinterpret("float32", T.int64(1))'):
        with pytest.raises(Rejected):
            rejected(INTEGERS, ONES, ONES.replace("T.float32(1)", wrong))


@pytest.mark.parametrize("line", ["T.evaluate(5 // i)", "T.evaluate(T.if_then_else(i < 8, 0, n // m))"])
def test_what_is_evaluated_has_a_result(line: str) -> None:
    """Though nothing comes of it."""
    new = ONES.replace("    B", f"    {line}\n    B")
    assert "within-domain" in rejected(SYMBOLS, ONES, new)
    assert rejected(SYMBOLS, ONES, new.replace(line, "T.evaluate(i + 1)")) == set()


@pytest.mark.parametrize("value", ["5 // i", "(i + 2147483647) * 2", "n // m"])
def test_names_of_values_are_computed(value: str) -> None:
    """The value of a name that is not used is computed, too."""
    assert "within-domain" in rejected(SYMBOLS, ONES, ONES.replace("    B", f"    x = {value}\n    B"))


def test_extents_are_computed() -> None:
    """Those of a memory that is not used, too."""
    assert rejected(SYMBOLS, ONES, f'U = T.alloc_buffer((n // m,), "float32")\n{ONES}') == {"has-result"}


def test_a_constant_bound_by_a_block_is_in_its_domain() -> None:
    """A variable of a block that has the value 7 of 4."""
    new = 'for i in range(8):\n    with T.sblock("b"):\n        vi = T.axis.spatial(4, 7)\n        B[i] = A[i]'
    assert "within-domain" in rejected(AB, COPY, new)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("within-buffer", "if A[100] > T.float32(0):\n    for j in range(0):\n        U[j] = T.float32(1)"),
        (
            "has-result",
            "for i in range(8):\n    if 5 // i > 0:\n        for j in range(0):\n            U[j] = T.float32(1)",
        ),
        (
            "fits",
            "for i in range(8):\n    if 2147483647 + i > 0:\n        for j in range(0):\n            U[j] = B[0]",
        ),
        ("has-result", "for i in range(n // m):\n    if m > 0:\n        U[0] = T.float32(1)"),
    ],
)
def test_conditions_are_evaluated_over_loops_that_are_empty(kind: str, extra: str) -> None:
    """Neither an inner loop nor a later condition is known where a condition or a bound is evaluated."""
    assert kind in rejected(
        SYMBOLS.replace('("n", "m")', "(8,)").replace("A", 'N: T.Buffer(("n", "m"), "float32"), A', 1),
        ONES,
        f"{OWN}{ONES}\n{extra}",
        FIRST,
    )


def test_a_condition_does_not_keep_its_own_loads_inside() -> None:
    """Nor do those that come after it."""
    old = "for i in range(16):\n    if i < 8:\n        if A[i] > T.float32(0):\n            B[i] = T.float32(1)"
    new = "for i in range(16):\n    if A[i] > T.float32(0):\n        if i < 8:\n            B[i] = T.float32(1)"
    assert rejected(AB, old, new) == {"within-buffer"}


@pytest.mark.parametrize(
    "extra",
    [
        f"{CELL}{ONES}\nif C[0] > 0:\n    U[0] = T.float32(1)",
        f'{ONES}\nif T.Cast("int32", B[0]) > 0:\n    U[0] = T.float32(1)',
        f"{ONES}\nU[0] = B[(1 // A[0]) * 0]",
        f"{CELL}{ONES}\nU[0] = B[C[0] * 0]",
        f"{ONES}\nU[0] = B[T.max(A[0], T.int8(0)) + T.int8(1)]",
    ],
)
def test_instances_of_the_new_program_alone_have_no_fault(extra: str) -> None:
    """They read nothing that was never written, and their conditions and indices do not trap, nor wrap."""
    parameters = INT8 if "int8" in extra else INT8.replace("int8", "int32")
    assert rejected(parameters, ONES, OWN + extra, FIRST) == {"same-value"}


def test_a_choice_evaluates_both_sides() -> None:
    """The side that is not taken may trap."""
    new = "for i in range(8):\n    B[i] = 1\nfor i in range(8):\n    B[i] = T.Select(i < 8, B[i], 1 // A[i])"
    assert rejected(INTEGERS, "for i in range(8):\n    B[i] = 1", new, FIRST) == {"same-value"}


def test_an_index_is_loaded() -> None:
    """What an index loads is seen; and one of a memory whose cells move loads nothing else."""
    old = f"{CELL}C[0] = 0\nfor i in range(8):\n    B[C[0] % 8] = A[i]"
    new = old.replace("C[0] = 0\n", "C[0] = 0\nC[0] = 1\n")
    assert rejected(AB, old, new, "# theta: 0 -> 0\n# theta: 2 -> 1: lambda i: [i]\n") == {"same-value"}
    moved = VIA.replace("C[i] = ", "C[7 - i + U[0] * 0] = ").replace("= C[i]", "= C[7 - i]")
    head = "# cells: C_data -> C_data: lambda i: [7 - i]\n"
    assert "same-value" in rejected(AB, VIA, OWN.replace("float32", "int32") + moved, head)


def test_an_assumption_under_a_condition_on_data_keeps_its_place() -> None:
    """It is made where it was made."""
    old = f"{CELL}C[0] = 0\n{ASSUMED}C[0] = 1\n{COPY}"
    new = f"{CELL}C[0] = 0\nC[0] = 1\n{ASSUMED}{COPY}"
    assert rejected(AB, old, new) == {"assumption"}


@pytest.mark.parametrize("extra", ["n + 2147483647 > 0", "n + 2147483639 > 0"])
def test_sizes_of_the_new_program_are_no_facts(extra: str) -> None:
    """That they fit is a condition on calls, which may never hold: it proves nothing else."""
    old = f"T.evaluate(T.assume(n > 0))\n{ONES}"
    new = f"{old}\nfor i in range(8):\n    if {extra}:\n        if n < 9:\n            B[7] = T.float32(2)"
    assert "same-value" in rejected(SYMBOLS, old, new, FIRST)


def test_sizes_that_the_old_program_does_not_compute_are_no_facts() -> None:
    """One under a condition says nothing of calls for which that is false."""
    old = "for i in range(8):\n    if n < 10:\n        B[i + (n * 100000000) * 0] = A[0, 0]"
    new = f"{old}\nfor i in range(8):\n    if n > 22:\n        B[i] = T.float32(7)"
    assert "same-value" in rejected(SYMBOLS, old, new, FIRST)


ROWS = (
    'C = T.alloc_buffer((16,), "float32")\nfor i in range(8):\n    C[i] = A[i]\nfor i in range(8):\n    B[i] = A[i]\n'
    "for i in range(16):\n    if {0}:\n        if {1}:\n            B[i] = T.float32(1)"
)


@pytest.mark.parametrize("data", ["C[i] > T.float32(0)", "i < 12 and C[i] > T.float32(0)", "not (C[i] > A[i % 8])"])
def test_a_condition_reads_what_was_written(data: str) -> None:
    """Where it is evaluated, which is before the condition that comes after it is asked."""
    first, second = ROWS.format("i < 8", data), ROWS.format(data, "i < 8")
    assert rejected(AB, first, first) == set()
    assert rejected(AB, first, second) == {"same-value"}


def test_conditions_of_data_keep_their_order() -> None:
    """The second of two is evaluated only where the first holds."""
    loop = "for i in range(8):\n    if {}:\n        if {}:\n            B[i] = 1"
    one, other = "A[i] > 0", "7 // A[i] > 1"
    assert rejected(INTEGERS, loop.format(one, other), loop.format(one, other)) == set()
    assert rejected(INTEGERS, loop.format(one, other), loop.format(other, one)) == {"same-value"}


@pytest.mark.parametrize(
    "extra",
    [
        "for i in range(8):\n    if 7 // A[i] > 1:\n        if i < 4:\n            B[i] = 1",
        "for i in range(8):\n    if 7 // A[i] > 1:\n        for j in range(n):\n            if i < 4:\n"
        "                B[i] = 1",
    ],
)
def test_a_condition_does_not_trap_before_another_is_asked(extra: str) -> None:
    """A division by an element that the old program does not divide by, or only in a loop that may be empty."""
    old = "for i in range(8):\n    if i < 4:\n        if 7 // A[i] > 1:\n            B[i] = 1"
    if "j" in extra:
        old = old.replace("            B", "            for j in range(n):\n                B")
    assert rejected('N: T.Buffer(("n",), "int32"), ' + INTEGERS, old, extra) == {"same-value"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("same-value", "if i > 9:\n            U[0] = 1"),
        ("assumption", "T.evaluate(T.assume(n > 8))"),
    ],
)
def test_conditions_trap_whatever_comes_under_them(kind: str, body: str) -> None:
    """A statement that is never executed, or that assumes what is known, does not make them harmless."""
    parameters = 'N: T.Buffer(("n",), "int32"), ' + INTEGERS
    old = "T.evaluate(T.assume(n > 8))\nfor i in range(8):\n    B[i] = 1"
    new = f'{old}\nU = T.alloc_buffer((8,), "int32")\nfor i in range(8):\n    if 1 // A[i] > 0:\n        {body}'
    assert rejected(parameters, old, new, FIRST) == {kind}


@pytest.mark.parametrize("value", ["B[i] - A[i]", "B[i] + A[i] * T.float32(-1)", "B[i] + A[i]"])
def test_what_is_equal_to_zero_has_a_sign(value: str) -> None:
    """An element that is assumed to be equal to 0.0 may be -0.0, which is nothing to add, but not to subtract."""
    old = "for i in range(8):\n    T.evaluate(T.assume(A[i] == T.float32(0)))\nfor i in range(8):\n    B[i] = {}"
    further = f"\nfor i in range(8):\n    B[i] = {value}"
    minus, zero = old.format("B[i] * T.float32(3)"), old.format("T.float32(0)")
    assert rejected(AB, minus, minus + further, FIRST) == {"same-value"}
    assert rejected(AB, zero, zero + further, FIRST) == set()


def test_a_step_states_no_precondition_of_its_own() -> None:
    """Of a certificate the first step says for which sizes it holds, and its header has one spelling."""
    text = "# functions: f, f\n" + function("before", SYMBOLS, ONES) + function("after", SYMBOLS, ONES)
    found = try_kernel(text)[1]

    def judged(*heads: str) -> list[bool]:
        steps = [{"rewrite": (head + text).split("\n"), "licences": [], "kernel": found.evidence} for head in heads]
        claims = judge_certificate({"steps": steps, "refutations": found.proofs})
        return [all(c.is_accepted for c in step.claims if c.kind in ("begins", "understood")) for step in claims]

    assert judged("", "") == judged("# where: n > 1\n", "") == judged("# where: n > 1\n", "# where: n > 1\n")
    assert judged("", "") == [True, True]
    assert judged("", "# where: n > 1\n", "") == [True, False, True]
    assert judged("#where: n > 1\n") == judged("#  where : n > 1\n") == [False]


def test_assumptions_of_a_text_are_told() -> None:
    """A step that rests on what its own header allows says so."""
    reduction = "for i in range(8):\n    B[0] = B[0] + A[{}]"
    head = "# strictness: reassoc\n# theta: 0 -> 0: lambda i: [7 - i]\n"
    text = f"# functions: f, f\n{head}" + function("before", AB, reduction.format("i"))
    step = judge_text(text + function("after", AB, reduction.format("7 - i")))
    assert all(claim.is_accepted for claim in step.claims)
    assert step.assumptions == ("reassoc",)


def test_parameters_have_their_own_memory_and_stay_arrays() -> None:
    """A number does not become an array, and no parameter is a view of another one."""
    assert rejected(f"X: T.int32, {AB}", COPY, COPY) == set()
    other = f'X: T.Buffer((4,), "float32"), {AB}'
    assert rejected(f"X: T.int32, {AB}", COPY, COPY, other=(other, "")) == {"interface"}
    view = f"{AB[:-1]}, data=A.data)"
    with pytest.raises(Rejected, match="data of a view"):
        read_rewrite(function("before", view, COPY) + function("after", view, COPY))


def test_a_store_that_is_never_executed_hides_no_other() -> None:
    """A temporary is said to hold 0; of the stores of other constants only one is executed, or none."""
    head = "# theta: 3 -> 0: lambda i: [i]\n" + "".join(f"# theta: {k} -> none\n" for k in (0, 1, 2, 4))
    body = f"{CELL}C[0] = 0\nfor k in range(4):\n    if k > 5:\n        C[0] = 1\n{{}}\n{COPY}\n" + (
        "for i in range(8):\n    B[i] = B[i] + C[0]"
    )
    assert rejected(INTEGERS, COPY, body.format("C[0] = 0"), head) == set()
    assert rejected(INTEGERS, COPY, body.format("C[0] = 5"), head) == {"same-value"}
