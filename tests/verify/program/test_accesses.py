"""Programs read into instances: what surrounds an access, what data takes out of it, and when it happens."""

from __future__ import annotations

from tests.verify.programs import program

from layoutproof.ir.buffer import BufferLoad, make_buffer
from layoutproof.ir.dtype import HANDLE
from layoutproof.ir.expr import Var, const
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import BufferStore, For, ForKind
from layoutproof.ir.text import expr_text
from layoutproof.verify.program.accesses import read_program
from layoutproof.verify.program.instances import Access, AccessKind, Program


def read(text: str) -> Program:
    """The instances of a program's text."""
    return read_program(program(text))


def access(instances: Program, name: str, kind: AccessKind = AccessKind.READ) -> Access:
    """The first access of a buffer."""
    return next(a for a in instances.accesses if a.buffer.name == name and a.kind is kind)


def texts(instances: Access) -> list[str]:
    """An access's indices as text."""
    return [expr_text(i, "plain") for i in instances.indices]


def test_blocks_and_lets_are_replaced() -> None:
    """Indices speak of loops, whatever block variables and lets stand between."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
            for i, j in T.grid(4, 8):
                with T.block("b"):
                    v = T.axis.spatial(32, i * 8 + j)
                    k: T.int32 = v + 0
                    B[v] = A[31 - k]
    """)
    assert texts(access(found, "A")) == ["31 - (i*8 + j + 0)"]
    assert [d.var.name for d in access(found, "A").domain.dims] == ["i", "j"]


def test_lazy_conditions_guard_loads() -> None:
    """A load is under the conditions of the choice and of the connective it stands in."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                if i > 1 and A[i - 1] > T.float32(0):
                    B[i] = T.if_then_else(i < 7, A[i + 1], A[0])
    """)
    guards = {
        a.text: [(expr_text(g.condition, "plain"), g.holds) for g in a.domain.guards]
        for a in found.accesses
        if a.buffer.name == "A"
    }
    assert guards["A[i - 1]"] == [("i > 1", True)]
    assert guards["A[i + 1]"] == [("i > 1", True), ("i < 7", True)]
    assert guards["A[0]"] == [("i > 1", True), ("i < 7", False)]
    stored = access(found, "B", AccessKind.WRITE)
    assert len(stored.domain.dropped) == 1
    assert stored.data_dependent


def test_loads_in_indices_are_unknowns() -> None:
    """A loaded index is an unknown of its type, the same one for the same cell of memory that never changes."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
            T.func_attr({"tirx.noalias": True})
            for i in range(8):
                if I[i] < 8:
                    B[i] = A[I[i]]
    """)
    loaded = access(found, "A")
    (unknown,) = loaded.domain.unknowns
    assert loaded.indices == (unknown.var,)
    assert loaded.data_dependent
    assert not access(found, "I").data_dependent


def test_inner_loop_of_the_same_name_is_another_one() -> None:
    """A loop that reuses an outer loop's or a symbol's name does not merge with it."""
    source, target = make_buffer("A", (8,), "float32"), make_buffer("B", (8,), "float32")
    i = Var("i")
    inner = For(i, const(0), const(8), ForKind.SERIAL, BufferStore(target, (i,), BufferLoad(source, (i,))))
    params = (Var("a", HANDLE), Var("b", HANDLE))
    function = PrimFunc(
        "main", params, ((params[0], source), (params[1], target)), For(i, const(0), const(2), ForKind.SERIAL, inner)
    )
    dims = access(read_program(function), "A").domain.dims
    assert len({dim.var.name for dim in dims}) == 2
    assert access(read_program(function), "A").indices == (dims[1].var,)


def test_symbols_are_parameters_and_names_of_shapes() -> None:
    """Scalar parameters and the names in shapes are symbols; loops are not."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer(("n", "m"), "float32"), k: T.int32):
            n, m = T.int32(), T.int32()
            for i, j in T.grid(n, m):
                A[i, j] = T.float32(0)
    """)
    assert {v.name for v in found.symbols} == {"n", "m", "k"}


def test_an_init_is_guarded_by_the_start_of_the_reduction() -> None:
    """The initial store has the loops of the update, and happens where the reduction's variable is at its start."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
            for i, j in T.grid(4, 8):
                with T.block("b"):
                    vi, vj = T.axis.remap("SR", [i, j])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vj]
    """)
    stores = [a for a in found.accesses if a.kind is AccessKind.WRITE]
    assert [len(a.domain.dims) for a in stores] == [2, 2]
    guards = [[expr_text(g.as_expr, "plain") for g in a.domain.guards] for a in stores]
    assert guards == [["j == 0"], []]
    assert [a.place.words for a in stores] == ["line 7", "line 8"]


def test_names_in_assumptions_have_their_own_meaning() -> None:
    """What is assumed of a block variable or a let is not said of another variable of that name."""
    found = read("""
        @T.prim_func
        def main(A: T.Buffer((16,), "int32"), n: T.int32):
            with T.block("known"):
                v = T.axis.spatial(8, 5)
                T.evaluate(T.assume(v >= 5))
            T.evaluate(T.assume(n >= 2))
            for v in range(5):
                A[v] = 1
    """)
    assert [expr_text(condition, "plain") for condition in found.assumed] == ["n >= 2"]
