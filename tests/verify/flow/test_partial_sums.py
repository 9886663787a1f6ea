"""Partial results that are added later: what is proved of random two-stage reductions holds when both are run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
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
    "predicate too small", "next element", "other byte", "late copy", "lanes not reset", "read too early",
    "one row for all", "copied too early",
)  # fmt: skip


@dataclass(frozen=True)
class _Sizes:
    """A sum over lanes, threads and steps of rows of some length, and what is wrong with it."""

    lanes: int
    threads: int
    steps: int
    rows: int
    size: int
    dtype: str
    wrong: str | None

    def number(self, value: int) -> str:
        """A literal of the accumulators' type."""
        return f"T.float32({value})" if self.dtype == "float32" else str(value)

    def start(self, stage: str) -> str:
        """What the accumulators of a stage begin with."""
        return self.number(int(self.wrong == f"start of {stage}"))

    def count(self, number: int, what: str) -> str:
        """The rest of the head of a loop over lanes or threads."""
        if self.wrong == f"one {what} twice":
            return f", again in T.grid({number}, 2)"
        return f" in range({number - (self.wrong == f'one {what} lost')})"

    def decoded(self, place: str, *, after: bool) -> str:
        """A weight, one byte of a word."""
        byte = f"({place}) % 4 // 2" if self.wrong == "other byte" and after else f"({place}) % 4"
        shifted = f"W[r, ({place}) // 4] >> T.Cast('uint32', 8 * ({byte}))"
        return f"T.Cast('{self.dtype}', ({shifted}) & T.uint32(255))"


def three_stages(rng: Random) -> tuple[PrimFunc, PrimFunc, str | None]:
    """A product of rows with decoded weights, and one with partial sums over lanes and threads, right or wrong."""
    lanes, threads, steps, rows = rng.choice((2, 4)), rng.choice((2, 3)), rng.choice((1, 2, 3)), rng.choice((1, 2))
    size = lanes * threads * steps - rng.choice((0, 0, 1, lanes))
    wrong, dtype = rng.choice((*(None,) * 4, *_WRONG)), rng.choice(("int32", "float32"))
    sizes = _Sizes(lanes, threads, steps, rows, size, dtype, wrong)
    head = (
        "@T.prim_func(s_tir=True)\n"
        f'def main(X: T.Buffer(({rows}, {size}), "{dtype}"), W: T.Buffer(({rows}, {(size + 3) // 4}), "uint32"), '
        f'Y: T.Buffer(({rows},), "{dtype}")):\n    T.func_attr({{"tirx.noalias": True}})\n'
    )
    plain, after = _plain(sizes, rng), _in_stages(sizes, rng)
    return loads(head + "\n".join(plain) + "\n"), loads(head + "\n".join(after) + "\n"), wrong


def _plain(sizes: _Sizes, rng: Random) -> list[str]:
    """One sum for each row, of weights that may be decoded before."""
    rows, size = sizes.rows, sizes.size
    weight, lines = sizes.decoded("k", after=False), list[str]()
    if rng.choice((True, False)):
        lines = [
            f'    D = T.alloc_buffer(({rows}, {size}), "{sizes.dtype}")',
            f"    for r, k in T.grid({rows}, {size}):",
            f"        D[r, k] = {weight}",
        ]
        weight = "D[r, k]"
    return [
        *lines,
        f"    for r in range({rows}):",
        f"        Y[r] = {sizes.number(0)}",
        f"        for k in range({size}):",
        f"            Y[r] = Y[r] + X[r, k] * {weight}",
    ]


def _in_stages(sizes: _Sizes, rng: Random) -> list[str]:
    """A sum for each lane, of these one for each thread, and of these one."""
    lanes, threads, steps, wrong = sizes.lanes, sizes.threads, sizes.steps, sizes.wrong
    lane, chunk = f"P[t * {lanes} + v]", lanes * threads
    allocated = [("P", chunk), ("L", threads), ("M", threads), ("C", 1), ("S", sizes.size)]
    memories = [f'    {name} = T.alloc_buffer(({size},), "{sizes.dtype}")' for name, size in allocated]
    reset = [f"for t, v in T.grid({threads}, {lanes}):", f"    {lane} = {sizes.start('lanes')}"]
    copy = [f"for k in range({sizes.size}):", f"    S[k] = X[{'0' if wrong == 'one row for all' else 'r'}, k]"]
    copied = rng.choice((True, False)) or wrong == "copied too early"
    place = rng.choice(
        (
            f"o * {chunk} + t * {lanes} + v",
            f"o * {chunk} + v * {threads} + t",
            f"(v * {threads} + t) * {steps} + o",
        )
    )
    element = f"({place}) % {sizes.size - 1} + 1" if wrong == "next element" and sizes.size > 1 else place
    once = [f"    if v == 0:\n                {lane} = {sizes.number(0)}"] if wrong == "start in the loop" else []
    update = [
        f"for t, o, v in T.grid({threads}, {steps}, {lanes}):",
        *once,
        f"    if {place} < {sizes.size - (wrong == 'predicate too small')}:",
        f"        {lane} = {lane} + S[{element}] * {sizes.decoded(place, after=True)}",
    ]
    early = ["    M[t] = L[t]"] if wrong == "copied too early" else []
    stage = [
        f"for t in range({threads}):",
        *([] if wrong == "no start of threads" else [f"    L[t] = {sizes.start('threads')}"]),
        *early,
        f"    for v{sizes.count(lanes, 'lane')}:",
        f"        L[t] = L[t] + {lane}",
        *(["    M[t] = L[t]"] if copied and not early else []),
    ]
    total = [
        f"C[0] = {sizes.start('the sum')}",
        f"for t{sizes.count(threads, 'thread')}:",
        f"    C[0] = C[0] + {'M' if copied else 'L'}[t]",
    ]
    body = [
        *(copy if wrong != "late copy" else []),
        *(reset if wrong not in ("no start of lanes", "lanes not reset") else []),
        *update,
        *([*total, *stage] if wrong == "read too early" else [*stage, *total]),
        "Y[r] = C[0]",
        *(copy if wrong == "late copy" else []),
    ]
    before = [f"    {line}" for line in reset] if wrong == "lanes not reset" else []
    return [*memories, *before, f"    for r in range({sizes.rows}):", *(f"        {line}" for line in body)]


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


@one_in(23)
@pytest.mark.parametrize("seed", range(40))
def test_random_stages(seed: int) -> None:
    """What is proved of a reduction in two stages gives the same numbers as one loop, for seven operators."""
    before, after = _two_stages(Random(seed))
    for old, new in ((before, after), (after, before)):
        if lp.compare(old, new).status is Status.PROVED:
            assert not _differ(old, new, np.random.default_rng(seed))


@one_in(84)
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


def _in_halves(dtype: str, update: str, first: str, start: str) -> tuple[PrimFunc, PrimFunc, np.ndarray]:
    """A reduction of all rows of four of elements, and one of both halves of each row, which begin with `start`."""
    elements = (-0.0, 0.0, 1.0, -1.0) if dtype == "float32" else (-9, -6, -4, 5)
    rows = np.array(list(product(elements, repeat=4)), dtype)
    head = _HEAD.format(rows=len(rows), size=4, dtype=dtype)
    plain = (
        f"    for r in range({len(rows)}):\n        Y[r] = T.{dtype}({first})\n        for k in range(4):\n"
        f"            Y[r] = {update.format('Y[r]', 'X[r, k]')}\n"
    )
    stages = (
        f'    Q = T.alloc_buffer((2,), "{dtype}")\n    for r in range({len(rows)}):\n        for o in range(2):\n'
        f"            Q[o] = T.{dtype}({start})\n            for i in range(2):\n"
        f"                Q[o] = {update.format('Q[o]', 'X[r, o * 2 + i]')}\n"
        f"        Y[r] = T.{dtype}({first})\n        for o in range(2):\n"
        f"            Y[r] = {update.format('Y[r]', 'Q[o]')}\n"
    )
    return loads(head + plain), loads(head + stages), rows


@pytest.mark.parametrize(
    ("first", "start", "fast_math"),
    [
        ("0.0", "0.0", {"reassoc"}),
        ("0.0", "-0.0", {"reassoc"}),
        ("-0.0", "-0.0", {"reassoc"}),
        ("-0.0", "0.0", {"reassoc", "nsz"}),
    ],
)
def test_signs_of_zeros(first: str, start: str, fast_math: set[str]) -> None:
    """A sum that begins with 0.0 is never -0.0, and -0.0 changes nothing: without `nsz`, all bits are those of before,
    for all rows of signed zeros and ones.
    """
    old, new, rows = _in_halves("float32", "{0} + {1}", first, start)
    found = lp.compare(old, new)
    assert found.status is Status.PROVED
    assert {name for verdict in found.verdicts for name in verdict.strictness} == fast_math
    before, after = (run(func, {"X": rows})["Y"] for func in (old, new))
    assert (before == after).all()
    assert (np.signbit(before) == np.signbit(after)).all() == ("nsz" not in fast_math)


@pytest.mark.parametrize("update", ["T.max({0}, {1})", "T.min({0}, {1})"])
@pytest.mark.parametrize(("first", "start"), [(-5, -5), (-5, -7), (-5, 3), (3, -5)])
def test_what_a_maximum_began_with(update: str, first: int, start: int) -> None:
    """Halves may begin with what the whole began with, or with something that is less: a maximum is as it was."""
    old, new, rows = _in_halves("int32", update, str(first), str(start))
    found = lp.compare(old, new)
    same = (run(old, {"X": rows})["Y"] == run(new, {"X": rows})["Y"]).all()
    assert same == ((start <= first) if "max" in update else (start >= first))
    assert found.status is (Status.PROVED if same else Status.REFUTED)
