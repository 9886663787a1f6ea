"""`vectorize_loop`: what loops become, what they refuse, and that the result is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import NAMES, assert_same_results, small
from tests.random.vector_loops import RandomLoops
from tests.shares import one_in, some

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.expr import Expr
from layoutproof.ir.node import Node
from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.stmt import BufferStore, For, ForKind, Stmt
from layoutproof.ir.visit import map_children, walk
from layoutproof.lowering.lower.flatten import FlattenBuffer
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.vectors import lanes
from layoutproof.lowering.vectors.vectorize import VectorizeLoop
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.faults.vacuity import CLAIM as RUNS
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

# name -> a function's body over A, B [4, 8] float32 and n, and what it becomes.
ACCEPTED = {
    "copy": (
        "for i in range(4):\n    for j in T.vectorized(8):\n        B[i, j] = A[i, j]",
        "for i in range(4):\n    B[i, T.Ramp(0, 1, 8)] = A[i, T.Ramp(0, 1, 8)]",
    ),
    "part_of_a_row": (
        "for i in range(4):\n    for j in T.vectorized(4, 8):\n        B[i, j] = A[i, j - 4] + T.float32(1)",
        "for i in range(4):\n    B[i, T.Ramp(4, 1, 4)] = A[i, T.Ramp(0, 1, 4)] + T.Broadcast(T.float32(1), 4)",
    ),
    "strides": (
        "for i in range(4):\n    for j in T.vectorized(4):\n        B[i, 2*j] = A[i, 7 - 2*j]",
        "for i in range(4):\n    B[i, T.Ramp(0, 2, 4)] = A[i, T.Ramp(7, -2, 4)]",
    ),
    "no_ramp": (
        "for j in T.vectorized(8):\n    B[0, j] = A[0, j // 2]",
        "B[0, T.Ramp(0, 1, 8)] = A[0, T.Ramp(0, 1, 8) // T.Broadcast(2, 8)]",
    ),
    "one_value_for_all": (
        "for j in T.vectorized(8):\n    B[1, j] = T.exp(A[0, 0])",
        "B[1, T.Ramp(0, 1, 8)] = T.Broadcast(T.exp(A[0, 0]), 8)",
    ),
    "reduction_outside": (
        "for k in range(4):\n    for j in T.vectorized(8):\n        B[0, j] = B[0, j] + A[k, j]",
        "for k in range(4):\n    B[0, T.Ramp(0, 1, 8)] = B[0, T.Ramp(0, 1, 8)] + A[k, T.Ramp(0, 1, 8)]",
    ),
    "loop_inside": (
        "for j in T.vectorized(8):\n    for k in range(4):\n        B[k, j] = A[k, j]",
        "for k in range(4):\n    B[k, T.Ramp(0, 1, 8)] = A[k, T.Ramp(0, 1, 8)]",
    ),
    "two_stores": (
        "for j in T.vectorized(8):\n    B[0, j] = A[0, j]\n    B[1, j] = B[0, j] * A[1, j]",
        (
            "B[0, T.Ramp(0, 1, 8)] = A[0, T.Ramp(0, 1, 8)]\n"
            "B[1, T.Ramp(0, 1, 8)] = B[0, T.Ramp(0, 1, 8)] * A[1, T.Ramp(0, 1, 8)]"
        ),
    ),
    "let": (
        "for j in T.vectorized(8):\n    x: T.float32 = A[0, j]\n    B[0, j] = x * x",
        "x: T.let[T.float32x8] = A[0, T.Ramp(0, 1, 8)]\nB[0, T.Ramp(0, 1, 8)] = x * x",
    ),
    "select": (
        "for j in T.vectorized(8):\n    B[0, j] = T.Select(j < 3, A[0, j], T.float32(0))",
        (
            "B[0, T.Ramp(0, 1, 8)] = T.Select(T.Ramp(0, 1, 8) < T.Broadcast(3, 8), A[0, T.Ramp(0, 1, 8)], "
            "T.Broadcast(T.float32(0), 8))"
        ),
    ),
    "one_iteration": ("for j in T.vectorized(1):\n    B[0, j] = A[0, j]", "B[0, 0] = A[0, 0]"),
    "branch_for_all": (
        "for i in range(4):\n    for j in T.vectorized(8):\n        if i < 2:\n            B[i, j] = A[i, j]",
        "for i in range(4):\n    if i < 2:\n        B[i, T.Ramp(0, 1, 8)] = A[i, T.Ramp(0, 1, 8)]",
    ),
}

# name -> a body that has a part without lanes, and what it becomes lane after lane.
REFUSED = {
    "branch": (
        "for j in T.vectorized(8):\n    if j < 5:\n        B[0, j] = A[0, j]",
        "for j in range(8):\n    if j < 5:\n        B[0, j] = A[0, j]",
    ),
    "one_element": (
        "for j in T.vectorized(8):\n    B[0, j] = A[0, j]\n    B[1, 0] = A[0, 0]",
        "B[0, T.Ramp(0, 1, 8)] = A[0, T.Ramp(0, 1, 8)]\nfor j in range(8):\n    B[1, 0] = A[0, 0]",
    ),
    "index_before_the_last": (
        "for j in T.vectorized(4):\n    B[j, 0] = A[0, j]",
        "for j in range(4):\n    B[j, 0] = A[0, j]",
    ),
    "lazy_load": (
        "for j in T.vectorized(8):\n    B[0, j] = T.if_then_else(j < 5, A[0, j], T.float32(0))",
        "for j in range(8):\n    B[0, j] = T.if_then_else(j < 5, A[0, j], T.float32(0))",
    ),
    "lazy_division": (
        (
            "for j in T.vectorized(8):\n    B[0, j] = T.Select(T.if_then_else(j > 0, 8 // j, 9) > 2, A[0, j], "
            "T.float32(0))"
        ),
        "for j in range(8):\n    B[0, j] = T.Select(T.if_then_else(j > 0, 8 // j, 9) > 2, A[0, j], T.float32(0))",
    ),
    "extent": (
        "for j in T.vectorized(n):\n    B[0, j % 8] = A[0, j % 8]",
        "for j in range(n):\n    B[0, j % 8] = A[0, j % 8]",
    ),
    "nested": (
        "for i in T.vectorized(4):\n    for j in T.vectorized(8):\n        B[i, j] = A[i, j]",
        "for i in range(4):\n    B[i, T.Ramp(0, 1, 8)] = A[i, T.Ramp(0, 1, 8)]",
    ),
    "inner_range": (
        "for j in T.vectorized(4):\n    for k in range(j):\n        B[k, j] = A[k, j]",
        "for j in range(4):\n    for k in range(j):\n        B[k, j] = A[k, j]",
    ),
    "memory_inside": (
        (
            "for j in T.vectorized(4):\n    with T.decl_buffer((1,), 'float32') as C:\n        C[0] = A[0, j]\n"
            "        B[0, j] = C[0]"
        ),
        (
            "for j in range(4):\n    with T.decl_buffer((1,), 'float32') as C:\n        C[0] = A[0, j]\n"
            "        B[0, j] = C[0]"
        ),
    ),
    "branch_in_a_let": (
        "for j in T.vectorized(4):\n    x: T.float32 = A[0, j]\n    if x < T.float32(0):\n        B[0, j] = x",
        "for j in range(4):\n    x: T.float32 = A[0, j]\n    if x < T.float32(0):\n        B[0, j] = x",
    ),
    "vector_elements": (
        (
            "V = T.decl_buffer((8,), 'float32x4', data=A.data)\nfor j in T.vectorized(8):\n"
            "    V[j] = T.Broadcast(T.float32(0), 4)"
        ),
        (
            "V = T.decl_buffer((8,), 'float32x4', data=A.data)\nfor j in range(8):\n"
            "    V[j] = T.Broadcast(T.float32(0), 4)"
        ),
    ),
    "extern_call": (
        "for j in T.vectorized(4):\n    T.evaluate(T.call_extern('int32', 'tick', j))",
        "for j in range(4):\n    T.evaluate(T.call_extern('int32', 'tick', j))",
    ),
}


def function(body: str) -> PrimFunc:
    """A function over A and B [4, 8], and n where it stands in the body, with these lines as its body."""
    number = ", n: T.int32" if "(n)" in body else ""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return program(f"""def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32"){number}):
    T.func_attr({{"tirx.noalias": True}})
{lines}""")


def assert_proved(rewrite_of: VectorizeLoop, func: PrimFunc) -> PrimFunc:
    """The pass's result: proved, as text the same, and without a vectorized loop."""
    rewrite = rewrite_of.propose(func)
    # Loops whose lanes race, or that write no parameter, have nothing to be proved of: what there is to ask of each
    # statement is proved.
    asked = [v for v in prove_rewrite(rewrite).verdicts if v.claim != RUNS]
    bad = [v for v in asked if v.status is not Status.PROVED]
    assert not bad, f"{print_func(rewrite.new)}\n{bad}"
    assert parse_rewrite(rewrite_text(rewrite)) == rewrite
    assert not any(isinstance(n, For) and n.kind is ForKind.VECTORIZED for n in walk(rewrite.new.body))
    assert rewrite_of.propose(rewrite.new).new == rewrite.new
    return rewrite.new


@pytest.mark.parametrize("name", ACCEPTED)
def test_loops_become_lanes(name: str) -> None:
    """A statement for all iterations: ramps in the last index, broadcasts, vector arithmetic; proved and the same in
    the interpreter.
    """
    before, after = ACCEPTED[name]
    new = assert_proved(VectorizeLoop(), function(before))
    assert print_func(new) == print_func(function(after))
    assert_same_results(function(before), new)


@pytest.mark.parametrize("name", REFUSED)
def test_statements_without_lanes_run_lane_after_lane(name: str) -> None:
    """Where that is asked for, the smallest statement around what has no lanes becomes a serial loop; the rest has
    lanes.
    """
    before, after = REFUSED[name]
    assert print_func(VectorizeLoop(scalarize=True).propose(function(before)).new) == print_func(function(after))


@pytest.mark.parametrize("name", sorted(set(REFUSED) - {"extern_call"}))
def test_lane_after_lane_is_proved(name: str) -> None:
    """Serial lanes do what the vectorized loop does."""
    assert_proved(VectorizeLoop(scalarize=True), function(REFUSED[name][0]))


def test_blocks_are_lowered_first() -> None:
    """Lanes are given to loops and accesses."""
    func = program("""def main(A: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        with T.sblock("zero"):
            v = T.axis.spatial(8, i)
            A[v] = T.float32(0)
""")
    with pytest.raises(LayoutproofError, match="lower_blocks goes first"):
        VectorizeLoop().propose(func)
    schedule = Schedule(func)
    schedule.lower_blocks()
    schedule.vectorize_loop()
    assert "A[T.Ramp(0, 1, 8)] = T.Broadcast(T.float32(0.0), 8)" in schedule.script()


def test_lanes_that_read_their_neighbours_are_not_proved() -> None:
    """All lanes are loaded before one is stored: a scan is another program then, and is refused."""
    schedule = Schedule(function("for j in T.vectorized(7):\n    B[0, j + 1] = B[0, j]"))
    with pytest.raises(IllegalTransform, match="finds another value than before"):
        schedule.vectorize_loop()


def wrong(func: PrimFunc, before: str, after: str) -> PrimFunc:
    """The function with a piece of its text replaced."""
    text = print_func(func)
    assert text.count(before) == 1
    return loads(text.replace(before, after))


@pytest.mark.parametrize(
    "before, after",
    [
        ("B[i, T.Ramp(0, 1, 8)] =", "B[i, T.Ramp(7, -1, 8)] ="),
        ("= A[i, T.Ramp(0, 1, 8)]", "= A[i, T.Ramp(7, -1, 8)]"),
        ("T.float32(1.0), 8)", "T.float32(2.0), 8)"),
        ("= A[i, T.Ramp(0, 1, 8)]", "= T.Broadcast(A[i, 0], 8)"),
        ("range(4)", "range(3)"),
    ],
)
def test_wrong_lanes_are_refused(before: str, after: str) -> None:
    """A mistake in the pass is seen by the checker: lanes the other way round, another value, one value for all, a row
    too few.
    """
    func = function("for i in range(4):\n    for j in T.vectorized(8):\n        B[i, j] = A[i, j] + T.float32(1)")
    rewrite = VectorizeLoop().propose(func)
    verdicts = check_rewrite(replace(rewrite, new=wrong(rewrite.new, before, after)))
    assert any(v.status in (Status.REFUTED, Status.UNKNOWN) for v in verdicts)


def test_a_wrong_witness_is_refused() -> None:
    """The lanes counted from 1 are not the iterations."""
    rewrite = VectorizeLoop().propose(function("for j in T.vectorized(8):\n    B[0, j] = A[0, j]"))
    (claim,) = rewrite.witness.instances
    assert claim.instances is not None
    shifted = replace(claim, instances=replace(claim.instances, outputs=tuple(o + 1 for o in claim.instances.outputs)))
    verdicts = prove_rewrite(replace(rewrite, witness=replace(rewrite.witness, instances=(shifted,)))).verdicts
    assert any(v.status is Status.UNKNOWN for v in verdicts)


def test_a_symbolic_number_of_rows_is_proved_flat() -> None:
    """Rows of 8 in lanes for every number of rows, in two dimensions and flattened."""
    func = program("""def main(A: T.Buffer(("n", 8), "float32"), B: T.Buffer(("n", 8), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        for j in T.vectorized(8):
            B[i, j] = A[i, j] * T.float32(2)
""")
    assert_proved(VectorizeLoop(), func)
    flat = FlattenBuffer().propose(func).new
    new = assert_proved(VectorizeLoop(), flat)
    assert_same_results(func, new, symbols={"n": 3})


@one_in(23)
@pytest.mark.parametrize("seed", some(range(60), 20))
def test_random_loops_in_lanes(seed: int) -> None:
    """Whatever stands in a vectorized loop, with an axis each or flat: proved, and the same bit for bit in the
    interpreter.
    """
    func = RandomLoops(seed).function()
    for each in (func, FlattenBuffer().propose(func).new):
        assert_same_results(func, assert_proved(VectorizeLoop(scalarize=True), each))


@one_in(24)
@pytest.mark.parametrize("name", NAMES)
def test_operators_in_lanes(name: str) -> None:
    """The innermost loops of the usual operators, lowered: what has lanes gets them, what sums into one element runs
    one by one.
    """

    def innermost(node: Node) -> Node:
        if isinstance(node, For) and not any(isinstance(n, For) for n in walk(node.body)):
            return replace(node, kind=ForKind.VECTORIZED)
        return map_children(node, lambda n: innermost(n) if isinstance(n, Stmt) else n)

    lowered = Schedule(small(name)).lower()
    body = innermost(lowered.body)
    assert isinstance(body, Stmt)
    new = assert_proved(VectorizeLoop(scalarize=True), lowered.with_body(body))
    lanes_found = any(isinstance(n, BufferStore) and n.value.dtype.lanes > 1 for n in walk(new.body))
    assert lanes_found is (
        name in {"bias_add", "conv2d_nhwc", "double_int", "exp1d", "relu_nhwc", "reshape", "softmax", "transpose"}
    )


def test_the_table_knows_every_expression() -> None:
    """No node type is forgotten: an expression that is met has a rule."""

    def below(kind: type[Expr]) -> set[type[Expr]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    # By name: a class that was given slots is there twice for a while.
    known = {kind.__name__ for kind in below(Expr) if kind.__module__.startswith("layoutproof.ir.")}
    assert known - {"Expr"} == {kind.__name__ for kind in lanes.HANDLED}


def test_stores_keep_their_order() -> None:
    """The witness pairs stores by number, so each store of the old program is one of the new one."""
    for seed in range(20):
        func = RandomLoops(seed).function()
        rewrite = VectorizeLoop(scalarize=True).propose(func)
        stores = [
            [n.buffer.name for n in walk(f.body) if isinstance(n, BufferStore)] for f in (rewrite.old, rewrite.new)
        ]
        assert stores[0] == stores[1]
        assert [m.old_store for m in rewrite.witness.instances] == list(range(len(stores[0])))


def test_the_pass_reads_back_from_its_arguments() -> None:
    """The trace form is the pass."""
    for each in (VectorizeLoop(), VectorizeLoop(scalarize=True)):
        assert VectorizeLoop.from_arguments(each.arguments()) == each
