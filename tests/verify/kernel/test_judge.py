"""What the kernel accepts and rejects, with the evidence that is found for it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from tests.attack.kernel_damage import other_evidence
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.certificate.finder.kernel_evidence import (
    Found,
    evidence_for,
    judge_text,
    plain_evidence,
    try_kernel,
)
from layoutproof.verify.certificate.reading import allowed_by
from layoutproof.verify.kernel.evidence import read_evidence
from layoutproof.verify.kernel.judge import Judged, judged_in_turn, stated
from layoutproof.verify.kernel.reader import read_rewrite
from layoutproof.verify.kernel.rejected import FAILURES, Rejected
from layoutproof.verify.values.fast_math import FastMathSet

REFUTED = sorted((ROOT / "proofs" / "refuted").glob("*.py"))
OTHERS = 6
PLAIN = ("init_hoisted_under_a_guard", "init_of_guarded_rows", "init_of_two_axes")

HEAD = "# functions: f, f\n"
OLD = """
@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.float32(0.0)
    for i, j in T.grid(n, 4):
        B[i] = B[i] + A[i, j]
"""
TILED = """
@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", 4), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.float32(0.0)
    for io, ii, j in T.grid((n + 7) // 8, 8, 4):
        if io * 8 + ii < n:
            B[io * 8 + ii] = B[io * 8 + ii] + A[io * 8 + ii, j]
"""
THETA = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda io, ii, j: [io * 8 + ii, j]\n"


@cache
def judged(text: str) -> tuple[Judged, ...]:
    """The kernel's claims about a rewrite."""
    return try_kernel(text)[0]


def rejected(text: str) -> set[str]:
    """The kinds of the claims that are rejected."""
    return {claim.kind for claim in judged(text) if not claim.is_accepted}


def allowed(text: str) -> FastMathSet:
    """The fast-math assumptions under which a rewrite is claimed."""
    return allowed_by(parse_litmus(text).header.strictness)


@one_in(7)
@pytest.mark.parametrize("path", REFUTED, ids=lambda path: path.stem)
def test_no_refuted_rewrite_is_accepted(path: Path) -> None:
    """At least one claim of each wrong rewrite is rejected, or its text is not read."""
    text = path.read_text(encoding="utf-8")
    assert any(not claim.is_accepted for claim in judge_text(text, allowed(text)).claims)


@one_in(21)
@pytest.mark.parametrize("path", REFUTED, ids=lambda path: path.stem)
def test_no_evidence_makes_a_refuted_rewrite_accepted(path: Path) -> None:
    """What is found, with something else in one place. Proofs are looked for of the questions that it leads to."""
    text, rng, found = path.read_text(encoding="utf-8"), Random(path.stem), Found()
    try:
        rewrite = read_rewrite(text)
    except Rejected:
        return
    fast_math = frozenset({*allowed(text), *stated(rewrite)})
    for with_copies in (False, True):
        evidence = plain_evidence(evidence_for(text, found, with_copies=with_copies))
        for other in (evidence, *(other_evidence(evidence, rng) for _ in range(OTHERS))):
            try:
                given = replace(read_evidence(other, {}, rewrite), refutation=found.refutation)
            except FAILURES:
                continue
            assert not all(claim.is_accepted for claim in judged_in_turn(rewrite, given, fast_math)), other


@pytest.mark.parametrize("name", PLAIN)
def test_right_rewrites_are_accepted(name: str) -> None:
    """Reordered inits are accepted in full."""
    assert rejected((ROOT / "proofs" / "accepted" / f"{name}.py").read_text(encoding="utf-8")) == set()


def test_tiles_of_any_number_of_rows() -> None:
    """A loop of symbolic extent in tiles."""
    assert rejected(THETA + OLD + TILED) == set()


@one_in(4)
@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("if io * 8 + ii < n:", "if io * 8 + ii < n - 1:", {"same-end"}),
        ("if io * 8 + ii < n:", "if io * 8 + ii <= n:", {"within-buffer", "same-value"}),
        ("(n + 7) // 8", "n // 8", {"same-end"}),
        ("+ A[io * 8 + ii, j]", "+ A[io * 8 + ii, 3 - j]", {"same-value"}),
        ("B[io * 8 + ii] + A", "A[io * 8 + ii, j] + A", {"same-value"}),
        ("T.float32(0.0)", "T.float32(-0.0)", {"same-value"}),
        ('T.func_attr({"tirx.noalias": True})', "pass", {"interface"}),
    ],
)
def test_a_wrong_program_is_rejected(was: str, becomes: str, kinds: set[str]) -> None:
    """What is changed in the new program is found by the claim that speaks of it."""
    assert was in TILED
    assert kinds <= rejected(THETA + OLD + TILED.replace(was, becomes))


@pytest.mark.parametrize(
    "loops",
    ["for j, io, ii in T.grid(4, (n + 7) // 8, 8):", "for io, j, ii in T.grid((n + 7) // 8, 4, 8):"],
)
def test_rows_may_be_interchanged_with_a_sum_that_keeps_its_order(loops: str) -> None:
    """The order of the terms of each row stays, whatever the order of rows."""
    names = loops.removeprefix("for ").partition(" in ")[0]
    text = TILED.replace("for io, ii, j in T.grid((n + 7) // 8, 8, 4):", loops)
    assert rejected(THETA.replace("lambda io, ii, j", f"lambda {names}") + OLD + text) == set()


def test_a_sum_in_another_order_is_rejected() -> None:
    """Terms that are added in reverse are another sum."""
    text = TILED.replace("A[io * 8 + ii, j]", "A[io * 8 + ii, 3 - j]")
    assert rejected(THETA.replace("ii, j]", "ii, 3 - j]") + OLD + text) == {"same-end"}


@pytest.mark.parametrize("where", ["n * n == 2", "n >= 4 and n < 4"])
def test_preconditions_that_cannot_hold_prove_nothing(where: str) -> None:
    """Sizes that no caller can have are no ground for anything."""
    assert "runs" in rejected(f"# where: {where}\n" + THETA + OLD + TILED)


def test_sizes_of_the_new_program_that_cannot_fit_prove_nothing() -> None:
    """What is assumed of sizes is that they fit: an expression that never does would prove everything."""
    text = TILED.replace("io * 8 + ii < n:", "io * 8 + ii < n and n * 0 + 2147483647 + 1 + n > 0:")
    assert "runs" in rejected("# where: n >= 1\n" + THETA + OLD + text)


@one_in(4)
def test_a_block_variable_that_is_not_used_is_computed() -> None:
    """Its arithmetic may be a fault that the old program has not."""
    inner = "            B[io * 8 + ii] = B[io * 8 + ii] + A[io * 8 + ii, j]\n"
    block = inner.replace(
        "            B",
        '            with T.sblock("b"):\n                v = T.axis.spatial({}, {})\n                B',
    )
    assert inner in TILED
    right = TILED.replace(inner, block.format(8, "ii"))
    assert rejected(THETA + OLD + right) == set()
    for domain, value in ((7, "ii"), (2147483647, "ii * 400000000"), (9, "8 // ii"), (9, "ii % 0")):
        assert rejected(THETA + OLD + TILED.replace(inner, block.format(domain, value))) == {"within-domain"}


REVERSED = TILED.replace("A[io * 8 + ii, j]", "A[io * 8 + ii, 3 - j]")
BACKWARDS = THETA.replace("ii, j]", "ii, 3 - j]")


@one_in(4)
@pytest.mark.parametrize(
    ("header", "dtype", "update", "kinds"),
    [
        ("", "int8", None, set()),
        ("# strictness: reassoc\n", "float32", None, set()),
        ("# strictness: nnan\n", "float32", None, {"same-end"}),
        ("", "int8", "A[{0}] - B[{1}]", {"same-end"}),
        ("", "int8", "B[{1}] + A[{0}] * B[{1}]", {"same-end"}),
        ("", "int8", "T.max(A[{0}], B[{1}])", set()),
        ("", "float32", "T.max(A[{0}], B[{1}])", {"same-end"}),
        ("# strictness: nnan nsz\n", "float32", "T.max(A[{0}], B[{1}])", set()),
    ],
)
def test_sums_in_another_order(header: str, dtype: str, update: str | None, kinds: set[str]) -> None:
    """Updates change places where the operator allows it, and what is added does not depend on the sum."""
    old, new = OLD, REVERSED
    if update is not None:
        old = old.replace("B[i] + A[i, j]", update.format("i, j", "i"))
        new = new.replace("B[io * 8 + ii] + A[io * 8 + ii, 3 - j]", update.format("io * 8 + ii, 3 - j", "io * 8 + ii"))
    text = (old + new).replace("float32", dtype).replace(f"T.{dtype}(0.0)", f"T.{dtype}(0)")
    assert rejected(header + BACKWARDS + text) == kinds


def test_a_reader_between_two_parts_of_a_sum_keeps_its_place() -> None:
    """What reads the sum half way sees half of it."""
    old = OLD.replace("A[i, j]", "A[i, j]\n    for i in range(n):\n        C[i] = B[i]")
    old = old.replace("B: T", 'C: T.Buffer(("n",), "float32"), B: T').replace("float32", "int32")
    old = old.replace("T.int32(0.0)", "0")
    split = old.replace("before", "after").replace("T.grid(n, 4)", "T.grid(n, 3)")
    last = "    for i in range(n):\n        B[i] = B[i] + A[i, 3]\n"
    theta = "# theta: 0 -> 0: lambda i: [i]\n# theta: 1 -> 1: lambda i, j: [i, j]\n"
    after = split + "\n" + last.rstrip("\n")
    copied = "# theta: 2 -> 2: lambda i: [i]\n# theta: 3 -> 1: lambda i: [i, 3]\n"
    assert "same-end" in rejected(theta + copied + old + "\n" + after + "\n")


PADDED = """\
# theta: 0 -> 0: lambda i: [i]
# cells: B_data -> B_data: lambda i: [i // 4, i % 4]
# interface: B
@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = A[i] + A[i]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(((n + 3) // 4, 4), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True, "layoutproof.layout": {"B_data": {"logical_shape": ["n"], "steps": [
        {"index_map": "lambda i: [i // 4, i % 4]", "shape": ["(n + 3) // 4", 4], "contract": "T.float32(0.0)"}
    ]}}})
    for i in range(n):
        B[i // 4, i % 4] = A[i] + A[i]
    for io, ii in T.grid((n + 3) // 4, 4):
        if io * 4 + ii >= n:
            B[io, ii] = T.float32(0.0)
"""


@one_in(4)
@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("", "", set()),
        ("if io * 4 + ii >= n:", "if io * 4 + ii > n:", {"interface"}),
        ("if io * 4 + ii >= n:", "if io * 4 + ii >= n - 1:", {"same-value"}),
        ("if io * 4 + ii >= n:", "if A[0] > T.float32(0.0) and io * 4 + ii >= n:", {"interface"}),
        ("B[io, ii] = T.float32(0.0)", "B[io, ii] = T.float32(-0.0)", {"interface"}),
        ("B[io, ii] = T.float32(0.0)", "B[io, 3] = T.float32(0.0)", {"interface"}),
        ("T.grid((n + 3) // 4, 4)", "T.grid(n // 4, 4)", {"interface"}),
        (
            "B[io, ii] = T.float32(0.0)\n",
            "B[io, ii] = T.float32(0.0)\n    if n % 4 > 0:\n        B[(n + 3) // 4 - 1, 3] = T.float32(1.0)\n",
            {"interface"},
        ),
    ],
)
def test_padding_that_a_parameter_ends_with(was: str, becomes: str, kinds: set[str]) -> None:
    """Each cell of the padding is filled with the contract's value, and nothing else is."""
    assert was in PADDED
    assert rejected(PADDED.replace(was, becomes) if was else PADDED) == kinds


HEAD = '@T.prim_func\ndef main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n'
RECORD = """{"A_data": {"logical_shape": [8], "steps": [{"index_map": "lambda i: [i // 4, i % 4]",
        "shape": [2, "1 * 4"], "contract": "lambda a, b: A[0, 0] + T.Cast('float32', b)"}]}}"""
RECORDED = HEAD.replace("(8,)", "(2, 4)", 1)
RECORDED += f"""    T.func_attr({{"layoutproof.layout": {RECORD}}})\n    B[0] = A[0, 0]\n"""


def test_records_are_read() -> None:
    """The box, the map and the contract of each layout of a memory."""
    text = RECORDED.replace("main", "before") + RECORDED.replace("main", "after")
    (layout,) = read_rewrite(text).new.record("A_data").steps
    assert (layout.map.names, len(layout.shape)) == (("i",), 2)
    assert layout.contract is not None
    assert layout.contract[:2] == ("+", "float32")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A_data", "C_data"),
        ("logical_shape", "logical"),
        ("[8]", "8.5"),
        ("[8]", "[None]"),
        ("index_map", "map"),
        ("lambda i: [i // 4, i % 4]", "lambda i: [i // 4, i % 4] where i < 3"),
        ("lambda i: [i // 4, i % 4]", "lambda i: [j]"),
        ("1 * 4", "1 *"),
        ("A[0, 0] +", "C[0, 0] +"),
        ("A[0, 0] +", "A[0] +"),
        ("'float32'", "'float16'"),
        ("lambda a, b: A", "lambda a: A"),
        ("lambda a, b: A", "lambda a, b A"),
    ],
)
def test_records_that_are_not_understood_are_rejected(old: str, new: str) -> None:
    """Whether or not a rule asks what they say."""
    assert old in RECORDED
    damaged = RECORDED.replace(old, new)
    with pytest.raises(Rejected):
        read_rewrite(RECORDED.replace("main", "before") + damaged.replace("main", "after"))


def test_attributes_stand_first() -> None:
    """In a function, and in their own place alone."""
    attribute, store = '    T.func_attr({"tirx.noalias": True})\n', "    B[0] = A[0]\n"
    first, second = (HEAD.replace("main", name) + "    n = T.int32()\n" for name in ("before", "after"))
    right = first + attribute + store
    assert read_rewrite(right + second + attribute + store).new.noalias
    inside = f"    for i in range(2):\n    {attribute}    {store}"
    for body in (store + attribute, attribute + attribute + store, inside):
        with pytest.raises(Rejected):
            read_rewrite(right + second + body)
