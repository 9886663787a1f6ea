"""Programs whose statements follow one another in their hundreds: length is not depth."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from copy import deepcopy

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.ir import primfunc
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.visit import LONGEST_SEQUENCE
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.passes.illegal import limited_stack
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


@one_in(21)
@pytest.mark.parametrize("make", KINDS)
def test_hundreds_of_statements_in_sequence(make: Callable[[int], str]) -> None:
    """300 statements that follow one another lower, build and compare, whatever kind they are of."""
    check_long(make, 300)


@pytest.mark.campaign
@pytest.mark.parametrize("make", KINDS)
def test_thousands_of_statements_in_sequence(make: Callable[[int], str]) -> None:
    """2,000 do, too."""
    check_long(make, 2000)


@pytest.fixture
def usual_stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's stack as it is by default, whatever programs were read before, and no room made in it."""
    before = sys.getrecursionlimit()
    monkeypatch.setattr(primfunc, "make_room", lambda body: None)
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("usual_stack")
@one_in(10)
@pytest.mark.parametrize("make", KINDS)
def test_no_stack_is_as_deep_as_a_program_is_long(make: Callable[[int], str]) -> None:
    """600 statements that stand inside one another are read, printed, lowered, built, run and compared on the stack
    that Python gives anyone.
    """
    function = loads(make(600))
    assert loads(print_func(function)) == function
    assert loads(print_func(function, "old")) == function
    assert deepcopy(function) == function
    lowered = Schedule(function).lower()
    assert loads(print_func(lowered)) == lowered
    build_c(lowered)
    assert compare(function, lowered).status is Status.PROVED
    arrays = {"A": np.arange(16, dtype=np.float32), "B": np.zeros(16, np.float32)}
    fast, plain = run(lowered, arrays), run(function, arrays, plain=True)
    assert fast["B"].tobytes() == plain["B"].tobytes()


@pytest.mark.usefixtures("usual_stack")
def test_a_walk_that_the_stack_is_too_short_for_is_refused() -> None:
    """What a pass cannot follow is a refusal of the step, and the schedule stays as it was."""
    schedule = Schedule(loads(lets(600)))
    before = schedule.func
    with pytest.raises(LayoutproofError, match="nested too deeply for this") as caught, limited_stack(before):
        deep(600)
    assert caught.value.diagnostics[0].code == "LP113"
    assert caught.value.diagnostics[0].span is not None


def deep(levels: int) -> int:
    """A recursion that needs two of Python's frames for each level."""
    return 0 if levels == 0 else 1 + max(map(deep, [levels - 1]))


@one_in(9)
def test_a_longer_sequence_is_refused_with_its_place() -> None:
    """Sequences that are longer than anyone writes are reported by line, not by a traceback."""
    message = f"more than {LONGEST_SEQUENCE} lets and allocations follow one another"
    with pytest.raises(LayoutproofError, match=message) as caught:
        loads(lets(LONGEST_SEQUENCE + 1))
    assert caught.value.diagnostics[0].span is not None


def loops(count: int) -> str:
    """Loops inside one another."""
    heads = "".join(f"{' ' * (k + 4)}for i{k} in range(1):\n" for k in range(count))
    return f"{HEAD}{heads}{' ' * (count + 4)}B[0] = A[0]\n"


NESTED = {
    "expression": HEAD + "    B[0] = " + "(" * 80 + "A[0]" + " + A[0])" * 80 + "\n",
    "sum": HEAD + "    B[0] = " + " + ".join(["A[0]"] * 3000) + "\n",
    "loops": HEAD
    + "".join(f"{'    ' * (k + 1)}for i{k} in range(1):\n" for k in range(90))
    + "    " * 91
    + "B[0] = A[0]\n",
    "more loops": HEAD
    + "".join(f"{' ' * (k + 4)}for i{k} in range(1):\n" for k in range(500))
    + " " * 504
    + "B[0] = A[0]\n",
}


@pytest.mark.usefixtures("usual_stack")
@pytest.mark.parametrize("kind", NESTED)
def test_what_is_nested_works_or_is_refused_with_its_place(kind: str) -> None:
    """Deep expressions and loops lower and run, or are an error at their line: never a traceback."""
    try:
        function = loads(NESTED[kind])
    except LayoutproofError as problem:
        assert problem.diagnostics[0].code == "LP113"
        assert problem.diagnostics[0].span is not None
        assert kind in ("sum", "more loops")
    else:
        build_c(Schedule(function).lower())
        assert compare(function, function).status is Status.PROVED


def test_room_is_made_only_where_it_is_needed() -> None:
    """A program of ordinary depth leaves Python's limit alone."""
    limit = sys.getrecursionlimit()
    loads(stores(300))
    assert sys.getrecursionlimit() == limit
