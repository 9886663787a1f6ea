"""Small programs that the tests of the passes share, as text."""

from __future__ import annotations

from layoutproof.ir.primfunc import PrimFunc
from layoutproof.ir.script.reader import loads

HEADER = "@T.prim_func(s_tir=True)\n"


def program(text: str) -> PrimFunc:
    """The function that a text without its decorator states."""
    return loads(HEADER + text, "program.py")


def copy(extent: str = "14", dtype: str = "float32") -> PrimFunc:
    """`B[i] = A[i]`."""
    return program(f"""def main(A: T.Buffer(({extent},), "{dtype}"), B: T.Buffer(({extent},), "{dtype}")):
    for i in range({extent}):
        with T.sblock("copy"):
            v = T.axis.spatial({extent}, i)
            T.reads(A[v])
            T.writes(B[v])
            B[v] = A[v]
""")


def two_stages() -> PrimFunc:
    """`B = A + 1` in a temporary, then `C = B * 2`: an input, a temporary and an output of 16 by 12."""
    return program("""def main(A: T.Buffer((16, 12), "int32"), C: T.Buffer((16, 12), "int32")):
    B = T.sblock_alloc_buffer((16, 12), "int32")
    for i, j in T.grid(16, 12):
        with T.sblock("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(16, 12):
        with T.sblock("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] * 2
""")


def running_sum() -> PrimFunc:
    """`B[i] = sum over k of A[i, k]`, 14 by 5, with an init."""
    return program("""def main(A: T.Buffer((14, 5), "int32"), B: T.Buffer((14,), "int32")):
    for i, k in T.grid(14, 5):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
""")
