"""When a block's init runs: where the guard holds and all reduce variables are at their start. Upstream runs each
program too.
"""

from __future__ import annotations

import textwrap

import numpy as np
import numpy.typing as npt
import pytest
from tests.ir.interp.upstream import is_there, run_upstream
from tests.running import HEAD, fault, program, result
from tests.shares import one_in

from layoutproof.ir.interp import FaultKind

Values = npt.NDArray[np.float32]


def summed(
    loops: str,
    axes: str = 'vi, vk = T.axis.remap("SR", [i, k])',
    where: str = "",
    shapes: tuple[str, str] = ("(4, 5)", "(4,)"),
    sizes: str = "",
    update: str = "B[vi] = B[vi] + A[vi, vk]",
    init: str = "B[vi] = T.float32(10)",
) -> str:
    """The text of a sum of A's rows over B: loops and what binds their variables, one line each, a block in them."""
    lines = [*([sizes] if sizes else []), 'T.func_attr({"tirx.noalias": True})']
    depth = 0
    for loop in loops.splitlines():
        lines.append("    " * depth + loop.strip())
        depth += 1
    block = ['with T.sblock("sum"):', *(f"    {line.strip()}" for line in axes.splitlines())]
    block += [f"    T.where({where})"] if where else []
    block += ["    with T.init():", *(f"        {line.strip()}" for line in init.splitlines())]
    block += [f"    {line.strip()}" for line in update.splitlines()]
    lines += ["    " * depth + line for line in block]
    head = f'def main(A: T.Buffer({shapes[0]}, "float32"), B: T.Buffer({shapes[1]}, "float32")):'
    return "\n".join([head, *(f"    {line}" for line in lines)]) + "\n"


NESTED = """
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for io, ko in T.grid(2, 4):
            with T.sblock("outer"):
                vio, vko = T.axis.remap("SR", [io, ko])
                for ii, ki in T.grid(2, 2):
                    with T.sblock("inner"):
                        vi = T.axis.spatial(4, vio * 2 + ii)
                        vk = T.axis.reduce(8, vko * 2 + ki)
                        with T.init():
                            B[vi] = T.float32(10)
                        B[vi] = B[vi] + A[vi, vk]
"""
# The inner reduction starts anew for each step of the outer one.
NESTED_ANEW = NESTED.replace("T.axis.reduce(8, vko * 2 + ki)", "T.axis.reduce(2, ki)")
INIT_OF_THE_OUTER = """
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, ko in T.grid(4, 4):
            with T.sblock("outer"):
                vi, vko = T.axis.remap("SR", [i, ko])
                with T.init():
                    B[vi] = T.float32(10)
                for ki in range(2):
                    with T.sblock("inner"):
                        vii = T.axis.spatial(4, vi)
                        vk = T.axis.reduce(8, vko * 2 + ki)
                        B[vii] = B[vii] + A[vii, vk]
"""
RECOMPUTED = """
    def main(A: T.Buffer((5, 3), "float32"), C: T.Buffer((3,), "float32")):
        T.func_attr({"tirx.noalias": True})
        B = T.sblock_alloc_buffer((5,))
        for i in range(3):
            for j, k in T.grid(3, 3):
                with T.sblock("sum"):
                    vj = T.axis.spatial(5, i + j)
                    vk = T.axis.reduce(3, k)
                    with T.init():
                        B[vj] = T.float32(0)
                    B[vj] = B[vj] + A[vj, vk]
            for j in range(3):
                with T.sblock("use"):
                    vi, vr = T.axis.remap("SR", [i, j])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + B[vi + vr]
"""
BRANCHES = """
    def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, k in T.grid(4, 3):
            if i != 1:
                if k < i - 1:
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            B[vi] = T.float32(5)
                        B[vi] = B[vi] + A[vi, vk]
"""
SYMBOLIC = summed("for i, k in T.grid(n, m):", shapes=('("n", "m")', '("n",)'), sizes="n, m = T.int32(), T.int32()")

# Each run: its name, the text, the shape of the terms (all ones), and what the result holds afterwards where it held
# sevens before.
RUNS: list[tuple[str, str, tuple[int, ...], list[float]]] = [
    ("an empty reduction is not initialised", SYMBOLIC, (4, 0), [7, 7, 7, 7]),
    ("a reduction of symbolic extent", SYMBOLIC, (2, 5), [15, 15]),
    ("no results", SYMBOLIC, (0, 5), []),
    ("an empty reduction of fixed extent", summed("for i, k in T.grid(4, 0):"), (4, 5), [7, 7, 7, 7]),
    ("a guard on results", summed("for i, k in T.grid(4, 5):", where="i < 3"), (4, 5), [15, 15, 15, 7]),
    (
        "a guard that skips the start",
        summed("for i, k in T.grid(4, 5):", where="3 <= k and k < i + 2"),
        (4, 5),
        [7, 7, 8, 9],
    ),
    ("a guard that stops early", summed("for k, i in T.grid(5, 4):", where="k < i"), (4, 5), [7, 11, 12, 13]),
    (
        "a rotated reduction starts late",
        summed("for i, k in T.grid(4, 5):", "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce(5, (k + 3) % 5)"),
        (4, 5),
        [13, 13, 13, 13],
    ),
    (
        "a reversed reduction starts last",
        summed("for i, k in T.grid(4, 5):", "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce(5, 4 - k)"),
        (4, 5),
        [11, 11, 11, 11],
    ),
    (
        "a swizzled reduction",
        summed(
            "for i, k in T.grid(4, 8):",
            "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce(8, T.bitwise_xor(k, 3))",
            shapes=("(4, 8)", "(4,)"),
        ),
        (4, 8),
        [15, 15, 15, 15],
    ),
    (
        "a domain that starts elsewhere",
        summed("for i, k in T.grid(4, 3):", "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce((2, 5), k + 2)"),
        (4, 5),
        [13, 13, 13, 13],
    ),
    (
        "a domain whose start no loop reaches",
        summed("for i, k in T.grid(4, 4):", "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce(5, k + 1)"),
        (4, 5),
        [11, 11, 11, 11],
    ),
    (
        "a constant binding starts every time",
        summed("for i, k in T.grid(4, 5):", "vi = T.axis.spatial(4, i)\nvk = T.axis.reduce(5, 0)"),
        (4, 5),
        [11, 11, 11, 11],
    ),
    (
        "two reduce variables",
        summed(
            "for k, i, l in T.grid(2, 4, 3):",
            'vi, vk, vl = T.axis.remap("SRR", [i, k, l])',
            update="B[vi] = B[vi] + A[vi, vk + vl]",
        ),
        (4, 5),
        [16, 16, 16, 16],
    ),
    (
        "one of two reduce variables starts late",
        summed(
            "for i, k, l in T.grid(4, 2, 3):",
            "vi, vk = T.axis.remap('SR', [i, k])\nvl = T.axis.reduce(3, (l + 1) % 3)".replace("'", '"'),
            update="B[vi] = B[vi] + A[vi, vk + vl]",
        ),
        (4, 5),
        [14, 14, 14, 14],
    ),
    (
        "an uneven split of results",
        summed(
            "for io, ii, k in T.grid(4, 4, 3):",
            "vi = T.axis.spatial(14, io * 4 + ii)\nvk = T.axis.reduce(3, k)",
            "io * 4 + ii < 14",
            ("(14, 3)", "(14,)"),
        ),
        (14, 3),
        [13] * 14,
    ),
    (
        "an uneven split of the reduction",
        summed(
            "for ko, i, ki in T.grid(4, 2, 4):",
            "vi = T.axis.spatial(2, i)\nvk = T.axis.reduce(14, ko * 4 + ki)",
            "ko * 4 + ki < 14",
            ("(2, 14)", "(2,)"),
        ),
        (2, 14),
        [24, 24],
    ),
    (
        "one loop in both kinds of binding",
        summed(
            "for i in range(12):",
            "vi = T.axis.spatial(4, i // 3)\nvk = T.axis.reduce(3, i % 3)",
            shapes=("(4, 3)", "(4,)"),
        ),
        (4, 3),
        [13, 13, 13, 13],
    ),
    (
        "one loop in both kinds of binding, its start guarded off",
        summed(
            "for i in range(12):",
            "vi = T.axis.spatial(4, i // 3)\nvk = T.axis.reduce(3, i % 3)",
            "i // 3 != 2 and i % 3 != 0",
            ("(4, 3)", "(4,)"),
        ),
        (4, 3),
        [9, 9, 7, 9],
    ),
    (
        "results whose number depends on the reduction",
        summed("for k in range(4):\nfor i in range(k):", where="i != 1"),
        (4, 5),
        [10, 7, 8, 7],
    ),
    (
        "an init without a reduction",
        summed("for i in range(4):", "vi = T.axis.spatial(4, i)", "i < 2", update="B[vi] = B[vi] + A[vi, 0]"),
        (4, 5),
        [11, 11, 7, 7],
    ),
    (
        "an init of two statements that loads",
        summed(
            "for i, k in T.grid(4, 5):",
            init="B[vi] = A[vi, 1] * T.float32(4)\nB[vi] = B[vi] - T.float32(1)",
        ),
        (4, 5),
        [8, 8, 8, 8],
    ),
    (
        "an init of a cell that moves with the reduction",
        summed(
            "for i, k in T.grid(4, 4):", init="B[(vi + vk) % 4] = T.float32(10)", update="B[vi] = B[vi] + A[vi, vk]"
        ),
        (4, 5),
        [14, 14, 14, 14],
    ),
    ("branches around the block", BRANCHES, (4, 3), [7, 7, 6, 7]),
    ("a block in a block goes on with the outer reduction", NESTED, (4, 8), [18, 18, 18, 18]),
    ("a block in a block starts anew", NESTED_ANEW, (4, 8), [12, 12, 12, 12]),
    ("an init of the outer block", INIT_OF_THE_OUTER, (4, 8), [18, 18, 18, 18]),
    ("a producer that is computed again starts anew", RECOMPUTED, (5, 3), [9, 9, 9]),
]
NAMES = [name for name, *_ in RUNS]


def arguments(name: str) -> tuple[str, list[Values]]:
    """The text of a run and its arguments: ones, and sevens where the result is to be."""
    _, text, shape, expected = RUNS[NAMES.index(name)]
    return HEAD + textwrap.dedent(text).strip() + "\n", [
        np.ones(shape, np.float32),
        np.full(len(expected), 7, np.float32),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_when_an_init_runs(name: str) -> None:
    """Both evaluators compute what is expected of each program."""
    text, (terms, held) = arguments(name)
    found = result(program(text), [terms, held])
    assert list(found.arrays.values())[-1].tolist() == RUNS[NAMES.index(name)][3]


if is_there():

    @one_in(7)
    def test_upstream_runs_every_program_so() -> None:
        """What upstream's compiler makes of the same texts computes the same bits."""
        expected = [np.array(values, np.float32) for *_, values in RUNS]
        found = run_upstream([arguments(name) for name in NAMES])
        assert [(name, upstream[-1].tolist()) for name, upstream in zip(NAMES, found, strict=True)] == [
            (name, values.tolist()) for name, values in zip(NAMES, expected, strict=True)
        ]
        for (_, before), after, values in zip(map(arguments, NAMES), found, expected, strict=True):
            assert after[0].tobytes() == before[0].tobytes() and after[-1].tobytes() == values.tobytes()


def test_what_is_not_initialised_stays_undefined() -> None:
    """Results of an empty reduction, and those that the guard leaves out, hold what they held: nothing."""
    empty = result(program(SYMBOLIC), [np.ones((4, 0), np.float32), None])
    assert empty.states["B"].tolist() == [0, 0, 0, 0]
    guarded = result(program(arguments("a guard on results")[0]), [np.ones((4, 5), np.float32), None])
    assert guarded["B"].tolist() == [15, 15, 15, 0]
    assert guarded.states["B"].tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    "name", ["a guard that skips the start", "a rotated reduction starts late", "a domain whose start no loop reaches"]
)
def test_an_update_before_the_init_reads_what_nobody_wrote(name: str) -> None:
    """Where the init comes late or never, the updates before it add to an undefined cell."""
    text, (terms, _) = arguments(name)
    assert fault(program(text), [terms, None], FaultKind.UNINITIALISED).buffer == "B"


def test_a_reader_of_an_empty_reduction_faults() -> None:
    """In a nest where a consumer follows the reduction, an empty one has left nothing to read."""
    func = program("""
        def main(A: T.Buffer(("n", "m"), "float32"), C: T.Buffer((n,), "float32")):
            n, m = T.int32(), T.int32()
            B = T.sblock_alloc_buffer((n,))
            for i in range(n):
                for k in range(m):
                    with T.sblock("sum"):
                        vi, vk = T.axis.remap("SR", [i, k])
                        with T.init():
                            B[vi] = T.float32(1)
                        B[vi] = B[vi] + A[vi, vk]
                with T.sblock("use"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = B[vi] * T.float32(2)
    """)
    fault(func, [np.ones((3, 0), np.float32), None], FaultKind.UNINITIALISED)
    assert result(func, [np.ones((3, 2), np.float32), None])["C"].tolist() == [6, 6, 6]


def test_without_init_the_first_read_faults() -> None:
    """The same sum without init reads what nobody wrote."""
    func = program("""
        def main(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
            for i, k in T.grid(4, 3):
                with T.sblock("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    B[vi] = B[vi] + A[vi, vk]
    """)
    fault(func, [np.ones((4, 3), np.float32), None], FaultKind.UNINITIALISED)
