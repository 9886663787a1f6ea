"""Whether two functions are one program up to names: what may differ, and all that may not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.buffer import Buffer
from layoutproof.ir.expr import FloatImm, IntImm, Var
from layoutproof.ir.node import Node
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Attributes, Block, For
from layoutproof.ir.visit import rewrite_bottom_up, walk
from layoutproof.verify.lockstep.identity import is_same_program, is_same_unrolled
from layoutproof.verify.verdict.verdict import Status

SIGNATURE = 'A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32"), n: T.int32'


def func(body: str, signature: str = SIGNATURE, name: str = "main") -> PrimFunc:
    """A function of a body."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return lp.loads(f"@T.prim_func(s_tir=True)\ndef {name}({signature}):\n{lines}")


PLAIN = "for i, j in T.grid(8, 4):\n    B[i, j] = A[i, j] + T.float32(1)"
BLOCK = (
    "C = T.alloc_buffer((8, 4), 'float32')\n"
    "for i, j in T.grid(8, 4):\n    with T.sblock('c'):\n        vi, vj = T.axis.remap('SS', [i, j])\n"
    "        C[vi, vj] = A[vi, vj]\n"
    "for i, j in T.grid(8, 4):\n    with T.sblock('b'):\n        vi, vj = T.axis.remap('SS', [i, j])\n"
    "        B[vi, vj] = C[vi, vj] * T.float32(2)"
)
OPAQUE = "for i, j in T.grid(8, 4):\n    B[i, j] = T.call_extern('float32', 'f', A[i, j], n)"
THREADS = "for i in T.thread_binding(8, thread='threadIdx.x'):\n    for j in range(4):\n        B[i, j] = A[i, j]"
MATCHED = (
    "for i in range(8):\n    with T.sblock('m'):\n        vi = T.axis.spatial(8, i)\n"
    "        T.reads(A[vi, 0:4])\n        T.writes(B[vi, 0:4])\n"
    "        P = T.match_buffer(A[vi, 0:4], (4,), offset_factor=1)\n"
    "        for j in range(4):\n            B[vi, j] = P[j]"
)
FAULTY = "C = T.alloc_buffer((1,), 'float32')\nfor i in range(9):\n    B[i, 0] = C[0]"
LET = "for i in range(8):\n    x = T.let(i * 2)\n    B[i, 0] = T.cast(x, 'float32')"
ALL = {"plain": PLAIN, "block": BLOCK, "opaque": OPAQUE, "threads": THREADS, "matched": MATCHED, "faulty": FAULTY}


def renamed(function: PrimFunc, random: Random) -> PrimFunc:
    """The function with other names for everything that it binds, buffers and blocks included."""
    names: dict[str, str] = {}

    def other(name: str) -> str:
        return names.setdefault(name, f"name{len(names)}_{random.randrange(1000)}")

    def visit(node: Node) -> Node:
        match node:
            case Var(name=name):
                return replace(node, name=other(name))
            case Buffer(name=name):
                return replace(node, name=other(name))
            case Block(name=name) if not node.is_root:
                return replace(node, name=other(name))
            case _:
                return node

    body = rewrite_bottom_up(function.body, visit)
    params = tuple(rewrite_bottom_up(p, visit) for p in function.params)
    mapped = tuple((rewrite_bottom_up(p, visit), rewrite_bottom_up(b, visit)) for p, b in function.buffer_map)
    return replace(function, name="other", params=params, buffer_map=mapped, body=body)


@pytest.mark.parametrize("body", ALL.values(), ids=ALL)
def test_names_are_free(body: str) -> None:
    """A program is itself whatever its variables, buffers, blocks and function are called, and `compare` proves it."""
    function = func(body)
    other = renamed(function, Random(body))
    assert is_same_program(function, function) and is_same_program(function, other) and is_same_program(other, function)
    assert lp.compare(function, func(body, name="again")).status is Status.PROVED


def mutants(function: PrimFunc) -> Iterator[PrimFunc]:
    """Programs that differ in one number, one variable or one kind of loop."""
    nodes = [node for node in walk(function.body) if isinstance(node, IntImm | FloatImm | Var | For)]
    variables = [
        v for v in dict.fromkeys(node for node in nodes if isinstance(node, Var)) if v.dtype == IntImm(0).dtype
    ]
    for target in nodes:
        done = False

        def visit(node: Node, target: Node = target) -> Node:
            nonlocal done
            if node is not target or done:
                return node
            done = True
            if isinstance(node, IntImm):
                return replace(node, value=node.value + 1)
            if isinstance(node, FloatImm):
                return replace(node, value=node.value + 1)
            if isinstance(node, For):
                return replace(node, annotations=Attributes({"pragma": 1}))
            assert isinstance(node, Var)
            others = [v for v in variables if v != node]
            return others[0] if node in variables and others else node

        try:
            changed = rewrite_bottom_up(function.body, visit)
        except (TypeError, ValueError):
            continue
        if changed != function.body:
            yield function.with_body(changed)


@pytest.mark.parametrize("body", ALL.values(), ids=ALL)
def test_no_mutant_is_the_program(body: str) -> None:
    """What differs in one constant, one use of a variable or one annotation is another program, under its own names and
    under others.
    """
    function = func(body)
    found = 0
    for mutant in mutants(function):
        found += 1
        assert not is_same_program(function, mutant) and not is_same_program(mutant, function)
        assert not is_same_program(function, renamed(mutant, Random(found)))
    assert found >= 2


S = 'A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")'
ONE = "C = T.alloc_buffer((8,), 'float32')\nC[0] = A[0, 0]\nB[0, 0] = C[0]"
DIFFERENT = {
    "variables swapped": (PLAIN, PLAIN.replace("A[i, j]", "A[j, i]"), S, S),
    "free variable": (
        "B[n, 0] = T.float32(0)",
        "B[m, 0] = T.float32(0)",
        f"{S}, n: T.int32, m: T.int32",
        f"{S}, n: T.int32, m: T.int32",
    ),
    "zero of another sign": ("B[0, 0] = T.float32(0.0)", "B[0, 0] = T.float32(-0.0)", S, S),
    "parameters in another order": (PLAIN, PLAIN, S, 'B: T.Buffer((8, 4), "float32"), A: T.Buffer((8, 4), "float32")'),
    "type of a buffer": (
        ONE,
        ONE.replace("'float32'", "'float16'")
        .replace("A[0, 0]", "T.Cast('float16', A[0, 0])")
        .replace("= C[0]", "= T.Cast('float32', C[0])"),
        S,
        S,
    ),
    "scope of a buffer": (ONE, ONE.replace("'float32')", "'float32', scope='local')"), S, S),
    "shape of a buffer": (ONE, ONE.replace("(8,)", "(9,)"), S, S),
    "two temporaries": (
        "C = T.alloc_buffer((1,), 'float32')\nD = T.alloc_buffer((1,), 'float32')\n"
        "C[0] = A[0, 0]\nD[0] = A[1, 0]\nB[0, 0] = C[0]",
        "C = T.alloc_buffer((1,), 'float32')\nD = T.alloc_buffer((1,), 'float32')\n"
        "C[0] = A[0, 0]\nD[0] = A[1, 0]\nB[0, 0] = D[0]",
        S,
        S,
    ),
    "one of two loops": (
        "for i in range(8):\n    for k in range(4):\n        B[i, k] = A[0, k]",
        "for i in range(8):\n    for k in range(4):\n        B[i, k] = A[0, i]",
        S,
        S,
    ),
    "noalias": (f'T.func_attr({{"tirx.noalias": True}})\n{PLAIN}', PLAIN, S, S),
    "extern function": (OPAQUE, OPAQUE.replace("'f'", "'g'"), SIGNATURE, SIGNATURE),
    "thread": (THREADS, THREADS.replace("threadIdx.x", "threadIdx.y"), S, S),
    "kind of a loop": (
        PLAIN,
        PLAIN.replace("T.grid(8, 4)", "T.grid(8, 4)").replace("for i, j in", "for j, i in"),
        S,
        S,
    ),
    "strides": (
        "B[0, 0] = A[0, 0]",
        "B[0, 0] = A[0, 0]",
        S,
        'A: T.Buffer((8, 4), "float32", strides=(8, 1)), B: T.Buffer((8, 4), "float32")',
    ),
    "order of stores": (
        "B[0, 0] = T.float32(1)\nB[0, 0] = T.float32(2)",
        "B[0, 0] = T.float32(2)\nB[0, 0] = T.float32(1)",
        S,
        S,
    ),
    "one store more": ("B[0, 0] = A[0, 0]", "B[0, 0] = A[0, 0]\nB[0, 1] = A[0, 1]", S, S),
    "else": (
        "if A[0, 0] > T.float32(0):\n    B[0, 0] = A[0, 0]",
        "if A[0, 0] > T.float32(0):\n    B[0, 0] = A[0, 0]\nelse:\n    B[0, 0] = T.float32(0)",
        S,
        S,
    ),
}


@pytest.mark.parametrize("case", DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_not_the_same(case: tuple[str, str, str, str]) -> None:
    """Each of these pairs differs in something that is no name."""
    before, after, mine, theirs = case
    a, b = func(before, mine), func(after, theirs)
    assert not is_same_program(a, b) and not is_same_program(b, a)


def test_a_name_that_is_bound_twice_is_known_by_its_binder() -> None:
    """Two loops of one name, one after the other, are the loops of two names; a name that captures another is not."""
    one = func("for i in range(8):\n    B[i, 0] = A[i, 0]\nfor i in range(8):\n    B[i, 1] = A[i, 1]", S)
    two = func("for i in range(8):\n    B[i, 0] = A[i, 0]\nfor k in range(8):\n    B[k, 1] = A[k, 1]", S)
    assert is_same_program(one, two) and is_same_program(two, one)
    # `for i: for k: B[i, k]` against `for i: for i: B[i, i]`, which no text can say.
    nested = func("for i in range(4):\n    for k in range(4):\n        B[i, k] = A[k, i]", S)
    i, k = (Var(name) for name in "ik")

    def captured(node: Node) -> Node:
        return i if node == k else node

    shadowed = nested.with_body(rewrite_bottom_up(nested.body, captured))
    assert not is_same_program(nested, shadowed) and not is_same_program(shadowed, nested)
    assert is_same_program(shadowed, shadowed)


def test_one_memory_behind_two_buffers_is_not_two() -> None:
    """Programs that differ in which of their views share memory are two."""
    first, last = "C = T.alloc_buffer((4,), 'float32')\n", "C[0] = A[0, 0]\nD[0] = A[1, 0]\nB[0, 0] = C[0]"
    apart = func(f"{first}D = T.alloc_buffer((4,), 'float32')\n{last}", S)
    shared = func(f"{first}D = T.decl_buffer((4,), 'float32', data=C.data)\n{last}", S)
    assert not is_same_program(apart, shared) and not is_same_program(shared, apart)
    a, b = apart.buffers
    together = replace(apart, buffer_map=tuple((p, replace(x, data=a.data)) for p, x in apart.buffer_map))
    assert b.data != a.data and not is_same_program(apart, together) and not is_same_program(together, apart)


def test_a_nan_is_itself() -> None:
    """A program with a NaN in it is the same program."""
    function = func("B[0, 0] = T.float32('nan')", S)
    assert is_same_program(function, func("B[0, 0] = T.float32('nan')", S))


def test_a_recorded_layout_goes_with_its_buffer() -> None:
    """Attributes by names of memories are compared under the names of the other program, and what they say counts."""
    function = func(PLAIN, S)

    def stated(name: str, axes: tuple[int, ...]) -> PrimFunc:
        return replace(function, attrs=Attributes({"buffer_axis_separators": {name: axes}}))

    first, second = (buffer.data.name for buffer in function.buffers)
    assert is_same_program(stated(first, (0,)), renamed_attribute(stated(first, (0,)), "Z"))
    assert not is_same_program(stated(first, (0,)), stated(second, (0,)))
    assert not is_same_program(stated(first, (0,)), stated(first, ()))


def renamed_attribute(function: PrimFunc, name: str) -> PrimFunc:
    """The function with another name for the memory of its first parameter, in its attribute too."""
    data = function.buffers[0].data

    def visit(node: Node) -> Node:
        return Var(name, data.dtype) if node == data else node

    mapped = tuple((p, rewrite_bottom_up(b, visit)) for p, b in function.buffer_map)
    attrs = Attributes({"buffer_axis_separators": {name: (0,)}})
    return replace(function, buffer_map=mapped, body=rewrite_bottom_up(function.body, visit), attrs=attrs)


@one_in(7)
@pytest.mark.parametrize("body", [OPAQUE, THREADS, MATCHED, FAULTY], ids=["opaque", "threads", "matched", "faulty"])
def test_a_certificate_of_one_program_is_confirmed(body: str) -> None:
    """What is proved since both texts are one is derived again from the certificate's text."""
    from layoutproof.verify.certificate.certificate import derive, text_of

    found = lp.compare(func(body), func(body, name="again"))
    assert found.rewrite is not None
    assert derive(text_of(found.rewrite, found.where), "certificate").status is Status.PROVED


UNROLLED = "for t in T.unroll(2):\n    C = T.alloc_buffer((t + 1,), 'float32')\n    C[t] = A[t, 1]\n    B[t, 0] = C[t]"
SHIFTED = (
    "for t in T.unroll(1, 3):\n    C = T.alloc_buffer((t{},), 'float32')\n    C[t - 1] = A[t - 1, 1]\n"
    "    B[t - 1, 0] = C[t - 1]"
)


def test_extents_that_depend_on_the_iteration_are_compared() -> None:
    """The number of an iteration is bound by its loop, also where a buffer's shape has it."""
    given = func(UNROLLED)
    assert is_same_unrolled(given, func(SHIFTED.format(""))) and is_same_unrolled(func(SHIFTED.format("")), given)
    for other in (" + 1", " + 2"):
        assert not is_same_unrolled(given, func(SHIFTED.format(other)))
        assert not is_same_unrolled(func(SHIFTED.format(other)), given)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "for t in T.unroll(3):\n    B[t, 0] = A[t, 0]",
            "B[0, 0] = A[0, 0]\nB[1, 0] = A[1, 0]\nB[2, 0] = A[2, 0]",
            True,
        ),
        (
            "for t in T.unroll(3):\n    B[t, 0] = A[t, 0]",
            "B[0, 0] = A[0, 0]\nB[2, 0] = A[2, 0]\nB[1, 0] = A[1, 0]",
            False,
        ),
        ("for t in T.unroll(3):\n    B[t, 0] = A[t, 0]", "B[0, 0] = A[0, 0]\nB[1, 0] = A[1, 0]", False),
        ("for t in range(2):\n    B[t, 0] = A[t, 0]", "B[0, 0] = A[0, 0]\nB[1, 0] = A[1, 0]", False),
        ("for t in T.vectorized(2):\n    B[t, 0] = A[t, 0]", "B[0, 0] = A[0, 0]\nB[1, 0] = A[1, 0]", False),
        ("for t in T.unroll(n):\n    B[t, 0] = A[t, 0]", "B[0, 0] = A[0, 0]\nB[1, 0] = A[1, 0]", False),
        (
            "for t, u in T.grid(2, 2):\n    B[t, u] = A[t, u + 0]",
            "for t, u in T.grid(2, 2):\n    B[t, u] = A[t, u]",
            True,
        ),
        ("for t in range(2):\n    B[t - 1 + 1, 0] = A[t, 0]", "for t in range(2):\n    B[t, 0] = A[t, 0]", False),
        (
            "for t in T.unroll(2):\n    for u in range(2):\n        B[u, t] = A[u * 2 + t, 0]",
            "for u in range(2):\n    B[u, 0] = A[u * 2, 0]\nfor v in range(2):\n    B[v, 1] = A[v * 2 + 1, 0]",
            True,
        ),
        (
            "for t in T.unroll(2):\n    for u in range(2):\n        B[u, t] = A[u * 2 + t, 0]",
            "for u in range(2):\n    B[u, 0] = A[u * 2, 0]\nfor v in range(2):\n    B[v, 1] = A[v * 2 + 2, 0]",
            False,
        ),
    ],
)
def test_loops_that_are_written_out(one: str, other: str, same: bool) -> None:
    """An `unroll` loop with constant bounds is its body once for each number, in order; no other loop is."""
    a, b = func(one), func(other)
    assert is_same_unrolled(a, b) is is_same_unrolled(b, a) is same


@one_in(7)
def test_very_many_iterations_decide_nothing() -> None:
    """Comparison ends after a fixed number of iterations, without an answer."""
    loop = "for t in T.unroll(100000000):\n    B[0, 0] = A[0, 0]"
    assert not is_same_unrolled(func(loop), func(f"B[1, 0] = A[1, 0]\n{loop}"))
