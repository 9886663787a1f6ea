"""Products, moves, places, reductions and normalisations of the library: the layouts that go through, proved, and the
same bits in C.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.shares import one_in

from layoutproof.graph.flow.layout_flow import NoFlow, flow, relaid
from layoutproof.graph.model.graph import Array, shape_of, signature_of
from layoutproof.graph.model.graph_run import interpret
from layoutproof.graph.model.wellformed_graph import is_fresh
from layoutproof.graph.operators import moving, reduction
from layoutproof.graph.operators import moving as indexing
from layoutproof.graph.operators import normalise as statistics
from layoutproof.graph.operators import reduction as linear
from layoutproof.graph.tuning.kernels import Kernels
from layoutproof.ir.dtype import numpy_dtype
from layoutproof.ir.notations.map_text import parse_index_map
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.verdict.verdict import Status

LIBRARY: dict[str, tuple[PrimFunc, tuple[str, int], str]] = {
    "matmul of many": (linear.matmul((2, 3, 4, 8), (2, 3, 8, 16)), ("A", 3), "A B"),
    "matmul by one": (linear.matmul((2, 4, 8), (8, 16)), ("Y", 2), "B Y"),
    "matmul of a row": (linear.matmul((8,), (3, 8, 4)), ("A", 0), "A B"),
    "gemm of the transposed": (linear.gemm((8, 4), (16, 8), (True, True)), ("Y", 0), "A Y"),
    "einsum": (linear.einsum("bhqd,bhkd->bhqk", ((2, 2, 4, 8), (2, 2, 4, 8))), ("X0", 3), "X0 X1"),
    "einsum of a diagonal": (linear.einsum("ii->i", ((8, 8),)), ("X0", 1), "X0 Y"),
    "expand": (moving.expand((8, 1), (4, 8, 3)), ("Y", 1), "X Y"),
    "tile": (moving.tile((2, 8), (3, 2)), ("X", 1), ""),
    "tile beside": (moving.tile((2, 8), (3, 1)), ("X", 1), "X Y"),
    "pad": (moving.pad((2, 8), (1, 0), (0, 3), -np.inf), ("X", 1), "X Y"),
    "pad of bytes": (moving.pad((2, 8), (1, 0), (0, 3), 3, "int8"), ("X", 1), "X Y"),
    "pad of truth values": (moving.pad((2, 8), (1, 0), (0, 0), True, "bool"), ("Y", 1), "X Y"),
    "triangle": (moving.triangle((2, 4, 8), 1, True), ("Y", 2), "X Y"),
    "take": (indexing.take((8, 4), 0, (7, 6, 5, 0, 0, 0, 2)), ("X", 1), "X Y"),
    "take along": (indexing.take((8, 4), 0, (7, 6, 5, 0, 0, 0, 2)), ("X", 0), ""),
    "select": (indexing.select((8, 4), 0, 3), ("Y", 0), "X Y"),
    "gather": (indexing.gather((8, 4), (2, 3), 0), ("X", 1), "X Y"),
    "gather along": (indexing.gather((8, 4), (2, 3), 0), ("X", 0), ""),
    "gather of halves": (indexing.gather((4, 8), (3,), 1, "float16", "int32"), ("Y", 0), "X Y"),
    "gather by elements": (indexing.gather_elements((8, 4), (2, 4), 0), ("I", 1), "I X Y"),
    "gather of several axes": (indexing.gather_nd((8, 4, 4), (3, 2), 0), ("Y", 1), "X Y"),
    "one hot": (indexing.one_hot((4,), 5, 0), ("I", 0), "I Y"),
    **{
        f"{kind}": (reduction.reduce(kind, (4, 8), (1,)), ("Y", 0), "X Y")
        for kind in ("sum", "max", "min", "prod", "l1", "sum_square")
    },
    **{f"{kind}": (reduction.reduce(kind, (4, 8), (1,)), ("X", 0), "S X Y") for kind in ("mean", "l2", "log_sum")},
    "log_sum_exp": (reduction.reduce("log_sum_exp", (4, 8), (1,)), ("Y", 0), "L S X Y"),
    "any": (reduction.reduce("any", (4, 8), (1,), True, "bool"), ("X", 0), "X Y"),
    "all": (reduction.reduce("all", (4, 8), (0,), False, "bool"), ("Y", 0), "X Y"),
    "sums up to each element": (reduction.cumulative((4, 8), 1, False, True), ("Y", 0), "X Y"),
    "layer norm": (statistics.layer_norm((2, 4, 8), 2, (8,), (8,), 1e-5), ("X", 2), "B W X Y"),
    "layer norm beside": (statistics.layer_norm((2, 4, 8), 2, (8,), (8,), 1e-5), ("Y", 1), "M Q S X Y"),
    "rms norm": (statistics.rms_norm((2, 4, 8), 1, (8,), 1e-5), ("W", 0), "W X Y"),
    "log softmax": (statistics.log_softmax((4, 8), 1), ("X", 1), "X Y"),
    "norm": (statistics.lp_norm((4, 8), 1, 2), ("X", 0), "S X Y"),
}


def tiled(rank: int, axis: int) -> str:
    """An axis in blocks of four."""
    names = [f"i{k}" for k in range(rank)]
    outputs = [f"{name}//4" if k == axis else name for k, name in enumerate(names)]
    return f"lambda {', '.join(names)}: [{', '.join(outputs)}, i{axis}%4]"


@one_in(4)
@pytest.mark.parametrize("name", list(LIBRARY))
def test_layouts_go_through(name: str) -> None:
    """The arrays that follow from one in blocks, proved; the flow stops where an access is no clean image."""
    func, (array, axis), followers = LIBRARY[name]
    assert is_fresh(func)
    signature = signature_of(func)
    (buffer,) = (each for each in (*signature.operands, *signature.results) if each.name == array)
    given = {array: parse_index_map(tiled(buffer.rank, axis))}
    if not followers:
        with pytest.raises(NoFlow):
            flow(func, given)
        return
    found = flow(func, given)
    assert sorted(found) == followers.split()
    assert all(step.status is Status.PROVED for step in relaid(func, found).steps)


@pytest.mark.campaign
@pytest.mark.parametrize("name", list(LIBRARY))
def test_c_makes_the_same_bits(name: str) -> None:
    """Generated C makes what the reference interpreter makes."""
    func = LIBRARY[name][0]
    random = np.random.default_rng(0)
    operands = list[Array]()
    for buffer in signature_of(func).operands:
        drawn = (
            random.integers(-2, 2, size=shape_of(buffer))
            if buffer.name == "I"
            else random.normal(size=shape_of(buffer)) * 2
        )
        operands.append((np.abs(drawn) + 0.1 if name == "log_sum" else drawn).astype(numpy_dtype(buffer.dtype)))
    made, wanted = Kernels()(func, operands), interpret(func, operands)
    assert [array.tobytes() for array in made] == [array.tobytes() for array in wanted]
