"""The search for a witness where the layouts are known: what it finds, that the checker accepts it, and where it ends
without one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.lowering.compare.questions import DATA, from_file, from_text, told, verdict
from tests.shares import one_in

from layoutproof.ir.expr import equal
from layoutproof.ir.visit import free_variables
from layoutproof.lowering.compare.comparison import NoWitness
from layoutproof.lowering.compare.witness_search import find_witness, search_of
from layoutproof.verify.verdict.verdict import Status

A_TO_B = 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")'
A_TO_4 = 'A: T.Buffer((16,), "float32"), B: T.Buffer((4, 4), "float32")'


@one_in(16)
@pytest.mark.parametrize("path", sorted(DATA.glob("*.py")), ids=lambda path: path.stem)
def test_kinds(path: Path) -> None:
    """A witness is found for what compilers do to programs, each file one kind, and the checker accepts it."""
    question = from_file(path)
    assert verdict(question, find_witness(question)) is Status.PROVED


def test_all_kinds_are_there() -> None:
    """The files are found where they are looked for."""
    assert len(list(DATA.glob("*.py"))) >= 68


def test_layout_of_an_output() -> None:
    """The map of instances follows from the layout that is given."""
    question = from_text(
        A_TO_B,
        """
        for i in range(16):
            B[i] = T.exp(A[i])
        """,
        """
        for x, y in T.grid(4, 4):
            B[x, y] = T.exp(A[4 * x + y])
        """,
        A_TO_4,
        B="lambda i: [i // 4, i % 4]",
    )
    found = find_witness(question)
    assert told(found) == ["0 -> 0: [x, y] -> [4*x + y]"]
    assert found.cells == question.cells


def test_only_padding_has_no_counterpart() -> None:
    """Instances that fill padding compute nothing of the old program, and a store that does nothing else has no map."""
    question = from_text(
        'A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")',
        """
        for i in range(14):
            B[i] = A[i]
        """,
        """
        for x, y in T.grid(4, 4):
            B[x, y] = T.float32(0)
        for x, y in T.grid(4, 4):
            B[x, y] = T.if_then_else(4 * x + y < 14, A[4 * x + y], T.float32(0))
        """,
        'A: T.Buffer((14,), "float32"), B: T.Buffer((4, 4), "float32")',
        B="lambda i: [i // 4, i % 4]",
    )
    assert told(find_witness(question)) == ["0 -> none", "1 -> 0: [x, y] -> [4*x + y] where 4*x + y <= 13"]


def test_several_old_stores_for_one() -> None:
    """A store in a loop computes what several stores computed, each on its part."""
    question = from_text(
        A_TO_B,
        """
        for i in range(8):
            B[2 * i] = A[2 * i]
            B[2 * i + 1] = A[2 * i + 1]
        """,
        """
        for i in range(16):
            B[i] = A[i]
        """,
    )
    assert told(find_witness(question)) == [
        "0 -> 0: [i] -> [i//2] where i%2 == 0",
        "0 -> 1: [i] -> [(i + 1)//2 - 1] where (i + 1)%2 == 0",
    ]


def test_lanes_are_said() -> None:
    """The map of a store of several lanes has the lane last."""
    question = from_text(
        A_TO_B,
        """
        for i in range(16):
            B[i] = A[i] * T.float32(2)
        """,
        """
        for x in range(4):
            B[4 * x : 4 * x + 4] = A[4 * x : 4 * x + 4] * T.Broadcast(T.float32(2), 4)
        """,
    )
    found = find_witness(question)
    (claim,) = found.instances
    assert claim.instances is not None
    assert [len(claim.instances.inputs), len(claim.instances.outputs)] == [2, 1]
    assert verdict(question, found) is Status.PROVED


def test_names_are_no_evidence() -> None:
    """Temporaries with each other's names are separated by their contents."""
    question = from_text(
        A_TO_B,
        """
        s = T.alloc_buffer((16,), "float32")
        t = T.alloc_buffer((16,), "float32")
        for i in range(16):
            s[i] = T.exp(A[i])
            t[i] = T.sqrt(A[i])
        for i in range(16):
            B[i] = s[i] * t[i]
        """,
        """
        s = T.alloc_buffer((16,), "float32")
        t = T.alloc_buffer((16,), "float32")
        for i in range(16):
            s[i] = T.sqrt(A[i])
            t[i] = T.exp(A[i])
        for i in range(16):
            B[i] = s[i] * t[i]
        """,
    )
    assert told(find_witness(question)) == ["0 -> 1: [i] -> [i]", "1 -> 0: [i] -> [i]", "2 -> 2: [i] -> [i]"]


def test_another_order_of_updates() -> None:
    """Updates of a sum in another order go with the updates of the same terms, the init with the init."""
    signature = 'A: T.Buffer((8, 12), "float32"), B: T.Buffer((8,), "float32")'
    question = from_text(
        signature,
        """
        for i in range(8):
            B[i] = T.float32(0)
            for k in range(12):
                B[i] = B[i] + A[i, k]
        """,
        """
        for i in range(8):
            B[i] = T.float32(0)
            for x, y in T.grid(4, 3):
                B[i] = B[i] + A[i, 4 * y + x]
        """,
    )
    found = find_witness(question)
    assert told(found) == ["0 -> 0: [i] -> [i]", "1 -> 1: [i, x, y] -> [i, x + 4*y]"]
    assert verdict(question, found) is Status.PROVED


def test_values_of_different_forms_last() -> None:
    """Statements whose values have different forms are paired where nothing else is left: a solver may find them equal,
    or different.
    """
    found = find_witness(from_file(DATA / "twice_and_a_sum.py"))
    assert told(found) == ["0 -> 0: [i, j] -> [4*i + j]"]
    question = from_text(
        A_TO_B, "for i in range(16):\n    B[i] = A[i] * T.float32(2)\n", "for i in range(16):\n    B[i] = T.exp(A[i])\n"
    )
    assert verdict(question, find_witness(question)) is Status.UNKNOWN


def test_what_callers_vouch_for() -> None:
    """A condition on symbols decides which instances there are: without it the last ones have no counterpart
    everywhere.
    """
    question = from_text(
        'A: T.Buffer(("n",), "float32"), B: T.Buffer((n,), "float32")',
        """
        n = T.int32()
        for i in range(n):
            B[i] = T.exp(A[i])
        """,
        """
        n = T.int32()
        for x, y in T.grid(n // 4, 4):
            B[4 * x + y] = T.exp(A[4 * x + y])
        """,
    )
    with pytest.raises(NoWitness, match="what B holds at the start"):
        find_witness(question)
    n = next(v for v in free_variables(question.old.buffers[0].shape[0]))
    vouched = replace(question, where=equal(n % 4, 0))
    assert told(find_witness(vouched)) == ["0 -> 0: [x, y] -> [4*x + y]"]


def test_programs_that_may_overlap() -> None:
    """If parameters may overlap there is no exact model: stores are paired by number, and the checker decides."""
    question = from_file(DATA / "backwards.py")
    attributes = {key: value for key, value in question.old.attrs.items() if key != "tirx.noalias"}
    old = replace(question.old, attrs=type(question.old.attrs)(attributes))
    loose = replace(question, old=old, new=old)
    found = find_witness(loose)
    assert told(found) == ["0 -> 0: [i] -> [i]"]
    assert verdict(loose, found) is Status.PROVED


def test_out_of_budget_side_by_side() -> None:
    """Without budget, programs of the same stores and loops are still set side by side."""
    assert told(find_witness(from_file(DATA / "backwards.py"), operations=50)) == ["0 -> 0: [i] -> [i]"]


def test_out_of_budget() -> None:
    """A search that ran out of its budget says so."""
    with pytest.raises(NoWitness) as ended:
        find_witness(from_file(DATA / "tile_in_registers.py"), operations=50)
    assert "ran out of its budget" in ended.value.furthest.reason
    assert "5 stores against 2" in ended.value.furthest.reason


def test_the_same_twice() -> None:
    """Two searches find the same, text for text."""
    question = from_file(DATA / "scores_row_by_row.py")
    assert told(find_witness(question)) == told(find_witness(question))


def test_unknown_layouts_are_for_others() -> None:
    """A search with unknown layouts has both programs side by side, and does not run."""
    question = from_text(
        A_TO_B,
        """
        for i in range(16):
            B[i] = A[i]
        """,
        """
        for x, y in T.grid(4, 4):
            B[x, y] = A[4 * x + y]
        """,
        A_TO_4,
    )
    search = search_of(replace(question, unknown=("B",)))
    assert [len(search.new.by_number), len(search.old.by_number)] == [1, 1]
    with pytest.raises(ValueError, match="B_data"):
        search.run()
