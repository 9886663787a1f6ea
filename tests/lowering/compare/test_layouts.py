"""Witnesses where layouts are not known: which layouts come first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest
from tests.lowering.compare.questions import asked, from_text, question_of, sized
from tests.shares import one_in
from tests.tree import ROOT

from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.notations.rewrite_text import parse_litmus
from layoutproof.ir.primfunc import LAYOUT, PrimFunc
from layoutproof.ir.script.reader import load
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.lowering.compare.comparison import Found, Question
from layoutproof.lowering.compare.layout_candidates import index_names
from layoutproof.lowering.compare.layout_search import find_witnesses
from layoutproof.verify.verdict.verdict import Status

PAIRS = ROOT / "tests" / "data" / "pairs"


def layouts(question: Question, most: int = 1) -> list[dict[str, str]]:
    """The layouts of the first witnesses, by parameter."""
    return [_texts(question, found) for found in islice(find_witnesses(question), most)]


def _texts(question: Question, found: Found) -> dict[str, str]:
    names = {buffer.data.name: buffer.name for buffer in question.old.buffers}
    return {names[each.old_data]: index_map_text(each.cells) for each in found.cells}


FOUND = {
    "00_row_sum": {"A": "lambda ax0, k1: [ax0, k1//4, k1%4]"},
    "01_row_sum": {"A_red": "lambda ax0: [ax0//4, ax0%4]"},
    "02_relu_nhwc": {"compute": "lambda i0, i1, i2, i3: [i0, i3//4, i1, i2, i3%4]"},
    "04_conv2d_nhwc": {"conv2d_nhwc": "lambda nn, yy, xx, ff: [nn, ff//4, yy, xx, ff%4]"},
    "07_dense": {"T_matmul_NT": "lambda i0, i1: [i0//16, i1//16, i0%16, i1%16]"},
    "13_bias_add": {"b": "lambda i0, i1, i2: [i0//4, i1, i2, i0%4]"},
    "14_exp1d": {"compute": "lambda i0: [i0//4, i0%4]"},
    "16_double_int": {"B": "lambda i: [i//4, i%4]"},
    "18_transpose": {"T_transpose": "lambda ax0, ax1, ax2: [ax0, ax2, ax1]"},
    "19_softmax": {"T_softmax_norm": "lambda i0, i1: [i0, i1//16, i1%16]"},
    "22_pad": {"PadInput": "lambda i0, i1, i2, i3: [i0, i2, i3, i1]"},
    "24_depthwise_conv2d_nchw": {"DepthwiseConv2d": "lambda b, c, i, j: [b, c//4, i, j, c%4]"},
}


@one_in(10)
@pytest.mark.parametrize("name", sorted(FOUND))
def test_real_pairs(name: str) -> None:
    """The layout that a compiler chose is read off its program, in its shortest form."""
    before, after = (load(PAIRS / f"{name}.{side}.py") for side in ("before", "after"))
    question = asked(question_of(before, after))
    assert layouts(question) == [FOUND[name]]


def _with_a_layout() -> Iterator[str]:
    """The accepted rewrites in which a parameter is stored otherwise, by one layout: of one there is one value in the
    padding.
    """
    for path in sorted((ROOT / "proofs" / "accepted").glob("*.py")):
        rewrite = parse_litmus(path.read_text(), path.name).rewrite
        if all(len(record.steps) == 1 for record in layout_records(rewrite.new).values()) and any(
            old.shape != new.shape for old, new in zip(rewrite.old.buffers, rewrite.new.buffers, strict=True)
        ):
            yield path.stem


@one_in(7)
@pytest.mark.parametrize("name", list(_with_a_layout()))
def test_accepted_rewrites(name: str) -> None:
    """What was accepted with its layout is proved without it."""
    path = ROOT / "proofs" / "accepted" / f"{name}.py"
    rewrite = parse_litmus(path.read_text(), path.name).rewrite
    assert compare(rewrite.old, without_records(rewrite.new)).status is Status.PROVED


def without_records(function: PrimFunc) -> PrimFunc:
    """The function without its layout records."""
    kept = {key: value for key, value in function.attrs.items() if key != LAYOUT}
    return replace(function, attrs=type(function.attrs)(kept))


def test_there_are_accepted_rewrites() -> None:
    """The files are found where they are looked for."""
    assert list(_with_a_layout())


@one_in(10)
def test_swizzle_stays_a_swizzle() -> None:
    """A layout by XOR is what the program says, not what its bits are; only their number is made plain."""
    question = asked(
        from_text(
            sized(A="64", B="64"),
            """
            for i in range(64):
                B[i] = T.exp(A[i])
            """,
            """
            for x, y in T.grid(8, 8):
                B[x, x ^ y] = T.exp(A[8 * x + y])
            """,
            sized(A="64", B="8, 8"),
        )
    )
    assert layouts(question) == [{"B": "lambda i: [i//8, i//8 ^ i%8]"}]


def test_input_and_output() -> None:
    """Where both sides of a copy are stored otherwise, the program's own indices come first, also with offsets that
    shapes do not show.
    """
    question = asked(
        from_text(
            sized(A="10, 6", B="10, 6"),
            """
            for i, j in T.grid(10, 6):
                B[i, j] = T.exp(A[i, j])
            """,
            """
            for i, j in T.grid(10, 6):
                B[j, i + 2] = T.exp(A[(i + 1) // 4, j, (i + 1) % 4])
            """,
            sized(A="3, 6, 4", B="6, 12"),
        )
    )
    assert layouts(question) == [{"A": "lambda i, j: [(i + 1)//4, j, (i + 1)%4]", "B": "lambda i, j: [j, i + 2]"}]


def test_three_at_once() -> None:
    """The layouts of inputs and weights and outputs are found one after the other, each with what the others say."""
    question = asked(
        from_text(
            sized(X="6, 8", W="8, 10", Y="6, 10"),
            """
            for i, j, k in T.grid(6, 10, 8):
                with T.sblock("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]
            """,
            """
            for a, b in T.grid(3, 5):
                for c, d in T.grid(2, 2):
                    Y[a, b, c, d] = T.float32(0)
                for k, c, d in T.grid(8, 2, 2):
                    Y[a, b, c, d] = Y[a, b, c, d] + W[b, k, d] * X[a, k, c]
            """,
            sized(X="3, 8, 2", W="5, 8, 2", Y="3, 5, 2, 2"),
        )
    )
    assert layouts(question) == [
        {
            "X": "lambda i, k: [i//2, k, i%2]",
            "W": "lambda k, j: [j//2, k, j%2]",
            "Y": "lambda i, j: [i//2, j//2, i%2, j%2]",
        }
    ]


def test_loops_of_64_bits() -> None:
    """The width of loops is not that of the map, which has plain integers."""
    question = asked(
        from_text(
            sized(A="16", B="16"),
            """
            for i in T.serial(T.int64(16)):
                B[i] = T.exp(A[i])
            """,
            """
            for i, j in T.grid(T.int64(4), T.int64(4)):
                B[j, i ^ j] = T.exp(A[i * T.int64(4) + j])
            """,
            sized(A="16", B="4, 4"),
        )
    )
    assert layouts(question) == [{"B": "lambda i: [i%4, i//4 ^ i%4]"}]


def test_lanes() -> None:
    """Stores of several lanes say as much as those of one."""
    question = asked(
        from_text(
            sized(A="16", B="16"),
            """
            for i in range(16):
                B[i] = T.exp(A[i])
            """,
            """
            for i in range(4):
                B[3 - i, 0:4] = T.exp(A[i * 4 : i * 4 + 4])
            """,
            sized(A="16", B="4, 4"),
        )
    )
    assert layouts(question) == [{"B": "lambda i: [3 - i//4, i%4]"}]


def test_in_place() -> None:
    """A parameter that is read and written keeps the simplest layout that both allow."""
    question = asked(
        from_text(
            sized(A="16"),
            """
            for i in range(16):
                A[i] = T.exp(A[i])
            """,
            """
            for i, j in T.grid(4, 4):
                A[j, i] = T.exp(A[j, i])
            """,
            sized(A="4, 4"),
        )
    )
    assert layouts(question) == [{"A": "lambda i: [i//4, i%4]"}]


def test_rows_by_index() -> None:
    """Where data says which row is read, integer sets know nothing of it, and the shapes are asked."""
    indices = ', I: T.Buffer((8,), "int32")'
    question = asked(
        from_text(
            sized(A="8", B="8") + indices,
            """
            for i in range(8):
                B[i] = A[I[i]]
            """,
            """
            for i in range(8):
                B[i] = A[I[i] // 4, I[i] % 4]
            """,
            sized(A="2, 4", B="8") + indices,
        )
    )
    assert layouts(question) == [{"A": "lambda i0: [i0//4, i0%4]"}]


def test_known_layouts_decide() -> None:
    """A layout that is given stays, and says what the other one is."""
    question = from_text(
        sized(A="4, 4", B="4, 4"),
        """
        for i, j in T.grid(4, 4):
            B[i, j] = T.exp(A[i, j])
        """,
        """
        for i, j in T.grid(4, 4):
            B[i, j // 2, j % 2] = T.exp(A[j, i])
        """,
        sized(A="4, 4", B="4, 2, 2"),
        A="lambda i, j: [j, i]",
    )
    assert layouts(asked(question)) == [{"A": "lambda i, j: [j, i]", "B": "lambda i, j: [i, j//2, j%2]"}]
    assert layouts(asked(replace(question, cells=()))) == [{"B": "lambda i, j: [j, i//2, i%2]"}]


def test_extents_over_symbols() -> None:
    """Blocks of an axis of any length."""
    before = """
        n = T.int32()
        for i, j in T.grid(n, 16):
            B[i, j] = T.max(A[i, j], T.float32(0))
        """
    after = """
        n = T.int32()
        for a, b, j in T.grid((n + 3) // 4, 4, 16):
            if 4 * a + b < n:
                B[a, b, j] = T.max(A[4 * a + b, j], T.float32(0))
        """
    question = asked(
        from_text(sized(A='"n", 16', B='"n", 16'), before, after, sized(A='"n", 16', B="(n + 3) // 4, 4, 16"))
    )
    assert layouts(question) == [{"B": "lambda i, j: [i//4, i%4, j]"}]


def test_padded_reduction() -> None:
    """A sum that goes on over padding still says where its operand lies."""
    question = asked(
        from_text(
            sized(A="4, 6", B="4"),
            """
            for i, k in T.grid(4, 6):
                with T.sblock("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            """,
            """
            for i in range(4):
                B[i] = T.float32(0)
                for k in range(8):
                    B[i] = B[i] + A[k // 4, i, k % 4]
            """,
            sized(A="2, 4, 4", B="4"),
        )
    )
    assert layouts(question) == [{"A": "lambda i, k: [k//4, i, k%4]"}]


def test_through_temporaries() -> None:
    """A layout is found where values go through copies and other stages on their way."""
    question = asked(
        from_text(
            sized(A="4, 6", B="4, 6"),
            """
            t = T.alloc_buffer((4, 6), "float32")
            for i, j in T.grid(4, 6):
                t[i, j] = T.exp(A[i, j])
            for i, j in T.grid(4, 6):
                B[i, j] = t[i, j] * T.float32(2)
            """,
            """
            t = T.alloc_buffer((6, 4), "float32")
            u = T.alloc_buffer((4,), "float32")
            for j, i in T.grid(6, 4):
                t[j, i] = T.exp(A[i, j])
            for j in range(6):
                for i in range(4):
                    u[i] = t[j, i] * T.float32(2)
                for i in range(4):
                    B[j // 3, i, j % 3] = u[i]
            """,
            sized(A="4, 6", B="2, 4, 3"),
        )
    )
    assert layouts(question) == [{"B": "lambda i, j: [j//3, i, j%3]"}]


def test_one_for_each_choice() -> None:
    """Where programs leave a choice, each layout comes once, the simplest first, and only when it is asked for."""
    question = asked(
        from_text(
            sized(A="6, 6", B="1"),
            """
            for i, j in T.grid(6, 6):
                B[0] = T.max(B[0], A[i, j])
            """,
            """
            for i, j in T.grid(6, 6):
                B[0] = T.max(B[0], A[i, j // 2, j % 2])
            """,
            sized(A="6, 3, 2", B="1"),
        )
    )
    found = layouts(question, 6)
    assert found[0] == {"A": "lambda i, j: [i, j//2, j%2]"}
    assert len({each["A"] for each in found}) == len(found) > 1


def test_parameter_without_use() -> None:
    """A parameter that is never accessed gets the simplest layout."""
    question = asked(
        from_text(
            sized(A="8", B="8", C="8"),
            """
            for i in range(8):
                B[i] = A[i]
            """,
            """
            for i in range(8):
                B[i] = A[i]
            """,
            sized(A="8", B="8", C="2, 4"),
        )
    )
    assert layouts(question) == [{"C": "lambda i0: [i0//4, i0%4]"}]


def test_all_known() -> None:
    """Without an unknown layout there is the one witness."""
    question = from_text(
        sized(A="4", B="4"), "for i in range(4):\n    B[i] = A[i]", "for i in range(4):\n    B[i] = A[i]"
    )
    assert layouts(question, 5) == [{}]


def test_names_of_indices() -> None:
    """Indices are called as the program calls them, never as a symbol or a parameter."""
    question = from_text(
        sized(A='"n", 4', B='"n", 4'),
        """
        n = T.int32()
        for v_i, v_j in T.grid(n, 4):
            B[v_i, v_j] = A[v_i, 3 - v_j]
        """,
        """
        n = T.int32()
        for i, j in T.grid(n, 4):
            B[i, j] = A[i, 3 - j]
        """,
    )
    assert [[v.name for v in index_names(question.old, buffer)] for buffer in question.old.buffers] == [
        ["i0", "i1"],
        ["i", "j"],
    ]


def test_found_layouts_are_proved() -> None:
    """What is found convinces the checker, padding and all."""
    question = from_text(
        sized(A="14", B="14"),
        """
        for i in range(14):
            B[i] = A[i] * T.float32(2)
        """,
        """
        for x, y in T.grid(4, 4):
            B[y, x] = T.if_then_else(4 * x + y < 14, A[4 * x + y] * T.float32(2), T.float32(0))
        """,
        sized(A="14", B="4, 4"),
    )
    answer = compare(question.old, question.new)
    assert answer.status is Status.PROVED
    assert [each.index_map for each in answer.layouts] == [index_map_text(parse_index_map("lambda i: [i % 4, i // 4]"))]
