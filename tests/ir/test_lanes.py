"""The lane table: which types accesses have by the lanes of elements and of indices, and what is said of every combination that is none.

Source: the seed `vectorized-tir-buffers`, its table of proposed semantics.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.conftest import Golden

from layoutproof.ir.buffer import BufferLoad, BufferRegion, Range
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Broadcast, const
from layoutproof.ir.node import Node
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import Block, Stmt
from layoutproof.ir.visit import map_children, walk
from layoutproof.ir.wellformed import require_wellformed

SIGNATURE = (
    '@T.prim_func\ndef main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32"), '
    'V: T.Buffer((4,), "float32x4"), D: T.Buffer((16,), "int32")):\n'
)


def body(*lines: str) -> str:
    """A function over A, B, V and D with these lines as its body."""
    return SIGNATURE + "".join(f"    {line}\n" for line in lines)


def block(*lines: str) -> str:
    """A block over i with these lines inside."""
    return body("for i in range(4):", '    with T.sblock("one"):', *(f"        {line}" for line in lines))


# element lanes x index -> the type of the access: scalar index, ramp of stride 1, any other vector.
TABLE = {
    "B[3]": "float32",
    "B[T.Ramp(4, 1, 4)]": "float32x4",
    "B[T.Ramp(0, 2, 4)]": "float32x4",
    "B[D[T.Ramp(0, 1, 4)]]": "float32x4",
    "B[T.Broadcast(3, 4)]": "float32x4",
    "A[2, T.Ramp(0, 1, 8)]": "float32x8",
    "V[1]": "float32x4",
    "V[T.Ramp(0, 1, 2)]": "float32x8",
    "V[T.Ramp(0, 2, 2)]": "float32x8",
    "V[T.Broadcast(1, 3)]": "float32x12",
}

ILLEGAL = {
    # Lanes before the last index.
    "store_before_the_last": body("A[T.Ramp(0, 1, 4), 0] = T.Broadcast(T.float32(0), 4)"),
    "load_before_the_last": body("B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4), 0]"),
    "lanes_in_two_indices": body("A[T.Ramp(0, 1, 4), T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 16)"),
    "lanes_without_an_axis": '@T.prim_func\ndef main(A: T.Buffer((), "float32")):\n    A[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 4)\n',
    # A stored value of other lanes than the access has, in each of the table's fields.
    "vector_in_scalar_by_scalar": body("B[0] = T.Broadcast(T.float32(0), 4)"),
    "scalar_in_scalar_by_ramp": body("B[T.Ramp(0, 1, 4)] = T.float32(0)"),
    "longer_in_scalar_by_ramp": body("B[T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 8)"),
    "scalar_in_scalar_by_vector": body("B[D[T.Ramp(0, 1, 4)]] = T.float32(0)"),
    "scalar_in_vector_by_scalar": body("V[0] = T.float32(0)"),
    "longer_in_vector_by_scalar": body("V[0] = T.Broadcast(T.float32(0), 8)"),
    "element_in_vector_by_ramp": body("V[T.Ramp(0, 1, 2)] = T.Broadcast(T.float32(0), 4)"),
    "index_in_vector_by_ramp": body("V[T.Ramp(0, 1, 2)] = T.Broadcast(T.float32(0), 2)"),
    "index_in_vector_by_vector": body("V[T.Broadcast(0, 2)] = T.Broadcast(T.float32(0), 2)"),
    # Operands of different lanes.
    "sum_of_two_lengths": body("B[T.Ramp(0, 1, 4)] = B[T.Ramp(0, 1, 4)] + B[T.Ramp(0, 1, 2)]"),
    "select_of_two_lengths": body("B[T.Ramp(0, 1, 4)] = T.Select(B[T.Ramp(0, 1, 2)] < V[0], V[0], V[0])"),
    "cast_that_changes_lanes": body('B[0] = T.Cast("float32", D[T.Ramp(0, 1, 4)])'),
    "cast_that_adds_lanes": body('V[0] = T.Cast("float32x4", D[0])'),
    "let_of_other_lanes": body("x: T.float32 = V[0]", "B[0] = x"),
    "ramp_of_a_ramp": body("B[T.Ramp(T.Ramp(0, 1, 2), 1, 2)] = V[0]"),
    "ramp_of_floats": body("V[0] = T.Ramp(T.float32(0), T.float32(1), 4)"),
    "ramp_of_one_lane": body("B[T.Ramp(0, 1, 1)] = T.float32(0)"),
    "ramp_of_unknown_lanes": body("B[T.Ramp(0, 1, D[0])] = V[0]"),
    "broadcast_of_a_vector": body("B[T.Ramp(0, 1, 8)] = T.Broadcast(V[0], 2)"),
    # Lanes where one decision is made, or one number is meant.
    "branch_by_lanes": body("if V[0] < V[1]:", "    B[0] = T.float32(0)"),
    "lazy_choice_by_lanes": body("V[0] = T.if_then_else(V[0] < V[1], V[0], V[1])"),
    "loop_over_lanes": body("for i in range(D[T.Ramp(0, 1, 4)]):", "    B[i] = T.float32(0)"),
    "assumption_of_lanes": body("T.evaluate(T.assume(V[0] == V[1]))"),
    "effect_of_lanes": body("T.evaluate(V[0])"),
    "extent_of_lanes": body('W = T.decl_buffer((D[T.Ramp(0, 1, 4)],), "float32", data=B.data)', "W[0] = T.float32(0)"),
    "offset_of_lanes": body('W = T.decl_buffer((4,), "float32", data=B.data, elem_offset=T.Ramp(0, 1, 4))', "W[0] = T.float32(0)"),
    "binding_of_lanes": block("v = T.axis.spatial(16, T.Ramp(i, 1, 4))", "B[v] = T.float32(0)"),
    "domain_of_lanes": block("v = T.axis.spatial(T.Ramp(0, 1, 4), i)", "B[v] = T.float32(0)"),
    "guard_of_lanes": block("v = T.axis.spatial(4, i)", "T.where(T.Ramp(i, 1, 4) < T.Broadcast(3, 4))", "B[v] = T.float32(0)"),
    "region_of_lanes": block("v = T.axis.spatial(4, i)", "T.reads(B[T.Ramp(v, 1, 4)])", "B[v] = T.float32(0)"),
}


@pytest.mark.parametrize("access", TABLE)
def test_an_access_has_the_lanes_of_element_and_index(access: str) -> None:
    """M lanes by an index of N lanes are N*M, whatever the steps of the index; stored values have that type too."""
    func = loads(body(f"x: T.let[T.{TABLE[access]}] = {access}", f"{access} = x"), "lanes.py")
    require_wellformed(func)
    assert str(next(n for n in walk(func.body) if isinstance(n, BufferLoad) and n.buffer.name == access[0]).dtype) == TABLE[access]
    assert loads(print_func(func)) == func


@pytest.mark.parametrize("name", ILLEGAL)
def test_every_other_combination_has_its_message(name: str, golden: Golden) -> None:
    """What is not in the table, and lanes where they mean nothing, are refused with the place and both types."""
    with pytest.raises(LayoutproofError) as caught:
        require_wellformed(loads(ILLEGAL[name], "lanes.py"))
    assert all(d.span is not None for d in caught.value.diagnostics)
    golden(f"bad_lanes/{name}.txt", f"{caught.value}\n")


def test_a_region_built_with_lanes_is_not_well_formed(golden: Golden) -> None:
    """A region is a box; one of lanes, which no text can state, is refused when it is built by hand."""
    func = loads(block("v = T.axis.spatial(4, i)", "T.reads(B[v])", "T.writes(V[v])", "V[v] = T.Broadcast(B[v], 4)"), "lanes.py")

    def visit(node: Node) -> Node:
        if isinstance(node, Block) and node.reads is not None:
            wide = Range(Broadcast(node.reads[0].ranges[0].start, 4), const(1))
            return replace(node, reads=(BufferRegion(node.reads[0].buffer, (wide,)),))
        return map_children(node, visit)

    changed = visit(func.body)
    assert isinstance(changed, Stmt)
    with pytest.raises(LayoutproofError) as caught:
        require_wellformed(func.with_body(changed))
    golden("bad_lanes/region_built_with_lanes.txt", f"{caught.value}\n")
