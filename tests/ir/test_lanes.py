"""The lane table: which types accesses have by the lanes of elements and of indices, of a legal combination.

The others stand, with their messages, in tests/programs/ir/lanes.py.

Source: TVM's RFC `vectorized-tir-buffers`, its table of proposed semantics.
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


@pytest.mark.parametrize("access", TABLE)
def test_an_access_has_the_lanes_of_element_and_index(access: str) -> None:
    """M lanes by an index of N lanes are N*M, whatever the steps of the index; stored values have that type too."""
    func = loads(body(f"x: T.let[T.{TABLE[access]}] = {access}", f"{access} = x"), "lanes.py")
    require_wellformed(func)
    assert (
        str(next(n for n in walk(func.body) if isinstance(n, BufferLoad) and n.buffer.name == access[0]).dtype)
        == TABLE[access]
    )
    assert loads(print_func(func)) == func


def test_a_region_built_with_lanes_is_not_well_formed(golden: Golden) -> None:
    """A region is a box; one of lanes, which no text can state, is refused when it is built by hand."""
    func = loads(
        block("v = T.axis.spatial(4, i)", "T.reads(B[v])", "T.writes(V[v])", "V[v] = T.Broadcast(B[v], 4)"), "lanes.py"
    )

    def visit(node: Node) -> Node:
        if isinstance(node, Block) and node.reads is not None:
            wide = Range(Broadcast(node.reads[0].ranges[0].start, 4), const(1))
            return replace(node, reads=(BufferRegion(node.reads[0].buffer, (wide,)),))
        return map_children(node, visit)

    changed = visit(func.body)
    assert isinstance(changed, Stmt)
    with pytest.raises(LayoutproofError) as caught:
        require_wellformed(func.with_body(changed))
    golden.entry("refusals.txt", "region_built_with_lanes", f"{caught.value}\n")
