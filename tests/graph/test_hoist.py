"""Layout rewrites before and after a computation are lifted out, and the parts do what the function did."""

from __future__ import annotations

import numpy as np
from tests.graph.nets import arrays_for

from layoutproof.graph.builder import GraphBuilder
from layoutproof.graph.hoist import Side, hoist_layout_rewrites, hoisted_graph
from layoutproof.graph.model import Call, LayoutTransform
from layoutproof.graph.operators.elementwise import unary
from layoutproof.graph.recognise import operators_of
from layoutproof.graph.run import run_graph
from layoutproof.graph.signature import is_frozen
from layoutproof.graph.wellformed import require_graph
from layoutproof.ir.map_text import index_map_text
from layoutproof.ir.script import loads
from layoutproof.verify.verdict import Status

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
    assert [(part.side, part.outer, part.inner) for part in parts.lifted] == [(Side.BEFORE, "B", "B_"), (Side.AFTER, "C", "C_")]
    assert is_frozen(parts.rest) and [buffer.name for buffer in parts.rest.buffers] == ["A", "B_", "C_"]
    (before,) = operators_of(parts.lifted[0].function).operators
    assert isinstance(before, LayoutTransform)
    assert index_map_text(before.index_map.rename(["i", "j"])) == "lambda i, j: [j, i//4, i%4]"


def test_a_graph_of_parts_computes_the_same() -> None:
    """A call becomes three, which compute what it computed."""
    g = GraphBuilder()
    graph = g.build(*g.call(MATMUL, g.input("a", (16, 16)), g.input("b", (16, 16))))
    parts = require_graph(hoisted_graph(graph))
    assert len(parts.steps) == 3 and sum(is_frozen(step.function) for step in parts.steps if isinstance(step, Call)) == 1
    inputs = arrays_for(graph)
    np.testing.assert_array_equal(run_graph(graph, inputs)[0], run_graph(parts, inputs)[0])


def test_a_function_without_rewrites_stays() -> None:
    """Where there is nothing to lift, the function is what it was."""
    func = unary("relu", (4,))
    assert hoist_layout_rewrites(func).rest is func


def test_one_temporary_becomes_the_array_of_one_parameter() -> None:
    """Of two results that are copied from one temporary one copy is lifted, and the parts do what the function did."""
    nest = 'for i in range(4):\n        with T.block("{0}"):\n            v = T.axis.spatial(4, i)\n            {1}'
    nests = [nest.format("a", "t[v] = A[v] + T.float32(1)"), nest.format("b", "B[v] = t[v]"), nest.format("c", "C[v] = t[v]")]
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
