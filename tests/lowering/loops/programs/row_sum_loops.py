@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n",), "float32")):
    n, m = T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.float32(0.0)
        for j in range(m):
            B[i] = B[i] + A[i, j]
