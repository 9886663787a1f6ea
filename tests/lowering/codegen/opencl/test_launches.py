"""Where a function is cut into kernels, what their work items are, and what each is given."""

import pytest
from tests.lowering.codegen.opencl.programs import PLAIN, TEXTURE, access, compile_source, kernel_text, program, texture
from tests.lowering.codegen.programs import function, loop
from tests.shares import one_in

from layoutproof.ir.buffer import Buffer, BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Expr, IfThenElseExpr, IntImm, Var, const, equal
from layoutproof.ir.intrinsics import Assume
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, IfThenElse, Let, Stmt, seq
from layoutproof.lowering.codegen.calling_convention import Parameter
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.codegen.opencl.cl_helpers import READ_WRITE_IMAGES, Image, Launch
from layoutproof.lowering.schedule.schedule import Schedule


def sizes(launch: Launch, **values: int) -> tuple[int, ...]:
    """The global size in numbers."""
    return tuple(int(evaluate(size, values)) for size in launch.global_size)


def scalars(launch: Launch) -> list[str]:
    """The names of the numbers that a kernel is given."""
    return [a.name for a in launch.arguments if isinstance(a, Parameter)]


def filled(buffer: Buffer, value: Expr, kind: ForKind = ForKind.PARALLEL, extent: int = 4) -> Stmt:
    """`buffer[i] = value` in a loop."""
    return loop("i", extent, lambda i: BufferStore(buffer, (i,), value), kind)


A, B = (make_buffer(name, (4,), "float32") for name in "AB")
ONE = const(1.0, FLOAT32)


def nested(depth: int) -> PrimFunc:
    """A copy by `depth` parallel loops, of 2, 3, 4, ... iterations."""
    names, extents = "ijklm"[:depth], range(2, 2 + depth)
    shape = ", ".join(str(extent) for extent in extents)
    lines = [
        f"{'    ' * k}for {name} in T.parallel({extent}):"
        for k, (name, extent) in enumerate(zip(names, extents, strict=True))
    ]
    lines.append(f"{'    ' * depth}B[{', '.join(names)}] = A[{', '.join(names)}]")
    return program(f'A: T.Buffer(({shape},), "float32"), B: T.Buffer(({shape},), "float32")', "\n".join(lines))


@one_in(18)
@pytest.mark.parametrize(
    ("depth", "expected"), [(1, (2,)), (2, (3, 2)), (3, (4, 3, 2)), (4, (5, 4, 6)), (5, (6, 5, 24))]
)
def test_parallel_loops_are_work_items(depth: int, expected: tuple[int, ...]) -> None:
    """The innermost parallel loop is dimension 0; of more than three loops the outer ones share dimension 2."""
    source = emit_opencl(nested(depth))
    compile_source(source)
    (launch,) = source.launches
    assert sizes(launch) == expected
    assert launch.local_size is None
    assert "for (" not in source.text


@one_in(4)
def test_quotients_take_a_shared_dimension_apart() -> None:
    """Each of the loops that share a dimension finds its place in it."""
    text = kernel_text(nested(5))
    assert "const int i = (int)get_global_id(2) / (3 * 4);" in text
    assert "const int j = (int)get_global_id(2) / 4 % 3;" in text
    assert "const int k = (int)get_global_id(2) % 4;" in text


def test_shared_dimension_is_counted_in_the_index_type() -> None:
    """The product of the extents that share a dimension may pass 32 bits though no index does: it is long then."""
    a = make_buffer("A", (8,), "float32")
    body: Stmt = BufferStore(a, (const(0),), ONE)
    for k, extent in enumerate((2, 2, 65536, 65536)):
        body = For(Var(f"i{k}"), const(0), const(extent), ForKind.PARALLEL, body)
    assert emit_opencl(function("f", [a], body)).index_bits == 64


@one_in(4)
def test_statements_are_launched_one_after_the_other() -> None:
    """What one parallel statement wrote the next reads in another kernel; each names how it uses each buffer."""
    first = filled(A, ONE)
    second = loop("i", 4, lambda i: BufferStore(B, (i,), BufferLoad(A, (const(3) - i,))), ForKind.PARALLEL)
    source = emit_opencl(function("f", [A, B], seq(first, second)))
    compile_source(source)
    assert [launch.name for launch in source.launches] == ["f_0", "f_1"]
    assert [access(launch) for launch in source.launches] == [
        {"A": "write_only"},
        {"A": "read_only", "B": "write_only"},
    ]


def test_single_work_items_in_a_row_are_one_kernel() -> None:
    """Statements without parallel loops run one after the other in one work item; a parallel one ends that."""
    serial, parallel = filled(A, ONE, ForKind.SERIAL), filled(A, ONE)
    source = emit_opencl(function("f", [A], seq(serial, serial, parallel, serial)))
    assert [sizes(launch) for launch in source.launches] == [(1,), (4,), (1,)]


@one_in(4)
def test_an_image_is_not_written_and_read_by_one_of_them() -> None:
    """Two single work items that hand an image on are two kernels, so that neither needs it both ways."""
    source = emit_opencl(
        program(
            f"A: {PLAIN}, B: {PLAIN}",
            """
t = T.alloc_buffer((6, 8), "float32", scope="global.texture", axis_separators=[1])
for y, x in T.grid(6, 2):
    for c in T.vectorized(4):
        t[y, x * 4 + c] = A[y, x * 4 + c]
for y, x in T.grid(6, 2):
    for c in T.vectorized(4):
        B[y, x * 4 + c] = t[5 - y, x * 4 + c]
""",
        )
    )
    compile_source(source)
    assert [access(launch)["t"] for launch in source.launches] == ["write_only", "read_only"]
    assert source.extensions == ()
    (temporary,) = source.temporaries
    assert isinstance(temporary, Image) and (temporary.buffer.name, temporary.kind) == ("t", "image2d")


@one_in(4)
def test_image_read_and_written_by_one_kernel() -> None:
    """A kernel that needs an image both ways says so, and what it wrote is seen by what it reads later."""
    source = emit_opencl(
        program(f"B: {TEXTURE}", "for y in T.parallel(6):\n    B[y, T.ramp(0, 1, 4)] = B[y, T.ramp(4, 1, 4)]")
    )
    compile_source(source)
    assert source.extensions == (READ_WRITE_IMAGES,)
    assert access(source.launches[0]) == {"B": "read_write"}
    assert "atomic_work_item_fence" in source.text


def test_a_parallel_loop_below_a_serial_one_is_a_loop() -> None:
    """A serial loop around everything is one work item, whatever runs in parallel inside."""
    body = loop("k", 3, lambda k: filled(A, ONE))
    source = emit_opencl(function("f", [A], body))
    assert sizes(source.launches[0]) == (1,)
    assert source.text.count("for (") == 2


@one_in(4)
def test_names_around_statements_stand_in_each_kernel() -> None:
    """A name for a value and a condition are written into every kernel that needs them, and into no other."""
    n, v = Var("n"), Var("v")
    body = seq(
        loop("i", 4, lambda i: BufferStore(A, (i,), IfThenElseExpr(v < 3, ONE, const(2.0, FLOAT32))), ForKind.PARALLEL),
        filled(B, ONE),
        IfThenElse(n < 5, filled(B, ONE), filled(A, ONE)),
    )
    source = emit_opencl(function("f", [A, B], Let(v, n * 2, body), scalars=[n]))
    compile_source(source)
    assert [scalars(launch) for launch in source.launches] == [["n"], [], ["n"], ["n"]]
    texts = source.text.split("__kernel")[1:]
    assert ["const int v = " in text or "const long v = " in text for text in texts] == [True, False, False, False]
    assert "if (n < 5)" in texts[2] and "if (!(n < 5))" in texts[3]


def test_a_name_for_memory_that_is_written_belongs_to_one_kernel() -> None:
    """A value read before the parallel loops that overwrite it is read once: the whole statement is one work item."""
    v = Var("v", FLOAT32)
    overwritten = function("f", [A, B], Let(v, BufferLoad(A, (const(0),)), seq(filled(A, v), filled(B, v))))
    assert [sizes(launch) for launch in emit_opencl(overwritten).launches] == [(1,)]
    kept = function("f", [A, B], Let(v, BufferLoad(A, (const(0),)), seq(filled(B, v), filled(B, v))))
    assert [sizes(launch) for launch in emit_opencl(kept).launches] == [(4,), (4,)]
    overlapping = function("f", [A, B], kept.body, noalias=False)
    assert [sizes(launch) for launch in emit_opencl(overlapping).launches] == [(1,)]


def test_sizes_are_over_the_functions_symbols() -> None:
    """A symbolic extent is a size for the host to compute, and the kernel is given the numbers that it uses itself."""
    func = program(
        "a: T.handle, b: T.handle",
        """
A = T.match_buffer(a, (n, m), "float32")
B = T.match_buffer(b, (n, m), "float32")
for i in T.parallel(n):
    for j in T.parallel(m):
        B[i, j] = A[i, j]
""",
        symbols="n m",
    )
    (launch,) = emit_opencl(func).launches
    assert sizes(launch, n=5, m=7) == (7, 5)
    assert scalars(launch) == ["m"]


@one_in(4)
def test_loops_bound_to_threads_take_their_axes() -> None:
    """Blocks and threads are groups and their work items, in the dimensions that the axes name."""
    func = program(
        'A: T.Buffer((6, 2, 8), "float32"), B: T.Buffer((6, 2, 8), "float32")',
        """
for y in T.thread_binding(6, thread="blockIdx.y"):
    for z in T.thread_binding(2, thread="blockIdx.x"):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            B[y, z, x] = A[y, z, x]
""",
    )
    source = emit_opencl(Schedule(func).lower())
    compile_source(source)
    (launch,) = source.launches
    assert sizes(launch) == (16, 6)
    assert launch.local_size == (IntImm(8), IntImm(1))
    assert "const int threadIdx_x = (int)get_local_id(0);" in source.text
    assert "const int blockIdx_y = (int)get_group_id(1);" in source.text


@one_in(9)
def test_small_memory_is_a_work_items_own() -> None:
    """A small constant allocation is private; a large one is the item's part of a temporary, which has room for all
    items.
    """

    def body(size: int) -> PrimFunc:
        t = make_buffer("t", (size,), "float32")

        def item(i: Var) -> Stmt:
            inner = loop("k", size, lambda k: BufferStore(t, (k,), BufferLoad(A, (i,))))
            return Allocate(t, seq(inner, BufferStore(B, (i,), BufferLoad(t, (const(size - 1),)))))

        return function("f", [A, B], loop("i", 4, item, ForKind.PARALLEL))

    private = emit_opencl(body(16))
    compile_source(private)
    assert private.temporaries == () and "    float t[16];" in private.text
    shared = emit_opencl(body(1000))
    compile_source(shared)
    (temporary,) = shared.temporaries
    assert isinstance(temporary, Buffer) and [evaluate(extent, {}) for extent in temporary.shape] == [4000]
    assert "lp_work_item() * 1000" in shared.text


@one_in(4)
def test_temporaries_have_names_of_their_own() -> None:
    """Two allocations of one name, and one called like a parameter, are three temporaries; one that nothing uses is
    none.
    """
    first, second, third, unused = (
        make_buffer(name, (4,), "float32", data=Var(f"d{k}", B.data.dtype)) for k, name in enumerate("ttAu")
    )
    body = seq(
        *(Allocate(b, seq(filled(b, ONE), filled(B, BufferLoad(b, (const(0),))))) for b in (first, second, third))
    )
    source = emit_opencl(function("f", [A, B], Allocate(unused, body)))
    compile_source(source)
    names = [t.name for t in source.temporaries if isinstance(t, Buffer)]
    assert len(names) == len(set(names)) == 3 and not {"A", "B"} & set(names)


def test_restrict_only_where_memory_does_not_overlap() -> None:
    """Without the promise that parameters do not overlap no pointer is restricted."""
    assert "restrict" in emit_opencl(function("f", [A], filled(A, ONE))).text
    assert "restrict" not in emit_opencl(function("f", [A], filled(A, ONE), noalias=False)).text


def test_assumptions_are_nothing() -> None:
    """An assumption leaves no kernel and no text."""
    source = emit_opencl(function("f", [A], seq(Evaluate(Assume(equal(const(1), 1))), filled(A, ONE))))
    assert len(source.launches) == 1 and "assume" not in source.text


def test_a_function_that_stores_nothing_has_no_kernels() -> None:
    """Nothing to do is nothing to launch."""
    source = emit_opencl(function("f", [A], seq()))
    assert source.launches == ()
    assert [p.name for p in source.parameters] == ["A"]


@one_in(4)
def test_symbolic_temporaries_are_allocated_by_the_host() -> None:
    """An image array of symbolic extents, allocated around two kernels, has sizes over the symbols."""
    source = emit_opencl(
        program(
            "a: T.handle, b: T.handle",
            """
A = T.match_buffer(a, (n, m, 8), "float32")
B = T.match_buffer(b, (n, m, 8), "float32")
t = T.alloc_buffer((n, m, 8), "float32", scope="global.texture", axis_separators=[1, 2])
for i in T.parallel(n):
    for j in T.parallel(m):
        t[i, j, T.ramp(0, 1, 8)] = A[i, j, T.ramp(0, 1, 8)]
for i in T.parallel(n):
    for j in T.parallel(m):
        for c in T.parallel(8):
            B[i, j, c] = t[i, j, 7 - c]
""",
            symbols="n m",
        )
    )
    compile_source(source)
    (image,) = source.temporaries
    assert isinstance(image, Image) and image.layers is not None
    assert [evaluate(size, {"n": 3, "m": 5}) for size in (image.width, image.height, image.layers)] == [2, 5, 3]
    assert texture("(3, 5, 8)").endswith("axis_separators=[1, 2])")
