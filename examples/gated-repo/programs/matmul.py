# from tvm.script import tirx as T
# A matrix product; 30 rows are no multiple of 4, nor 50 columns of 16.

@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((30, 24), "float32"), B: T.Buffer((24, 50), "float32"), C: T.Buffer((30, 50), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(30, 50, 24):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
