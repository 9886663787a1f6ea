# Sums and maxima of rows, in two stages before and at once after; both results are re-laid, each in its own way.
# expect: proved
# layout: S=lambda i: [i//4, i%4]
# pad: S=T.float32(0)
# layout: M=lambda i: [i%2, i//2]
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(A: T.Buffer((14, 9), "float32"), S: T.Buffer((14,), "float32"), M: T.Buffer((14,), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, k in T.grid(14, 9):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i, k in T.grid(14, 9):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], A[vi, vk])


@T.prim_func(s_tir=True)
def after(A: T.Buffer((14, 9), "float32"), S: T.Buffer((4, 4), "float32"), M: T.Buffer((2, 7), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i in range(14):
        S[i // 4, i % 4] = T.float32(0)
        M[i % 2, i // 2] = T.min_value("float32")
        for k in range(9):
            S[i // 4, i % 4] = S[i // 4, i % 4] + A[i, k]
            M[i % 2, i // 2] = T.max(M[i % 2, i // 2], A[i, k])
    for l in range(2):
        S[3, 2 + l] = T.float32(0)
