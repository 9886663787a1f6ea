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
