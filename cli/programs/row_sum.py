# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def row_sum(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer(("n",), "int32")):
    n = T.int32()
    m = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, j in T.grid(n, m):
        with T.sblock("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj]
