"""Forms of which TVM makes something else are told, and forms beside them are not."""

import pytest

from layoutproof.ir.script.lint import check_upstream
from layoutproof.ir.script.reader import loads

HEAD = (
    '@T.prim_func\ndef f(A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "bfloat16"),'
    ' C: T.Buffer((8,), "bool"), N: T.Buffer((8,), "int32")):\n'
    "    for i in range(8):\n"
)


@pytest.mark.parametrize(
    ("line", "severities"),
    [
        ("A[i] = (A[i] + A[0]) - A[i]", ["warning"]),
        ("A[i] = A[i] - (A[0] + A[i])", ["warning"]),
        ("A[i] = A[i] - (A[0] - A[i])", []),
        ("A[i] = (A[i] + A[0]) - A[1]", []),
        ("A[i] = (A[i] + T.float32(1)) - T.float32(1)", ["warning"]),
        ("A[i] = T.float32(1) - (T.float32(1) + A[i])", ["warning"]),
        ("A[i] = (A[i] + T.float32(1)) - T.float32(2)", []),
        ("A[i] = (A[i] - T.float32(1)) + T.float32(1)", []),
        ("A[i] = A[i] + T.float32(0)", ["warning"]),
        ("A[i] = 0 + A[i]", ["warning"]),
        ("A[i] = A[i] - T.float32(-0.0)", ["warning"]),
        ("A[i] = A[i] + T.float32(-0.0)", []),
        ("A[i] = A[i] - T.float32(0)", []),
        ("A[i] = T.float32(0) - A[i]", []),
        ("A[i] = T.float32(0) / A[i]", ["warning"]),
        ("A[i] = T.float32(1) / A[i]", []),
        ("A[i] = A[i] * T.float32(0)", ["warning"]),
        ("A[i] = A[i] * T.float32(2)", []),
        ("C[i] = A[i] != A[i]", ["warning"]),
        ("C[i] = A[i] != A[0]", ["note"]),
        ("C[i] = not A[i] < A[0]", ["note"]),
        ("C[i] = not (A[i] == A[0] or i < 3)", ["note"]),
        ("C[i] = not A[i] != A[0]", ["note"]),
        ("C[i] = not C[0]", []),
        ("C[i] = not N[i] < N[0]", []),
        ("C[i] = N[i] != N[0]", []),
        ("C[i] = N[i] != N[i]", []),
        ("N[i] = (N[i] + 3) - N[i]", []),
        ("H[i] = H[i] * H[0] + H[1]", ["warning"]),
        ("H[i] = H[i] * H[0]", []),
        ("H[i] = T.max(H[i], H[0]) + H[1]", []),
        ('A[i] = T.Cast("float32", T.Cast("bfloat16", A[i]))', ["warning"]),
        ('A[i] = T.Cast("float32", H[i])', []),
        ('A[i] = T.Cast("float32", T.max(T.Cast("bfloat16", A[i]), H[0]))', ["warning"]),
        ('H[i] = T.Select(i < 3, T.Cast("bfloat16", A[i]), H[0])', []),
        ('H[i] = T.max_value("bfloat16")', ["warning"]),
        ('H[i] = T.infinity("bfloat16")', []),
        ('C[i] = T.Cast("bool", T.float32(0.5))', ["warning"]),
        ("C[i] = 0.5", ["warning"]),
        ('C[i] = T.Cast("bool", T.float32(1.5))', []),
        ('C[i] = T.Cast("bool", A[i])', []),
        ("C[i] = i < 4 and A[i + 4] > T.float32(0)", ["note"]),
        ("C[i] = i >= 4 or A[i + 4] > T.float32(0)", ["note"]),
        ("C[i] = A[i] > T.float32(0) and A[i] < T.float32(1)", []),
        ("C[i] = i < 4 and A[0] > T.float32(0)", []),
        ("C[i] = i < 4 and i > 1", []),
        ("A[i] = T.if_then_else(i < 4, A[i + 4], T.float32(0))", []),
        ("A[i] = A[(i + 1) % 2 * 4 + i % 2 * 2]", ["warning"]),
        ("A[i % 2 * 4 + (i % 4 + 3) % 2] = T.float32(0)", ["warning"]),
        ("N[i] = (i - 1) % 4 * 30 + N[0] - i % 4 * 6", ["warning"]),
        ("N[i] = (i % 2 + 1) % 2 * 5 + (i % 2 + 1) // 2", ["warning"]),
        ("N[i] = (i + 1) % 2 * 5 + (i + 1) // 2", []),
        ("N[i] = (i + 1) % 4 * 30 + i % 2 * 6", []),
        ("N[i] = (i + 1) % 4 * 30 + (i + 1) % 4", []),
        ("N[(i + 1) % 4] = N[i % 4]", []),
    ],
)
def test_what_tvm_computes_otherwise_is_told(line: str, severities: list[str]) -> None:
    """One diagnostic for each kind of difference, at a place in the text."""
    found = check_upstream(loads(f"{HEAD}        {line}\n"))
    assert [d.severity.value for d in found] == severities
    assert all(d.code == "LP133" and d.span is not None for d in found)


@pytest.mark.parametrize(
    ("outer", "inner", "told"),
    [
        ("3, 8", "i, 8", True),
        ("3, 8", "2, i", True),
        ("3, 8", "0, i", False),
        ("0, 8", "i, 8", False),
        ("3, 8", "2, 8", False),
    ],
)
def test_loops_inside_each_other(outer: str, inner: str, told: bool) -> None:
    """Loops of which neither begins at 0, and the inner one's range is over the outer one."""
    lines = (f"    for i in range({outer}):", f"        for j in range({inner}):", "            A[j] = A[i]")
    found = check_upstream(loads("\n".join(['@T.prim_func\ndef f(A: T.Buffer((8,), "float32")):', *lines])))
    assert [(d.code, d.span and d.span.line) for d in found] == ([("LP133", 4)] if told else [])


def test_each_kind_is_told_once() -> None:
    """A program with many such forms has one message for each kind, at the first of them."""
    lines = (
        "A[i] = (A[i] + A[0]) - A[i]",
        "A[i] = A[i] * T.float32(0)",
        'H[i] = T.min_value("bfloat16")',
        "H[i] = H[i] * H[0] + H[1]",
    )
    text = HEAD + "".join(f"        {line}\n" for line in lines * 2)
    found = check_upstream(loads(text))
    assert sorted(d.span.line for d in found if d.span is not None) == [4, 6, 7]


@pytest.mark.parametrize(
    ("kept", "used", "told"),
    [
        ('T.Cast("bfloat16", A[i])', 'A[i] = T.Cast("float32", t[i])', True),
        ('T.Cast("bfloat16", A[i])', 'A[i] = T.Cast("float32", T.max(t[i], H[i]))', True),
        ('T.Cast("bfloat16", A[i])', "H[i] = t[i]", False),
        ("H[i] + H[0]", "H[i] = u[i] + H[i]", True),
        ("H[i]", 'A[i] = T.Cast("float32", u[i])', False),
    ],
)
def test_temporaries_of_bfloat16_are_not_rounded(kept: str, used: str, told: bool) -> None:
    """TVM keeps them in float32: what is computed from a rounded value of one is another one there."""
    lines = (
        '    t = T.alloc_buffer((8,), "bfloat16")',
        '    u = T.alloc_buffer((8,), "bfloat16")',
        "    for i in range(8):",
        f"        t[i] = {kept}",
        "        u[i] = t[i]",
        f"        {used}",
    )
    text = HEAD.replace("    for i in range(8):\n", "") + "\n".join(lines)
    assert [d.code for d in check_upstream(loads(text))] == (["LP133"] if told else [])


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("for i in T.vectorized(4):", "    x = N[i] + 1", "    N[i] = x * x"), True),
        (("for i in T.vectorized(4):", "    x: T.int32 = N[i]", "    N[i] = x"), True),
        (("for i in T.vectorized(4):", "    x = T.bind(N[i])", "    N[i] = x * x"), False),
        (("for i in T.vectorized(4):", "    x: T.let[T.int32] = N[i]", "    N[i] = x * x"), False),
        (("for i in T.vectorized(4):", "    with T.LetStmt(N[i]) as x:", "        N[i] = x * x"), False),
        (("for i in T.vectorized(4):", "    x = T.bind(N[i])", "    y = x", "    N[i] = y * y"), True),
        (("for i in T.vectorized(4):", "    x = N[7]", "    N[i] = x"), False),
        (("for i in T.vectorized(4):", "    x = T.meta_var(N[i])", "    N[i] = x + x"), False),
        (("for i in range(4):", "    x = N[i] + 1", "    N[i] = x * x"), False),
        (("for i in T.vectorized(0, 8, step=2):", "    N[i] = 0"), False),
        (("for i in range(N[0], 6):", "    N[i] = 0"), True),
        (("s = N[0]", "for i in range(s, 6):", "    N[i] = 0"), False),
        (("for i in range(N[0]):", "    N[i] = 0"), False),
        (("for i in range(M[0], 6):", "    N[i] = 0"), False),
        (('C = T.alloc_buffer((2, 2), "int32", strides=(1, 2))', "C[0, 0] = 1"), False),
        (('C = T.alloc_buffer((2, 2), "int32", strides=(1, 1))', "C[0, 0] = 1"), True),
        (('C = T.alloc_buffer((2, 2), "int32", strides=(2, 2))', "C[0, 0] = 1"), True),
        (
            (
                'C = T.alloc_buffer((2, 2), "int32", strides=(1, 2))',
                'D = T.decl_buffer((4,), "int32", data=C.data)',
                "D[0] = 1",
            ),
            True,
        ),
    ],
)
def test_statements_that_tvm_runs_otherwise(lines: tuple[str, ...], told: bool) -> None:
    """Cells in the lanes of a vector, a start that the loop changes, and strides of memory that is seen otherwise."""
    head = '@T.prim_func\ndef f(N: T.Buffer((8,), "int32"), M: T.Buffer((8,), "int32")):'
    found = check_upstream(loads("\n".join([head, *(f"    {line}" for line in lines)])))
    assert [(d.code, d.span is not None) for d in found] == ([("LP133", True)] if told else [])
