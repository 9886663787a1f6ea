@T.prim_func(s_tir=True)
def main(A: T.Buffer((n + 2,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer((n + 1,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, f in T.grid(n, 3):
        B[i + 1] = B[i + 1] + (A[i + f] + B[i]) * F[f]
