"""Inverses of witnesses: which instance computes an old one, also where theta does not speak of all loops."""

from __future__ import annotations

import pytest

from layoutproof.verify.certificate.finder.inverses import inverses_of
from layoutproof.verify.certificate.finder.kernel_evidence import judge_text

_INIT = """
# theta: 0 -> 0: lambda i, ko, ki: [i, 0]
# theta: 1 -> 1: lambda i, ko, ki: [i, ko * 4 + ki]
@T.prim_func(s_tir=True)
def before(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(6, 8):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0.0)
            B[vi] = B[vi] + A[vi, vk]

@T.prim_func(s_tir=True)
def after(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, ko, ki in T.grid(6, 2, 4):
        if FIRST:
            B[i] = T.float32(0.0)
        B[i] = B[i] + A[i, ko * 4 + ki]
"""
_FIRST = ("ko == 0 and ki == 0", "ki == 0 and ko * 4 == 0", "ki + ko < 1")


@pytest.mark.parametrize("first", _FIRST)
def test_an_init_under_a_guard(first: str) -> None:
    """The init of a row is at the first iteration of the loops that theta leaves out."""
    assert judge_text(_INIT.replace("FIRST", first)).claims
    rejected = [claim for claim in judge_text(_INIT.replace("FIRST", first)).claims if not claim.is_accepted]
    assert rejected == []


@pytest.mark.parametrize("first", ["ki == 0", "ko == 0 and ki == 1", "ko == 2 and ki == 0"])
def test_an_init_at_another_iteration(first: str) -> None:
    """An init that runs twice, too late, or never is not accepted, wherever the guard says that it is."""
    assert any(not claim.is_accepted for claim in judge_text(_INIT.replace("FIRST", first)).claims)


def test_a_guard_names_the_iteration() -> None:
    """A loop that a guard holds at a value has that value."""
    (inverse,) = inverses_of(_INIT.replace("FIRST", "ko == 1 and ki == 3"))[0]
    assert [output[2] for output in inverse.map.outputs[1:]] == [1, 3]


_PARTS = """
# theta: 0 -> 0: FIRST
# theta: 1 -> 0: SECOND
@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.exp(A[i])

@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
LOOPS"""
_IN_PARTS = {
    "cut at a symbol": (
        "lambda i: [i]",
        "lambda i: [i]",
        """    for i in range(n // 2):
        B[i] = T.exp(A[i])
    for i in T.serial(n // 2, n):
        B[i] = T.exp(A[i])
""",
    ),
    "cut by a guard": (
        "lambda i: [i - 1]",
        "lambda i: [i]",
        """    for i in range(1, n + 1):
        if i < 8:
            B[i - 1] = T.exp(A[i - 1])
    for i in T.serial(7, n):
        B[i] = T.exp(A[i])
""",
    ),
    # Loops over tiles that theta leaves out: they are the quotients of what it speaks of.
    "tiles of four": (
        "lambda io, i: [i]",
        "lambda io, i: [i]",
        """    for io in range((n + 3) // 4):
        if io * 4 + 4 <= n:
            for i in range(io * 4, io * 4 + 4):
                B[i] = T.exp(A[i])
        else:
            for i in range(io * 4, io * 4 + (T.min(io * 4 + 4, n) - io * 4)):
                B[i] = T.exp(A[i])
""",
    ),
    "fours and a rest": (
        "lambda io, ii: [io * 4 + ii]",
        "lambda i: [n // 4 * 4 + i]",
        """    for io, ii in T.grid(n // 4, 4):
        B[io * 4 + ii] = T.exp(A[io * 4 + ii])
    for i in range(n % 4):
        B[n // 4 * 4 + i] = T.exp(A[n // 4 * 4 + i])
""",
    ),
}


def _in_parts(name: str) -> str:
    first, second, loops = _IN_PARTS[name]
    return _PARTS.replace("FIRST", first).replace("SECOND", second).replace("LOOPS", loops)


@pytest.mark.parametrize("name", _IN_PARTS)
def test_an_old_store_in_two_parts(name: str) -> None:
    """The first part speaks of the instances that its loops and guards have, the second one of the rest."""
    assert [claim.reason for claim in judge_text(_in_parts(name)).claims if not claim.is_accepted] == []


@pytest.mark.parametrize(
    ("name", "of", "instead"), [("cut at a symbol", "(n // 2)", "(n // 3)"), ("cut by a guard", "i < 8", "i < 7")]
)
def test_parts_with_a_gap(name: str, of: str, instead: str) -> None:
    """Instances that no part has are found by no condition."""
    text = _in_parts(name)
    assert of in text
    rejected = [claim.kind for claim in judge_text(text.replace(of, instead)).claims if not claim.is_accepted]
    assert "same-end" in rejected
