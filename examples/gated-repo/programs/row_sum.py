# from tvm.script import tirx as T
# The sums of 16 rows of any length.

@T.prim_func(s_tir=True)
def row_sum(A: T.Buffer((16, "m"), "float32"), B: T.Buffer((16,), "float32")):
    m = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(16, m):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vj]
