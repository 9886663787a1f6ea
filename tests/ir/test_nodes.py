"""Every node type passes one harness: frozen, compared by structure, hashed once, rebuilt by a visit that changes
nothing.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from layoutproof.ir.buffer import BufferLoad, BufferRegion, Range, make_buffer
from layoutproof.ir.diagnostic import Source, Span
from layoutproof.ir.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, DType
from layoutproof.ir.expr import (
    FALSE,
    TRUE,
    Binary,
    Broadcast,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElseExpr,
    IntImm,
    Logical,
    Not,
    Ramp,
    Select,
    Var,
    const,
    equal,
    logical_and,
)
from layoutproof.ir.index_map import IndexMap
from layoutproof.ir.intrinsics import (
    Assume,
    Call,
    Limit,
    LimitKind,
    OpaqueCall,
    PointerCast,
    Reducer,
    Reinterpret,
    StringImm,
    Undef,
)
from layoutproof.ir.node import Node
from layoutproof.ir.operators import BinaryOp, CompareOp, LogicalOp
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    Attributes,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    IterVar,
    Let,
    MatchBuffer,
    Seq,
    Stmt,
    seq,
)
from layoutproof.ir.visit import children, holds_any, kinds_in, map_children, nodes_of, rewrite_bottom_up, walk

I = Var("i")  # noqa: E741  # the usual name of an index
ZERO = const(0.0, FLOAT32)
A = make_buffer("A", (4, 4), "float32")
LOAD = BufferLoad(A, (I, const(0)))
STORE = BufferStore(A, (I, const(0)), LOAD)
REGION = BufferRegion(A, (Range(I, const(1)), Range(const(0), const(4))))
LOOP = For(I, const(0), const(4), ForKind.SERIAL, STORE)
ITER = IterVar(Var("vi"), IterKind.SPATIAL, Range(const(0), const(4)), I)
FUNC = PrimFunc("main", (Var("a", HANDLE),), ((Var("a", HANDLE), A),), LOOP)

SAMPLES: tuple[Node, ...] = (
    IntImm(3),
    FloatImm(0.5, FLOAT32),
    StringImm("x"),
    I,
    Binary(BinaryOp.ADD, I, const(1)),
    Compare(CompareOp.LT, I, const(1)),
    Logical(LogicalOp.AND, TRUE, FALSE),
    Not(TRUE),
    Select(TRUE, I, const(0)),
    IfThenElseExpr(TRUE, LOAD, ZERO),
    Cast(INT64, I),
    Reinterpret(FLOAT32, I),
    PointerCast(DType.parse("float32x4"), A.data),
    Call("exp", (ZERO,)),
    OpaqueCall("tvm_storage_sync", (StringImm("shared"),), INT32),
    Reducer((I,), (Var("y"),), (Binary(BinaryOp.ADD, I, Var("y")),), (const(0),)),
    A,
    LOAD,
    Ramp(I, const(1), 4),
    Broadcast(I, 4),
    Undef(FLOAT32),
    Limit(LimitKind.INFINITY, FLOAT32),
    Assume(TRUE),
    Range(const(0), const(4)),
    REGION,
    LOOP,
    IfThenElse(TRUE, STORE, LOOP),
    Let(I, const(1), STORE),
    STORE,
    Seq((STORE, LOOP)),
    Allocate(A, LOOP),
    DeclBuffer(A, LOOP),
    ITER,
    MatchBuffer(A, REGION),
    Block("b", (ITER,), STORE, reads=(REGION,)),
    Evaluate(Assume(TRUE)),
    AttrStmt(A.data, "storage_alignment", const(128), LOOP),
    FUNC,
    IRModule((FUNC,)),
    IndexMap((I,), (Binary(BinaryOp.FLOORDIV, I, const(4)),)),
)

BASES = {Node, Expr, Stmt}


def node_types() -> Iterator[type]:
    """Every concrete node class of the package, by looking into the modules that define them."""
    for name in ("buffer", "expr", "index_map", "intrinsics", "primfunc", "stmt"):
        module = importlib.import_module(f"layoutproof.ir.{name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Node)
                and value not in BASES
                and value.__module__ == module.__name__
            ):
                yield value


def rebuilt(node: Node) -> Node:
    """A structurally equal copy that shares no node with the original."""
    return rewrite_bottom_up(node, copy.copy)


def test_every_node_type_has_a_sample() -> None:
    """The harness covers every class there is."""
    assert {type(s) for s in SAMPLES} == set(node_types())


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_equal_by_structure_and_hashed_once(node: Node) -> None:
    """A copy is equal with the same hash, whatever span it has; it differs from every other sample."""
    span = Span(Source("f.py", "x"), 1, 0, 1, 1)
    variant = rebuilt(node)
    object.__setattr__(variant, "span", span)
    assert variant == node
    assert hash(variant) == hash(node)
    assert [other for other in SAMPLES if other == node] == [node]


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_frozen_and_slotted(node: Node) -> None:
    """No field can be set and no attribute added."""
    assert not hasattr(node, "__dict__")
    with pytest.raises(FrozenInstanceError):
        node.span = None  # type: ignore[misc]  # that it cannot be set is the test


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_visit_that_changes_nothing_is_identity(node: Node) -> None:
    """Mapping the identity over the children gives the same object, and every child is reached."""
    assert map_children(node, lambda child: child) is node
    direct = list(children(node))
    seen: list[Node] = []

    def note(child: Node) -> Node:
        seen.append(child)
        return child

    map_children(node, note)
    assert seen == direct
    assert all(any(n is child for n in walk(node)) for child in direct)


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_nodes_in_fields_are_children(node: Node) -> None:
    """No node hides in a field where a visit does not find it (attribute values are data)."""
    held = {id(child) for child in children(node)}
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) and not isinstance(value, Attributes) else (value,):
            assert not isinstance(item, Node) or id(item) in held or field.name == "buffer_map"


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_kinds_are_what_a_walk_finds(node: Node) -> None:
    """`kinds_in`, `holds_any` and `nodes_of` say what walking over all nodes says, for each type of node."""
    found = list(walk(node))
    assert kinds_in(node) == {type(each) for each in found}
    for kind in {type(each) for each in SAMPLES}:
        assert holds_any(node, kind) == any(isinstance(each, kind) for each in found)
        assert list(map(id, nodes_of(node, kind))) == [id(each) for each in found if isinstance(each, kind)]


@pytest.mark.parametrize("node", SAMPLES, ids=lambda n: type(n).__name__)
def test_nodes_are_equal_by_their_parts(node: Node) -> None:
    """A node made anew of the same parts is equal, whatever was found of the first; one with another part is not."""
    list(walk(node))
    again = replace(node)
    assert again is not node and again == node and hash(again) == hash(node)
    for other in SAMPLES:
        same = type(other) is type(node) and all(
            getattr(other, field.name) == getattr(node, field.name) for field in fields(node) if field.compare
        )
        assert (other == node) == same


def test_floats_are_compared_bit_for_bit() -> None:
    """The zeros differ, all NaNs are one, and widths count."""
    assert const(0.0, FLOAT32) != const(-0.0, FLOAT32)
    assert const(float("nan"), FLOAT32) == const(float("nan"), FLOAT32)
    assert const(0.5, FLOAT32) != const(0.5, DType.parse("float64"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Binary(BinaryOp.ADD, I, const(1, INT64)), "the operands of `+` have types int32 and int64"),
        (lambda: Binary(BinaryOp.DIV, I, I), "`/` takes floats"),
        (lambda: Binary(BinaryOp.FLOORDIV, ZERO, ZERO), "`//` takes integers"),
        (lambda: IntImm(1 << 31), "2147483648 does not fit int32"),
        (lambda: FloatImm(0.1, FLOAT32), "is not a number of type float32"),
        (lambda: BufferLoad(A, (I,)), "A has 2 axes and is indexed by 1"),
        (lambda: BufferLoad(A, (Ramp(I, const(1), 4), I)), "only the last one may"),
        (lambda: BufferStore(A, (I, I), I), "a int32 stored to A, which takes float32 here"),
        (lambda: Not(I), "`not` takes a truth value"),
        (lambda: Call("exp", (I,)), "exp of a int32"),
        (lambda: Call("exp", (ZERO, ZERO)), "exp takes 1 arguments, not 2"),
        (lambda: Seq((STORE,)), "a sequence of one"),
        (lambda: Select(TRUE, I, ZERO), "the sides of select have types"),
        (lambda: equal(I, True), "use equal(a, b)"),
        (lambda: bool(equal(I, 0)), "an expression has no truth value"),
    ],
)
def test_a_node_refuses_to_be_built_wrong(build: object, message: str) -> None:
    """Each mistake is named where it is made."""
    assert callable(build)
    with pytest.raises((TypeError, ValueError)) as caught:
        build()
    assert message in str(caught.value)


def test_lanes_multiply() -> None:
    """An N-lane index into M-lane elements gives N*M lanes."""
    vectors = make_buffer("V", (8,), "float32x4")
    assert BufferLoad(vectors, (Ramp(const(0), const(1), 2),)).dtype == DType.parse("float32x8")
    assert BufferLoad(vectors, (I,)).dtype == DType.parse("float32x4")
    assert BufferLoad(A, (I, Ramp(const(0), const(1), 4))).dtype == DType.parse("float32x4")


def test_operands_are_matched() -> None:
    """Numbers take the other side's type, narrow integers widen, scalars are broadcast."""
    wide = Var("w", INT64)
    assert (wide + 1) == Binary(BinaryOp.ADD, wide, const(1, INT64))
    assert (I + wide) == Binary(BinaryOp.ADD, Cast(INT64, I), wide)
    assert (Ramp(I, const(1), 4) * 2).dtype == INT32.with_lanes(4)
    assert logical_and().dtype == BOOL


def test_sequences_are_flat() -> None:
    """seq() flattens, gives a single statement as itself and nothing as the empty sequence."""
    assert seq(STORE) is STORE
    assert seq(seq(STORE, LOOP), STORE) == Seq((STORE, LOOP, STORE))
    assert seq() == NOTHING
