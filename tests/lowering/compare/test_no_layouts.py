"""What is said where layouts are not known and none leads to a witness."""

from __future__ import annotations

import pytest
from tests.lowering.compare.questions import asked, from_text, sized

from layoutproof.lowering.compare.comparison import NoWitness
from layoutproof.lowering.compare.layout_search import find_witnesses


def test_none() -> None:
    """Where no layout leads to a witness, how many were tried is said, and how far the best of them came."""
    question = asked(
        from_text(
            sized(A="8", B="8"),
            """
            for i in range(8):
                B[i] = T.exp(A[i])
            """,
            """
            for a, b in T.grid(2, 4):
                B[a, b] = T.exp(A[a])
            """,
            sized(A="8", B="2, 4"),
        )
    )
    with pytest.raises(NoWitness) as problem:
        next(iter(find_witnesses(question)))
    furthest = problem.value.furthest
    assert "1 layout of B tried (B: lambda i: [" in furthest.reason
    assert (furthest.new_store, furthest.old_store) == (0, 0)


def test_no_room() -> None:
    """A shape that cannot hold the elements is named."""
    question = asked(
        from_text(
            sized(A="8", B="8"),
            """
            for i in range(8):
                B[i] = T.exp(A[i])
            """,
            """
            for i in range(7):
                B[i] = T.exp(A[i])
            """,
            sized(A="8", B="7"),
        )
    )
    with pytest.raises(NoWitness, match="no layout of B was found"):
        next(iter(find_witnesses(question)))
