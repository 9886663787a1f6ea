"""Caches, inlined values, copies that are overwritten: what the kernel accepts, and near misses that it rejects."""

from __future__ import annotations

import pytest
from tests.shares import one_in
from tests.tree import ROOT
from tests.verify.kernel.test_judge import rejected

SIGNATURE = """(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tirx.noalias": True})
"""


def step(before: str, after: str) -> str:
    """The text of a rewrite of two bodies; temporaries `S` are of 16 elements, `D` of 32. Stores of the second body say
    behind `# ->` what they compute.
    """
    stores = [line for line in after.split("\n") if " = " in line]
    lines = [line.partition("# -> ")[2] or "none" for line in stores]
    theta = [f"# theta: {number} -> {line}\n" for number, line in enumerate(lines)]
    functions = []
    for name, body in (("before", before), ("after", after)):
        allocated = [
            f'{data} = T.sblock_alloc_buffer({shape}, "float32")'
            for data, shape in (("S", "(16,)"), ("D", "(2, 16)"))
            if f"{data}[" in body
        ]
        indented = "".join(f"    {line}\n" for line in (*allocated, *body.strip("\n").split("\n")))
        functions.append(f"@T.prim_func(s_tir=True)\ndef {name}{SIGNATURE}{indented}")
    return "# functions: before, after\n" + "".join(theta) + "\n" + "\n\n".join(functions)


CASES = {
    "cache": (
        """
for i in range(16):
    B[i] = A[15 - i] * T.float32(2)
for i in range(16):
    A[i] = T.float32(0)
""",
        """
for i in range(16):
    S[i] = A[i]
for i in range(16):
    B[i] = S[15 - i] * T.float32(2)  # -> 0: lambda i: [i]
for i in range(16):
    A[i] = T.float32(0)  # -> 1: lambda i: [i]
""",
    ),
    "inlined": (
        """
for i in range(16):
    S[15 - i] = T.exp(A[15 - i])
for io, ii in T.grid(2, 4):
    S[io * 4 + ii] = A[io * 4 + ii] * T.float32(2)
for i in range(16):
    B[i] = S[i] + S[15 - i]
""",
        """
for i in range(16):
    B[i] = T.if_then_else(i < 8, A[i] * T.float32(2) + T.exp(A[15 - i]), T.exp(A[i]) + A[15 - i] * T.float32(2))  # -> 2
""",
    ),
    "turns": (
        """
for i in range(6):
    for j in range(16):
        S[j] = A[j] + B[j]
    for j in range(16):
        B[j] = S[15 - j]
""",
        """
for i in range(6):
    for j in range(16):
        D[i % 2, j] = A[j] + B[j]  # -> 0: lambda i, j: [i, j]
    for j in range(16):
        B[j] = D[i % 2, 15 - j]  # -> 1: lambda i, j: [i, j]
""",
    ),
    "beside": (
        """
for i in range(16):
    B[i] = T.float32(0)
    for j in range(4):
        B[i] = B[i] + A[j]
for i in range(16):
    A[i] = B[15 - i]
""",
        """
for i in range(16):
    S[i] = T.float32(0)  # -> 0: lambda i: [i]
    for j in range(4):
        S[i] = S[i] + A[j]  # -> 1: lambda i, j: [i, j]
for i in range(16):
    B[i] = S[i]
for i in range(16):
    A[i] = B[15 - i]  # -> 2: lambda i: [i]
""",
    ),
    "packed beside": (
        """
for i in range(16):
    B[i] = T.exp(A[i])
""",
        """
for io, ii in T.grid(2, 8):
    D[io, ii] = T.exp(A[io * 8 + ii])  # -> 0: lambda io, ii: [io * 8 + ii]
for i in range(16):
    B[i] = D[i // 8, i % 8]
""",
    ),
    "filled": (
        """
for i in range(16):
    B[i] = T.if_then_else(2 <= i and i < 14, A[i - 2], T.float32(0))
for i in range(16):
    A[i] = B[i]
""",
        """
for i in range(16):
    B[i] = T.float32(0)  # -> 0: lambda i: [i] where not (2 <= i and i < 14)
for i in range(12):
    B[i + 2] = A[i]  # -> 0: lambda i: [i + 2]
for i in range(16):
    A[i] = B[i]  # -> 1: lambda i: [i]
""",
    ),
}


@one_in(4)
@pytest.mark.parametrize("name", CASES)
def test_values_that_take_another_way_are_followed(name: str) -> None:
    """Each case is accepted in full."""
    assert rejected(step(*CASES[name])) == set()


@pytest.mark.parametrize("name", ["inlined_by_parts", "inlined_exponential", "inlined_symbolic_extents"])
def test_inlined_values_are_accepted(name: str) -> None:
    """Rewrites of the project's own that the kernel accepts in full."""
    assert rejected((ROOT / "proofs" / "accepted" / f"{name}.py").read_text(encoding="utf-8")) == set()


COPY, USE, AFTER = (
    "for i in range(16):\n    S[i] = A[i]\n",
    "for i in range(16):\n    B[i] = S",
    "for i in range(16):\n    A",
)
WRONG = {
    "cache": [
        ("S[i] = A[i]", "S[i] = A[15 - i]"),
        ("S[i] = A[i]", "S[0] = A[i]"),
        ("S[15 - i]", "S[i]"),
        (COPY, COPY.replace("16", "15")),
        (COPY, ""),
        (COPY, COPY + COPY.replace("A[i]", "T.float32(1)")),
        (COPY, COPY + "S[3] = S[4]\n"),
        (COPY, COPY.replace("    S", "    if A[i] > T.float32(0):\n        S")),
        (COPY, "for i in range(16):\n    A[i] = A[i] + T.float32(1)\n" + COPY),
        (COPY + USE, USE.replace("B[i] = S", "S[i] = A[i]\n    B[i] = S")),
        (USE, USE.replace("B[i] = S", "S[(i + 1) % 16] = T.float32(7)\n    B[i] = S")),
    ],
    "inlined": [
        ("T.exp(A[15 - i])", "T.exp(A[i])"),
        ("i < 8", "i < 9"),
        ("i < 8", "i < 7"),
        ("A[i] * T.float32(2) +", "A[i] * T.float32(3) +"),
    ],
    "turns": [
        ("D[i % 2, 15 - j]", "D[(i + 1) % 2, 15 - j]"),
        ("D[i % 2, j] =", "D[0, j] ="),
        ("A[j] + B[j]", "A[j] + B[15 - j]"),
    ],
    "beside": [
        ("    B[i] = S[i]", "    B[i] = S[15 - i]"),
        ("for i in range(16):\n    B[i] = S[i]\n", ""),
        ("for i in range(16):\n    B[i] = S[i]", "for i in range(15):\n    B[i] = S[i]"),
        ("for i in range(16):\n    B[i] = S[i]", "for i in range(16):\n    S[i] = A[i]\n    B[i] = S[i]"),
        ("    for j in range(4):", "    B[i] = S[i]\n    for j in range(4):"),
        ("S[i] = S[i] + A[j]", "S[i] = B[i] + A[j]"),
        ("    S[i] = T.float32(0)", "    if i > 0:\n        S[i] = T.float32(0)"),
        ("    A[i] = B", "    B[15 - i] = S[0]\n    A[i] = B"),
        ("    A[i] = B", "    S[i] = S[0]\n    A[i] = B"),
        ("B[15 - i]", "S[15 - i] + T.float32(0)"),
    ],
    "packed beside": [
        ("i % 8]", "i // 8]"),
        ("D[i // 8", "D[i % 2"),
        ("range(16)", "range(15)"),
        ("D[io, ii]", "D[0, ii]"),
        ("T.grid(2, 8)", "T.grid(2, 7)"),
    ],
    "filled": [
        ("range(12)", "range(11)"),
        ("B[i + 2] = A[i]", "B[i + 2] = A[i + 1]"),
        ("B[i] = T.float32(0)", "B[i] = T.float32(1)"),
        ("range(16):\n    B[i] = T.float32(0)", "range(16):\n    A[i] = B[i]\n    B[i] = T.float32(0)"),
        ("for i in range(12)", "for i in range(16):\n    A[i] = B[i]  # -> 1: lambda i: [i]\nfor i in range(12)"),
    ],
}


@one_in(16)
@pytest.mark.parametrize(
    ("name", "was", "becomes"), [(name, *change) for name, changes in WRONG.items() for change in changes]
)
def test_a_value_on_a_wrong_way_is_rejected(name: str, was: str, becomes: str) -> None:
    """A copy of the wrong cell, too early, too late, in part, or overwritten."""
    before, after = CASES[name]
    assert was in after
    assert rejected(step(before, after.replace(was, becomes)))
