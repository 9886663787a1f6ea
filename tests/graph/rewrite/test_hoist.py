"""Layout rewrites before and after a computation are lifted out, and the parts do what the function did."""

from __future__ import annotations

import numpy as np
import pytest
from tests.graph.nets import arrays_for

from layoutproof.graph import codes
from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.flow.layout_flow import relaid
from layoutproof.graph.model.graph import Call, LayoutTransform, is_frozen
from layoutproof.graph.model.graph_run import run_graph
from layoutproof.graph.model.wellformed_graph import require_graph
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.rewrite.hoist_rewrites import Side, hoist_layout_rewrites, hoisted_graph
from layoutproof.graph.rewrite.recognise import operators_of
from layoutproof.ir.index_map import index_map_text
from layoutproof.ir.layout_record import layout_records
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.verify.verdict.verdict import Status

MATMUL = loads(
    """
@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.func_attr({"tir.noalias": True})
    B_ = T.alloc_buffer([16, 4, 4], dtype="float32")
    C_ = T.alloc_buffer([4, 16, 4], dtype="float32")
    for i0_o, i1_o in T.grid(16, 16):
        with T.block("layout_rewrite"):
            i0, i1 = T.axis.remap("SS", [i0_o, i1_o])
            T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
            B_[i1, i0 // 4, i0 % 4] = B[i0, i1]
    for i, j, k in T.grid(16, 16, 16):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C_[vi // 4, vj, vi % 4] = T.float32(0)
            C_[vi // 4, vj, vi % 4] = C_[vi // 4, vj, vi % 4] + A[vi, vk] * B_[vj, vk // 4, vk % 4]
    for i, j in T.grid(16, 16):
        with T.block("back"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C_[vi // 4, vj, vi % 4]
""",
    "matmul.py",
)


def test_the_seeds_example() -> None:
    """The rewrites of an operand and of the result become functions, recognised and proved; what is left is frozen."""
    parts = hoist_layout_rewrites(MATMUL)
    assert parts.status is Status.PROVED
    assert [(part.side, part.outer, part.inner) for part in parts.lifted] == [
        (Side.BEFORE, "B", "B_"),
        (Side.AFTER, "C", "C_"),
    ]
    assert is_frozen(parts.rest) and [buffer.name for buffer in parts.rest.buffers] == ["A", "B_", "C_"]
    (before,) = operators_of(parts.lifted[0].function).operators
    assert isinstance(before, LayoutTransform)
    assert index_map_text(before.index_map.rename(["i", "j"])) == "lambda i, j: [j, i//4, i%4]"


def test_a_graph_of_parts_computes_the_same() -> None:
    """A call becomes three, which compute what it computed."""
    g = GraphBuilder()
    graph = g.build(*g.call(MATMUL, g.input("a", (16, 16)), g.input("b", (16, 16))))
    parts = require_graph(hoisted_graph(graph))
    assert (
        len(parts.steps) == 3 and sum(is_frozen(step.function) for step in parts.steps if isinstance(step, Call)) == 1
    )
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(parts, inputs)[0])


def test_a_function_without_rewrites_stays() -> None:
    """Where there is nothing to lift, the function is what it was."""
    func = unary("relu", (4,))
    assert hoist_layout_rewrites(func).rest is func


def test_one_temporary_becomes_the_array_of_one_parameter() -> None:
    """Of two results that are copied from one temporary one copy is lifted, and the parts do what the function did."""
    nest = 'for i in range(4):\n        with T.block("{0}"):\n            v = T.axis.spatial(4, i)\n            {1}'
    nests = [
        nest.format("a", "t[v] = A[v] + T.float32(1)"),
        nest.format("b", "B[v] = t[v]"),
        nest.format("c", "C[v] = t[v]"),
    ]
    arrays = ", ".join(f'{name}: T.Buffer((4,), "float32")' for name in "ABC")
    start = f'@T.prim_func\ndef f({arrays}):\n    T.func_attr({{"tir.noalias": True}})\n'
    text = f'{start}    t = T.alloc_buffer((4,), "float32")\n    ' + "\n    ".join(nests) + "\n"
    found = hoist_layout_rewrites(loads(text, "f.py"))
    assert found.status is Status.PROVED and [part.outer for part in found.lifted] == ["B"]
    g = GraphBuilder()
    graph = g.build(*g.call(found.function, g.input("x", (4,))))
    inputs = arrays_for(graph)
    for before, after in zip(run_graph(graph, inputs), run_graph(hoisted_graph(graph), inputs), strict=True):
        np.testing.assert_array_equal(before, after)


def through(*nests: str, mark: str = "", alloc: str = 'T.alloc_buffer((4,), "float32")') -> PrimFunc:
    """A function from `A` to `B` and `C` with a few stores through a temporary `t`; the second block may be marked."""
    lines = ["@T.prim_func", "def f(" + ", ".join(f'{name}: T.Buffer((4,), "float32")' for name in "ABC") + "):"]
    lines += ['    T.func_attr({"tir.noalias": True})', f"    t = {alloc}"]
    for number, store in enumerate(nests):
        lines += [f"    for i{number} in range(4):", f'        with T.block("b{number}"):']
        lines += [f"            v = T.axis.spatial(4, i{number})"]
        lines += [f'            T.block_attr({{"{mark}": True}})'] if mark and number == 1 else []
        lines += [f"            {store}"]
    return loads("\n".join([*lines, ""]), "f.py")


OVERWRITTEN = ("t[v] = A[v] + T.float32(1)", "B[v] = t[v]", "t[v] = A[3 - v] * T.float32(2)", "C[v] = t[v] + t[v]")


def test_a_copy_that_cannot_be_lifted_stays() -> None:
    """A copy of a temporary that is written again later stays in the function; a mark on it is an error."""
    func = through(*OVERWRITTEN)
    assert hoist_layout_rewrites(func).rest is func
    with pytest.raises(IllegalTransform, match=rf"{codes.NO_FLOW}.*the layout rewrites of f cannot be lifted"):
        g = GraphBuilder()
        hoisted_graph(g.build(*g.call(through(*OVERWRITTEN, mark="layout_rewrite_postproc"), g.input("x", (4,)))))


def test_a_temporary_with_strides_becomes_no_array() -> None:
    """What is copied into memory that is no whole array is not lifted: nothing in a graph has strides."""
    func = through(
        "t[v] = A[v]",
        "B[v] = t[v] + T.float32(1)",
        "C[v] = t[v]",
        alloc='T.alloc_buffer((4,), "float32", strides=(2,))',
    )
    assert hoist_layout_rewrites(func).rest is func


def test_parts_keep_the_records_of_their_own_arrays() -> None:
    """A function whose operand was stored anew before is taken apart too, and its parts say so of their own arrays
    alone.
    """
    func = through("t[3 - v] = A[v]", "B[v] = t[v] + T.float32(1)", "C[v] = t[v] * T.float32(2)")
    moved = relaid(func, {"A": parse_index_map("lambda i: [i//2, i%2]")}).func
    parts = hoist_layout_rewrites(moved)
    assert parts.status is Status.PROVED
    assert set(layout_records(parts.lifted[0].function)) == {"A_data"} and not layout_records(parts.rest)
