"""Kernels with tensor instructions, run on flat memory with numbers for all offsets, strides and fragments.

What the tool takes an instruction to do on a view of a region is held against this, on kernels with random changes:

    python -m tests.oracle.warp_tiles --changes 200 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

import layoutproof as lp
from layoutproof.ir.buffer import Buffer, BufferLoad
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.evaluate import evaluate
from layoutproof.ir.expr import Cast, Expr, FloatImm, IntImm, Var
from layoutproof.ir.intrinsics import OpaqueCall, StringImm
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.stmt import Block, BufferStore, Evaluate, For, ForKind, Seq, Stmt
from layoutproof.verify.verdict.verdict import Status

_CHANGES = (
    ("row_major", "col_major"), ("(ty // 2)", "(ty % 2)"), ("(ty % 2)", "(ty // 2)"), ("(ko)", "(1 - ko)"),
    ("ko * 16", "(1 - ko) * 16"), ("X = T", "Y = T"), ("range(2)", "range(1)"), ("ty * 8 + i", "ty * 8 + 7 - i"),
    ("P[ty", "Q[ty"), ("A[ty", "B[ty"), ("X.data", "Y.data"), ("range(8)", "range(7)"), (" * 16 + 16", " * 16 + 8"),
    ("M.strides[0], ", "M.strides[1], "), ("(ko) * 16", "(ko) * 8"), ("F.elem_offset //", "M.elem_offset //"),
)  # fmt: skip


class Device:
    """Memory by data variable: flat arrays for each block, and tiles by number for each warp."""

    def __init__(self, func: PrimFunc, inputs: Sequence[np.ndarray]) -> None:
        self.flat: dict[Any, np.ndarray] = {
            buffer.data: array for buffer, array in zip(func.buffers, inputs, strict=True)
        }
        self.tiles: dict[tuple[Any, int, int], np.ndarray] = {}
        self.names: dict[Var, Any] = {}

    def offset(self, buffer: Buffer, indices: Sequence[int]) -> int:
        """Where a cell is, from the strides of its buffer."""
        strides: list[int] = []
        step = 1
        for extent in reversed(buffer.shape):
            strides.insert(0, step)
            step *= evaluate(extent, {})
        return sum(i * s for i, s in zip(indices, strides, strict=True))

    def memory(self, buffer: Buffer) -> np.ndarray:
        """The cells of a buffer, which begin as what no right kernel computes."""
        size = int(np.prod([evaluate(extent, {}) for extent in buffer.shape]))
        return self.flat.setdefault(buffer.data, np.full(size, -77))

    def run(self, stmt: Stmt, threads: list[dict[str, Any]]) -> None:
        """A statement, by all threads together: each leaf by one after the other."""
        match stmt:
            case Seq(body=body):
                for each in body:
                    self.run(each, threads)
            case For(kind=ForKind.THREAD_BINDING, var=var, extent=IntImm(value=extent), body=body):
                self.run(body, [{**t, var.name: i} for t in threads for i in range(extent)])
            case For(var=var, extent=IntImm(value=extent), body=body):
                for i in range(extent):
                    self.run(body, [{**t, var.name: i} for t in threads])
            case Block(body=body):
                for match in stmt.match_buffers:
                    self._bind(match.buffer, match.source.buffer, [r.start for r in match.source.ranges], threads)
                self.run(body, threads)
            case BufferStore(buffer=buffer, indices=indices, value=BufferLoad() as value):
                for t in threads:
                    place = self.offset(buffer, [evaluate(i, t) for i in indices])
                    source = self.offset(value.buffer, [evaluate(i, t) for i in value.indices])
                    self.memory(buffer)[place] = self.memory(value.buffer)[source]
            case Evaluate(value=OpaqueCall() as call):
                for t in threads:
                    if t.get("tx", 0) == 0:
                        self._instruction(call, t)
            case _:
                raise AssertionError(type(stmt))

    def _bind(self, view: Buffer, source: Buffer, starts: Sequence[Expr], threads: list[dict[str, Any]]) -> None:
        self.memory(source)
        for t in threads:
            rows = evaluate(source.shape[-1], {})
            names = (view.elem_offset, *view.strides, view.data)
            values = (self.offset(source, [evaluate(s, t) for s in starts]), rows, 1, source.data)
            for name, value in zip(names, values, strict=True):
                assert isinstance(name, Var)
                t[name.name] = value

    def _instruction(self, call: OpaqueCall, t: dict[str, Any]) -> None:
        def value(e: Expr) -> Any:
            if isinstance(e, Cast | FloatImm | StringImm):
                return e.value
            return t[e.name] if isinstance(e, Var) else evaluate(e, t)

        a = call.arguments
        if call.function == "tvm_fill_fragment":
            self.tiles[value(a[0]), value(a[4]), t["ty"]] = np.full((16, 16), int(value(a[5])))
        elif call.function == "tvm_mma_sync":
            d, x, y = ((value(a[2 * k]), value(a[2 * k + 1]), t["ty"]) for k in range(3))
            self.tiles[d] = self._tile(d) + self._tile(x) @ self._tile(y)
        else:
            assert isinstance(a[5], OpaqueCall)
            data, start, rows = value(a[5].arguments[1]), value(a[5].arguments[2]), value(a[6])
            place = start + rows * np.arange(16)[:, None] + np.arange(16)[None, :]
            place = place.T if value(a[7]) == "col_major" else place
            key = (value(a[0]), value(a[4]), t["ty"])
            if call.function == "tvm_load_matrix_sync":
                self.tiles[key] = self.flat[data][place].copy()
            else:
                self.flat[data][place] = self._tile(key)

    def _tile(self, key: tuple[Any, int, int]) -> np.ndarray:
        return self.tiles.get(key, np.full((16, 16), -55))


def changed(text: str, rng: random.Random) -> str:
    """The text with one or two of the changes, each in one place."""
    for _ in range(rng.choice((1, 1, 2))):
        old, new = rng.choice([c for c in _CHANGES if c[0] in text])
        parts = text.split(old)
        at = rng.randrange(len(parts) - 1)
        text = old.join(parts[: at + 1]) + new + old.join(parts[at + 1 :])
    return text


def judge(before: str, after: str, factors: str, seed: int) -> str:
    """What became of a kernel with a change. Raises AssertionError where the tool is wrong. `factors` in einsum's
    notation.
    """
    rng = random.Random(seed)
    text = after if seed < 0 else changed(after, rng)
    try:
        func = lp.loads(text)
    except LayoutproofError:
        return "not a program"
    status = lp.compare(lp.loads(before), func).status
    if status is Status.UNKNOWN:
        return status.value
    values = np.random.default_rng(seed + 1)
    a, b = (values.integers(-9, 9, (32, 32)) for _ in range(2))
    device = Device(func, [a.ravel().copy(), b.ravel().copy(), np.full(1024, -1)])
    device.run(func.body, [{}])
    found = device.flat[func.buffers[2].data].reshape(32, 32)
    same = bool((found == np.einsum(factors, a, b)).all())
    assert same == (status is Status.PROVED), (
        f"{status}, but the product is {'the same' if same else 'another'}\n{text}"
    )
    return status.value


def main() -> int:
    from tests.oracle.warp_programs import HEAD, product, wmma

    parser = argparse.ArgumentParser(description="Judge kernels with tensor instructions.")
    parser.add_argument("--changes", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + options.changes):
        turned = seed % 2 == 1
        pair = (product(b="j, k"), wmma(layout="col_major")) if turned else (product(), wmma())
        counts[judge(HEAD + pair[0], HEAD + pair[1], "ik,jk->ij" if turned else "ik,kj->ij", seed)] += 1
    for what, number in counts.most_common():
        print(f"{number:6} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
