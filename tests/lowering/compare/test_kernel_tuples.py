"""Reductions over threads of several values at once."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.interp import Result, run
from layoutproof.verify.verdict.verdict import Status

HEAD = "from tvm.script import tirx as T\n@T.prim_func\n"
SUMS = HEAD + (
    'def f(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")):\n'
    "    for i, ko in T.grid(4, 2):\n"
    '        for kt in T.thread_binding(32, thread="threadIdx.x"):\n'
    '            with T.sblock("sums"):\n'
    "                vi = T.axis.spatial(4, i)\n"
    "                vk = T.axis.reduce(64, ko * 32 + kt)\n"
    "                with T.init():\n"
    "                    S[vi] = T.float32(0)\n"
    "                    Q[vi] = T.float32(0)\n"
    "                v0: T.let[T.float32] = S[vi] + A[vi, vk]\n"
    "                v1: T.let[T.float32] = Q[vi] + A[vi, vk] * A[vi, vk]\n"
    "                S[vi] = v0\n"
    "                Q[vi] = v1\n"
)
LOWERED = HEAD + (
    'def f(A: T.Buffer((4, 64), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")):\n'
    '    CS = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    CQ = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    IS = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    '    IQ = T.sblock_alloc_buffer([1], dtype="float32", scope="local")\n'
    "    for i in range(4):\n"
    '        for kt in T.thread_binding(32, thread="threadIdx.x"):\n'
    "            IS[0] = T.float32(0)\n"
    "            IQ[0] = T.float32(0)\n"
    "            for ko in range(2):\n"
    '                with T.sblock("in_thread"):\n'
    "                    vi = T.axis.spatial(4, i)\n"
    "                    vk = T.axis.reduce(64, ko * 32 + kt)\n"
    "                    v0: T.let[T.float32] = IS[0] + A[vi, vk]\n"
    "                    v1: T.let[T.float32] = IQ[0] + A[vi, vk] * A[vi, vk]\n"
    "                    IS[0] = v0\n"
    "                    IQ[0] = v1\n"
    "            with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (x0 + y0, x1 + y1), [T.float32(0), T.float32(0)]), "
    '"reduce_scope", T.int32(0)):\n'
    "                T.evaluate(T.tvm_thread_allreduce(T.uint32(2), IS[0], IQ[0], True, CS[0], CQ[0], kt, "
    'dtype="handle"))\n'
    "            if kt == 0:\n"
    "                S[i] = CS[0]\n"
    "                Q[i] = CQ[0]\n"
)
WRONG = (
    ("CS[0], CQ[0], kt", "CQ[0], CS[0], kt"),
    ("(x0 + y0, x1 + y1)", "(x0 + y0, x1 * y1)"),
    ("(x0 + y0, x1 + y1)", "(x0 + y0, x1 + y0)"),
    ("[T.float32(0), T.float32(0)]", "[T.float32(0), T.float32(1)]"),
    ("IS[0], IQ[0], True", "IQ[0], IS[0], True"),
    ("IS[0], IQ[0], True", "IS[0], IQ[0], kt < 31"),
    ("IQ[0] + A[vi, vk] * A[vi, vk]", "IQ[0] + A[vi, vk] * IS[0]"),
    ("Q[i] = CQ[0]", "Q[i] = CS[0]"),
)


def test_two_sums_at_once() -> None:
    """A sum and a sum of squares, which threads join as pairs: the partial sums are followed for each."""
    found = lp.compare(lp.loads(SUMS), lp.loads(LOWERED))
    assert (found.status, found.strictness) == (Status.PROVED, ("nsz", "reassoc"))


@one_in(7)
@pytest.mark.parametrize(("old", "new"), WRONG)
def test_pairs_that_are_mixed_up(old: str, new: str) -> None:
    """Results exchanged, another operator, a start that counts, values of the other sum, and a thread left out."""
    assert old in LOWERED
    assert lp.compare(lp.loads(SUMS), lp.loads(LOWERED.replace(old, new))).status is Status.REFUTED


def joined(value: str, *, by_threads: bool) -> lp.PrimFunc:
    """A reduction by a let, over threads or in the order of the indices."""
    loop = 'T.thread_binding(32, thread="threadIdx.x")' if by_threads else "range(32)"
    return lp.loads(
        HEAD + 'def f(A: T.Buffer((32,), "int32"), C: T.Buffer((1,), "int32")):\n'
        f"    for k in {loop}:\n"
        '        with T.sblock("join"):\n'
        "            vk = T.axis.reduce(32, k)\n"
        "            with T.init():\n"
        "                C[0] = 0\n"
        f"            v: T.let[T.int32] = {value}\n"
        "            C[0] = v\n"
    )


def test_a_let_does_not_hide_how_threads_join() -> None:
    """What a let computes is joined like what stands in the store: a sum is one, anything else is not known."""
    for value, status in (("C[0] + A[vk]", Status.PROVED), ("C[0] * 2 + A[vk]", Status.UNKNOWN)):
        found = lp.compare(joined(value, by_threads=False), joined(value, by_threads=True))
        assert found.status is status, value


# ---- tuples whose components depend on one another


def arg(
    before: str = ">=", *, dtype: str = "float32", start: str = "", over: int = 2, threads: int = 4, join: str = ""
) -> tuple[str, str]:
    """An index and a value that are looked for together, as a block whose reduction is bound to threads, and lowered.
    `join` is the condition under which the left one stays, over `{a0} {a1} {b0} {b1}`.
    """
    stays = join if join else f"{{a1}} {before} {{b1}}"
    low = start if start else ('T.min_value("float32")' if dtype == "float32" else "T.int32(-2147483648)")
    k = over * threads
    head = (
        f'def f(I: T.Buffer((3, {k}), "int32"), V: T.Buffer((3, {k}), "{dtype}"), R: T.Buffer((3,), "int32"), '
        f'M: T.Buffer((3,), "{dtype}")):\n    T.func_attr({{"tirx.noalias": True}})\n'
    )

    def update(i: str, v: str, at: str, deep: str) -> str:
        here = {"a0": f"{i}[{at}]", "a1": f"{v}[{at}]", "b0": "I[vi, vk]", "b1": "V[vi, vk]"}
        condition = stays.format(**here)
        return (
            f"{deep}v0: T.let[T.int32] = T.Select({condition}, {i}[{at}], I[vi, vk])\n"
            f"{deep}v1: T.let[T.{dtype}] = T.Select({condition}, {v}[{at}], V[vi, vk])\n"
            f"{deep}{i}[{at}] = v0\n{deep}{v}[{at}] = v1\n"
        )

    axes = "{0}vi = T.axis.spatial(3, i)\n{0}vk = T.axis.reduce(" + f"{k}, ko * {threads} + kt)\n"
    block = (
        HEAD
        + head
        + (
            f"    for i, ko in T.grid(3, {over}):\n"
            f'        for kt in T.thread_binding({threads}, thread="threadIdx.x"):\n'
            '            with T.sblock("arg"):\n' + axes.format(" " * 16) + "                with T.init():\n"
            f"                    R[vi] = -1\n                    M[vi] = {low}\n" + update("R", "M", "vi", " " * 16)
        )
    )
    reducer = stays.format(a0="x0", a1="x1", b0="y0", b1="y1")
    lowered = (
        HEAD
        + head
        + (
            "".join(
                f'    {n} = T.sblock_alloc_buffer([1], dtype="{t}", scope="local")\n'
                for n, t in (("CR", "int32"), ("CM", dtype), ("IR", "int32"), ("IM", dtype))
            )
            + "    for i in range(3):\n"
            f'        for kt in T.thread_binding({threads}, thread="threadIdx.x"):\n'
            f"            IR[0] = -1\n            IM[0] = {low}\n            for ko in range({over}):\n"
            '                with T.sblock("in_thread"):\n'
            + axes.format(" " * 20)
            + update("IR", "IM", "0", " " * 20)
            + f"            with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (T.Select({reducer}, x0, y0), "
            f'T.Select({reducer}, x1, y1)), [-1, {low}]), "reduce_scope", T.int32(0)):\n'
            "                T.evaluate(T.tvm_thread_allreduce(T.uint32(2), IR[0], IM[0], True, CR[0], CM[0], kt, "
            'dtype="handle"))\n'
            "            if kt == 0:\n                R[i] = CR[0]\n                M[i] = CM[0]\n"
        )
    )
    return block, lowered


ARG = arg()


def status(before: str, after: str) -> Status:
    """What becomes of two programs."""
    return lp.compare(lp.loads(before), lp.loads(after)).status


def test_argmax_over_threads() -> None:
    """Threads join pairs in any order in both programs; that a NaN is not reached takes an assumption."""
    found = lp.compare(lp.loads(ARG[0]), lp.loads(ARG[1]))
    assert (found.status, found.strictness) == (Status.PROVED, ("nnan", "reassoc"))
    with pytest.raises(ValueError, match="no certificate"):
        _ = found.certificate


def test_ties_that_are_decided_need_no_assumption() -> None:
    """Of integers, the smaller index of equal values: the order makes no difference, also not to one after another."""
    decided = "{a1} > {b1} or ({a1} == {b1} and {a0} <= {b0})"
    block, lowered = arg(dtype="int32", join=decided)
    found = lp.compare(lp.loads(block), lp.loads(lowered))
    assert (found.status, found.strictness) == (Status.PROVED, ())
    one_by_one = block.replace('T.thread_binding(4, thread="threadIdx.x")', "range(4)")
    assert status(one_by_one, lowered) is Status.PROVED


def test_an_order_is_not_forgotten() -> None:
    """What is joined one after the other, all of it or the part of a thread, is not joined in any order."""
    one_by_one = ARG[0].replace('T.thread_binding(4, thread="threadIdx.x")', "range(4)")
    assert status(one_by_one, ARG[1]) is not Status.PROVED
    assert status(one_by_one, ARG[0]) is not Status.PROVED
    assert status(ARG[1], ARG[0]) is not Status.PROVED
    again = (
        "    for i in range(3):\n        w0: T.let[T.int32] = T.Select(M[i] >= V[i, 0], R[i], I[i, 0])\n"
        "        w1: T.let[T.float32] = T.Select(M[i] >= V[i, 0], M[i], V[i, 0])\n"
        "        R[i] = w0\n        M[i] = w1\n"
    )
    first = again.replace("w", "u").replace("0]", "1]")
    assert status(ARG[0] + again + first, ARG[0] + first + again) is not Status.PROVED


WRONG_TUPLES = (
    ("(T.Select(x1 >= y1, x0, y0), T.Select(x1 >=", "(T.Select(x1 > y1, x0, y0), T.Select(x1 >"),
    ("(T.Select(x1 >= y1, x0, y0),", "(T.Select(x1 > y1, x0, y0),"),
    ("(T.Select(x1 >= y1, x0, y0),", "(x0,"),
    ("(T.Select(x1 >= y1, x0, y0),", "(T.Select(x1 >= y1, y0, x0),"),
    ("T.Select(x1 >= y1, x1, y1))", "T.Select(x1 <= y1, x1, y1))"),
    ("T.Select(IM[0] >= V[vi, vk], IR[0], I[vi, vk])", "T.Select(IM[0] > V[vi, vk], IR[0], I[vi, vk])"),
    ("T.Select(IM[0] >= V[vi, vk], IR[0], I[vi, vk])", "IR[0]"),
    ("IR[0], I[vi, vk])", "IR[0], I[vi, 7 - vk])"),
    ("IR[0], I[vi, vk])", "IR[0], vk)"),
    ("[-1, ", "[-2, "),
    ("IR[0] = -1", "IR[0] = 0"),
    ("range(2)", "range(1)"),
    ("ko * 4 + kt", "ko * 3 + kt"),
    ("IR[0], IM[0], True", "IR[0], IM[0], kt < 3"),
    ("if kt == 0", "if kt == 9"),
    ("R[i] = CR[0]", "R[i] = IR[0]"),
    ("M[i] = CM[0]", "M[i] = IM[0]"),
    ("R[i] = CR[0]", "R[2 - i] = CR[0]"),
)  # fmt: skip


@one_in(7)
@pytest.mark.parametrize(("old", "new"), WRONG_TUPLES)
def test_tuples_that_are_joined_otherwise(old: str, new: str) -> None:
    """Ties broken the other way, an index that is not carried along, other starts, elements and places."""
    assert old in ARG[1]
    assert status(ARG[0], ARG[1].replace(old, new)) is not Status.PROVED


@pytest.mark.parametrize("join", ["{a1} != {b1}", "{a0} + {b0} > 0", "{a1} > T.float32(0)"])
def test_combiners_without_laws(join: str) -> None:
    """What is not associative depends on the grouping."""
    assert status(*arg(join=join)) is not Status.PROVED


def results(values: tuple[tuple[int, float], ...], start: tuple[int, float]) -> set[tuple[int, float]]:
    """Every result of an argmax of some pairs and a start, whatever the order and the grouping."""

    @cache
    def trees(chosen: frozenset[int]) -> frozenset[tuple[int, float]]:
        if len(chosen) == 1:
            (one,) = chosen
            return frozenset({items[one]})
        found = set()
        for size in range(1, len(chosen)):
            for left in map(frozenset, combinations(sorted(chosen), size)):
                found |= {a if a[1] >= b[1] else b for a in trees(left) for b in trees(chosen - left)}
        return frozenset(found)

    items = (start, *values)
    return set(trees(frozenset(range(len(items)))))


def test_what_is_run_is_a_result_of_some_order() -> None:
    """Brute force: the lowered kernel gives a pair that some order and grouping of the block's reduction gives, for
    values with ties, infinities and zeros of both signs.
    """
    func = lp.loads(arg(over=2, threads=2)[1])
    rng = np.random.default_rng(5)
    low = float(np.finfo(np.float32).min)
    for _ in range(20):
        values = rng.choice(np.array([low, -np.inf, 0.0, -0.0, 1.0, np.inf], np.float32), (3, 4))
        indices = rng.integers(0, 9, (3, 4), dtype=np.int32)
        made = np.zeros(3, np.int32), np.zeros(3, np.float32)
        found = run(func, [indices, values, *made])
        assert isinstance(found, Result)
        for row in range(3):
            pairs = tuple(zip(indices[row].tolist(), values[row].tolist(), strict=True))
            assert (int(found["R"][row]), float(found["M"][row])) in results(pairs, (-1, low))


def test_stages_of_the_program_before_are_kept() -> None:
    """What a thread joins first has the order of its loop, whatever threads join then."""
    assert status(ARG[1], ARG[1].replace("ko * 4 + kt", "(1 - ko) * 4 + kt")) is not Status.PROVED


CHOSEN = "T.if_then_else(vk < 50, A[vi, vk], -5) * 2"
CHOICES = HEAD + (
    "def f(a: T.handle, R: T.Buffer((4,), 'int32'), M: T.Buffer((4,), 'int32')):\n"
    "    n = T.int32()\n"
    "    A = T.match_buffer(a, (4, n), 'int32')\n"
    "    for i in range(4):\n"
    "        for k in {loop}:\n"
    "            with T.sblock('b'):\n"
    "                vi, vk = T.axis.remap('SR', [i, k])\n"
    "                with T.init():\n"
    "                    R[vi] = -1\n"
    "                    M[vi] = T.min_value('int32')\n"
    "                {guard}\n"
    f"                    v0: T.let[T.int32] = T.Select(M[vi] > {CHOSEN} or (M[vi] == {CHOSEN} and R[vi] < vk), "
    "R[vi], vk)\n"
    f"                    v1: T.let[T.int32] = T.Select(M[vi] >= {CHOSEN}, M[vi], {CHOSEN})\n"
    "                    R[vi] = v0\n"
    "                    M[vi] = v1\n"
)


@pytest.mark.parametrize("guard", ["if n >= 50:", "if n >= 64:"])
def test_elements_that_are_loaded_only_where_they_are_there(guard: str) -> None:
    """A table that stands for them would be loaded also outside: no size is excluded with that. The second program
    after does nothing with sizes of 50 to 63, with which the one before runs.
    """
    before = CHOICES.format(loop='T.thread_binding(64, thread="threadIdx.x")', guard="if n >= 50:")
    after = CHOICES.format(loop="range(64)", guard=guard)
    values = np.ones((4, 50), np.int32)
    found = run(lp.loads(after), [values, np.zeros(4, np.int32), np.zeros(4, np.int32)])
    assert isinstance(found, Result)
    assert (found["R"].tolist() == [-1] * 4) is (guard == "if n >= 64:")
    assert status(before, after) is not Status.PROVED


RAW = """def {name}(A: T.Buffer((32,), "int32"), R: T.Buffer((1,), "int32"), M: T.Buffer((1,), "int32")):
    T.func_attr({{"tirx.noalias": True}})
{body}"""
BY_ONE = """    R[0] = -1
    M[0] = 5
    for k in range(32):
        r: T.int32 = T.Select(M[0] > A[k] or M[0] == A[k] and R[0] <= k, R[0], k)
        m: T.int32 = T.Select(M[0] > A[k] or M[0] == A[k] and R[0] <= k, M[0], A[k])
        R[0] = r
        M[0] = m
"""
BY_ALL = """    tx = T.launch_thread("threadIdx.x", 32)
    X = T.decl_buffer((1,), "int32", scope="local")
    Y = T.decl_buffer((1,), "int32", scope="local")
    PARTS
    P = T.decl_buffer((1,), "int32", scope="local")
    Q = T.decl_buffer((1,), "int32", scope="local")
    with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (
        T.Select(x1 > y1 or x1 == y1 and x0 <= y0, x0, y0), T.Select(x1 > y1 or x1 == y1 and x0 <= y0, x1, y1)
    ), [-1, 5]), "reduce_scope", T.int32(0)):
        T.evaluate(T.tvm_thread_allreduce(T.uint32(2), VALUES, True, P[0], Q[0], tx, dtype="handle"))
    if tx == 0:
        R[0] = P[0]
        M[0] = Q[0]
"""
STARTED = """X[0] = -1
    Y[0] = 5
    for part in range(1):
        r: T.int32 = T.Select(Y[0] > A[tx] or Y[0] == A[tx] and X[0] <= tx, X[0], tx)
        m: T.int32 = T.Select(Y[0] > A[tx] or Y[0] == A[tx] and X[0] <= tx, Y[0], A[tx])
        X[0] = r
        Y[0] = m"""


@pytest.mark.parametrize(
    ("parts", "values", "expected"),
    [("X[0] = 0", "tx, A[tx]", Status.UNKNOWN), (STARTED, "X[0], Y[0]", Status.PROVED)],
)
def test_threads_may_leave_out_what_they_start_from(parts: str, values: str, expected: Status) -> None:
    """Where all elements are smaller, a start is seen in the result if each thread has joined it to its own."""
    loop = HEAD + RAW.format(name="loop", body=BY_ONE)
    kernel = HEAD + RAW.format(name="kernel", body=BY_ALL.replace("PARTS", parts).replace("VALUES", values))
    assert status(loop, kernel) is expected
