"""Inits of reductions in loops of their own: moved rightly they are proved, moved wrongly refuted by a run."""

from __future__ import annotations

from textwrap import indent

import pytest
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

FIXED = 'A: T.Buffer((6, 4), "int32"), B: T.Buffer((6,), "int32")'
SYMBOLIC = 'A: T.Buffer((6, "m"), "int32"), B: T.Buffer((6,), "int32")'
ROWS = "0 -> 0: lambda i: [i, 0]"
SAME = "1 -> 1: lambda i, k: [i, k]"
TURNED = "1 -> 1: lambda k, i: [i, k]"
UPDATE = "for i, k in T.grid(6, 4):\n    B[i] = B[i] + A[i, k]"


def block(
    where: str = "",
    init: str = "B[vi] = 0",
    update: str = "B[vi] = B[vi] + A[vi, vk]",
    extent: str = "4",
    beside: str = "",
) -> str:
    """The body of a sum over a block with an init; `beside` is a statement before the block, in its loops."""
    lines = [f"for i, k in T.grid(6, {extent}):", *([f"    {beside}"] if beside else []), '    with T.block("sum"):']
    lines += ['        vi, vk = T.axis.remap("SR", [i, k])', *([f"        T.where({where})"] if where else [])]
    return "\n".join([*lines, "        with T.init():", f"            {init}", f"        {update}"])


def statuses(old: str, new: str, theta: tuple[str, ...], head: str = FIXED) -> set[Status]:
    """How the claims of a rewrite of one body into another are decided."""
    symbols = "    m = T.int32()\n" if head == SYMBOLIC else ""
    functions = [
        f"@T.prim_func\ndef {name}({head}):\n{symbols}"
        f'    T.func_attr({{"tirx.noalias": True}})\n{indent(body, "    ")}\n'
        for name, body in (("before", old), ("after", new))
    ]
    text = "".join(f"# theta: {line}\n" for line in theta) + "\n\n".join(functions)
    return {verdict.status for verdict in check_rewrite(parse_litmus(text, "test").rewrite)}


ANY = "for i in range(6):\n    {init}\n    for k in range(m):\n        B[i] = B[i] + A[i, k]"
GUARDED = "for i in range(6):\n    {init}\nfor k, i in T.grid(4, 6):\n    if {where}:\n        B[i] = B[i] + A[i, k]"
RIGHT = {
    "before the reduction": (block(), f"for i in range(6):\n    B[i] = 0\n{UPDATE}", (ROWS, SAME), FIXED),
    "under a guard on results": (
        block("i < 5"),
        GUARDED.format(init="if i < 5:\n        B[i] = 0", where="i < 5"),
        (ROWS, TURNED),
        FIXED,
    ),
    "under a guard that keeps the start": (
        block("vk <= vi"),
        GUARDED.format(init="B[i] = 0", where="k <= i"),
        (ROWS, TURNED),
        FIXED,
    ),
    "of any length, where there are terms": (
        block(extent="m"),
        ANY.format(init="if m >= 1:\n        B[i] = 0"),
        (ROWS, SAME),
        SYMBOLIC,
    ),
    "a cell that is rotated": (
        block(init="B[(vi + 1) % 6] = 0", update="B[(vi + 1) % 6] = B[(vi + 1) % 6] + A[vi, vk]"),
        "for i in range(6):\n    B[(i + 1) % 6] = 0\n"
        "for i, k in T.grid(6, 4):\n    B[(i + 1) % 6] = B[(i + 1) % 6] + A[i, k]",
        (ROWS, SAME),
        FIXED,
    ),
}
SHARED = "B[{0} // 2] = B[{0} // 2] + A[{0}, {1}]"
WRONG = {
    "gone": (block(), UPDATE, ("0 -> 1: lambda i, k: [i, k]",), FIXED),
    "every time": (
        block(),
        "for i, k in T.grid(6, 4):\n    B[i] = 0\n    B[i] = B[i] + A[i, k]",
        ("0 -> 0: lambda i, k: [i, k]", SAME),
        FIXED,
    ),
    "another value": (block(), f"for i in range(6):\n    B[i] = 1\n{UPDATE}", (ROWS, SAME), FIXED),
    "another cell": (
        block(),
        "for i in range(6):\n    B[(i + 1) % 6] = 0\n    for k in range(4):\n        B[i] = B[i] + A[i, k]",
        (ROWS, SAME),
        FIXED,
    ),
    "too few rows": (block(), f"for i in range(5):\n    B[i] = 0\n{UPDATE}", (ROWS, SAME), FIXED),
    "rows that the guard leaves alone": (
        block("i < 5"),
        GUARDED.format(init="B[i] = 0", where="i < 5"),
        ("0 -> 0: lambda i: [i, 0] where i < 5", TURNED),
        FIXED,
    ),
    "a guard that skips the first update": (
        block("vk > 0"),
        GUARDED.format(init="B[i] = 0", where="k > 0"),
        (ROWS, TURNED),
        FIXED,
    ),
    "of any length, though there may be no terms": (
        block(extent="m"),
        ANY.format(init="B[i] = 0"),
        ("0 -> 0: lambda i: [i, 0] where m >= 1", SAME),
        SYMBOLIC,
    ),
    "a neighbour that meddles": (
        block(beside="B[i] = B[i] + 7"),
        "for i in range(6):\n    B[i] = 0\n"
        "    for k in range(4):\n        B[i] = B[i] + 7\n        B[i] = B[i] + A[i, k]",
        ("0 -> 1: lambda i: [i, 0]", "1 -> 0: lambda i, k: [i, k]", "2 -> 2: lambda i, k: [i, k]"),
        FIXED,
    ),
    "two results in one cell": (
        block(init="B[vi // 2] = 0", update=SHARED.format("vi", "vk")),
        f"for i in range(6):\n    B[i // 2] = 0\nfor i, k in T.grid(6, 4):\n    {SHARED.format('i', 'k')}",
        (ROWS, SAME),
        FIXED,
    ),
    "an update that reads another result": (
        block(update="B[vi] = B[vi] + B[(vi + 1) % 6]"),
        "for i in range(6):\n    B[i] = 0\nfor i, k in T.grid(6, 4):\n    B[i] = B[i] + B[(i + 1) % 6]",
        (ROWS, SAME),
        FIXED,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_an_init_that_is_moved_rightly_is_proved(name: str) -> None:
    """Nothing looks at the cell between the init's new place and its old one, and it is stored where it was."""
    assert statuses(*RIGHT[name]) == {Status.PROVED}


@one_in(4)
@pytest.mark.parametrize("name", WRONG)
def test_an_init_that_is_moved_wrongly_is_refuted(name: str) -> None:
    """A run shows the difference."""
    assert Status.REFUTED in statuses(*WRONG[name])
