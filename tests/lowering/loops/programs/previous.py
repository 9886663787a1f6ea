@T.prim_func(s_tir=True)
def main(A: T.Buffer(("n",), "float32"), B: T.Buffer((n + 1,), "float32")):
    n = T.int32()
    T.func_attr({"tirx.noalias": True})
    for i in range(n + 1):
        with T.sblock("previous"):
            vi = T.axis.spatial(n + 1, i)
            T.reads(A[vi - 1])
            T.writes(B[vi])
            B[vi] = T.float32(2.0) * T.if_then_else(vi >= 1, A[vi - 1], T.float32(0.0))
