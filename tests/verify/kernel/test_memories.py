"""Memories that the kernel tells apart: views, temporaries of loops, lanes, parameters that may overlap."""

from __future__ import annotations

import pytest
from tests.verify.kernel.test_judge import rejected

SIGNATURE = 'A: T.Buffer(("n", 6), "float32"), B: T.Buffer(("n", 6), "float32")'
NOALIAS = 'T.func_attr({"tirx.noalias": True})'


def rewrite(theta: str, old: str, new: str, *, signature: str = SIGNATURE, attribute: str = NOALIAS) -> str:
    """Two programs of one signature."""
    lines = [f"# theta: {line}\n" for line in theta.split("; ") if line]
    for name, body in (("before", old), ("after", new)):
        indented = "".join(f"    {line}\n" for line in ("n = T.int32()", attribute, *body.strip("\n").split("\n")))
        lines.append(f"\n@T.prim_func(s_tir=True)\ndef {name}({signature}):\n{indented}")
    return "# functions: f, f\n" + "".join(lines)


def changed(text: str, was: str, becomes: str) -> str:
    """A body with another piece."""
    assert was in text
    return text.replace(was, becomes)


# ---- views

PLAIN = """
for i, j in T.grid(n, 6):
    B[i, j] = A[i, j]
for i, j in T.grid(n, 6):
    B[i, j] = B[i, j] + B[0, j]
"""
VIEWED = """
V = T.decl_buffer((n, 2, 3), "float32", data=B.data)
F = T.decl_buffer((n * 6,), "float32", data=A.data)
for i, j in T.grid(n, 6):
    V[i, j // 3, j % 3] = F[i * 6 + j]
for i, j in T.grid(n, 6):
    V[i, j // 3, j % 3] = B[i, j] + V[0, j // 3, j % 3]
"""
SHIFTED = """
V = T.decl_buffer((n, 2, 3), "float32", data=B.data)
F = T.decl_buffer((n, 3), "float32", data=A.data, strides=[6, 1], elem_offset=3)
for i, j in T.grid(n, 6):
    if j < 3:
        V[i, 0, j] = A[i, j]
    if j >= 3:
        V[i, 1, j - 3] = F[i, j - 3]
for i, j in T.grid(n, 6):
    V[i, j // 3, j % 3] = B[i, j] + B[0, j]
"""
HALVES = "0 -> 0: lambda i, j: [i, j] where j < 3; 1 -> 0: lambda i, j: [i, j] where j >= 3; 2 -> 1"


def test_views_of_the_same_elements() -> None:
    """Views of another shape name the elements by other indices."""
    assert rejected(rewrite("", PLAIN, VIEWED)) == set()


@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("", "", set()),
        ("elem_offset=3", "elem_offset=4", {"same-value", "within-buffer"}),
        ("strides=[6, 1]", "strides=[3, 1]", {"same-value"}),
    ],
)
def test_views_with_strides_and_an_offset(was: str, becomes: str, kinds: set[str]) -> None:
    """A half of each row."""
    assert rejected(rewrite(HALVES, PLAIN, changed(SHIFTED, was, becomes))) == kinds


@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("F[i * 6 + j]", "F[i * 6 + 5 - j]", {"same-value"}),
        ("B[i, j] + V[0, j // 3, j % 3]", "B[i, j] + V[0, j % 3, 0]", {"same-value", "within-buffer"}),
        ("(n, 2, 3)", "(n, 3, 2)", {"same-value", "within-buffer"}),
        ("(n * 6,)", "(n * 6 + 1,)", {"within-buffer"}),
        ("(n, 2, 3), ", "(n, 2, 3), elem_offset=1, dtype=", {"same-value", "within-buffer"}),
        ("] = B[i, j] + V[0", "] = A[i, j] + V[0", {"same-value"}),
    ],
)  # fmt: skip
def test_wrong_views_are_rejected(was: str, becomes: str, kinds: set[str]) -> None:
    """Other elements, other types, and elements outside the memory."""
    assert kinds <= rejected(rewrite("0 -> 0; 1 -> 1", PLAIN, changed(VIEWED, was, becomes)))


def test_races_are_seen_through_views() -> None:
    """Two names of one memory, of which each alone has no conflict: one iteration writes the row that all read."""
    serial = "for i, j in T.grid(n, 6):\n    V[i, j // 3, j % 3] = B"
    parallel = "for i in T.parallel(n):\n  for j in range(6):\n    V[i, j // 3, j % 3] = B"
    text = changed(VIEWED, "+ V[0, j // 3, j % 3]", "+ B[0, j]")
    assert rejected(rewrite("", PLAIN, changed(text, serial, parallel))) == {"no-race"}


def test_views_of_other_elements_are_not_understood() -> None:
    """An element of another type is made of the same bytes, which the kernel does not speak of."""
    body = """
V = T.decl_buffer((n, 6), "int32", data=B.data)
for i, j in T.grid(n, 6):
    V[i, j] = 0
"""
    assert {"same-value", "within-buffer"} <= rejected(rewrite("", body, body))


# ---- temporaries of loops

OUTSIDE = """
C = T.alloc_buffer((n, 6), "float32")
for i in range(n):
    for j in range(6):
        C[i, j] = A[i, j] * T.float32(2.0)
    for j in range(6):
        B[i, j] = C[i, 5 - j]
"""
INSIDE = """
for i in T.parallel(n):
    C = T.alloc_buffer((6,), "float32")
    for j in range(6):
        C[j] = A[i, j] * T.float32(2.0)
    for j in range(6):
        B[i, j] = C[5 - j]
"""


def test_a_temporary_may_be_allocated_in_each_iteration() -> None:
    """Its cells are written and read in one iteration, so that the loop may be parallel and the axis may go."""
    assert rejected(rewrite("", OUTSIDE, INSIDE)) == set()
    assert rejected(rewrite("", INSIDE, INSIDE)) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (changed(OUTSIDE, "C[i, 5 - j]", "C[n - 1 - i, 5 - j]"), INSIDE),
        (OUTSIDE, changed(INSIDE, "C[5 - j]", "C[j]")),
        (OUTSIDE, changed(INSIDE, "C[5 - j]", "C[0]")),
        (OUTSIDE, changed(INSIDE, "C[j] =", "C[j // 2] =")),
        (OUTSIDE, changed(INSIDE, "C[5 - j]", "C[6 - j]")),
    ],
)
def test_wrong_temporaries_are_rejected(old: str, new: str) -> None:
    """What an earlier iteration wrote is lost; each load finds what it found."""
    assert {"same-value", "same-end"} & rejected(rewrite("0 -> 0; 1 -> 1", old, new))


def test_one_temporary_for_all_iterations_needs_them_in_order() -> None:
    """A parallel loop around a temporary that all iterations share is a race."""
    shared = """
C = T.alloc_buffer((6,), "float32")
for i in T.parallel(n):
    for j in range(6):
        C[j] = A[i, j] * T.float32(2.0)
    for j in range(6):
        B[i, j] = C[5 - j]
"""
    assert "no-race" in rejected(rewrite("", OUTSIDE, shared))


# ---- lanes

ELEMENTS = """
for i, j in T.grid(n, 6):
    B[i, j] = A[i, j] + A[i, 0]
"""
LANES = """
for i in range(n):
    B[i, T.Ramp(0, 1, 6)] = A[i, T.Ramp(0, 1, 6)] + T.Broadcast(A[i, 0], 6)
"""


def test_lanes_are_a_loop() -> None:
    """A statement of several lanes is the loop over them, in both directions, and with theta speaking of lanes."""
    assert rejected(rewrite("0 -> 0: lambda i, lane: [i, lane]", ELEMENTS, LANES)) == set()
    assert rejected(rewrite("0 -> 0: lambda i, j: [i, j]", LANES, ELEMENTS)) == set()
    assert rejected(rewrite("", LANES, LANES)) == set()
    backwards = changed(LANES, "T.Ramp(0, 1, 6)", "T.Ramp(5, -1, 6)")
    assert rejected(rewrite("0 -> 0: lambda i, lane: [i, 5 - lane]", LANES, backwards)) == set()


@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("A[i, T.Ramp(0, 1, 6)]", "A[i, T.Ramp(5, -1, 6)]", {"same-value"}),
        ("B[i, T.Ramp(0, 1, 6)]", "B[i, T.Ramp(1, 1, 6)]", {"same-value", "within-buffer"}),
        ("B[i, T.Ramp(0, 1, 6)]", "B[i, T.Ramp(0, 0, 6)]", {"same-value", "no-race"}),
        ("T.Broadcast(A[i, 0], 6)", "A[i, T.Ramp(0, 1, 6)]", {"same-value"}),
    ],
)
def test_wrong_lanes_are_rejected(was: str, becomes: str, kinds: set[str]) -> None:
    """Other lanes, lanes outside, and lanes that write one cell."""
    assert kinds <= rejected(rewrite("0 -> 0: lambda i, lane: [i, lane]", ELEMENTS, changed(LANES, was, becomes)))


def test_all_lanes_are_loaded_before_one_is_stored() -> None:
    """A loop that finds what its earlier iterations stored is no vector statement, before or after."""
    loop = "for i, j in T.grid(n, 5):\n    B[i, j + 1] = B[i, j]"
    vector = "for i in range(n):\n    B[i, T.Ramp(1, 1, 5)] = B[i, T.Ramp(0, 1, 5)]"
    assert "no-race" in rejected(rewrite("0 -> 0: lambda i, lane: [i, lane]", loop, vector))
    assert "forms" in rejected(rewrite("0 -> 0: lambda i, j: [i, j]", vector, loop))


# ---- several parts

LOOP = """
for i, j in T.grid(n, 3):
    B[i, 0] = B[i, 0] + A[i, j]
"""
UNROLLED = """
for i in range(n):
    B[i, 0] = B[i, 0] + A[i, 0]
    B[i, 0] = B[i, 0] + A[i, 1]
    B[i, 0] = B[i, 0] + A[i, 2]
"""
STEPS = "0 -> 0: lambda i: [i, 0]; 1 -> 0: lambda i: [i, 1]; 2 -> 0: lambda i: [i, 2]"
PEELED = """
for i, j in T.grid(n, 2):
    B[i, 0] = B[i, 0] + A[i, j]
for i in range(n):
    B[i, 0] = B[i, 0] + A[i, 2]
"""


def test_a_loop_may_be_unrolled() -> None:
    """Several stores compute one old store, each some of its instances."""
    assert rejected(rewrite(STEPS, LOOP, UNROLLED)) == set()
    assert rejected(rewrite("0 -> 0: lambda i, j: [i, j]; 1 -> 0: lambda i: [i, 2]", LOOP, PEELED)) == set()


@pytest.mark.parametrize(
    ("theta", "new"),
    [
        (STEPS, changed(UNROLLED, "A[i, 1]", "A[i, 2]")),
        (changed(STEPS, "[i, 1]", "[i, 2]"), changed(UNROLLED, "A[i, 1]", "A[i, 2]")),
        (changed(STEPS, "0 -> 0: lambda i: [i, 0]; ", ""), UNROLLED),
        (STEPS.replace("[i, 0]", "[i, 3]").replace("[i, 2]", "[i, 0]").replace("[i, 3]", "[i, 2]"),
         UNROLLED.replace("A[i, 0]", "A[i, 3]").replace("A[i, 2]", "A[i, 0]").replace("A[i, 3]", "A[i, 2]")),
        ("0 -> 0: lambda i, j: [i, j]; 1 -> 0: lambda i: [i, 2]", changed(PEELED, "T.grid(n, 2)", "T.grid(n, 3)")),
        ("0 -> 0: lambda i, j: [i, j]; 1 -> 0: lambda i: [i, 2]", changed(PEELED, "T.grid(n, 2)", "T.grid(n, 1)")),
    ],
)  # fmt: skip
def test_wrong_parts_are_rejected(theta: str, new: str) -> None:
    """A term twice, one that is missing, terms in another order."""
    assert rejected(rewrite(theta, LOOP, new)) & {"same-value", "same-end"}


SKEWED = """
for k, j in T.grid(n + 2, 3):
    if k - j >= 0 and k - j < n:
        B[k - j, 0] = B[k - j, 0] + A[k - j, j]
"""


@pytest.mark.parametrize(("was", "becomes", "kinds"), [("", "", set()), ("n + 2", "n + 1", {"same-end"})])
def test_skewed_loops_have_instances_below_zero(was: str, becomes: str, kinds: set[str]) -> None:
    """A guard excludes them, and the inverse is found all the same."""
    assert rejected(rewrite("0 -> 0: lambda k, j: [k - j, j]", LOOP, changed(SKEWED, was, becomes))) == kinds


# ---- parameters that may overlap

LOCAL = 'C = T.alloc_buffer((n, 6), "float32")'


@pytest.mark.parametrize(
    ("signature", "body", "is_right"),
    [
        ('A: T.Buffer(("n", 6), "float32")', "for i, j in T.grid(n, 6):\n    A[i, j] = A[i, j] + T.float32(1.0)", True),
        (SIGNATURE, "for i, j in T.grid(n, 6):\n    B[i, j] = A[i, j]", False),
        (SIGNATURE, f"{LOCAL}\nfor i, j in T.grid(n, 6):\n    C[i, j] = A[i, j] + B[i, j]", True),
    ],
)  # fmt: skip
def test_parameters_may_overlap_only_where_none_is_written(signature: str, body: str, is_right: bool) -> None:
    """Without noalias, loops change places only where one parameter shares its memory with nothing, or is only read."""
    new = body.replace("for i, j in T.grid(n, 6):", "for j, i in T.grid(6, n):")
    text = rewrite("0 -> 0: lambda j, i: [i, j]", body, new, signature=signature, attribute="pass")
    assert rejected(text) == (set() if is_right else {"same-end"})


WIDE = """
F = T.decl_buffer((n * 3,), "float32x2", data=A.data)
V = T.decl_buffer((n, 3), "float32x2", data=B.data)
for i, k in T.grid(n, 3):
    V[i, k] = F[i * 3 + k] * T.Broadcast(T.float32(2.0), 2)
"""
DOUBLED = """
for i, j in T.grid(n, 6):
    B[i, j] = A[i, j] * T.float32(2.0)
"""


@pytest.mark.parametrize(
    ("was", "becomes", "kinds"),
    [
        ("", "", set()),
        ("F[i * 3 + k]", "F[i * 3 + 2 - k]", {"same-value"}),
        ("(n * 3,)", "(n * 3 + 1,)", {"within-buffer"}),
        ("V[i, k] =", "V[i, 0] =", {"same-value", "same-end"}),
    ],
)
def test_elements_of_several_lanes(was: str, becomes: str, kinds: set[str]) -> None:
    """A view of vectors has the lanes as a last axis."""
    theta = "0 -> 0: lambda i, k, lane: [i, k * 2 + lane]"
    assert kinds - {"same-end"} <= rejected(rewrite(theta, DOUBLED, changed(WIDE, was, becomes))) <= kinds
