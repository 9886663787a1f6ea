"""What caches and transforms of temporaries refuse, and in which words: golden texts; and how their options stand in a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.conftest import Golden
from tests.lowering.programs import copy, program, running_sum, two_stages
from tests.lowering.small_operators import small

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.lowering import codes
from layoutproof.lowering.caching.cache import CacheRead, CacheWrite
from layoutproof.lowering.caching.compact import CompactBuffer
from layoutproof.lowering.caching.decompose import DecomposePadding
from layoutproof.lowering.caching.double_buffer import InjectDoubleBuffer
from layoutproof.lowering.caching.einsum import PadEinsum
from layoutproof.lowering.caching.reindex import Reindex
from layoutproof.lowering.passes import Pass
from layoutproof.lowering.registry import PASSES
from layoutproof.lowering.schedule import IllegalTransform, Schedule
from layoutproof.verify import codes as claims


@dataclass(frozen=True)
class Refusal:
    """A step that must be refused, and the code of the message."""

    code: str
    func: Callable[[], PrimFunc]
    step: Pass


def views() -> PrimFunc:
    """A temporary with a second view, through which it is written."""
    return program("""def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
    T.func_attr({"tirx.noalias": True})
    C = T.alloc_buffer((20,), "int32")
    rows = T.decl_buffer((4, 4), "int32", data=C.data)
    for i in range(16):
        with T.sblock("copy"):
            v = T.axis.spatial(16, i)
            C[v] = A[v]
            B[v] = rows[v // 4, v % 4]
""")


def matched() -> PrimFunc:
    """A block with a view of a row."""
    return program("""def main(A: T.Buffer((8, 8), "int32")):
    for i in range(8):
        with T.sblock("row"):
            vi = T.axis.spatial(8, i)
            row = T.match_buffer(A[vi, 0:8], (8,), "int32")
            row[0] = 0
            A[vi, 1] = 1
""")


def handed_over() -> PrimFunc:
    """A buffer whose address goes to an extern function."""
    return program("""def main(A: T.Buffer((16,), "int32")):
    with T.sblock("call"):
        A[0] = 0
        T.evaluate(T.call_extern("int32", "frobnicate", A.data))
""")


def fused() -> PrimFunc:
    """A producer and its consumer in the iterations of one loop."""
    return program("""def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    B = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("first"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + 1
        with T.sblock("second"):
            v = T.axis.spatial(6, i)
            C[v] = B[v] * 2
""")


def in_place() -> PrimFunc:
    """An update of what the caller gave."""
    return program("""def main(A: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.sblock("more"):
            v = T.axis.spatial(6, i)
            A[v] = A[v] + 1
""")


def two_places() -> PrimFunc:
    """A stencil, and an access that a loop inside the block decides."""
    return program("""def main(A: T.Buffer((8,), "int32"), B: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        with T.sblock("stencil"):
            v = T.axis.spatial(6, i)
            B[v] = A[v] + A[v + 2]
    for i in range(6):
        with T.sblock("window"):
            v = T.axis.spatial(6, i)
            for j in range(3):
                B[v] = B[v] + A[v + j]
    for i, j in T.grid(6, 2):
        with T.sblock("by_loop"):
            v = T.axis.spatial(6, i)
            B[v] = A[v + j]
""")


def per_iteration() -> PrimFunc:
    """A temporary that is allocated in each iteration of a loop, and one that is used after its loop."""
    return program("""def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    D = T.sblock_alloc_buffer((6,), "int32")
    for i in range(6):
        with T.sblock("outer"):
            vi = T.axis.spatial(6, i)
            B = T.sblock_alloc_buffer((1,), "int32")
            with T.sblock("inner"):
                B[0] = A[vi] + 1
                D[vi] = B[0]
    for i in range(6):
        with T.sblock("last"):
            v = T.axis.spatial(6, i)
            C[v] = D[v]
""")


def waiting() -> PrimFunc:
    """A temporary with a layout transform in an attribute."""
    return program("""def main(A: T.Buffer((6,), "int32")):
    T.func_attr({"buffer_layout_transformations": {"B_data": ["lambda i: [5 - i]"]}})
    B = T.sblock_alloc_buffer((6,), "int32")
    for i in range(3):
        with T.sblock("copy"):
            v = T.axis.spatial(3, i)
            B[v] = A[v]
""")


def pads() -> PrimFunc:
    """Choices that are no padding: by what is in memory, between two loads, and by nothing."""
    return program("""def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(6):
        with T.sblock("by_data"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(A[v] > 0, A[v], 0)
        with T.sblock("of_two"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(v > 2, A[v], A[0])
    for i in range(6):
        with T.sblock("of_nothing"):
            v = T.axis.spatial(6, i)
            C[v] = T.if_then_else(v < 6, A[v], 0)
""")


def assuming() -> PrimFunc:
    """A block that assumes what another one reads."""
    return program("""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        with T.sblock("known"):
            v = T.axis.spatial(8, i)
            T.assume(v < 6 or A[v] == T.float32(0))
    for i in range(8):
        with T.sblock("copy"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
""")


REFUSALS: dict[str, Refusal] = {
    "read_unknown_buffer": Refusal(codes.NO_BUFFER, two_stages, CacheRead("second", "b")),
    "read_unknown_block": Refusal(codes.NO_BLOCK, two_stages, CacheRead("secnod", "B")),
    "read_of_another_block": Refusal(codes.NOT_IN_BLOCK, two_stages, CacheRead("second", "A")),
    "read_through_another_view": Refusal(codes.NOT_IN_BLOCK, views, CacheRead("copy", "C")),
    "read_of_a_region_view": Refusal(codes.NOT_IN_BLOCK, matched, CacheRead("row", "A")),
    "read_before_it_is_written": Refusal(claims.UNDEFINED_READ, fused, CacheRead("second", "B")),
    "read_of_an_accumulator": Refusal(claims.OTHER_VALUE, running_sum, CacheRead("sum", "B")),
    "write_of_another_block": Refusal(codes.NOT_IN_BLOCK, two_stages, CacheWrite("first", "A")),
    "write_with_another_view": Refusal(codes.ALIASES, views, CacheWrite("copy", "C")),
    "write_of_a_region_view": Refusal(codes.ALIASES, matched, CacheWrite("row", "A")),
    "write_handed_over": Refusal(codes.POINTER_USE, handed_over, CacheWrite("call", "A")),
    "read_of_what_is_inside": Refusal(codes.NOT_IN_BLOCK, per_iteration, CacheRead("outer", "B")),
    "read_of_an_assumption": Refusal(codes.NOT_IN_BLOCK, assuming, CacheRead("known", "A")),
    "write_in_place": Refusal(claims.UNDEFINED_READ, in_place, CacheWrite("more", "A")),
    "write_that_is_read_too_soon": Refusal(claims.UNDEFINED_READ, fused, CacheWrite("first", "B")),
    "reindex_root": Refusal(codes.NO_ITERATORS, two_stages, Reindex("root", "B")),
    "reindex_of_another_block": Refusal(codes.NOT_IN_BLOCK, two_stages, Reindex("second", "A")),
    "reindex_of_an_assumption": Refusal(codes.NOT_IN_BLOCK, assuming, Reindex("known", "A")),
    "reindex_two_places": Refusal(codes.SEVERAL_ACCESSES, two_places, Reindex("stencil", "A")),
    "reindex_by_an_outer_loop": Refusal(codes.NO_ITERATORS, two_places, Reindex("by_loop", "A")),
    "reindex_by_an_inner_loop": Refusal(codes.NO_ITERATORS, two_places, Reindex("window", "A")),
    "compact_parameter": Refusal(codes.NOT_TEMPORARY, two_stages, CompactBuffer("A")),
    "compact_aliases": Refusal(codes.ALIASES, views, CompactBuffer("C")),
    "compact_waiting": Refusal(codes.NOT_TEMPORARY, waiting, CompactBuffer("B")),
    "double_parameter": Refusal(codes.NOT_TEMPORARY, two_stages, InjectDoubleBuffer("first", "A", "i")),
    "double_aliases": Refusal(codes.ALIASES, views, InjectDoubleBuffer("copy", "C", "i")),
    "double_inside": Refusal(codes.LOOP_OUTSIDE, per_iteration, InjectDoubleBuffer("outer", "B", "i")),
    "double_outside": Refusal(codes.LOOP_OUTSIDE, per_iteration, InjectDoubleBuffer("outer", "D", "i")),
    "double_unused": Refusal(codes.NOT_IN_BLOCK, per_iteration, InjectDoubleBuffer("last", "B", "i")),
    "double_unknown_loop": Refusal(codes.NO_LOOP, per_iteration, InjectDoubleBuffer("outer", "D", "k")),
    "decompose_no_choice": Refusal(codes.NO_PADS, copy, DecomposePadding("copy", "i")),
    "decompose_root": Refusal(codes.NO_PADS, pads, DecomposePadding("root", 0)),
    "decompose_by_data": Refusal(codes.NO_PADS, pads, DecomposePadding("by_data", "i")),
    "decompose_two_loads": Refusal(codes.NO_PADS, pads, DecomposePadding("of_two", "i")),
    "decompose_nothing": Refusal(codes.NO_PADS, pads, DecomposePadding("of_nothing", "i")),
    "decompose_reduction": Refusal(codes.NO_PADS, running_sum, DecomposePadding("sum", "i")),
    "einsum_arity": Refusal(codes.NO_EINSUM, running_sum, PadEinsum("sum", (4,))),
    "einsum_root": Refusal(codes.NO_ITERATORS, running_sum, PadEinsum("root", (4,))),
    "einsum_of_an_assumption": Refusal(codes.NO_EINSUM, assuming, PadEinsum("known", (3,))),
    "einsum_zero": Refusal(codes.NO_EINSUM, running_sum, PadEinsum("sum", (4, 0))),
    "einsum_window": Refusal(codes.NO_EINSUM, lambda: small("conv2d_nhwc"), PadEinsum("conv2d_nhwc", (1, 4, 1, 1, 1, 1, 1))),
    "einsum_among_others": Refusal(codes.LOOP_NEST, fused, PadEinsum("first", (4,))),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, golden: Golden) -> None:
    """Each is refused with its code and its words, and leaves the schedule as it was."""
    refusal = REFUSALS[name]
    schedule = Schedule(refusal.func())
    with pytest.raises(IllegalTransform) as refused:
        schedule.apply(refusal.step)
    assert refused.value.diagnostics[0].code == refusal.code
    assert schedule.steps == ()
    golden(f"refusals/caching_{name}.txt", f"{refused.value}\n")


@pytest.mark.parametrize("step", [refusal.step for refusal in REFUSALS.values()])
def test_options_stand_in_a_trace(step: Pass) -> None:
    """A step is what its name and its options as JSON data say."""
    assert PASSES[step.primitive] is type(step)
    assert type(step).from_arguments(step.arguments()) == step


@pytest.mark.parametrize(("primitive", "arguments", "words"), [
    ("cache_read", {"block": "second"}, "needs the argument 'buffer'"),
    ("cache_write", {"block": "first", "buffer": "B", "scope": ""}, "argument 'scope' is '', a name is expected"),
    ("reindex", {"block": "first", "buffer": "B", "axis": 0}, "has no argument 'axis'"),
    ("inject_double_buffer", {"block": "first", "buffer": "B", "loop": 1.5}, "argument 'loop' is 1.5"),
    ("pad_einsum", {"block": "first", "padding": [4, "4"]}, "argument 'padding' is"),
])  # fmt: skip
def test_wrong_options_are_named(primitive: str, arguments: dict[str, object], words: str) -> None:
    """A missing, unknown or ill-typed option is refused by name."""
    with pytest.raises(LayoutproofError, match=words):
        PASSES[primitive].from_arguments(arguments)
