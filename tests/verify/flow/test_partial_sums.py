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


@one_in(10)
@pytest.mark.parametrize("seed", range(40))
def test_random_stages(seed: int) -> None:
    """What is proved of a reduction in two stages gives the same numbers as one loop, for seven operators."""
    before, after = _two_stages(Random(seed))
    for old, new in ((before, after), (after, before)):
        if lp.compare(old, new).status is Status.PROVED:
            assert not _differ(old, new, np.random.default_rng(seed))


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
