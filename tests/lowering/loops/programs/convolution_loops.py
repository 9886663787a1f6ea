@T.prim_func(s_tir=True)
def main(A: T.Buffer((n + 2,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n):
        B[i] = T.float32(0.0)
        for f in range(3):
            B[i] = B[i] + A[i + f] * F[f]
