# about: on a part of the lanes two loads find one value, and each goes by its own name
# expect: proved
# theta: 0 -> 0: lambda i, lane: [i, lane] of int32, int32
from tvm.script import tirx as T

@T.prim_func
def before(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        for j in T.vectorized(2):
            x: T.let[T.float32] = A[i, j]
            B[i, j] = A[i, 0] / x

@T.prim_func
def after(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(4):
        x: T.let[T.float32x2] = A[i, T.Ramp(0, 1, 2)]
        B[i, T.Ramp(0, 1, 2)] = T.Broadcast(A[i, 0], 2) / x
