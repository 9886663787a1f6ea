"""Where a search ends without a witness: the message names both statements with their lines, the operand and the
relation.
"""

from __future__ import annotations

import pytest
from tests.lowering.compare.questions import from_text

from layoutproof.lowering.compare.comparison import Furthest, NoWitness
from layoutproof.lowering.compare.witness_search import find_witness

A_TO_B = 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")'
FOUR = 'A: T.Buffer((16,), "float32"), B: T.Buffer((4, 4), "float32")'
COPY = """
for i in range(16):
    B[i] = A[i]
"""
EXP = """
for i in range(16):
    B[i] = T.exp(A[i])
"""


def ended(
    before: str, after: str, signature: str = A_TO_B, after_signature: str | None = None, **layouts: str
) -> Furthest:
    """Where the search for a witness ends."""
    with pytest.raises(NoWitness) as found:
        find_witness(from_text(signature, before, after, after_signature, **layouts))
    assert str(found.value) == found.value.furthest.reason
    return found.value.furthest


def test_values_of_different_forms() -> None:
    """Both statements, their lines in their programs, and which instances were to be equal."""
    found = ended(EXP, "for x in range(16):\n    B[x] = T.float32(2)\n")
    assert found.reason == (
        "what B holds at the end: `B[x] = 2.0` (line 14 of the program after) and `B[i] = exp(A[i])` (line 7 of the "
        "program "
        "before) compute values of different forms"
    )
    assert (found.new_store, found.old_store, found.new_line, found.old_line) == (0, 0, 14, 7)
    assert found.operand is None
    assert found.relation == "[x] -> [x]"
    assert found.matched == 0


def test_operand_without_a_counterpart() -> None:
    """The load that led to the two statements is named, and how many stores had counterparts by then."""
    body = """
t = T.alloc_buffer((16,), "float32")
for i in range(16):
    t[i] = T.max({0}[i], {0}[i] * {1}[i])
for i in range(16):
    B[i] = T.sqrt(t[i])
"""
    signature = f'{A_TO_B}, D: T.Buffer((16,), "float32")'
    found = ended(body.format("A", "D"), body.format("A", "A"), signature)
    assert found.reason == (
        "what t[i] loads in `B[i] = sqrt(t[i])` (line 20 of the program after): `t[i] = max(A[i], A[i]*A[i])` (line "
        "18 of the program "
        "after) and `t[i] = max(A[i], A[i]*D[i])` (line 8 of the program before) compute values of different forms"
    )
    assert (found.new_line, found.old_line, found.operand, found.relation, found.matched) == (
        18,
        8,
        "t[i]",
        "[i] -> [i]",
        1,
    )
    assert found.text().splitlines()[1:] == [
        "operand: t[i]",
        "relation: [i] -> [i]",
        "1 store of the new program had a counterpart by then",
    ]


def test_operands_elsewhere() -> None:
    """Two copies of different cells, where the layout of what they write says which instances go together."""
    found = ended(COPY, "for i in range(16):\n    B[i] = A[15 - i]\n")
    assert found.reason == (
        "what B holds at the end: `B[i] = A[15 - i]` (line 14 of the program after) against `B[i] = A[i]` (line 7 of "
        "the program before): "
        "no instances go together, since the operands look at different places"
    )
    assert (found.new_line, found.old_line, found.relation) == (14, 7, "[i] -> [i]")


def test_cells_that_are_elsewhere() -> None:
    """A copy of other cells than the ones that are loaded in the program before."""
    found = ended(
        EXP,
        """
t = T.alloc_buffer((16,), "float32")
for i in range(16):
    t[i] = A[15 - i]
for i in range(16):
    B[i] = T.exp(t[i])
""",
    )
    assert found.reason.startswith("what t[i] loads in `B[i] = exp(t[i])` (line 17 of the program after): ")
    assert found.reason.endswith("a cell of A in the program after is not where the one of A went")
    assert (found.operand, found.matched, found.new_line, found.old_line) == ("t[i]", 1, 17, 7)


def test_nothing_is_written() -> None:
    """A program after that leaves what was there."""
    found = ended(EXP, "for i in range(16):\n    T.evaluate(0)\n")
    assert found.reason == (
        "what B holds at the end: the program after has what B holds at the start there, the one before `B[i] = "
        "exp(A[i])` (line 7 of "
        "the program before)"
    )
    assert (found.new_store, found.old_store, found.new_line, found.old_line) == (None, 0, None, 7)


def test_several_instances() -> None:
    """Partial maxima that are added up later: no instance of the one program is that of the other."""
    signature = 'A: T.Buffer((8, 12), "float32"), B: T.Buffer((8,), "float32")'
    found = ended(
        """
for i in range(8):
    B[i] = T.float32(0)
    for k in range(12):
        B[i] = B[i] + A[i, k]
""",
        """
p = T.alloc_buffer((8, 3), "float32")
for i, x in T.grid(8, 3):
    p[i, x] = T.float32(0)
    for y in range(4):
        p[i, x] = T.max(p[i, x], A[i, 4 * x + y])
for i in range(8):
    B[i] = T.float32(0)
    for x in range(3):
        B[i] = B[i] + p[i, x]
""",
        signature,
    )
    assert "several instances of the program before may go with one of the program after" in found.reason
    assert found.relation == "[i, x] -> [i_before, k] where i_before == i"


def test_instances_with_the_layout() -> None:
    """Which instances were to be equal follows from the layout."""
    found = ended(
        EXP, "for x, y in T.grid(4, 4):\n    B[x, y] = T.float32(4 * 4)\n", A_TO_B, FOUR, B="lambda i: [i // 4, i % 4]"
    )
    assert found.relation == "[x, y] -> [4*x + y]"
    assert (found.new_line, found.old_line) == (14, 7)


def test_only_a_part() -> None:
    """Where one of several stores has another form, it is that one which is named."""
    found = ended(
        EXP, "for i in range(16):\n    if i < 8:\n        B[i] = T.exp(A[i])\n    else:\n        B[i] = T.float32(1)\n"
    )
    assert "`B[i] = 1.0` (line 17 of the program after)" in found.reason
    assert (found.new_store, found.new_line, found.old_line, found.relation) == (1, 17, 7, "[i] -> [i]")
