"""`break`, `continue`, `while`, accesses under a predicate and constant contents: programs with them are run, and give
what the same statements of Python give.
"""

from __future__ import annotations

from random import Random
from textwrap import indent

import numpy as np
import pytest

from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.reader import loads
from layoutproof.lowering.compare.compare_programs import compare
from layoutproof.verify.verdict.verdict import Status

_HEAD = '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32")):\n'

_BODIES = [
    """
for i in range(10):
    if A[i] > 5:
        break
    B[i] = A[i] + 1
""",
    """
for i in range(10):
    if A[i] > 5:
        continue
    B[i] = A[i] + 1
""",
    """
for i in range(10):
    if i > 7:
        break
    for j in range(10):
        if A[j] < 0:
            continue
        if A[j] == i:
            break
        B[j] = B[j] + 1
    B[i] = B[i] * 2
""",
    """
for i in range(10):
    if A[i] > 3:
        if A[i] > 6:
            break
        B[i] = 7
        if A[i] == 5:
            continue
        B[i] = B[i] + 1
    else:
        B[i] = 2
        continue
    B[i] = B[i] + 10
""",
    """
c = T.alloc_buffer((1,), "int32")
c[0] = 2
while c[0] < 9:
    if A[c[0]] == 0:
        break
    B[c[0]] = A[c[0]] * 3
    c[0] = c[0] + 2
""",
    """
for i in range(10):
    break
    B[i] = 1
""",
]


def _indented(text: str, by: int = 4) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.strip("\n").splitlines())


def _by_python(body: str, a: list[int], b: list[int]) -> list[int]:
    """What Python's own interpreter makes of the statements."""
    text = body.replace('T.alloc_buffer((1,), "int32")', "[0]")
    exec(compile(text, "<body>", "exec"), {"A": a, "B": b})
    return b


@pytest.mark.parametrize("number", range(len(_BODIES)))
def test_the_same_as_in_python(number: int) -> None:
    """Programs that leave loops, or iterations, early store what the same text does in Python; printed and read again,
    too.
    """
    rng, body = Random(number), _BODIES[number]
    func = loads(_HEAD + _indented(body))
    for program in (func, loads(print_func(func))):
        for _ in range(20):
            a, b = [rng.randint(-2, 9) for _ in range(10)], [rng.randint(-3, 3) for _ in range(10)]
            found = run(program, [np.array(a, np.int32), np.array(b, np.int32)]).arrays["B"]
            assert found.tolist() == _by_python(body, a, list(b))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("break", "`break` stands in a loop"),
        ("for i in T.parallel(10):\n    if A[i] > 5:\n        break\n    B[i] = 1", "`break` in a parallel loop"),
        ("for i, j in T.grid(2, 5):\n    if A[i] > 5:\n        break\n    B[j] = 1", "a loop over several extents"),
        ("while A[0] < 5:\n    A[0] = A[0] + 1", "how often this `while` loop runs is not known"),
        (
            'c = T.alloc_buffer((1,), "int32")\nc[0] = 0\nwhile c[0] < 5:\n    c[0] = c[0] - 1',
            "how often this `while` loop runs is not known",
        ),
        (
            'c = T.alloc_buffer((1,), "int32")\nc[0] = 0\nwhile c[0] < 5:\n    if A[0] > 1:\n        continue\n'
            "    c[0] = c[0] + 1",
            "how often this `while` loop runs is not known",
        ),
        (
            'c = T.alloc_buffer((1,), "int32")\nc[0] = 0\nwhile c[0] < 5:\n    if A[0] > 1:\n        c[0] = c[0] + 1',
            "how often this `while` loop runs is not known",
        ),
        ("C = T.allocate_const([1, 2, 3], 'int32', [2])\nB[0] = C[0]", "as many numbers are expected, not 3"),
        ("B.vstore([0], 1, predicate=A[0] > 2)\nB.nothing(1)", "is not known"),
        ('T.evaluate(A.access_ptr("x"))', '"r", "w" or "rw" is expected, not "x"'),
    ],
)
def test_refusals(body: str, words: str) -> None:
    """What cannot be read as a loop, or what a method does not take, is refused with the place."""
    with pytest.raises(LayoutproofError) as problem:
        loads(_HEAD + _indented(body))
    assert words in str(problem.value)


def test_stores_under_a_predicate() -> None:
    """Lanes whose predicate is false keep what is there, and nothing is loaded for them."""
    func = loads(
        '@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((14,), "float32"), B: T.Buffer((16,), "float32")):\n'
        "    for i in range(4):\n"
        '        p = T.meta_var(T.get_active_lane_mask("uint1x4", i * 4, 14))\n'
        "        x = T.meta_var(A.vload([T.Ramp(i * 4, 1, 4)], predicate=p))\n"
        "        B.vstore([T.Ramp(i * 4, 1, 4)], x * T.Broadcast(T.float32(2), 4), predicate=p)\n"
    )
    a = np.arange(14, dtype=np.float32)
    found = run(func, [a, np.full(16, -1, np.float32)]).arrays["B"]
    assert found.tolist() == [*(2 * a).tolist(), -1, -1]


def test_constant_contents() -> None:
    """An allocation with contents has them, in rows."""
    func = loads(
        '@T.prim_func(s_tir=True)\ndef main(B: T.Buffer((2, 3), "int32")):\n'
        "    C = T.allocate_const([1, 2, 3, 4, 5, 6], 'int32', [2, 3])\n"
        "    for i, j in T.grid(2, 3):\n        B[i, j] = C[i, j] * 10\n"
    )
    assert run(func, [np.zeros((2, 3), np.int32)]).arrays["B"].tolist() == [[10, 20, 30], [40, 50, 60]]


def test_a_returned_value_is_an_opaque_call() -> None:
    """`return x` is what TVM makes of it."""
    body = "if A[0] > 5:\n    {}\nB[0] = A[0]\n"
    texts = [loads(_HEAD + indent(body.format(line), "    ")) for line in ("return A[1]", "T.ret(A[1])")]
    assert print_func(texts[0]) == print_func(texts[1])
    assert "        return A[1]\n" in print_func(texts[0]) and loads(print_func(texts[0])) == texts[0]
    assert "T.ret(A[1])" in print_func(texts[0], dialect="old")


_RETURNS = {
    "a store before it is dropped": (
        "B[0] = 1\nif A[0] > 0:\n    return 0\nB[0] = 2",
        "if A[0] > 0:\n    return 0\nB[0] = 2",
    ),
    "a store after it is moved before": ("return 0\nB[0] = 1", "B[0] = 1\nreturn 0"),
    "another value": ("B[0] = 1\nreturn 0", "B[0] = 1\nreturn 1"),
    "none": ("if A[0] > 0:\n    return 0\nB[0] = 1", "B[0] = 1"),
    "stores are swapped around it": (
        "B[1] = 1\nif A[0] > 0:\n    return 0\nB[0] = 2",
        "B[0] = 2\nif A[0] > 0:\n    return 0\nB[1] = 1",
    ),
}


@pytest.mark.parametrize("name", _RETURNS)
def test_what_a_return_leaves_out_matters(name: str) -> None:
    """Nothing is proved that moves past a `return`, and a program with one is itself."""
    before, after = (loads(_HEAD + indent(body, "    ")) for body in _RETURNS[name])
    assert compare(before, before).status is Status.PROVED
    assert compare(before, after).status is not Status.PROVED
