# Scores, their softmax and a weighted sum, row by row, with a temporary that is overwritten.
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def before(Q: T.Buffer((8, 4), "float32"), K: T.Buffer((8, 4), "float32"), V: T.Buffer((8, 4), "float32"), O: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    S = T.alloc_buffer((8, 8), "float32")
    M = T.alloc_buffer((8,), "float32")
    E = T.alloc_buffer((8, 8), "float32")
    L = T.alloc_buffer((8,), "float32")
    for i, j, d in T.grid(8, 8, 4):
        with T.sblock("S"):
            vi, vj, vd = T.axis.remap("SSR", [i, j, d])
            with T.init():
                S[vi, vj] = T.float32(0)
            S[vi, vj] = S[vi, vj] + Q[vi, vd] * K[vj, vd]
    for i, j in T.grid(8, 8):
        with T.sblock("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.min_value("float32")
            M[vi] = T.max(M[vi], S[vi, vj])
    for i, j in T.grid(8, 8):
        E[i, j] = T.exp(S[i, j] - M[i])
    for i, j in T.grid(8, 8):
        with T.sblock("L"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                L[vi] = T.float32(0)
            L[vi] = L[vi] + E[vi, vj]
    for i, d, j in T.grid(8, 4, 8):
        with T.sblock("O"):
            vi, vd, vj = T.axis.remap("SSR", [i, d, j])
            with T.init():
                O[vi, vd] = T.float32(0)
            O[vi, vd] = O[vi, vd] + E[vi, vj] / L[vi] * V[vj, vd]


@T.prim_func(s_tir=True)
def after(Q: T.Buffer((8, 4), "float32"), K: T.Buffer((8, 4), "float32"), V: T.Buffer((8, 4), "float32"), O: T.Buffer((8, 4), "float32")):
    T.func_attr({"tirx.noalias": True})
    s = T.alloc_buffer((8,), "float32", scope="local")
    m = T.alloc_buffer((1,), "float32", scope="local")
    l = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(8):
        for j in range(8):
            s[j] = T.float32(0)
            for d in range(4):
                s[j] = s[j] + K[j, d] * Q[i, d]
        m[0] = T.min_value("float32")
        for j in range(8):
            m[0] = T.max(m[0], s[j])
        l[0] = T.float32(0)
        for j in range(8):
            s[j] = T.exp(s[j] - m[0])
            l[0] = l[0] + s[j]
        for d in range(4):
            O[i, d] = T.float32(0)
        for j in range(8):
            for d in range(4):
                O[i, d] = O[i, d] + s[j] / l[0] * V[j, d]
