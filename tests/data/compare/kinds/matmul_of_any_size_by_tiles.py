# A product of matrices of any size in tiles of 8 by 8, guarded at the edges.
# expect: proved
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer(("n", "k"), "float32"), B: T.Buffer(("k", "m"), "float32"), C: T.Buffer(("n", "m"), "float32")):
    n, m, k = T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(k >= 1))
    for i, j, r in T.grid(n, m, k):
        with T.sblock("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]


@T.prim_func(s_tir=True)
def after(A: T.Buffer(("n", "k"), "float32"), B: T.Buffer(("k", "m"), "float32"), C: T.Buffer(("n", "m"), "float32")):
    n, m, k = T.int32(), T.int32(), T.int32()
    T.func_attr({"tirx.noalias": True})
    T.evaluate(T.assume(k >= 1))
    for io, jo in T.grid((n + 7) // 8, (m + 7) // 8):
        for ii, ji in T.grid(8, 8):
            if io*8 + ii < n and jo*8 + ji < m:
                C[io*8 + ii, jo*8 + ji] = T.float32(0)
                for r in range(k):
                    C[io*8 + ii, jo*8 + ji] = C[io*8 + ii, jo*8 + ji] + A[io*8 + ii, r] * B[r, jo*8 + ji]
