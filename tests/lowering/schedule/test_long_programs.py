"""Programs whose statements follow one another in their hundreds: length is not depth."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from tests.shares import one_in

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.runtime.build_c import build_c
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.verify.verdict.verdict import Status

HEAD = """
@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.func_attr({"tir.noalias": True})
"""


def stores(count: int) -> str:
    """Stores, one after the other."""
    return HEAD + "".join(f"    B[{i % 16}] = A[{i % 16}] + T.float32({i})\n" for i in range(count))


def lets(count: int) -> str:
    """Lets, each used once."""
    return HEAD + "".join(f"    x{i}: T.float32 = A[{i % 16}]\n    B[{i % 16}] = x{i}\n" for i in range(count))


def stages(count: int) -> str:
    """Copies from one temporary to the next."""
    lines = [HEAD]
    for i in range(count):
        lines.append(
            f"    t{i} = T.alloc_buffer((16,), 'float32')\n    for i in range(16):\n        with T.block('b{i}'):\n"
        )
        lines.append(f"            v = T.axis.spatial(16, i)\n            t{i}[v] = {f't{i - 1}' if i else 'A'}[v]\n")
    lines.append("    for i in range(16):\n        with T.block('last'):\n            v = T.axis.spatial(16, i)\n")
    lines.append(f"            B[v] = t{count - 1}[v]\n")
    return "".join(lines)


def views(count: int) -> str:
    """Aliases of one memory."""
    lines = [HEAD]
    for i in range(count):
        lines.append(f"    v{i} = T.decl_buffer((4, 4), 'float32', data=B.data)\n    v{i}[{i % 4}, 0] = A[{i % 4}]\n")
    return "".join(lines)


KINDS = (stores, lets, stages, views)


def check_long(make: Callable[[int], str], count: int) -> None:
    """Lower a program, build it as C, run it against the interpreter, and compare it with itself."""
    function = loads(make(count))
    build_c(Schedule(function).lower())
    assert compare(function, function).status is Status.PROVED


@one_in(12)
@pytest.mark.parametrize("make", KINDS)
def test_hundreds_of_statements_in_sequence(make: Callable[[int], str]) -> None:
    """300 statements that follow one another lower, build and compare, whatever kind they are of."""
    check_long(make, 300)


@pytest.mark.campaign
@pytest.mark.parametrize("make", KINDS)
def test_thousands_of_statements_in_sequence(make: Callable[[int], str]) -> None:
    """2,000 do, too."""
    check_long(make, 2000)


@one_in(5)
def test_a_longer_sequence_is_refused_with_its_place() -> None:
    """Sequences that are too long for the stack are reported by line, not by a traceback."""
    with pytest.raises(LayoutproofError, match="more than 2500 lets and allocations follow one another") as caught:
        loads(lets(2501))
    assert caught.value.diagnostics[0].span is not None


def test_room_is_made_only_where_it_is_needed() -> None:
    """A program of ordinary depth leaves Python's limit alone."""
    limit = sys.getrecursionlimit()
    loads(stores(300))
    assert sys.getrecursionlimit() == limit
