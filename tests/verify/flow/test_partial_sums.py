"""Partial results that are added later: what is proved of random two-stage reductions holds when both are run."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.shares import one_in

import layoutproof as lp
from layoutproof.ir.dtype import DType
from layoutproof.ir.expr import FloatImm, IntImm
from layoutproof.ir.interp.run import run
from layoutproof.ir.operators import BinaryOp
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads
from layoutproof.verify.flow.partial_sums import is_neutral
from layoutproof.verify.verdict.verdict import Status

_HEAD = (
    "@T.prim_func(s_tir=True)\n"
    'def main(X: T.Buffer(({rows}, {size}), "{dtype}"), Y: T.Buffer(({rows},), "{dtype}")):\n'
    '    T.func_attr({{"tirx.noalias": True}})\n'
)
_UPDATES = {
    "add": ("{0} + {1}", 0), "mul": ("{0} * {1}", 1), "xor": ("{0} ^ {1}", 0), "or": ("{0} | {1}", 0),
    "and": ("{0} & {1}", -1), "max": ("T.max({0}, {1})", -(2**31)), "sub": ("{0} - {1}", 0),
}  # fmt: skip


def _two_stages(rng: Random) -> tuple[PrimFunc, PrimFunc]:
    """A reduction of each row, and one in two stages that is right or wrong in one way."""
    outer, inner, rows = rng.choice((2, 3, 4)), rng.choice((2, 3, 4)), rng.choice((1, 2, 3))
    operation = rng.choice(list(_UPDATES))
    form, neutral = _UPDATES[operation]
    wrong = rng.choice((None, None, "start", "twice", "lost", "place", "later", "narrow"))
    size = outer * inner
    head = _HEAD.format(rows=rows, size=size, dtype="int32")
    plain = (
        f"    for r in range({rows}):\n        Y[r] = {neutral}\n        for i in range({size}):\n"
        f"            Y[r] = {form.format('Y[r]', 'X[r, i]')}\n"
    )
    start = neutral + 1 if wrong == "start" else neutral
    element = rng.choice((f"X[r, o * {inner} + i]", f"X[r, i * {outer} + o]"))
    element = element.replace("+ ", "+ 0 * ") if wrong == "place" else element
    count = outer - 1 if wrong == "lost" else outer
    kind = "int16" if wrong == "narrow" else "int32"
    loops = f"o, again in T.grid({count}, 2)" if wrong == "twice" else f"o in range({count})"
    stages = (
        f'    Q = T.alloc_buffer(({outer},), "{kind}")\n    for r in range({rows}):\n'
        f"        for o in range({outer}):\n            Q[o] = {start}\n"
        f"        for i, o in T.grid({inner}, {outer}):\n            Q[o] = {form.format('Q[o]', element)}\n"
        f"        Y[r] = {neutral}\n        for {loops}:\n            Y[r] = {form.format('Y[r]', 'Q[o]')}\n"
    )
    if wrong == "later":
        stages = stages.replace(f"        Y[r] = {neutral}\n", f"        Q[0] = X[r, 0]\n        Y[r] = {neutral}\n")
    if kind == "int16":
        stages = stages.replace(f"Q[o] = {start}", f"Q[o] = T.int16({max(start, -(2**15))})")
    return loads(head + plain), loads(head + stages)


_WRONG = (
    "start of lanes", "start of threads", "start of the sum", "no start of lanes", "no start of threads",
    "start in the loop", "one lane lost", "one lane twice", "one thread lost", "one thread twice",
    "predicate too small", "next element", "other half byte", "late copy", "lanes not reset", "read too early",
    "one row for all",
)  # fmt: skip


def three_stages(rng: Random) -> tuple[PrimFunc, PrimFunc, str | None]:
    """A product of rows with decoded weights, and one with partial sums over lanes and threads, right or wrong."""
    lanes, threads, steps, rows = rng.choice((2, 4)), rng.choice((2, 3)), rng.choice((1, 2, 3)), rng.choice((1, 2))
    chunk = lanes * threads
    size = chunk * steps - rng.choice((0, 0, 1, lanes))
    wrong = rng.choice((*(None,) * 4, *_WRONG))
    dtype = rng.choice(("int32", "float32"))
    zero = "T.float32(0)" if dtype == "float32" else "0"
    words = (size + 3) // 4

    def decoded(place: str, of: str) -> str:
        shift = "8 * ((k) % 4 // 2)" if wrong == "other half byte" and of == "after" else "8 * ((k) % 4)"
        text = f"T.Cast('{dtype}', (W[r, (k) // 4] >> T.Cast('uint32', {shift})) & T.uint32(255))"
        return text.replace("(k)", f"({place})")

    head = (
        "@T.prim_func(s_tir=True)\n"
        f'def main(X: T.Buffer(({rows}, {size}), "{dtype}"), W: T.Buffer(({rows}, {words}), "uint32"), '
        f'Y: T.Buffer(({rows},), "{dtype}")):\n    T.func_attr({{"tirx.noalias": True}})\n'
    )
    temporary = rng.choice((True, False))
    plain = [f'    D = T.alloc_buffer(({rows}, {size}), "{dtype}")'] if temporary else []
    if temporary:
        plain += [f"    for r, k in T.grid({rows}, {size}):", f"        D[r, k] = {decoded('k', 'before')}"]
    weight = "D[r, k]" if temporary else decoded("k", "before")
    plain += [
        f"    for r in range({rows}):",
        f"        Y[r] = {zero}",
        f"        for k in range({size}):",
        f"            Y[r] = Y[r] + X[r, k] * {weight}",
    ]
    place = rng.choice(
        (f"o * {chunk} + t * {lanes} + v", f"o * {chunk} + v * {threads} + t", f"(v * {threads} + t) * {steps} + o")
    )
    element = f"({place}) % {size - 1} + 1" if wrong == "next element" and size > 1 else place
    shared = rng.choice((True, False))
    row = "0" if wrong == "one row for all" else "r"
    value = f"{'S[' if shared else f'X[{row}, '}{element}] * {decoded(place, 'after')}"
    guard = f"if {place} < {size - (wrong == 'predicate too small')}:"
    first = "1" if wrong == "start of lanes" else "0"
    second = "1" if wrong == "start of threads" else "0"
    third = "1" if wrong == "start of the sum" else "0"
    number = zero.replace("0)", "{})") if dtype == "float32" else "{}"
    begin = ["T.evaluate(0)"] if wrong == "no start of lanes" else [f"P[t * {lanes} + v] = {number.format(first)}"]
    after = [
        f'    P = T.alloc_buffer(({chunk},), "{dtype}")', f'    L = T.alloc_buffer(({threads},), "{dtype}")',
        f'    C = T.alloc_buffer((1,), "{dtype}")', f'    S = T.alloc_buffer(({size},), "{dtype}")',
    ]  # fmt: skip
    inits = [f"        for t, v in T.grid({threads}, {lanes}):", f"            {begin[0]}"]
    if wrong == "lanes not reset":
        after, inits = [*after, *(line[4:] for line in inits)], []
    after.append(f"    for r in range({rows}):")
    copy = [f"        for k in range({size}):", f"            S[k] = X[{row}, k]"]
    after += copy if wrong != "late copy" else []
    after += inits
    inner = [f"P[t * {lanes} + v] = P[t * {lanes} + v] + {value}"]
    after += [f"        for t, o, v in T.grid({threads}, {steps}, {lanes}):"]
    if wrong == "start in the loop":
        after += [f"            if v == 0:\n                P[t * {lanes} + v] = {zero}"]
    after += [f"            {guard}", *(f"                {line}" for line in inner)]
    again = {"one lane twice": f", again in T.grid({lanes}, 2)", "one lane lost": f" in range({lanes - 1})"}
    lane = again.get(str(wrong), f" in range({lanes})")
    stage = [
        f"        for t in range({threads}):",
        "            T.evaluate(0)"
        if wrong == "no start of threads"
        else f"            L[t] = {number.format(second)}",
        f"            for v{lane}:",
        f"                L[t] = L[t] + P[t * {lanes} + v]",
    ]
    again = {"one thread twice": f", again in T.grid({threads}, 2)", "one thread lost": f" in range({threads - 1})"}
    total = [
        f"        C[0] = {number.format(third)}",
        f"        for t{again.get(str(wrong), f' in range({threads})')}:",
        "            C[0] = C[0] + L[t]",
    ]
    after += [*total, *stage] if wrong == "read too early" else [*stage, *total]
    after += ["        Y[r] = C[0]", *(copy if wrong == "late copy" else [])]
    return loads(head + "\n".join(plain) + "\n"), loads(head + "\n".join(after) + "\n"), wrong


def differ_somewhere(before: PrimFunc, after: PrimFunc, numbers: np.random.Generator) -> bool:
    """Whether both programs store different results from some small whole numbers, or the second cannot run."""
    for _ in range(4):
        arrays = []
        for buffer in before.buffers:
            shape = tuple(int(e.value) for e in buffer.shape if isinstance(e, IntImm))
            high = 2**32 if buffer.dtype == DType.parse("uint32") else 50
            arrays.append(numbers.integers(0, high, shape).astype(str(buffer.dtype)))
        old, new = (run(func, [a.copy() for a in arrays]) for func in (before, after))
        if not np.array_equal(old.arrays["Y"], new.arrays["Y"]):
            return True
    return False


def _differ(before: PrimFunc, after: PrimFunc, numbers: np.random.Generator) -> bool:
    """Whether both programs store different results from some inputs."""
    shape = tuple(int(e.value) for e in before.buffers[0].shape if isinstance(e, IntImm))
    for _ in range(4):
        x = numbers.integers(-(2**31), 2**31, shape, dtype=np.int32)
        results = []
        for func in (before, after):
            y = np.zeros(shape[:1], np.int32)
            results.append(run(func, [x.copy(), y]).arrays["Y"])
        if not np.array_equal(results[0], results[1]):
            return True
    return False


@one_in(4)
@pytest.mark.parametrize("seed", range(40))
def test_random_stages(seed: int) -> None:
    """What is proved of a reduction in two stages gives the same numbers as one loop, for seven operators."""
    before, after = _two_stages(Random(seed))
    for old, new in ((before, after), (after, before)):
        if lp.compare(old, new).status is Status.PROVED:
            assert not _differ(old, new, np.random.default_rng(seed))


@one_in(8)
@pytest.mark.parametrize("seed", range(64))
def test_random_sums_over_lanes_and_threads(seed: int) -> None:
    """What is proved of a sum in three stages holds, and one that is right is proved."""
    before, after, wrong = three_stages(Random(seed))
    status = lp.compare(before, after).status
    if wrong is None:
        assert status is Status.PROVED
    elif status is Status.PROVED:
        assert not differ_somewhere(before, after, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("operator", "value", "holds"),
    [
        (BinaryOp.ADD, IntImm(0), True),
        (BinaryOp.ADD, IntImm(1), False),
        (BinaryOp.MUL, IntImm(1), True),
        (BinaryOp.MUL, IntImm(0), False),
        (BinaryOp.MAX, IntImm(-(2**31)), True),
        (BinaryOp.MAX, IntImm(0), False),
        (BinaryOp.MIN, IntImm(2**31 - 1), True),
        (BinaryOp.BITAND, IntImm(-1), True),
        (BinaryOp.BITAND, IntImm(255, DType.parse("uint8")), True),
        (BinaryOp.BITAND, IntImm(127, DType.parse("uint8")), False),
        (BinaryOp.SUB, IntImm(0), False),
        (BinaryOp.ADD, FloatImm(-0.0, DType.parse("float32")), True),
        (BinaryOp.MAX, FloatImm(-1024.0, DType.parse("float32")), False),
    ],
)
def test_neutral_values(operator: BinaryOp, value: IntImm | FloatImm, holds: bool) -> None:
    """A value is neutral if it changes nothing in any accumulator of its type, but for the sign of a zero."""
    assert is_neutral(operator, value) is holds
