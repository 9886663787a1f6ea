"""What the script syntax means: each form of both dialects, and the node it becomes."""

import pytest

from layoutproof.ir.buffer import BufferLoad, Range
from layoutproof.ir.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, DType
from layoutproof.ir.expr import (
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
    logical_and,
)
from layoutproof.ir.intrinsics import Assume, Call, Limit, LimitKind, OpaqueCall, StringImm, Undef
from layoutproof.ir.operators import BinaryOp, CompareOp
from layoutproof.ir.script.lint import check_init
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads, loads_module
from layoutproof.ir.stmt import (
    NOTHING,
    Allocate,
    AttrStmt,
    Block,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    IterKind,
    Let,
    Seq,
    Stmt,
)

CURRENT = "@T.prim_func(s_tir=True)"
N, M = Var("n"), Var("m", INT64)


def statement(*lines: str, decorator: str = "@T.prim_func") -> Stmt:
    """The body of a function over A, I, V, n, m with these lines."""
    arrays = 'A: T.Buffer((16, 14), "float32"), I: T.Buffer((16,), "int32"), V: T.Buffer((4,), "float32x4")'
    head = f"def main({arrays}, n: T.int32, m: T.int64):"
    return loads("\n".join([decorator, head, *(f"    {line}" for line in lines)]) + "\n").body


def value(text: str) -> Expr:
    """The expression that a text becomes."""
    result = statement(f"T.evaluate({text})")
    assert isinstance(result, Evaluate)
    return result.value


def one(*lines: str) -> Block:
    """The block below two loops with these lines inside."""
    result = statement(
        "for i in range(16):",
        "    for j in T.serial(14):",
        '        with T.block("X"):',
        *(f"            {x}" for x in lines),
    )
    assert isinstance(result, For) and isinstance(result.body, For) and isinstance(result.body.body, Block)
    return result.body.body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 1", N + 1),
        ("1 + n", 1 + N),
        ("m + 1", Binary(BinaryOp.ADD, M, IntImm(1, INT64))),
        ("n + m", Binary(BinaryOp.ADD, Cast(INT64, N), M)),
        ("1 + 2", IntImm(1) + IntImm(2)),
        ("m * (1 + 2)", Binary(BinaryOp.MUL, M, Binary(BinaryOp.ADD, IntImm(1, INT64), IntImm(2, INT64)))),
        ("-n", Binary(BinaryOp.MUL, N, IntImm(-1))),
        ("-3", IntImm(-3)),
        ("+n", N),
        ("~n", Binary(BinaryOp.BITXOR, N, IntImm(-1))),
        ("~(n < 3)", Not(N < 3)),
        ("n // 4 % 3", (N // 4) % 3),
        ("T.floordiv(n, 4)", N // 4),
        ("T.floormod(n, 4)", N % 4),
        ("T.truncdiv(n, 4)", Binary(BinaryOp.TRUNCDIV, N, IntImm(4))),
        ("T.truncmod(n, 4)", Binary(BinaryOp.TRUNCMOD, N, IntImm(4))),
        ("T.Div(n, 4)", Binary(BinaryOp.TRUNCDIV, N, IntImm(4))),
        ("T.Mod(n, 4)", Binary(BinaryOp.TRUNCMOD, N, IntImm(4))),
        ("T.FloorMod(n, 4)", N % 4),
        ("T.shift_left(n, 2)", N << 2),
        ("n >> 2", N >> 2),
        ("n & 3 | n ^ 1", (N & 3) | (N ^ 1)),
        ("T.bitwise_and(n, 3)", N & 3),
        ("min(n, 3)", Binary(BinaryOp.MIN, N, IntImm(3))),
        ("T.max(n, 3)", Binary(BinaryOp.MAX, N, IntImm(3))),
        ("max(n, 1, 2)", Binary(BinaryOp.MAX, Binary(BinaryOp.MAX, N, IntImm(1)), IntImm(2))),
        ("2**4 - 1 & n", (IntImm(16) - IntImm(1)) & N),
        ("0 <= n < 4", logical_and(Compare(CompareOp.LE, IntImm(0), N), N < 4)),
        ("n < 3 and n > 1 or not n == 2", (Logical, "or")),
        ("T.And(n < 3, T.Not(n > 1))", logical_and(N < 3, Not(N > 1))),
        ("T.Select(n < 3, n, 0)", Select(N < 3, N, IntImm(0))),
        ("T.if_then_else(n < 3, 0, m)", IfThenElseExpr(N < 3, IntImm(0, INT64), M)),
        ("n if n < 3 else 0", IfThenElseExpr(N < 3, N, IntImm(0))),
        ('T.Cast("float32", n)', Cast(FLOAT32, N)),
        ('T.cast(n, "float32")', Cast(FLOAT32, N)),
        ('n.astype("float32")', Cast(FLOAT32, N)),
        ("T.float32(n)", Cast(FLOAT32, N)),
        ("T.int32(n)", N),
        ("T.float32(0)", FloatImm(0.0, FLOAT32)),
        ('T.float32("-inf")', FloatImm(float("-inf"), FLOAT32)),
        ("T.int64(3)", IntImm(3, INT64)),
        ("T.uint64(18446744073709551615)", IntImm(2**64 - 1, DType.parse("uint64"))),
        ("T.bool(True)", TRUE),
        ("True", TRUE),
        ("T.Ramp(0, 1, 4)", Ramp(IntImm(0), IntImm(1), 4)),
        ("T.ramp(n, 2, 4)", Ramp(N, IntImm(2), 4)),
        ("T.Broadcast(n, 4)", Broadcast(N, 4)),
        ("T.broadcast(n, 4) + 1", Binary(BinaryOp.ADD, Broadcast(N, 4), Broadcast(IntImm(1), 4))),
        ('T.infinity("float32")', Limit(LimitKind.INFINITY, FLOAT32)),
        ('T.min_value("int32")', Limit(LimitKind.MIN, INT32)),
        ('T.undef(dtype="float32")', Undef(FLOAT32)),
        ("T.pow(T.float32(2), 3)", Call("pow", (FloatImm(2.0, FLOAT32), FloatImm(3.0, FLOAT32)))),
        ("T.abs(n)", Call("abs", (N,))),
        ("T.likely(n < 3)", N < 3),
        ('T.call_extern("int32", "f", n)', OpaqueCall("call_extern", (StringImm("f"), N), INT32)),
        ('T.tvm_storage_sync("shared")', OpaqueCall("tvm_storage_sync", (StringImm("shared"),), INT32)),
        ("A.shape[1]", IntImm(14)),
        ("A.data", Var("A_data", HANDLE)),
    ],
)
def test_expression(text: str, expected: Expr | tuple[type, str]) -> None:
    """Each form of expression becomes the node it means, with constants of the other side's type."""
    result = value(text)
    if isinstance(expected, tuple):
        assert isinstance(result, expected[0])
    else:
        assert result == expected


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("A[0, 0]", "float32"),
        ("A[0, 0:4]", "float32x4"),
        ("A[0, 0:8:2]", "float32x4"),
        ("V[0]", "float32x4"),
        ("V[T.ramp(0, 1, 2)]", "float32x8"),
    ],
)
def test_lanes_of_a_load(text: str, dtype: str) -> None:
    """A load has the element's lanes times the index's."""
    assert str(value(text).dtype) == dtype


def test_constants_take_the_type_of_what_they_are_stored_to() -> None:
    """`A[0, 0] = 0` stores a float, `T.undef()` an undefined float, `V[0] = 1.5` four of them."""
    body = statement(
        "A[0, 0] = 0", "A[0, 1] = T.undef()", "V[0] = 1.5", "I[0] += 2", "A[0, 2] = T.if_then_else(n < 3, 0, 1)"
    )
    assert isinstance(body, Seq)
    stores = [s for s in body.body if isinstance(s, BufferStore)]
    assert [s.value for s in stores[:3]] == [
        FloatImm(0.0, FLOAT32),
        Undef(FLOAT32),
        Broadcast(FloatImm(1.5, FLOAT32), 4),
    ]
    assert stores[3].value == BufferLoad(stores[3].buffer, (IntImm(0),)) + 2
    assert stores[4].value == Cast(FLOAT32, IfThenElseExpr(N < 3, IntImm(0), IntImm(1)))


@pytest.mark.parametrize(
    ("text", "kind", "start", "extent"),
    [
        ("range(8)", ForKind.SERIAL, 0, 8),
        ("range(2, 8)", ForKind.SERIAL, 2, 6),
        ("T.serial(0, 8)", ForKind.SERIAL, 0, 8),
        ("T.grid(8)", ForKind.SERIAL, 0, 8),
        ("T.parallel(8)", ForKind.PARALLEL, 0, 8),
        ("T.vectorized(8)", ForKind.VECTORIZED, 0, 8),
        ("T.unroll(1, 8)", ForKind.UNROLLED, 1, 7),
        ('T.thread_binding(8, thread="threadIdx.x")', ForKind.THREAD_BINDING, 0, 8),
        ('T.thread_binding(0, 8, "threadIdx.x")', ForKind.THREAD_BINDING, 0, 8),
        ('T.thread_binding(8, "threadIdx.x")', ForKind.THREAD_BINDING, 0, 8),
    ],
)
def test_loop(text: str, kind: ForKind, start: int, extent: int) -> None:
    """Each kind of loop, by extent or by start and stop."""
    loop = statement(f"for i in {text}:", "    pass")
    assert isinstance(loop, For)
    assert (loop.kind, loop.start, loop.extent, loop.body) == (kind, IntImm(start), IntImm(extent), NOTHING)


def test_loop_variables_have_the_type_of_their_extent() -> None:
    """A loop over 64-bit extents has a 64-bit variable."""
    loop = statement("for i in range(m):", "    pass")
    assert isinstance(loop, For) and loop.var == Var("i", INT64) and loop.start == IntImm(0, INT64)


def test_axes_of_every_kind() -> None:
    """spatial, reduce, opaque, their short names, domains with a start, and remap."""
    block = one(
        "a = T.axis.spatial(16, i)",
        "b = T.axis.R((2, 16), j)",
        "c = T.axis.opaque(4, i * 2)",
        "d, e = T.axis.remap('SR', [i, j])",
    )
    kinds = [v.kind for v in block.iter_vars]
    assert kinds == [IterKind.SPATIAL, IterKind.REDUCE, IterKind.OPAQUE, IterKind.SPATIAL, IterKind.REDUCE]
    assert [v.domain for v in block.iter_vars] == [
        Range(IntImm(s), IntImm(e)) for s, e in ((0, 16), (2, 14), (0, 4), (0, 16), (0, 14))
    ]
    assert block.iter_vars[2].binding == Var("i") * 2


def test_block_header() -> None:
    """Guard, regions, attributes, allocations, initialisation."""
    block = one(
        "vi, vj = T.axis.remap('SR', [i, j])",
        "T.where(vi < n)",
        "T.reads(A[vi, 0:4], I)",
        "T.writes([A[vi, vj]])",
        "T.block_attr({'pragma': 1, 'flag': T.bool(True)})",
        "C = T.alloc_buffer((4,), scope='local')",
        "S = T.match_buffer(A[0:4, vj:vj + 4], (4, 4), offset_factor=1)",
        "with T.init():",
        "    C[0] = 0",
        "C[0] = S[0, 0]",
    )
    assert block.where == (Var("vi") < N)
    assert block.reads is not None and block.writes is not None
    assert [r.ranges for r in block.reads] == [
        (Range(Var("vi"), IntImm(1)), Range(IntImm(0), IntImm(4))),
        (Range(IntImm(0), IntImm(16)),),
    ]
    assert dict(block.annotations) == {"pragma": 1, "flag": True}
    assert [b.scope for b in block.alloc_buffers] == ["local"]
    assert block.match_buffers[0].source.ranges[1] == Range(Var("vj"), IntImm(4))
    assert isinstance(block.init, BufferStore) and isinstance(block.body, BufferStore)


def test_regions_not_given_are_none() -> None:
    """A block that says nothing of its regions differs from one that says it has none."""
    assert one("pass").reads is None
    assert one("T.reads()", "T.writes()").reads == ()


def test_lets_of_every_form() -> None:
    """A let is written five ways and means the same."""
    forms = [
        ["x: T.int32 = n + 1", "I[x] = x"],
        ["x: T.let[T.int32] = n + 1", "I[x] = x"],
        ["x: T.let = n + 1", "I[x] = x"],
        ["x = n + 1", "I[x] = x"],
        ["with T.LetStmt(n + 1) as x:", "    I[x] = x"],
        ["x = T.int32()", "with T.let(x, n + 1):", "    I[x] = x"],
        ["x = T.var('int32')", "with T.LetStmt(n + 1, var=x):", "    I[x] = x"],
    ]
    bodies = [statement(*lines) for lines in forms]
    assert isinstance(bodies[0], Let) and bodies[0].value == N + 1
    assert all(body == bodies[0] for body in bodies)


def test_branches() -> None:
    """if, elif and else; an empty else is kept apart from none."""
    body = statement("if n < 3:", "    I[0] = 1", "elif n < 5:", "    pass", "else:", "    pass")
    assert isinstance(body, IfThenElse) and isinstance(body.otherwise, IfThenElse)
    assert body.otherwise.otherwise == NOTHING


def test_allocations_of_both_dialects() -> None:
    """`T.alloc_buffer` belongs to a block in the old dialect and is a statement in the current one."""
    old = statement("C = T.alloc_buffer((4,), 'int32')", "C[0] = 1")
    current = statement("C = T.alloc_buffer((4,), 'int32')", "C[0] = 1", decorator=CURRENT)
    in_block = statement("C = T.sblock_alloc_buffer((4,), 'int32')", "C[0] = 1", decorator=CURRENT)
    assert isinstance(old, Block) and old.is_root and isinstance(current, Allocate)
    assert in_block == old and current.buffer == old.alloc_buffers[0]


def test_memory_and_the_buffer_that_views_it_are_one_allocation() -> None:
    """`T.allocate` with its `T.decl_buffer` is one node; a view of another shape or type stays an alias."""
    pair = statement(
        "X_data = T.allocate([16], 'float32', 'global')",
        "X = T.decl_buffer((4, 4), 'float32', data=X_data)",
        "X[0, 0] = 1.0",
    )
    assert isinstance(pair, Allocate) and pair.buffer.rank == 2 and pair.buffer.data == Var("X_data", HANDLE)
    alias = statement(
        "M = T.allocate([16], 'float32', 'global')", "X = T.decl_buffer((4,), 'float32x4', data=M.data)", "pass"
    )
    assert (
        isinstance(alias, Allocate)
        and isinstance(alias.body, DeclBuffer)
        and alias.body.buffer.data == alias.buffer.data
    )


def test_what_tvm_prints_for_local_memory_and_undefined_values() -> None:
    """`T.alloc_local` and `T.Cast("float32", T.undef())`, as TVM 0.27 writes them."""
    body = statement(
        "C = T.alloc_local((16, 4), annotations={'a': 1})", "C[0, 0] = T.Cast('float32', T.undef())", decorator=CURRENT
    )
    assert isinstance(body, Allocate) and body.buffer.scope == "local" and dict(body.annotations) == {"a": 1}
    assert isinstance(body.body, BufferStore) and body.body.value == Undef(FLOAT32)


def test_aliases_of_both_names() -> None:
    """T.decl_buffer and T.buffer_decl, with the pointer by keyword or first; without one, memory of its own."""
    alias = statement("X = T.decl_buffer([224], 'float32', data=A.data, elem_offset=n)", "pass")
    assert (
        isinstance(alias, DeclBuffer) and alias.buffer.data == Var("A_data", HANDLE) and alias.buffer.elem_offset == N
    )
    assert statement("X = T.buffer_decl(A.data, [224], 'float32', elem_offset=n)", "pass") == alias
    assert isinstance(statement("X = T.decl_buffer((4,), 'float32')", "pass"), Allocate)


def test_what_a_statement_holds_ends_with_its_with() -> None:
    """After `with`, the following statement stands outside."""
    body = statement("with T.attr(A.data, 'key', 1):", "    I[0] = 1", "I[1] = 1")
    assert isinstance(body, Seq) and isinstance(body.body[0], AttrStmt) and isinstance(body.body[1], BufferStore)
    flat = statement("T.attr(A.data, 'key', 1)", "I[0] = 1", "I[1] = 1")
    assert isinstance(flat, AttrStmt) and isinstance(flat.body, Seq)


def test_assumptions_with_and_without_evaluate() -> None:
    """An assumption reads the same inside T.evaluate."""
    body = statement("T.evaluate(T.assume(n > 0))")
    assert body == statement("T.assume(n > 0)")
    assert isinstance(body, Evaluate) and isinstance(body.value, Assume) and body.value.dtype == BOOL


def sized(a: str, b: str, *lines: str) -> str:
    """The text of a function over two arrays, with these lines."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"@T.prim_func\ndef f(A: T.Buffer{a}, B: T.Buffer{b}):\n{body}"


SYMBOLIC = {
    "quoted": sized('(("n", 4), "float32")', '((n,), "float32")', "n = T.int32()", "pass"),
    "tuple": sized('((n, 4), "float32")', '((n,), "float32")', "n, k = T.int32(), T.int32()"),
    "var": sized('[(n, 4), "float32"]', '[n, "float32"]', 'n = T.var("int32")', "pass"),
    "undeclared": sized('(("n", 4), "float32")', '(("n",), "float32")', "pass"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name: str) -> None:
    """A size is declared in the body, in quotes, or both, and is one variable throughout."""
    program = loads(SYMBOLIC[name])
    assert [b.shape for b in program.buffers] == [(N, IntImm(4)), (N,)]
    assert 'A: T.Buffer(("n", 4), "float32"), B: T.Buffer((n,), "float32")' in print_func(program)


def test_handles_are_matched_by_name_or_in_order() -> None:
    """T.match_buffer takes its parameter's name, as a keyword too, or none and then the next handle."""
    text = (
        "@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    A = T.match_buffer({}(16, 14))\n"
        "    B = T.match_buffer({}shape=(16,))\n"
    )
    program = loads(text.format("a, ", "b, "))
    assert [b.name for b in program.buffers] == ["A", "B"]
    assert loads(text.format("", "")) == program
    assert loads(text.format("a, ", "param=b, ")) == program


def test_separators_are_counted_in_texts() -> None:
    """The text counts the axes before a separator, the buffer has the index of the last of them."""
    text = '@T.prim_func\ndef f(A: T.Buffer((2, 3, 4, 5, 4), "float32", axis_separators=[3])):\n    pass\n'
    program = loads(text)
    assert program.buffers[0].axis_separators == (2,)
    assert "axis_separators=[3]" in print_func(program)


def test_imports_name_the_namespace() -> None:
    """A module imported under another name is the script's namespace; other imports say nothing."""
    head = "import os\nfrom tvm.script import tirx as X\n'what it does'\n"
    text = f"{head}@X.prim_func\ndef f(A: X.Buffer((4,), 'int32')):\n    'and how'\n    A[0] = X.min(1, 2)\n"
    assert loads(text).name == "f"


def test_modules_of_both_dialects() -> None:
    """A class of functions, decorated in either way, or functions side by side."""
    function = "{0}@T.prim_func\n{0}def {1}():\n{0}    pass\n"
    for decorator in ("I.ir_module", "tvm.script.ir_module", "ir_module"):
        module = loads_module(f"@{decorator}\nclass M:\n" + function.format("    ", "f") + function.format("    ", "g"))
        assert [f.name for f in module.functions] == ["f", "g"]
    assert [f.name for f in loads_module(function.format("", "f") + function.format("", "g")).functions] == ["f", "g"]


def guarded(where: str, extent: str = "14") -> str:
    """A reduction over j, split by four, under a guard."""
    return (
        '@T.prim_func\ndef f(A: T.Buffer(("n", 14), "float32"), B: T.Buffer((n,), "float32")):\n    n = T.int32()\n'
        '    for i, jo, ji in T.grid(n, 4, 4):\n        with T.block("B"):\n            vi = T.axis.spatial(n, i)\n'
        f"            vj = T.axis.reduce({extent}, jo * 4 + ji)\n            T.where({where})\n"
        "            with T.init():\n"
        "                B[vi] = T.float32(0)\n            B[vi] = B[vi] + A[vi, vj]\n"
    )


@pytest.mark.parametrize(
    ("where", "extent", "severities"),
    [
        ("jo * 4 + ji < 14", "14", []),
        ("vj < 14", "14", []),
        ("vi < 3", "14", []),
        ("1 <= jo * 4 + ji", "14", ["warning"]),
        ("vj >= vi", "14", ["warning"]),
        ("A[vi, vj] > T.float32(0)", "14", ["warning"]),
        ("jo * 4 + ji < 14", "n", ["note"]),
        ("jo * 4 + ji < 14", "0", ["warning"]),
    ],
)
def test_an_init_that_may_not_run(where: str, extent: str, severities: list[str]) -> None:
    """A guard that may be off at the first reduction step, and a reduction that may be empty, are reported."""
    assert [d.severity.value for d in check_init(loads(guarded(where, extent)))] == severities


@pytest.mark.parametrize(
    ("domain", "loop", "binding", "late"),
    [
        ("14", "T.serial(0, 14)", "k", False),
        ("14", "T.serial(0, 14)", "13 - k", True),
        ("14", "T.serial(0, 14)", "(k + i) % 14", True),
        ("14", "T.serial(1, 14)", "k", True),
        ("14", "T.serial(1, 15)", "k - 1", False),
        ("(2, 14)", "T.serial(2, 14)", "k", False),
        ("(2, 14)", "T.serial(12)", "k", True),
        ("(2, 14)", "T.serial(12)", "k + 2", False),
        ("(i, 14)", "T.serial(i, 14)", "k", False),
    ],
)
def test_an_init_that_may_come_late(domain: str, loop: str, binding: str, late: bool) -> None:
    """A reduction whose loop does not begin at the domain's start is reported: other steps come before its init."""
    text = (
        '@T.prim_func\ndef f(A: T.Buffer((14, 14), "float32"), B: T.Buffer((14,), "float32")):\n'
        f"    for i in range(14):\n        for k in {loop}:\n            with T.block('B'):\n"
        "                vi = T.axis.spatial(14, i)\n"
        f"                vk = T.axis.reduce({domain}, {binding})\n                with T.init():\n"
        "                    B[vi] = T.float32(0)\n                B[vi] = B[vi] + A[vi, vk]\n"
    )
    found = [d for d in check_init(loads(text)) if d.severity.value == "warning"]
    assert [("vk may not begin" in d.message) for d in found] == [True] * late
