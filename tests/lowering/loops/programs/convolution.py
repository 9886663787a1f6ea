@T.prim_func(s_tir=True)
def main(A: T.Buffer((n + 2,), "float32"), F: T.Buffer((3,), "float32"), B: T.Buffer(("n",), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i, f in T.grid(n, 3):
        with T.sblock("conv"):
            vi, vf = T.axis.remap("SR", [i, f])
            T.reads(A[vi + vf], F[vf])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0.0)
            B[vi] = B[vi] + A[vi + vf] * F[vf]
