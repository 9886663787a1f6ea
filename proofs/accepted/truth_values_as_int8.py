# about: truth values that both programs see as int8, in lanes; what is there is bits to both
# expect: proved
# strictness: ieee
# theta: 0 -> 0: lambda i, lane: [i, lane] of int32, int32
from tvm.script import tirx as T


@T.prim_func
def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "bool")):
    T.func_attr({"tirx.noalias": True})
    B_flat = T.decl_buffer((16,), "int8", data=B.data)
    for i in range(4):
        for j in T.vectorized(4):
            B_flat[i * 4 + j] = T.Cast("int8", A[i * 4 + j] < 3)


@T.prim_func
def after(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "bool")):
    T.func_attr({"tirx.noalias": True})
    B_flat = T.decl_buffer((16,), "int8", data=B.data)
    for i in range(4):
        B_flat[T.Ramp(i * 4, 1, 4)] = T.Cast("int8x4", A[T.Ramp(i * 4, 1, 4)] < T.Broadcast(3, 4))
