"""`rewrite_ramp_as_pointer_cast` and `vector_type_rewrite`: whole vectors in memory, where alignment and the target
allow (fact 80).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lowering.programs import program
from tests.lowering.small_operators import assert_same_results
from tests.random.vector_loops import RandomLoops
from tests.shares import one_in

from layoutproof.ir.notations.rewrite_text import parse_rewrite, rewrite_text
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.ir.wellformed import check_wellformed
from layoutproof.lowering.lower.flatten import FlattenBuffer, LowerBlocks
from layoutproof.lowering.lower.simplify import Simplify
from layoutproof.lowering.passes.base import Pass
from layoutproof.lowering.schedule.schedule import IllegalTransform, Schedule
from layoutproof.lowering.vectors.ramps import TARGETS, RewriteRampAsPointerCast
from layoutproof.lowering.vectors.type_rewrite import VectorTypeRewrite
from layoutproof.lowering.vectors.vectorize import VectorizeLoop
from layoutproof.verify.checker import prove_rewrite
from layoutproof.verify.faults.vacuity import CLAIM as RUNS
from layoutproof.verify.replay.refute import check_rewrite
from layoutproof.verify.verdict.verdict import Status

CAST, TYPE = RewriteRampAsPointerCast("opencl"), VectorTypeRewrite("opencl")
COPY = "for i in range(4):\n    B[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]"


def function(body: str, extent: str = "16", attrs: str = '"tirx.noalias": True', align: int = 0) -> PrimFunc:
    """A function over A and B of float32 with these lines as its body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    promise = f", align={align}" if align else ""
    return program(f"""def main(a: T.handle, b: T.handle):
    T.func_attr({{{attrs}}})
    A = T.match_buffer(a, ({extent},), "float32"{promise})
    B = T.match_buffer(b, ({extent},), "float32"{promise})
{lines}""")


def rewritten(each: Pass, func: PrimFunc) -> PrimFunc:
    """The pass's result: proved, well-formed, as text the same, the calling convention kept, and left alone a second
    time.
    """
    rewrite = each.propose(func)
    bad = [v for v in prove_rewrite(rewrite).verdicts if v.status is not Status.PROVED and v.claim != RUNS]
    assert not bad, f"{print_func(rewrite.new)}\n{bad}"
    assert parse_rewrite(rewrite_text(rewrite)) == rewrite
    assert not check_wellformed(rewrite.new)
    assert rewrite.new.buffer_map == func.buffer_map
    assert each.propose(rewrite.new).new == rewrite.new
    return rewrite.new


def lines_of(func: PrimFunc) -> list[str]:
    """The printed lines of the body, without indentation, its attributes and parameters left out."""
    lines = [line.strip() for line in print_func(func).splitlines()]
    return [
        line
        for line in lines
        if line and not line.startswith(("#", "@", "def ", "T.func_attr", "A = T.match", "B = T.match"))
    ]


def test_copies_of_four_become_copies_of_vectors() -> None:
    """Fact 80: `A[i*4:i*4+4]` copies become accesses of float32x4 by a scalar index, through a view or by the type of
    the memory.
    """
    assert lines_of(rewritten(CAST, function(COPY))) == [
        'A_x4 = T.decl_buffer((4,), "float32x4", data=A.data)',
        'B_x4 = T.decl_buffer((4,), "float32x4", data=B.data)',
        "for i in range(4):",
        "B_x4[i] = A_x4[i]",
    ]
    assert lines_of(rewritten(TYPE, function(COPY))) == lines_of(rewritten(CAST, function(COPY)))


def test_temporaries_are_allocated_as_vectors() -> None:
    """The type of what is allocated changes in its place; a view is another name for it."""
    body = """C = T.decl_buffer((16,), "float32")
for i in range(4):
    C[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]
for i in range(4):
    B[T.Ramp(12 - i*4, 1, 4)] = C[T.Ramp(i*4, 1, 4)]"""
    lowered = LowerBlocks().propose(function(body)).new
    typed, cast = rewritten(TYPE, lowered), rewritten(CAST, lowered)
    assert 'C = T.alloc_buffer((4,), "float32x4")' in lines_of(typed)
    assert "B_x4[3 - i] = C[i]" in lines_of(typed) or "B_x4[i * -1 + 3] = C[i]" in lines_of(typed)
    assert {'C = T.alloc_buffer((16,), "float32")', 'C_x4 = T.decl_buffer((4,), "float32x4", data=C.data)'} <= set(
        lines_of(cast)
    )
    for new in (typed, cast):
        assert_same_results(lowered, new)


def test_mixed_accesses_keep_scalars() -> None:
    """Fact 80: where some accesses are scalar the memory keeps its type; a cast serves those that are whole vectors."""
    func = function(COPY + "\nB[3] = A[5]")
    assert rewritten(TYPE, func) == func
    cast = rewritten(CAST, func)
    assert "B_x4[i] = A_x4[i]" in lines_of(cast) and "B[3] = A[5]" in lines_of(cast)
    assert_same_results(func, cast)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(16):\n    B[i] = A[i]",  # scalars
        "for i in range(4):\n    B[T.Ramp(i, 4, 4)] = A[T.Ramp(i, 4, 4)]",  # stride 4
        "for i in range(3):\n    B[T.Ramp(i*4 + 1, 1, 4)] = A[T.Ramp(i*4 + 2, 1, 4)]",  # not at a multiple
        "for i in range(5):\n    B[T.Ramp(i*3, 1, 3)] = A[T.Ramp(i*3, 1, 3)]",  # no vectors of 3 in memory
        "for i in range(4):\n    B[T.Ramp(i*4, 1, 4) // T.Broadcast(1, 4)] = T.Broadcast(T.float32(0), 4)",  # no ramp
    ],
)
def test_other_accesses_stay(body: str) -> None:
    """Fact 80: scalar accesses are unchanged; so are ramps with steps, off a multiple, or of a length that is no
    vector's.
    """
    func = function(body)
    assert rewritten(CAST, func) == func and rewritten(TYPE, func) == func


def test_two_lengths_of_one_memory() -> None:
    """Views of two lengths stand side by side; the memory itself has no one type, and keeps its own."""
    body = """for i in range(2):
    B[T.Ramp(i*8, 1, 8)] = A[T.Ramp(i*8, 1, 8)]
for i in range(4):
    B[T.Ramp(i*4, 1, 4)] = B[T.Ramp(i*4, 1, 4)]"""
    cast = rewritten(CAST, function(body))
    assert {"B_x8[i] = A_x8[i]", "B_x4[i] = B_x4[i]"} <= set(lines_of(cast))
    typed = rewritten(TYPE, function(body))
    assert "B[T.Ramp(i * 8, 1, 8)] = A_x8[i]" in lines_of(typed)


def test_a_memory_whose_address_is_used_keeps_its_type() -> None:
    """Fact 80: `address_of` and calls that take the pointer see scalars."""
    func = function(COPY + '\nT.evaluate(T.call_extern("int32", "look", A.data))')
    typed = TYPE.propose(func).new
    assert 'B_x4 = T.decl_buffer((4,), "float32x4", data=B.data)' in lines_of(typed)
    assert "B_x4[i] = A[T.Ramp(i * 4, 1, 4)]" in lines_of(typed)


@pytest.mark.parametrize("align, casts", [(0, False), (4, False), (8, False), (16, True), (64, True)])
def test_parameters_of_c_are_aligned_as_promised(align: int, casts: bool) -> None:
    """A caller of C owes the alignment of an element alone; vectors need a promise of more. What is allocated is
    aligned.
    """
    func = function(COPY, align=align)
    cast = rewritten(RewriteRampAsPointerCast("c"), func)
    assert ("B_x4[i] = A_x4[i]" in lines_of(cast)) is casts and (cast != func) is casts
    assert (rewritten(VectorTypeRewrite("c"), func) != func) is casts


def test_a_rest_behind_the_last_vector_is_not_seen() -> None:
    """18 elements are 4 vectors and a rest: a view sees the vectors; the memory itself is no whole number of them."""
    func = function(COPY, extent="18")
    assert 'A_x4 = T.decl_buffer((4,), "float32x4", data=A.data)' in lines_of(rewritten(CAST, func))
    assert rewritten(TYPE, func) == func


def test_symbolic_extents() -> None:
    """Of n elements n // 4 vectors are seen; 4 * n elements are n vectors, and become them."""

    def rows(extent: str, count: str) -> PrimFunc:
        return program(f"""def main(A: T.Buffer(({extent},), "float32"), B: T.Buffer(({extent},), "float32")):
    n = T.int32()
    T.func_attr({{"tirx.noalias": True}})
    for i in range({count}):
        B[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]
""")

    some = rewritten(CAST, rows('"n"', "n // 4"))
    assert 'A_x4 = T.decl_buffer((n // 4,), "float32x4", data=A.data)' in lines_of(some)
    whole = rewritten(TYPE, rows("4 * n", "n"))
    assert 'A_x4 = T.decl_buffer((n,), "float32x4", data=A.data)' in lines_of(whole)


def test_targets_without_casts_get_types_never_a_cast() -> None:
    """Where pointers cannot be cast the pass is refused by name; the rewrite of types serves what it can, and the rest
    keeps its ramps.
    """
    schedule = Schedule(function(COPY + "\nB[3] = A[5]"))
    with pytest.raises(IllegalTransform, match="vulkan"):
        schedule.rewrite_ramp_as_pointer_cast("vulkan")
    schedule.vector_type_rewrite("vulkan")
    assert (
        "float32x4" not in schedule.script() and "B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]" in schedule.script()
    )
    assert [name for name, target in TARGETS.items() if not target.pointer_casts] == ["vulkan"]


@pytest.mark.parametrize(
    "before, after",
    [
        ("A_x4[i]", "A_x4[3 - i]"),
        ("A_x4[i]", "A_x4[0]"),
        ("B_x4[i] =", "B_x4[i // 2] ="),
        (
            'A_x4 = T.decl_buffer((4,), "float32x4", data=A.data)',
            'A_x4 = T.decl_buffer((3,), "float32x4", data=A.data, elem_offset=1)',
        ),
        (
            'A_x4 = T.decl_buffer((4,), "float32x4", data=A.data)',
            'A_x4 = T.decl_buffer((4,), "float32x4", data=B.data)',
        ),
    ],
)
def test_wrong_views_are_refused(before: str, after: str) -> None:
    """A mistake in the pass is seen by the checker: another vector, another place, another memory."""
    rewrite = CAST.propose(function(COPY))
    text = print_func(rewrite.new)
    assert text.count(before) == 1
    verdicts = check_rewrite(replace(rewrite, new=loads(text.replace(before, after))))
    assert any(v.status in (Status.REFUTED, Status.UNKNOWN) for v in verdicts)


@one_in(10)
@pytest.mark.parametrize("pad", [0.0, "T.undef()"])
def test_channels_that_are_padded_are_vectors(pad: str | float) -> None:
    """14 channels, four at a time, computed on the padding too: whole vectors through views, proved with the padding's
    contract.
    """
    schedule = relaid("3", 14, pad)
    schedule.apply(CAST)
    assert "C_x4[j_0 * 3 + i] = A_flat_x4[j_0 * 3 + i] * T.Broadcast(T.float32(2.0), 4)" in lines_of(schedule.func)
    assert all(step.status is Status.PROVED for step in schedule.steps)
    schedule.build()


@one_in(4)
@pytest.mark.parametrize("each", [CAST, TYPE], ids=["cast", "type"])
def test_channels_of_any_number_of_rows(each: Pass) -> None:
    """The same for every number of rows: the vectors are found, and proved."""
    schedule = relaid("n")
    rewrite = each.propose(schedule.func)
    name = "C_x4" if each is CAST else "C"
    assert any(
        line.startswith(f'{name}[T.Cast("int64", i) + T.Cast("int64", j_0) * T.Cast("int64", n)] = ')
        for line in lines_of(rewrite.new)
    )
    assert_same_results(schedule.original, rewrite.new, symbols={"n": 3})
    undecided = [v.claim.text for v in prove_rewrite(rewrite).verdicts if v.status is not Status.PROVED]
    assert undecided == []


def test_wrong_types_are_refused() -> None:
    """The same of memory that became vectors: vectors in another order, one too few, one lost."""
    body = """C = T.decl_buffer((16,), "float32")
for i in range(4):
    C[T.Ramp(i*4, 1, 4)] = A[T.Ramp(i*4, 1, 4)]
for i in range(4):
    B[T.Ramp(i*4, 1, 4)] = C[T.Ramp(i*4, 1, 4)]"""
    rewrite = TYPE.propose(LowerBlocks().propose(function(body)).new)
    text = print_func(rewrite.new)
    for before, after in (
        ("C[i] = A_x4[i]", "C[3 - i] = A_x4[i]"),
        ("B_x4[i] = C[i]", "B_x4[i] = C[i // 2]"),
        ('C = T.alloc_buffer((4,), "float32x4")', 'C = T.alloc_buffer((3,), "float32x4")'),
    ):
        assert text.count(before) == 1
        verdicts = check_rewrite(replace(rewrite, new=loads(text.replace(before, after))))
        assert any(v.status in (Status.REFUTED, Status.UNKNOWN) for v in verdicts)


def relaid(rows: str = "14", columns: int = 8, pad: str | float | None = None) -> Schedule:
    """NCHW4c in small: three buffers of four-channel blocks, lowered and flat, the channels of a block in lanes."""
    names = "    n = T.int32()\n" if rows == "n" else ""
    shape = f'("n", {columns})' if names else f"({rows}, {columns})"
    func = program(f"""def main(A: T.Buffer({shape}, "float32"), B: T.Buffer({shape}, "float32")):
{names}    T.func_attr({{"tirx.noalias": True}})
    C = T.sblock_alloc_buffer(({rows}, {columns}), "float32")
    for i, j in T.grid({rows}, {columns}):
        with T.sblock("double"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = A[v, w] * T.float32(2)
    for i, j in T.grid({rows}, {columns}):
        with T.sblock("add"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = C[v, w] + A[v, w]
""")
    schedule = Schedule(func)
    for block, buffer in (("double", "A"), ("double", "C"), ("add", "B")):
        schedule.transform_layout(block, buffer, "lambda i, j: [j//4, i, j%4]", pad)
    for block in ("double", "add"):
        schedule.split(block, "j", [None, 4])
        if pad is not None:
            schedule.remove_branching_through_overcompute(block)
        schedule.vectorize(block, 2)
    for step in (LowerBlocks(), Simplify(), FlattenBuffer(), Simplify()):
        schedule.apply(step)
    schedule.vectorize_loop()
    return schedule


@one_in(4)
@pytest.mark.parametrize("each", [CAST, TYPE], ids=["cast", "type"])
def test_channels_of_a_relaid_buffer_are_vectors(each: Pass) -> None:
    """The case that all this is for: a layout of four channels together, each access one vector."""
    schedule = relaid()
    schedule.apply(each)
    assert_same_results(schedule.original, schedule.func)
    name = "{}_x4" if each is CAST else "{}"
    stored = [line for line in lines_of(schedule.func) if line.startswith(name.format("B_flat") + "[")]
    place = "[j_0_1 * 14 + i]"
    assert stored == [f"{name.format('B_flat')}{place} = {name.format('C')}{place} + {name.format('A_flat')}{place}"]
    assert all(step.status is Status.PROVED for step in schedule.steps)
    schedule.build()


@one_in(28)
@pytest.mark.parametrize("seed", range(30))
def test_random_loops_with_vectors_in_memory(seed: int) -> None:
    """Random loops, flat and in lanes: through views, and by type, they do the same bit for bit."""
    func = RandomLoops(seed).function()
    lanes = VectorizeLoop(scalarize=True).propose(FlattenBuffer().propose(func).new).new
    for each in (CAST, TYPE):
        assert_same_results(func, rewritten(each, lanes))


def test_from_blocks_to_a_kernel() -> None:
    """Layout, lowering, lanes and vectors in memory, each step proved; the kernel is compared with the interpreter when
    it is built.
    """
    func = program("""def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    C = T.sblock_alloc_buffer((6, 8), "float32")
    for i, j in T.grid(6, 8):
        with T.sblock("double"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(6):
        for j in T.vectorized(8):
            with T.sblock("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[vi, vj] + A[vi, vj]
""")
    schedule = Schedule(func)
    for step in (LowerBlocks(), FlattenBuffer(), Simplify()):
        schedule.apply(step)
    schedule.vectorize_loop()
    schedule.rewrite_ramp_as_pointer_cast("opencl")
    assert "B_flat_x8[i] = C_x8[i] + A_flat_x8[i]" in schedule.script()
    assert all(s.status is Status.PROVED for s in schedule.steps)
    assert Schedule.replay(func, schedule.trace).func == schedule.func
    schedule.build()


@pytest.mark.parametrize("each", [CAST, TYPE, RewriteRampAsPointerCast(), VectorTypeRewrite()])
def test_the_passes_read_back_from_their_arguments(each: Pass) -> None:
    """The trace form is the pass."""
    assert type(each).from_arguments(each.arguments()) == each
