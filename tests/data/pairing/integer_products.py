# Products of small integers, added up in another order.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((16, 8), "int8"), W: T.Buffer((8, 4), "int8"), B: T.Buffer((16, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(16, 4, 8):
        with T.sblock("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 0
            B[vi, vj] = B[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", W[vk, vj])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((16, 8), "int8"), W: T.Buffer((8, 4), "int8"), B: T.Buffer((16, 4), "int32")):
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, 4):
        B[i, j] = 0
    for i, j, ko, ki in T.grid(16, 4, 2, 4):
        B[i, j] = B[i, j] + T.Cast("int32", W[ki*2 + ko, j]) * T.Cast("int32", A[i, ki*2 + ko])
