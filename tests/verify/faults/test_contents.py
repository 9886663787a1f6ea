"""What the old program's accesses tell of inputs: enough for the same accesses elsewhere, and no more."""

from __future__ import annotations

import pytest

from layoutproof.ir.notations.rewrite_text import parse_rewrite
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.verdict.verdict import Status

TEXT = """
# theta: none
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before({parameters}):
    T.func_attr({{"tirx.noalias": True}})
    {before}


@T.prim_func(s_tir=True)
def after({parameters}):
    T.func_attr({{"tirx.noalias": True}})
    {after}
"""
PLAIN = (
    'A: T.Buffer((9,), "float32"), I: T.Buffer((8,), "int32"), J: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")'
)
SYMBOLIC = 'A: T.Buffer(("m",), "float32"), I: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "float32")'
EACH = "for i in range(8): B[i] = A[I[i]]"


def open_claims(before: str, after: str, parameters: str = PLAIN) -> list[str]:
    """What is not proved of the new program's bounds and arithmetic."""
    rewrite = parse_rewrite(TEXT.format(parameters=parameters, before=before, after=after))
    verdicts = prove_rewrite(rewrite).verdicts
    return [
        v.claim.text
        for v in verdicts
        if v.status is not Status.PROVED and ("stays within" in v.claim.text or "fits" in v.claim.text)
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EACH, "for io, ii in T.grid(2, 4): B[io * 4 + ii] = A[I[io * 4 + ii]]"),
        (EACH, "for i in range(8): B[7 - i] = A[I[7 - i]]"),
        (EACH, "for i in range(5): B[i] = A[I[i]]"),
        (EACH, "for i in range(8): B[i] = A[I[i] // 2]"),
        (EACH, "for i in range(8): B[i] = A[T.max(I[i], 3)]"),
        ("for i in range(8): B[i] = A[I[i] // 2]", "for i in range(8): B[i] = A[I[i] // 3]"),
        ("for i in range(8):\n        if i < 4: B[i] = A[I[i]]", "for i in range(4): B[i] = A[I[i]]"),
        ("for i in range(8): B[I[i]] = A[i]", "for i in range(8): B[I[i]] = A[I[i]]"),
        (
            "for i in range(8): B[i] = T.if_then_else(i < 6, A[I[i]], 0.0)",
            "for i in range(8): B[i] = T.if_then_else(i < 5, A[I[i]], 0.0)",
        ),
    ],
)
def test_what_is_told(before: str, after: str) -> None:
    """An element that certainly decided an index may decide one again, wherever and however often that is in the new
    program.
    """
    assert open_claims(before, after) == []


VIEWED = "I_1 = I.view(2, 4)\n    for i, j in T.grid({}, 4): B[i * 4 + j] = A[I_1[{}]]"
COPIED = 'D = T.alloc_buffer((8,), "int32")\n    for i in range(8): D[i] = {}[i]\n    for i in range(8): B[i] = A[D[i]]'


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (EACH, VIEWED.format(2, "i, j"), True),
        (EACH, VIEWED.format(2, "1 - i, 3 - j"), True),
        (VIEWED.format(2, "i, j"), EACH, True),
        (VIEWED.format(1, "i, j"), EACH, False),
        ("for i in range(7): B[i] = A[I[i]]", VIEWED.format(2, "i, j"), False),
        (COPIED.format("I"), COPIED.format("I"), True),
        (COPIED.format("I"), EACH, True),
        (EACH, COPIED.format("I"), True),
        (COPIED.format("J"), EACH, False),
        (EACH, COPIED.format("J"), False),
        (COPIED.format("I"), COPIED.format("I").replace("A[D[i]]", "A[D[i] + 1]"), False),
        (COPIED.format("I").replace("A[D[i]]", "T.if_then_else(J[i] > 0, A[D[i]], 0.0)"), EACH, False),
    ],
)
def test_what_is_told_through_views_and_copies(before: str, after: str, told: bool) -> None:
    """An element is the same one in another shape of its memory, and in a copy of it."""
    assert (open_claims(before, after) == []) is told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for i in range(7): B[i] = A[I[i]]", EACH),
        (EACH, "for i in range(8): B[i] = A[I[i] + 1]"),
        (EACH, "for i in range(8): B[i] = A[J[i]]"),
        ("for i in range(8):\n        if J[i] > 0: B[i] = A[I[i]]", EACH),
        ("for i in range(8): B[i] = T.if_then_else(J[i] > 0, A[I[i]], 0.0)", EACH),
        ("for i in range(8): B[i] = T.Select(i < 4, A[I[i]], 0.0)", EACH),
        ("for i in range(8): B[i] = A[I[i] * 2]", EACH),
        ("for i in range(8):\n        T.assume(A[I[i]] == 0.0)\n        B[i] = A[i]", EACH),
        (f"I[0] = 1\n    {EACH}", f"I[0] = 1\n    {EACH}"),
        (EACH, f"J[0] = 1\n    {EACH}\n    I[1] = 20"),
        ("for i in range(8): B[i] = A[J[I[i]]]", "for i in range(8): B[i] = A[J[i]]"),
    ],
)
def test_what_is_not_told(before: str, after: str) -> None:
    """Nothing follows of other elements, of other indices, of what data or a choice decides, of what is written."""
    assert open_claims(before, after)


def test_sizes_that_are_names() -> None:
    """What is known of elements holds for every size."""
    before, after = "for i in range(n): B[i] = A[I[i]]", "for i in range(n): B[n - 1 - i] = A[I[n - 1 - i]]"
    assert open_claims(before, after, SYMBOLIC) == []
    assert open_claims(before, "for m in range(n): B[m] = A[I[m]]", SYMBOLIC.replace('"m"', "9")) == []


def test_a_schedule_of_a_lookup() -> None:
    """Rows of a table by an input's numbers: loops split, the table re-laid, all proved."""
    text = f"@T.prim_func\ndef rows({PLAIN}):\n    T.func_attr({{'tirx.noalias': True}})\n    {EACH}\n"
    schedule = Schedule(loads(text))
    schedule.split("root", 0, [2, None])
    schedule.transform_layout("root", "A", "lambda r: [r//4, r%4]", pad_value=None)
    assert len(schedule.trace) == 2


@pytest.mark.parametrize(("attrs", "count"), [('{"layoutproof.apart": True}', 0), ("{}", 1)])
def test_what_is_stored_changes_no_other_parameter_where_they_are_apart(attrs: str, count: int) -> None:
    """Only where that is asked of every call."""
    text = TEXT.replace('{{"tirx.noalias": True}}', "{{}}", 1).replace('{{"tirx.noalias": True}}', f"{{{attrs}}}", 1)
    rewrite = parse_rewrite(text.format(parameters=PLAIN, before=EACH, after=EACH.replace("range(8)", "T.unroll(8)")))
    found = [v for v in prove_rewrite(rewrite).verdicts if "read A[I[i]] stays within" in v.claim.text]
    assert sum(v.status is not Status.PROVED for v in found) == count
