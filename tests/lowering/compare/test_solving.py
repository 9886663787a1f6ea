"""Layouts that are not given, from the programs: as a relation of cells, and as expressions of accesses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lowering.compare.questions import from_text

from layoutproof.ir.expr import Expr, IntImm, Var, const
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.lowering.compare.comparison import Question
from layoutproof.lowering.compare.layout_equations import Solving
from layoutproof.lowering.compare.layout_formulas import Guess, bounded, layout_of, simplified, with_ones, written_out
from layoutproof.lowering.compare.value_meetings import Meetings
from layoutproof.lowering.compare.witness_search import search_of
from layoutproof.verify.isl.instance_sets import Link, function_between
from layoutproof.verify.isl.proposing import is_inside, span

A_TO_B = 'A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")'
SUM_BEFORE = """
for i, k in T.grid(4, 6):
    with T.sblock("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vi, vk]
"""
SUM = 'A: T.Buffer((4, 6), "float32"), B: T.Buffer((4,), "float32")'


def solved(question: Question, *unknown: str) -> Solving:
    """What follows where the layouts of some parameters are not known; the others keep their cells, or lie as the
    question says.
    """
    search = search_of(replace(question, unknown=unknown))
    cells = {}
    for buffer in question.old.buffers:
        if buffer.name not in unknown:
            link = search.rewrite_model.cells(search.rewrite_model.entry(buffer.data.name), "oin_", "nin_")
            assert link is not None
            cells[buffer.data.name] = link
    solving = Solving(Meetings(search), cells)
    solving.run()
    return solving


def link_of(solving: Solving, name: str, text: str) -> Link:
    """A layout as a relation between the cells of a parameter."""
    index_map = parse_index_map(text)
    names = [f"c{k}" for k in range(len(index_map.inputs))]
    outputs = index_map.map_indices([Var(n) for n in names])
    return function_between(solving.rewrite_model.encoder(names), f"oin_{name}_data", outputs, f"nin_{name}_data")


def told(solving: Solving, question: Question, name: str, guess: Guess = Guess.NONE) -> list[str]:
    """The layouts that accesses state."""
    buffers = zip(question.old.buffers, question.new.buffers, strict=True)
    old, new = next((old, new) for old, new in buffers if old.name == name)
    names = [Var(f"x{k}") for k in range(old.rank)]
    spots = solving.spots.get(f"{name}_data", [])
    return [
        index_map_text(each) for each in written_out(solving.rewrite_model, names, old.shape, new.shape, spots, guess)
    ]


def elementwise(after: str, box: str) -> Question:
    """`B[i] = exp(A[i])` against a body that stores B in another shape."""
    return from_text(
        A_TO_B,
        """
        for i in range(24):
            B[i] = T.exp(A[i])
        """,
        after,
        f'A: T.Buffer((24,), "float32"), B: T.Buffer(({box},), "float32")',
    )


@pytest.mark.parametrize(
    ("after", "box", "layout"),
    [
        ("for a, b in T.grid(6, 4):\n    B[a, b] = T.exp(A[4 * a + b])", "6, 4", "lambda x0: [x0//4, x0%4]"),
        ("for a, b in T.grid(6, 4):\n    B[b, a] = T.exp(A[4 * a + b])", "4, 6", "lambda x0: [x0%4, x0//4]"),
        ("for i in range(24):\n    B[23 - i] = T.exp(A[i])", "24", "lambda x0: [23 - x0]"),
        ("for i in range(24):\n    B[i + 5] = T.exp(A[i])", "32", "lambda x0: [x0 + 5]"),
        (
            "for i in range(24):\n    B[i // 8, i % 8 ^ i // 8] = T.exp(A[i])",
            "3, 8",
            "lambda x0: [x0//8, x0%8 ^ x0//8]",
        ),
        ("for i in range(24):\n    B[i * 5 % 24] = T.exp(A[i])", "24", "lambda x0: [x0*5%24]"),
        (
            "for i in range(32):\n    B[i // 8, i % 8] = T.if_then_else(i < 24, T.exp(A[i]), T.float32(0))",
            "4, 8",
            "lambda x0: [x0//8, x0%8]",
        ),
    ],
)
def test_output(after: str, box: str, layout: str) -> None:
    """What is stored in an output says where its cells are, in the program's own words, and as a function."""
    question = elementwise(after, box)
    solving = solved(question, "B")
    assert told(solving, question, "B")[0] == layout
    allowed = solving.allowed("B_data")
    assert allowed is not None
    assert allowed.is_single_valued()
    assert solving.lost == ()


def test_input() -> None:
    """What is loaded of an input, in instances that the output tells apart, says where its cells are."""
    question = from_text(
        A_TO_B,
        "for i in range(24):\n    B[i] = T.exp(A[i])",
        "for i in range(24):\n    B[i] = T.exp(A[i // 4, i % 4])",
        'A: T.Buffer((6, 4), "float32"), B: T.Buffer((24,), "float32")',
    )
    assert told(solved(question, "A"), question, "A") == ["lambda x0: [x0//4, x0%4]"]


def test_reduction_leaves_a_choice() -> None:
    """The order of a sum's terms is not in its result: the layout is inside a relation, and the program's own index is
    the first guess.
    """
    question = from_text(
        SUM,
        SUM_BEFORE,
        SUM_BEFORE.replace("A[vi, vk]", "A[vk // 3, vi, vk % 3]"),
        'A: T.Buffer((2, 4, 3), "float32"), B: T.Buffer((4,), "float32")',
    )
    solving = solved(question, "A")
    allowed = solving.allowed("A_data")
    assert allowed is not None
    assert not allowed.is_single_valued()
    assert is_inside(link_of(solving, "A", "lambda i, k: [k // 3, i, k % 3]"), allowed)
    assert not is_inside(link_of(solving, "A", "lambda i, k: [k // 3, 3 - i, k % 3]"), allowed)
    assert told(solving, question, "A") == []
    assert told(solving, question, "A", Guess.SMALL) == ["lambda x0, x1: [x1//3, x0, x1%3]"]


def test_reduction_in_another_order() -> None:
    """An output is found where the terms of its sum are added in another order."""
    question = from_text(
        SUM,
        SUM_BEFORE,
        """
        for i in range(4):
            B[i // 2, i % 2] = T.float32(0)
            for a, b in T.grid(2, 3):
                B[i // 2, i % 2] = B[i // 2, i % 2] + A[i, b * 2 + 1 - a]
        """,
        'A: T.Buffer((4, 6), "float32"), B: T.Buffer((2, 2), "float32")',
    )
    assert told(solved(question, "B"), question, "B") == ["lambda x0: [x0//2, x0%2]"]


def test_contradiction_shows() -> None:
    """With a wrong layout of an input some cell of the output cannot hold what it should."""
    after = "for i in range(24):\n    B[i] = T.exp(A[i // 4, i % 4])"
    shapes = 'A: T.Buffer((6, 4), "float32"), B: T.Buffer((24,), "float32")'
    before = "for i in range(24):\n    B[i] = T.exp(A[i])"
    right = from_text(A_TO_B, before, after, shapes, A="lambda i: [i // 4, i % 4]")
    wrong = from_text(A_TO_B, before, after, shapes, A="lambda i: [i % 6, i // 6]")
    assert solved(right).lost == ()
    assert solved(wrong).lost == ("B_data",)


def test_constants_tell_nothing_apart() -> None:
    """Cells that both programs fill with one number are left open, and do not hide what the others say."""
    before = "for i in range(24):\n    B[i] = T.if_then_else(2 <= i, A[i - 2], T.float32(0))"
    after = "for a, b in T.grid(6, 4):\n    B[b, a] = T.if_then_else(2 <= 4 * a + b, A[4 * a + b - 2], T.float32(0))"
    question = from_text(A_TO_B, before, after, 'A: T.Buffer((24,), "float32"), B: T.Buffer((4, 6), "float32")')
    solving = solved(question, "B")
    assert solving.lost == ()
    assert told(solving, question, "B")[0] == "lambda x0: [x0%4, x0//4]"


def test_relation_as_a_layout() -> None:
    """A relation that is one function of the cell reads as a layout; one that is none does not."""
    question = elementwise("for a, b in T.grid(6, 4):\n    B[b, a] = T.exp(A[4 * a + b])", "4, 6")
    solving = solved(question, "B")
    allowed = solving.allowed("B_data")
    assert allowed is not None
    found = layout_of(solving.rewrite_model, [Var("i")], allowed)
    assert found is not None
    assert index_map_text(found) == "lambda i: [i%4, i//4]"
    assert layout_of(solving.rewrite_model, [Var("i"), Var("j")], allowed.reverse()) is not None
    several = allowed.union(link_of(solving, "B", "lambda i: [i % 4, 5 - i // 4]").intersect_domain(allowed.domain()))
    assert layout_of(solving.rewrite_model, [Var("i")], several) is None


X, Y = Var("x"), Var("y")


@pytest.mark.parametrize(
    ("expr", "shape", "text"),
    [
        ((X * 4 + Y) // 4, (8, 4), "x"),
        ((X * 4 + Y) % 4, (8, 4), "y"),
        (X // 8, (8, 4), "0"),
        (X % 8 + Y - Y, (8, 4), "x"),
    ],
)
def test_shortest_form(expr: Expr, shape: tuple[int, int], text: str) -> None:
    """Indices inside their shape are known to be there."""
    found = simplified(expr, [X, Y], [const(extent) for extent in shape])
    assert index_map_text(IndexMap((X, Y), (found,))) == f"lambda x, y: [{text}]"


def test_bits_are_bounded() -> None:
    """Each operand of a bitwise operation says by itself how many bits it has, where that is known; nothing is 0's
    other operand.
    """
    shape = [const(64), Var("n")]
    assert index_map_text(IndexMap((X,), (bounded(X // 8 ^ X % 8, [X], shape[:1]),))) == "lambda x: [x//8%8 ^ x%8]"
    assert bounded(const(0) ^ X % 8, [X], shape[:1]) == X % 8
    assert bounded(X ^ Y, [X, Y], shape) == X % 64 ^ Y


def test_axes_of_extent_one() -> None:
    """An axis of one element takes an axis of one element, not a zero."""
    zero = IntImm(0)
    assert with_ones([zero, Y, zero], [X, Y], [const(1), const(4)], [const(1), const(4), const(1)]) == (X, Y, zero)
    assert with_ones([zero, Y], [X, Y], [const(2), const(4)], [const(1), const(4)]) == (zero, Y)


def test_span() -> None:
    """The least and the greatest number of a bounded relation; none where there is no number."""
    question = elementwise("for i in range(24):\n    B[i + 5] = T.exp(A[i])", "32")
    solving = solved(question, "B")
    allowed = solving.allowed("B_data")
    assert allowed is not None
    assert span(allowed) == (5, 28)
    assert span(allowed.subtract(allowed)) is None
