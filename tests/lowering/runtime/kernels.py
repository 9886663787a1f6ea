"""Kernels and layouts that the runtime's tests call."""

from tests.lowering.codegen.programs import function, loop

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import FLOAT32, DType
from layoutproof.ir.expr import Expr, IfThenElseExpr, Var, const, logical_and
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import undef
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, DeclBuffer, IfThenElse, seq
from layoutproof.lowering.runtime.array_layouts import Layout, Step


def shape(*extents: int | Expr) -> tuple[Expr, ...]:
    """Extents as expressions."""
    return tuple(e if isinstance(e, Expr) else const(e) for e in extents)


ROWS_OF_FOUR = IndexMap.from_func(lambda i: [i // 4, i % 4])
HALO = IndexMap.from_func(lambda i: [i + 1])


def rows_of_four(extent: int | Expr, pad: Expr | None = None, inputs: tuple[str, ...] = ()) -> Layout:
    """Elements in rows of four."""
    count = extent if isinstance(extent, Expr) else const(extent)
    return Layout((count,), (Step(ROWS_OF_FOUR, ((count + 3) // 4, const(4)), pad, inputs),))


def blocked_copy(extent: int | Expr, dtype: str = "float32", noalias: bool = True) -> PrimFunc:
    """Both buffers in rows of four; every cell is copied, padding too."""
    count = extent if isinstance(extent, Expr) else const(extent)
    box = ((count + 3) // 4, const(4))
    a, b = make_buffer("A", box, dtype), make_buffer("B", box, dtype)
    total = ((count + 3) // 4) * 4
    flat_a, flat_b = (
        make_buffer("A_flat", (total,), dtype, data=a.data),
        make_buffer("B_flat", (total,), dtype, data=b.data),
    )
    body = loop("p", total, lambda p: BufferStore(flat_b, (p,), BufferLoad(flat_a, (p,))))
    return function("blocked_copy", [a, b], DeclBuffer(flat_a, DeclBuffer(flat_b, body)), noalias=noalias)


def scaled_sum(noalias: bool = True) -> PrimFunc:
    """`total[0]` is the sum of A, `B` is A times a scalar, `count[0]` is raised by one (so its old content counts)."""
    n, factor = Var("n"), Var("factor", FLOAT32)
    a, b = make_buffer("A", (n,), "float32"), make_buffer("B", (n,), "float32")
    total, count = make_buffer("total", (1,), "float32"), make_buffer("count", (1,), "int32")
    zero = const(0)
    add = loop("i", n, lambda i: BufferStore(total, (zero,), BufferLoad(total, (zero,)) + BufferLoad(a, (i,))))
    scale = loop("i", n, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,)) * factor))
    body = seq(
        BufferStore(total, (zero,), const(0.0, FLOAT32)),
        add,
        scale,
        BufferStore(count, (zero,), BufferLoad(count, (zero,)) + 1),
    )
    return function("scaled_sum", [a, b, total, count], body, noalias=noalias, scalars=[factor])


def difference_with_halo() -> PrimFunc:
    """`B[i] = A[i + 1] - A[i - 1]` of 6 numbers that lie between two cells of padding."""
    a, b = make_buffer("A", (8,), "float32"), make_buffer("B", (6,), "float32")
    body = loop("i", 6, lambda i: BufferStore(b, (i,), BufferLoad(a, (i + 2,)) - BufferLoad(a, (i,))))
    return function("difference", [a, b], body)


def vector_scale() -> PrimFunc:
    """Elements of four lanes, doubled."""
    vector = DType.parse("float32x4")
    a, b = make_buffer("A", (3,), vector), make_buffer("B", (3,), vector)
    body = loop("i", 3, lambda i: BufferStore(b, (i,), BufferLoad(a, (i,)) + BufferLoad(a, (i,))))
    return function("vector_scale", [a, b], body)


def anything() -> Expr:
    """The pad value that may be anything."""
    return undef("float32")


def inside(p: Var, extent: int) -> Expr:
    """Whether an index is one of the first `extent`."""
    return logical_and(p >= 0, p < extent)


def guarded(extent: int) -> PrimFunc:
    """A copy of `extent` numbers into rows of four, whose padding is left alone."""
    a, b = make_buffer("A", (extent,), "float32"), make_buffer("B", ((extent + 3) // 4 * 4,), "float32")
    body = loop(
        "p", (extent + 3) // 4 * 4, lambda p: IfThenElse(inside(p, extent), BufferStore(b, (p,), BufferLoad(a, (p,))))
    )
    return function("guarded", [a, b], body)


def lazy(extent: int) -> Expr:
    """1 in even padding cells, 2 in odd ones."""
    p = Var("p1")
    return IfThenElseExpr((p % 2) < 1, const(1.0, FLOAT32), const(2.0, FLOAT32)) + const(float(extent), FLOAT32)
