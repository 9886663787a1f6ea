"""Rewrites that only dataflow decides: each kind of legal one is proved, and its closest wrong neighbour is not."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.faults.facts import Facts
from layoutproof.verify.flow.simulate import simulate
from layoutproof.verify.values.fast_math import ALL, IEEE, FastMathSet
from layoutproof.verify.values.prover import ValueProver
from layoutproof.verify.verdict.verdict import Status, Verdict


def simulated(header: str, before: str, after: str, params: str, allowed: FastMathSet = ALL) -> tuple[Verdict, ...]:
    """The verdicts of the simulation on two bodies over parameters such as `A: 16 float32`."""
    return run_text(
        "\n".join((dedent(header), program("before", before, params), program("after", after, params))), allowed
    )


def run_text(text: str, allowed: FastMathSet = ALL) -> tuple[Verdict, ...]:
    """The verdicts of the simulation on a rewrite's text."""
    litmus = parse_litmus(text, "test")
    old, new = (Facts.of(function, litmus.header.where) for function in (litmus.rewrite.old, litmus.rewrite.new))
    return simulate(litmus.rewrite, old, new, ValueProver(allowed)).verdicts


def program(name: str, body: str, params: str) -> str:
    """A function in script syntax."""
    parsed = [p.split(":") for p in params.split(";")]
    lines = ["@T.prim_func", f"def {name}({', '.join(f'{n.strip().lower()}_h: T.handle' for n, _ in parsed)}):"]
    lines.append('    T.func_attr({"tir.noalias": True})')
    for buffer, type_text in parsed:
        *shape, dtype = type_text.split()
        extents = ", ".join(shape)
        lines.append(f'    {buffer.strip()} = T.match_buffer({buffer.strip().lower()}_h, ({extents},), "{dtype}")')
    lines += [f"    {line}" for line in dedent(body).strip().splitlines()]
    return "\n".join(lines) + "\n"


def holds(verdicts: tuple[Verdict, ...]) -> bool:
    """Whether everything is proved."""
    return all(verdict.status is Status.PROVED for verdict in verdicts)


def strictness(verdicts: tuple[Verdict, ...]) -> set[str]:
    """The fast-math assumptions that the proofs need."""
    return {flag for verdict in verdicts for flag in verdict.strictness}


SUM = """
for i in range(16):
    B[i] = T.{dtype}(0)
    for k in range(8):
        B[i] = B[i] + A[i, k]
"""
INTERCHANGED = """
for i in range(16):
    B[i] = T.{dtype}(0)
for k in range(8):
    for i in range(16):
        B[i] = B[i] + A[i, k]
"""
REVERSED = """
for i in range(16):
    B[i] = T.{dtype}(0)
for k in range(8):
    for i in range(16):
        B[i] = B[i] + A[i, 7 - k]
"""


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_interchanged_loops_of_a_reduction_are_proved_bit_for_bit(dtype: str) -> None:
    """Each result gets its contributions in the order that they had."""
    theta = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda k, i: [i, k]"
    found = simulated(
        theta, SUM.format(dtype=dtype), INTERCHANGED.format(dtype=dtype), f"A: 16 8 {dtype}; B: 16 {dtype}"
    )
    assert holds(found)
    assert strictness(found) == set()


def test_a_reversed_sum_of_floats_needs_reassoc() -> None:
    """The contributions are the same multiset, in another order."""
    theta = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda k, i: [i, 7 - k]"
    params = "A: 16 8 float32; B: 16 float32"
    found = simulated(theta, SUM.format(dtype="float32"), REVERSED.format(dtype="float32"), params)
    assert holds(found)
    assert strictness(found) == {"reassoc"}
    assert not holds(simulated(theta, SUM.format(dtype="float32"), REVERSED.format(dtype="float32"), params, IEEE))


def test_a_reversed_sum_of_integers_is_the_sum() -> None:
    """Integer sums wrap, and wrapping sums regroup without a fast-math assumption."""
    theta = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda k, i: [i, 7 - k]"
    found = simulated(
        theta, SUM.format(dtype="int32"), REVERSED.format(dtype="int32"), "A: 16 8 int32; B: 16 int32", IEEE
    )
    assert holds(found)


def test_a_reader_between_the_updates_sees_what_it_saw() -> None:
    """A prefix sum that is read while it grows may not be reversed."""
    before = "B[0] = 0\nfor k in range(8):\n    B[0] = B[0] + A[k]\n    C[k] = B[0]"
    after = "B[0] = 0\nfor k in range(8):\n    B[0] = B[0] + A[7 - k]\n    C[7 - k] = B[0]"
    theta = "# theta: 0 -> 0: lambda: []\n# theta: 1 -> 1: lambda k: [7 - k]\n# theta: 2 -> 2: lambda k: [7 - k]"
    assert not holds(simulated(theta, before, after, "A: 8 int32; B: 1 int32; C: 8 int32"))


def test_two_accumulators_in_one_update_are_not_confused() -> None:
    """`B[i] = B[i - 1] + B[i]` is no reduction whose contribution is the accumulator."""
    before = "for i in range(7):\n    B[i + 1] = B[i] + B[i + 1]"
    after = "for i in range(7):\n    B[7 - i] = B[6 - i] + B[7 - i]"
    assert not holds(simulated("# theta: 0 -> 0: lambda i: [6 - i]", before, after, "B: 8 int32"))


def test_a_copy_is_composed_away() -> None:
    """A cache in front of a load changes nothing, and neither does taking it out."""
    direct = "for i in range(16):\n    B[i] = A[i] * T.float32(2)"
    cached = (
        'C = T.allocate([16], "float32", "global")\nC_1 = T.Buffer((16,), data=C)\n'
        "for i in range(16):\n    C_1[i] = A[i]\nfor i in range(16):\n    B[i] = C_1[i] * T.float32(2)"
    )
    params = "A: 16 float32; B: 16 float32"
    assert holds(simulated("# theta: 0 -> none\n# theta: 1 -> 0: lambda i: [i]", direct, cached, params))
    assert holds(simulated("# theta: 0 -> 1: lambda i: [i]", cached, direct, params))
    wrong = cached.replace("C_1[i] = A[i]", "C_1[i] = A[15 - i]")
    assert not holds(simulated("# theta: 0 -> none\n# theta: 1 -> 0: lambda i: [i]", direct, wrong, params))


def test_a_value_may_be_computed_more_than_once() -> None:
    """Theta may be many to one."""
    before = (
        'C = T.allocate([16], "float32", "global")\nC_1 = T.Buffer((16,), data=C)\n'
        "for i in range(16):\n    C_1[i] = A[i] * A[i]\nfor i in range(14):\n    B[i] = C_1[i] + C_1[i + 2]"
    )
    after = (
        'C = T.allocate([2], "float32", "global")\nC_1 = T.Buffer((2,), data=C)\n'
        "for i in range(14):\n    for k in range(2):\n        C_1[k] = A[i + 2 * k] * A[i + 2 * k]\n"
        "    B[i] = C_1[0] + C_1[1]"
    )
    theta = "# theta: 0 -> 0: lambda i, k: [i + 2*k]\n# theta: 1 -> 1: lambda i: [i]"
    params = "A: 16 float32; B: 14 float32"
    assert holds(simulated(theta, before, after, params))
    assert not holds(simulated(theta, before, after.replace("C_1[0] + C_1[1]", "C_1[1] + C_1[1]"), params))


def test_an_overwritten_store_may_go() -> None:
    """A dropped store that nobody reads is not missed; one that somebody reads is."""
    before = "for i in range(16):\n    B[i] = T.float32(1)\nfor i in range(16):\n    B[i] = A[i]"
    after = "for i in range(16):\n    B[i] = A[i]"
    params = "A: 16 float32; B: 16 float32"
    assert holds(simulated("# theta: 0 -> 1: lambda i: [i]", before, after, params))
    short = before.replace("for i in range(16):\n    B[i] = A[i]", "for i in range(15):\n    B[i] = A[i]")
    assert not holds(simulated("# theta: 0 -> 1: lambda i: [i]", short, after.replace("16", "15"), params))


def test_a_gather_keeps_its_meaning_in_another_loop_order() -> None:
    """A load whose index depends on data is the same load where index and memory are the same."""
    before = "for i, j in T.grid(4, 8):\n    B[i, j] = A[D[i, j]]"
    after = "for j, i in T.grid(8, 4):\n    B[i, j] = A[D[i, j]]"
    params = "A: 9 float32; B: 4 8 float32; D: 4 8 int32"
    theta = "# theta: 0 -> 0: lambda j, i: [i, j]"
    assert holds(simulated(theta, before, after, params))
    assert not holds(simulated(theta, before, after.replace("D[i, j]", "D[i, 7 - j]"), params))


def test_a_conditional_store_keeps_its_condition() -> None:
    """A store under a condition on data is a store of what was there, where the condition fails."""
    before = "for i, j in T.grid(4, 8):\n    if A[i, j] > T.float32(0):\n        B[i, j] = A[i, j]"
    after = "for j, i in T.grid(8, 4):\n    if A[i, j] > T.float32(0):\n        B[i, j] = A[i, j]"
    params = "A: 4 8 float32; B: 4 8 float32"
    theta = "# theta: 0 -> 0: lambda j, i: [i, j]"
    assert holds(simulated(theta, before, after, params))
    assert not holds(simulated(theta, before, after.replace("> T", ">= T"), params))
    assert not holds(simulated(theta, before, "for j, i in T.grid(8, 4):\n    B[i, j] = A[i, j]", params))


def test_split_loops_of_any_extent() -> None:
    """A split with a guard is proved for every extent at once."""
    text = """
        # theta: 0 -> 0: lambda i0, i1: [4*i0 + i1]
        @T.prim_func
        def before(a: T.handle, b: T.handle):
            T.func_attr({"tir.noalias": True})
            n = T.int32()
            A = T.match_buffer(a, (n,), "float32")
            B = T.match_buffer(b, (n,), "float32")
            for i in range(n):
                B[i] = A[i] + T.float32(1)
        @T.prim_func
        def after(a: T.handle, b: T.handle):
            T.func_attr({"tir.noalias": True})
            n = T.int32()
            A = T.match_buffer(a, (n,), "float32")
            B = T.match_buffer(b, (n,), "float32")
            for i0, i1 in T.grid((n + 3) // 4, 4):
                if 4*i0 + i1 < n:
                    B[4*i0 + i1] = A[4*i0 + i1] + T.float32(1)
        """
    assert holds(run_text(dedent(text)))
    assert not holds(run_text(dedent(text).replace("(n + 3) // 4", "n // 4")))


ROW_SUM = """
{theta}
@T.prim_func
def before(a: T.handle, b: T.handle):
    T.func_attr({{"tir.noalias": True}})
    A = T.match_buffer(a, (16, 4, 4), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i, jo, ji in T.grid(16, 4, 4):
        T.evaluate(T.assume(4*jo+ji < 14 or A[i, jo, ji] == {pad}))
    for i in range(16):
        {init}
        for jo, ji in T.grid(4, 4):
            if 4*jo + ji < 14:
                B[i] = {update}

@T.prim_func
def after(a: T.handle, b: T.handle):
    T.func_attr({{"tir.noalias": True}})
    A = T.match_buffer(a, (16, 4, 4), "float32")
    B = T.match_buffer(b, (16,), "float32")
    for i, jo, ji in T.grid(16, 4, 4):
        T.evaluate(T.assume(4*jo+ji < 14 or A[i, jo, ji] == {pad}))
    for i in range(16):
        {init}
        for jo, ji in T.grid(4, 4):
            B[i] = {update}
"""
BOTH = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda i, jo, ji: [i, jo, ji]"
ONE = "# theta: 0 -> 0: lambda i, jo, ji: [i, jo, ji]"


@one_in(4)
@pytest.mark.parametrize(
    ("pad", "init", "update", "fast_math"),
    [
        ("T.float32(0)", "T.float32(0)", "B[i] + A[i, jo, ji]", set()),
        ("T.float32(-0.0)", "T.float32(0)", "B[i] + A[i, jo, ji]", set()),
        ("T.float32(0)", None, "B[i] + A[i, jo, ji]", {"nsz"}),
        ("T.float32(1)", "T.float32(1)", "B[i] * A[i, jo, ji]", set()),
        ("T.float32(0)", "T.float32(1)", "B[i] * A[i, jo, ji]", None),
        ("T.float32(1)", "T.float32(0)", "B[i] + A[i, jo, ji]", None),
        ('-T.infinity("float32")', "T.float32(0)", "T.max(B[i], A[i, jo, ji])", {"nnan"}),
        ('-T.infinity("float32")', "T.float32(0)", "T.max(A[i, jo, ji], B[i])", set()),
        ("T.float32(0)", 'T.min_value("float32")', "T.max(B[i], A[i, jo, ji])", None),
        ('T.min_value("float32")', 'T.min_value("float32")', "T.max(B[i], A[i, jo, ji])", {"nnan"}),
    ],
)
def test_pad_values_of_reductions(pad: str, init: str | None, update: str, fast_math: set[str] | None) -> None:
    """A guard of a reduction goes where the padding is neutral, under the fewest fast-math assumptions; elsewhere it
    stays.
    """
    store = f"B[i] = {init}" if init is not None else "T.evaluate(0)"
    found = run_text(ROW_SUM.format(theta=BOTH if init is not None else ONE, pad=pad, init=store, update=update))
    assert holds(found) == (fast_math is not None)
    if fast_math is not None:
        assert strictness(found) == fast_math


ARMS = """
for i in range(8):
    if i < 5:
        B[i] = A[i] + T.float32(1)
    else:
        B[i] = A[i] * T.float32(3)
"""
ONE_STORE = """
for i in range(8):
    B[7 - i] = T.Select(7 - i < 5, A[7 - i] + T.float32(1), A[7 - i] * T.float32(3))
"""


@pytest.mark.parametrize(("first", "second", "legal"), [(5, 5, True), (4, 5, False), (5, 6, False), (3, 6, False)])
def test_one_store_takes_the_place_of_two(first: int, second: int, *, legal: bool) -> None:
    """Instances of one new store may compute those of several old ones: each exactly one, all of them."""
    theta = (
        f"# theta: 0 -> 0: lambda i: [7 - i] where 7 - i < {first}\n"
        f"# theta: 0 -> 1: lambda i: [7 - i] where 7 - i >= {second}"
    )
    assert holds(simulated(theta, ARMS, ONE_STORE, "A: 8 float32; B: 8 float32")) == legal
