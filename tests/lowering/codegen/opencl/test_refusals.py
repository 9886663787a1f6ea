"""What the OpenCL target refuses: each with a message that names what is wrong, the target, and what to do."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.lowering.codegen.opencl.programs import PLAIN, TEXTURE, copied, program, texture
from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.dtype import FLOAT32, INT32
from layoutproof.ir.expr import Cast, Expr, Var, const
from layoutproof.ir.intrinsics import OpaqueCall, undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Allocate, Block, BufferStore, DeclBuffer, Evaluate, ForKind, Let, Stmt, seq
from layoutproof.lowering.codegen import codes
from layoutproof.lowering.codegen.c import emit_c
from layoutproof.lowering.codegen.opencl.cl_emit import emit_opencl
from layoutproof.lowering.lower.threads import without_threads

A = make_buffer("A", (4,), "float32")
ZERO = const(0.0, FLOAT32)


def filled(value: Expr = ZERO) -> Stmt:
    """`A[i] = value`."""
    return loop("i", 4, lambda i: BufferStore(A, (i,), value))


def of_rank(shape: str, scope: str = ', scope="global.texture"') -> PrimFunc:
    """A store to a buffer without axis separators, flattened."""
    rank = len(re.findall(r"\d+", shape))
    return program(f'T: T.Buffer({shape}, "float32"{scope})', f"T[{', '.join('0' * rank)}] = T.float32(0)")


def many_axes() -> PrimFunc:
    """A texture of four axis groups."""
    return program(f"B: {texture('(2, 2, 2, 4)')}", "for c in T.vectorized(4):\n    B[0, 0, 0, c] = T.float32(0)")


def of_type(dtype: str) -> PrimFunc:
    """A texture of a type that images do not hold."""
    return copied(texture("(6, 8)", dtype), texture("(6, 8)", dtype))


def rows(body: str, more: str = "") -> PrimFunc:
    """A body for each row of a texture B, from a buffer A."""
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    return program(f"A: {PLAIN}, B: {TEXTURE}{more}", f"for y in T.parallel(6):\n{lines}")


def unflattened() -> PrimFunc:
    """A plain buffer of two axes."""
    b = make_buffer("B", (2, 2), "float32")
    return function("f", [b], BufferStore(b, (const(0), const(1)), ZERO))


def texture_of_an_item() -> PrimFunc:
    """A texture that each iteration allocates."""
    t = make_buffer("t", (1, 4), "float32", scope="global.texture")

    def item(i: Var) -> Stmt:
        store = loop("c", 4, lambda c: BufferStore(t, (const(0), c), ZERO))
        return Allocate(t, seq(store, BufferStore(A, (i,), BufferLoad(t, (const(0), i)))))

    return function("f", [A], loop("i", 4, item, ForKind.PARALLEL))


def memory_of_an_item(extent: Callable[[Var], Expr]) -> PrimFunc:
    """Memory in each iteration of an extent that depends on it."""

    def item(i: Var) -> Stmt:
        t = make_buffer("t", (extent(i),), "float32")
        return Allocate(t, seq(BufferStore(t, (i,), ZERO), BufferStore(A, (i,), BufferLoad(t, (i,)))))

    return function("f", [A], loop("i", 4, item, ForKind.PARALLEL))


def loaded(i: Var) -> Expr:
    """An integer from memory."""
    return Cast(INT32, BufferLoad(A, (i,)))


def two_views() -> PrimFunc:
    """One texture as elements of two types."""
    return program(
        f"B: {TEXTURE}",
        """
V = T.decl_buffer((6, 8), "int32", data=B.data, scope="global.texture", axis_separators=[1])
for y in T.parallel(6):
    for c in T.vectorized(4):
        B[y, c] = T.Cast("float32", V[y, c + 4])
""",
    )


def plain_view() -> PrimFunc:
    """One texture as plain memory as well."""
    b = make_buffer("B", (6, 8), "float32", scope="global.texture")
    view = make_buffer("V", (48,), "float32", data=b.data)
    store = loop("i", 4, lambda i: BufferStore(A, (i,), BufferLoad(view, (i,)) + BufferLoad(b, (i, i))))
    return function("f", [A, b], DeclBuffer(view, store))


def inner_threads() -> PrimFunc:
    """A thread axis that is not lowered."""
    return program(
        PLAIN.join(["A: ", ""]),
        'for k in range(6):\n    for x in T.thread_binding(8, thread="threadIdx.x"):\n        A[k, x] = T.float32(0)',
    )


def bound_to(axis: str) -> PrimFunc:
    """A kernel along an axis, as parallel loops."""
    kernel = f'for y in T.thread_binding(6, thread="{axis}"):\n    A[y, 0] = T.float32(0)'
    return without_threads(program(f"A: {PLAIN}", kernel))


def read_length() -> PrimFunc:
    """A kernel of as many threads as an element says."""
    signature = 'A: T.Buffer((4,), "float32"), N: T.Buffer((1,), "int32")'
    return without_threads(
        program(signature, 'for x in T.thread_binding(N[0], thread="threadIdx.x"):\n    A[x] = T.float32(0)')
    )


def shared_by_block() -> PrimFunc:
    """A kernel whose groups share memory of different sizes."""
    body = """
A = T.match_buffer(a, (4, 4), "float32")
for b in T.thread_binding(4, thread="blockIdx.x"):
    S = T.decl_buffer((b + 4,), "float32", scope="shared")
    for x in T.thread_binding(4, thread="threadIdx.x"):
        S[x] = T.float32(1)
        T.tvm_storage_sync("shared")
        A[b, x] = S[3 - x]
"""
    return without_threads(program("a: T.handle", body))


def hidden_extent() -> PrimFunc:
    """A temporary around kernels whose extent only a name inside says."""
    n, m = Var("n"), Var("m")
    t = make_buffer("t", (m,), "float32")
    body = Allocate(t, seq(loop("i", 4, lambda i: BufferStore(t, (i,), ZERO), ForKind.PARALLEL)))
    return function("f", [A], Let(m, n * 2, body), scalars=[n])


def deep(levels: int) -> PrimFunc:
    """A sum of sums of sums."""
    value: Expr = BufferLoad(A, (const(0),))
    for _ in range(levels):
        value = const(1.0, FLOAT32) + value
    return function("f", [A], filled(value))


PARTIAL = "B a texel of 4 elements at a time"
CASES: list[tuple[str, Callable[[], PrimFunc], str, str]] = [
    (
        "rank 1",
        lambda: of_rank("(4,)"),
        codes.RANK,
        "textures of 2 or 3 physical axes; T, rank 1 .*has 1.*set_axis_separators.*flatten_buffer",
    ),
    (
        "rank 4",
        lambda: of_rank("(2, 2, 2, 4)"),
        codes.RANK,
        "T, rank 4 with no axis separators, has 1.*set_axis_separators",
    ),
    ("four axes", many_axes, codes.RANK, r"B, rank 4 with axis separators \[0, 1, 2\], has 4.*set_axis_separators"),
    (
        "plain rank 2",
        unflattened,
        codes.RANK,
        "the OpenCL target takes accesses of buffers of rank 1; B has rank 2.*flatten_buffer",
    ),
    ("float64", lambda: of_type("float64"), codes.UNSUPPORTED, "no textures of float64, which A holds.*scope 'global'"),
    ("int64", lambda: of_type("int64"), codes.UNSUPPORTED, "no textures of int64"),
    ("bfloat16", lambda: of_type("bfloat16"), codes.UNSUPPORTED, "no textures of bfloat16"),
    ("two lanes", lambda: of_type("float32x2"), codes.UNSUPPORTED, "no textures of float32x2"),
    (
        "other scope",
        lambda: of_rank("(4,)", ', scope="global.texture-weight"'),
        codes.UNSUPPORTED,
        "scope of textures is 'global.texture'",
    ),
    (
        "shared",
        lambda: of_rank("(4,)", ', scope="shared"'),
        codes.UNSUPPORTED,
        "the OpenCL target has no memory of scope 'shared'",
    ),
    (
        "single element",
        lambda: rows("for x in T.parallel(8):\n    B[y, x] = A[y, x]"),
        codes.TEXEL,
        f"{PARTIAL}.*vectorize it by 4",
    ),
    (
        "parallel lanes",
        lambda: copied(PLAIN, TEXTURE, kind="parallel"),
        codes.TEXEL,
        f"{PARTIAL}.*in no loop over all four",
    ),
    (
        "eight at once",
        lambda: rows("for x in T.vectorized(8):\n    B[y, x] = A[y, x]"),
        codes.TEXEL,
        f"{PARTIAL}.*split by 4",
    ),
    (
        "crossing",
        lambda: rows("B[y, T.ramp(2, 1, 4)] = A[y, T.ramp(0, 1, 4)]"),
        codes.TEXEL,
        "its 4 lanes cross texels",
    ),
    ("stride", lambda: rows("B[y, T.ramp(0, 2, 4)] = A[y, T.ramp(0, 1, 4)]"), codes.TEXEL, "its 4 lanes cross texels"),
    (
        "two lanes stored",
        lambda: rows("B[y, T.ramp(0, 1, 2)] = A[y, T.ramp(0, 1, 2)]"),
        codes.TEXEL,
        "its 2 lanes cross texels",
    ),
    (
        "unknown start",
        lambda: rows("B[y, T.ramp(y % 2, 1, 4)] = A[y, T.ramp(0, 1, 4)]"),
        codes.TEXEL,
        "not shown to begin with one",
    ),
    (
        "guarded lane",
        lambda: rows("for c in T.vectorized(4):\n    if c < 3:\n        B[y, c] = A[y, c]"),
        codes.TEXEL,
        "condition of its own",
    ),
    (
        "lane outside",
        lambda: rows("for c in T.serial(4):\n    for x in range(2):\n        B[y, x * 4 + c] = A[y, c]"),
        codes.TEXEL,
        "in a loop",
    ),
    (
        "reads itself",
        lambda: rows("for c in T.serial(4):\n    B[y, c] = B[y, 3 - c]"),
        codes.TEXEL,
        "loop c reads what it stores",
    ),
    (
        "twice",
        lambda: rows("for c in T.serial(4):\n    B[y, c] = A[y, c]\n    B[y, c] = A[y, c + 4]"),
        codes.TEXEL,
        "loop c stores to it more than once",
    ),
    (
        "other texel",
        lambda: rows("for c in T.serial(4):\n    B[c, y // 6 * 4 + c] = A[y, c]"),
        codes.TEXEL,
        "another one in each iteration",
    ),
    ("two views", two_views, codes.UNSUPPORTED, "two kinds of image: B_flat|two kinds of image: B"),
    ("plain view", plain_view, codes.UNSUPPORTED, "V is in scope 'global' and a view of a texture"),
    ("texture of an item", texture_of_an_item, codes.UNSUPPORTED, "no texture for each work item: t"),
    (
        "memory of an item",
        lambda: memory_of_an_item(lambda i: i + 1000),
        codes.UNSUPPORTED,
        "allocate t.*depends on i.*host does not know",
    ),
    ("loaded extent", lambda: memory_of_an_item(loaded), codes.UNSUPPORTED, "allocate t.*host does not know"),
    ("hidden extent", hidden_extent, codes.UNSUPPORTED, "allocate t.*the host does not know m"),
    ("threads", inner_threads, codes.NOT_LOWERED, "loop x is bound to threadIdx.x.*Schedule.lower"),
    ("odd axis", lambda: bound_to("blockIdx.w"), codes.UNSUPPORTED, "no axis blockIdx.w"),
    ("hidden axis", read_length, codes.UNSUPPORTED, "that of threadIdx.x depends on memory"),
    ("unknown memory", shared_by_block, codes.UNSUPPORTED, "shared memory whose size the host knows; that of S"),
    (
        "block",
        lambda: function("f", [A], Block("root", (), filled())),
        codes.NOT_LOWERED,
        "the OpenCL target takes loops, not blocks: root",
    ),
    (
        "undef",
        lambda: function("f", [A], filled(undef("float32"))),
        codes.NOT_LOWERED,
        "no undefined values.*remove_store_undef",
    ),
    (
        "opaque",
        lambda: function("f", [A], Evaluate(OpaqueCall("barrier", (), FLOAT32))),
        codes.UNSUPPORTED,
        "the function barrier",
    ),
    ("offset", lambda: function("f", [replace(A, elem_offset=const(3))], filled()), codes.UNSUPPORTED, "element 3"),
    ("unbound", lambda: function("f", [A], BufferStore(A, (Var("q"),), ZERO)), codes.NOT_LOWERED, "variable q"),
    ("deep", lambda: deep(3000), codes.TOO_DEEP, "nested too deeply"),
]


@pytest.mark.parametrize(("make", "code", "pattern"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_refusals(make: Callable[[], PrimFunc], code: str, pattern: str) -> None:
    """The code, and what the message names."""
    with pytest.raises(LayoutproofError) as caught:
        emit_opencl(make())
    assert caught.value.diagnostics[0].code == code
    assert re.search(pattern, str(caught.value), re.DOTALL), str(caught.value)


def test_all_textures_are_named_at_once() -> None:
    """Two textures that are none are two messages."""
    with pytest.raises(LayoutproofError) as caught:
        emit_opencl(of_type("float64"))
    assert [re.findall("which (.) holds", d.message) for d in caught.value.diagnostics] in (
        [["A"], ["B"]],
        [["B"], ["A"]],
    )


def test_c_says_that_opencl_takes_textures() -> None:
    """The C target refuses what this one is for, and says so."""
    with pytest.raises(LayoutproofError, match="the OpenCL target takes textures"):
        emit_c(copied(PLAIN, TEXTURE))
