"""Functions that move elements are recognised as layout operators, proved, and made functions again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.graph.cells import difference
from tests.graph.nets import filled
from tests.graph.rewrite.test_random_folds import random_chains
from tests.shares import one_in

from layoutproof.graph import codes
from layoutproof.graph.model.graph import Call, Crop, Graph, Value, shape_of, signature_of
from layoutproof.graph.model.graph_run import interpret
from layoutproof.graph.operators.copies import chain_function
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.operators.moving import reshape, strided_slice, transpose
from layoutproof.graph.rewrite.fold import chain_to
from layoutproof.graph.rewrite.recognise import operators_of
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.verdict.verdict import Status


def moving(source: str, target: str, extents: str, store: str) -> PrimFunc:
    """A function of one block over `i`, `j`, ... from `A` to `B`."""
    names = ", ".join("ijklm"[: len(extents.split(","))])
    letters = ", ".join("abcde"[: len(extents.split(","))])
    kinds = "S" * len(extents.split(","))
    return loads(
        f"""
@T.prim_func
def moving(A: T.Buffer(({source},), "float32"), B: T.Buffer(({target},), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for {names} in T.grid({extents}):
        with T.block("moving"):
            {letters} = T.axis.remap("{kinds}", [{names}])
            {store}
""",
        "moving.py",
    )


CASES: dict[str, tuple[PrimFunc, list[str]]] = {
    "the issue's": (
        moving("2, 8, 3, 3", "2, 2, 3, 3, 4", "2, 2, 3, 3, 4", "B[a, b, c, d, e] = A[a, b * 4 + e, c, d]"),
        ["LayoutTransform"],
    ),
    "scattered": (
        moving("2, 8, 3", "2, 2, 3, 4", "2, 8, 3", "B[a, b // 4, c, b % 4] = A[a, b, c]"),
        ["LayoutTransform"],
    ),
    "with implicit padding": (
        moving(
            "6, 3", "2, 3, 4", "2, 3, 4", "B[a, b, c] = T.if_then_else(a * 4 + c < 6, A[a * 4 + c, b], T.float32(7))"
        ),
        ["Pad", "LayoutTransform"],
    ),
    "with implicit cropping": (
        moving("2, 3, 4", "6, 3", "6, 3", "B[a, b] = A[a // 4, b, a % 4]"),
        ["LayoutTransform", "Crop"],
    ),
    "a pad on both sides": (
        moving("6", "9", "9", "B[a] = T.if_then_else(2 <= a and a < 8, A[a - 2], T.float32(0))"),
        ["Pad"],
    ),
    "a crop": (moving("9, 4", "5, 4", "5, 4", "B[a, b] = A[a + 2, b]"), ["Crop"]),
    "nothing at all": (moving("9, 4", "9, 4", "9, 4", "B[a, b] = A[a, b]"), []),
    "a transpose": (transpose((2, 3, 4), (2, 0, 1)), ["LayoutTransform"]),
    "a reshape": (reshape((4, 6), (3, 8)), ["LayoutTransform"]),
    "a rotation": (moving("8", "8", "8", "B[a] = A[(a + 3) % 8]"), ["LayoutTransform"]),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_function_is_recognised(name: str) -> None:
    """The operators are those that the function is, proved, and the function of them computes the same."""
    func, wanted = CASES[name]
    found = operators_of(func)
    assert [type(step).__name__ for step in found.operators] == wanted
    assert found.status is Status.PROVED
    source = signature_of(func).operands[0]
    data = filled(*shape_of(source))
    made = chain_function(Value("x", shape_of(source), source.dtype), found.operators)
    np.testing.assert_array_equal(interpret(made, [data])[0], interpret(func, [data])[0])


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (unary("relu", (4,)), "not an element"),
        (strided_slice((8,), (0,), (4,), (2,)), "takes elements twice, or leaves some out"),
        (moving("4", "8", "8", "B[a] = A[a // 2]"), "takes elements twice"),
        (moving("8", "8", "4", "B[a] = A[a]"), "does not write each element"),
        (moving("8", "8", "8", "B[a] = T.if_then_else(a < 6, A[a], A[0])"), "not one number"),
    ],
)
def test_what_is_no_layout_rewrite_says_why(func: PrimFunc, message: str) -> None:
    """A function that does more than move elements is refused with the reason."""
    with pytest.raises(LayoutproofError, match=f"{codes.NOT_A_COPY}.*{message}"):
        operators_of(func)


def test_a_guard_that_is_wrong_is_refuted() -> None:
    """A function whose guard keeps off more than the padding is not the pad that its accesses look like."""
    func = moving("6", "8", "8", "B[a] = T.if_then_else(a < 5, A[a], T.float32(0))")
    found = operators_of(func)
    assert found.status is Status.REFUTED


def filled_first(value: str, extents: str, store: str, after: str = "") -> PrimFunc:
    """A function that fills `B`, and then copies into it."""
    nest = (
        "    for {0}, {1} in T.grid({2}):\n        with T.block({3}):\n"
        "            v, w = T.axis.remap('SS', [{0}, {1}])\n            {4}\n"
    )
    return loads(
        '@T.prim_func\ndef filled(A: T.Buffer((4, 3), "float32"), B: T.Buffer((6, 5), "float32")):\n'
        + nest.format("i", "j", "6, 5", "'fill'", f"B[v, w] = T.float32({value})")
        + nest.format("k", "l", extents, "'copy'", store)
        + after,
        "filled.py",
    )


@pytest.mark.parametrize(
    ("func", "wanted"),
    [
        (filled_first("0", "4, 3", "B[v + 1, w + 2] = A[v, w]"), ["Pad"]),
        (filled_first("-0.0", "4, 3", "B[4 - v, w] = A[v, w]"), ["LayoutTransform", "Pad"]),
        (filled_first("7", "3, 3", "B[v, w + 2] = A[v + 1, w]"), ["Crop", "Pad"]),
    ],
)
def test_what_is_filled_first_is_a_pad(func: PrimFunc, wanted: list[str]) -> None:
    """A nest that fills the result, and one that copies into a box of it, are a pad, after whatever the copy is."""
    found = operators_of(func)
    assert [type(step).__name__ for step in found.operators] == wanted and found.status is Status.PROVED
    data = filled(4, 3)
    made = chain_function(Value("x", (4, 3), signature_of(func).operands[0].dtype), found.operators)
    assert interpret(made, [data])[0].tobytes() == interpret(func, [data])[0].tobytes()


@pytest.mark.parametrize(
    "func",
    [
        filled_first("0", "4, 3", "B[v, w * 2 % 5] = A[v, w]"),
        filled_first("0", "4, 3", "B[v, w] = A[v, w]", "    for m in range(6):\n        B[m, 0] = T.float32(1)\n"),
        filled_first("0", "4, 3", "B[v, w] = B[v, w] + A[v, w]"),
    ],
    ids=["a box with holes", "filled again", "added"],
)
def test_what_is_filled_otherwise_is_not_believed(func: PrimFunc) -> None:
    """What is not a box of copies in a filled array is refused."""
    with pytest.raises(LayoutproofError, match=codes.NOT_A_COPY):
        operators_of(func)


@one_in(4)
@pytest.mark.parametrize("seed", [5000, 5001, 5008, 5009, 5014, 5033])
def test_functions_of_chains_are_recognised(seed: int) -> None:
    """The function of several operators, which copies through temporaries, is those operators again, or as many that
    are simpler.
    """
    graph = random_chains(seed)
    last = graph.producers()[graph.outputs[0]]
    assert not isinstance(last, Call)
    chain = chain_to(last, graph.producers())
    root = graph.by_name()[chain[0].operand]
    found = operators_of(chain_function(root, chain))
    assert found.status is Status.PROVED and len(found.operators) <= len(chain) + 1
    made = found.operators
    new = Graph("new", (replace(root, name="x"),), (), made, (made[-1].result.name if made else "x",))
    first, *others = (replace(step, cropped_value=None) if isinstance(step, Crop) else step for step in chain)
    old = Graph("old", new.inputs, (), (replace(first, operand="x"), *others), (last.result.name,))
    assert difference(old, new) is None
