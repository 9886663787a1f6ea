"""Results of calls are fresh memory: functions that read them first are found out."""

from __future__ import annotations

import pytest
from tests.shares import one_in

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.model.graph import signature_of
from layoutproof.graph.model.wellformed_graph import prove_fresh
from layoutproof.graph.operators.convolution import conv2d
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.operators.normalise import softmax
from layoutproof.graph.operators.reduction import reduce
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status


def steps(body: str) -> PrimFunc:
    """A function from `A` to `B` of eight elements each."""
    return loads(f'@T.prim_func\ndef f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):\n{body}\n', "f.py")


@pytest.mark.parametrize(
    ("func", "engine"),
    [
        (conv2d((1, 2, 4, 4), (2, 2, 3, 3)), "facts"),
        (reduce("max", (2, 4), (1,)), "facts"),
        (softmax((2, 4)), "symbolic"),
        (unary("relu", (2, 4)), "symbolic"),
    ],
    ids=lambda value: value.name if isinstance(value, PrimFunc) else value,
)
def test_operators_of_the_library_start_their_results(func: PrimFunc, engine: str) -> None:
    """That an init comes before what is added to it is asked of the checker; where no result is read, nothing needs to
    be asked.
    """
    verdict = prove_fresh(func)
    assert (verdict.status, verdict.engine) == (Status.PROVED, engine)


def test_a_result_that_was_written_may_be_read() -> None:
    """A second nest may use what a first one stored."""
    func = steps("    for i in range(8):\n        B[i] = A[i]\n    for i in range(8):\n        B[i] = B[i] + A[7 - i]")
    assert prove_fresh(func).status is Status.PROVED


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(8):\n        B[i] = B[i] + A[i]",
        "    for i in range(7):\n        B[i] = A[i]\n    for i in range(8):\n        B[i] = B[i] + A[i]",
    ],
)
def test_a_result_that_is_read_first_is_not_fresh(body: str) -> None:
    """Adding to what stands in a result, all of it or one element, is not proved to be fresh."""
    func = steps(body)
    verdict = prove_fresh(func)
    assert verdict.status is not Status.PROVED and "before it is written" in verdict.claim.text
    g = GraphBuilder()
    with pytest.raises(LayoutproofError, match=codes.FUNCTION_FORM):
        g.build(*g.call(func, g.input("x", (8,))))


REDUCTION = """
@T.prim_func
def f(X: T.Buffer((4, 3), "float32"), Y: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 3):
        with T.block("total"):
            v, r = T.axis.remap("SR", [i, j])
            with T.init():
                {}
            Y[v] = Y[v] + X[v, r]
"""


@pytest.mark.parametrize(
    "init",
    [
        "if v > 1:\n                    Y[v] = T.float32(0)",
        "Y[v] = Y[v] + T.float32(1)",
        "for q in range(0):\n                    Y[v] = T.float32(0)",
    ],
    ids=["under a guard", "of what stood there", "in a loop that never runs"],
)
def test_an_init_that_starts_nothing_is_seen_through(init: str) -> None:
    """An init counts only where it stores the element whatever holds, and what it reads itself comes before it."""
    assert prove_fresh(loads(REDUCTION.format(init), "f.py")).status is not Status.PROVED


STARTED = """
@T.prim_func
def f(X: T.Buffer((4, 3), "float32"), Y: T.Buffer((4,), "float32")):
    for {loops} in {ranges}:
        with T.block("total"):
            v = T.axis.spatial(4, {spatial})
            r = T.axis.reduce({domain}, {reduce})
            T.where({where})
            with T.init():
                Y[v] = T.float32(0)
            Y[v] = Y[v] + X[v, {column}]
"""


def started(
    loops: str = "i, j",
    ranges: str = "T.grid(4, 3)",
    spatial: str = "i",
    domain: str = "3",
    reduce: str = "j",
    where: str = "i < 4",
    column: str = "r",
) -> PrimFunc:
    """Sums of rows, something about them changed."""
    given = {
        "loops": loops,
        "ranges": ranges,
        "spatial": spatial,
        "domain": domain,
        "reduce": reduce,
        "where": where,
        "column": column,
    }
    return loads(STARTED.format(**given), "f.py")


@one_in(4)
@pytest.mark.parametrize(
    "func",
    [
        started(reduce="(j + 1) % 3"),
        started(reduce="2 - j"),
        started(where="j > 0"),
        started(where="i + j > 0"),
        started(domain="(0, 4)", reduce="j + 1", column="r - 1"),
        started(ranges="T.grid(4, 2)", reduce="j + 1"),
        started(spatial="(i + j) % 4"),
        started(loops="j, i", ranges="T.grid(3, 2)", spatial="i + j"),
    ],
    ids=[
        "rotated",
        "backwards",
        "guarded",
        "one guarded",
        "domain before",
        "loop behind",
        "skewed",
        "skewed, reduction outside",
    ],
)
def test_an_init_that_comes_late_or_never_starts_nothing(func: PrimFunc) -> None:
    """Where updates come before the instance at the reduction's start, or a guard keeps that off, they read what is not
    written.
    """
    verdict = prove_fresh(func)
    assert verdict.status is Status.REFUTED and "before it is written" in verdict.claim.text
    g = GraphBuilder()
    with pytest.raises(LayoutproofError, match=codes.FUNCTION_FORM):
        g.build(*g.call(func, g.input("x", (4, 3))))


def test_an_init_under_a_branch_starts_nothing() -> None:
    """A branch between the loops and the block keeps the init off as a guard does."""
    lines = REDUCTION.format("Y[v] = T.float32(0)").split("\n")
    loop = next(number for number, line in enumerate(lines) if "T.grid" in line)
    text = "\n".join([*lines[: loop + 1], "        if j > 0:", *("    " + line for line in lines[loop + 1 :])])
    assert prove_fresh(loads(text.rstrip(), "f.py")).status is Status.REFUTED


@pytest.mark.parametrize(
    "func",
    [
        started(),
        started(where="i > 0"),
        started(where="j < 2"),
        started(domain="(1, 4)", reduce="j + 1", column="r - 1"),
        started(loops="j, i", ranges="T.grid(3, 4)"),
        started(loops="j, i", ranges="T.grid(3, 4)", spatial="(i + j) % 4"),
    ],
    ids=["plain", "rows left out", "the end left out", "another start", "reduction outside", "a turn in each step"],
)
def test_an_init_that_comes_first_starts_a_result(func: PrimFunc) -> None:
    """However loops and bindings are written, and with what is written nowhere also read nowhere."""
    assert prove_fresh(func).status is Status.PROVED


def test_sums_of_rows_that_data_names_are_started() -> None:
    """Whether an index from data is inside, and a cast has a result, is another question: what was started may be added
    to.
    """
    text = """
@T.prim_func
def f(X: T.Buffer((8, 4), "float32"), K: T.Buffer((3,), "int32"), Y: T.Buffer((4,), "int32")):
    for i, j in T.grid(4, 3):
        with T.block("total"):
            v, r = T.axis.remap("SR", [i, j])
            with T.init():
                Y[v] = 0
            Y[v] = Y[v] + T.Cast("int32", X[K[r], v])
"""
    assert prove_fresh(loads(text, "f.py")).status is Status.PROVED


@pytest.mark.parametrize(
    "body",
    [
        '    T.evaluate(T.call_extern("int32", "f", B.data))\n    for i in range(8):\n        B[i] = A[i]',
        '    for i in range(8):\n        B[i] = A[i]\n    T.evaluate(T.call_extern("int32", "f", T.address_of(B[0])))',
    ],
    ids=["a pointer", "an address"],
)
def test_a_result_that_is_handed_out_is_not_fresh(body: str) -> None:
    """Whoever has a pointer to a result may read it, and nobody looks into that."""
    assert prove_fresh(steps(body)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    "view",
    [
        '    Z = T.decl_buffer((8,), "float32", data=B.data)\n    for i in range(8):\n        B[i] = A[i] + Z[i]',
        '    for i in range(8):\n        with T.block("b"):\n            v = T.axis.spatial(8, i)\n'
        '            M = T.match_buffer(A[v : v + 1], (1,), "float32", offset_factor=1)\n'
        "            B[v] = A[v]\n            M[0] = T.float32(3)",
    ],
    ids=["of a result, read", "of an operand, written"],
)
def test_views_of_parameters_are_refused(view: str) -> None:
    """What goes through a view would be seen by nobody who asks which parameters are read and written."""
    with pytest.raises(LayoutproofError, match=f"{codes.FUNCTION_FORM}.*a view of the parameter"):
        signature_of(steps(view))
