"""Kernels with one change: what is proved of them is what threads in random orders compute.

python -m tests.oracle.thread_mutants
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np

import layoutproof as lp
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.ir.interp.run import run
from layoutproof.ir.primfunc import PrimFunc
from layoutproof.verify.verdict.verdict import Status
from tests.oracle.thread_kernels import ORDERS
from tests.oracle.thread_walker import Walker, shape_of

HEAD = """from tvm.script import tir as T

@T.prim_func
def kernel(A: T.Buffer(({a},), "int32"), B: T.Buffer(({b},), "int32")):
"""

MATMUL = (
    HEAD.format(a=64, b=32)
    + """    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 8):
        B[i * 8 + j] = 0
        for k in range(8):
            B[i * 8 + j] = B[i * 8 + j] + A[i * 8 + k] * A[k * 8 + j]
"""
)
TILED_MATMUL = (
    HEAD.format(a=64, b=32)
    + """    T.func_attr({"tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 2)
    P = T.decl_buffer((4, 4), "int32", scope="shared")
    Q = T.decl_buffer((4, 4), "int32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 4)
    tx = T.launch_thread("threadIdx.x", 4)
    acc = T.decl_buffer((1,), "int32", scope="local")
    acc[0] = 0
    for ko in range(2):
        P[ty, tx] = A[ty * 8 + ko * 4 + tx]
        Q[ty, tx] = A[(ko * 4 + ty) * 8 + bx * 4 + tx]
        T.tvm_storage_sync("shared")
        for ki in range(4):
            acc[0] = acc[0] + P[ty, ki] * Q[ki, tx]
        T.tvm_storage_sync("shared")
    B[ty * 8 + bx * 4 + tx] = acc[0]
"""
)

STENCIL = (
    HEAD.format(a=10, b=8)
    + """    T.func_attr({"tirx.noalias": True})
    for i in range(8):
        B[i] = A[i] + A[i + 1] + A[i + 2]
"""
)
TILED_STENCIL = (
    HEAD.format(a=10, b=8)
    + """    T.func_attr({"tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 2)
    S = T.decl_buffer((6,), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    S[tx] = A[bx * 4 + tx]
    if tx < 2:
        S[tx + 4] = A[bx * 4 + tx + 4]
    T.tvm_storage_sync("shared")
    B[bx * 4 + tx] = S[tx] + S[tx + 1] + S[tx + 2]
"""
)

TURNED = (
    HEAD.format(a=16, b=16)
    + """    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[i * 4 + j] = A[j * 4 + i] * 2
"""
)
TILED_TURNED = (
    HEAD.format(a=16, b=16)
    + """    T.func_attr({"tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 2)
    S = T.decl_buffer((2, 5), "int32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    L = T.decl_buffer((1,), "int32", scope="local")
    L[0] = A[(bx * 2 + ty) * 4 + tx]
    S[ty, tx] = L[0] * 2
    T.tvm_storage_sync("shared")
    B[(ty * 2 + tx // 2) * 4 + bx * 2 + tx % 2] = S[tx % 2, ty * 2 + tx // 2]
"""
)

ROTATED = (
    HEAD.format(a=12, b=12)
    + """    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(3, 4):
        B[i * 4 + j] = A[i * 4 + (j + 2) % 4] - A[i * 4 + (j + 1) % 4]
"""
)
STEPPED_ROTATED = (
    HEAD.format(a=12, b=12)
    + """    T.func_attr({"tirx.noalias": True})
    S = T.decl_buffer((2, 4), "int32", scope="shared")
    tx = T.launch_thread("threadIdx.x", 4)
    for i in range(3):
        S[i % 2, tx] = A[i * 4 + tx]
        T.tvm_storage_sync("shared")
        B[i * 4 + tx] = S[i % 2, (tx + 2) % 4] - S[i % 2, (tx + 1) % 4]
"""
)

SCALED = (
    HEAD.format(a=16, b=16)
    + """    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(4, 4):
        B[i * 4 + j] = A[i * 4 + j] * A[i * 4]
"""
)
BROADCAST_SCALED = (
    HEAD.format(a=16, b=16)
    + """    T.func_attr({"tirx.noalias": True})
    bx = T.launch_thread("blockIdx.x", 2)
    S = T.decl_buffer((2,), "int32", scope="shared")
    ty = T.launch_thread("threadIdx.y", 2)
    tx = T.launch_thread("threadIdx.x", 4)
    if tx == 0:
        S[ty] = A[(bx * 2 + ty) * 4]
    T.tvm_storage_sync("shared")
    B[(bx * 2 + ty) * 4 + tx] = A[(bx * 2 + ty) * 4 + tx] * S[ty]
"""
)

PAIRS = {
    "matmul": (MATMUL, TILED_MATMUL),
    "stencil": (STENCIL, TILED_STENCIL),
    "transpose": (TURNED, TILED_TURNED),
    "rotation": (ROTATED, STEPPED_ROTATED),
    "scaling": (SCALED, BROADCAST_SCALED),
}


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """Every text with one change, with what was changed: barriers, constants, thread indices, scopes."""
    head, body = text.split("):\n", 1)
    lines = body.splitlines()
    for k, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        if "sync" in line:
            yield "barrier dropped", _joined(head, [*lines[:k], *lines[k + 1 :]])
            yield (
                "barrier in a branch",
                _joined(head, [*lines[:k], f"{indent}if tx < 2:", f"    {line}", *lines[k + 1 :]]),
            )
            yield "barrier later", _joined(head, [*lines[:k], lines[k + 1], line, *lines[k + 2 :]])
            yield "barrier earlier", _joined(head, [*lines[: k - 1], line, lines[k - 1], *lines[k + 1 :]])
            continue
        for what, changed in _changed(line):
            yield what, _joined(head, [*lines[:k], changed, *lines[k + 1 :]])


def _joined(head: str, lines: list[str]) -> str:
    return f"{head}):\n" + "\n".join(lines) + "\n"


def _changed(line: str) -> Iterator[tuple[str, str]]:
    for found in re.finditer(r"(?<![\w\"])\d+(?![\w\"])", line):
        for number in (int(found[0]) + 1, int(found[0]) - 1):
            if number >= 0:
                yield "constant", _put(line, found, str(number))
    if "launch_thread" not in line:
        for found in re.finditer(r"\b(tx|ty|bx)\b", line):
            for name in sorted({"tx", "ty", "bx"} - {found[0]}):
                yield "index of another axis", _put(line, found, name)
    for scope, instead in (("shared", "local"), ("local", "shared")):
        if f'scope="{scope}"' in line:
            yield "scope", line.replace(scope, instead)
    for operator, instead in ((" + ", " - "), (" * ", " + ")):
        for found in re.finditer(re.escape(operator), line):
            yield "operator", _put(line, found, instead)


def _put(line: str, found: re.Match[str], instead: str) -> str:
    return line[: found.start()] + instead + line[found.end() :]


def is_right(before: PrimFunc, after: PrimFunc, seed: int) -> bool:
    """Whether the kernel gives what the loops give, in every order that was tried, and no two threads met."""
    rng = random.Random(seed)
    sizes = [extent for buffer in before.buffers for extent in shape_of(buffer)]
    walker = Walker(after, sizes[1:])
    for _ in range(ORDERS):
        a = np.array([rng.randint(-9, 9) for _ in range(sizes[0])])
        expected = run(before, {"A": a.astype(np.int32)})["B"]
        try:
            found = walker.run(a, rng)
        except (IndexError, ValueError, KeyError):
            return False
        if found.raced or not (found.b == expected).all():
            return False
    return True


def judge(before: str, after: str, seed: int) -> str:
    """What became of one mutant. Raises AssertionError where a wrong one is proved, or a right one is refuted."""
    old = lp.loads(before)
    try:
        new = lp.loads(after)
        found = lp.compare(old, new)
    except LayoutproofError:
        return "not a program"
    right = is_right(old, new, seed)
    assert right or found.status is not Status.PROVED, f"proved, and wrong:\n{after}"
    assert not right or found.status is not Status.REFUTED, f"refuted, and right:\n{after}\n{found.verdicts[0].reason}"
    return f"{'right' if right else 'wrong'}, {found.status.value}"


def main() -> int:
    """Judge every mutant of every kernel."""
    parser = argparse.ArgumentParser(description="Judge every mutant of every kernel.")
    parser.add_argument("--only", choices=tuple(PAIRS))
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for name, (before, after) in PAIRS.items():
        if options.only not in (None, name):
            continue
        assert judge(before, after, 0) == "right, proved", name
        for number, (what, changed) in enumerate(mutants(after)):
            verdict = judge(before, changed, number)
            counts[verdict] += 1
            if verdict == "wrong, unknown":
                counts[f"  of them: {what}"] += 1
    for verdict, number in counts.most_common():
        print(f"{number:6} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
